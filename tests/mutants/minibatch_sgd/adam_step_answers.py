"""Answers to `adam_step`."""

from __future__ import annotations

from tests.mutants import Alternative, Mutant

MEANS = "m and v are the decayed means of the gradient and of its square"
ROOT = "m over the root of v, eps outside the root"
START = "corrected for the start at 0, at the first steps and later"


def adam(lines: str) -> str:
    """adam_step with the right m and v, and then these lines."""
    return f"""
def adam_step(w, m, v, t, gradient, lr, beta1, beta2, eps):
    m = beta1 * m + (1 - beta1) * gradient
    v = beta2 * v + (1 - beta2) * gradient**2
    {lines}
    return w, m, v
"""


MUTANTS = [
    Mutant(
        "adam_step",
        "eps inside the root",
        adam("w = w - lr * m / (1 - beta1**t) / np.sqrt(v / (1 - beta2**t) + eps)"),
        loses=(ROOT, START),
        says="eps stands inside the root here",
    ),
    Mutant(
        "adam_step",
        "no correction",
        adam("w = w - lr * m / (np.sqrt(v) + eps)"),
        loses=(START,),
        says="m and v were not corrected",
    ),
    Mutant(
        "adam_step",
        "only m is corrected",
        adam("w = w - lr * m / (1 - beta1**t) / (np.sqrt(v) + eps)"),
        loses=(START,),
        says="Only m was corrected",
    ),
    Mutant(
        "adam_step",
        "eps is added before v is corrected",
        adam("w = w - lr * np.sqrt(1 - beta2**t) / (1 - beta1**t) * m / (np.sqrt(v) + eps)"),
        loses=(START,),
        says="eps was added to the root of v, and that was corrected",
    ),
    Mutant(
        "adam_step",
        "t from 0",
        adam("t = t + 1; w = w - lr * m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + eps)"),
        loses=(START,),
        says="The corrections are those of step t + 1",
    ),
    Mutant(
        "adam_step",
        "the corrected means come back",
        adam("m, v = m / (1 - beta1**t), v / (1 - beta2**t); w = w - lr * m / (np.sqrt(v) + eps)"),
        loses=(MEANS,),
        says="The corrected mean was returned",
    ),
    Mutant(
        "adam_step",
        "no root",
        adam("w = w - lr * m / (1 - beta1**t) / (v / (1 - beta2**t) + eps)"),
        loses=(ROOT, START),
        says="The root is missing",
    ),
    Mutant(
        "adam_step",
        "up the gradient",
        adam("w = w + lr * m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + eps)"),
        loses=(ROOT, START),
        says="The step went up",
    ),
    Mutant(
        "adam_step",
        "the gradient in place of its mean",
        adam("w = w - lr * gradient / (np.sqrt(v / (1 - beta2**t)) + eps)"),
        loses=(ROOT, START),
        says="this is RMSProp's step",
    ),
    Mutant(
        "adam_step",
        "without eps",
        adam("w = w - lr * m / (1 - beta1**t) / np.sqrt(v / (1 - beta2**t))"),
        loses=(ROOT, START),
        says="eps was not added",
    ),
    Mutant(
        "adam_step",
        "without the rate",
        adam("w = w - m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + eps)"),
        loses=(ROOT, START),
        says="The rate was forgotten",
    ),
    Mutant(
        "adam_step",
        "moves by the old means",
        """
def adam_step(w, m, v, t, gradient, lr, beta1, beta2, eps):
    w = w - lr * m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + eps)
    return w, beta1 * m + (1 - beta1) * gradient, beta2 * v + (1 - beta2) * gradient**2
""",
        loses=(ROOT, START),
        says="w moved by the means before the step",
    ),
    Mutant(
        "adam_step",
        "(1 - beta)**t",
        adam("w = w - lr * m / (1 - beta1)**t / (np.sqrt(v / (1 - beta2)**t) + eps)"),
        loses=(ROOT, START),
        says="w after adam_step(",
    ),
    Mutant(
        "adam_step",
        "1 - beta * t",
        adam("w = w - lr * m / (1 - beta1 * t) / (np.sqrt(abs(v / (1 - beta2 * t))) + eps)"),
        loses=(ROOT, START),
        says="not 1 - beta * t",
    ),
    Mutant(
        "adam_step",
        "one v for all elements",
        adam("")
        .replace("gradient**2", "np.sum(gradient**2)")
        .replace("return w", "return w - lr * m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + eps)"),
        loses=(MEANS, ROOT, START),
        says="v after adam_step(",
    ),
    Mutant(
        "adam_step",
        "v of m",
        adam("")
        .replace("gradient**2", "m**2")
        .replace("return w", "return w - lr * m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + eps)"),
        loses=(MEANS, ROOT, START),
        says="not of m's",
    ),
    Mutant(
        "adam_step",
        "another order",
        adam("w = w - lr * m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + eps)").replace("w, m, v\n", "m, v, w\n"),
        loses=(MEANS, ROOT, START),
        says="They came in another order",
    ),
    Mutant(
        "adam_step",
        "the betas are exchanged",
        """
def adam_step(w, m, v, t, gradient, lr, beta1, beta2, eps):
    m = beta2 * m + (1 - beta2) * gradient
    v = beta1 * v + (1 - beta1) * gradient**2
    w = w - lr * m / (1 - beta2**t) / (np.sqrt(v / (1 - beta1**t)) + eps)
    return w, m, v
""",
        loses=(MEANS, ROOT, START),
        says="This is beta2's mean",
    ),
    Mutant(
        "adam_step",
        "v without the square",
        """
def adam_step(w, m, v, t, gradient, lr, beta1, beta2, eps):
    m = beta1 * m + (1 - beta1) * gradient
    v = beta2 * v + (1 - beta2) * np.abs(gradient)
    w = w - lr * m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + eps)
    return w, m, v
""",
        loses=(MEANS, ROOT, START),
        says="v is the mean of the squares",
    ),
    Mutant(
        "adam_step",
        "right, but in place",
        """
def adam_step(w, m, v, t, gradient, lr, beta1, beta2, eps):
    m += (1 - beta1) * (gradient - m)
    v += (1 - beta2) * (np.square(gradient) - v)
    root = np.sqrt(1 - beta2**t)
    w -= lr * root / (1 - beta1**t) * m / (np.sqrt(v) + eps * root)
    return w, m, v
""",
        loses=(MEANS,),
        says="adam_step changed its argument w at [0]",
    ),
    Mutant(
        "adam_step",
        "corrected in the first ten steps",
        adam(
            "c = [1 - beta1**t, 1 - beta2**t] if t <= 10 else [1, 1]; w = w - lr * m / c[0] / (np.sqrt(v / c[1]) + eps)"
        ),
        loses=(START,),
        says="were not corrected",
    ),
    Mutant(
        "adam_step",
        "t counted from 0, saved from the division by 0",
        adam("t = max(t - 1, 1); w = w - lr * m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + eps)"),
        loses=(START,),
        says="The corrections are those of step t - 1",
    ),
    Mutant(
        "adam_step",
        "counts the steps itself",
        """
steps = 0

def adam_step(w, m, v, t, gradient, lr, beta1, beta2, eps):
    global steps
    steps += 1
    m = beta1 * m + (1 - beta1) * gradient
    v = beta2 * v + (1 - beta2) * gradient**2
    w = w - lr * (m / (1 - beta1**steps)) / (np.sqrt(v / (1 - beta2**steps)) + eps)
    return w, m, v
""",
        loses=(ROOT, START),
        says="w after adam_step(",
    ),
    Mutant(
        "adam_step",
        "means of its own",
        """
means = {"m": 0, "v": 0}

def adam_step(w, m, v, t, gradient, lr, beta1, beta2, eps):
    if t == 1:
        means.update(m=0, v=0)
    m = means["m"] = beta1 * means["m"] + (1 - beta1) * gradient
    v = means["v"] = beta2 * means["v"] + (1 - beta2) * gradient**2
    return w - lr * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + eps), m, v
""",
        loses=(MEANS, ROOT, START),
        says="after adam_step(",
    ),
    Mutant(
        "adam_step",
        "the root of the correction is forgotten",
        adam("w = w - lr * (1 - beta2**t) / (1 - beta1**t) * m / (np.sqrt(v) + eps * (1 - beta2**t))"),
        loses=(START,),
        says="w after adam_step(",
    ),
    Mutant(
        "adam_step",
        "AdaGrad's sum",
        """
def adam_step(w, m, v, t, gradient, lr, beta1, beta2, eps):
    m = beta1 * m + (1 - beta1) * gradient
    v = v + gradient**2
    return w - lr * m / (1 - beta1**t) / (np.sqrt(v) + eps), m, v
""",
        loses=(MEANS, ROOT, START),
        says="v after adam_step(",
    ),
]

