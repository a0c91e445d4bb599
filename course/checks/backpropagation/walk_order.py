"""The order in which a walk through a graph passes gradients on, and how often: right ones and likely mistakes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from course.checks.backpropagation.counted_graph import doubled, gradients, node_in_words
from course.judging import Answer, Wrong, expect
from course.probes.backpropagation import Recipe, walked

LATE_SHARES: dict[str, Recipe] = {
    "b = a + a; c = b + b; d = c + b; backward(d)": [1.5, ("add", 0, 0), ("add", 1, 1), ("add", 2, 1)],
    "b = a + a; c = b + b; d = c + c; backward(d)": doubled(3),
    "a = -1.5; b = a + a; c = b + b; d = c + b; backward(d), where all values are negative": [
        -1.5, ("add", 0, 0), ("add", 1, 1), ("add", 2, 1),
    ],
    "b = a + a; c = b + b; d = b + a; e = c + d; backward(e)": [
        1.5, ("add", 0, 0), ("add", 1, 1), ("add", 1, 0), ("add", 2, 3),
    ],
    "b = a + a; c = b + b; d = b + a; e = d + c; backward(e)": [
        1.5, ("add", 0, 0), ("add", 1, 1), ("add", 1, 0), ("add", 3, 2),
    ],
}  # fmt: skip
"""Graphs with a node whose gradient is a sum of several shares; the key is the call in words."""

TAKEN_FOR_ONE = (
    "Nodes with equal values are different nodes. Keep the nodes themselves in a set or as keys (or id(node)), not "
    "their values."
)
ZERO_IS_A_GRADIENT = "0 is a gradient like any other: the node was reached, and has its turn all the same."
SPECIAL_VALUES: dict[str, tuple[Recipe, Recipe, str]] = {
    "a = 2; b = a + a; c = a * a; d = b + c; e = b * d; backward(e), where b and c have the same value": (
        [2.0, ("add", 0, 0), ("mul", 0, 0), ("add", 1, 2), ("mul", 1, 3)],
        [2.25, ("add", 0, 0), ("mul", 0, 0), ("add", 1, 2), ("mul", 1, 3)],
        TAKEN_FOR_ONE,
    ),
    "a = 3; b = 3; c = a * b; d = c + b; backward(d), where a and b have the same value": (
        [3.0, 3.0, ("mul", 0, 1), ("add", 2, 1)],
        [3.0, 4.0, ("mul", 0, 1), ("add", 2, 1)],
        TAKEN_FOR_ONE,
    ),
    "a = 0; b = x + x; c = b + b; d = a * c; e = d + b; backward(e), where c gets a gradient of 0": (
        [0.0, 3.0, ("add", 1, 1), ("add", 2, 2), ("mul", 0, 3), ("add", 4, 2)],
        [-1.0, 3.0, ("add", 1, 1), ("add", 2, 2), ("mul", 0, 3), ("add", 4, 2)],
        ZERO_IS_A_GRADIENT,
    ),
}
"""Graphs in which nodes have equal values, or a gradient of 0; each with the same graph of other values, and the
mistake of an answer that is right for those and wrong for these."""

MANY_PARENTS: dict[str, Recipe] = {
    "f = a * b * c, one node with three parents; backward(f)": [1.5, -2.0, 2.5, ("mul", 0, 1, 2)],
    "b = a + a; f = c + d + b, one node with three parents; backward(f)": [
        1.5, ("add", 0, 0), 2.0, 2.5, ("add", 2, 3, 1),
    ],
    "f = a + a + a, one node whose three parents are a; backward(f)": [1.5, ("add", 0, 0, 0)],
}  # fmt: skip
ALL_PARENTS = "A node may have any number of parents: go through all of them."

OF_TWO_ROOTS: Recipe = [1.5, 2.0, ("mul", 0, 1), ("add", 2, 2), ("mul", 3, 2)]
BACKWARD_TWICE = {
    (-1, 3): "c = a * b; d = c + c; e = d * c; backward(e), then, with every .grad 0.0 again, backward(d)",
    (3, -1): "c = a * b; d = c + c; e = d * c; backward(d), then, with every .grad 0.0 again, backward(e)",
}
"""For each sequence of roots, the calls in words."""

LEFT_BEHIND = (
    "The first call left something behind: a mark on the nodes, or a set or a list that lives on between calls."
)

ALONG_EVERY_PATH = (
    "The walk goes along every path from the root, and where nodes are used twice each, the number of paths doubles "
    "with every node. Collect a node's whole gradient before you pass it on."
)
ONE_CALL_FOR_ALL = (
    "One call returns the gradients of all parents, in a list: call it once a node, and go through the list."
)
ALL_ALIKE = (
    "Every node's vjp was called {} times. One call is enough, when the node's gradient is whole; what it returns can "
    "be kept."
)
ALWAYS_ONE = "Every vjp was called with 1: a node passes on its own gradient, vjp(node.grad)."
AGAIN = "It passed a gradient on again when more had arrived: wait until every node made from it has had its turn."
NEVER = (
    "The walk never came to it. If it waits for all uses of a node: each use is counted once, not once for each path."
)


def walk(answer: Answer, recipe: Recipe, roots: Sequence[int] = (-1,)) -> tuple[dict[str, Any], list[float]]:
    """What the probe `walked` saw after backward from one root after the other, and the right gradients."""
    last = range(len(recipe))[roots[-1]]
    return answer.run(walked, recipe, roots), gradients(recipe[: last + 1]) + [0.0] * (len(recipe) - 1 - last)


def compare_handed(recipe: Recipe, got: dict[str, Any], called: str) -> None:
    """Raise Wrong unless every node passed on its final gradient, and no share of it."""
    for index, (handed, grad) in enumerate(zip(got["handed"], got["grads"], strict=True)):
        if any(g != grad for g in handed):
            shares = ", ".join(f"{g:.6g}" for g in handed) + (", …" if got["calls"][index] > len(handed) else "")
            raise Wrong(
                f"{called}: vjp of {node_in_words(recipe, index)} was called with {shares}; expected one call, with "
                f"its whole gradient, {grad:.6g}.",
                ALWAYS_ONE if is_always_one(got) else cause_of_calls(recipe, got["calls"]),
            )


def compare_reached(recipe: Recipe, got: dict[str, Any], called: str) -> None:
    """Raise Wrong if the vjp of a made node was not called."""
    for index, item in enumerate(recipe):
        expect.true(
            not isinstance(item, tuple) or got["calls"][index] > 0,
            f"{called}: vjp of {node_in_words(recipe, index)} was not called, expected one call.",
            ZERO_IS_A_GRADIENT if not got["grads"][index] else "",
        )


def is_always_one(got: dict[str, Any]) -> bool:
    """Whether every vjp was called once, with 1, though not every node's gradient is 1."""
    return all(handed in ([], [1.0]) for handed in got["handed"])


