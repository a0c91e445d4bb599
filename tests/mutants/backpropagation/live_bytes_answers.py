"""Answers to `live_bytes`."""

from __future__ import annotations

from tests.mutants import Alternative, Mutant

EVALUATION, KEPT, FREED = "evaluation", "training, nothing freed", "training, freed as backward passes"


def memory(mistake: str, evaluation: str, kept: str, freed: str, loses: tuple[str, ...], says: str) -> Mutant:
    """Three expressions of a, the activations' numbers, and w, the weights'; empty for the right one."""
    return Mutant("live_bytes", mistake, chain(evaluation, kept, freed), loses, says)


def chain(evaluation: str = "", kept: str = "", freed: str = "") -> str:
    return f"""
def live_bytes(widths, batch, mode):
    a = [batch * n for n in widths]
    w = [0] + [m * n for m, n in zip(widths, widths[1:])]
    L = range(1, len(a))
    if mode == "evaluation":
        return {evaluation or "8 * max(a[i - 1] + a[i] for i in L)"}
    if mode == "nothing freed":
        return {kept or "8 * (2 * sum(a) - a[0] + sum(w))"}
    return {freed or "8 * max(sum(a[:i + 1]) + a[i] + (i > 1) * a[i - 1] + sum(w[i:]) for i in L)"}
"""


