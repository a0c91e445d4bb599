"""Runs in one checkout: `python -m same_behaviour.recording GROUP FILE` writes what the cases of a group give."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import minidl

from .exact import error, exact

Case = tuple[str, Callable[[], Any]]


def recorded(cases: Iterator[Case]) -> dict[str, Any]:
    """What each case returns, by its name; an exception is a result too."""
    results: dict[str, Any] = {}
    for name, function in cases:
        if name in results:
            raise ValueError(f"two cases are called {name!r}")
        try:
            results[name] = exact(function())
        except Exception as raised:
            results[name] = error(raised)
    return results


def main() -> None:
    group, file = sys.argv[1:]
    began = time.monotonic()
    results = recorded(import_module(f"same_behaviour.{group}").cases())
    record = {"minidl": str(Path(minidl.__file__).parent.parent), "results": results}
    Path(file).write_text(json.dumps({**record, "seconds": time.monotonic() - began}))


if __name__ == "__main__":
    main()
