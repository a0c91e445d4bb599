"""The student's copies of the lectures, `work/NAME.ipynb`: without outputs, so that a guess comes before its answer.

`notebooks/` keeps the lectures with their outputs. A copy stands one folder below the clone's root, as the lecture
does, so its links lead to the same places, and those between lectures lead from copy to copy.
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from course import whole_file
from course.chapters import LECTURES

SOURCES = "copied_sources"
"""In the metadata of a copy: the hash of its cells when it was made."""


def copy_lectures(root: Path) -> list[str]:
    """Make the copies that are missing, and refresh those of which the reader changed no cell. Report in sentences.

    A copy with changed cells stays as it is. A copy that was run, but not changed, is refreshed once the lecture
    changes.
    """
    made, refreshed, kept, damaged = [], [], [], []
    for lecture in sorted((root / LECTURES).glob("*.ipynb")):
        try:
            content = json.loads(lecture.read_bytes())
        except ValueError:
            damaged.append(lecture)
            continue
        copy = copy_of(lecture, root)
        if not copy.exists():
            whole_file.create(copy, without_outputs(content))
            made.append(copy)
            continue
        before, now, yours = hashes(copy, content)
        if before == now:
            continue
        if before is not None and yours == before:
            whole_file.replace(copy, without_outputs(content))
            refreshed.append(copy)
        else:
            kept.append(copy)
    sentences = []
    if made:
        sentences.append(f"Copies of the lectures, without outputs and yours to change, are in work/: {listed(made)}.")
    if refreshed:
        sentences.append(
            f"These lectures have changed; your copies, in which you had changed nothing, too: {listed(refreshed)}."
        )
    if kept:
        sentences.append(
            f"These lectures have changed; your copies, which you had changed, are kept: {listed(kept)}. "
            "Move a copy away to get the new one."
        )
    if damaged:
        sentences.append(f"Damaged, and not copied: {listed(damaged)}. `git checkout notebooks` brings them back.")
    return sentences


def copy_of(lecture: Path, root: Path) -> Path:
    """Where the copy of a lecture is."""
    return root / "work" / lecture.name


def hashes(copy: Path, lecture: dict[str, Any]) -> tuple[str | None, str, str]:
    """Of the cells: the hash when the copy was made (None if that is not known), the lecture's, and the copy's."""
    try:
        yours = json.loads(copy.read_bytes())
        before = yours["metadata"]["minidl"][SOURCES]
        return before, hash_of(lecture), hash_of(yours)
    except (ValueError, KeyError, TypeError):
        return None, hash_of(lecture), ""


def hash_of(notebook: dict[str, Any]) -> str:
    """The hash of a notebook's cells, without outputs."""
    cells = [(cell["cell_type"], "".join(cell["source"])) for cell in notebook["cells"]]
    return sha256(json.dumps(cells).encode()).hexdigest()


def without_outputs(lecture: dict[str, Any]) -> bytes:
    """A copy of the lecture with empty outputs, which remembers what it is a copy of."""
    cells = [
        {**cell, "outputs": [], "execution_count": None} if cell["cell_type"] == "code" else cell
        for cell in lecture["cells"]
    ]
    own = {**lecture["metadata"].get("minidl", {}), SOURCES: hash_of(lecture)}
    copy = {**lecture, "cells": cells, "metadata": {**lecture["metadata"], "minidl": own}}
    return (json.dumps(copy, indent=1, ensure_ascii=False) + "\n").encode()


def listed(copies: list[Path]) -> str:
    """The names of notebooks: up to four, or how many."""
    return ", ".join(copy.stem for copy in copies) if len(copies) <= 4 else f"{len(copies)} notebooks"
