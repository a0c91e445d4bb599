"""A serial step of SGD with momentum, the results of known mistakes, and the comparison of all ranks with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from course.judging import Answer, expect
from course.judging.ranks.rank_run import RankRun
from course.judging.wrong import Wrong
from course.plural import counted

Array = NDArray[np.float64]
Shards = list[tuple[Array, Array]]

Case = tuple[int, int, int]
"""(p, samples of the minibatch, d)"""

SETTINGS = ((0.5, 0.9, 0.05), (0.5, 0.85, 0.07), (0.2, 0.7, 0.05), (0.8, 0.93, 0.03))
"""Learning rate, momentum and weight decay of each step."""

TINY = 1e-7
"""Size of the first weight, relative to the others: an answer must not drop small weights."""

ROUNDING = 1e-12
FLOAT32 = 1e-6

RATE_INSIDE = (
    "The velocity has the learning rate in it. When lr changes, the old steps keep their old rate: momentum correction "
    "(Goyal et al.) is missing."
)


def mean_gradient(w: Array, x: Array, y: Array) -> Array:
    """The gradient of the mean logistic loss, as in the assignment."""
    return x.T @ (1 / (1 + np.exp(-(x @ w))) - y) / len(x)


@dataclass(frozen=True)
class Step:
    """One step on all ranks: the state before it, the shards, and the settings."""

    w: Array
    v: Array
    shards: Shards
    lr: float
    momentum: float
    decay: float
    number: int

    @property
    def total(self) -> int:
        return sum(len(x) for x, _ in self.shards)

    @property
    def gradient(self) -> Array:
        """The gradient of the mean loss of the whole minibatch."""
        x, y = (np.concatenate(each) for each in zip(*self.shards, strict=True))
        return mean_gradient(self.w, x, y)

    def after(self, gradient: Array | None = None) -> tuple[Array, Array]:
        """Weights and velocity after the serial step; gradient: another one than the right one."""
        g = (self.gradient if gradient is None else gradient) + self.decay * self.w
        v = self.momentum * self.v + g
        return self.w - self.lr * v, v

    def arguments(self) -> list[tuple[Any, ...]]:
        """Those of every rank."""
        return [
            (self.w.copy(), self.v.copy(), x.copy(), y.copy(), self.total, self.lr, self.momentum, self.decay)
            for x, y in self.shards
        ]


def steps_of(case: Case, seed: int) -> Iterator[Step]:
    """Several steps of the serial run, each from the right state, on new minibatches in uneven shards."""
    p, samples, d = case
    rng = np.random.default_rng((seed, *case))
    scale = np.where(np.arange(d) == 0, TINY, 1 / np.sqrt(1 + d / 10))
    w, v = scale * rng.standard_normal(d), np.zeros(d)
    for number, (lr, momentum, decay) in enumerate(SETTINGS):
        x = scale * (rng.standard_normal((samples, d)) + 1.0)
        y = rng.integers(0, 2, samples).astype(float)
        cut = [np.array_split(each, p) for each in (x, y)]
        step = Step(w, v, list(zip(*cut, strict=True)), lr, momentum, decay, number)
        yield step
        w, v = step.after()


def run_step(answer: Answer, step: Step) -> RankRun:
    """The answer's step on all ranks."""
    return answer.on_ranks(step.arguments(), may_change=range(4))


def called(step: Step, rank: int) -> str:
    """The call on one rank, for messages."""
    p, own = len(step.shards), len(step.shards[rank][0])
    return (
        f"data_parallel_step on rank {rank} of {p}, step {step.number}, lr={step.lr:g}, {counted(own, 'sample')} of "
        f"{step.total} here"
    )


def returned(run: RankRun, step: Step, rank: int) -> tuple[Any, Any]:
    """The weights and the velocity that a rank returned."""
    w, v = expect.listed(run.results[rank], called(step, rank), "(w, v)", 2)
    return w, v


