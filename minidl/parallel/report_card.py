"""A check of tables of results: does each say what it seems to say?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

CONFIGURATION = ("network", "nodes", "servers", "batch_size", "lr", "momentum", "epochs")
QUALITY = ("accuracy", "test_loss", "training_loss")
SPEED = ("seconds", "seconds_to_target", "samples_per_second")

Row = Mapping[str, Any]


def problems(
    rows: Sequence[Row], name: str = "strategy", configuration: Sequence[str] = CONFIGURATION, seeds: int = 3
) -> list[str]:
    """What is wrong with a table of results, a sentence each; nothing if it is sound.

    Looked for are three ways to fool oneself and others:

    * speed and quality of one method from different configurations: fast with one minibatch, accurate with another;
    * no seed, or fewer than `seeds` of them, for what differs from run to run;
    * a "speedup" that is relative to a slow run on the fewest nodes, while the table has a faster one there of no lower
      accuracy; or to a run that the table does not have.

    rows: dictionaries, such as csv.DictReader reads from `runs.csv` of `minidl compare`; an empty text is no value.
    name: the column that says which method a row is about. configuration: the columns that decide a run, the seed
    apart; those that no row has are passed over. Quality is one of the columns accuracy, test_loss and training_loss,
    speed one of seconds, seconds_to_target and samples_per_second.

    Source: T. Hoefler and R. Belli, Scientific benchmarking of parallel computing systems (SC 2015), rule 1, on
    speedups.

    >>> problems([{"strategy": "ring", "nodes": 4, "accuracy": 0.9, "seconds": 3.0}])
    ['ring: no seed is given']
    """
    methods: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        methods[str(row.get(name, "?"))].append(row)
    found: list[str] = []
    for method, group in methods.items():
        found += [f"{method}: {problem}" for problem in _of_method(group, configuration, seeds)]
    found += [f"{row.get(name, '?')}: {problem}" for row in rows for problem in _of_speedup(row, rows)]
    return list(dict.fromkeys(found))


def _of_method(group: Sequence[Row], configuration: Sequence[str], seeds: int) -> Iterator[str]:
    def settings(row: Row) -> tuple[str, ...]:
        return tuple(str(row.get(column, "")) for column in configuration)

    fast = {settings(row) for row in group if _has(row, SPEED)}
    good = {settings(row) for row in group if _has(row, QUALITY)}
    for what, other, only in (("speed", "quality", fast - good), ("quality", "speed", good - fast)):
        for key in sorted(only):
            told = ", ".join(f"{column}={value}" for column, value in zip(configuration, key, strict=True) if value)
            yield f"the {what} with {told} comes without the {other} of that configuration"
    if any(not _has(row, ("seed",)) for row in group):
        yield "no seed is given"
        return
    for key in sorted(fast | good):
        different = {str(row["seed"]) for row in group if settings(row) == key}
        if len(different) < seeds:
            yield f"{len(different)} seed{'s' * (len(different) > 1)} where {seeds} are needed to see the spread"
            return


def _of_speedup(row: Row, rows: Sequence[Row]) -> Iterator[str]:
    if not _has(row, ("speedup",)) or not _has(row, ("seconds",)):
        return
    alike = [other for other in rows if other.get("network") == row.get("network") and _has(other, ("seconds",))]
    fewest = min(float(other["nodes"]) for other in alike)
    baseline = float(row["speedup"]) * float(row["seconds"])
    base = [other for other in alike if float(other["nodes"]) == fewest]
    nearest = min(base, key=lambda other: abs(float(other["seconds"]) - baseline))
    if abs(float(nearest["seconds"]) / baseline - 1) > 0.05:
        yield f"its speedup is relative to {baseline:.4g} s, but no run on {fewest:g} node(s) took so long"
        return
    better = [other for other in base if _quality(other) >= _quality(nearest)]
    fastest = min(float(other["seconds"]) for other in better)
    if fastest < 0.95 * float(nearest["seconds"]):
        yield (
            f"its speedup is relative to {float(nearest['seconds']):.4g} s on {fewest:g} node(s), where another run "
            f"that is no worse took {fastest:.4g} s"
        )


def _has(row: Row, columns: Sequence[str]) -> bool:
    return any(row.get(column) not in (None, "") for column in columns)


def _quality(row: Row) -> float:
    return float(row["accuracy"]) if _has(row, ("accuracy",)) else 0.0
