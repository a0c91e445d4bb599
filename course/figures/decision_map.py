"""The class that a classifier gives to every point of a plane, with the labelled points on top."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from minidl.plots import style

Points = npt.NDArray[Any]
SIDE = 120  # grid points per side
TINT = "#D9E8F2"


@style.applied()
def draw(classifiers: Mapping[str, Callable[[Points], Points]], corners: Points, classes: Points) -> Figure:
    """Draw one map per classifier: tinted where it answers 1, with the labelled corners on top.

    classifiers: by title, a function from points, (m, 2) in float32, to m classes, 0 or 1.
    corners: the labelled points, (k, 2).
    classes: their k classes, 0 or 1.

    >>> line = lambda points: points.sum(axis=1) > 0.5
    >>> figure = draw({"one unit": line}, np.array([[0, 0], [1, 0]]), np.array([0, 1]))
    """
    first, second = np.linspace(corners.min(axis=0) - 0.4, corners.max(axis=0) + 0.4, SIDE, axis=1)
    plane = np.stack([axis.reshape(-1) for axis in np.meshgrid(first, second)], axis=1).astype(np.float32)
    figure, panels = style.new_figure(3.2 * len(classifiers) + 1.2, 3.2, columns=len(classifiers), sharey=True)
    for axes, (title, answer) in zip(panels, classifiers.items(), strict=True):
        answers = np.reshape(answer(plane), (SIDE, SIDE))
        axes.contourf(first, second, answers, [-1, 0.5, 2], colors=["white", TINT])
        for value, marker in ((0, "o"), (1, "s")):
            chosen = corners[classes == value]
            axes.plot(*chosen.T, marker, color=style.SERIES[value], markersize=9, label=f"should be {value}")
        axes.set(title=title, xlabel="input 1", aspect="equal", xticks=[0, 1], yticks=[0, 1])
    panels[0].set_ylabel("input 2")
    panels[-1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)
    style.label_source(figure, "measured", "tinted: answered 1")
    return figure