def compare_calls(recipe: Recipe, got: dict[str, Any], times: int) -> None:
    """Raise Wrong unless the vjp of every node of `doubled(times)` was called once."""
    for index in range(1, len(recipe)):
        calls = got["calls"][index]
        expect.true(
            calls == 1,
            f"b = a + a; c = b + b; ... {times} times; backward(root): vjp of {node_in_words(recipe, index)} was "
            f"called {calls:,} times, expected 1.",
            cause_of_calls(recipe, got["calls"]),
        )


def cause_of_calls(recipe: Recipe, calls: Sequence[int]) -> str:
    """The likely cause, from the number of calls of each made node's vjp; the root depends on all of them."""
    made = {index: calls[index] for index, item in enumerate(recipe) if isinstance(item, tuple)}
    paths = paths_from_root(recipe)
    if 0 in made.values():
        return NEVER
    if all(count == paths[index] for index, count in made.items()):
        return ALONG_EVERY_PATH
    if set(made.values()) == {2}:
        return ONE_CALL_FOR_ALL
    if len(set(made.values())) == 1:
        return ALL_ALIKE.format(calls[-1])
    return AGAIN


def paths_from_root(recipe: Recipe) -> list[int]:
    """The number of paths from the root to each node."""
    paths = [0] * len(recipe)
    paths[-1] = 1
    for index in reversed(range(len(recipe))):
        item = recipe[index]
        for parent in item[1:] if isinstance(item, tuple) else ():
            paths[parent] += paths[index]
    return paths
