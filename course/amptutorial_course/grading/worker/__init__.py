"""What runs beside a submission: this folder and `amptutorial`, and no more of the grader.

The judge starts `answers.main` in a process of its own, in which this folder is called
``amptutorial_worker``. Neither assignments nor checks of the course are there.
"""
