"""The runs of one strategy on one network with several seeds: means, deviations, intervals, the time to a target."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import mean, stdev

import numpy as np

from minidl.parallel.comparison.compared_run import ComparedRun, mean_shares
from minidl.parallel.measures import spread
from minidl.plots import race
from minidl.plots.style import bytes_text, deviation_text, seconds_text


@dataclass(frozen=True)
class OverSeeds:
    """The runs of one strategy on one network, one for each seed. Runs that diverged are left out of all means."""

    runs: Sequence[ComparedRun]

    @property
    def name(self) -> str:
        """The name of the strategy."""
        return self.runs[0].entrant.name

    @property
    def finished(self) -> list[ComparedRun]:
        """The runs that did not end early."""
        return [one for one in self.runs if one.history and not one.ended]

    @property
    def ended(self) -> str:
        """How many runs ended early, in words; "" for none."""
        count = len(self.runs) - len(self.finished)
        if not count or len(self.runs) == 1:
            return self.runs[0].ended if count else ""
        return f"{count} of {len(self.runs)} seeds diverged"

    def seconds_to(self, accuracy: float | None) -> list[float]:
        """The seconds to that test accuracy, for the seeds that reach it; none for None."""
        if accuracy is None:
            return []
        return [seconds for one in self.finished if (seconds := one.seconds_to(accuracy)) is not None]

    def time_to(self, accuracy: float | None) -> spread.Estimate | None:
        """The median time to that test accuracy over all seeds, in seconds, with its interval; None if none reaches it.

        A run that does not reach it counts as one that needs longer than it was trained; a run that diverged never
        would have. So the median, or an end of the interval, may be infinite.
        """
        if not self.seconds_to(accuracy):
            return None
        assert accuracy is not None
        times = [None if one.ended else one.seconds_to(accuracy) for one in self.runs]
        trained = [math.inf if one.ended else one.seconds for one in self.runs]
        seconds = [limit if time is None else time for time, limit in zip(times, trained, strict=True)]
        return spread.estimate(spread.median_time, seconds, [time is not None for time in times])

    def cells(self, target: float | None) -> list[str]:
        """The row of a table. Below means stand standard deviations; below medians and accuracies, intervals."""
        finished, name = self.finished, self.name
        if not finished:
            return [f"{name}: {self.ended}", *["-"] * 7]
        stale = [one.mean_staleness for one in finished if one.mean_staleness is not None]
        shares = [one.shares for one in finished if one.shares is not None]
        accuracies = [one.accuracy for one in finished]
        _, low, high = spread.estimate(spread.mean, accuracies)
        between = f"\n{100 * low:.2f} to {100 * high:.2f}" * (low < high)
        return [
            f"{name}\n{self.ended}" if self.ended else name,
            _spread(accuracies, "{:.2%}".format, lambda deviation, _: f"{100 * deviation:.2f}") + between,
            _spread([one.history[-1]["steps"] for one in finished], "{:,.0f}".format, lambda each, _: f"{each:,.2g}"),
            _spread([one.seconds for one in finished], seconds_text, deviation_text),
            self._cell_of_target(target),
            bytes_text(round(mean(one.bytes_per_node or 0 for one in finished))),
            "/".join(f"{100 * share:.0f}" for share in mean_shares(shares)),
            f"{mean(stale):.2g}" if stale else "",
        ]

    def summary(self, target: float | None) -> dict[str, float | int | None]:
        """Means and standard deviations (n - 1) over the seeds that did not diverge, and intervals (_low, _high).

        The median time to the target is that of all seeds. None: too few seeds, or infinite.
        """
        finished = self.finished
        columns = {
            "accuracy": [one.accuracy for one in finished],
            "test_loss": [float(one.history[-1]["test_loss"]) for one in finished],
            "seconds": [one.seconds for one in finished],
            "bytes_per_node": [one.bytes_per_node or 0.0 for one in finished],
            "learning_per_second": [speed for one in finished if (speed := one.learning_per_second) is not None],
        }
        result: dict[str, float | int | None] = {
            "seeds": len(self.runs),
            "finished": len(finished),
            "reached_target": len(self.seconds_to(target)),
            **_ends("seconds_to_target_median", self.time_to(target)),
            **_ends(
                "accuracy", spread.estimate(spread.mean, columns["accuracy"]) if len(finished) > 1 else None, False
            ),
        }
        for name, values in columns.items():
            result[f"{name}_mean"] = mean(values) if values else None
            result[f"{name}_std"] = stdev(values) if len(values) > 1 else None
        return result

    def line(self) -> race.Run:
        """The curve in the figure: geometric means of the losses, with error bars.

        The error bars are one standard deviation of the logarithm: the axis of the loss is logarithmic. Seconds and
        samples are arithmetic means.
        """
        runs = self.finished or self.runs
        rows = list(zip(*(one.history for one in runs), strict=False))  # by epoch, up to the last that all runs have
        seconds, samples = (
            [mean(row[name] for row in of_seeds) for of_seeds in rows] for name in ("seconds", "samples")
        )
        losses = [[row["test_loss"] for row in of_seeds] for of_seeds in rows]
        if len(runs) == 1:
            return race.Run(self.name, seconds, samples, [loss for (loss,) in losses], self.ended)
        with np.errstate(all="ignore"):  # a test loss may be 0 or infinite
            logs = np.log(np.array(losses).reshape(len(rows), len(runs)))
            centre, deviation = logs.mean(axis=1), logs.std(axis=1, ddof=1)
            low, middle, high = (np.exp(centre + sign * deviation).tolist() for sign in (-1, 0, 1))
        return race.Run(self.name, seconds, samples, middle, self.ended, (low, high))

    def _cell_of_target(self, target: float | None) -> str:
        seconds = self.seconds_to(target)
        if not seconds:
            best = max(one.best_accuracy for one in self.finished)
            return "-" if math.isnan(best) else f"only {best:.2%}"
        median = self.time_to(target)
        assert median is not None
        longest = f"> {seconds_text(max(one.seconds for one in self.finished))}"
        value, low, high = (seconds_text(time) if math.isfinite(time) else longest for time in median)
        count = f"\n{len(seconds)} of {len(self.runs)}" if len(seconds) < len(self.runs) else ""
        return value + f"\n{low} to {high}" * (low != high) + count


def _ends(name: str, of: spread.Estimate | None, has_value: bool = True) -> dict[str, float | None]:
    """Columns of an estimate: its value, and the ends of its interval; None where they are infinite."""
    columns = dict(zip((name, f"{name}_low", f"{name}_high"), of or (None,) * 3, strict=True))
    return {
        key: value if value is not None and math.isfinite(value) else None
        for key, value in columns.items()
        if has_value or key != name
    }


def _spread(values: Sequence[float], text: Callable[[float], str], deviation: Callable[[float, float], str]) -> str:
    """The mean, formatted by `text`; below it the standard deviation, formatted by `deviation`, unless it is 0."""
    if len(set(values)) == 1:
        return text(values[0])
    return f"{text(mean(values))}\n± {deviation(stdev(values), mean(values))}"
