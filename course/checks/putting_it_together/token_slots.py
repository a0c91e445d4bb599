"""Slots of tokens with their experts, gates and the load-balancing loss, and what known mistakes give."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from course.judging import Answer, expect
from minidl.random import Purpose, stream

Array = NDArray[Any]

Case = tuple[int, int, int, int]
"""(T, E, k, capacity)"""

NAMES = ("slots", "gates", "loss")


def drawn(case: Case, seed: int, kind: str = "plain") -> Array:
    """Scores of T tokens for E experts, of which the first ones are in demand.

    kind: "plain"; "tied", with many equal scores; "large", near 1000.
    """
    T, E, _, _ = case
    rng = stream(Purpose.MANUAL, seed, "scores", kind, *case)
    scores = rng.normal(size=(T, E)) + rng.permutation(np.linspace(1.2, -0.6, E))
    scores[1::5, scores.mean(axis=0).argmin() if T else 0] -= 20.0  # a small gate is not 0
    return np.round(scores) if kind == "tied" else scores + 1000.0 * (kind == "large")


def probabilities(scores: Array) -> Array:
    exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(axis=1, keepdims=True))


def chosen(scores: Array, k: int) -> Array:
    """The k experts of each token, (T, k): the highest score first, among equal ones the lower number first."""
    return np.argsort(-scores, axis=1, kind="stable")[:, :k]


def in_order(T: int, k: int) -> list[tuple[int, int]]:
    """The choices (token, number of the choice) in the order in which they get their slots."""
    return [(t, j) for j in range(k) for t in range(T)]


def slots_of(choices: Array, capacity: int, order: list[tuple[int, int]]) -> Array:
    """The slots for the choices, given away in this order."""
    slots, taken = np.full(choices.shape, -1), np.zeros(int(choices.max()) + 1, int)
    for t, j in order:
        e = choices[t, j]
        if taken[e] < capacity:
            slots[t, j] = e * capacity + taken[e]
            taken[e] += 1
    return slots


def gates_of(scores: Array, choices: Array, slots: Array) -> Array:
    p = np.take_along_axis(probabilities(scores), choices, axis=1)
    return np.where(slots >= 0, p if choices.shape[1] == 1 else p / p.sum(axis=1, keepdims=True), 0.0)


def balance(scores: Array, picked: Array, weights: Array | None = None) -> float:
    """E times the sum over the experts of f_i P_i; f_i is the share of the expert in `picked`."""
    E = scores.shape[1]
    f = np.bincount(picked.ravel(), weights, minlength=E) / picked.size
    return float(E * f @ probabilities(scores).mean(axis=0))


@dataclass
class Routed:
    """An answer's result for a case, asked for when it is first used."""

    answer: Answer
    case: Case
    seed: int
    kind: str

    @cached_property
    def scores(self) -> Array:
        return drawn(self.case, self.seed, self.kind)

    @cached_property
    def got(self) -> dict[str, Any]:
        _, _, k, capacity = self.case
        result = self.answer(self.scores.copy(), k, capacity)
        return dict(zip(NAMES, expect.listed(result, self.called, "(slots, gates, loss)", 3), strict=True))

    @property
    def called(self) -> str:
        T, E, k, capacity = self.case
        return f"route of {T} tokens to {E} experts{KINDS[self.kind]}, k={k}, capacity={capacity}"

    def compare(self, name: str) -> None:
        """Raise Wrong unless the result of this name is right."""
        T, _, k, capacity = self.case
        choices = chosen(self.scores, k)
        slots = slots_of(choices, capacity, in_order(T, k))
        if name == "slots":
            got, known = self.got[name], mistaken_slots(self.scores, choices, slots, capacity)
            known = {sentence: value for sentence, value in known.items() if not np.array_equal(value, slots)}
            expect.array(got, slots, f"{self.called}: slots", rtol=0.0, atol=0.0, mistakes=known)
        elif name == "gates":
            gates, known = gates_of(self.scores, choices, slots), mistaken_gates(self.scores, choices, slots)
            known = {sentence: value for sentence, value in known.items() if not np.allclose(value, gates)}
            expect.array(self.got[name], gates, f"{self.called}: gates", rtol=1e-10, atol=0.0, mistakes=known)
        else:
            loss, losses = balance(self.scores, choices[:, 0]), mistaken_losses(self.scores, choices, slots)
            losses = {sentence: value for sentence, value in losses.items() if abs(value - loss) > 1e-8}
            expect.number(self.got[name], loss, f"{self.called}: loss", rtol=1e-10, mistakes=losses)


