"""The events of a player's page, read back from its bytes: what player.js does, in Python."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from minidl.plots.player.columns import COLUMNS, HOST, NOBODY, Played


def script(page: str, kind: str) -> str:
    """The content of the one script of that kind: an id, or "module"."""
    [text] = re.findall(rf'<script [^>]*(?:id|type)="{kind}">(.*?)</script>', page, re.DOTALL)
    return text  # type: ignore[no-any-return]


def meta_of(page: str) -> dict[str, Any]:
    return json.loads(script(page, "meta"))  # type: ignore[no-any-return]


def numbers(data: bytes) -> Iterator[int]:
    value = shift = 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield value
            value = shift = 0


def runs_of(page: str) -> list[tuple[list[Played], list[tuple[int, int, float, float]]]]:
    """For each run: its events, row by row, and the critical path as (rank, lane, start, end)."""
    meta, found = meta_of(page), []
    stream = numbers(zlib.decompress(base64.b64decode(script(page, "events"))))
    for run in meta["runs"]:
        tracks = [[[next(stream) for _ in range(count)] for _ in COLUMNS] for count in run["tracks"]]
        path = [accumulate(signed(next(stream)) for _ in range(run["path"])) for _ in range(3)]
        places = [
            (*run["rows"][row][:2], start * run["tick"], end * run["tick"])
            for row, start, end in zip(*map(list, path), strict=True)
        ]
        found.append((list(events_of(meta, run, tracks)), places))
    assert next(stream, None) is None
    return found


def events_of(meta: dict[str, Any], run: dict[str, Any], tracks: list[list[list[int]]]) -> Iterator[Played]:
    strings, tick, rows = meta["strings"], run["tick"], run["rows"]
    first = list(accumulate((run["tracks"][track] for _, _, track, _ in rows), initial=0))  # event of each row
    for number, (rank, lane, track, _) in enumerate(rows):
        before = 0
        for i, values in enumerate(zip(*tracks[track], strict=True)):
            gap, duration, kind, label, operation, axis, call, nbytes, peer, row, cause, ready = values
            start = before + signed(gap)
            before = start + duration
            whom = {0: NOBODY, 1: HOST}.get(peer, (rank + peer - 2) % run["ranks"])
            other = first[(number + row - 1) % len(rows)] + i + signed(cause) if row else -1
            yield Played(
                rank, meta["kinds"][kind]["name"], start * tick, before * tick, nbytes, whom, strings[label],
                strings[operation], call, lane, strings[axis], other, (start + signed(ready)) * tick,
            )  # fmt: skip


def signed(number: int) -> int:
    return number >> 1 ^ -(number & 1)