def compare(run: RankRun, step: Step) -> None:
    """Raise Wrong unless every rank returned the weights and the velocity of the serial step."""
    w, v = step.after()
    for rank in range(len(step.shards)):
        got_w, got_v = returned(run, step, rank)
        scale = ROUNDING * (1 + np.abs(w).max(initial=0.0) + np.abs(v).max(initial=0.0))
        weights = mistakes(step, rank)
        if is_nearly(got_w, w):
            weights = {"Almost: the numbers were rounded on the way, to float32 perhaps.": got_w}
        expect.array(got_w, w, f"{called(step, rank)}: w", rtol=0, atol=scale, mistakes=weights, dtype=np.float64)
        velocities = {
            "Weight decay is to go through the velocity, as in the three lines.": step.momentum * step.v
            + step.gradient,
            RATE_INSIDE: rate_inside(step),
            "The velocity is as it was: return the new one.": step.v,
            "The weights are right, the velocity is not: were the weights averaged, and each rank's velocity left as "
            "it was?": got_v,
        }
        expect.array(got_v, v, f"{called(step, rank)}: v", rtol=0, atol=scale, mistakes=velocities, dtype=np.float64)


def is_nearly(got: Any, want: Array) -> bool:
    """Whether an array is as far from the right one as float32 rounds."""
    is_alike = isinstance(got, np.ndarray) and got.shape == want.shape and got.dtype.kind == "f"
    return is_alike and expect.close(got, want, FLOAT32, FLOAT32)


def rate_inside(step: Step) -> Array:
    """The velocity in the form that has the learning rate in it: v = momentum * v + lr * g."""
    velocity: Array = step.momentum * step.v + step.lr * (step.gradient + step.decay * step.w)
    return velocity


def mistakes(step: Step, rank: int) -> dict[str, Array]:
    """For each known mistake, a sentence and this rank's w that it gives."""
    p, total, right = len(step.shards), step.total, step.gradient
    own_samples = len(step.shards[rank][0])
    means = [mean_gradient(step.w, x, y) if len(x) else np.zeros_like(step.w) for x, y in step.shards]
    sum_of_means, filled = np.sum(means, axis=0), sum(len(x) > 0 for x, _ in step.shards)
    mean_of_means = "This is a mean of the ranks' means. Shards differ in length: weight each by its samples."
    decay = step.decay * step.w
    w, v, lr, momentum = step.w, step.v, step.lr, step.momentum
    damped = momentum * v + (1 - momentum) * (right + decay)
    summed = p * momentum * v + right + decay

    def with_gradient(gradient: Array) -> Array:
        return step.after(gradient)[0]

    found = {
        "The means of all ranks were added: the serial run divides by the whole minibatch.": with_gradient(
            sum_of_means
        ),
        mean_of_means: with_gradient(sum_of_means / p),
        f"{mean_of_means} Ranks without samples were left out.": with_gradient(sum_of_means / filled),
        "This is the sum over all samples: divide by `total`.": with_gradient(right * total),
        "Only this rank's samples are in it: nothing was all-reduced.": with_gradient(means[rank]),
        "Weight decay came in once for every rank: add it once, after the all-reduce.": with_gradient(
            right + (p - 1) * decay
        ),
        "Weight decay came in once for every rank, divided by `total`: add it once, after that.": with_gradient(
            right + (p / total - 1) * decay
        ),
        "Weight decay is missing.": with_gradient(right - decay),
        RATE_INSIDE: w - rate_inside(step),
        "The velocities of all ranks were added: all-reduce the gradient, then update the velocity.": w - lr * summed,
        "The gradient is multiplied by 1 - momentum here; the serial run does not do that.": w - lr * damped,
        "The weights are as they were.": w,
        "The velocity is the old one: v is to be updated first.": w - lr * v,
        "The step goes up: w - lr * v.": w + lr * step.after()[1],
    }
    if own_samples:
        found["The sum over all samples was divided by this rank's own number of samples."] = with_gradient(
            right * total / own_samples
        )
    return found


