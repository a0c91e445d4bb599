"""Runs a simulation in a child process, which the deadline can always end; the child is a launch of one rank."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import cloudpickle

from minidl.cluster.comm import Communicator
from minidl.cluster.diagnosis.errors import CommTimeout, RankFailed
from minidl.cluster.engines.printed import show
from minidl.cluster.engines.processes.engine import Processes
from minidl.cluster.engines.protocol import LaunchTerms, Program
from minidl.cluster.engines.run_error import NOT_BEGUN, deadline_text
from minidl.cluster.run import Run

GRACE_SECONDS = 0.5  # for the child to report by itself that the deadline has passed, and what each rank waited for

Simulate = Callable[[Program, tuple[Any, ...], LaunchTerms], Run]


@dataclass(frozen=True)
class ChildRun:
    """The child's result: a Run, or the pickled error that ended it, and everything that was printed."""

    run: Run | None
    error: bytes
    printed: str


def in_a_child(simulate: Simulate, program: Program, args: tuple[Any, ...], terms: LaunchTerms) -> Run:
    """Call `simulate(program, args, terms)` in a child process; returns or raises what it does."""
    listener = terms.listener
    forward = None if listener is None else lambda _, pair: listener(*pair)
    deadline = None if terms.deadline is None else terms.deadline + GRACE_SECONDS
    outer = LaunchTerms(
        1, terms.timeout, deadline, "raise", network=None, faults=None, seed=terms.seed, listener=forward
    )
    inner = replace(terms, listener=None)
    try:
        run = Processes(trace_events=0).run(_host, (simulate, program, args, inner, listener is not None), outer)
    except CommTimeout as error:
        why = "the simulation did not answer: one of its ranks computed, or slept, without end"
        if stack := error.tracebacks.get(0):
            why += f"\n\nIts stack (most recent call last):\n{stack}"
        raise CommTimeout(
            f"{deadline_text(terms.deadline)}\n{NOT_BEGUN if NOT_BEGUN in str(error) else why}"
        ) from error
    except RankFailed as error:
        if error.cause is not None:
            raise
        death = str(error).partition("\n")[0]
        raise RankFailed(f"{death}\nit was the process in which all ranks were simulated") from error
    child: ChildRun = run.results[0]
    show(child.printed)
    if child.run is None:
        raise cloudpickle.loads(child.error)
    return child.run


def _host(
    comm: Communicator,
    simulate: Simulate,
    program: Program,
    args: tuple[Any, ...],
    terms: LaunchTerms,
    has_listener: bool,
) -> ChildRun:
    if has_listener:
        terms = replace(terms, listener=lambda rank, obj: comm.tell((rank, obj)))
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            run, error = simulate(program, args, terms), b""
        except Exception as raised:
            run, error = None, cloudpickle.dumps(raised, 5)
    return ChildRun(run, error, printed.getvalue())
