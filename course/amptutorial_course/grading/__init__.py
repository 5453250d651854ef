"""The grader: ``python -m amptutorial_course.grading FOLDER --assignment N --out grades.csv``.

Two processes look at every submission. The *worker* (`worker`, in the place that
`isolation` makes) holds the student's module and answers questions about it. The
*judge* (`judge`, through the proxies of `session`) reads the files, runs the checks of
`amptutorial.checks`, and no line of the student's. What it reads is found by
`submissions`, and in a notebook by `notebooks`. `classroom` has a judge for each
submission of a class, and keeps a `record` of what it found, for a table (`gradebook`)
and a page for each student (`pages`). `gradescope` and `nbgrader` let those platforms
call the judge.
"""

# of isolation: see `isolation`, and the page for instructors
KINDS = ("bwrap", "user", "landlock", "none")
