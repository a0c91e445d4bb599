"""A layer of experts over ranks: the tokens of each rank, the results of one node, and the all-to-alls."""

from __future__ import annotations

import numpy as np

from course.checks.putting_it_together import token_slots
from course.checks.tensor_parallelism.divided_runs import Array, Divided, Named, Rank
from course.judging import Answer, Wrong, expect
from course.plural import counted
from minidl.random import Purpose, stream

Case = tuple[int, int, int, int, int, int]
"""(p, experts of a rank, capacity, width, k, tokens of rank 0; each next rank has one less, down to 0)"""


def expert(w: Array, x: Array) -> Array:
    return np.asarray(np.tanh(x @ w[:-1] + w[-1]))


def expert_gradients(w: Array, x: Array, g: Array) -> tuple[Array, Array]:
    """With respect to x and to w."""
    inner = g * (1 - expert(w, x) ** 2)
    return inner @ w[:-1].T, np.concatenate([x.T @ inner, inner.sum(axis=0, keepdims=True)])


def drawn(case: Case, seed: int) -> tuple[list[Named], Array]:
    """The tokens of each rank, by the names of the arguments, and the weights of all experts."""
    p, n, capacity, d, k, most = case
    rng = stream(Purpose.MANUAL, seed, "experts", *case)
    experts = rng.normal(size=(p * n, d + 1, d)) / np.sqrt(d)
    tokens = []
    for rank in range(p):
        T = max(most - rank, 0)
        scores = token_slots.drawn((T, p * n, k, capacity), seed + rank)
        choices = token_slots.chosen(scores, k)
        slots = token_slots.slots_of(choices, capacity, token_slots.in_order(T, k)) if T else choices
        gates = token_slots.gates_of(scores, choices, slots) if T else np.zeros((0, k))
        x, target = rng.normal(size=(2, T, d))
        x[(slots < 0).all(axis=1)] *= 1e-8  # what passes unchanged is small, and not 0
        tokens.append({"x": x, "slots": slots, "gates": gates, "target": target})
    return tokens, experts


