"""The comparison of two checkouts finds what is planted in one of them."""

from __future__ import annotations

import copy
import io
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from benchmarks.same_behaviour import __main__ as command
from benchmarks.same_behaviour.comparison import ABSENT, Difference, differences, leaves
from benchmarks.same_behaviour.exact import error, exact, without_addresses

RECORD: dict[str, Any] = {
    "training": {"history": [{"loss": exact(0.5), "bytes": 10}], "ledger": [{"all_reduce": [2, 40, 2, 40]}]},
    "signature": "(lr=0.1, momentum=0.0)",
    "nothing": {},
}


def planted(change: Any) -> list[Difference]:
    there = copy.deepcopy(RECORD)
    change(there)
    return differences(RECORD, there)


def test_every_value_that_differs_is_found_with_both_sides() -> None:
    def history(there: Any) -> Any:
        return there["training"]["history"][0]

    assert planted(lambda there: None) == []
    (found,) = planted(lambda there: history(there).update(loss=exact(np.nextafter(0.5, 1))))
    assert (found.case, found.path) == ("training", "history/[0]/loss")
    assert found.here != found.there
    (found,) = planted(lambda there: there["training"]["ledger"][0]["all_reduce"].__setitem__(1, 44))
    assert found == Difference("training", "ledger/[0]/all_reduce/[1]", "40", "44")
    (found,) = planted(lambda there: there.update(signature="(lr=0.1, momentum=0.9)"))
    assert found.there == "(lr=0.1, momentum=0.9)"
    (lost,), (new,), (column,) = (
        planted(change)
        for change in (
            lambda there: there.pop("signature"),
            lambda there: there.update(more=1),
            lambda there: history(there).update(lr=1),
        )
    )
    assert (lost.there, new.here, column.here) == (ABSENT, ABSENT, ABSENT)
    assert [found.path for found in planted(lambda there: there.update(nothing={"a": 1}))] == ["", "a"]
    (found,) = planted(lambda there: there.update(training=error(KeyError("loss"))))
    assert (found.case, found.here, found.there) == ("training", "(a result)", "KeyError: 'loss'")


def test_bits_types_and_shapes_are_distinguished_and_errors_of_another_type() -> None:
    array = np.zeros(4, "float32")
    other = array.copy()
    other[2] = -0.0
    assert len({str(exact(x)) for x in (array, other, array.astype("float64"), array.reshape(2, 2))}) == 4
    assert len({leaves(value)[""] for value in (True, 1, None, 1.0)}) == 4
    accepted, value_error, type_error = "LocalSGD(period=2)", "refused by ValueError", "refused by TypeError"
    assert Difference("", "", value_error, type_error).is_error_type
    assert not Difference("", "", accepted, type_error).is_error_type


def test_errors_are_compared_without_addresses_and_tracebacks() -> None:
    text = "rank 1 failed, at /home/ada/minidl/work.py:12, in <f at 0x7ff36a58e660>, process 4711"
    assert without_addresses(text) == "rank 1 failed, at …/work.py:12, in <f at 0x…>, process …"
    assert error(ValueError(f"{text}\n\nTraceback of rank 1:\n  line 3"))["text"] == without_addresses(text)


def test_the_command_ends_with_1_and_prints_both_values_where_something_differs() -> None:
    there = copy.deepcopy(RECORD)
    there["training"]["ledger"][0]["all_reduce"][1] = 44
    output = io.StringIO()
    console = Console(file=output, width=200)
    sides = [{"results": results, "seconds": 1.0} for results in (RECORD, there)]
    assert command.report(console, {"strategies": sides}, show=5) == 1
    assert "here   40" in output.getvalue()
    assert "there  44" in output.getvalue()
    assert command.report(console, {"strategies": sides[:1] * 2}, show=5) == 0


@pytest.mark.timeout(300)
def test_a_default_changed_in_a_copy_of_the_checkout_is_found(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    shutil.copytree(command.ROOT / "minidl", checkout / "minidl", ignore=shutil.ignore_patterns("__pycache__"))
    source = next(path for path in checkout.rglob("elastic_averaging.py"))
    text = source.read_text(encoding="utf-8")
    source.write_text(text.replace("period: int = 1", "period: int = 9"), encoding="utf-8")
    records = command.record_all([command.ROOT, checkout], ["public_names"])
    here, there = (record["results"] for record in records["public_names"])
    found = {difference.path: (difference.here, difference.there) for difference in differences(here, there)}
    assert found["ElasticAveraging/fields/period"] == ("1", "9")
    assert all(path.startswith("ElasticAveraging") for path in found)
