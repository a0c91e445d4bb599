"""A cluster as a TOML file, whose amounts have units, for `minidl plan`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from minidl.arguments import one_of
from minidl.cli.quantities import parse_bytes, parse_flops, parse_rate, parse_seconds
from minidl.parallel.planner import MACHINES, Machine


def _with_unit(parse: Callable[[str], float]) -> Callable[[Any], float]:
    def parsed(value: Any) -> float:
        if not (isinstance(value, str) and re.search(r"[^\W\d_]\s*(/s)?$", value)):
            raise ValueError("it has no unit")
        return parse(value)

    return parsed


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("it must be a number without quotes")
    return value


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("it must be a whole number without quotes")
    return value


KEYS: dict[str, tuple[str, Callable[[Any], Any], str]] = {
    "accelerators": ("accelerators", _whole, "4"),
    "peak": ("flops_per_s", _with_unit(parse_flops), '"165 TFLOP/s"'),
    "memory": ("memory", _with_unit(parse_bytes), '"24 GB"'),
    "memory_rate": ("memory_rate", _with_unit(parse_rate), '"1 TB/s"'),
    "inside": ("inside", _with_unit(parse_rate), '"32 GB/s"'),
    "between": ("between", _with_unit(parse_rate), '"25 Gbit/s"'),
    "inside_latency": ("inside_latency", _with_unit(parse_seconds), '"3 us"'),
    "between_latency": ("between_latency", _with_unit(parse_seconds), '"5 us"'),
    "nodes": ("nodes", _whole, "4"),
    "efficiency": ("efficiency", _number, "0.76"),
    "half": ("half", _number, "129.8"),
}
"""By key of the file: the setting of `Machine`, what reads its value, and an example."""

NEEDED = ("accelerators", "peak", "memory", "memory_rate", "inside", "between")


def machine(text: str) -> Machine:
    """The cluster of that name, or of that file.

    Raises
        OSError     the file cannot be read
        ValueError  it is no TOML, lacks a key, or has a value without a unit

    >>> machine("a100x8").accelerators
    8
    """
    path = Path(text)
    if path.suffix != ".toml":
        return MACHINES[one_of("--cluster", text, MACHINES, hint="or give a file like cluster.toml")]
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no TOML file: {error}") from None
    settings = {}
    for key, value in found.items():
        setting, parse, example = KEYS[one_of(f"a key of {path}", key, KEYS)]
        try:
            settings[setting] = parse(value)
        except ValueError as error:
            raise ValueError(f"{path}: {key} = {value!r}: {error}; write it as {key} = {example}") from None
    for key in NEEDED:
        if key not in found:
            raise ValueError(f"{path} lacks the key {key}: add a line such as {key} = {KEYS[key][2]}")
    return Machine(**settings)
