"""The grader: ``python -m amptutorial.grading submissions/ --assignment 2 --out grades.csv``.

Two processes look at every submission. The *worker* (`worker`, confined by `sandbox`)
holds the student's module and answers questions about it; the *judge* (`judge`, through
the proxies of `remote`) runs the checks of `amptutorial.checks` and never runs a line
of the student's. `classroom` walks through the class, `feedback` writes what students
and lecturer read.
"""
