"""The verdict on an answer: one of five outcomes, its points, and a short message."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

RAISED_IN = "\nIt was raised in "
"""Between an exception's text and the student's line, in the message of a part."""


class Status(Enum):
    """The five outcomes of a check; the value is what a person reads."""

    NOT_ATTEMPTED = "not attempted"
    RAISED = "your code raised"
    WRONG = "wrong"
    STUCK = "deadlock or time-out"
    CORRECT = "correct"


MOST_OF_MESSAGE = 8000
"""Characters. A message quotes the student's own values and names, which can have any length."""


@dataclass(frozen=True)
class PartResult:
    """One part of a check: its title, its points, its status, and what is wrong with the answer.

    A message or likely cause of more than MOST_OF_MESSAGE characters is cut.
    """

    title: str
    points: float
    status: Status
    message: str = ""
    cause: str = ""

    def __post_init__(self) -> None:
        for name in ("message", "cause"):
            text = getattr(self, name)
            if len(text) > MOST_OF_MESSAGE:
                object.__setattr__(self, name, f"{text[: MOST_OF_MESSAGE - 2]} …")

    @property
    def earned(self) -> float:
        """All of its points, or none."""
        return self.points if self.status is Status.CORRECT else 0.0


@dataclass(frozen=True)
class Outcome:
    """The result of a check.

    Attributes
        exercise       its name
        possible       points of all parts
        parts          the parts that were reached, in order
        printed        the beginning of what the answer printed
        is_hidden      whether other cases than the public ones were tried
        defect         an error of the check itself; then a person gives the points that were not reached
        is_cut_short   whether the check ended early, because the student's process ended or did not reply in time
    """

    exercise: str
    possible: float
    parts: tuple[PartResult, ...]
    printed: str = ""
    is_hidden: bool = False
    defect: str = ""
    is_cut_short: bool = False

    @property
    def points(self) -> float:
        """The points of the correct parts."""
        return float(sum(part.earned for part in self.parts))

    @property
    def first_fault(self) -> PartResult | None:
        """The first part that is not correct: what to repair first."""
        return next((part for part in self.parts if part.status is not Status.CORRECT), None)

    @property
    def status(self) -> Status:
        """CORRECT if all parts are, else the status of the first fault."""
        fault = self.first_fault
        return fault.status if fault else Status.CORRECT
