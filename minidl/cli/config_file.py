"""`--config FILE`: options of a command from a YAML file, such as the config.json of a run, which is YAML too."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from minidl.arguments import one_of
from minidl.parallel.run.run_files import ENVIRONMENT

_EXPONENTIAL = re.compile(r"(?P<digits>[+-]?\d+)(?P<fraction>\.\d*)?[eE](?P<sign>[+-]?)(?P<exponent>\d+)", re.ASCII)


def read(path: Path, hints: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """The options in a file.

    Parameters
        hints   types of the command's options, by name
        known   names of those that a file may give; they may be written with hyphens

    Raises
        OSError     the file cannot be read
        ValueError  it is no YAML, or gives something that is no option, or a value of another type
    """
    import yaml  # here, since few runs need it

    from minidl.cli.value_types import fits, in_words

    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"--config {path} is no YAML file: {' '.join(str(error).split())}") from None
    if not isinstance(found, Mapping):
        raise ValueError(f"--config {path} must hold options by name, such as: nodes: 4")
    options = {}
    for key, value in found.items():
        if key == ENVIRONMENT:
            continue
        name = one_of(f"--config {path}: an option", str(key).replace("-", "_"), sorted(known))
        if name in options:
            raise ValueError(f"--config {path}: {name} is given twice, with a hyphen and with an underscore")
        if not fits(value, hints[name]):
            number = _as_yaml(value) if fits(0.5, hints[name]) else ""
            advice = f", which YAML reads as text: write {number}" if number else ""
            raise ValueError(f"--config {path}: {key} must be {in_words(hints[name])}, got {value!r}{advice}")
        options[name] = value
    return options


def _as_yaml(text: object) -> str:
    """How YAML 1.1 wants the number to be written: with a point, and a sign in its exponent; "" for anything else."""
    match = _EXPONENTIAL.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return ""
    return f"{match['digits']}{match['fraction'] or '.0'}e{match['sign'] or '+'}{match['exponent']}"
