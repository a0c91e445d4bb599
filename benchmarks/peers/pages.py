"""The tables of README.md and benchmarks/README.md that `python -m benchmarks --write` replaces.

A table stands between two comments of its page. The first cell of a row names its benchmark, or several with commas
between. A run replaces the rows of the benchmarks that it measured; all other rows keep the date of their own run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.peers import report
from benchmarks.peers.comparisons import BENCHMARKS, Comparison
from benchmarks.peers.peer import ROOT
from minidl.atomic_files import written_whole

Row = tuple[str, ...]

OVERVIEW = ("benchmark", "what, compared with what", "minidl's / the other's", "goals met", "measured")
MEASURED = ("benchmarks", "date", "machine", "load", "versions", "instruction sets", "left out")


def write(comparisons: Sequence[Comparison], conditions: Sequence[tuple[str, str]], left_out: Sequence[str]) -> None:
    """Put these results into both pages; ValueError if a page has no place for them. With no results, only check."""
    where = dict(conditions)
    names = list(dict.fromkeys(one.benchmark for one in comparisons))
    run = [(", ".join(names), *where.values(), "; ".join(left_out).replace("|", "/"))] if names else []
    results = [cells for cells, is_best in report.rows(comparisons) if is_best]
    measured = f"{where['date'].split()[0]}, {where['machine'].split(';')[0]}"
    overview = [(name, BENCHMARKS[name], *cells, measured) for name, *cells in report.overview(comparisons)]
    texts: dict[str, str] = {}
    for page, table, columns, rows in (
        ("benchmarks/README.md", "results", report.COLUMNS, results),
        ("benchmarks/README.md", "conditions", MEASURED, run),
        ("README.md", "overview", OVERVIEW, overview),
    ):
        text = texts.get(page) or (ROOT / page).read_text(encoding="utf-8")
        texts[page] = with_rows(text, table, columns, rows, page)
    for page, text in texts.items():
        with written_whole(ROOT / page) as file:
            file.write(text.encode())


def with_rows(page: str, name: str, columns: Row, rows: Sequence[Row], source: str) -> str:
    """The page's text with these rows in the table between the comments `begin: name` and `end: name`."""
    begin, end = (f"<!-- {word}: {name} -->" for word in ("begin", "end"))
    before, _, rest = page.partition(begin)
    table, found, after = rest.partition(end)
    if not found:
        raise ValueError(f"{source} has no lines {begin} and {end}, between which the results belong: put them back")
    order = list(BENCHMARKS)
    older = set(order).difference(*(row[0].split(", ") for row in rows))  # benchmarks whose rows stay
    kept = [(", ".join(name for name in first.split(", ") if name in older), *rest) for first, *rest in _rows_of(table)]
    all_rows = [row for row in (*kept, *rows) if row[0]]
    all_rows.sort(key=lambda row: order.index(row[0].split(", ")[0]))
    lines = ["| " + " | ".join(cells) + " |" for cells in (columns, *all_rows)]
    return "\n".join([f"{before}{begin}", lines[0], "|" + "---|" * len(columns), *lines[1:], f"{end}{after}"])


def _rows_of(table: str) -> Iterator[Row]:
    """The cells of each row below the header of a table in Markdown."""
    for line in table.strip().splitlines()[2:]:
        yield tuple(cell.strip() for cell in line.strip("|").split("|"))
