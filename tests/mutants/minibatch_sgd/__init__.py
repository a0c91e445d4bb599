"""Answers to the exercises of chapter 02."""

from __future__ import annotations

from tests.mutants import Alternative, Mutant
from tests.mutants.minibatch_sgd.training_loops import TRAINING_ALTERNATIVES, TRAINING_MUTANTS

ONCE = "every sample once an epoch, in batches of batch_size, the last one with the rest"
REPEATABLE = "the same seed and epoch give the same batches"
OWN_SHUFFLE = "every epoch and every seed has a shuffle of its own"
WITH, WITHOUT = "drawn with replacement", "drawn without replacement"
VELOCITY, PYTORCH = "velocity form: the rate inside", "PyTorch's: the rate outside"
CONSTANT = "as long as the rate is constant, the velocity form"
CHANGING = "where the rate changes, the path of PyTorch's form"
MEANS = "m and v are the decayed means of the gradient and of its square"
ROOT = "m over the root of v, eps outside the root"
START = "the first steps, corrected for the start at 0"


def sampler(order: str, batches: str = "[order[i : i + batch_size] for i in range(0, n, batch_size)]") -> str:
    """minibatches with this way to the order, and this way to cut it."""
    return f"""
def minibatches(n, batch_size, seed, epoch):
    order = {order}
    return {batches}
"""


RIGHT_ORDER = "np.random.default_rng((seed, epoch)).permutation(n)"


def variance(with_replacement: str, without: str) -> str:
    """gradient_variance with these two expressions."""
    return f"""
def gradient_variance(gradients, batch_size, replacement):
    n, d = gradients.shape
    one = gradients.var(axis=0).sum()
    if replacement:
        return {with_replacement}
    if n == 1:
        return 0.0
    return {without}
"""


RIGHT_WITHOUT = "one / batch_size * (n - batch_size) / (n - 1)"


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


