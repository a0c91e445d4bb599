"""Pictures of a result: loss and accuracy next to those of the course's own run, letters, and a text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from course.results.history import Row
from minidl import data
from minidl.plots import lines, style

COLUMNS, ROWS = 8, 3
"""Letters in a row, and number of rows. The first row shows letters that the network read rightly."""


def losses(runs: Sequence[tuple[str, Sequence[Row]]], floor: tuple[str, float] | None = None) -> Figure:
    """Training and test loss of each run, given as a label and rows, against steps and against minutes.

    If the rows have a test accuracy, a third panel shows it. floor: the name and the loss of a predictor to compare
    with, drawn as a level line.
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
    if all("test_accuracy" in row for _, rows in runs for row in rows):
        drawn = [
            lines.Line("", [row["step"] for row in rows], [100 * row["test_accuracy"] for row in rows], "both", number)
            for number, (_, rows) in enumerate(runs)
        ]
        panels.append(lines.Panel(drawn, "steps", "test accuracy (%)", log="x"))
    figure = lines.draw(panels, source="measured", height=3.9)
    for axes in figure.axes:
        axes.tick_params(axis="x", which="minor", labelbottom=False)
        if legend := axes.get_legend():
            legend.remove()
    keys, columns = figure.axes[0].get_legend_handles_labels(), 3 if floor else 2
    figure.legend(*keys, loc="outside upper left", ncols=columns, fontsize=8, frameon=False)
    return figure


@style.applied()
def letters(test: data.Dataset, chances: NDArray[np.float64]) -> Figure:
    """A row of different letters that were read rightly, and those whose right answer got the least probability.

    chances: for each letter of the test set, the probabilities of A to Z.
    """
    right, read = chances[np.arange(len(test)), test.y], chances.argmax(1)
    firsts = [i for i in np.unique(test.y + 26 * (read != test.y), return_index=True)[1] if read[i] == test.y[i]]
    rightly = firsts[:: max(1, len(firsts) // COLUMNS)][:COLUMNS]
    figure, places = style.new_figure(9.0, 1.35 * ROWS + 0.4, COLUMNS, [1] * ROWS)
    shown = [*zip(places, rightly, strict=False), *zip(places[COLUMNS:], np.argsort(right), strict=False)]
    for axes in places:
        axes.set_axis_off()
    for axes, i in shown:
        axes.imshow(test.x[i, 0], cmap="gray")
        letter, is_right = test.classes[test.y[i]], read[i] == test.y[i]
        words = f"{letter}: {right[i]:.0%}" if is_right else f"{letter}, read as {test.classes[read[i]]}"
        colour = "black" if is_right else "#C04F00"
        axes.set_title(words, fontsize=8, loc="center", fontweight="normal", color=colour)
    note = "above, letters that are read rightly; below, the hardest of the test set; fonts that were never seen before"
    style.label_source(figure, "measured", note)
    return figure


@style.applied()
def text(words: str) -> Figure:
    """A text that the network made up, as it stands."""
    broken = style.in_lines(words, 100).splitlines()
    figure, (axes,) = style.new_figure(9.0, 0.14 * len(broken) + 0.5)
    axes.set_axis_off()
    axes.text(0, 1, "\n".join(broken), family="monospace", fontsize=8, va="top", parse_math=False)
    style.label_source(figure, "measured", "a text that the network made up, one character after the other")
    return figure
