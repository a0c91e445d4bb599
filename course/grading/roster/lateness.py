"""What a late submission costs: the deadline, the rate, and when a submission was handed in.

A penalty has its own columns; it is never subtracted silently.

A day of lateness ends when the clock shows the time of the deadline again, in the deadline's time zone: after 25 hours
if the clocks are set back in between, after 23 if they are set forward. A week is seven such days, an hour an hour.
"""

from __future__ import annotations

import contextlib
import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache
from pathlib import Path

from babel.dates import get_month_names
from dateutil import tz

from course.grading.submissions.platforms import CANVAS
from course.plural import counted

UNITS = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(weeks=1)}

RATE = re.compile(r"(?P<amount>\d+(?:\.\d+)?)\s*(?P<percent>%|points?|)\s*/\s*(?P<unit>hour|day|week)")
SPAN = re.compile(r"(?P<count>\d+(?:\.\d+)?)\s*(?P<unit>min|minutes?|h|hours?|d|days?)")
SPANS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
SHARE = re.compile(r"(?P<amount>\d+(?:\.\d+)?)\s*(?P<percent>%|)")

DAY = re.compile(r"\d{4}-?\d{2}-?\d{2}")
"""A deadline that is a day; it ends with that day."""

NO_TIME = {"", "-", "\u2013", "never", "none", "n/a"}
"""Entries of a roster for nothing handed in."""

WRITTEN = ("%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S", "%Y/%m/%d %H:%M")
"""Times as spreadsheets write them, in addition to ISO 8601 and to Moodle's."""

LANGUAGES = ("en", "de", "fr", "es")

IN_WORDS = re.compile(
    r"(?:[^\W\d]+\.?,? )?(?P<day>\d{1,2})(?:\.|er|º)? (?:de )?(?P<month>[^\W\d]+)\.? (?:de )?(?P<year>\d{4}),?"
    r"(?: (?:um|à|a las|at))? (?P<hour>\d{1,2}) ?[:h] ?(?P<minute>\d\d)(?::(?P<second>\d\d))?(?: uhr)?"
    r"(?: ?(?P<half>[ap])\.? ?m\.?)?"
)
"""A time as Moodle 4.5 and 5.0 write it into a worksheet: strftimedaydatetime and strftimedatetime of its languages.

"Sunday, 25 October 2026, 6:30 PM", "Sonntag, 25. Oktober 2026, 18:30", "domingo, 25 de octubre de 2026, 18:30".
"""

ZONE = re.compile(r"(?P<time>.*\S) (?P<zone>[A-Z][A-Za-z_]+(?:/[A-Za-z_+\-0-9]+)+|UTC|GMT)")
"""A time and the name of its time zone: "2026-10-24T18:00 Europe/Berlin"."""


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

    def begun(self, assignment: str, late_by: timedelta) -> int:
        """The units of lateness that have begun; days and weeks by the clock of the deadline's time zone."""
        deadline, length = self.deadline(assignment), UNITS[self.unit]
        if deadline is None or self.unit == "hour":
            return math.ceil(late_by / length)
        at = deadline.astimezone(UTC) + late_by
        begun = max(0, int(late_by / length) - 1)
        while moment_of(deadline + begun * length) < at:
            begun += 1
        return begun

    def penalty(self, points: float, assignment: str, late_by: timedelta) -> float:
        """The points lost, of the `points` reached."""
        if late_by <= self.grace:
            return 0.0
        cost = self.amount * self.begun(assignment, late_by)
        cost = cost if self.at_most is None else min(cost, self.at_most)
        return min(points, points * cost / 100 if self.is_percent else cost)

    def in_words(self, assignment: str, late_by: timedelta) -> str:
        """How late a submission is, in the time zone of the deadline.

        >>> rule = policy(["2026-10-24T18:00 Europe/Berlin"], late="10%/day")
        >>> rule.in_words("04", timedelta(minutes=30))
        'handed in on 2026-10-24 at 18:30 CEST, 0 h 30 min after the deadline, 2026-10-24 at 18:00 CEST; 1 begun day'
        """
        deadline = self.deadline(assignment)
        if deadline is None or late_by <= timedelta():
            return ""
        at = (deadline.astimezone(UTC) + late_by).astimezone(deadline.tzinfo)
        minutes = math.ceil(late_by / timedelta(minutes=1))
        began = f"; {counted(self.begun(assignment, late_by), f'begun {self.unit}')}" if self.amount else ""
        grace = ", which the grace covers" if self.amount and late_by <= self.grace else ""
        has_changed = at.utcoffset() != deadline.utcoffset() and self.unit != "hour"
        changed = " (the clocks changed in between: a day ends at the same time of the clock)" if has_changed else ""
        return (
            f"handed in on {shown(at)}, {minutes // 60} h {minutes % 60} min after the deadline, {shown(deadline)}"
            f"{began}{grace}{changed}"
        )


def shown(moment: datetime) -> str:
    """A time to the minute, with the name of its time zone."""
    return f"{moment:%Y-%m-%d at %H:%M} {moment.tzname()}"


