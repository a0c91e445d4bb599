"""Report: what a training run brings back, and the folder it is kept in."""

from __future__ import annotations

import csv
import json
from collections import Counter
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minidl.cluster.diagnosis.errors import ClusterError
from minidl.cluster.trace.trace import Trace
from minidl.nn import Module
from minidl.parallel.job import Job
from minidl.parallel.run.checkpoint import CHECKPOINT_FILE, Checkpoint
from minidl.parallel.run.rank_record import RankRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass
class Report:
    """The outcome of `parallel.train`.

    history: a row (dict) an epoch: epoch; loss (the mean over the training samples, each before the step that it helps
    to make); test_loss and accuracy (on the test set; accuracy is nan where the targets are no classes); seconds (of
    training up to then, those before `resume` included, evaluation not); samples_per_second; bytes (sent by rank 0);
    lr; steps (updates of the weights); samples (processed by all nodes). Where nodes do not stop to be judged (with a
    parameter server, or local weights), the rows are made after the run, of the weights at each epoch's end.
    nodes: those that train; the ranks of servers come after theirs. seconds: of this run, all included. trace: who
    computed, sent, received and waited. checkpoint: the last state. failures: with `on_failure="continue"`, what
    happened to each rank that failed.
    """

    job: Job = field(repr=False)
    strategy: Any
    nodes: int
    history: list[dict[str, Any]]
    seconds: float
    trace: Trace = field(repr=False)
    checkpoint: Checkpoint = field(repr=False)
    results: list[RankRecord | None] = field(repr=False)
    failures: dict[int, ClusterError] = field(default_factory=dict)

    @property
    def accuracy(self) -> float:
        """On the test set, after the last epoch."""
        return float(self.history[-1]["accuracy"])

    @property
    def digests(self) -> list[str]:
        """A hash of every node's weights; all equal after a synchronous strategy."""
        return [result.digest for result in self.results[: self.nodes] if result is not None]

    @property
    def recorded(self) -> dict[str, list[list[Any]]]:
        """What the ranks of the strategy have recorded: under its name, a list for each rank."""
        names = sorted({name for result in self.results if result is not None for name in result.recorded})
        return {name: [[] if r is None else r.recorded.get(name, []) for r in self.results] for name in names}

    @property
    def staleness(self) -> Counter[int]:
        """How many gradients were applied that were so many updates old; empty where none can be."""
        return Counter(chain.from_iterable(self.recorded.get("staleness", ())))

    def model(self) -> Module:
        """The trained model."""
        model = self.job.build_model()
        model.load_state_dict(self.checkpoint.model)
        return model

    def timeline(self, path: str | Path | None = None, steps: int = 3) -> Figure:
        """The Gantt picture of `steps` steps in a row, saved to `path` if given.

        Of all such spans in the trace the one of median length is shown.
        """
        begins = [e.start for e in self.trace.events if e.rank == 0 and e.kind == "compute" and e.label == "forward"]
        spans = sorted(zip(begins, begins[steps:], strict=False), key=lambda span: span[1] - span[0])
        start, end = spans[len(spans) // 2] if spans else (0.0, None)
        title = f"{steps if spans else len(begins)} steps on {self.nodes} node{'s' * (self.nodes > 1)}"
        return self.trace.plot(path, start, end, title)

    def curves(self, path: str | Path | None = None) -> Figure:
        """Loss and accuracy against epochs and seconds; saved to `path` if given."""
        from minidl.plots import curves

        figure = curves.draw(self.history, source=self.trace.source)
        if path is not None:
            figure.savefig(path)
        return figure

    def save(self, folder: str | Path) -> Path:
        """Write config.json, metrics.csv, trace.json (opens in Perfetto), loss.png, timeline.png and checkpoint.npz.

        Errors: OSError if the folder cannot be written.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps(self.checkpoint.config, indent=2) + "\n")
        with (folder / "metrics.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(self.history[0]))
            writer.writeheader()
            writer.writerows(self.history)
        self.checkpoint.save(folder / CHECKPOINT_FILE)
        self.trace.to_chrome(folder / "trace.json")
        self.curves(folder / "loss.png")
        self.timeline(folder / "timeline.png")
        return folder
