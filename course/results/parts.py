"""Both results as the command `result` needs them: whose function, how it is tried, trained and shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course.results import glyph_resnet, pictures, python_gpt, trial
from course.results.history import Trained
from minidl import data

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
    calls      the program that calls a function as the training does; see `trial.rehearse`
    show       writes pictures of a trained network into a folder; returns a text to print
    floor      a loss to compare with, computed by this function; None for none
    """

    number: int
    title: str
    chapter: str
    function: str
    library: Function
    settings: Any
    train: Callable[..., Trained]
    calls: Callable[..., str]
    show: Callable[[Any, Path], str]
    floor: Callable[[], float] | None = None


def show_letters(trained: Trained, folder: Path) -> str:
    """Write the picture of letters."""
    chances = glyph_resnet.probabilities(trained.model, trained.test)
    pictures.letters(trained.test, chances).savefig(folder / "letters.png")
    return ""


def show_text(trained: Trained, folder: Path) -> str:
    """Write a text that the network made up, also as a picture, and return it."""
    text = python_gpt.written(trained.model)
    (folder / "text.txt").write_text(text + "\n", encoding="utf-8")
    pictures.text(text).savefig(folder / "text.png")
    return text


def entropy_of_characters() -> float:
    """The least loss of a predictor that knows how frequent each character is, and no more."""
    settings = python_gpt.Settings()
    return data.unigram_entropy(data.stdlib_text(settings.block_size, settings.n_chars).train.tokens)


PARTS = (
    Part(
        1, "a ResNet that reads letters", "02", "adam_step", glyph_resnet.library_rule, glyph_resnet.Settings(),
        glyph_resnet.train, trial.calls_of_rule, show_letters,
    ),
    Part(
        2, "a GPT that writes Python-like text", "04", "ring_all_reduce", python_gpt.library_all_reduce,
        python_gpt.Settings(), python_gpt.train, trial.calls_of_sum, show_text, entropy_of_characters,
    ),
)  # fmt: skip
