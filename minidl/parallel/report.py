"""Report: what a training run brings back, and the folder it is kept in."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minidl.cluster.trace import Trace
from minidl.nn import Module
from minidl.parallel.checkpoint import CHECKPOINT_FILE, Checkpoint
from minidl.parallel.job import Job

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass
class Report:
    """The outcome of `parallel.train`.

    history: a row (dict) an epoch: epoch; loss (the mean over the training samples, each before the step that it helps
    to make); test_loss and accuracy (on the test set; accuracy is nan where the targets are no classes); seconds (since
    the start, the runs before `resume` included); samples_per_second; bytes (sent by rank 0); lr.
    seconds: of this run. trace: who computed, sent, received and waited. checkpoint: the last state.
    digests: a hash of every rank's weights; all equal after a synchronous strategy.
    """

    job: Job = field(repr=False)
    strategy: Any
    nodes: int
    history: list[dict[str, Any]]
    seconds: float
    trace: Trace = field(repr=False)
    checkpoint: Checkpoint = field(repr=False)
    digests: list[str] = field(repr=False)

    @property
    def accuracy(self) -> float:
        """On the test set, after the last epoch."""
        return float(self.history[-1]["accuracy"])

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
