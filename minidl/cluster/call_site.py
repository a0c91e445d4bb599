"""Where in the user's program a communicator call was made: a key that is the same in every process, and the lines."""

from __future__ import annotations

import hashlib
import os
import sys
import weakref
from types import CodeType, FrameType
from typing import NamedTuple

HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep  # minidl/cluster/
ENGINES = HERE + "engines" + os.sep


class Site(NamedTuple):
    """`key` stands for the whole stack of user calls (64 bits); `place` is the line of the call, and who called that.

    The key is the same on two ranks when the same line of the same function was reached by the same calls.
    """

    key: int
    place: str


def call_site() -> Site:
    """The site of the communicator call that is under way: the frames outside this package, down to the engine's.

    Costs about a tenth of a microsecond a frame: the key of a code object is kept as long as the code object lives, and
    every site for good (one for each place in a program, however often the program is launched).
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
    return _sites.get(key) or _remember_site(key)


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
            places.append(place(frame.f_code, frame.f_lineno))
        frame = frame.f_back
    site = _sites[key] = Site(key, ", called at ".join(places))
    return site


def place(code: CodeType, line: int) -> str:
    """File and line; of a notebook's cell, whose file is the kernel's own invention, the function and the line."""
    if "ipykernel_" in code.co_filename or code.co_filename.startswith("<ipython-input-"):
        where = "a notebook cell" if code.co_name == "<module>" else f"the notebook cell of {code.co_qualname}"
        return f"line {line} of {where}"
    return f"{code.co_filename}:{line}"
