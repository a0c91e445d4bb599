"""Selected results: what a table left out, or states in place of what was measured; for the report card."""

from __future__ import annotations

import re
from collections.abc import Iterator
from statistics import fmean

from minidl.parallel.measures.result_table import HIGHER_IS_BETTER, QUALITY, SPEED, ResultTable, Trial, number_of

SIZES = ("nodes", "network", "model", "data")  # what a method is tried on
REMARKS = ("source", "statistic", "note", "notes", "comment")  # words about how a row came about
NOT_MEASURED = re.compile(
    r"(?<!not )\b(extrapolat|estimate[ds]?\b|projected|predicted)|^(projection|prediction)", re.IGNORECASE
)
BEST = re.compile(r"\b(best|max(im\w+)?|min(im\w+)?|peak|highest|lowest|fastest|top(?!-\d))\b", re.IGNORECASE)
BEST_RUN = re.compile(
    r"(?<!not )(?<!not the )\b((best|luckiest|fastest|highest|lowest|max(imum)?|min(imum)?) "
    r"(one |accuracy |time )?(out of|of|over) (the |its |all )?(\w+ )?(seeds|runs|trials)"
    r"|(best|luckiest|fastest) (seed|run))\b(?! time)",
    re.IGNORECASE,
)
SOME_SEEDS = re.compile(
    r"\b(\d+|one|two|three|four|five|six|seven|eight|nine|ten|some|most) (?:out )?of (?:the )?(\w+) (?:seeds|runs)\b",
    re.IGNORECASE,
)
SPREAD = re.compile(r"(std|sd|deviation|low|interval|spread|±)$")
PEAK = re.compile(r"^(?:peak|max|theoretical)_(.*(?:ops|flops|per_second|throughput|bandwidth)\w*)$")
WITHOUT_UNIT = ("time", "duration", "latency", "throughput", "bandwidth", "speed", "memory")
NEAR = 0.05  # rates within 5 % are equal


def of_table(table: ResultTable) -> Iterator[str]:
    """Yield what is wrong with the columns of the whole table."""
    for column in dict.fromkeys(key for run in table.runs for key in run.row):
        values = [run.row[column] for run in table.runs if run.value(column)]
        if column in WITHOUT_UNIT and values and all(number_of(value) is not None for value in values):
            yield f"the column {column!r} has no unit: name it as seconds, bytes or samples_per_second are named"
        if (peak := PEAK.match(column)) and not any(run.value(peak[1]) for run in table.runs):
            yield f"the column {column!r} is a peak, and there is no column {peak[1]!r} of what was sustained"


def of_method(table: ResultTable, method: str) -> Iterator[str]:
    """Yield what is missing among the method's rows, and which of them state something else than they seem to."""
    runs = table.methods[method]
    for column in SIZES:
        tried = {name: {run.value(column) for run in some} - {""} for name, some in table.methods.items()}
        swept = set().union(*(values for values in tried.values() if len(values) > 1))
        if len(tried[method]) > 1 and (missing := swept - tried[method]):
            yield f"its runs with {column}={', '.join(sorted(missing))} are missing, which other methods have"
    yield from _of_seeds(table, method)
    for run in runs:
        remarks = {column: run.value(column) for column in REMARKS}
        for column, text in (*remarks.items(), ("seeds", f"{run.value('seeds')} seeds")):
            if (some := SOME_SEEDS.search(text)) and some[1] != some[2]:
                yield f"{some[0]}: the others were left out ({column})"
        for column, text in remarks.items():
            if NOT_MEASURED.search(text):
                yield f"a row was not measured: {column}={text}"
            if (BEST if column == "statistic" else BEST_RUN).search(text):
                yield f"a row is not the mean of its runs: {column}={text}"
        yield from _of_row(table, run)


def _of_seeds(table: ResultTable, method: str) -> Iterator[str]:
    """Seeds that the method left out: other methods have them, and the method has later ones."""
    mine = {run.seed for run in table.methods[method]}
    others = dict.fromkeys(run.seed for run in table.runs if run.method != method and run.seed)
    if mine < others.keys():
        ordered = sorted(others, key=lambda seed: number_of(seed) or 0.0)  # words stay in the table's order
        latest = max(place for place, seed in enumerate(ordered) if seed in mine)
        if skipped := [seed for seed in ordered[:latest] if seed not in mine]:
            yield f"its runs with seed {', '.join(skipped)} were left out"


def _of_row(table: ResultTable, run: Trial) -> Iterator[str]:
    accuracy, last = run.number("accuracy"), run.number("last_accuracy")
    if accuracy is not None and last is not None and accuracy > last:
        yield f"its accuracy of {accuracy:.4g} is that of an earlier epoch; after the last one it is {last:.4g}"
    rate, samples, seconds = (run.number(column) for column in ("samples_per_second", "samples", "seconds"))
    if rate and samples and seconds and rate * seconds > (1 + NEAR) * samples:
        yield f"its {rate:.4g} samples/s are a peak: {samples:.6g} samples took {seconds:.4g} s"
    if run.seed or (run.number("seeds") or 1) <= 1:
        return
    of_seeds = [other for other in table.same(run) if other.seed]
    for column in (*QUALITY, *SPEED):
        value, values = run.number(column), [n for other in of_seeds if (n := other.number(column)) is not None]
        if value is None:
            continue
        if not values and not any(run.value(key) and SPREAD.search(key) for key in run.row):
            yield f"its {column} is a mean of {run.value('seeds')} seeds without their spread"
        best = (max if column in (*HIGHER_IS_BETTER, "samples_per_second") else min)(values, default=value)
        if values and value == best and abs(fmean(values) - best) > 1e-6 * abs(best):
            yield f"its {column} of {value:.4g} is the best of its seeds, not their mean, {fmean(values):.4g}"