MUTANTS = [
    memory(
        "numbers, not bytes",
        "max(a[i - 1] + a[i] for i in L)",
        "2 * sum(a) - a[0] + sum(w)",
        "max(sum(a[:i + 1]) + a[i] + (i > 1) * a[i - 1] + sum(w[i:]) for i in L)",
        (EVALUATION, KEPT, FREED),
        "numbers, not bytes",
    ),
    memory(
        "4 bytes a number",
        "4 * max(a[i - 1] + a[i] for i in L)",
        "4 * (2 * sum(a) - a[0] + sum(w))",
        "4 * max(sum(a[:i + 1]) + a[i] + (i > 1) * a[i - 1] + sum(w[i:]) for i in L)",
        (EVALUATION, KEPT, FREED),
        "8 bytes here, not 4",
    ),
    memory(
        "the last layer is missing",
        "8 * max([a[i - 1] + a[i] for i in L[:-1]] or [0])",
        "",
        "",
        (EVALUATION,),
        "The last layer is missing",
    ),
    memory(
        "looks between the steps",
        "",
        "",
        "8 * max([sum(a) + a[-1]] + [sum(a[:i]) + (i > 1) * a[i - 1] + sum(w[i:]) for i in L])",
        (FREED,),
        "the peak lies within a step",
    ),
    memory(
        "the weights' gradients are freed",
        "",
        "",
        "8 * max(sum(a[:i + 1]) + a[i] + (i > 1) * a[i - 1] + w[i] for i in L)",
        (FREED,),
        "The gradients of the weights were freed",
    ),
    memory(
        "only the activation is freed",
        "",
        "",
        "8 * max(sum(a[:i + 1]) + sum(a[i:]) + (i > 1) * a[i - 1] + sum(w[i:]) for i in L)",
        (FREED,),
        "frees the activation's gradient, too",
    ),
    memory(
        "no gradient of the output",
        "",
        "8 * (2 * sum(a) - a[0] - a[-1] + sum(w))",
        "8 * max(sum(a[:i + 1]) + (i < len(w) - 1) * a[i] + (i > 1) * a[i - 1] + sum(w[i:]) for i in L)",
        (KEPT, FREED),
        "The gradient of the last activation, L, is missing",
    ),
    memory("evaluation keeps all", "8 * sum(a)", "", "", (EVALUATION,), "in evaluation an activation is freed"),
    memory("the largest alone", "8 * max(a)", "", "", (EVALUATION,), "live at once"),
    memory(
        "the two largest, neighbours or not", "8 * sum(sorted(a)[-2:])", "", "", (EVALUATION,), "need not be neighbours"
    ),
    memory(
        "the weights' gradients are missing",
        "",
        "8 * (2 * sum(a) - a[0])",
        "8 * max(sum(a[:i + 1]) + a[i] + (i > 1) * a[i - 1] for i in L)",
        (KEPT, FREED),
        "gradients of the weights are missing",
    ),
    memory(
        "a gradient for the input",
        "",
        "8 * (2 * sum(a) + sum(w))",
        "8 * max(sum(a[:i + 1]) + a[i] + a[i - 1] + sum(w[i:]) for i in L)",
        (KEPT, FREED),
        "Nobody asks",
    ),
    memory("nothing is freed", "", "", "8 * (2 * sum(a) - a[0] + sum(w))", (FREED,), "freed as backward passes"),
    memory(
        "the end of the forward pass",
        "",
        "",
        "8 * sum(a)",
        (FREED,),
        "when the forward pass ends",
    ),
    memory(
        "only the last layer's step",
        "",
        "",
        "8 * (sum(a) + a[-1] + (len(a) > 2) * a[-2] + w[-1])",
        (FREED,),
        "'training'): expected",
    ),
    memory(
        "the weights count",
        "8 * (max(a[i - 1] + a[i] for i in L) + sum(w))",
        "8 * (2 * sum(a) - a[0] + 2 * sum(w))",
        "8 * (max(sum(a[:i + 1]) + a[i] + (i > 1) * a[i - 1] + sum(w[i:]) for i in L) + sum(w))",
        (EVALUATION, KEPT, FREED),
        "in any case",
    ),
    Mutant(
        "live_bytes",
        "the list is used up",
        chain().replace("    a = [batch", "    a = [batch", 1).replace("    L = ", "    widths.reverse()\n    L = "),
        (EVALUATION,),
        "live_bytes changed its argument widths[0]",
    ),
    Mutant(
        "live_bytes",
        "numbers of 32 bits",
        chain()
        .replace("[batch * n for n in widths]", "np.array(widths, np.int32) * np.int32(batch)")
        .replace(
            "[0] + [m * n for m, n in zip(widths, widths[1:])]",
            "np.array([0] + [np.int32(m) * np.int32(n) for m, n in zip(widths, widths[1:])], np.int32)",
        ),
        (EVALUATION, KEPT, FREED),
        "'evaluation'): expected",
    ),
    memory(
        "the gradient of the output twice",
        "",
        "8 * (2 * sum(a) - a[0] + a[-1] + sum(w))",
        "8 * max(sum(a[:i + 1]) + a[-1] + a[i] + (i > 1) * a[i - 1] + sum(w[i:]) for i in L)",
        (KEPT, FREED),
        "'nothing freed'): expected",
    ),
    memory(
        "weights with a bias",
        "",
        "8 * (2 * sum(a) - a[0] + sum(w) + sum(widths[1:]))",
        "8 * max(sum(a[:i + 1]) + a[i] + (i > 1) * a[i - 1] + sum(w[i:]) + sum(widths[i:]) for i in L)",
        (KEPT, FREED),
        "'nothing freed'): expected",
    ),
]

ALTERNATIVES = [
    Alternative("live_bytes", "closed forms", chain()),
    Alternative(
        "live_bytes",
        "played through",
        """
def live_bytes(widths, batch, mode):
    a, L = np.array(widths) * batch, len(widths) - 1
    now = peak = a[0]
    for l in range(1, L + 1):
        now += a[l]
        peak = max(peak, now)
        if mode == "evaluation":
            now -= a[l - 1]
    if mode == "evaluation":
        return float(8 * peak)
    now += a[L]
    for l in range(L, 0, -1):
        now += widths[l] * widths[l - 1]
        if l > 1:
            now += a[l - 1]
        peak = max(peak, now)
        if mode == "training":
            now -= 2 * a[l]
    return 8 * peak
""",
    ),
]
