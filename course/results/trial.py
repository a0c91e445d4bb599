"""The reader's function before it trains: the course's own check, then a few calls under the training's conditions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from course.judging import Status
from course.judging.judged_notebook import judge_notebook
from course.notebooks.node import Node
from course.results import glyph_resnet, python_gpt
from course.results.answer import NoAnswerError
from course.sandbox.limits import Limits
from minidl import cluster

CALL_SECONDS = 5.0  # a call of the check that takes longer never ends: the whole check takes a second
TRIAL_SECONDS = 120.0  # the same for all calls as in training, the start of the processes included
LONG = 800_001  # elements of a vector, about as many as the GPT has weights


def judge(notebook: Node, reference: Node, name: str, path: Path, check: str) -> None:
    """Check the function `name` of these definitions in a process of its own. Raises NoAnswerError.

    path: the notebook, in whose folder the reader may have modules. check: the command that says more.
    """
    cell = f"check_{name}"
    outcomes = judge_notebook(notebook, reference, Limits(CALL_SECONDS), str(path.parent), only=cell).outcomes
    fault = outcomes[cell][-1].first_fault
    if fault is not None and fault.status is Status.NOT_ATTEMPTED:
        raise NoAnswerError(f"{name} is not written yet: open {path.name} and write it.")
    if fault is not None:
        what = f"{in_a_sentence(fault.message)} {fault.cause}".rstrip()
        raise NoAnswerError(f"{name} cannot train yet. It fails at “{fault.title}”: {what}\n`{check}` says more.")


def in_a_sentence(text: str) -> str:
    """The first line of a message, which says what happened, with a full stop."""
    return text.partition("\n")[0].rstrip(".:") + "."


def rehearse(program: Callable[..., str], function: Callable[..., Any], name: str) -> None:
    """Call the function as the training does, on two processes. Raises NoAnswerError.

    program(comm, function) returns what is wrong, in a sentence; "" for nothing.
    """
    try:
        found = cluster.launch(program, (function,), 2, deadline=TRIAL_SECONDS).results
    except cluster.ClusterError as error:
        found = [in_a_sentence(str(error))]
    if problem := next(filter(None, found), ""):
        raise NoAnswerError(f"{name} passes its check, but fails when it is called as in training: {problem}")


def calls_of_rule(comm: cluster.Communicator, rule: glyph_resnet.Rule) -> str:
    """Three steps of an `adam_step` with weights of a convolution, and of a batch norm, in float32."""
    for shape in ((16, 8, 3, 3), (16,)):
        w, *gradients = np.random.default_rng(0).standard_normal((4, *shape)).astype(np.float32)
        mine = theirs = (w, np.zeros_like(w), np.zeros_like(w))
        for t, gradient in enumerate(gradients, start=1):
            rest: Any = (t, gradient, 2e-3, 0.9, 0.999, 1e-8)
            mine, theirs = rule(*mine, *rest), glyph_resnet.library_rule(*theirs, *rest)
            for name, got, right in zip("wmv", mine, theirs, strict=True):
                if not is_near(got, right, 1e-4):
                    return f"in step {t} with a float32 array of shape {shape}, its {name} is not that of Adam."
    return ""


def calls_of_sum(comm: cluster.Communicator, all_reduce: python_gpt.AllReduce) -> str:
    """Three calls of a `ring_all_reduce` with vectors about as long as the gradient of the GPT."""
    wrong = []
    for call in range(1, 4):
        x = np.random.default_rng((call, comm.rank)).standard_normal(LONG)
        right = python_gpt.library_all_reduce(comm, x.copy())
        if not is_near(all_reduce(comm, x), right, 1e-9):
            wrong.append(f"in call {call} on {comm.size} processes, with {LONG:,} numbers, it does not return the sum.")
    return next(iter(wrong), "")


def is_near(got: Any, right: NDArray[Any], tolerance: float) -> bool:
    """Whether it is an array of this shape with these values."""
    return isinstance(got, np.ndarray) and got.shape == right.shape and np.allclose(got, right, tolerance, tolerance)
