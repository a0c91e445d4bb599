"""Values as text that is equal only if the values are: floats in hexadecimal, arrays as digests of their bytes."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import minidl
from minidl import Tensor
from minidl.cluster import Trace

LIBRARY = str(Path(minidl.__file__).parent)


def exact(value: Any) -> Any:
    """The value as JSON that differs if any bit of it does."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, (float, np.floating)):
        return f"{float(value).hex()} ({float(value):.6g})"
    if isinstance(value, Tensor):
        return {"tensor": exact(value.data), "gradient": exact(value.grad)}
    if isinstance(value, (np.ndarray, np.generic)):
        return digest(np.asarray(value))
    if isinstance(value, Mapping):
        return {str(key): exact(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [exact(item) for item in value]
    if dataclasses.is_dataclass(value):
        return {field.name: exact(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return without_addresses(repr(value))


def digest(array: np.ndarray) -> str:
    """Type, shape and a hash of the bytes in C order."""
    bits = np.ascontiguousarray(array).tobytes()
    return f"{array.dtype} {array.shape} {hashlib.sha256(bits).hexdigest()[:16]}"


def ledger(trace: Trace) -> list[dict[str, list[int]]]:
    """For each rank and operation: messages and bytes sent, messages and bytes received."""
    return [
        {name: [t.messages, t.nbytes, t.messages_received, t.nbytes_received] for name, t in sorted(rank.items())}
        for rank in trace.ledger()
    ]


def events(trace: Trace) -> dict[str, Any]:
    """How many events of each kind each rank has, and a digest of when each began and ended."""
    counts: dict[str, int] = {}
    for event in trace.events:
        name = f"rank {event.rank}: {event.kind}"
        counts[name] = counts.get(name, 0) + 1
    rows = [
        (e.rank, e.kind, float(e.start).hex(), float(e.end).hex(), e.nbytes, e.peer, e.operation) for e in trace.events
    ]
    return {"counts": counts, "dropped": trace.dropped, "digest": hashlib.sha256(repr(rows).encode()).hexdigest()[:16]}


def error(raised: BaseException) -> dict[str, str]:
    """The type and the text of an error, up to the tracebacks of ranks, which show lines of minidl."""
    text = str(raised).partition("\n\nTraceback of rank")[0]
    return {"error": type(raised).__name__, "text": without_addresses(text)}


def without_addresses(text: str) -> str:
    """Left out are memory addresses, process ids, the folders of files, and lines of minidl's own files."""
    text = re.sub(rf"{re.escape(LIBRARY)}/[\w./-]+(:\d+)?", "a file of minidl", text)
    text = re.sub(r"0x[0-9a-fA-F]{6,}", "0x…", text)
    text = re.sub(r"\b(process|pid)( |=)\d+", r"\1\2…", text)
    return re.sub(r"(?<![\w.])(/[\w.+-]+)+/(?=[\w.+-]+)", "…/", text)