KINDS = {"plain": "", "tied": ", some with equal scores", "large": ", with scores near 1000"}


def mistaken_slots(scores: Array, choices: Array, slots: Array, capacity: int) -> dict[str, Array]:
    T, k = choices.shape
    E = scores.shape[1]
    order = in_order(T, k)
    by_token = sorted(order)
    p = np.take_along_axis(probabilities(scores), choices, axis=1)
    known = {
        "A dropped choice has the slot -1.": np.where(slots < 0, E * capacity, slots),
        "These are the experts: a slot is e * capacity + place.": np.where(slots < 0, -1, choices),
        "This is the place with the expert: a slot is e * capacity + place.": np.where(slots < 0, -1, slots % capacity),
        "All first choices get their slots before any second choice.": slots_of(choices, capacity, by_token),
        "Second choices do not begin at slot 0 again: they come behind the first ones.": np.stack(
            [slots_of(choices[:, [j]], capacity, in_order(T, 1))[:, 0] for j in range(k)], axis=1
        ),
        "Tokens get their slots in the order of their numbers, not of their scores.": slots_of(
            choices, capacity, sorted(order, key=lambda each: (each[1], -p[each]))
        ),
        "The last tokens are dropped, not the first ones.": slots_of(
            choices, capacity, sorted(order, key=lambda each: (each[1], -each[0]))
        ),
        "Among equal scores the expert of the lower number comes first.": slots_of(
            np.argsort(scores, axis=1, kind="stable")[:, ::-1][:, :k], capacity, order
        ),
        "The likeliest expert is the first choice.": slots_of(choices[:, ::-1], capacity, order),
        "The highest scores are chosen, not the lowest.": slots_of(
            np.argsort(scores, axis=1, kind="stable")[:, :k], capacity, order
        ),
        "Nothing is dropped here: an expert has only `capacity` slots.": choices * capacity
        + slots_of(choices, T * k, order) % (T * k),
    }
    for off in (-1, 1):
        if capacity + off > 0:
            other = slots_of(choices, capacity + off, order)
            known[f"An expert takes {capacity} choices, not {capacity + off}."] = np.where(
                other < 0, -1, choices * capacity + other % (capacity + off)
            )
    return known


def mistaken_gates(scores: Array, choices: Array, slots: Array) -> dict[str, Array]:
    p, kept = np.take_along_axis(probabilities(scores), choices, axis=1), slots >= 0
    share = p / p.sum(axis=1, keepdims=True)
    left = np.where(kept, p, 0.0)
    known = {
        "The gate of a dropped choice is 0.": p if p.shape[1] == 1 else share,
        "These are scores, not probabilities.": np.where(kept, np.take_along_axis(scores, choices, axis=1), 0.0),
    }
    if p.shape[1] == 1:
        known[
            "With k = 1 the gate is the probability itself: divided by itself it is 1, and the gate does not learn."
        ] = np.where(kept, 1.0, 0.0)
        return known
    return known | {
        "With k > 1 the gates of a token are divided by the sum over its k choices.": left,
        "Dropped choices count in the sum, too: the gate of a choice does not depend on whether another is dropped.": (
            left / np.maximum(left.sum(axis=1, keepdims=True), 1e-300)
        ),
    }


def mistaken_losses(scores: Array, choices: Array, slots: Array) -> dict[str, float]:
    T, E = scores.shape
    P, first = probabilities(scores).mean(axis=0), choices[:, 0]
    right, f = balance(scores, first), np.bincount(first, minlength=E) / T
    return {
        "f_i counts first choices only.": balance(scores, choices),
        "f_i counts dropped tokens, too: else an overloaded expert would look like a full one.": balance(
            scores, first, (slots[:, 0] >= 0).astype(float)
        ),
        "The sum is multiplied by the number of experts.": right / E,
        "The sum over the experts is not divided by their number, but multiplied by it.": right / E**2,
        "f_i is a share of the tokens, not a number of tokens.": right * T,
        "f_i is the share of the tokens that choose expert i, P_i the mean probability: the product has both.": float(
            E * P @ P
        ),
        "P_i is the mean of the probabilities; here f_i is squared.": float(E * f @ f),
        "P_i is the mean over all tokens, not over those that chose expert i.": float(
            E * (f @ np.bincount(first, probabilities(scores)[np.arange(T), first], minlength=E)) / T
        ),
    }
