"""Both results as the command `result` needs them: whose function, how it is tried, trained and shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from course.results import glyph_resnet, pictures, python_gpt
from minidl import cluster, data

Function = Callable[..., Any]


@dataclass(frozen=True)
class Part:
    """One part's result.

    number     1 or 2
    title      what is trained
    chapter    the number of the chapter in which the reader writes the function
    function   its name
    library    the library's own version of it
    settings   how the course trains
    train      train(function, settings, tell)
    problem    what is wrong with a function, in a sentence; "" for nothing
    show       writes pictures of a trained network into a folder; returns a text to print
    floor      a loss to compare with: its name, and a function that computes it; None for none
    """

    number: int
    title: str
    chapter: str
    function: str
    library: Function
    settings: Any
    train: Callable[..., Any]
    problem: Callable[[Function], str]
    show: Callable[[Any, Path], str]
    floor: tuple[str, Callable[[], float]] | None = None


def problem_of_rule(rule: Function) -> str:
    """What is wrong with an `adam_step`, tried for three steps."""
    rng = np.random.default_rng(0)
    gradients, w = rng.standard_normal((3, 5)), rng.standard_normal(5)
    mine = theirs = (w, np.zeros(5), np.zeros(5))
    for t, gradient in enumerate(gradients, start=1):
        mine = rule(*mine, t, gradient, 0.1, 0.9, 0.999, 1e-8)
        theirs = glyph_resnet.library_rule(*theirs, t, gradient, 0.1, 0.9, 0.999, 1e-8)
    if not np.allclose(mine[0], theirs[0]):
        return "It does not do what Adam does."
    return ""


TRIAL_SECONDS = 30.0  # a sum of five numbers that takes longer never ends


def problem_of_sum(all_reduce: Function) -> str:
    """What is wrong with a `ring_all_reduce`, tried on as many simulated ranks as train."""
    nodes = python_gpt.Settings().nodes

    def add_up(comm: cluster.Communicator) -> Any:
        x = np.arange(5.0) * 10**comm.rank
        total = all_reduce(comm, x)
        return x if total is None else total

    expected = sum(np.arange(5.0) * 10**rank for rank in range(nodes))
    try:
        results = cluster.launch(add_up, nodes=nodes, on="simulation", deadline=TRIAL_SECONDS).results
    except cluster.RankFailed as failure:
        if isinstance(failure.cause, NotImplementedError):
            raise NotImplementedError from failure
        raise
    for result in results:
        if np.shape(result) != (5,) or not np.allclose(result, expected):
            return f"It does not add up the vectors of {nodes} ranks."
    return ""


def show_letters(trained: glyph_resnet.Trained, folder: Path) -> str:
    """Write the picture of the hardest letters."""
    chances = glyph_resnet.probabilities(trained.model, trained.test)
    pictures.hardest(trained.test, chances).savefig(folder / "hardest.png")
    return ""


def show_text(trained: python_gpt.Trained, folder: Path) -> str:
    """Write a text that the network made up, and return it."""
    text = python_gpt.written(trained.model)
    (folder / "written.txt").write_text(text + "\n", encoding="utf-8")
    return text


def entropy_of_characters() -> float:
    """The least loss of a predictor that knows how frequent each character is, and no more."""
    settings = python_gpt.Settings()
    return data.unigram_entropy(data.stdlib_text(settings.block_size, settings.n_chars).train.tokens)


FLOOR = ("frequencies of characters alone", entropy_of_characters)

PARTS = (
    Part(
        1, "a ResNet that reads letters", "02", "adam_step", glyph_resnet.library_rule, glyph_resnet.Settings(),
        glyph_resnet.train, problem_of_rule, show_letters,
    ),
    Part(
        2, "a GPT that writes Python-like text", "04", "ring_all_reduce", python_gpt.library_all_reduce,
        python_gpt.Settings(), python_gpt.train, problem_of_sum, show_text, FLOOR,
    ),
)  # fmt: skip
