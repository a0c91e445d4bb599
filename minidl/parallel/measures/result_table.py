"""Result table: finds the columns that are settings of a run, and the rows that have the same settings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isnan
from typing import Any

CONFIGURATION = ("network", "nodes", "servers", "batch_size", "lr", "momentum", "epochs")
HIGHER_IS_BETTER = ("accuracy", "test_accuracy")
LOWER_IS_BETTER = ("test_error", "error", "test_loss", "loss", "training_loss")
QUALITY = (*HIGHER_IS_BETTER, *LOWER_IS_BETTER)
TEST_QUALITY = ("accuracy", "test_accuracy", "test_error", "error", "test_loss")
SPEED = ("seconds", "seconds_to_target", "samples_per_second")
CLAIMS = ("seed", "seeds", "speedup", "target", "ended", "scaling", "source", "statistic")
MEASURED = ("samples", "steps", "bytes", "bytes_per_node", "bytes_of_busiest_rank", "compute", "communication",
            "waiting", "mean_staleness", "greatest_staleness", "efficiency", "memory", "learning_per_second",
            "last_accuracy", "date", "time", "timestamp", "host", "user", "run", "run_id", "id", "file",
            "folder", "note", "notes", "comment")  # fmt: skip

BLANK = ("", "nan", "na", "n/a", "null", "-", "\N{EN DASH}", "\N{EM DASH}")

Key = tuple[str, ...]


def text_of(value: Any) -> str:
    """Return the value as text: "4" for 4, 4.0 and "4.0"; "" for None, nan, n/a, a dash and blanks.

    >>> text_of("64.0"), text_of(None), text_of(float("nan")), text_of(True), text_of(" ring ")
    ('64', '', '', 'True', 'ring')
    """
    number = number_of(value)
    if number is not None:
        return f"{number:.12g}"
    return "" if value is None or str(value).strip().lower() in BLANK else str(value).strip()


def number_of(value: Any) -> float | None:
    """The value as a number; None if it is not one."""
    if value is None or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return None if isnan(number) else number


@dataclass(frozen=True)
class Trial:
    """A row: its method, its seed ("" for none), and its configuration, as the values of the table's columns."""

    row: Mapping[str, Any]
    method: str
    seed: str
    key: Key = ()

    def value(self, column: str) -> str:
        """The row's value in that column as text; "" for none."""
        return text_of(self.row.get(column))

    def number(self, column: str) -> float | None:
        """The number in that column; None if there is none, or if the run ended early."""
        return None if self.is_ended else number_of(self.row.get(column))

    @cached_property
    def is_ended(self) -> bool:
        """Whether the run ended early."""
        return self.value("ended") != ""

    @cached_property
    def has_speed(self) -> bool:
        return any(self.number(column) is not None for column in SPEED)

    @cached_property
    def has_quality(self) -> bool:
        return any(self.number(column) is not None for column in QUALITY)


