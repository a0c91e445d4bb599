"""Answers to `momentum_step`."""

from __future__ import annotations

from tests.mutants import Alternative, Mutant

VELOCITY, PYTORCH = "velocity form: the rate inside", "PyTorch's: the rate outside"


def momentum(velocity: str, pytorch: str) -> str:
    """momentum_step with these lines for the two forms."""
    return f"""
def momentum_step(w, state, gradient, lr, mu, form):
    if form == "velocity":
        {velocity}
    else:
        {pytorch}
    return w, state
"""


RIGHT_VELOCITY = "state = mu * state - lr * gradient; w = w + state"
RIGHT_PYTORCH = "state = mu * state + gradient; w = w - lr * state"

MUTANTS = [
    Mutant(
        "momentum_step",
        "the forms are exchanged",
        momentum(RIGHT_PYTORCH, RIGHT_VELOCITY),
        loses=(VELOCITY, PYTORCH),
        says="This is PyTorch's form",
    ),
    Mutant(
        "momentum_step",
        "one form for both",
        momentum(RIGHT_PYTORCH, RIGHT_PYTORCH),
        loses=(VELOCITY,),
        says="This is PyTorch's form",
    ),
    Mutant(
        "momentum_step",
        "the rate twice",
        momentum("state = mu * state - lr * gradient; w = w + lr * state", RIGHT_PYTORCH),
        loses=(VELOCITY,),
        says="the rate is inside the velocity already",
    ),
    Mutant(
        "momentum_step",
        "up the gradient",
        momentum(
            "state = mu * state + lr * gradient; w = w + state", "state = mu * state + gradient; w = w + lr * state"
        ),
        loses=(VELOCITY, PYTORCH),
        says="the velocity points down, against the gradient",
    ),
    Mutant(
        "momentum_step",
        "against the velocity",
        momentum("state = mu * state - lr * gradient; w = w - state", RIGHT_PYTORCH),
        loses=(VELOCITY,),
        says="w moved against the velocity",
    ),
    Mutant(
        "momentum_step",
        "moves by the old state",
        momentum(
            "w = w + state; state = mu * state - lr * gradient", "w = w - lr * state; state = mu * state + gradient"
        ),
        loses=(VELOCITY, PYTORCH),
        says="first the velocity, then w",
    ),
    Mutant(
        "momentum_step",
        "an average of gradients",
        momentum(RIGHT_VELOCITY, "state = mu * state + (1 - mu) * gradient; w = w - lr * state"),
        loses=(PYTORCH,),
        says="that is an average of gradients, momentum is a sum",
    ),
    Mutant(
        "momentum_step",
        "Nesterov's step",
        momentum(RIGHT_VELOCITY, "state = mu * state + gradient; w = w - lr * (gradient + mu * state)"),
        loses=(PYTORCH,),
        says="This is Nesterov's step",
    ),
    Mutant(
        "momentum_step",
        "nothing is forgotten",
        momentum("state = state - lr * gradient; w = w + state", "state = state + gradient; w = w - lr * state"),
        loses=(VELOCITY, PYTORCH),
        says="The old velocity was not multiplied by mu",
    ),
    Mutant(
        "momentum_step",
        "the other order",
        """
def momentum_step(w, state, gradient, lr, mu, form):
    if form == "velocity":
        state = mu * state - lr * gradient
        return state, w + state
    state = mu * state + gradient
    return state, w - lr * state
""",
        loses=(VELOCITY, PYTORCH),
        says="They came in the other order: return w, state.",
    ),
    Mutant(
        "momentum_step",
        "only w comes back",
        """
def momentum_step(w, state, gradient, lr, mu, form):
    return w + mu * state - lr * gradient
""",
        loses=(VELOCITY, PYTORCH),
        says="expected 2 arrays",
    ),
    Mutant(
        "momentum_step",
        "the rate twice in PyTorch's form",
        momentum(RIGHT_VELOCITY, "state = mu * state + lr * gradient; w = w - lr * state"),
        loses=(PYTORCH,),
        says="The rate stands in both lines",
    ),
    Mutant(
        "momentum_step",
        "the rate on all of the velocity",
        momentum("state = lr * (mu * state - gradient); w = w + state", RIGHT_PYTORCH),
        loses=(VELOCITY,),
        says="multiplied by the rate",
    ),
    Mutant(
        "momentum_step",
        "1 - mu is kept",
        momentum(RIGHT_VELOCITY.replace("mu *", "(1 - mu) *"), RIGHT_PYTORCH.replace("mu *", "(1 - mu) *")),
        loses=(VELOCITY, PYTORCH),
        says="what is kept of the old state",
    ),
    Mutant(
        "momentum_step",
        "the old state comes back",
        momentum("w = w + mu * state - lr * gradient", "w = w - lr * (mu * state + gradient)"),
        loses=(VELOCITY, PYTORCH),
        says="the state that came back is the old one",
    ),
    Mutant(
        "momentum_step",
        "w does not move",
        momentum("state = mu * state - lr * gradient; w + state", "state = mu * state + gradient; w - lr * state"),
        loses=(VELOCITY, PYTORCH),
        says="w has not moved",
    ),
    Mutant(
        "momentum_step",
        "the gradient is used up",
        momentum("gradient *= lr; state = mu * state - gradient; w = w + state", RIGHT_PYTORCH),
        loses=(VELOCITY,),
        says="momentum_step changed its argument gradient at [0]",
    ),
    Mutant(
        "momentum_step",
        "in place, moved twice by one array",
        momentum("state *= mu; state -= lr * gradient; w += state; w = w + state", RIGHT_PYTORCH),
        loses=(VELOCITY,),
        says="w after momentum_step(",
    ),
    Mutant(
        "momentum_step",
        "one form for both",
        momentum(RIGHT_PYTORCH, RIGHT_PYTORCH),
        loses=(VELOCITY,),
        says="This is PyTorch's form",
    ),
]

ALTERNATIVES = [
    Alternative(
        "momentum_step",
        "in place, a list comes back",
        """
def momentum_step(w, state, gradient, lr, mu, form):
    state *= mu
    if form == "velocity":
        state -= lr * gradient
        w += state
    elif form == "pytorch":
        state += gradient
        w -= lr * state
    return [w, state]
""",
    ),
    Alternative(
        "momentum_step",
        "through the other form",
        """
def momentum_step(w, state, gradient, lr, mu, form):
    scale = -lr if form == "velocity" else 1.0
    total = mu * (state / scale) + gradient
    return w - lr * total, scale * total
""",
    ),
]
