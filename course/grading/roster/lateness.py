"""What a late submission costs: the deadline, the rate, and when a submission was handed in.

A penalty has its own columns; it is never subtracted silently.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from course.grading.roster.matching import CANVAS

UNITS = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(weeks=1)}

RATE = re.compile(r"(?P<amount>\d+(?:\.\d+)?)\s*(?P<percent>%|points?|)\s*/\s*(?P<unit>hour|day|week)")
SPAN = re.compile(r"(?P<count>\d+(?:\.\d+)?)\s*(?P<unit>min|minutes?|h|hours?|d|days?)")
SPANS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
SHARE = re.compile(r"(?P<amount>\d+(?:\.\d+)?)\s*(?P<percent>%|)")

DAY = re.compile(r"\d{4}-?\d{2}-?\d{2}")
"""A deadline that is a day; it ends with that day."""

NO_TIME = {"", "-", "\u2013", "never", "none", "n/a"}
"""Entries of a roster for nothing handed in."""

WRITTEN = (
    "%Y-%m-%d %H:%M:%S %Z", "%Y-%m-%d %H:%M:%S.%f %Z", "%A, %d %B %Y, %I:%M %p", "%A, %d %B %Y, %H:%M",
    "%d %B %Y, %I:%M %p", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S", "%Y/%m/%d %H:%M",
)  # fmt: skip
"""Times as nbgrader, Moodle and spreadsheets write them, in addition to ISO 8601."""


class PolicyError(ValueError):
    """A deadline, a rate or a time that makes no sense; the text is a sentence."""


@dataclass(frozen=True)
class Policy:
    """When submissions are due, and what a late one costs.

    deadlines      deadline by the beginning of an assignment's name; "" is for all others
    amount         what each begun `unit` costs: percent of the points reached if `is_percent`, else points
    unit           "hour", "day" or "week"
    grace          lateness without a penalty
    at_most        the most that lateness costs, in percent or points as `amount`; None: all points
    """

    deadlines: dict[str, datetime]
    amount: float = 0.0
    unit: str = "day"
    is_percent: bool = True
    grace: timedelta = field(default=timedelta())
    at_most: float | None = None

    def deadline(self, assignment: str) -> datetime | None:
        """When an assignment is due; None without a deadline."""
        fitting = [name for name in self.deadlines if assignment.startswith(name)]
        return self.deadlines[max(fitting, key=len)] if fitting else None

    def penalty(self, points: float, late_by: timedelta) -> float:
        """The points lost, of the `points` reached."""
        if late_by <= self.grace:
            return 0.0
        cost = self.amount * math.ceil(late_by / UNITS[self.unit])
        cost = cost if self.at_most is None else min(cost, self.at_most)
        return min(points, points * cost / 100 if self.is_percent else cost)


def policy(deadlines: Sequence[str], late: str = "", grace: str = "", at_most: str = "") -> Policy:
    """The policy from the options of the command. Raises PolicyError.

    >>> rule = policy(["2027-01-31T18:00+01:00"], late="10%/day", grace="15min", at_most="50%")
    >>> rule.penalty(20.0, timedelta(minutes=15)), rule.penalty(20.0, timedelta(hours=25))
    (0.0, 4.0)
    """
    if not deadlines:
        raise PolicyError("--late, --grace and --late-at-most need a --deadline.")
    by_name: dict[str, datetime] = {}
    for text in deadlines:
        name, is_named, time = text.rpartition("=")
        if name in by_name:
            raise PolicyError(f"There are two deadlines for {name or 'all assignments'}.")
        moment = moment_in(f"{time.strip()}T23:59:59" if DAY.fullmatch(time.strip()) else time)
        if moment is None or (is_named and not name):
            raise PolicyError(
                f"--deadline {text} is no time: write 2027-01-31T18:00+01:00, or 04=2027-01-31T18:00+01:00 for one "
                "assignment."
            )
        by_name[name] = moment
    amount, unit, is_percent = 0.0, "day", True
    if late:
        rate = RATE.fullmatch(late.strip())
        if not rate:
            raise PolicyError(f"--late {late} is no rate: write 10%/day, 1%/hour or 2points/day.")
        amount, unit, is_percent = float(rate["amount"]), rate["unit"], rate["percent"] == "%"
    return Policy(by_name, amount, unit, is_percent, span(grace), most(at_most, is_percent))


def span(text: str) -> timedelta:
    """A duration such as 15min, 2h or 1day; zero for an empty text."""
    if not text:
        return timedelta()
    found = SPAN.fullmatch(text.strip())
    if not found:
        raise PolicyError(f"--grace {text} is no length of time: write 15min, 2h or 1day.")
    return float(found["count"]) * SPANS[found["unit"][0]]


def most(text: str, is_percent: bool) -> float | None:
    """The most that lateness costs, in the unit of the rate; None for an empty text."""
    if not text:
        return None
    found = SHARE.fullmatch(text.strip())
    if not found or (found["percent"] == "%") != is_percent:
        unit = "percent, as --late has it: write 50%" if is_percent else "points, as --late has it: write 5"
        raise PolicyError(f"--late-at-most {text} has to be in {unit}.")
    return float(found["amount"])


def moment_in(text: str) -> datetime | None:
    """The time in a text; without a time zone, in this computer's. None if it is no time."""
    text = " ".join(text.split())
    try:
        return datetime.fromisoformat(text).astimezone()
    except ValueError:
        pass
    for form in WRITTEN:
        try:
            moment = datetime.strptime(text, form)
        except ValueError:
            continue
        if text.endswith((" UTC", " GMT")):
            return datetime.fromisoformat(f"{moment.isoformat()}+00:00")
        return None if "%Z" in form else moment.astimezone()
    return None


