"""How learning platforms name what a student handed in.

Canvas of 2025 (lib/content_zipper.rb), Moodle 5.0 (mod/assign/classes/downloader.php), and Blackboard, which adds a
file on each attempt, as in nbgrader 0.9 (plugins/zipcollect.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePath

CANVAS = re.compile(
    r"(?!.*_20\d\d_\d\d_\d\d_)"  # a date, and not two numbers
    r"(?P<whose>(?:(?!(?:late_)?anon_)(?P<name>\w+?)_)?(?P<late>late_)?(?(name)(?P<id>[1-9]\d*)|anon_[^\W_]+))"
    r"_(?:(?P<file>[1-9]\d*)_.|(?:text|link)\.html\Z)",
    re.IGNORECASE,
)
"""A file from Canvas: doejane_LATE_12345_67890_NAME.ipynb, where 12345 is the student and 67890 the file.

If the grading is anonymous: anon_x7Rk2_67890_NAME.ipynb, which names nobody. A text that was typed there is
doejane_12345_text.html.
"""

MOODLE = re.compile(r"(?P<whose>(?P<name>.+?)_(?P<id>\d+))_assignsubmission_[a-z]+(?:_.*)?")
"""A folder or file from Moodle: Jane Doe_1234567_assignsubmission_file, with the participant number.

If the grading is anonymous, the name is "Participant"; for a group, name and number are the group's.
"""

BLACKBOARD = re.compile(r"(?P<whose>.+_(?P<login>[^_]+)_attempt_\d{4}(?:-\d\d){5})")
"""A file from Blackboard: NAME_jdoe_attempt_2027-01-31-18-00-00_mine.ipynb."""


def whose(path: PurePath) -> str:
    """The beginning that all names of what one student handed in have on a platform; "" for other names.

    >>> whose(PurePath("doejane_12345_67890_mine.ipynb")), whose(PurePath("homework_2026_11_29_jane.ipynb"))
    ('doejane_12345', '')
    """
    found = (form.match(part) for part in path.parts for form in (MOODLE, BLACKBOARD, CANVAS))
    return next((one["whose"] for one in found if one), "")


def are_from_canvas(names: Iterable[str]) -> bool:
    """Whether all files are named by Canvas: each student has one number, and each file has its own.

    >>> are_from_canvas(["ada_11_701_x.ipynb", "bob_12_702_x.ipynb"]), are_from_canvas(["hw_4_1_ada.ipynb", "a.ipynb"])
    (True, False)
    >>> are_from_canvas(["ada_4_1_x.ipynb", "bob_4_2_x.ipynb"])  # chapter 4
    False
    """
    found = [CANVAS.match(name) for name in names]
    known = [one for one in found if one]
    files, students = {one["file"] for one in known}, {(one["name"], one["id"]) for one in known}
    return len(known) == len(found) == len(files) and len(students) == len({number for _, number in students})