def corrected(lines: str) -> str:
    """corrected_step with these lines."""
    return f"""
def corrected_step(w, v, gradient, lr, lr_before, mu):
    {lines}
    return w, v
"""


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
    # ---- minibatches ----
    Mutant(
        "minibatches",
        "drops the ragged last batch",
        sampler(RIGHT_ORDER, "[order[i : i + batch_size] for i in range(0, n - batch_size + 1, batch_size)]"),
        loses=(ONCE,),
        says="The last batch, which is smaller than the others, was left out",
    ),
    Mutant(
        "minibatches",
        "fills up the last batch from the beginning",
        sampler(
            RIGHT_ORDER,
            "[np.resize(order, -(-n // batch_size) * batch_size)[i : i + batch_size] for i in range(0, n, batch_size)]",
        ),
        loses=(ONCE,),
        says="The last batch was filled up",
    ),
    Mutant(
        "minibatches",
        "evens the batches out",
        sampler(RIGHT_ORDER, "np.array_split(order, -(-n // batch_size)) if n else []"),
        loses=(ONCE,),
        says="The batches were made equally large",
    ),
    Mutant(
        "minibatches",
        "loses the last full batch",
        sampler(
            RIGHT_ORDER,
            "[order[i : i + batch_size] for i in range(0, n - batch_size, batch_size)]"
            " + ([order[n - n % batch_size :]] if n % batch_size else [])",
        ),
        loses=(ONCE,),
        says="The last full batch was left out",
    ),
    Mutant(
        "minibatches",
        "draws with replacement",
        sampler("np.random.default_rng((seed, epoch)).integers(0, max(n, 1), n)"),
        loses=(ONCE,),
        says="drawn with replacement",
    ),
    Mutant(
        "minibatches",
        "an empty batch at the end",
        sampler(RIGHT_ORDER, "[order[i : i + batch_size] for i in range(0, n + 1, batch_size)]"),
        loses=(ONCE,),
        says="There is an empty batch",
    ),
    Mutant(
        "minibatches",
        "counts from 1",
        sampler(RIGHT_ORDER + " + 1"),
        loses=(ONCE,),
        says="Indices count from 0",
    ),
    Mutant(
        "minibatches",
        "without a shuffle",
        sampler("np.arange(n)"),
        loses=(OWN_SHUFFLE,),
        says="They were not shuffled",
    ),
    Mutant(
        "minibatches",
        "the same order in every epoch",
        sampler("np.random.default_rng(seed).permutation(n)"),
        loses=(OWN_SHUFFLE,),
        says="Does the generator depend on the epoch",
    ),
    Mutant(
        "minibatches",
        "the seed is not used",
        sampler("np.random.default_rng(epoch).permutation(n)"),
        loses=(OWN_SHUFFLE,),
        says="Does the generator depend on the seed?",
    ),
    Mutant(
        "minibatches",
        "seed times epoch",
        sampler("np.random.default_rng(seed * epoch).permutation(n)"),
        loses=(OWN_SHUFFLE,),
        says="have the same batches",
    ),
    Mutant(
        "minibatches",
        "unseeded",
        sampler("np.random.default_rng().permutation(n)"),
        loses=(REPEATABLE,),
        says="The generator is not made from seed and epoch",
    ),
    Mutant(
        "minibatches",
        "a generator that lives on between calls",
        """
generators = {}

def minibatches(n, batch_size, seed, epoch):
    rng = generators.setdefault(seed, np.random.default_rng(seed))
    order = rng.permutation(n)
    return [order[i : i + batch_size] for i in range(0, n, batch_size)]
""",
        loses=(REPEATABLE,),
        says="it lives on from one call to the next",
    ),
    Mutant(
        "minibatches",
        "shuffles the batches, not the samples",
        """
def minibatches(n, batch_size, seed, epoch):
    batches = [np.arange(i, min(i + batch_size, n)) for i in range(0, n, batch_size)]
    ragged = batches[len(batches) - (n % batch_size > 0) :]
    full = batches[: len(batches) - len(ragged)]
    return [full[i] for i in np.random.default_rng((seed, epoch)).permutation(len(full))] + ragged
""",
        loses=(OWN_SHUFFLE,),
        says="The order of the batches was shuffled; shuffle the samples",
    ),
    Mutant(
        "minibatches",
        "turns the order round",
        sampler("np.roll(np.arange(n), np.random.default_rng((seed, epoch)).integers(1, max(n, 2)))"),
        loses=(OWN_SHUFFLE,),
        says="a sample is followed by its neighbour",
    ),
    Mutant(
        "minibatches",
        "the order, not cut",
        sampler(RIGHT_ORDER, "order"),
        loses=(ONCE, REPEATABLE, OWN_SHUFFLE),
        says="The order was not cut into batches",
    ),
    Mutant(
        "minibatches",
        "shuffles within the batches",
        sampler(
            "np.random.default_rng((seed, epoch))",
            "[order.permutation(np.arange(n)[i : i + batch_size]) for i in range(0, n, batch_size)]",
        ),
        loses=(OWN_SHUFFLE,),
        says="Each batch was shuffled by itself",
    ),
    Mutant(
        "minibatches",
        "batch_size batches",
        sampler(RIGHT_ORDER, "[order[i::batch_size] for i in range(batch_size)]"),
        loses=(ONCE,),
        says="it is the size of each, not their number",
    ),
    Mutant(
        "minibatches",
        "never ends",
        """
def minibatches(n, batch_size, seed, epoch):
    order = np.random.default_rng((seed, epoch)).permutation(n)
    while n:
        yield from (order[i : i + batch_size] for i in range(0, n, batch_size))
""",
        loses=(ONCE,),
        says="the epoch ends when each was used once",
    ),
    Mutant(
        "minibatches",
        "the smaller batch first",
        sampler(
            RIGHT_ORDER,
            "[b for b in [order[: n % batch_size], *(order[i : i + batch_size] "
            "for i in range(n % batch_size, n, batch_size))] if len(b)]",
        ),
        loses=(ONCE,),
        says="The smaller batch came first",
    ),
    # ---- gradient_variance ----
    Mutant(
        "gradient_variance",
        "with and without exchanged",
        variance("one / batch_size * (n - batch_size) / max(n - 1, 1)", "one / batch_size"),
        loses=(WITH, WITHOUT),
        says="This is the variance without replacement",
    ),
    Mutant(
        "gradient_variance",
        "never more than n with replacement",
        variance("one / min(batch_size, n)", RIGHT_WITHOUT),
        loses=(WITH,),
        says="it may be larger than n",
    ),
    Mutant(
        "gradient_variance",
        "the factor is upside down",
        variance("one / batch_size", "one / batch_size * (n - 1) / (n - batch_size) if batch_size < n else 0.0"),
        loses=(WITHOUT,),
        says="upside down",
    ),
    Mutant(
        "gradient_variance",
        "the whole covariance matrix",
        variance("np.cov(gradients.T, bias=True).sum() / batch_size", RIGHT_WITHOUT),
        loses=(WITH,),
        says="the trace is the sum of its diagonal",
    ),
    Mutant(
        "gradient_variance",
        "a sum over the samples",
        variance("one * n / batch_size", RIGHT_WITHOUT),
        loses=(WITH,),
        says="their mean is wanted",
    ),
    Mutant(
        "gradient_variance",
        "distances that are not squared",
        variance("np.linalg.norm(gradients - gradients.mean(axis=0), axis=1).mean() / batch_size", RIGHT_WITHOUT),
        loses=(WITH,),
        says="The distances were not squared",
    ),
    Mutant(
        "gradient_variance",
        "divides by n - 1",
        variance("gradients.var(axis=0, ddof=min(1, n - 1)).sum() / batch_size", RIGHT_WITHOUT),
        loses=(WITH,),
        says="Divided by n - 1",
    ),
    Mutant(
        "gradient_variance",
        "the variance of one sample",
        variance("one", "one * (n - batch_size) / (n - 1)"),
        loses=(WITH, WITHOUT),
        says="It was not divided by batch_size",
    ),
    Mutant(
        "gradient_variance",
        "falls as the root of the batch",
        variance("one / np.sqrt(batch_size)", "one / np.sqrt(batch_size) * (n - batch_size) / (n - 1)"),
        loses=(WITH, WITHOUT),
        says="falls as 1/sqrt(B)",
    ),
    Mutant(
        "gradient_variance",
        "the standard deviation",
        variance("np.sqrt(one / batch_size)", f"np.sqrt({RIGHT_WITHOUT})"),
        loses=(WITH, WITHOUT),
        says="This is the standard deviation",
    ),
    Mutant(
        "gradient_variance",
        "the mean over the coordinates",
        variance("one / d / batch_size", f"{RIGHT_WITHOUT} / d"),
        loses=(WITH, WITHOUT),
        says="the trace of the covariance is their sum",
    ),
    Mutant(
        "gradient_variance",
        "all entries thrown together",
        variance("gradients.var() / batch_size", "gradients.var() / batch_size * (n - batch_size) / (n - 1)"),
        loses=(WITH, WITHOUT),
        says="take the variance of each column",
    ),
    Mutant(
        "gradient_variance",
        "a mean square",
        variance("(gradients**2).sum() / n / batch_size", RIGHT_WITHOUT),
        loses=(WITH,),
        says="The mean gradient was not subtracted",
    ),
    Mutant(
        "gradient_variance",
        "along the wrong axis",
        variance("gradients.var(axis=1).sum() / batch_size", RIGHT_WITHOUT),
        loses=(WITH,),
        says="a row is a sample",
    ),
    Mutant(
        "gradient_variance",
        "a sum over the batch",
        variance("one * batch_size", RIGHT_WITHOUT),
        loses=(WITH,),
        says="This is a sum over the batch",
    ),
    Mutant(
        "gradient_variance",
        "a variance for each coordinate",
        variance("gradients.var(axis=0) / batch_size", RIGHT_WITHOUT),
        loses=(WITH,),
        says="The variances of the coordinates are to be added up",
    ),
    Mutant(
        "gradient_variance",
        "replacement is ignored",
        variance("one / batch_size", "one / batch_size"),
        loses=(WITHOUT,),
        says="This is the variance with replacement",
    ),
    Mutant(
        "gradient_variance",
        "(n - B)/n",
        variance("one / batch_size", "one / batch_size * (n - batch_size) / n"),
        loses=(WITHOUT,),
        says="not (n - B)/n",
    ),
    Mutant(
        "gradient_variance",
        "not a number for one sample",
        """
def gradient_variance(gradients, batch_size, replacement):
    n = len(gradients)
    one = gradients.var(axis=0).sum()
    return one / batch_size if replacement else one / batch_size * np.float64(n - batch_size) / (n - 1)
""",
        loses=(WITHOUT,),
        says="With a single sample there is nothing to draw",
    ),
    # ---- momentum_step ----
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
    # ---- corrected_step ----
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
    # ---- adam_step ----
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
        says="eps is missing",
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
    *TRAINING_MUTANTS,
]

