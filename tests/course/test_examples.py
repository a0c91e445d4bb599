"""The examples in docstrings of the grading and building code print what they say."""

from __future__ import annotations

import doctest
import re
from importlib import import_module

import pytest

from course.setup.bootstrap import ROOT

MODULES = [
    f"course.{path.parent.name}.{path.stem}"
    for folder in ("building", "grading")
    for path in sorted((ROOT / "course" / folder).glob("*.py"))
    if re.search(r"^ +>>> ", path.read_text(encoding="utf-8"), re.MULTILINE)
]


def test_the_examples_print_what_the_docstrings_say():
    pytest.importorskip("rapidfuzz")
    for name in MODULES:
        found = doctest.testmod(import_module(name), optionflags=doctest.ELLIPSIS)
        assert found.attempted > 0, name
        assert found.failed == 0, name
