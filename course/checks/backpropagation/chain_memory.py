"""What lives at once in a chain of linear layers, for the check of `live_bytes`: truly, and by known mistakes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

MODES = {
    "evaluation": "evaluation",
    "nothing freed": "training, nothing freed",
    "training": "training, freed as backward passes",
}
"""What the modes are called in a check."""


def peak(widths: Sequence[int], batch: int, mode: str, itemsize: int = 8) -> int:
    """The oracle: the most that lives at once, found by making and freeing every array in turn."""
    live: dict[tuple[str, int], int] = {("a", 0): batch * widths[0]}
    most = sum(live.values())
    layers = len(widths) - 1

    def make(name: str, layer: int, size: int) -> None:
        nonlocal most
        live[name, layer] = size
        most = max(most, sum(live.values()))

    def free(name: str, layer: int) -> None:
        if mode != "nothing freed":
            del live[name, layer]

    for layer in range(1, layers + 1):
        make("a", layer, batch * widths[layer])
        if mode == "evaluation":
            free("a", layer - 1)
    if mode != "evaluation" and layers:
        make("grad a", layers, batch * widths[layers])
        for layer in range(layers, 0, -1):
            make("grad w", layer, widths[layer] * widths[layer - 1])
            if layer > 1:
                make("grad a", layer - 1, batch * widths[layer - 1])
            free("grad a", layer)
            free("a", layer)
    return itemsize * most


def slips(widths: Sequence[int], batch: int, mode: str) -> dict[str, float]:
    """What known mistakes give."""
    activations = [8 * batch * n for n in widths]
    weights = [8 * a * b for a, b in pairwise(widths)]
    want = peak(widths, batch, mode)
    everything = peak(widths, batch, "nothing freed")
    known: dict[str, float] = {"These are numbers, not bytes: a number takes 8.": want / 8}
    if mode == "evaluation":
        known["This is what training keeps; in evaluation an activation is freed once it was used."] = sum(activations)
        known["A layer's input and output live at once, while it is computed."] = max(activations)
        known["The largest two activations need not be neighbours."] = sum(sorted(activations)[-2:])
        known["The weights are there in any case and do not count."] = want + sum(weights)
        return known
    known["The gradients of the weights are missing: each stays once it is made."] = everything - sum(weights)
    known["The input, activation 0, is missing: the first layer's weight gradient needs it."] = want - activations[0]
    known["Nobody asks for the gradient of the input, activation 0."] = everything + activations[0]
    known["The weights themselves are there in any case and do not count."] = everything + sum(weights)
    if mode == "training":
        known["This is the sum of all that is ever made: activations are freed as backward passes."] = everything
        known["This is what lives when the forward pass ends: backward adds gradients before it frees."] = sum(
            activations
        )
    return known
