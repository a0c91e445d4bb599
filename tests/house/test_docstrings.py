"""The examples in minidl's docstrings are run, and print what stands there."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest

from minidl import random

PACKAGE = Path(__file__).resolve().parent.parent.parent / "minidl"
EXAMPLE = re.compile(r"^ *>>> (?!.*doctest: \+SKIP)", re.M)
WITH_EXAMPLES = sorted(path for path in PACKAGE.rglob("*.py") if EXAMPLE.search(path.read_text(encoding="utf-8")))


def module_name(path: Path) -> str:
    """minidl/nn/linear.py -> minidl.nn.linear, and minidl/nn/__init__.py -> minidl.nn."""
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", [module_name(path) for path in WITH_EXAMPLES])
def test_the_examples_print_what_the_docstrings_say(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINIDL_DATA", str(tmp_path))
    before = random.generator()
    try:
        failed, tried = doctest.testmod(importlib.import_module(name))
    finally:
        random.use(before)
    assert failed == 0, "the differences are in the output above"
    assert tried > 0, "there is a >>> that doctest does not find"
