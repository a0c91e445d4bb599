"""The `algorithm=` of an all-reduce: the name of one of minidl's, or a function of your own.

    def my_all_reduce(comm, x, op="sum"):       # x: a vector, which changes in place
        if comm.rank == 0:
            for other in range(1, comm.size):
                comm.reduce_into(x, comm.recv(other), op)
        else:
            comm.send(x, 0)
        ...

    comm.all_reduce(x, algorithm=my_all_reduce)

`comm` has rank, size, send, recv, sendrecv, reduce_into and among, see `collectives/point_to_point.py`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any, NamedTuple

from minidl.arguments import one_of
from minidl.cluster import missing_attributes
from minidl.cluster.collectives import ALL_REDUCE

OPTIONS = {"pipelined_chain": {"segments"}, "hierarchical": {"per_group"}}
HINT = "or pass a function f(comm, x, op) that changes x in place"


AllReduceAlgorithm = str | Callable[..., Any]
"""What `algorithm=` takes."""


class Algorithm(NamedTuple):
    """The function that carries out an all-reduce (None for "auto"), and its name in fingerprints."""

    function: Callable[..., Any] | None
    name: str


NAMED = {"auto": Algorithm(None, "auto"), **{name: Algorithm(function, name) for name, function in ALL_REDUCE.items()}}


def chosen(algorithm: Any, op: str, options: Mapping[str, Any]) -> Algorithm:
    """Return the Algorithm that `algorithm` and its options select.

    Raises
        ValueError   an unknown name, or an option that the algorithm does not have
        TypeError    neither a name nor a function that can be called with (comm, x, op) and the options; an option of
                     other libraries, saying what to type instead
    """
    if not options and type(algorithm) is str and algorithm in NAMED:  # the usual case first
        return NAMED[algorithm]
    if foreign := [option for option in options if option in missing_attributes.OPTIONS]:
        raise TypeError(f"all_reduce has no option {foreign[0]!r}: {missing_attributes.OPTIONS[foreign[0]]}")
    name = next((known for known, function in ALL_REDUCE.items() if function is algorithm), algorithm)
    if callable(name):
        _check_call(algorithm, op, options)
        return Algorithm(_in_place(algorithm), _place(algorithm, options))
    if not isinstance(name, str) or name not in NAMED:
        one_of("algorithm", name, NAMED, "" if isinstance(name, str) else HINT)
    known_options = OPTIONS.get(name, set())
    if unknown := set(options) - known_options:
        allowed = ", ".join(sorted(known_options)) or "none"
        raise ValueError(f"all_reduce by {name!r} has no option {min(unknown)!r}: its options are {allowed}")
    return Algorithm(NAMED[name].function, _with(name, options))


def _in_place(function: Callable[..., Any]) -> Callable[..., None]:
    """Return the function with a check that it returns no new array, because a result in a new array would be lost."""

    def all_reduce(comm: Any, x: Any, op: str, **options: Any) -> None:
        result = function(comm, x, op, **options)
        if result is not None and result is not x:
            raise TypeError(
                f"all_reduce by {_place(function)}: it must change x in place and return nothing, but it returned "
                f"{type(result).__name__}: write x[...] = result"
            )

    return all_reduce


def _check_call(function: Callable[..., Any], op: str, options: Mapping[str, Any]) -> None:
    signature = inspect.signature(function)
    try:
        signature.bind(None, None, op, **options)
    except TypeError as error:
        given = ", ".join(["comm", "x", "op", *(f"{key}={value}" for key, value in options.items())])
        raise TypeError(
            f"all_reduce by {_place(function)} calls it with ({given}), but its parameters are {signature}: {error}"
        ) from None


def _place(function: Any, options: Mapping[str, Any] | None = None) -> str:
    """The function's name and where it is defined, to distinguish functions of the same name: "mine at my.py:3"."""
    name = _with(getattr(function, "__qualname__", type(function).__name__), options or {})
    code = getattr(inspect.unwrap(function), "__code__", None)
    return name if code is None else f"{name} at {PurePath(code.co_filename).name}:{code.co_firstlineno}"


def _with(name: str, options: Mapping[str, Any]) -> str:
    return f"{name}({', '.join(f'{key}={value}' for key, value in sorted(options.items()))})" if options else name