def moment_of(wall: datetime) -> datetime:
    """The moment at which the clock shows a time: the later one if it shows the time twice, or skips it."""
    return max(wall.replace(fold=fold).astimezone(UTC) for fold in (0, 1))


def policy(deadlines: Sequence[str], late: str = "", grace: str = "", at_most: str = "") -> Policy:
    """The policy from the options of the command. Raises PolicyError.

    >>> rule = policy(["2027-01-31T18:00+01:00"], late="10%/day", grace="15min", at_most="50%")
    >>> rule.penalty(20.0, "04", timedelta(minutes=15)), rule.penalty(20.0, "04", timedelta(hours=25))
    (0.0, 4.0)
    """
    if not deadlines:
        raise PolicyError("--late, --grace and --late-at-most need a --deadline.")
    by_name: dict[str, datetime] = {}
    for text in deadlines:
        name, is_named, time = text.rpartition("=")
        if name in by_name:
            raise PolicyError(f"There are two deadlines for {name or 'all assignments'}.")
        moment = deadline_in(time)
        if moment is None or (is_named and not name):
            raise PolicyError(
                f"--deadline {text} is no time: write 2027-01-31T18:00+01:00 or '2027-01-31T18:00 Europe/Berlin', or "
                "04=2027-01-31T18:00+01:00 for one assignment."
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


def deadline_in(text: str) -> datetime | None:
    """The time of a deadline, in its own time zone: a named one, a difference to UTC, or this computer's."""
    time, _ = with_zone(text)
    return moment_in(text.replace(time, f"{time}T23:59:59") if DAY.fullmatch(time) else text, tz.gettz())


def moment_in(text: str, zone: tzinfo | None = None) -> datetime | None:
    """The time in a text; without a time zone in `zone`, else in this computer's. None if it is no time."""
    text, named = with_zone(text)
    moment = time_in_words(text)
    for form in ("", *WRITTEN):
        with contextlib.suppress(ValueError):
            moment = moment or (datetime.strptime(text, form) if form else datetime.fromisoformat(text))
    if moment is None or moment.tzinfo:
        return None if named else moment
    zone = named or zone
    return moment.replace(tzinfo=zone) if zone else moment.astimezone()


def with_zone(text: str) -> tuple[str, tzinfo | None]:
    """A text without the name of a time zone at its end, and that zone; None if none is named, or an unknown one.

    >>> with_zone("2026-10-24  18:00 UTC")[0], with_zone("2026-10-24 18:00 Middle/Earth")
    ('2026-10-24 18:00', ('2026-10-24 18:00 Middle/Earth', None))
    """
    text = " ".join(text.split())
    named = ZONE.fullmatch(text)
    zone = tz.gettz(named["zone"]) if named else None
    return (named["time"], zone) if named and zone else (text, None)


def time_in_words(text: str) -> datetime | None:
    """A time with the name of a month in one of LANGUAGES; None if it is none.

    >>> time_in_words("jeudi 4 février 2027, 18:05"), time_in_words("Monday, 5 April 2027, 12:05 AM")
    (datetime.datetime(2027, 2, 4, 18, 5), datetime.datetime(2027, 4, 5, 0, 5))
    """
    found = IN_WORDS.fullmatch(unicodedata.normalize("NFKC", text).casefold())
    month = months().get(found["month"]) if found else None
    if not found or not month:
        return None
    hour = int(found["hour"])
    if found["half"]:
        hour = hour % 12 + 12 * (found["half"] == "p") if 1 <= hour <= 12 else 24
    try:
        return datetime(
            int(found["year"]), month, int(found["day"]), hour, int(found["minute"]), int(found["second"] or 0)
        )
    except ValueError:
        return None


@cache
def months() -> dict[str, int]:
    """The numbers of the months, by their names and short names in all LANGUAGES."""
    names = [get_month_names(width, locale=one).items() for one in LANGUAGES for width in ("wide", "abbreviated")]
    return {name.casefold().rstrip("."): number for each in names for number, name in each}


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
        late = self.at.astimezone(UTC) - deadline.astimezone(UTC) if self.at is not None else timedelta()
        return unit if self.is_late and late <= timedelta() else max(late, timedelta())


def handed_in(
    path: Path, assignment: str, in_roster: str = "", is_from_canvas: bool = False, zone: tzinfo | None = None
) -> HandedIn:
    """When a submission was handed in, from the best source available. In this order:

    1. The roster's column.
    2. `timestamp.txt` in the notebook's folder, only in nbgrader's layout STUDENT/ASSIGNMENT/: in any other layout the
       student may have written it.
    3. The mark LATE, or its absence, in the file's name, only if all submissions are from Canvas: otherwise the student
       chose the name. The file's time then says how late.
    4. The file's time, which unpacking an archive may have changed.

    A time of the first two sources that cannot be read gives a remark. One without a time zone is in `zone`, else in
    this computer's.
    """
    unread, path = [], as_handed_in(path)
    stamp = stamped(path.with_name("timestamp.txt")) if path.parent.name == assignment else ""
    for source, text in (("roster", in_roster), ("timestamp.txt", stamp)):
        if moment := moment_in(text, zone):
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
