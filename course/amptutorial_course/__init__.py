"""Assignments on denoisers, and the grader that judges them.

The mathematics, and the checks that are asked, are in `amptutorial`.
"""
