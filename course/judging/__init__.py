"""How an answer is checked: the student's code runs in a process of its own, and only data comes back to be judged.

What checks are written with: `exercise.py` (which says how), `builds.py`, `expect.py`, `wrong.py`; `answer.py` is the
student's function as a check sees it, `ranks.py` runs it on simulated nodes, `carried.py` says what messages can have
told these. The verdict: `outcome.py`; `display.py` shows it, `progress_record.py` keeps it.

On the check's side: `session.py` makes requests of the student's process, each within a `deadline.py`;
`student_process.py` starts, watches and ends it, and `captured_output.py` keeps what it prints, `stack_file.py` in
which line it is. `shipping.py` sends a function there from a notebook's kernel, `scratch.py` makes the folder it works
in, `helper_files.py` copies there what lies beside a notebook, `strays.py` finds all that it has started, `caches.py`
fills the caches that libraries read there, `hidden.py` says what it may not read, `check_names.py` what students see of
a chapter's checks; `reply.py` reads what it sends, `arguments.py` what it changed in what it was given, `ending.py`
says how it ended. An answer on several ranks is played in a simulation: `served_rank.py` is one of its ranks,
`rank_calls.py` makes its calls, `student_frames.py` below the student's lines; `forked_ranks.py` holds the ranks'
processes.

On the student's side: `supervisor.py` is the parent, `answer_process.py` answers requests; `limits.py`, `fence.py`,
`landlock.py`, `system_calls.py` say what its code may use and touch, `streams.py` keeps its output open, `importing.py`
says what it may import, `originals.py` puts back what it replaced, `refusals.py` refuses the library's version of what
it is to build; `library_code.py` knows the library's own calls. `cells.py` runs cells, in which `stand_in.py` makes
calls of checks do nothing; `student_error.py`, `wait_table.py` and `sources.py` say what went wrong, and in which of
the student's lines. Each rank of an answer is a process of its own (`rank_process.py`) with a communicator that asks
the check (`rank_communicator.py`), kept from the others by `rank_walls.py`; numba reads its `read_only_cache.py`,
and finds a place for what it compiles in cells by `cell_cache.py`.

Between the two: `terms.py`, `channel.py`, `plain_data.py` with its `json_bounds.py`, and `asked.py`, a function that
the check computes.

The student's process loads nothing of the check's side, and nothing of `course/checks/`: what runs there beside an
answer is in `course/probes/`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import minidl  # noqa: F401  (before numpy, whose instruction set it chooses; the files below import numpy)

if TYPE_CHECKING:
    from course.judging.answer import Answer, AnswerFailed
    from course.judging.exercise import Chapter, DefectiveCheckError, Exercise, Part, judging
    from course.judging.outcome import Outcome, PartResult, Status
    from course.judging.wrong import Wrong
    from course.sandbox.refused.builds import Builds

__all__ = [
    "Answer",
    "AnswerFailed",
    "Builds",
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

FILES = {
    "judging.answer": ("Answer", "AnswerFailed"),
    "sandbox.refused.builds": ("Builds",),
    "judging.exercise": ("Chapter", "DefectiveCheckError", "Exercise", "Part", "judging"),
    "judging.outcome": ("Outcome", "PartResult", "Status"),
    "judging.wrong": ("Wrong",),
}
"""Where these names are: imported when asked for, since the student's process has no use for the check's side."""


def __getattr__(name: str) -> Any:
    for file, names in FILES.items():
        if name in names:
            return getattr(import_module(f"course.{file}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
