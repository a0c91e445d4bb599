"""The verdict on an answer: one of five, its points, and a short message."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Status(Enum):
    """The five outcomes of a check; the value is what a person reads."""

    NOT_ATTEMPTED = "not attempted"
    RAISED = "your code raised"
    WRONG = "wrong"
    STUCK = "deadlock or time-out"
    CORRECT = "correct"


MOST_OF_MESSAGE = 8000
"""Characters. What is wrong is told with the student's own values and names, which can be of any length."""


@dataclass(frozen=True)
class PartResult:
    """One thing that an answer must do: its title, the points it gives, whether it does, and what is wrong if not.

    What is too long of the message, and of the likely cause, is left out.
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
    """What a check found: an exercise's name, its parts in order, and the beginning of what the answer printed.

    Attributes
        is_hidden      whether other cases than the public ones were tried
        defect         what went wrong in the check itself, which says nothing of the answer; a person gives the points
                       that were not reached then
        is_cut_short   whether the student's process ended, or did not answer in time, so that the check could not go on
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
        """The points of the parts that are right."""
        return float(sum(part.earned for part in self.parts))

    @property
    def first_fault(self) -> PartResult | None:
        """The first part that is not right: what to mend first."""
        return next((part for part in self.parts if part.status is not Status.CORRECT), None)

    @property
    def status(self) -> Status:
        """Correct if all parts are, else what the first fault is."""
        fault = self.first_fault
        return fault.status if fault else Status.CORRECT
