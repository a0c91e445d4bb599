"""How an answer is checked: the student's code runs in a process of its own, and only data comes back to be judged.

What checks are written with: `exercise.py`, `expect.py`, `wrong.py`; `answer.py` is the student's function as a check
sees it, `ranks.py` runs it on simulated nodes. The verdict: `outcome.py`; `display.py` shows it, `progress_record.py`
keeps it.

On the check's side: `session.py` starts, watches and ends the student's process, `shipping.py` sends a function there
from a notebook's kernel, `scratch.py` makes the folder it works in, `strays.py` finds all that it has started.

On the student's side: `answer_process.py` answers requests; `limits.py`, `fence.py`, `landlock.py` and `originals.py`
say what its code may use, touch, read and replace; `cells.py` runs cells; `student_error.py`, `wait_table.py` and
`sources.py` say what went wrong, and in which of the student's lines.

Between the two: `terms.py`, `channel.py` and `plain_data.py`.
"""

import minidl  # noqa: F401  (before numpy, whose instruction set it chooses; the files below import numpy)
from course.checking.answer import Answer, AnswerFailed
from course.checking.exercise import Chapter, DefectiveCheckError, Exercise, Part, judging
from course.checking.outcome import Outcome, PartResult, Status
from course.checking.wrong import Wrong

__all__ = [
    "Answer",
    "AnswerFailed",
    "Chapter",
    "DefectiveCheckError",
    "Exercise",
    "Outcome",
    "Part",
    "PartResult",
    "Status",
    "Wrong",
    "judging",
]