def same_bits(run: RankRun, step: Step) -> None:
    """Raise Wrong unless all ranks returned the same weights and velocity to the bit, and the weights moved."""
    moved(run, step)
    first = returned(run, step, 0)
    for rank in range(len(step.shards)):
        for name, want, got in zip("wv", first, returned(run, step, rank), strict=True):
            numbers = expect.number_array(want, f"{called(step, 0)}: {name}", f"an array of shape {step.w.shape}")
            expect.same_bits(got, numbers, f"{called(step, rank)}: {name}, compared with that of rank 0")


def moved(run: RankRun, step: Step) -> None:
    """Raise Wrong unless all ranks returned other weights than those before the step."""
    for rank in range(len(step.shards)):
        w, where = returned(run, step, rank)[0], called(step, rank)
        numbers = expect.number_array(w, f"{where}: w", f"an array of shape {step.w.shape}")
        expect.true(not np.array_equal(numbers, step.w), f"{where}: the weights are as they were before the step.")


def kept(run: RankRun, step: Step) -> None:
    """Raise Wrong unless every rank's arguments are as they were."""
    for rank, before in enumerate(step.arguments()):
        for name, own, after in zip(("w", "v", "x", "y"), before[:4], run.arguments[rank][:4], strict=True):
            expect.same_bits(
                after,
                own,
                f"{called(step, rank)}: the caller's {name} was changed",
                {f"`{name} -= ...` and `{name} += ...` write into the caller's array; {name} = {name} - ... makes a "
                 "new one.": after},
            )  # fmt: skip


def other_samples(step: Step) -> Step:
    """The same step with other samples on the last rank that has any."""
    shards: list[tuple[Array, Array]] = list(step.shards)
    last = max(rank for rank, (x, _) in enumerate(shards) if len(x))
    shards[last] = (-2.0 * shards[last][0], shards[last][1])
    return replace(step, shards=shards)


def one_all_reduce(run: RankRun, step: Step) -> None:
    """Raise Wrong unless every rank made one all-reduce of d numbers, and nothing else."""
    p, d = len(step.shards), len(step.w)
    expected = "expected one comm.all_reduce of d numbers and no other communication"
    for rank in range(p):
        others = [name for name in run.operations[rank] if name != "all_reduce"]
        if others:
            cause = {
                "broadcast": "All ranks make the same update from the same sum: no weights need to be sent.",
                "all_gather": "An all-gather brings every rank all p gradients: p - 1 times d numbers.",
                "barrier": "The all-reduce itself waits for all ranks.",
            }
            raise Wrong(f"{called(step, rank)}: {expected}, got comm.{others[0]}.", cause.get(others[0], ""))
        own = run.collectives[rank]
        if p > 1 and len(own) != 1:
            raise Wrong(
                f"{called(step, rank)}: {expected}, got {len(own)} all-reduces.",
                "Nothing was communicated."
                if not own
                else "`total` is an argument: the number of samples need not be added up.",
            )
        if p == 2 and own[0].nbytes != 8 * d:
            raise Wrong(
                f"{called(step, rank)}, d={d}: {expected}, got one of {own[0].nbytes} bytes; d numbers have {8 * d}.",
                "float32 halves the traffic and loses digits." if own[0].nbytes == 4 * d else "",
            )


def depends_on_all(run: RankRun, other: RankRun, step: Step) -> None:
    """Raise Wrong unless other samples on one rank change the weights on every rank."""
    for rank in range(len(step.shards)):
        shape, where = f"an array of shape {step.w.shape}", f"{called(step, rank)}: w"
        results = [expect.number_array(returned(each, step, rank)[0], where, shape) for each in (run, other)]
        if np.array_equal(*results):
            raise Wrong(
                f"{called(step, rank)}: the new weights do not depend on the samples of other ranks.",
                "The sum that comm.all_reduce makes is in the array that it was given.",
            )


def cases_in(cases: Sequence[Case], seed: int) -> list[Step]:
    """All steps of all cases."""
    return [step for case in cases for step in steps_of(case, seed)]
