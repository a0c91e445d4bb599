"""The API reference: every public name is on a page."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

import minidl
from course.book import api
from course.book.markup import marked_up

PACKAGES = api.public_packages()


def test_every_module_of_the_library_that_says_what_is_public_has_a_page():
    names = {package.__name__ for package in PACKAGES}
    listing = {
        found.name
        for found in pkgutil.walk_packages(minidl.__path__, "minidl.")
        if found.ispkg and getattr(importlib.import_module(found.name), "__all__", None)
    }
    assert listing <= names
    assert {"minidl", "minidl.kernels", "minidl.nn", "minidl.optim", "minidl.cluster", "minidl.parallel"} <= names


def test_every_public_name_has_an_entry_on_its_page_or_leads_to_the_page_that_has_it():
    for package in PACKAGES:
        lines = [line.partition("(")[0] for line in api.page(package).splitlines()]
        for name in api.public_names(package):
            value = getattr(package, name)
            if isinstance(value, ModuleType):
                wanted = f":py:mod:`{value.__name__}`"
            elif (first := api.home(name, value)) is package:
                wanted = f":: {name}"
            else:
                wanted = f":py:obj:`{first.__name__}.{name}`"
            assert any(line.endswith(wanted) for line in lines), f"{package.__name__}.{name}"


def test_known_names_in_a_docstring_become_links():
    assert api.target("Linear", ("minidl.nn",)) == "minidl.nn.Linear"
    assert api.target("backward", ("minidl", "minidl.Tensor")) == "minidl.Tensor.backward"
    assert api.target("no_such_name", ("minidl.nn",)) is None


def test_a_table_becomes_definitions_and_prose_has_no_markup_by_accident():
    table = "Parameters\n    lr    step size,\n          above 0\n    seed  of x"
    text = f"Weights w_ij * x_ of |x|.\n\n{table}\n\n>>> 1 + 1\n2"
    assert marked_up(text, {}.get) == [
        r"Weights w\_ij \* x\_ of \|x\|.", "", ".. rubric:: Parameters", "",
        "``lr``", "   step size,", "   above 0", "", "``seed``", "   of x", "", ">>> 1 + 1", "2", "",
    ]  # fmt: skip


def test_indented_lines_and_lists_in_a_docstring_keep_their_line_breaks():
    for text in ("for t = 0, 1:\n    w = w - lr g", "- one\n- two", "    indented\n      more"):
        lines = marked_up(f"First.\n\n{text}\n\nLast.", {}.get)
        assert (lines[0], lines[-2]) == ("First.", "Last.")
        last = text.splitlines()[-1].strip()
        assert ".. code-block:: none" in lines[: [line.strip() for line in lines].index(last)]


def test_settings_one_a_line_stay_one_a_line_and_a_sentence_with_a_colon_stays_a_sentence():
    assert marked_up("nodes: a number\nspeed: in flops", {}.get)[0] == "| nodes: a number"
    assert marked_up("It says this: that.\nAnd then this: that.", {}.get)[0] == "It says this: that."
