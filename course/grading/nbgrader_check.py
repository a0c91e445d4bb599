"""nbgrader's autograding step, made safe: the checks run outside of the student's process.

nbgrader itself runs the notebook with its checks in one kernel, where a student's code can change what the checks do.
`nbgrader_config.py` replaces its step `Execute` by this one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
from nbgrader.preprocessors import NbGraderPreprocessor

from course.grading.feedback.graded_notebook import graded_notebook
from course.judging.judged_notebook import judge_notebook
from course.notebooks.notebook_file import read_notebook


class CheckAnswers(NbGraderPreprocessor):
    """Fill the check cells of a submission with their outcomes and points."""

    def preprocess(
        self, notebook: nbformat.NotebookNode, resources: dict[str, Any]
    ) -> tuple[nbformat.NotebookNode, dict[str, Any]]:
        names = resources["nbgrader"]
        course = self.config.CourseDirectory
        source = Path(course.root, course.source_directory, names["assignment"], f"{names['notebook']}.ipynb")
        reference = read_notebook(source)
        secret = [Path(course.root, name) for name in (course.source_directory, ".nbgrader")]
        judgement = judge_notebook(notebook, reference, secret=secret)
        for remark in judgement.remarks:
            self.log.warning("%s: %s", names["student"], remark)
        return graded_notebook(notebook, reference, judgement), resources