MUTANTS += [
    *(
        Mutant(
            "adam_step",
            f"{what} for {steps} steps only",
            adam(
                f"m_hat = m / (1 - beta1**t) if t <= {of_m} else m\n"
                f"    v_hat = v / (1 - beta2**t) if t <= {of_v} else v\n"
                "    w = w - lr * m_hat / (np.sqrt(v_hat) + eps)"
            ),
            loses=(START,),
            says=says,
        )
        for what, steps, of_m, of_v, says in (
            ("m corrected", 20, 20, 10**9, "Only v was corrected"),
            ("corrected", 100, 100, 100, "start at zero"),
            ("corrected", 1000, 1000, 1000, "start at zero"),
        )
    ),
    Mutant(
        "adam_step",
        "the gradient and its square in full",
        adam("w = w - lr * m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + eps)")
        .replace("(1 - beta1) * gradient", "gradient")
        .replace("(1 - beta2) * gradient", "gradient"),
        loses=(MEANS, ROOT, START),
        says="The gradient was not multiplied by 1 - beta1",
    ),
]

ALTERNATIVES = [
    Alternative(
        "adam_step",
        "the other order of operations, eps corrected with it",
        """
def adam_step(w, m, v, t, gradient, lr, beta1, beta2, eps):
    m = m + (1 - beta1) * (gradient - m)
    v = v + (1 - beta2) * (np.square(gradient) - v)
    root = np.sqrt(1 - beta2**t)
    w = w - lr * root / (1 - beta1**t) * m / (np.sqrt(v) + eps * root)
    return w, m, v
""",
    ),
    Alternative(
        "adam_step",
        "element by element",
        """
import math

def adam_step(w, m, v, t, gradient, lr, beta1, beta2, eps):
    out = [], [], []
    for w_i, m_i, v_i, g in zip(w, m, v, gradient):
        m_i = beta1 * m_i + (1 - beta1) * g
        v_i = beta2 * v_i + (1 - beta2) * g * g
        step = m_i / (1 - beta1**t) / (math.sqrt(v_i / (1 - beta2**t)) + eps)
        for column, value in zip(out, (w_i - lr * step, m_i, v_i)):
            column.append(value)
    return tuple(np.array(column) for column in out)
""",
    ),
    Alternative(
        "adam_step",
        "in single precision, another argument with a default",
        """
def adam_step(w, m, v, t, gradient, lr, beta1, beta2, eps, weight_decay=0.0):
    w, m, v, gradient = (np.float32(array) for array in (w, m, v, gradient))
    m = beta1 * m + (1 - beta1) * gradient
    v = beta2 * v + (1 - beta2) * gradient * gradient
    return [w - lr * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + eps) - weight_decay * w, m, v]
""",
    ),
]
