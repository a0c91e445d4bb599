"""Player: runs as one HTML page of its own, which needs no other file, no library and no network."""

from __future__ import annotations

import base64
import json
import os
import zlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path

from minidl.atomic_files import written_whole
from minidl.plots import style
from minidl.plots.player.columns import Run, pack

MOST_IN_A_CELL = 3_000_000
"""Characters of a page that a notebook embeds; a larger one would make the notebook slow to open and to save."""

MOST_ROWS = 64
"""Rows of the table in words."""

MARKS = {"compute": "■", "send": "▲", "receive": "▼", "reduce": "∑", "wait": "·", "fault": "✕"}
"""Before the text of an activity, because colour must not be the only difference."""

DARK = {
    "compute": "#3D8FD1", "send": "#E8743B", "receive": "#F5C451", "reduce": "#3FBF93", "wait": "#3B424C",
    "forward": "#3D8FD1", "backward": "#3FBF93", "backward for the inputs": "#F5C451",
    "backward for the weights": "#E8743B", "update": "#D98FB8", "fault": "#D98FB8",
}  # fmt: skip
"""The hues of `style.ACTIVITY` and `style.PIPELINE`, lighter, for a dark page."""

ACTIVITIES = {**style.ACTIVITY, "fault": style.FAULT}
ACTIONS = {kind: colour for kind, colour in style.PIPELINE.items() if kind != "idle"}


@dataclass(frozen=True)
class Player:
    """Runs to be played in a browser; in JupyterLab, a cell whose value it is shows it.

    Parameters
        runs    one or several, one above the other on one time axis, of one unit of time
        title   heading of the page
        kinds   colour of each kind of event

    Raises
        ValueError  there is no run, or the runs have different units; an event has an impossible time or rank

    >>> from minidl.plots.player.columns import Played
    >>> events = [Played(0, "compute", 0.0, 1.5, label="forward"), Played(1, "wait", 0.0, 1.5, cause=0)]
    >>> player = Player([Run(events, ranks=2, source="simulated")], title="Two ranks")
    >>> player.html.startswith("<!doctype html>")
    True
    """

    runs: Sequence[Run] = field(repr=False)
    title: str = ""
    kinds: Mapping[str, str] = field(default_factory=lambda: ACTIVITIES, repr=False)

    def __repr__(self) -> str:
        ranks, events = sum(run.ranks for run in self.runs), sum(len(run.events) for run in self.runs)
        sources = " and ".join(dict.fromkeys(run.source for run in self.runs))
        return f"<Player: {ranks:,} {self.runs[0].row}{'s' * (ranks != 1)}, {events:,} events, {sources}>"

    def __post_init__(self) -> None:
        if len(units := {run.unit for run in self.runs}) != 1:
            raise ValueError(f"a player has runs of one unit of time, got {sorted(units) or 'no run'}")

    @cached_property
    def html(self) -> str:
        """The page; the same runs give the same text."""
        strings: dict[str, int] = {"": 0}
        index = {kind: number for number, kind in enumerate(self.kinds)}
        packed = [pack(run, index, strings) for run in self.runs]
        look = [
            {"name": kind, "light": colour, "dark": DARK[kind], "mark": MARKS.get(kind, "")}
            for kind, colour in self.kinds.items()
        ]
        described = {"kinds": look, "strings": list(strings), "runs": [run for run, _ in packed]}
        events = zlib.compress(b"".join(blob for _, blobs in packed for blob in blobs))
        parts = {
            "TITLE": escape(self.title or "A run of minidl"),
            "WORDS": "\n".join(map(self._in_words, self.runs)),
            "STYLE": _file("player.css"),
            "META": json.dumps(described, separators=(",", ":")).replace("<", "\\u003c"),
            "EVENTS": base64.b64encode(events).decode(),
            "SCRIPT": _file("player.js"),
        }
        first, *rest = _file("player.html").split("{{")
        return first + "".join(parts[name] + text for name, text in (part.split("}}", 1) for part in rest))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page into a file."""
        with written_whole(Path(path)) as file:
            file.write(self.html.encode(errors="replace"))

    def _repr_html_(self) -> str:
        """The page in a frame of its own, so that its script and the notebook cannot touch each other."""
        if len(self.html) > MOST_IN_A_CELL:
            return (
                f"<p>This player has {len(self.html) / 1e6:.1f} MB, more than a notebook should hold: write it into a "
                "file by <code>.save('run.html')</code>, or show a shorter time.</p>"
            )
        rows = sum(run.ranks for run in self.runs)
        page = escape(self.html, quote=True)
        tall = f"calc({min(360 + 56 * rows, 760)}px + clamp(0px,300px - 30vw,190px))"  # a phone has more lines of tools
        frame = f"width:100%;height:{tall};border:0"
        return f'<iframe srcdoc="{page}" title="{escape(self.title)}" sandbox="allow-scripts" style="{frame}"></iframe>'

    def _in_words(self, run: Run) -> str:
        """What the picture shows, for readers who do not see it: the share of each kind in the time of each rank."""
        kinds = [kind for kind in self.kinds if kind != "fault"]
        spent: defaultdict[tuple[int, str], float] = defaultdict(float)
        sent: Counter[int] = Counter()
        for event in run.events:
            if event.lane == 0:
                spent[event.rank, event.kind] += event.end - event.start
            if event.kind == "send":
                sent[event.rank] += event.nbytes
        end = max((event.end for event in run.events), default=0.0)
        lasts = style.seconds_text(end) if run.unit == "s" else f"{end:g} {run.unit}"
        notes = f"{run.ranks:,} {run.row}{'s' * (run.ranks != 1)}, {len(run.events):,} events, {lasts}, {run.source}"
        lines = [f"<h2>{escape(run.title)}</h2>"] if run.title else []
        lines += [f"<p>{escape('; '.join(filter(None, [notes, run.note])))}.</p>"]
        lines += [f"<pre>{escape(run.summary)}</pre>"] if run.summary else []
        head = [run.row, *kinds, *(["sent"] if sent else [])]
        lines += ["<table><tr>", *(f"<th scope=col>{escape(cell)}</th>" for cell in head), "</tr>"]
        for rank in range(min(run.ranks, MOST_ROWS)):
            seconds = [spent[rank, kind] for kind in kinds]
            whole = (sum(seconds) if "wait" in kinds else end) or 1.0  # a rank may end before the run
            cells = [f"{each / whole:.1%}" for each in seconds] + [style.bytes_text(sent[rank])] * bool(sent)
            lines += [f"<tr><th scope=row>{rank}</th>", *(f"<td>{cell}</td>" for cell in cells), "</tr>"]
        lines.append("</table>")
        if run.ranks > MOST_ROWS:
            lines.append(f"<p>The first {MOST_ROWS} of {run.ranks:,} {run.row}s.</p>")
        return "".join(lines)


def _file(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
