"""The events of a player's page, read back from its bytes: what player.js does, in Python."""

from __future__ import annotations

import base64
import io
import json
import re
import zlib
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

import numpy as np

from minidl.plots.player.columns import COLUMNS, HOST, NOBODY, Played


def script(page: str, kind: str) -> str:
    """The content of the one script of that kind: an id, or "module"."""
    [text] = re.findall(rf'<script [^>]*(?:id|type)="{kind}">(.*?)</script>', page, re.DOTALL)
    return text  # type: ignore[no-any-return]


def meta_of(page: str) -> dict[str, Any]:
    return json.loads(script(page, "meta"))  # type: ignore[no-any-return]


def runs_of(page: str) -> list[tuple[list[Played], list[tuple[int, int, float, float]]]]:
    """For each run: its events, row by row, and the critical path as (rank, lane, start, end)."""
    meta, found = meta_of(page), []
    stream = io.BytesIO(zlib.decompress(base64.b64decode(script(page, "events"))))
    for run in meta["runs"]:
        counts = [sum(run["tracks"])] * len(COLUMNS) + [run["path"]] * 3
        columns = [
            np.frombuffer(stream.read(width * count), {1: "<i1", 2: "<i2", 4: "<i4", 8: "<f8"}[width]).tolist()
            for width, count in zip(run["widths"], counts, strict=True)
        ]
        row, start, end = map(accumulate, columns[len(COLUMNS) :])
        places = [
            (*run["rows"][int(row)][:2], start * run["tick"], end * run["tick"])
            for row, start, end in zip(row, start, end, strict=True)
        ]
        found.append((list(events_of(meta, run, list(zip(*columns[: len(COLUMNS)], strict=True)))), places))
    assert stream.read() == b""
    return found


def events_of(meta: dict[str, Any], run: dict[str, Any], events: list[tuple[int, ...]]) -> Iterator[Played]:
    strings, tick, rows, counts = meta["strings"], run["tick"], run["rows"], run["tracks"]
    ends = list(accumulate(counts))
    first = list(accumulate((counts[track] for _, _, track, _ in rows), initial=0))  # event of each row
    for number, (rank, lane, track, _) in enumerate(rows):
        before = 0
        for i, values in enumerate(events[ends[track] - counts[track] : ends[track]]):
            gap, duration, kind, label, operation, axis, call, nbytes, peer, row, cause, ready = values
            start = before + gap
            before = start + duration
            whom = {0: NOBODY, 1: HOST}.get(peer, (rank + peer - 2) % run["ranks"])
            other = first[(number + row - 1) % len(rows)] + i + cause if row else -1
            yield Played(
                rank, meta["kinds"][kind]["name"], start * tick, before * tick, int(nbytes), whom, strings[label],
                strings[operation], call, lane, strings[axis], other, (start + ready) * tick,
            )  # fmt: skip
