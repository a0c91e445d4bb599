"""What lateness costs follows from a deadline, a rate and the best source of when a submission came."""

from __future__ import annotations

import os
from datetime import datetime, timedelta

import pytest

from course.grading.roster.lateness import PolicyError, handed_in, moment_in, policy

DEADLINE = "2027-01-31T18:00+01:00"
HOUR = timedelta(hours=1)
ASSIGNMENT = "04_messages_and_collectives"


LOST = {
    ("10%/day", "", ""): {0: 0, 1: 1, 24: 1, 25: 2, 24 * 30: 10},  # never more than there are
    ("10%/day", "", "50%"): {24 * 30: 5},
    ("10%/day", "2h", ""): {2: 0, 3: 1},
    ("1%/hour", "", ""): {5: 0.5},
    ("2points/day", "", ""): {25: 4},
    ("2/day", "", "3"): {25: 3},
    ("0.5 points/hour", "30min", ""): {3: 1.5},
    ("25%/week", "1day", ""): {24: 0},
    ("", "", ""): {100: 0},  # a deadline alone: lateness is shown and costs nothing
}


def test_each_begun_unit_costs_its_share():
    for rule, lost in LOST.items():
        penalties = {hours: policy([DEADLINE], *rule).penalty(10.0, ASSIGNMENT, hours * HOUR) for hours in lost}
        assert penalties == pytest.approx(lost), rule


def test_an_assignment_may_have_a_deadline_of_its_own():
    rule = policy([DEADLINE, "04=2027-02-07T18:00+01:00"])
    assert rule.deadline("01_backpropagation") == datetime.fromisoformat(DEADLINE)
    assert rule.deadline("04_messages_and_collectives") == datetime.fromisoformat("2027-02-07T18:00+01:00")
    assert policy([f"04={DEADLINE}"]).deadline("01_backpropagation") is None


def test_a_deadline_that_is_a_day_ends_with_the_day():
    for day in ("2027-01-31", "04=2027-01-31", "20270131"):
        deadline = policy([day]).deadline("04_messages_and_collectives")
        assert deadline == datetime(2027, 1, 31, 23, 59, 59).astimezone()


SENSELESS = [
    ((["tomorrow"],), "is no time: write"),
    ((["2027-02-30T18:00"],), "is no time: write"),
    ((["2027-01-31T18:00 Europe/Atlantis"],), "is no time: write"),
    ((["2027-01-31T18:00+01:00 Europe/Berlin"],), "is no time: write"),
    ((["=2027-01-31"],), "is no time: write"),
    ((["2027-01-31", "2027-02-01"],), "two deadlines for all assignments"),
    (([], "10%/day"), "need a --deadline"),
    (([DEADLINE], "ten a day"), "is no rate: write 10%/day"),
    (([DEADLINE], "10%/fortnight"), "is no rate"),
    (([DEADLINE], "10%/day", "a bit"), "is no length of time"),
    (([DEADLINE], "10%/day", "", "5"), "has to be in percent"),
    (([DEADLINE], "2/day", "", "50%"), "has to be in points"),
]


def test_what_makes_no_sense_is_refused_in_a_sentence():
    for options, sentence in SENSELESS:
        with pytest.raises(PolicyError, match=sentence):
            policy(*options)


@pytest.mark.parametrize(
    ("name", "stamp", "in_roster", "source", "hours"),
    [
        ("a.ipynb", "", "", "file time", 5),
        ("doejane_1_2_a.ipynb", "", "", "Canvas' file name", 0),  # Canvas says: in time, whatever unzip did to the file
        ("doejane_LATE_1_2_a.ipynb", "", "", "Canvas' file name", 5),
        ("a.ipynb", "2027-01-31 19:00:00 UTC\n", "", "timestamp.txt", 2),
        ("a.ipynb", "2027-01-31 19:30:00.250000 UTC", "", "timestamp.txt", 2.5),
        ("a.ipynb", "last week", "", "file time", 5),
        ("a.ipynb", "2027-01-31 19:00:00 UTC", "2027-01-31T20:00+01:00", "roster", 2),
        ("a.ipynb", "", "31.01.2027 20:00 Europe/Berlin", "roster", 2),
        ("a.ipynb", "", "-", "file time", 5),
    ],
)
def test_the_best_source_says_when_a_submission_came(tmp_path, name, stamp, in_roster, source, hours):
    path, deadline = tmp_path / ASSIGNMENT / name, datetime.fromisoformat(DEADLINE)
    path.parent.mkdir()
    path.write_text("{}", encoding="utf-8")
    changed = (deadline + 5 * HOUR).timestamp()
    os.utime(path, (changed, changed))
    if stamp:
        path.with_name("timestamp.txt").write_text(stamp, encoding="utf-8")
    found = handed_in(path, ASSIGNMENT, in_roster, is_from_canvas=True)
    assert found.source == source
    late = found.late_by(deadline, 24 * HOUR)
    assert late.total_seconds() == pytest.approx(hours * 3600, abs=1)


