"""What answers of chapter 16 may not use of the library: its report card."""

from __future__ import annotations

from course.judging import Builds

BUILDS = {"find_trick": Builds("minidl.parallel", instead="claim and rows")}
