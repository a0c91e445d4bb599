"""Claimed speedups: which run of the table is the baseline, and whether it is a fair one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import inf, sqrt
from statistics import fmean, variance

from minidl.parallel.measures.result_table import HIGHER_IS_BETTER, QUALITY, SPEED, ResultTable, Trial, number_of

TASK = ("network", "model", "data")  # what two runs must have in common to be compared
HARDWARE = ("device", "hardware", "machine", "processor", "accelerator", "cpu", "gpu", "kernels")
NEAR = 0.05  # times and speeds within 5 % are equal


def of_speedup(run: Trial, table: ResultTable) -> Iterator[str]:
    """Yield what is wrong with the run's claimed speedup; nothing without a claim, or if one of its speeds fits."""
    speedup = run.number("speedup")
    if speedup is None:
        if not run.is_ended and (text := run.value("speedup")):
            yield f"its speedup, {text}, is no number"
        return
    stated = [column for column in SPEED if _has_speed(run, column)]
    if not stated or speedup <= 0:
        yield f"its speedup of {speedup:g} comes without a time"
        return
    found = [_problem(run, column, speedup, table) for column in stated]
    if "" not in found:
        yield found[0]


def _problem(run: Trial, column: str, speedup: float, table: ResultTable) -> str:
    """What is wrong with the speedup, if it is computed from this column; "" for nothing."""
    alike = _alike(run, column, table)
    fewest = min(_nodes(other) for other in alike)
    claimed = [speedup * seconds for seconds in (_seconds(run, column), _times(run, column, table).mean)]
    candidates = [
        (other, seconds)
        for other in alike
        if _nodes(other) in (fewest, _nodes(run))
        for seconds in _times(other, column, table).of_seed(run.seed)
    ]
    base, seconds = min(candidates, key=lambda one: min(abs(one[1] / wanted - 1) for wanted in claimed))
    if min(abs(seconds / wanted - 1) for wanted in claimed) > NEAR:
        return (
            f"its speedup is relative to {_text(claimed[0], column)}, but no run on {_where(fewest, run)} "
            f"has this {'rate' if column == 'samples_per_second' else 'time'}"
        )
    if run.value("target") != base.value("target") and column == "seconds_to_target":
        return (
            f"its speedup compares the time to {run.value('target') or 'no target'} with that to "
            f"{base.value('target') or 'no target'}"
        )
    if run.method == base.method and table.agree(run.key, base.key):  # the baseline itself
        return ""
    if column != "seconds_to_target" and (worse := _worse(run, base, table)):
        return f"its speedup is over a run of better quality: {worse}"
    if (other_hardware := _difference(run, base, HARDWARE)) and _nodes(run) != _nodes(base):
        return f"its speedup is one of more nodes and of other hardware: {other_hardware}"
    has_quality = _is_known(run, table) or _is_known(base, table)
    sizes = _difference(run, base, ("batch_size",))
    if column != "seconds_to_target" and not has_quality and sizes:
        return f"its speedup is over a run with another minibatch size, and no quality is given: {sizes}"
    if column == "seconds" and not has_quality and (length := _difference(run, base, ("epochs", "samples"))):
        return f"its speedup is over a run of another length, and no quality is given: {length}"
    if sizes and run.value("scaling").lower().startswith("strong"):
        return f"its speedup is called strong scaling, but the minibatch grows: {sizes}"
    usual = _times(base, column, table).mean
    better = [
        took
        for other in alike
        if _nodes(other) <= _nodes(base) and not _competes(other, run, base, usual, column)
        if (took := _times(other, column, table).mean) < (1 - NEAR) * usual
        if not _worse(other, base, table) and (_is_known(other, table) or not _is_known(base, table))
    ]
    if better:
        return (
            f"its speedup is relative to {_text(seconds, column)} on {_counted(_nodes(base))}, where another run that "
            f"is no worse has {_text(min(better), column)}"
        )
    return ""


def _alike(run: Trial, column: str, table: ResultTable) -> list[Trial]:
    """A run with a time or rate of each configuration that was tried on the same task."""
    task = tuple(run.value(each) for each in TASK)
    if (place := ("alike", column, task)) not in table.remembered:
        alike = (one for one in table.configurations if tuple(one.value(each) for each in TASK) == task)
        first = (next((each for each in table.same(one) if _has_speed(each, column)), None) for one in alike)
        table.remembered[place] = [one for one in first if one is not None]
    return list(table.remembered[place])