class ResultTable:
    """The runs of a table, and the columns of their configuration.

    Attributes
        runs          one per row
        columns       columns of the configuration, both given and detected
        varying       columns of numbers that differ between the seeds of one configuration
        may_be_blank  detected columns of numbers, which may be measurements that only some rows have
        remembered    results for configurations, which many rows ask for
    """

    def __init__(
        self, rows: Sequence[Mapping[str, Any]], name: str, configuration: Sequence[str], measured: Sequence[str]
    ) -> None:
        self._name = name
        self._same: dict[tuple[str, Key], list[Trial]] = {}
        self.remembered: dict[Any, Any] = {}
        self.columns = list(configuration)
        self.varying: list[str] = []
        self.may_be_blank: set[str] = set()
        self.runs = self._keyed(rows)
        known = {name, *configuration, *measured, *QUALITY, *SPEED, *CLAIMS}
        unknown = [column for column in dict.fromkeys(key for row in rows for key in row) if column not in known]
        for column in [one for one in unknown if not self._is_of_numbers(one)]:
            if not self._is_label(column):
                self.columns.append(column)
        self.runs = self._keyed(rows)
        for column in [one for one in unknown if self._is_of_numbers(one)]:
            if self._is_chosen(column):
                self.columns.append(column)
                self.may_be_blank.add(column)
            else:
                self.varying.append(column)
        self.runs = self._keyed(rows)

    @cached_property
    def methods(self) -> dict[str, list[Trial]]:
        """The runs of each method."""
        result: dict[str, list[Trial]] = defaultdict(list)
        for run in self.runs:
            result[run.method].append(run)
        return result

    @property
    def has_speed(self) -> bool:
        return any(run.has_speed for run in self.runs)

    @property
    def has_quality(self) -> bool:
        return any(run.has_quality for run in self.runs)

    def agree(self, one: Key, other: Key) -> bool:
        """Whether two configurations are the same; a blank may stand for any number in `may_be_blank` columns."""
        return all(
            a == b or (column in self.may_be_blank and "" in (a, b))
            for column, a, b in zip(self.columns, one, other, strict=True)
        )

    def agree_but_for_epochs(self, one: Key, other: Key) -> bool:
        """Whether two configurations are the same but for the epochs, of which a run that ended early has fewer."""
        columns = [i for i, column in enumerate(self.columns) if column != "epochs"]
        return all(one[i] == other[i] or self.columns[i] in self.may_be_blank for i in columns)

    def same(self, run: Trial) -> list[Trial]:
        """All runs of the same method and configuration, one per seed."""
        place = run.method, run.key
        if place not in self._same:
            near = self._alike[run.method, self._never_blank(run.key)]
            self._same[place] = [other for other in near if self.agree(run.key, other.key)]
        return self._same[place]

    @cached_property
    def _alike(self) -> dict[tuple[str, Key], list[Trial]]:
        """The runs of each method by the columns that are never blank, so that `same` need not look at all."""
        result: dict[tuple[str, Key], list[Trial]] = defaultdict(list)
        for run in self.runs:
            result[run.method, self._never_blank(run.key)].append(run)
        return result

    def _never_blank(self, key: Key) -> Key:
        return tuple(value for column, value in zip(self.columns, key, strict=True) if column not in self.may_be_blank)

    @cached_property
    def configurations(self) -> list[Trial]:
        """One run of each configuration of each method, which represents all its seeds."""
        return list({(run.method, run.key): run for run in self.runs if not run.is_ended}.values())

    def key_text(self, key: Key) -> str:
        """The configuration as text."""
        text = ", ".join(f"{column}={value}" for column, value in zip(self.columns, key, strict=True) if value)
        stated = [column for i, column in enumerate(self.columns) if any(run.key[i] for run in self.runs)]
        return text or ", ".join(f"no {column}" for column in stated)

    def where(self, method: str, key: Key) -> str:
        """The configuration as " with column=value, ...", in the columns in which the method's rows differ; or ""."""
        differ = self._differ[method]
        return " with " * bool(differ) + ", ".join(
            f"{self.columns[i]}={key[i]}" if key[i] else f"no {self.columns[i]}" for i in differ
        )

    @cached_property
    def _differ(self) -> dict[str, list[int]]:
        """The columns in which the rows of each method differ, by their places."""
        keys = {method: {run.key for run in runs} for method, runs in self.methods.items()}
        places = range(len(self.columns))
        return {method: [i for i in places if len({one[i] for one in of}) > 1] for method, of in keys.items()}

    def _keyed(self, rows: Sequence[Mapping[str, Any]]) -> list[Trial]:
        return [
            Trial(
                row,
                str(row.get(self._name, "?")),
                text_of(row.get("seed")),
                tuple(text_of(row.get(column)) for column in self.columns),
            )
            for row in rows
        ]

    def _is_of_numbers(self, column: str) -> bool:
        values = [run.row.get(column) for run in self.runs if run.value(column)]
        return all(number_of(value) is not None for value in values)

    def _is_label(self, column: str) -> bool:
        """Whether every row has a different text there, even among the seeds of one configuration."""
        values = [value for run in self.runs if (value := run.value(column))]
        return len(set(values)) == len(values) and any(len(set(values)) > 1 for values in self._over_seeds(column))

    def _is_chosen(self, column: str) -> bool:
        """Whether the numbers are a setting: equal for all seeds; without several seeds, whole numbers."""
        over_seeds = list(self._over_seeds(column))
        if over_seeds:
            return all(len(set(values)) == 1 for values in over_seeds)
        return all(float(value).is_integer() for run in self.runs if (value := run.value(column)))

    def _over_seeds(self, column: str) -> Iterator[list[str]]:
        """The values of the column in each group of several runs that differ only in their seeds.

        Rows of speed and rows of quality are separate groups.
        """
        groups: dict[Any, dict[str, str]] = defaultdict(dict)
        for i, run in enumerate(self.runs):
            if value := run.value(column):
                group = groups[run.method, run.key, run.has_speed, run.has_quality]
                group[run.seed or f"row {i}"] = value
        return (list(group.values()) for group in groups.values() if len(group) > 1)
