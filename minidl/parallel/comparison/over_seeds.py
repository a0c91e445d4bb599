"""The runs of one strategy on one network with several seeds: means and standard deviations."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import mean, stdev

import numpy as np

from minidl.parallel.comparison.compared_run import ComparedRun, mean_shares
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

    def mean_seconds_to(self, accuracy: float | None) -> float | None:
        """The mean of `seconds_to`; None unless every seed reaches the accuracy, for a fair comparison."""
        seconds = self.seconds_to(accuracy)
        return mean(seconds) if len(seconds) == len(self.runs) else None

    def cells(self, target: float | None) -> list[str]:
        """The row of a table. The standard deviation over the seeds stands below each mean."""
        finished, name = self.finished, self.name
        if not finished:
            return [f"{name}: {self.ended}", *["-"] * 7]
        stale = [one.mean_staleness for one in finished if one.mean_staleness is not None]
        shares = [one.shares for one in finished if one.shares is not None]
        return [
            f"{name}\n{self.ended}" if self.ended else name,
            _spread([one.accuracy for one in finished], "{:.2%}".format, lambda deviation, _: f"{100 * deviation:.2f}"),
            _spread([one.history[-1]["steps"] for one in finished], "{:,.0f}".format, lambda each, _: f"{each:,.2g}"),
            _spread([one.seconds for one in finished], seconds_text, deviation_text),
            self._cell_of_target(target),
            bytes_text(round(mean(one.bytes_per_node or 0 for one in finished))),
            "/".join(f"{100 * share:.0f}" for share in mean_shares(shares)),
            f"{mean(stale):.2g}" if stale else "",
        ]

    def summary(self, target: float | None) -> dict[str, float | int | None]:
        """Means and standard deviations (n - 1) over the seeds that did not diverge; None where there are too few."""
        finished = self.finished
        columns = {
            "accuracy": [one.accuracy for one in finished],
            "test_loss": [float(one.history[-1]["test_loss"]) for one in finished],
            "seconds": [one.seconds for one in finished],
            "seconds_to_target": self.seconds_to(target),
            "bytes_per_node": [one.bytes_per_node or 0.0 for one in finished],
        }
        result: dict[str, float | int | None] = {
            "seeds": len(self.runs),
            "finished": len(finished),
            "reached_target": len(columns["seconds_to_target"]),
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
        count = f"\n{len(seconds)} of {len(self.runs)}" if len(seconds) < len(self.runs) else ""
        return _spread(seconds, seconds_text, deviation_text) + count


def _spread(values: Sequence[float], text: Callable[[float], str], deviation: Callable[[float, float], str]) -> str:
    """The mean, formatted by `text`; below it the standard deviation, formatted by `deviation`, unless it is 0."""
    if len(set(values)) == 1:
        return text(values[0])
    return f"{text(mean(values))}\n± {deviation(stdev(values), mean(values))}"