def test_a_late_mark_without_a_later_time_counts_as_one_begun_unit(tmp_path):
    path, deadline = tmp_path / "doejane_LATE_1_2_a.ipynb", datetime.fromisoformat(DEADLINE)
    path.write_text("{}", encoding="utf-8")
    os.utime(path, (deadline.timestamp() - 60, deadline.timestamp() - 60))  # unpacked with an older time
    assert handed_in(path, ASSIGNMENT, is_from_canvas=True).late_by(deadline, 24 * HOUR) == 24 * HOUR


def test_moodles_own_times_are_read(tmp_path):
    written = handed_in(tmp_path / "none.ipynb", ASSIGNMENT, "Sunday, 31 January 2027, 5:00 PM")
    assert (written.source, written.at) == ("roster", datetime(2027, 1, 31, 17).astimezone())


@pytest.mark.parametrize("unread", ["01/31/2027 6:00 PM", "2027-01-31 18:00:00 Neverland", "last week"])
def test_a_time_that_cannot_be_read_is_remarked_on_and_the_next_source_counts(tmp_path, unread):
    path = tmp_path / ASSIGNMENT / "a.ipynb"
    path.parent.mkdir()
    path.write_text("{}", encoding="utf-8")
    found = handed_in(path, ASSIGNMENT, unread)
    assert (found.source, found.remark.split(",")[0]) == ("file time", f"roster says {unread!r}")
    path.with_name("timestamp.txt").write_text(unread, encoding="utf-8")
    assert handed_in(path, ASSIGNMENT).remark.startswith(f"timestamp.txt says {unread!r}, which cannot be read")
    assert handed_in(path, ASSIGNMENT, "2027-01-31 18:00").remark == ""
    assert handed_in(path.parent, ASSIGNMENT, "-").remark == ""


def test_a_timestamp_counts_only_in_nbgraders_folders_and_not_as_a_link(tmp_path):
    stamp = "2020-01-01 00:00:00 UTC"
    (tmp_path / "secret").write_text(stamp, encoding="utf-8")
    for folder in ("student", ASSIGNMENT):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.ipynb").write_text("{}", encoding="utf-8")
    (tmp_path / "student" / "timestamp.txt").write_text(stamp, encoding="utf-8")  # the student's own
    (tmp_path / ASSIGNMENT / "timestamp.txt").symlink_to(tmp_path / "secret")
    for folder in ("student", ASSIGNMENT):
        assert handed_in(tmp_path / folder / "a.ipynb", ASSIGNMENT).source == "file time"


MOODLE = {
    "Sunday, 25 October 2026, 6:30 PM": (2026, 10, 25, 18, 30),
    "Monday, 5 April 2027, 12:05 AM": (2027, 4, 5, 0, 5),
    "25 October 2026, 12:30 PM": (2026, 10, 25, 12, 30),
    "Sonntag, 25. Oktober 2026, 18:30": (2026, 10, 25, 18, 30),
    "Donnerstag, 4. März 2027, 08:07": (2027, 3, 4, 8, 7),
    "4. Marz 2027, 08:07": None,
    "Donnerstag, 4. Ma\u0308rz 2027, 08:07": (2027, 3, 4, 8, 7),
    "dimanche 25 octobre 2026, 18:30": (2026, 10, 25, 18, 30),
    "lundi 1 février 2027, 07:03": (2027, 2, 1, 7, 3),
    "dimanche 1er août 2027 à 23h59": (2027, 8, 1, 23, 59),
    "domingo, 25 de octubre de 2026, 18:30": (2026, 10, 25, 18, 30),
    "miércoles, 9 de diciembre de 2026, 00:01": (2026, 12, 9, 0, 1),
    "Sunday, 31 February 2027, 6:30 PM": None,
    "Sunday, 25 October 2026, 13:30 PM": None,
    "25 Brumaire 2026, 18:30": None,
}


