"""Listed: a schedule given action by action, as text or in a CSV file, instead of by a rule.

The files have PyTorch's format: a row for each stage, a cell for each action, such as 0F0. PyTorch's
`_PipelineScheduleRuntime._load_csv(file, format="compute_only")` reads rows of F, B, I and W, without updates:
`write_csv` leaves out those at the end of a synchronous schedule, and `read_csv` adds them. `read_csv` also reads what
PyTorch has written with `_dump_csv` since 2024:

    0F0,,0B0              an empty cell, where a stage waits, is skipped
    0SEND_F0              communication is skipped, for it follows from the other actions
    (0F7;7B3)OVERLAP_F_B  two actions of DualPipeV that PyTorch may overlap; here the first is computed first
    0B0,0W0,1BW0          the letters of 2024 for I, W and B, known by a file that has W or BW but no I

Cells may be separated by commas, semicolons, tabs or spaces, and may have quotation marks.
"""

from __future__ import annotations

import csv
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from minidl.parallel.pipeline.action import Action
from minidl.parallel.pipeline.schedule import Schedule, ScheduleError
from minidl.parallel.pipeline.validation import validate


@dataclass(frozen=True)
class Listed(Schedule):
    """A schedule given action by action: `lines[stage]` are a stage's actions, `places[chunk]` is a chunk's stage.

    It is asynchronous if a chunk has several updates: then each micro-batch has an update of its own.

    Raises
        ValueError  another number of lines than of stages, or of places than of chunks

    >>> from minidl.parallel import pipeline
    >>> listed = Listed.read(["F0 F1 B0 B1 U0", "F0 B0 F1 B1 U0"])
    >>> str(listed) == str(pipeline.OneFOneB(stages=2, micro_batches=2))
    True
    """

    lines: Sequence[Sequence[Action]] = field(default=(), kw_only=True)
    places: Sequence[int] = field(default=(), kw_only=True)

    name: ClassVar[str] = "listed"
    chunks_needed: ClassVar[int | None] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, each, count in (("lines", "stage", self.stages), ("places", "chunk", self.chunks)):
            if len(getattr(self, name)) != count:
                raise ValueError(
                    f"Listed: {name} must have one for each {each}, {count}, got {len(getattr(self, name))}: "
                    "use Listed.read"
                )
        updates = {action for line in self.lines for action in line if action.kind == "U"}
        object.__setattr__(self, "is_asynchronous", len(updates) > len({action.chunk for action in updates}))

    @classmethod
    def read(cls, lines: Sequence[str]) -> Listed:
        """Parse a schedule: `lines[stage]` has the stage's actions, separated by spaces or commas.

        Raises ValueError for a text that is not an action, and for stages with different numbers of chunks.
        """
        if not lines:
            raise ScheduleError("a schedule has a line for each stage, got none")
        parsed = [
            [Action.parse(text, chunk=stage) for text in line.replace(",", " ").split()]
            for stage, line in enumerate(lines)
        ]
        places = _places(parsed)
        held = Counter(places)
        for stage in range(len(parsed)):
            if not held[stage]:
                raise ScheduleError(f"stage {stage} has no action")
            if held[stage] != held[0]:
                raise ScheduleError(
                    f"stage {stage} and stage 0 have different numbers of chunks, {held[stage]} and {held[0]}: give "
                    "each stage the same number"
                )
        return cls(len(lines), _micro_batches(parsed, len(places)), held[0], lines=parsed, places=places)

    def place(self, chunk: int) -> int:
        return self.places[chunk]

    def actions(self, stage: int) -> Iterator[Action]:
        return iter(self.lines[stage])


def _places(parsed: Sequence[Sequence[Action]]) -> list[int]:
    """The stage of each chunk: the one whose line has most of its actions."""
    counts: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for stage, actions in enumerate(parsed):
        for action in actions:
            counts[action.chunk][stage] += 1
    for stage, actions in enumerate(parsed):
        for action in actions:
            if (place := counts[action.chunk].most_common(1)[0][0]) != stage:
                raise ScheduleError(
                    f"stage {stage}: {action} is on the wrong stage, since stage {place} has chunk {action.chunk}: "
                    "write a chunk on one line only"
                )
    missing = next((chunk for chunk in range(len(counts)) if chunk not in counts), None)
    if missing is not None:
        raise ScheduleError(f"no stage has an action of chunk {missing}, but one of chunk {max(counts)}")
    return [next(iter(counts[chunk])) for chunk in range(len(counts))]


def _micro_batches(parsed: Sequence[Sequence[Action]], chunks: int) -> int:
    """The number of micro-batches, found so that a typo in one action does not change it.

    A micro-batch counts if at least half of its forwards and backwards exist, and half of the micro-batches before it.
    """
    present: defaultdict[int, set[tuple[int, bool]]] = defaultdict(set)
    for actions in parsed:
        for action in actions:
            if action.kind != "U":
                present[action.micro_batch].add((action.chunk, action.kind == "F"))
    counted = (m for m, found in present.items() if len(found) >= chunks and m < 2 * len(present))
    return max(counted, default=0) + 1


_MESSAGE = r"[0-9]+(SEND_F|RECV_F|SEND_B|RECV_B|UNSHARD|RESHARD|REDUCE_GRAD)[0-9]*"
COMMUNICATION = re.compile(rf"{_MESSAGE}(_{_MESSAGE})?")
"""PyTorch's names of actions that compute nothing; in 2024 it wrote two at once, such as 0SEND_F1_1RECV_B0."""

OVERLAPPED = re.compile(r"\(([^()]*)\)OVERLAP_F_B")

OF_2024 = {"BW": "B", "B": "I"}


def write_csv(schedule: Schedule, path: str | Path) -> None:
    """Write a schedule; the updates are left out unless the schedule is asynchronous.

    Raises
        OSError  the file cannot be written
    """
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        for stage in range(schedule.stages):
            actions = schedule.actions(stage)
            writer.writerow([str(each) for each in actions if schedule.is_asynchronous or each.kind != "U"])


def read_csv(path: str | Path) -> Listed:
    """Read a schedule and validate it; a file without updates gets one for each chunk, at the end.

    Raises
        OSError        the file cannot be read
        ScheduleError  the file is no text in UTF-8, or has a cell that is no action, or a schedule that cannot be
                       executed; the message names the file
    """
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError:
        raise ScheduleError(f"{path}: no text in UTF-8: write a row for each stage, such as 0F0,0B0") from None
    try:
        listed = Listed.read(_rows(lines))
        if not any(action.kind == "U" for line in listed.lines for action in line):
            with_updates = [(*line, *listed.updates(stage)) for stage, line in enumerate(listed.lines)]
            listed = replace(listed, lines=tuple(with_updates))
        validate(listed)
    except ValueError as error:
        raise ScheduleError(f"{path}: {error}") from None
    return listed


def _rows(lines: Sequence[str]) -> list[str]:
    """The lines of a file that have cells, with the actions alone, in today's letters."""
    unquoted = (re.sub('"([^"]*)"', r"\1", line) for line in lines)
    rows = [re.split(r"[,;\s]+", OVERLAPPED.sub(r"\1", line).strip(",; \t")) for line in unquoted]
    rows = [[cell for cell in row if not COMMUNICATION.fullmatch(cell)] for row in rows if row != [""]]
    kinds = {cell.strip("0123456789") for row in rows for cell in row}
    if kinds & {"W", "BW"} and "I" not in kinds:
        rows = [[re.sub("[A-Z]+", lambda kind: OF_2024.get(kind[0], kind[0]), cell) for cell in row] for row in rows]
    return [" ".join(row) for row in rows]
