"""The table of proofs names only what exists, and the command lists what has none."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from benchmarks import rows


def test_everything_that_the_table_names_exists() -> None:
    table = rows.rows()
    assert [f"{row['row']}: {proof}" for row in table for proof in row["proof"].split() if not rows.exists(proof)] == []
    assert len({row["row"] for row in table}) == len(table)
    assert [row["row"] for row in table if not row["claim"] or not (row["proof"] or row["missing"])] == []


@pytest.mark.parametrize(
    ("proof", "is_there"),
    [
        ("minidl.optim.SGD", True),
        ("minidl.optim.SGDD", False),
        ("minidl.optims.SGD", False),
        ("course/lectures/01a_backpropagation.py", True),
        ("course/lectures/01z_backpropagation.py", False),
        ("tests/benchmarks/test_rows.py::test_everything_that_the_table_names_exists", True),
        ("tests/benchmarks/test_rows.py::test_everything", False),
        ("tests/benchmarks/test_row.py::test_everything_that_the_table_names_exists", False),
    ],
)
def test_a_call_a_page_and_a_test_are_looked_up(proof: str, is_there: bool) -> None:
    assert rows.exists(proof) is is_there


def test_the_command_lists_the_rows_that_lack_something_or_those_that_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = [
        {"row": "A1", "claim": "sums", "proof": "minidl.Tensor", "missing": ""},
        {"row": "A2", "claim": "products", "proof": "minidl.Tensor minidl.Gone", "missing": "zeros"},
    ]
    monkeypatch.setattr(rows, "rows", lambda: table)
    for asked, seen in (([], ["A2"]), (["A1"], ["A1"]), (["A"], ["A1", "A2"])):
        console = Console(file=io.StringIO(), width=120)
        assert rows.main(asked, console) == 1
        assert isinstance(console.file, io.StringIO)
        text = console.file.getvalue()
        assert [row["row"] for row in table if row["claim"] in text] == seen
        assert "A2: minidl.Gone" in text
    with pytest.raises(SystemExit) as ended:
        rows.main(["Z"])
    assert ended.value.code == 2
