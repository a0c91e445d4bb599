"""Live memory in a chain of linear layers, for the check of `live_bytes`: the right values and known mistakes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

MODES = {
    "evaluation": "evaluation",
    "nothing freed": "training, nothing freed",
    "training": "training, freed as backward passes",
}
"""The names of the modes in messages."""


Sizes = Callable[[str, int], int]
"""The number of elements of an array, by its kind ("a" for activation, "grad a", "grad w") and its layer."""


def peak(widths: Sequence[int], batch: int, mode: str) -> int:
    """The oracle: the largest number of bytes alive at once."""
    return 8 * most_numbers(len(widths) - 1, sizes(widths, batch), mode)


def sizes(widths: Sequence[int], batch: int) -> Sizes:
    """The sizes of the arrays of a chain."""

    def size(name: str, layer: int) -> int:
        return widths[layer] * widths[layer - 1] if name == "grad w" else batch * widths[layer]

    return size


def most_numbers(
    layers: int, size: Sizes, mode: str, freed: Sequence[str] = ("grad a", "a"), is_seen_within: bool = True
) -> int:
    """The largest number of elements alive at once, found by making and freeing every array in turn.

    freed: what a step of backward frees. is_seen_within: whether the peak may lie inside of a step of backward.
    """
    live: dict[tuple[str, int], int] = {("a", 0): size("a", 0)}
    most = 0

    def look() -> None:
        nonlocal most
        most = max(most, sum(live.values()))

    for layer in range(1, layers + 1):
        live["a", layer] = size("a", layer)
        look()
        if mode == "evaluation":
            del live["a", layer - 1]
    if mode == "evaluation":
        return most
    live["grad a", layers] = size("grad a", layers)
    look()
    for layer in range(layers, 0, -1):
        live["grad w", layer] = size("grad w", layer)
        if layer > 1:
            live["grad a", layer - 1] = size("grad a", layer - 1)
        if is_seen_within:
            look()
        if mode == "training":
            for name in freed:
                del live[name, layer]
        look()
    return most


def without(size: Sizes, gone: Callable[[str, int], bool]) -> Sizes:
    """The sizes with some arrays forgotten."""
    return lambda name, layer: 0 if gone(name, layer) else size(name, layer)


def slips(widths: Sequence[int], batch: int, mode: str) -> dict[str, float]:
    """The results of known mistakes."""
    size, layers = sizes(widths, batch), len(widths) - 1
    want = peak(widths, batch, mode)
    activations = [8 * size("a", layer) for layer in range(layers + 1)]
    weights = 8 * sum(size("grad w", layer) for layer in range(1, layers + 1))

    def played(size: Sizes = size, **options: Any) -> int:
        return 8 * most_numbers(layers, size, mode, **options)

    known: dict[str, float] = {
        "These are numbers, not bytes: a number takes 8.": want / 8,
        "A number takes 8 bytes here, not 4.": want / 2,
        "The activations are those of a single sample: each has batch x width numbers.": peak(widths, 1, mode),
        "The input, activation 0, is missing: the first layer needs it.": played(
            without(size, lambda name, layer: (name, layer) == ("a", 0))
        ),
    }
    if mode == "evaluation":
        return known | {
            "This is what training keeps; in evaluation an activation is freed once it was used.": sum(activations),
            "A layer's input and output live at once, while it is computed.": max(activations),
            "The largest two activations need not be neighbours.": sum(sorted(activations)[-2:]),
            "The weights are there in any case and do not count.": want + weights,
            "The last layer is missing.": max([a + b for a, b in pairwise(activations[:-1])] or [0]),
        }

    def with_input(layer: int) -> int:
        return size("grad w", layer) + (size("a", 0) if layer == 1 else 0)

    known |= {
        "The gradients of the weights are missing: each stays once it is made.": played(
            without(size, lambda name, layer: name == "grad w")
        ),
        "The gradient of the last activation, L, is missing: backward begins with it.": played(
            without(size, lambda name, layer: (name, layer) == ("grad a", layers))
        ),
        "Nobody asks for the gradient of the input, activation 0.": played(
            lambda name, layer: with_input(layer) if name == "grad w" else size(name, layer)
        ),
        "The weights themselves are there in any case and do not count.": want + weights,
        "A weight's gradient has no batch: the samples' gradients are summed.": played(
            lambda name, layer: size(name, layer) * (batch if name == "grad w" else 1)
        ),
    }
    if mode == "training":
        known |= {
            "This is the sum of all that is ever made: activations are freed as backward passes.": peak(
                widths, batch, "nothing freed"
            ),
            "This is what lives when the forward pass ends: backward adds gradients before it frees.": sum(activations),
            "This is what lives between the steps: the peak lies within a step, before it frees.": played(
                is_seen_within=False
            ),
            "The gradients of the weights were freed: they stay, the update of the weights needs them.": played(
                freed=("grad a", "a", "grad w")
            ),
            "Only the activation was freed: the step of a layer frees the activation's gradient, too.": played(
                freed=("a",)
            ),
            "Only the gradient was freed: the step of a layer frees the activation itself, too.": played(
                freed=("grad a",)
            ),
        }
    return known


def cause_of_all(answers: Sequence[Any], asked: Sequence[tuple[Sequence[int], int]], mode: str) -> str:
    """The known mistake that gives all of the answers, since one small chain does not identify it; "" if none does.

    asked: (widths, batch) of each answer.
    """
    known = [slips(widths, batch, mode) for widths, batch in asked]
    for sentence in known[0]:
        if all(
            isinstance(got, (int, float)) and got == slip[sentence] for got, slip in zip(answers, known, strict=True)
        ):
            return sentence
    return ""
