"""Grade submissions, a few at a time: each is judged, gets its feedback page, and is kept as soon as it is done."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from course.grading.feedback import page as feedback
from course.grading.feedback.graded_notebook import graded_notebook
from course.grading.grade import Grade, answers_by_hand
from course.grading.results.results import Results
from course.grading.submissions.fingerprint import fingerprint
from course.grading.submissions.own_folders import own_folder
from course.grading.submissions.submission import Submission, without_outputs
from course.judging.judged_notebook import Judgement, judge_notebook
from course.sandbox.limits import Limits


@dataclass(frozen=True)
class Grading:
    """One run of the grader.

    submissions: what is to be graded.
    pages: the path of each submission's feedback page, in the same order.
    references: the solutions, by assignment.
    results: the folder of results.
    limits: the bounds of an answer's process.
    workers: the number of submissions that are graded at a time.
    secret: folders that no answer may read.
    options: what else a grade depends on.
    stop: set when the run is to end.
    """

    submissions: list[Submission]
    pages: list[Path]
    references: dict[str, nbformat.NotebookNode]
    results: Results
    limits: Limits
    workers: int
    secret: Sequence[Path]
    options: dict[str, Any]
    stop: threading.Event

    def fingerprint(self, submission: Submission, digest: str) -> str:
        """What the grade of a submission depends on; `digest` is that of its file."""
        folder = own_folder(submission, self.submissions)
        reference = self.references.get(submission.assignment)
        return fingerprint(submission, digest, reference, self.options, Path(folder) if folder else None)


@dataclass(frozen=True)
class GradedSubmission:
    """A grade as a worker returns it, its fingerprint, and the path of its page; "" if it could not be written."""

    grade: Grade
    fingerprint: str
    page: str


def grade_all(grading: Grading, places: Sequence[int]) -> None:
    """Grade the submissions at `places`, with a progress bar; each is in the results as soon as it is graded.

    Ctrl-C ends those that are being graded within seconds. Raises CannotWriteError.
    """
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    if not places:
        return
    jobs: list[Future[GradedSubmission]] = []
    kept: set[Future[GradedSubmission]] = set()

    def keep(job: Future[GradedSubmission]) -> str:
        done = job.result()
        grading.results.add(done.grade, done.fingerprint, done.page)
        kept.add(job)  # Ctrl-C may come before, and then it is kept again
        return done.grade.student

    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task("grading", total=len(places))
        pool = ThreadPoolExecutor(grading.workers)
        try:
            jobs += [pool.submit(grade_one, grading, place) for place in places]
            for job in as_completed(jobs):
                progress.update(bar, advance=1, description=f"graded {keep(job):.24}")
        except KeyboardInterrupt:
            progress.update(bar, description="stopping")
        finally:
            grading.stop.set()
            pool.shutdown(cancel_futures=True)
    for job in jobs:
        if job not in kept and not job.cancelled() and job.exception() is None:
            keep(job)


def grade_one(grading: Grading, place: int) -> GradedSubmission:
    """Judge a submission and write its feedback page. There is always a grade, whatever is wrong."""
    submission, page = grading.submissions[place], grading.pages[place]
    digest = submission.digest
    try:
        file = submission.read()
        digest = submission.digest if submission.problem else file.digest
        grade, text = judged(submission, None if file.problem else without_outputs(file.notebook()), grading)
    except Exception as error:  # a notebook that the course's own code stumbles over must not stop the class
        grade = unjudged(submission, f"it could not be graded, look at it: {type(error).__name__}: {str(error)[:300]}")
        text = feedback.plain_page(grade)
    problem = grading.results.write_page(page, text)
    if problem:
        grade.judgement.remarks.append(problem)
    return GradedSubmission(grade, grading.fingerprint(submission, digest), "" if problem else page.as_posix())


def judged(submission: Submission, notebook: nbformat.NotebookNode | None, grading: Grading) -> tuple[Grade, str]:
    """The grade of a submission, and its feedback page."""
    reference = grading.references.get(submission.assignment)
    if notebook is None or reference is None:
        grade = unjudged(submission, submission.problem)
        return grade, feedback.plain_page(grade)
    judgement = judge_notebook(
        notebook, reference, grading.limits, own_folder(submission, grading.submissions),
        secret=grading.secret, is_stopped=grading.stop.is_set,
    )  # fmt: skip
    judgement.remarks[:0] = [submission.remark] if submission.remark else []
    by_hand = answers_by_hand(notebook, reference)
    grade = Grade(submission.student, submission.assignment, judgement, by_hand)
    try:
        return grade, feedback.page(graded_notebook(notebook, reference, judgement), grade)
    except Exception as error:  # what cannot be shown still has its points
        judgement.remarks.append(f"it cannot be shown: {type(error).__name__}")
        return grade, feedback.plain_page(grade)


def unjudged(submission: Submission, why: str) -> Grade:
    """The grade of a submission that could not be judged: no points, and the reason."""
    remarks = [remark for remark in (submission.remark, why) if remark]
    return Grade(submission.student, submission.assignment, Judgement(remarks=remarks), ())
