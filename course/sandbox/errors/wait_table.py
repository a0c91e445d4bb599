"""The wait-for table of a run that ended in a deadlock or a time-out, with the student's lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from course.sandbox.errors.sources import Sources

if TYPE_CHECKING:
    from minidl.cluster.diagnosis.errors import ClusterError, Wait

MOST_ROWS = 8


def wait_table(error: ClusterError, sources: Sources) -> str:
    """One line for each waiting rank; the place is printed once if all wait at the same one, else in each line."""
    first, *situation = str(error).splitlines()
    waits = error.waits[:MOST_ROWS]
    places = [place(wait, sources) for wait in waits]
    is_one_place = len(set(places)) == 1
    lines = [
        f"  {row(wait)}" + ("" if is_one_place or not where else f", at {where}")
        for wait, where in zip(waits, places, strict=True)
    ]
    if len(error.waits) > MOST_ROWS:
        lines.append(f"  and {len(error.waits) - MOST_ROWS} more")
    if is_one_place and places[0]:
        lines.append(f"  {'all ' if len(waits) > 1 else ''}at {places[0]}")
    others = [f"  {line}" for line in situation if line.endswith("had returned") or "did not answer" in line]
    return "\n".join([first, *lines, *others[:MOST_ROWS]])


def row(wait: Wait) -> str:
    """`rank 0: send (call 3) waits for rank 1`."""
    peer = "any rank (src -1)" if wait.peer is None else f"rank {wait.peer}"
    call = f" (call {wait.call})" if wait.call else ""
    return f"rank {wait.rank}: {wait.operation}{call} waits for {peer}"


def place(wait: Wait, sources: Sources) -> str:
    """The student's line in which a rank waited; "" if it is not known."""
    file, _, line = (wait.call_site or "").rpartition(":")
    return sources.line(file, int(line)) if line.isdecimal() else ""
