"""Answers to `corrected_step`."""

from __future__ import annotations

from tests.mutants import Alternative, Mutant

CONSTANT = "as long as the rate is constant, the velocity form"
CHANGING = "where the rate changes, the path of PyTorch's form"


def corrected(lines: str) -> str:
    """corrected_step with these lines."""
    return f"""
def corrected_step(w, v, gradient, lr, lr_before, mu):
    {lines}
    return w, v
"""


MUTANTS = [
    Mutant(
        "corrected_step",
        "the momentum is thrown away",
        corrected("v = (mu * v if lr == lr_before else 0.0) - lr * gradient; w = w + v"),
        loses=(CHANGING,),
        says="The old velocity was thrown away",
    ),
    Mutant(
        "corrected_step",
        "corrected twice",
        corrected("v = mu * v * (lr / lr_before) ** 2 - lr * gradient; w = w + v"),
        loses=(CHANGING,),
        says="corrected twice",
    ),
    Mutant(
        "corrected_step",
        "only where the rate rises",
        corrected("v = mu * v * max(1.0, lr / lr_before) - lr * gradient; w = w + v"),
        loses=(CHANGING,),
        says="it still holds the old rate",
    ),
    Mutant(
        "corrected_step",
        "the sum of gradients comes back",
        corrected("v = -mu * v / lr_before + gradient; w = w - lr * v"),
        loses=(CONSTANT, CHANGING),
        says="PyTorch's sum of gradients",
    ),
    Mutant(
        "corrected_step",
        "the velocity is taken back to the old rate",
        corrected("v = mu * lr / lr_before * v - lr * gradient; w = w + v; v = v * lr_before / lr"),
        loses=(CHANGING,),
        says="not the one it moved by",
    ),
    Mutant(
        "corrected_step",
        "no correction",
        corrected("v = mu * v - lr * gradient; w = w + v"),
        loses=(CHANGING,),
        says="it still holds the old rate",
    ),
    Mutant(
        "corrected_step",
        "the factor is upside down",
        corrected("v = mu * lr_before / lr * v - lr * gradient; w = w + v"),
        loses=(CHANGING,),
        says="The factor is upside down",
    ),
    Mutant(
        "corrected_step",
        "the new gradient is rescaled too",
        corrected("v = (mu * v - lr * gradient) * lr / lr_before; w = w + v"),
        loses=(CHANGING,),
        says="The new gradient was rescaled too",
    ),
    Mutant(
        "corrected_step",
        "the gradient has the old rate",
        corrected("v = mu * v - lr_before * gradient; w = w + v"),
        loses=(CHANGING,),
        says="The gradient was multiplied by the old rate",
    ),
    Mutant(
        "corrected_step",
        "the correction is not kept",
        corrected("w = w + mu * lr / lr_before * v - lr * gradient; v = mu * v - lr * gradient"),
        loses=(CHANGING,),
        says="but the uncorrected one was returned",
    ),
    Mutant(
        "corrected_step",
        "the correction comes after the move",
        corrected("w = w + mu * v - lr * gradient; v = mu * lr / lr_before * v - lr * gradient"),
        loses=(CHANGING,),
        says="w moved by the uncorrected velocity",
    ),
    Mutant(
        "corrected_step",
        "PyTorch's form",
        corrected("v = mu * v + gradient; w = w - lr * v"),
        loses=(CONSTANT, CHANGING),
        says="This is PyTorch's form",
    ),
    Mutant(
        "corrected_step",
        "without mu",
        corrected("v = lr / lr_before * v - lr * gradient; w = w + v"),
        loses=(CONSTANT, CHANGING),
        says="The old velocity was not multiplied by mu",
    ),
    Mutant(
        "corrected_step",
        "right, but in place",
        """
def corrected_step(w, v, gradient, lr, lr_before, mu):
    v *= lr / lr_before
    for i in range(len(w)):
        v[i] = mu * v[i] - lr * gradient[i]
        w[i] += v[i]
    return w, v
""",
        loses=(CONSTANT,),
        says="corrected_step changed its argument w at [0]",
    ),
    Mutant(
        "corrected_step",
        "only where the rate falls",
        corrected("v = mu * v * min(1.0, lr / lr_before) - lr * gradient; w = w + v"),
        loses=(CHANGING,),
        says="it still holds the old rate",
    ),
    Mutant(
        "corrected_step",
        "by the difference of the rates",
        corrected("v = mu * v * (1 + lr - lr_before) - lr * gradient; w = w + v"),
        loses=(CHANGING,),
        says="after corrected_step(",
    ),
]

ALTERNATIVES = [
    Alternative(
        "corrected_step",
        "through PyTorch's form",
        """
def corrected_step(w, v, gradient, lr, lr_before, mu):
    total = gradient - mu * v / lr_before
    w = w - lr * total
    return w, -lr * total
""",
    ),
    Alternative(
        "corrected_step",
        "element by element, in copies",
        """
def corrected_step(w, v, gradient, lr, lr_before, mu):
    w, v = w.copy(), v * (lr / lr_before)
    for i in range(len(w)):
        v[i] = mu * v[i] - lr * gradient[i]
        w[i] += v[i]
    return [w, v]
""",
    ),
]
