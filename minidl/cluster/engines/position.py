"""Where a rank was in its program when it cannot report that itself, because it was killed or computes forever.

A rank that is a process shares a file with the launcher. It notes each communicator call in that file, where the note
outlives SIGKILL. In addition, Python's faulthandler appends the program's stack to the file when the process crashes
(by SIGSEGV, for example) or when the launcher sends DUMP_SIGNAL, however busy the program is.
"""

from __future__ import annotations

import faulthandler
import mmap
import os
import re
import signal
import time
from dataclasses import dataclass
from types import CodeType
from typing import Any

from minidl.cluster.call_site import Site, is_program, place, program_frame
from minidl.cluster.engines.anonymous_file import anonymous_file

SLOTS, SLOT_BYTES = 255, 256  # one slot for each different call: the operation, and its place in the program
INSIDE = 1 << 15  # a bit of the word of the last call: the call's number is above it, its slot below
NOTES_BYTES = (1 + SLOTS) * SLOT_BYTES  # the notes, at the beginning of the file; stacks follow
STACK_BYTES = 1 << 16
DUMP_SECONDS, LOOK_SECONDS = 0.3, 0.01
DUMP_SIGNAL = getattr(signal, "SIGRTMAX", signal.SIGUSR2)

_THREAD = re.compile(r"^(?:Current thread|Thread) .*:$", re.MULTILINE)
_FRAME = re.compile(r'^  File "(.*)", line (\d+),? in (.*)$', re.MULTILINE)
_COMPILES = "compile_once"  # the function that compiles a kernel (minidl.kernels.jit.compiled)
_CALLERS = ("in run_rank", "in _play")  # the functions that call the program of a rank, and of a simulated rank
_CUT = "\n  ...\n"  # ends a dump of more than 100 frames; only the program's thread has that many


def create_notes() -> int:
    """The descriptor of a new file for the notes of one rank."""
    return anonymous_file("minidl notes", NOTES_BYTES)


class Notes:
    """The rank's side: it notes every communicator call. The last one is held by a single word, written atomically."""

    def __init__(self, descriptor: int) -> None:
        self._mapping = mmap.mmap(descriptor, NOTES_BYTES)
        self._word = memoryview(self._mapping)[:16].cast("Q")
        self._slot_of: dict[tuple[Any, ...], int] = {}  # by the operation, and its place in the program
        self._left = 0  # the word to write when the call has ended
        self._codes: list[CodeType] = []  # kept alive, so that their ids are not reused
        os.lseek(descriptor, NOTES_BYTES, os.SEEK_SET)
        faulthandler.register(DUMP_SIGNAL, descriptor)
        faulthandler.enable(descriptor)
        self._word[1] = 1  # from now on `ask` works

    def entered(self, operation: str, call: int, site: Site | None = None) -> None:
        """The program has begun its `call`-th communicator call, at `site` if that is known: to find it takes 2 us."""
        if site is None:
            frame = program_frame()
            key: tuple[Any, ...] = operation, id(frame.f_code), frame.f_lasti
        else:
            key = operation, site.place
        slot = self._slot_of.get(key) or self._describe(key)
        self._left = left = call << 16 | slot
        self._word[0] = left | INSIDE

    def left(self) -> None:
        """The call has ended."""
        self._word[0] = self._left

    def _describe(self, key: tuple[Any, ...]) -> int:
        """A new slot for a call that has none yet."""
        if len(self._codes) == SLOTS:
            self._slot_of.clear()
            self._codes.clear()
        frame = program_frame()
        code = frame.f_code
        self._codes.append(code)
        slot = self._slot_of[key] = len(self._codes)
        name = f"{key[0]}\0".encode()
        site = place(code.co_filename, code.co_qualname, frame.f_lineno).encode(errors="replace")
        data = name + site[-(SLOT_BYTES - len(name)) :]  # the end of a long path, with the line
        self._mapping[slot * SLOT_BYTES : (slot + 1) * SLOT_BYTES] = data.ljust(SLOT_BYTES, b"\0")
        return slot


@dataclass(frozen=True)
class Position:
    """Where a rank was: in or after its `call`-th communicator call (0: before the first), made at `call_site`.

    line, stack: what the program was executing; known if the process answered DUMP_SIGNAL or has crashed.
    """

    operation: str
    call: int
    call_site: str
    is_inside: bool
    line: str | None = None
    stack: str = ""

    def __str__(self) -> str:
        if self.is_inside:
            return f"in {self.operation} (call {self.call}), at {self.call_site}"
        computing = f"computing at {self.line}, " if self.line else ""
        if not self.call:
            return f"{computing}before its first communicator call"
        return f"{computing}after {self.operation} (call {self.call}) at {self.call_site}"


def position_of(descriptor: int) -> Position:
    """The launcher's side: read the notes of a rank."""
    notes = os.pread(descriptor, NOTES_BYTES, 0)
    word = int.from_bytes(notes[:8], "little")
    slot = word & 0xFFFF & ~INSIDE
    described = notes[slot * SLOT_BYTES : (slot + 1) * SLOT_BYTES].rstrip(b"\0") if slot else b""
    operation, _, site = described.decode(errors="replace").partition("\0")
    stack = _stack_of_the_program(os.pread(descriptor, STACK_BYTES, NOTES_BYTES).decode(errors="replace"))
    frames = [(file, name, int(line)) for file, line, name in _FRAME.findall(stack)]
    compiles = next((index for index, (_, name, _) in enumerate(frames) if name == _COMPILES), None)
    own = [frame for frame in frames[:compiles] if is_program(frame[0])] or frames
    line = place(*own[-1]) if own else None
    if compiles is not None:
        line = f"{line} (compiling a kernel, once on this computer)"
    return Position(operation, word >> 16, site, bool(word & INSIDE), line, stack)


def ask(process: int, descriptor: int) -> None:
    """Let a process append its stack to its notes; nothing happens if it is still starting, or stopped."""
    if not int.from_bytes(os.pread(descriptor, 8, 8), "little"):
        return
    os.kill(process, DUMP_SIGNAL)
    end, before = time.monotonic() + DUMP_SECONDS, -1
    while time.monotonic() < end and (size := os.fstat(descriptor).st_size) != before:
        before = size if size > NOTES_BYTES else -1
        time.sleep(LOOK_SECONDS)


def _stack_of_the_program(dumped: str) -> str:
    """The program's frames in the last dump, the outermost first, formatted as in a traceback."""
    stacks = [stack for stack in _THREAD.split(dumped) if _CUT in stack or any(caller in stack for caller in _CALLERS)]
    if not stacks:
        return ""
    frames = [line for line in stacks[-1].splitlines() if _FRAME.match(line)]  # the innermost one first
    last = next((index for index, line in enumerate(frames) if line.endswith(_CALLERS)), len(frames))
    return "\n".join(_FRAME.sub(r'  File "\1", line \2, in \3', line) for line in reversed(frames[:last]))
