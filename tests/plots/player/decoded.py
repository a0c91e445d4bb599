"""The events of a player's page, read back from its bytes: what player.js does, in Python."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from minidl.plots.player.columns import COLUMNS, HOST, NOBODY

SIGNED = ("gap", "cause", "ready")


class Read(NamedTuple):
    """An event as the page has it; `cause` is (rank, lane, number in its row), or None."""

    rank: int
    lane: int
    kind: str
    start: float
    end: float
    nbytes: int
    peer: int
    label: str
    operation: str
    call: int
    axis: str
    ready: float
    cause: tuple[int, int, int] | None


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


def runs_of(page: str) -> list[tuple[list[Read], list[tuple[int, int, float, float]]]]:
    """For each run: its events, row by row, and the critical path as (rank, lane, start, end)."""
    meta = meta_of(page)
    stream = numbers(zlib.decompress(base64.b64decode(script(page, "events"))))
    found = []
    for run in meta["runs"]:
        tracks = [{name: [next(stream) for _ in range(count)] for name in COLUMNS} for count in run["tracks"]]
        path = [accumulated([signed(next(stream)) for _ in range(run["path"])]) for _ in range(3 if run["path"] else 0)]
        places = [(run["rows"][row][:2], start, end) for row, start, end in zip(*path, strict=True)] if path else []
        events = [event for row in range(len(run["rows"])) for event in row_of(meta, run, tracks, row)]
        found.append((events, [(*place, start * run["tick"], end * run["tick"]) for place, start, end in places]))
    assert next(stream, None) is None
    return found


def row_of(meta: dict[str, Any], run: dict[str, Any], tracks: list[dict[str, list[int]]], row: int) -> Iterator[Read]:
    rank, lane, track, _ = run["rows"][row]
    before, tick = 0, run["tick"]
    for i, values in enumerate(zip(*tracks[track].values(), strict=True)):
        one = dict(zip(COLUMNS, values, strict=True)) | {n: signed(tracks[track][n][i]) for n in SIGNED}
        start = before + one["gap"]
        before = start + one["duration"]
        peer = {0: NOBODY, 1: HOST}.get(one["peer"], (rank + one["peer"] - 2) % run["ranks"])
        label, operation, axis = (meta["strings"][one[name]] for name in ("label", "operation", "axis"))
        other = run["rows"][(row + one["cause row"] - 1) % len(run["rows"])]
        cause = (other[0], other[1], i + one["cause"]) if one["cause row"] else None
        yield Read(
            rank, lane, meta["kinds"][one["kind"]]["name"], start * tick, before * tick, one["bytes"], peer,
            label, operation, one["call"], axis, (start + one["ready"]) * tick, cause,
        )  # fmt: skip


def signed(number: int) -> int:
    return number >> 1 ^ -(number & 1)


def accumulated(differences: list[int]) -> list[int]:
    return [sum(differences[: i + 1]) for i in range(len(differences))]
