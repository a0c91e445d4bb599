"""The API reference: every public name is on a page."""

from __future__ import annotations

import importlib
import inspect
import itertools
import pkgutil
import pydoc
import re
from functools import cached_property
from types import ModuleType

import pytest

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
        lines = api.page(package).splitlines()
        for name in api.public_names(package):
            value = getattr(package, name)
            if isinstance(value, ModuleType):
                wanted = f":py:obj:`{value.__name__}`"
            elif (first := api.home(name, value)) is package:
                wanted = f":: {name}"
            else:
                wanted = f":py:obj:`{first.__name__}.{name}`"
            assert any(line.endswith(wanted) for line in lines), f"{package.__name__}.{name}"


def test_a_value_has_its_text_and_the_keys_of_a_dict():
    assert api.entry(minidl.parallel.pipeline, "KINDS")[1][1:-1] == [
        "   :value: {'F': ..., 'B': ..., 'I': ..., 'W': ..., 'U': ...}", "",
        "   The kinds of actions. B computes what I and W compute.",
    ]  # fmt: skip
    with pytest.raises(LookupError, match=r"minidl\.optim\.sgd\.SGD has no description: write a string"):
        api.remark(minidl.optim, "SGD")


def test_private_members_and_hints_on_missing_names_are_left_out():
    communicator = {name for name in api.documented() if name.startswith("minidl.cluster.Communicator.")}
    assert "minidl.cluster.Communicator.send" in communicator
    assert not communicator & {f"minidl.cluster.Communicator.{name}" for name in ("Allreduce", "_received")}
    assert api.skip(None, "class", "_asdict", minidl.parallel.memory.Part._asdict, False, None)


def test_no_box_of_the_reference_holds_prose():
    a_sign_of_code = re.compile(r" [-+*/]?= | <= |:$| [+*/] |\d  |  # |\": ", re.M)
    for name in sorted(api.documented()):
        value = pydoc.locate(name)
        if not isinstance(value, (ModuleType, type, property, cached_property)) and not inspect.isroutine(value):
            continue
        text = "\n".join(api.described(value.__doc__, *itertools.accumulate(name.split("."), "{}.{}".format)))
        assert "   .. code-block" not in text, f"a box within a definition: {name}"
        for box in re.findall(r"^\.\. code-block:: .*\n\n((?: .*\n|\n)+)", f"{text}\n", re.M):
            assert a_sign_of_code.search(box), f"{name}:\n{box}"
            assert not re.search(r"`|[a-z]\.( [A-Z]|$)", box, re.M), f"{name}:\n{box}"


def test_known_names_in_a_docstring_become_links():
    assert api.target("Linear", ("minidl.nn",)) == "minidl.nn.Linear"
    assert api.target("backward", ("minidl", "minidl.Tensor")) == "minidl.Tensor.backward"
    assert api.target("no_such_name", ("minidl.nn",)) is None


def test_a_table_becomes_definitions_and_prose_has_no_markup_by_accident():
    table = "Parameters\n    lr    step size,\n          above 0\n    seed  of x"
    text = f"Weights w_ij * x_ of |x|,\n(1) each.\n\n{table}\n\n>>> 1 + 1\n2"
    assert marked_up(text, {}.get) == [
        r"Weights w\_ij \* x\_ of \|x\|, (1) each.", "", ".. rubric:: Parameters", "",
        "``lr``", "   step size, above 0", "", "``seed``", "   of x", "", ">>> 1 + 1", "2", "",
    ]  # fmt: skip
    assert marked_up("1 + 1 = 2 holds.\n- x stays.", {}.get)[0] == "1 + 1 = 2 holds."
    assert marked_up("A. Turing, 1936.", {}.get) == [r"\A. Turing, 1936.", ""]


def test_definitions_may_hold_definitions_fill_their_column_and_end_in_prose():
    text = """
        op        how ranks add up
                  "sum"   as it is,
                          in float32
                  "mean"  divided by p
                  or a function of yours
        async_op  True: at once
        long_name in the same column
        longer_than_the_column
                  next line
        a last sentence.
    """
    assert [line.strip() for line in marked_up(text, {}.get) if line] == [
        "``op``", "how ranks add up", '``"sum"``', "as it is, in float32", '``"mean"``', "divided by p",
        "or a function of yours", "``async_op``", "True: at once", "``long_name``", "in the same column",
        "``longer_than_the_column``", "next line", "a last sentence.",
    ]  # fmt: skip


@pytest.mark.parametrize("code", ["w = w - lr g", "a    = b\nlong = c", "one  two  3\na    7    11", "use(x)  # now"])
def test_indented_code_and_tables_of_several_columns_keep_their_columns(code):
    indented = [f"   {line}" for line in code.splitlines()]
    for before in ("For t = 0, 1:\n", "First.\n\n"):
        text = before + "\n".join(f"    {line}" for line in code.splitlines()) + "\n\nLast."
        kind = "text" if "   " in code else "none"  # columns are not broken on a telephone
        assert marked_up(text, {}.get)[2:] == [f".. code-block:: {kind}", "", *indented, "", "Last.", ""]


def test_lists_stay_lists_also_below_a_sentence_and_indented():
    text = "Sum:\n- one\n  and more\n- two\n\nThen\n\n    12. three\n    13. four"
    lines = [line for line in marked_up(text, {}.get) if line]
    assert lines == ["Sum:", "- one and more", "- two", "Then", "12. three", "13. four"]


def test_settings_one_a_line_stay_one_a_line_and_a_sentence_with_a_colon_stays_a_sentence():
    settings = marked_up("nodes: a number\n    of ranks\nspeed: in flops", {}.get)
    assert settings == ["| nodes: a number of ranks", "| speed: in flops", ""]
    assert marked_up("It says this: that\nand then: that.", {}.get) == ["It says this: that and then: that.", ""]


def test_a_sentence_that_ends_early_ends_its_paragraph_and_one_that_fills_its_line_does_not():
    full = "This sentence fills its line to the last column, so that no further word would fit into it behind the stop."
    text = f"First.\nThen.\n{full}\nAnd so\non."
    assert marked_up(text, {}.get)[::2] == ["First.", "Then.", f"{full} And so on."]
