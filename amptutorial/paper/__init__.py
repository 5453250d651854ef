"""The paper's experiments, computed, stored and read back, and the results of studies.

Nothing else of the package imports from here.
"""
