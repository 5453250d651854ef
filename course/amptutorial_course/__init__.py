"""Assignments on denoisers, and the grader that judges them.

The mathematics is in `amptutorial`, which this distribution needs.
"""
