"""The line of the program that makes a communicator call, with a key that is the same in every process."""

from __future__ import annotations

import hashlib
import os
import sys
import sysconfig
import weakref
from types import CodeType, FrameType
from typing import NamedTuple

from minidl import arguments

HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep  # minidl/cluster/
ENGINES = HERE + "engines" + os.sep
ARGUMENTS = os.path.abspath(arguments.__file__)  # skipped like a library: it checks arguments that a program passed
LIBRARIES = ("<frozen", ARGUMENTS, *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")))
ANYWHERE = 0  # the key of a call whose place in the order is not judged


class Site(NamedTuple):
    """The place of a communicator call in the program.

    key     64-bit hash of the stack of calls in the program: equal on two ranks if the same calls led to the same line
            of the same function. In an `except` handler it is ANYWHERE, because other ranks may make the call in the
            `try` block.
    place   file and line of the call and of its caller, as text
    """

    key: int
    place: str


def call_site() -> Site:
    """Return the site of the current communicator call, from the stack frames between this package and the engine.

    It takes about 0.1 microseconds per frame: the key of a code object is cached while the code object lives, and each
    site for good. A place in a program has one site, however often the program is launched.
    """
    frame: FrameType | None = sys._getframe(1)
    key = 1
    while frame is not None:
        code = frame.f_code
        known = _codes.get(id(code))
        if known is None:
            known = _remember(code)
        if known > 0:
            key = hash((key, known, frame.f_lasti))  # of integers, the same in every process
        elif known == ENGINE:
            break
        frame = frame.f_back
    site = _sites.get(key) or _remember_site(key)
    return site if sys.exception() is None else Site(ANYWHERE, site.place)


OURS, ENGINE = 0, -1  # in place of the key of a code object of this package

_codes: dict[int, int] = {}  # keys by the identity of the code object: hashing one reads all of it
_living: dict[int, weakref.ref[CodeType]] = {}  # drops the key with the code: each launch unpickles a new program
_sites: dict[int, Site] = {}


def _remember(code: CodeType) -> int:
    identity = id(code)

    def forget(_: weakref.ref[CodeType]) -> None:
        _codes.pop(identity, None)
        _living.pop(identity, None)

    _living[identity] = weakref.ref(code, forget)
    key = _codes[identity] = _key(code)
    return key


def _key(code: CodeType) -> int:
    if code.co_filename.startswith(HERE):
        return ENGINE if code.co_filename.startswith(ENGINES) else OURS
    name = f"{code.co_filename}\0{code.co_qualname}\0{code.co_firstlineno}"
    return int.from_bytes(hashlib.blake2b(name.encode(errors="replace"), digest_size=8).digest(), "little") | 1


def _remember_site(key: int) -> Site:
    places: list[str] = []
    frame: FrameType | None = sys._getframe()
    while frame is not None and len(places) < 2:
        filename = frame.f_code.co_filename
        if filename.startswith(ENGINES):
            break
        if not filename.startswith(HERE):
            places.append(place(filename, frame.f_code.co_qualname, frame.f_lineno))
        frame = frame.f_back
    site = _sites[key] = Site(key & 0xFFFFFFFFFFFFFFFF, ", called at ".join(places))
    return site


class Caller(NamedTuple):
    """An instruction of the program that called this package. It is cheap to store; `place` is computed on access."""

    code: CodeType
    instruction: int  # its offset in the code, in bytes

    @property
    def place(self) -> str:
        lines = (line for first, last, line in self.code.co_lines() if first <= self.instruction < last)
        line = next(lines, None) or self.code.co_firstlineno
        return place(self.code.co_filename, self.code.co_qualname, line)


def caller() -> Caller:
    """Return where the program called this package."""
    frame = program_frame()
    return Caller(frame.f_code, frame.f_lasti)


def program_frame() -> FrameType:
    """Return the innermost frame outside this package: where the program called it. About 0.1 microseconds a frame."""
    frame, key_of = sys._getframe(), _codes.get
    while True:
        while key_of(id(frame.f_code), 1) <= 0 and frame.f_back is not None:
            frame = frame.f_back
        if id(frame.f_code) in _codes:
            return frame
        _remember(frame.f_code)  # it may be ours


def place(file: str, function: str, line: int) -> str:
    """Return file and line as text; in a notebook, whose file names mean nothing, function and line."""
    if "ipykernel_" in file or file.startswith("<ipython-input-"):
        where = "a notebook cell" if function == "<module>" else f"the notebook cell of {function}"
        return f"line {line} of {where}"
    return f"{file}:{line}"


def is_program(file: str) -> bool:
    """Whether the file belongs to the program, not to this package, a check of arguments or an installed library."""
    return not file.startswith((HERE, *LIBRARIES))
