"""How an answer is checked: the student's code runs in a process of its own, and only data comes back to be judged.

`exercise.py` is what the checks in `course/checks/` are written with; `answer.py` is the student's function as a check
sees it; `session.py` keeps the process in which it runs, `answer_process.py` is what happens there, `plain_data.py`
what may come back. `outcome.py` is the verdict, `display.py` shows it, `expect.py` compares, `ranks.py` runs an answer
on simulated nodes.
"""

from course.checking.answer import Answer, AnswerFailed
from course.checking.exercise import Chapter, Exercise, Part, judging
from course.checking.outcome import Outcome, PartResult, Status
from course.checking.wrong import Wrong

__all__ = [
    "Answer",
    "AnswerFailed",
    "Chapter",
    "Exercise",
    "Outcome",
    "Part",
    "PartResult",
    "Status",
    "Wrong",
    "judging",
]
