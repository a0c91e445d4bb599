"""Pictures of a result: the loss next to that of the course's own run, and the letters that are hardest to read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from course.results.history import Row
from minidl import data
from minidl.plots import lines, style


def losses(runs: Sequence[tuple[str, Sequence[Row]]], floor: tuple[str, float] | None = None) -> Figure:
    """Training and test loss of each run, given as a label and rows, against steps and against minutes.

    floor: the name and the loss of a predictor to compare with, drawn as a level line.
    """
    panels = []
    for x, name, unit in (("step", "steps", 1.0), ("seconds", "minutes", 60.0)):
        drawn = []
        for number, (label, rows) in enumerate(runs):
            places = [row[x] / unit for row in rows]
            for kind, look in (("loss", "line"), ("test_loss", "both")):
                words = f"{label}, {'training' if kind == 'loss' else 'test'}"
                drawn.append(lines.Line(words, places, [row[kind] for row in rows], look, number))
        if floor is not None:
            every = [row[x] / unit for _, rows in runs for row in rows]
            drawn.append(lines.Line(floor[0], [min(every), max(every)], [floor[1]] * 2, tone=6))
        panels.append(lines.Panel(drawn, name, "cross entropy (nats)", log="x"))
    figure = lines.draw(panels, source="measured", height=3.6)
    for axes in figure.axes:
        axes.tick_params(axis="x", which="minor", labelbottom=False)
    return figure


@style.applied()
def hardest(test: data.Dataset, chances: NDArray[np.float64], count: int = 24) -> Figure:
    """The letters of the test set whose right answer got the least probability, and how they were read.

    chances: for each letter of the test set, the probabilities of A to Z.
    """
    right = chances[np.arange(len(test)), test.y]
    columns = 8
    figure, places = style.new_figure(9.0, 1.35 * (count // columns) + 0.4, columns, [1] * (count // columns))
    for axes, i in zip(places, np.argsort(right)[:count], strict=True):
        axes.imshow(test.x[i, 0], cmap="gray")
        axes.set_axis_off()
        read = int(chances[i].argmax())
        is_right = read == test.y[i]
        words = f"{test.classes[test.y[i]]}: {right[i]:.0%}" if is_right else (
            f"{test.classes[test.y[i]]}, read as {test.classes[read]}"
        )  # fmt: skip
        axes.set_title(words, fontsize=8, loc="center", fontweight="normal", color="black" if is_right else "#C04F00")
    style.label_source(figure, "measured", "the hardest letters of the test set; fonts that the network has never seen")
    return figure