@dataclass(frozen=True)
class HandedIn:
    """When a submission was handed in.

    at: the time; None if it is unknown.
    source: where the time is from.
    is_late: set by a source that knows only whether it was late.
    remark: the entry of a better source, if it cannot be read as a time.
    """

    at: datetime | None
    source: str
    is_late: bool | None = None
    remark: str = ""

    def late_by(self, deadline: datetime, unit: timedelta) -> timedelta:
        """The time after the deadline, 0 if in time; one `unit` if it is only known that it was late."""
        if self.is_late is False:
            return timedelta()
        late = self.at - deadline if self.at is not None else timedelta()
        return unit if self.is_late and late <= timedelta() else max(late, timedelta())


def handed_in(path: Path, assignment: str, in_roster: str = "", is_from_canvas: bool = False) -> HandedIn:
    """When a submission was handed in, from the best source available. In this order:

    1. The roster's column.
    2. `timestamp.txt` in the notebook's folder, only in nbgrader's layout STUDENT/ASSIGNMENT/: in any other layout the
       student may have written it.
    3. The mark LATE, or its absence, in the file's name, only if all submissions are from Canvas: otherwise the student
       chose the name. The file's time then says how late.
    4. The file's time, which unpacking an archive may have changed.

    A time of the first two sources that cannot be read gives a remark.
    """
    unread, path = [], as_handed_in(path)
    stamp = stamped(path.with_name("timestamp.txt")) if path.parent.name == assignment else ""
    for source, text in (("roster", in_roster), ("timestamp.txt", stamp)):
        if moment := moment_in(text):
            return HandedIn(moment, source, remark="; ".join(unread))
        if (shown := " ".join(text.split())[:60]).lower() not in NO_TIME:
            unread.append(f"{source} says {shown!r}, which cannot be read as a time: write 2027-01-31 18:00")
    remark = "; ".join(unread)
    try:
        changed = datetime.fromtimestamp(path.lstat().st_mtime).astimezone()
    except OSError:
        changed = None
    marked = CANVAS.match(path.name)
    if is_from_canvas and marked:
        return HandedIn(changed, "Canvas' file name", bool(marked["late"]), remark)
    return HandedIn(changed, "file time", remark=remark)


def as_handed_in(path: Path) -> Path:
    """The file that a student handed in: for a file in an archive, the archive."""
    return next((parent for parent in path.parents if parent.is_file()), path)


def stamped(path: Path) -> str:
    """The beginning of nbgrader's file; "" if there is none, or if it is a link."""
    if path.is_symlink() or not path.is_file():
        return ""
    try:
        with path.open(encoding="utf-8-sig") as stamp:
            return stamp.read(200)
    except (OSError, UnicodeDecodeError):
        return ""
