"""The paper's experiments and the rivals on text, computed, stored and read back.

Nothing else of the package imports from here.
"""