def on_one_node(
    one: Named, experts: Array, capacity: int, *, has_residual: bool = True, forward: bool = True, backward: bool = True
) -> tuple[Array, Array, Array, Array]:
    """(y, gx, ggates, the gradients of all experts) of some tokens, one choice after the other.

    forward, backward: whether what an expert gives, and the gradient that comes to it, are multiplied by the gate.
    """
    x, slots, gates, target = one["x"], one["slots"], one["gates"], one["target"]
    kept = [(t, j, slots[t, j] // capacity) for t, j in np.argwhere(slots >= 0)]
    y = x.copy() if has_residual else np.zeros(x.shape)
    outputs = {(t, j): expert(experts[e], x[t : t + 1])[0] for t, j, e in kept}
    for t, j, _ in kept:
        y[t] += (gates[t, j] if forward else 1.0) * outputs[t, j]
    g = y - target
    gx, ggates, gw = (g.copy() if has_residual else np.zeros(x.shape)), np.zeros(gates.shape), np.zeros(experts.shape)
    for t, j, e in kept:
        into = (gates[t, j] if backward else 1.0) * g[t : t + 1]
        back, own = expert_gradients(experts[e], x[t : t + 1], into)
        gx[t] += back[0]
        ggates[t, j] = g[t] @ outputs[t, j]
        gw[e] += own
    return y, gx, ggates, gw


def divided(answer: Answer, case: Case, seed: int) -> Divided:
    """`moe_step` on p ranks."""
    p, n, capacity, d, k, most = case
    tokens, experts = drawn(case, seed)
    right = [on_one_node(one, experts, capacity) for one in tokens]
    bare = [on_one_node(one, experts, capacity, has_residual=False) for one in tokens]
    even = [on_one_node(one, experts, capacity, backward=False) for one in tokens]
    gw = sum(each[3] for each in right)
    ranks = []
    for rank, one in enumerate(tokens):
        mine = slice(rank * n, (rank + 1) * n)
        y, gx, ggates, own = right[rank]
        g, is_dropped = y - one["target"], (one["slots"] < 0).all(axis=1)[:, None]
        local = on_one_node(one, np.tile(experts[mine], (p, 1, 1)), capacity)
        mistakes: dict[str, Named] = {
            "y": {
                "x itself is missing: y is x plus what the experts give.": bare[rank][0],
                "A token whose choices are all dropped keeps its x: it is not 0.": np.where(is_dropped, 0.0, y),
                "The outputs of the experts are multiplied by the gates.": on_one_node(
                    one, experts, capacity, forward=False
                )[0],
                "Nothing of the experts came back.": one["x"],
                "Tokens met experts of their own rank only: expert e is on rank e // n.": local[0],
            },
            "gx": {
                "The gradient of y itself is missing: x goes into y directly, too.": gx - g,
                "Only the direct way of x into y counts here; the other one leads through the experts.": g,
                "What comes to the experts in backward is the gradient of y times the gate.": even[rank][1],
                "A token whose choices are all dropped has the gradient of y, not 0.": np.where(is_dropped, 0.0, gx),
                "y - target is the gradient of y; x - target is not.": gx - g + one["x"] - one["target"],
            },
            "ggates": {
                "The gradient of a gate does not contain the gate.": ggates * one["gates"],
            },
            "gw": {
                "The tokens of other ranks met this expert, too: these are the gradients of this rank's.": own[mine],
                "Each rank already has the sum over all tokens: another sum or mean over ranks is wrong.": gw[mine] * p,
                "The gradients are sums, not means over the ranks.": gw[mine] / p,
                "What comes to the experts in backward is the gradient of y times the gate.": (
                    sum(each[3] for each in even)[mine]
                ),
                "These are the gradients of all experts: return those of this rank's.": gw,
            },
        }  # fmt: skip
        given = {"x": one["x"], "slots": one["slots"], "gates": one["gates"], "experts": experts[mine].copy(),
                 "capacity": capacity, "target": one["target"]}  # fmt: skip
        ranks.append(Rank(given, {"y": y, "gx": gx, "ggates": ggates, "gw": gw[mine]}, mistakes))
    sizes = f"{p * n} experts, capacity {capacity}, width {d}, k={k}, {most} tokens on rank 0"
    return Divided(answer, sizes, ranks)


CAUSES = {
    "all_gather": "An all-gather brings every rank the tokens of all others, also those for other ranks' experts.",
    "all_reduce": "A rank needs its own tokens and those of its experts, not a sum over all ranks. The gradients of "
    "its experts contain all tokens already.",
    "reduce_scatter": "Tokens are not summed over the ranks.",
    "broadcast": "A broadcast brings every rank all of it.",
    "barrier": "The all-to-all itself waits for what it needs.",
}


def compare_messages(one: Divided, case: Case) -> None:
    """Raise Wrong unless each rank made four all-to-alls, each with the slots of the other ranks' experts."""
    p, n, capacity, d, _, _ = case
    words = n * capacity * d * (p - 1)
    for rank in range(p) if p > 1 else ():
        expected = f"{one.called(rank)}: expected four comm.all_to_all and nothing else"
        others = [name for name in one.run.operations[rank] if name != "all_to_all"]
        if others:
            raise Wrong(f"{expected}, got comm.{others[0]}.", CAUSES.get(others[0], ""))
        made = one.run.collectives[rank]
        expect.true(
            len(made) == 4,
            f"{expected}, got {len(made)}.",
            "Where k is 2, both choices of a token fit in one all-to-all: each has a slot of its own."
            if len(made) == 8
            else "Two in forward: tokens there, outputs back. Two in backward: gradients of the outputs there, those "
            "of the tokens back.",
        )
        for number, each in enumerate(made, start=1):
            got = each.nbytes / 8
            expect.true(
                got == words,
                f"{one.called(rank)}: expected {counted(words, 'number')} sent in all-to-all {number}, all slots of "
                f"the other ranks' experts, got {got:g}.",
                "With 4 bytes a number loses digits." if got == words / 2
                else "Every rank gets the slots of all experts here: it needs those of its own." if got == p * words
                else "Empty slots are sent, too, as zeros: so the messages have the same size whatever the gate does."
                if got < words else "",
            )  # fmt: skip
