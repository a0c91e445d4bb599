"""What answers of chapter 03 may not use of the library: all of it, since it convolves, plans and compiles."""

from __future__ import annotations

from course.judging import Builds

BUILDS = {
    "im2col": Builds("minidl", instead="numpy and product"),
    "winograd": Builds("minidl", instead="+, - and * of numbers"),
    "micro_batches": Builds("minidl", instead="a table that you fill"),
    "fuse": Builds("minidl", instead="lists and sets"),
}
