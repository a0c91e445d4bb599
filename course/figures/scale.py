"""How large published models are, and on how many processors they were trained: each number with its source."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from minidl import nn
from minidl.parallel.planner.published import ROWS
from minidl.plots import style

DAY = 86400  # seconds
TOKENS = 300e9  # of the run of 175 billion parameters in Narayanan et al.
RATE = 140e12  # operations a second of one A100 in that run
CARD = 80e9  # bytes of an A100
STATE = 16  # bytes a parameter while Adam trains in mixed precision (Rajbhandari et al., arXiv:1910.02054)


class Model(NamedTuple):
    """A model: its year, name, parameters, processors (None: not stated), and the source with its number at arXiv."""

    year: int
    name: str
    parameters: float
    processors: int | None
    source: str


def _counted(model: nn.Module | partial[nn.Module] | type[nn.Module]) -> int:
    return nn.count(model, (1, 3, 224, 224)).parameters


def models() -> list[Model]:
    """The models that the sources name, and the largest of each source of the planner, by year."""
    return [
        Model(2012, "AlexNet", _counted(nn.models.AlexNet), 2, "Krizhevsky et al., 2012; parameters counted"),
        Model(2012, "DistBelief", 1.7e9, None, "Dean et al., 2012"),
        Model(2014, "VGG-16", _counted(nn.models.VGG16), None, "Simonyan and Zisserman, 2014; parameters counted"),
        Model(2015, "ResNet-50", _counted(partial(nn.models.ResNet, 50)), 256, "counted; Goyal et al., 1706.02677"),
        Model(2018, "GPipe", 83.9e9, 128, "Huang et al., 1811.06965"),
        Model(2019, "Megatron-LM", 8.3e9, 512, "Shoeybi et al., 1909.08053"),
        Model(2019, "ZeRO", 100e9, 400, "Rajbhandari et al., 1910.02054"),
        *(_largest(year, *each) for year, *each in (
            (2021, "Narayanan", "Narayanan et al., 2104.04473, table 1"),
            (2022, "Korthikanti", "Korthikanti et al., 2205.05198, table 5"),
            (2022, "MT-NLG", "the README of llm-analysis, which quotes the paper"),
            (2023, "vTrain", "vTrain, 2312.12391, its repository"),
        )),
    ]  # fmt: skip


def _largest(year: int, source: str, cited: str) -> Model:
    rows = [row for row in ROWS if row.source == source]
    row = max(rows, key=lambda row: (row.model.parameters, row.arrangement.world))
    return Model(year, source, row.model.parameters, row.arrangement.world, cited)


def days(parameters: float, processors: int, tokens: float = TOKENS, rate: float = RATE) -> float:
    """Days of a training run with recomputation, 8 operations a token and parameter (Narayanan et al.).

    rate    operations a second that one processor reaches
    """
    return 8 * tokens * parameters / (processors * rate) / DAY


def memory(parameters: float, nbytes: int = 4) -> str:
    """The parameters' memory in MiB or GiB, by default with 4 bytes each."""
    mebibytes = parameters * nbytes / 2**20
    return f"{mebibytes:,.1f} MiB" if mebibytes < 2**10 else f"{mebibytes / 2**10:,.1f} GiB"


@style.applied()
def picture() -> Figure:
    """Parameters by year, and by processors beside two borders: of memory, and of a month's time."""
    figure, (by_year, by_processors) = style.new_figure(9.6, 4.0, columns=2, sharey=True)
    for model in models():
        by_year.plot(model.year, model.parameters, "o", color=style.SERIES[0])
        is_left = model.name in ("GPipe", "Narayanan")
        by_year.annotate(
            model.name, (model.year, model.parameters), fontsize=8, textcoords="offset points",
            xytext=(-6 if is_left else 6, -3), ha="right" if is_left else "left",
        )  # fmt: skip
    for tone, source in enumerate(dict.fromkeys(row.source for row in ROWS)):
        rows = [row for row in ROWS if row.source == source]
        x, y = [row.arrangement.world for row in rows], [row.model.parameters for row in rows]
        by_processors.plot(x, y, "osD^v"[tone], color=style.SERIES[tone], markersize=4.5, label=source)
    processors = np.geomspace(8, 8192, 2)
    by_processors.plot(processors, CARD * processors / STATE, "k-", label="16 bytes a parameter fill 80 GB")
    a_month = 30 * processors / days(1, 1)
    by_processors.plot(processors, a_month, "k--", label="300 billion tokens in 30 days on A100s")
    by_year.set(yscale="log", ylabel="parameters", xlim=(2011, 2026), xlabel="year")
    by_processors.set(xscale="log", xlabel="GPUs")
    by_processors.legend(fontsize=8, loc="lower right", frameon=True)
    for axes in (by_year, by_processors):
        axes.grid(color="0.92", linewidth=0.6)
    style.label_source(figure, "formula", "points: published")
    return figure
