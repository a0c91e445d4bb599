"""Learning curves: the numbers that were given, against epochs and against time."""

import subprocess
import sys

import numpy as np

from minidl.plots import curves


def test_loss_and_accuracy_are_drawn_against_epochs_and_seconds() -> None:
    rows = [{"epoch": i + 1, "seconds": 0.5 * (i + 1), "loss": 2.0 / (i + 1), "accuracy": 0.2 * i} for i in range(5)]
    figure = curves.draw(rows, source="measured", title="a title")
    lines = [line for axes in figure.axes for line in axes.get_lines()]
    drawn = {(tuple(np.round(line.get_xdata(), 6)), tuple(np.round(line.get_ydata(), 6))) for line in lines}
    epochs, seconds = (tuple(row[key] for row in rows) for key in ("epoch", "seconds"))
    loss = tuple(np.round([row["loss"] for row in rows], 6))
    percent = tuple(np.round([100 * row["accuracy"] for row in rows], 6))
    assert drawn == {(epochs, loss), (epochs, percent), (seconds, loss), (seconds, percent)}
    assert figure.get_supxlabel() == "measured"
    assert [axes.spines["right"].get_visible() for axes in figure.axes] == [False, False, True, True]
    assert [axes.get_ylim()[0] for axes in figure.axes[:2]] == [0, 0]


def test_drawing_a_single_epoch_too_needs_no_pyplot_and_changes_no_settings() -> None:
    source = """
import sys, matplotlib
def settings(): return {key: matplotlib.rcParams[key] for key in matplotlib.rcParams if key != "backend"}
before = settings()
from minidl.plots import curves
row = {"epoch": 1, "seconds": 1, "loss": 1, "accuracy": 1}
curves.draw([row], source="measured").savefig("/dev/null", format="png")
print("matplotlib.pyplot" in sys.modules, settings() == before)
"""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert done.stdout == "False True\n"