def test_the_times_of_moodles_worksheets_are_read_in_english_german_french_and_spanish():
    """As strftimedaydatetime and strftimedatetime of Moodle 4.5 and 5.0 in the language packs en, de, fr and es."""
    for text, expected in MOODLE.items():
        assert moment_in(text) == (datetime(*expected).astimezone() if expected else None), text


BERLIN = ["2026-10-24T18:00 Europe/Berlin"]
SPRING = ["2027-03-27T18:00 Europe/Berlin"]


@pytest.mark.parametrize(
    ("deadlines", "rate", "minutes", "begun"),
    [
        (BERLIN, "10%/day", 24 * 60 + 59, 1),  # 17:59 CET: the day has 25 hours
        (BERLIN, "10%/day", 25 * 60, 1),
        (BERLIN, "10%/day", 25 * 60 + 1, 2),
        (BERLIN, "10%/day", 49 * 60 + 1, 3),
        (SPRING, "10%/day", 23 * 60, 1),
        (SPRING, "10%/day", 23 * 60 + 1, 2),  # the day has 23 hours
        (SPRING, "10%/week", 7 * 24 * 60 - 59, 2),
        (BERLIN, "1%/hour", 24 * 60 + 1, 25),
        (["2026-10-24T18:00+02:00"], "10%/day", 24 * 60 + 59, 2),  # a difference to UTC never changes
        (["2026-10-24T02:30 Europe/Berlin"], "10%/day", 25 * 60, 1),  # the clock shows 02:30 twice on the next day
        (["2026-10-24T02:30 Europe/Berlin"], "10%/day", 25 * 60 + 1, 2),
        (["2027-03-27T02:30 Europe/Berlin"], "10%/day", 24 * 60, 1),  # and not at all on this one
        (["2027-03-27T02:30 Europe/Berlin"], "10%/day", 24 * 60 + 1, 2),
    ],
)
def test_a_day_of_lateness_ends_at_the_deadlines_time_of_the_clock(deadlines, rate, minutes, begun):
    rule = policy(deadlines, rate)
    late_by = timedelta(minutes=minutes)
    assert rule.begun(ASSIGNMENT, late_by) == begun
    assert rule.penalty(70.0, ASSIGNMENT, late_by) == pytest.approx(0.7 * begun * (1 if "hour" in rate else 10))


def test_a_later_submission_never_costs_less_across_a_change_of_clocks():
    for deadlines in (BERLIN, SPRING, ["2026-10-24T02:30 Europe/Berlin"], ["2027-03-27T02:30 Europe/Berlin"]):
        rule = policy(deadlines, "10%/day")
        begun = [rule.begun("", timedelta(minutes=minutes)) for minutes in range(1, 3 * 1440, 7)]
        assert begun == sorted(begun)
        assert set(begun) >= {1, 2, 3}


def test_lateness_is_said_in_the_deadlines_time_zone():
    words = policy(BERLIN, "10%/day").in_words(ASSIGNMENT, timedelta(hours=25, minutes=1))
    assert words.startswith(
        "handed in on 2026-10-25 at 18:01 CET, 25 h 1 min after the deadline, 2026-10-24 at 18:00 CEST"
    )
    assert "2 begun days (the clocks changed in between" in words
    words = policy(["2026-10-20T18:00 Europe/Berlin"], "1%/hour", "2h").in_words(ASSIGNMENT, timedelta(minutes=75))
    assert words.endswith("2026-10-20 at 18:00 CEST; 2 begun hours, which the grace covers")
    assert policy(BERLIN).in_words(ASSIGNMENT, timedelta()) == ""


def test_a_time_without_a_zone_is_in_the_zone_of_the_deadline(tmp_path):
    deadline = policy(BERLIN).deadline("")
    found = handed_in(tmp_path / "none.ipynb", ASSIGNMENT, "Sonntag, 25. Oktober 2026, 18:30", zone=deadline.tzinfo)
    assert found.at == datetime.fromisoformat("2026-10-25T18:30+01:00")
    assert found.late_by(deadline, 24 * HOUR) == timedelta(hours=25, minutes=30)
