"""The keys of a network's JSON file, by a person or `minidl calibrate`; `network.py` turns it into a Network."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from minidl.arguments import one_of
from minidl.atomic_files import written_whole

Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class LinkFields(_Strict):
    """A network card, an uplink, or any other link."""

    latency: Seconds
    bytes_per_second: Rate

    @classmethod
    def of(cls, link: tuple[float, float]) -> LinkFields:
        return cls(latency=link[0], bytes_per_second=link[1])

    def pair(self) -> tuple[float, float]:
        return self.latency, self.bytes_per_second


class FlatFields(_Strict):
    """A network in which every rank is connected to every other: seconds per message, per byte, per reduced byte."""

    alpha: Seconds
    beta: Seconds
    gamma: Seconds = 0.0
    measured: list[tuple[int, float]] = []  # bytes and seconds of messages, to which the network was fitted
    source: str = ""


class TreeFields(_Strict):
    """A network of racks under one core switch."""

    racks: Count
    per_rack: Count
    nic: LinkFields
    uplink: LinkFields
    gamma: Seconds = 0.0
    source: str = ""


class TopologyFields(_Strict):
    """A network whose links are all alike; `topology` as in `topologies/text.py`."""

    topology: str
    link: LinkFields
    gamma: Seconds = 0.0
    source: str = ""


Fields = FlatFields | TreeFields | TopologyFields


def read(path: str | Path) -> Fields:
    """Return the contents of a file.

    Raises
        OSError      the file cannot be read
        ValueError   it is no JSON, or has a key or a value that no network has
    """
    path = Path(path)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no JSON file: {error}") from None
    if not isinstance(found, Mapping):
        raise ValueError(f'{path} must hold one object, such as {{"alpha": 5e-5, "beta": 8e-9}}')
    fields: type[Fields] = TreeFields if {"racks", "nic", "uplink"} & found.keys() else FlatFields
    if "topology" in found:
        fields = TopologyFields
    try:
        return fields.model_validate_json(json.dumps(found))
    except ValidationError as error:
        raise ValueError(f"{path}: {_sentence(error, fields)}") from None


def write(fields: Fields, path: str | Path) -> None:
    """Write the file that `read` reads. Raises OSError if it cannot be written."""
    with written_whole(Path(path), "w", encoding="utf-8") as file:
        file.write(fields.model_dump_json(indent=2, exclude_defaults=True) + "\n")


def _sentence(error: ValidationError, fields: type[BaseModel]) -> str:
    """A sentence about the first error."""
    first = error.errors()[0]
    key = ".".join(map(str, first["loc"]))
    if first["type"] == "extra_forbidden":
        known: Any = LinkFields if "." in key else fields
        try:
            one_of("a key", str(first["loc"][-1]), known.model_fields)
        except ValueError as wrong:
            return str(wrong)
    if first["type"] == "missing":
        return f"the key {key} is missing"
    return f"{key}: {first['msg'].lower()}, got {first['input']!r}"