def _competes(other: Trial, run: Trial, base: Trial, seconds: float, column: str) -> bool:
    """Whether the other run claims a speedup over the same baseline itself, on the same number of nodes."""
    over = (other.number("speedup") or 1.0) * _seconds(other, column)
    return _nodes(run) == _nodes(base) and other.method != base.method and abs(over / seconds - 1) <= NEAR


def _where(nodes: float, run: Trial) -> str:
    """The nodes, network, model and data of the runs that the run can be compared with."""
    task = "".join(f", {column}={run.value(column)}" for column in TASK if run.value(column))
    return f"{_counted(nodes)}{task}"


def _counted(nodes: float) -> str:
    return f"{nodes:g} {'node' if nodes == 1 else 'nodes'}"


def _difference(run: Trial, base: Trial, columns: Sequence[str]) -> str:
    """The first of the columns in which the run and the baseline have different values; "" for none."""
    for column in columns:
        mine, theirs = run.value(column), base.value(column)
        is_count = column in HARDWARE and number_of(mine) is not None  # gpu=8: how many, not which
        if mine and theirs and mine != theirs and not is_count:
            return f"{column}={mine} here, {column}={theirs} there"
    return ""


def _nodes(run: Trial) -> float:
    return run.number("nodes") or 1.0


def _seconds(run: Trial, column: str) -> float:
    """The column's seconds; of a throughput, the seconds per sample."""
    number = run.number(column)
    assert number
    return 1 / number if column == "samples_per_second" else number


def _has_speed(run: Trial, column: str) -> bool:
    """Whether the run has a time or rate there, which is above 0; a rate is infinite where no time has passed."""
    number = run.number(column)
    return number is not None and 0 < number < inf


class _Times:
    """The seconds of a configuration's runs."""

    def __init__(self, runs: Sequence[Trial], column: str) -> None:
        measured = [run for run in runs if _has_speed(run, column)]
        self._of_seed: dict[str, list[float]] = defaultdict(list)
        for run in measured:
            self._of_seed[run.seed].append(_seconds(run, column))
        self._all = [_seconds(run, column) for run in measured]
        self.mean = fmean(self._all)

    def of_seed(self, seed: str) -> list[float]:
        """Possible baselines: runs with that seed, or all runs if there is none; and the mean of all runs."""
        return [*self._of_seed.get(seed, self._all), self.mean]


def _times(run: Trial, column: str, table: ResultTable) -> _Times:
    if (place := ("times", column, run.method, run.key)) not in table.remembered:
        table.remembered[place] = _Times(table.same(run), column)
    times: _Times = table.remembered[place]
    return times


def _worse(run: Trial, base: Trial, table: ResultTable) -> str:
    """By what quality the configuration is worse than the other; "" if it is not, or if no quality is known."""
    if (place := ("worse", run.method, run.key, base.method, base.key)) not in table.remembered:
        table.remembered[place] = _worse_quality(table.same(run), table.same(base))
    return str(table.remembered[place])


def _worse_quality(runs: Sequence[Trial], others: Sequence[Trial]) -> str:
    for column in QUALITY:
        mine, theirs = ([n for run in group if (n := run.number(column)) is not None] for group in (runs, others))
        if not mine or not theirs:
            continue
        is_accuracy = column in HIGHER_IS_BETTER
        short = (fmean(theirs) - fmean(mine)) * (1 if is_accuracy else -1)
        error = sqrt(sum(variance(group) / len(group) for group in (mine, theirs) if len(group) > 1))
        if short > max(2 * error, (0.005 if is_accuracy else 0.05) * abs(fmean(theirs))):
            return f"{column} {fmean(mine):.4g} here, {fmean(theirs):.4g} there"
        return ""
    return ""


def _is_known(run: Trial, table: ResultTable) -> bool:
    """Whether a quality of the configuration is known."""
    if (place := ("known", run.method, run.key)) not in table.remembered:
        table.remembered[place] = any(other.has_quality for other in table.same(run))
    return bool(table.remembered[place])


def _text(seconds: float, column: str) -> str:
    return f"{1 / seconds:.4g} samples/s" if column == "samples_per_second" else f"{seconds:.4g} s"
