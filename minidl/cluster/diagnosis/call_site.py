"""The line of the user's program that makes a communicator call, with a key that is the same in every process."""

from __future__ import annotations

import hashlib
import os
import sys
import sysconfig
import weakref
from types import CodeType, FrameType
from typing import NamedTuple

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep  # minidl/cluster/
ENGINES = HERE + "engines" + os.sep
LIBRARIES = ("<frozen", *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")))
ANYWHERE = 0  # no line: the order of the calls is not judged by this one


class Site(NamedTuple):
    """A hash of the stack of user calls (`key`, 64 bits), and the line of the call and its caller as text (`place`).

    Two ranks have the same key if the same calls led to the same line of the same function. In an `except` handler the
    key is ANYWHERE: what is done there, others do in the `try`.
    """

    key: int
    place: str


def call_site() -> Site:
    """The site of the current communicator call: the frames outside this package, down to the engine's.

    Takes about 0.1 microseconds a frame: the key of a code object is kept as long as the code object lives, and every
    site for good (one for each place in a program, however often the program is launched).
    """
    frame: FrameType | None = sys._getframe(1)
    key = 1
    while frame is not None:
        code = frame.f_code
        known = _codes.get(id(code)) or _remember(code)
        if known.key:
            key = (key * 0x9E3779B97F4A7C15 + known.key + frame.f_lasti) & 0xFFFFFFFFFFFFFFFF
        elif known.is_engine:
            break
        frame = frame.f_back
    site = _sites.get(key) or _remember_site(key)
    return site if sys.exception() is None else Site(ANYWHERE, site.place)


class _Code(NamedTuple):
    code: weakref.ref[CodeType]  # removes the entry with the code object: each launch unpickles a program of its own
    key: int  # 0 for the code of this package
    is_engine: bool


_codes: dict[int, _Code] = {}  # by identity: the hash of a code object would read all of it
_sites: dict[int, Site] = {}


def _remember(code: CodeType) -> _Code:
    name = f"{code.co_filename}\0{code.co_qualname}\0{code.co_firstlineno}"
    digest = hashlib.blake2b(name.encode(errors="replace"), digest_size=8).digest()
    is_ours, is_engine = code.co_filename.startswith(HERE), code.co_filename.startswith(ENGINES)
    identity = id(code)
    reference = weakref.ref(code, lambda _: _codes.pop(identity, None))
    known = _codes[identity] = _Code(reference, 0 if is_ours else int.from_bytes(digest, "little") | 1, is_engine)
    return known


def _remember_site(key: int) -> Site:
    places: list[str] = []
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and len(places) < 2:
        filename = frame.f_code.co_filename
        if filename.startswith(ENGINES):
            break
        if not filename.startswith(HERE):
            places.append(place(filename, frame.f_code.co_qualname, frame.f_lineno))
        frame = frame.f_back
    site = _sites[key] = Site(key, ", called at ".join(places))
    return site


class Caller(NamedTuple):
    """An instruction of the user's program; cheap to note, and its `place` is found only when it is asked for."""

    code: CodeType
    instruction: int  # its offset in the code, in bytes

    @property
    def place(self) -> str:
        lines = (line for first, last, line in self.code.co_lines() if first <= self.instruction < last)
        line = next(lines, None) or self.code.co_firstlineno
        return place(self.code.co_filename, self.code.co_qualname, line)


def caller() -> Caller:
    """Where the program has called this package: the innermost frame outside of it."""
    frame = sys._getframe(2)
    while frame.f_code.co_filename.startswith(HERE) and frame.f_back is not None:
        frame = frame.f_back
    return Caller(frame.f_code, frame.f_lasti)


def place(file: str, function: str, line: int) -> str:
    """File and line; in a notebook, where the kernel invents the file's name, function and line."""
    if "ipykernel_" in file or file.startswith("<ipython-input-"):
        where = "a notebook cell" if function == "<module>" else f"the notebook cell of {function}"
        return f"line {line} of {where}"
    return f"{file}:{line}"


def is_program(file: str) -> bool:
    """Whether the code of that file belongs to the program: neither to this package nor to an installed library."""
    return not file.startswith((HERE, *LIBRARIES))