ALTERNATIVES = [
    Alternative(
        "minibatches",
        "a generator of tuples, Python's own random numbers",
        """
import random

def minibatches(n, batch_size, seed, epoch):
    order = list(range(n))
    random.Random(f"{seed}, {epoch}").shuffle(order)
    while order:
        yield tuple(order[:batch_size])
        order = order[batch_size:]
""",
    ),
    Alternative(
        "minibatches",
        "numpy's old generator, seed + epoch, array_split",
        """
def minibatches(n, batch_size, seed, epoch):
    np.random.seed(seed + epoch)
    order = np.arange(n)
    np.random.shuffle(order)
    return np.split(order, range(batch_size, n, batch_size)) if n else []
""",
    ),
    Alternative(
        "minibatches",
        "choice without replacement, each batch sorted, as a set or an int32 array",
        """
def minibatches(n, batch_size, seed, epoch):
    rng = np.random.Generator(np.random.PCG64([epoch, seed]))
    left = set(range(n))
    while left:
        size = min(batch_size, len(left))
        batch = np.sort(rng.choice(sorted(left), size, replace=False)).astype(np.int32)
        left -= set(batch.tolist())
        yield batch if size > 2 else set(batch.tolist())
""",
    ),
    Alternative(
        "minibatches",
        "minidl's loader",
        """
def minibatches(n, batch_size, seed, epoch):
    loader = data.DataLoader(data.Dataset(np.arange(n), np.arange(n)), batch_size, shuffle=True, seed=seed)
    loader.set_epoch(epoch)
    return (batch.x for batch in loader)
""",
    ),
    Alternative(
        "gradient_variance",
        "the trace of numpy's covariance, a factor for both",
        """
def gradient_variance(gradients, batch_size, replacement):
    n = len(gradients)
    if n == 1:
        return 0
    sample_covariance = np.atleast_2d(np.cov(gradients, rowvar=False))
    factor = (n - 1) / n / batch_size if replacement else 1 / batch_size - 1 / n
    return np.trace(sample_covariance) * factor
""",
    ),
    Alternative(
        "gradient_variance",
        "every possible batch is tried, if there are few",
        """
import itertools

def gradient_variance(gradients, batch_size, replacement):
    n, full = len(gradients), gradients.mean(axis=0)
    if n > 10 or n**batch_size > 100_000 and replacement:
        one = float(np.mean(np.linalg.norm(gradients - full, axis=1) ** 2))
        return one / batch_size * (1 if replacement else (n - batch_size) / (n - 1))
    rows = range(n)
    batches = itertools.product(rows, repeat=batch_size) if replacement else itertools.combinations(rows, batch_size)
    return np.mean([((gradients[list(batch)].mean(axis=0) - full) ** 2).sum() for batch in batches])
""",
    ),
    Alternative(
        "gradient_variance",
        "loops, second moments",
        """
def gradient_variance(gradients, batch_size, replacement):
    n, d = gradients.shape
    total = 0.0
    for column in range(d):
        total += sum(g * g for g in gradients[:, column]) / n - (sum(gradients[:, column]) / n) ** 2
    if replacement or batch_size == 1:
        return total / batch_size
    return total / batch_size * (n - batch_size) / (n - 1)
""",
    ),
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
        "in place, element by element",
        """
def corrected_step(w, v, gradient, lr, lr_before, mu):
    v *= lr / lr_before
    for i in range(len(w)):
        v[i] = mu * v[i] - lr * gradient[i]
        w[i] += v[i]
    return w, v
""",
    ),
    Alternative(
        "adam_step",
        "the other order of operations, eps corrected with it",
        """
def adam_step(w, m, v, t, gradient, lr, beta1, beta2, eps):
    m += (1 - beta1) * (gradient - m)
    v += (1 - beta2) * (np.square(gradient) - v)
    root = np.sqrt(1 - beta2**t)
    w -= lr * root / (1 - beta1**t) * m / (np.sqrt(v) + eps * root)
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
    *TRAINING_ALTERNATIVES,
]
