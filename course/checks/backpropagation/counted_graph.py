"""Graphs for the check of `backward`: recipes for its probe, the gradients of their nodes, and known mistakes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from course.probes.backpropagation import Recipe, slopes


def gradients(recipe: Recipe, accumulate: bool = True) -> list[float]:
    """The oracle: the gradient of the last node with respect to each node; or the result of `=` in place of `+=`."""
    values: list[float] = []
    for item in recipe:
        if isinstance(item, tuple):
            of_parents = [values[i] for i in item[1:]]
            values.append(math.prod(of_parents) if item[0] == "mul" else sum(of_parents))
        else:
            values.append(item)
    grads = [0.0] * len(recipe)
    grads[-1] = 1.0
    for item, g in zip(reversed(recipe), reversed(range(len(recipe))), strict=True):
        if isinstance(item, tuple):
            for parent, slope in zip(item[1:], slopes(item[0], [values[i] for i in item[1:]]), strict=True):
                share = grads[g] * slope
                grads[parent] = grads[parent] + share if accumulate else share
    return grads


def doubled(times: int) -> Recipe:
    """b = a + a; c = b + b; ..."""
    return [1.5, *(("add", i, i) for i in range(times))]


def random_graph(random: np.random.Generator, size: int) -> Recipe:
    """Three leaves, and nodes made from two or three earlier ones, the last one among them."""
    recipe: Recipe = [float(x) for x in random.uniform(0.8, 1.2, 3) * random.choice([-1, 1], 3)]
    for last in range(2, 2 + size):
        early = (int(i) for i in random.integers(0, last + 1, random.integers(1, 3)))
        recipe.append((str(random.choice(["add", "mul"])), last, *early))
    return recipe


def node_in_words(recipe: Recipe, index: int) -> str:
    """The name of a node in messages."""
    kind = "leaf" if not isinstance(recipe[index], tuple) else "made node"
    return "the root" if index == len(recipe) - 1 else f"{kind} number {index} (in order of creation)"


def known_slips(recipe: Recipe, got: dict[str, Any], index: int, want: float) -> dict[str, float]:
    """For `expect.number`: known mistakes, each with the gradient of the node that it gives."""
    if got["grads"][index] == want:
        return {}
    is_one_missed = any(
        handed and got["grads"][node] not in (0.0, 1.0) for node, handed in enumerate(got["handed"][:-1])
    )
    is_always_one = all(handed in ([], [1.0]) for handed in got["handed"])
    if is_one_missed and is_always_one and got["grads"][-1] == 1.0 and not is_order_at_stake(recipe):
        return {"Every vjp was called with 1: a node passes on its own gradient, vjp(node.grad).": got["grads"][index]}
    if got["grads"][-1] == 0.0 and not any(any(handed) for handed in got["handed"]):
        return {"Nothing arrived: does the walk begin with root.grad = 1.0?": got["grads"][index]}
    one_share = "Each use adds its share: `+=`, not `=`, also where a node stands twice among the parents."
    replaced = gradients(recipe, accumulate=False)
    known = {one_share: replaced[index]} if np.allclose(got["grads"], replaced) else {}
    for node, handed in enumerate(got["handed"]):
        if handed and handed[0] and got["grads"][node] == 0.0:
            reset = (
                f"The vjp of {node_in_words(recipe, node)} was called with {handed[0]:.6g}, but its .grad is 0 "
                "afterwards: it has to be set, and to stay."
            )
            return {reset: got["grads"][index], **known}
        if handed and handed[0] != got["grads"][node] and node == len(recipe) - 1:
            root = "The .grad of the root is set once, to 1, before it is passed on: nothing is added to it."
            return {root: got["grads"][index]}
        if handed and handed[0] != got["grads"][node]:
            early = (
                f"The vjp of {node_in_words(recipe, node)} was called with {handed[0]:.6g}, but later its .grad became "
                f"{got['grads'][node]:.6g}: it passed its gradient on before every node that was made from it had "
                "done so."
            )
            return {early: got["grads"][index], **known}
    return known


def is_order_at_stake(recipe: Recipe) -> bool:
    """Whether some node was used for two others, so that the gradient of one of these may come too late for it."""
    users: dict[int, set[int]] = {}
    for user, item in enumerate(recipe):
        for parent in item[1:] if isinstance(item, tuple) else ():
            users.setdefault(parent, set()).add(user)
    return any(len(found) > 1 for found in users.values())
