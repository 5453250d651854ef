"""What nbgrader calls to grade: the grader of this package in the place of a kernel."""

import json

from nbformat.v4 import new_output
from nbgrader.converters import Autograde
from nbgrader.preprocessors import Execute, NbGraderPreprocessor

from ..assignments import ASSIGNMENTS
from . import config, isolation, judge
from .notebooks import notebook_source

CHECK = "check-"  # the names of the graded cells begin so


class Sandboxed(NbGraderPreprocessor):
    """Takes the denoiser out of a notebook and writes the verdicts into its cells.

    No cell runs here: the denoiser runs in the process and with the limits that the
    grader gives it, and the seed stands in no notebook.
    """

    rules = ""  # the file grading.yml: nbgrader_config.py says where it is

    def preprocess(self, nb, resources):
        """Return the notebook with the error of every check that earns nothing."""
        task = next(
            each
            for each in ASSIGNMENTS.values()
            if each.folder == resources["nbgrader"]["assignment"]
        )
        rules = config.load_rules(self.rules, task.number)
        own = rules.for_student(resources["nbgrader"]["student"])
        source = notebook_source(json.dumps(nb).encode())
        isolate, warning = isolation.choose()
        if warning:
            self.log.warning(warning)
        record = judge.grade_submission(source, own, isolate)
        marks = {f"{CHECK}{mark.name}": mark for mark in record.marks}
        for cell in nb.cells:
            mark = marks.get(cell.metadata.get("nbgrader", {}).get("grade_id"))
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
            if mark is not None and mark.points < mark.most:
                cell.outputs = [_error(mark, record)]
        return nb, resources


def _error(mark, record):
    """Return an output that says why a check earns nothing."""
    if mark.passed or not record.status.startswith("graded"):
        lines = [record.status, record.traceback]
    else:
        lines = [mark.message, f"The promise: {mark.contract}", f"Read: {mark.read}"]
    text = "\n".join(filter(None, lines))
    return new_output(
        "error", ename="AssertionError", evalue=lines[0], traceback=[text]
    )


PREPROCESSORS = [
    Sandboxed if each is Execute else each
    for each in Autograde.class_traits()["autograde_preprocessors"].default()
]
