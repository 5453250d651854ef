"""The grader: ``python -m amptutorial_course.grading FOLDER --assignment N --out grades.csv``.

Two processes look at every submission. The *worker* (`worker`, confined by `sandbox`)
holds the student's module and answers questions about it. The *judge* (`judge`, through
the proxies of `remote`) runs the checks of `amptutorial.checks` and never a line of the
student's. `classroom` walks through the class and keeps a `record` of each submission.

`submissions` reads what platforms hand out and `roster` knows who should be there;
`course` joins them, `lateness` and marks by hand to the `gradebook`, from which
`feedback` and `exports` write what students, lecturers and platforms read. What they
need comes with ``pip install amptutorial[course]``.
"""
