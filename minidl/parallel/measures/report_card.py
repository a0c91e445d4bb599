"""Report card: what is wrong with a table of results, from missing seeds to speedups over a slow baseline.

`result_files.read_results` reads the table; the command is `minidl report-card`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf, isfinite
from typing import Any

from minidl.parallel.measures import selected_results
from minidl.parallel.measures.claimed_speedups import of_speedup
from minidl.parallel.measures.result_table import (
    CONFIGURATION,
    HIGHER_IS_BETTER,
    MEASURED,
    QUALITY,
    SPEED,
    TEST_QUALITY,
    ResultTable,
    Trial,
    number_of,
)

Row = Mapping[str, Any]


def problems(
    rows: Iterable[Row],
    name: str = "strategy",
    configuration: Sequence[str] = CONFIGURATION,
    seeds: int = 3,
    measured: Sequence[str] = MEASURED,
) -> list[str]:
    """Return what is wrong with a table of results, one sentence per problem; an empty list if it is sound.

    Of Hoefler's twelve ways to fool the masses, by their numbers, a table can show these:

    1. accuracy that is ignored when scaling: a "speedup" over a run of better quality; over one with another minibatch
       or other epochs, where no quality is given
    2. a training loss as the only quality of a method, where others were tested
    4. a "speedup" of more nodes over fewer nodes of other hardware
    7. a peak: a rate above samples / seconds, a column of peaks alone
    8. speed and quality of one method from different configurations: fast in float16, accurate in float32
    10. the accuracy of the best epoch rather than of the last; a time to one target over the time to another
    11. weak scaling as strong: `scaling` is strong, and the minibatch is not that of the baseline
    12. a "speedup" over a slow run where the table has a faster one, on no more nodes and of no lower quality; over a
        run that the table does not have, or without a time, or that is no number

    and these, which are not among the twelve:

    * no seed, fewer than `seeds` of them, or seeds left out, in words too (three of five seeds); the best of the seeds
      for their mean; a mean of seeds without its spread
    * sizes left out: nodes, networks, models or data that the other methods that were tried on several have
    * extrapolated rows; a column without a unit; a number with a unit, such as 95%, which is not compared; one that is
      infinite, and an accuracy that is no fraction from 0 to 1

    A table cannot show the others: 3, runs that were needed for tuning; 5, operations that were not timed when scaling;
    6, input and output that were not timed; 9, unreasonably large inputs.

    Each sentence names the method. Where the method has several configurations, it names that of the rows too.

    Parameters
        rows           dictionaries, or a csv.DictReader of `runs.csv` of `minidl compare`; None, nan and an empty text
                       are no value
        name           the column that says which method a row is about
        configuration  columns that decide a run, without the seed; those that no row has are skipped
        seeds          runs of one configuration that are needed to see the spread
        measured       columns that are results or remarks, neither configuration nor one of the columns below

    Columns
        quality         one of accuracy, test_accuracy, test_error, error, test_loss, loss, training_loss
        speed           one of seconds, seconds_to_target, samples_per_second
        seed            one number per run; in a row of means, seeds is the number of runs in the mean
        ended           why a run ended early: such a run counts as a seed, not as a speed or a quality
        device          or hardware, machine, processor, accelerator, cpu, gpu, kernels: what a run was computed on
        source          or statistic, note, notes, comment: how a row came about, such as extrapolated, or best
        scaling         weak or strong
        last_accuracy   accuracy after the last epoch

    Raises
        TypeError where a row is no dictionary; ValueError where no row has the column `name`, a quality or a speed, or
        one has a value without a column.

    Notes
        The values of every other column decide. Words are configuration, unless each row has its own (the name of a
        file, say). Numbers are configuration if they are equal for all seeds of a method, speed rows and quality rows
        each by themselves; numbers that differ from seed to seed were measured, but a number that several seeds of the
        speed rows share, and that no quality row shares, is reported all the same. Numbers that speed rows alone have,
        or quality rows alone, may be measurements: name such a column in `configuration` if it decides the run. Of
        single runs, whole numbers count as configuration.
        A quality is lower if the means over the seeds differ by more than two standard errors, and by more than 0.5 %
        of an accuracy or 5 % of a loss or an error.

    References
        T. Hoefler, Twelve ways to fool the masses when reporting performance of deep learning workloads (2018), in
        other words here; T. Hoefler and R. Belli, Scientific benchmarking of parallel
        computing systems (SC 2015), rule 1, on speedups.

    >>> problems([{"strategy": "ring", "nodes": 4, "accuracy": 0.9, "seconds": 3.0}])
    ['ring: no seed is given']
    """
    rows = list(rows)  # a csv.DictReader can be read once
    if wrong := [row for row in rows if not isinstance(row, Mapping)]:
        raise TypeError(f"each row must be a dictionary from column to value, got {wrong[0]!r}")
    if any(None in row for row in rows):  # where csv.DictReader puts the values that have no column
        raise ValueError("a row has more values than the table has columns: does a number have a decimal comma?")
    if rows and not any(name in row for row in rows):
        raise ValueError(
            f"no row has the column {name!r}: give name= (--name), the column that says which method a row is about, "
            f"one of {list(rows[0])}"
        )
    if rows and not any(column in row for row in rows for column in (*QUALITY, *SPEED)):
        raise ValueError(f"no row has a quality or a speed: give one of the columns {', '.join((*QUALITY, *SPEED))}")
    table = ResultTable(rows, name, configuration, measured)
    found = list(selected_results.of_table(table))
    for method, runs in table.methods.items():
        of_method = (*_of_method(table, runs, seeds), *selected_results.of_method(table, method))
        found += [f"{method}: {problem}" for problem in of_method]
    found += [
        f"{run.method}{table.where(run.method, run.key)}: {problem}"
        for run in table.runs
        for problem in of_speedup(run, table)
    ]
    return list(dict.fromkeys(found))


def _of_method(table: ResultTable, runs: Sequence[Trial], seeds: int) -> Iterator[str]:
    fast, good = [run for run in runs if run.has_speed], [run for run in runs if run.has_quality]
    stated = {column for run in runs for column in run.row}
    for column in (*QUALITY, *SPEED, "nodes", "seeds", "samples", "last_accuracy"):
        if column not in stated:
            continue
        texts = (run.value(column) for run in runs if not run.is_ended and number_of(run.row.get(column)) is None)
        if wrong := next((text for text in texts if any(map(str.isdigit, text))), None):
            yield f"its {column}, {wrong}, is no number"
        least, most = (0.0, 1.0) if column in HIGHER_IS_BETTER else (-inf, inf)
        numbers = (number for run in runs if (number := run.number(column)) is not None)
        if (value := next((one for one in numbers if not (isfinite(one) and least <= one <= most)), None)) is not None:
            expected = "a fraction from 0 to 1" if column in HIGHER_IS_BETTER else "a finite number"
            yield f"its {column} of {value:g} is impossible: expected {expected}"
    if table.has_speed and table.has_quality:  # a table of one of them claims nothing about both
        for what, other, some, others in (("speed", "quality", fast, good), ("quality", "speed", good, fast)):
            known = {run.key for run in others}
            for key in sorted({run.key for run in some} - known):
                if not any(table.agree(key, other) for other in known):
                    yield f"the {what} with {table.key_text(key)} comes without the {other} of that configuration"
        yield from _of_measured_numbers(table, fast, good)
    tested = [column for column in TEST_QUALITY if any(run.number(column) is not None for run in table.runs)]
    if tested and good and not any(run.number(column) is not None for run in good for column in tested):
        yield f"its only quality is that of the training set, where other rows have {tested[0]}"
    unseeded = sorted({run.key for run in runs if run.seed == "" and run.number("seeds") is None})
    if unseeded:
        yield from (f"no seed is given{table.where(runs[0].method, key)}" for key in unseeded)
        return
    ended = [run for run in runs if run.is_ended]
    for group in (fast, good):
        of_group, one_of = set(map(id, group)), {run.key: run for run in group}
        for key in sorted(one_of):
            counted = [run for run in table.same(one_of[key]) if id(run) in of_group]
            counted += [run for run in ended if table.agree_but_for_epochs(key, run.key)]
            different = max(len({run.seed for run in counted}), *(run.number("seeds") or 0 for run in counted))
            if different < seeds:
                which = f"{different:g} seed{'s' * (different > 1)}{table.where(runs[0].method, key)}"
                yield f"{which} where {seeds} are needed to see the spread"


def _of_measured_numbers(table: ResultTable, fast: Sequence[Trial], good: Sequence[Trial]) -> Iterator[str]:
    """Numbers that differ from run to run, but not as measurements do."""
    for column in table.varying:
        there = {run.value(column) for run in good} - {""}
        seeds = defaultdict(set)
        for run in fast if there else ():
            seeds[run.value(column)].add(run.seed)
        for value in sorted(seeds.keys() - there - {""}):
            if len(seeds[value]) > 1:
                yield f"the speed with {column}={value} comes without the quality of that configuration"
