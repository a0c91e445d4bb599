"""The checks of chapter 07: averaging instead of agreeing."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial

from course.checks.averaging import (
    elastic_runs,
    gossip_runs,
    graphs,
    local_runs,
    majority_rounds,
    stability,
)
from course.checks.library_versions import BUILDS
from course.judging import Answer, ChapterChecks, Part

chapter = ChapterChecks("07_averaging", BUILDS["07_averaging"])
hint = chapter.hint
__all__ = [
    "chapter", "consensus_factor", "elastic", "elastic_limit", "gossip", "hint", "local_sgd", "majority",
    "mixing_matrix", "rounds_and_words",
]  # fmt: skip


@chapter.exercise(
    points=3,
    hints=[
        "All right sides have the old values. So compute the pull first, from x and centre as they are.",
        "pull = alpha * (x - centre) in each step that is a multiple of the period. The centre gains the sum of the "
        "pulls of all workers: which operation adds them up on every rank?",
        "comm.all_reduce writes the sum into its argument, but the worker still needs its own pull. In all other steps "
        "the pull is 0, and there is nothing to add up.",
    ],
)
def elastic(
    answer: Answer,
    part: Part,
    *,
    alone: Sequence[elastic_runs.Case] = ((1, 3, 1, 4), (1, 2, 3, 7)),
    cases: Sequence[elastic_runs.Case] = ((2, 3, 1, 3), (3, 4, 2, 5), (4, 2, 3, 7), (2, 3, 4, 4), (2, 1100, 2, 2)),
    seed: int = 0,
) -> None:
    """Weights and centre; half of it is for the total that pulls conserve, and for rounds in each period-th step."""

    run = cache(partial(elastic_runs.elastic, answer, seed=seed))
    with part(0.5, "one worker and the centre"):
        for case in alone:
            elastic_runs.compare_trained(run(tuple(case)))
    with part(1, "several workers: weights of their own, and one centre"):
        for case in cases:
            elastic_runs.compare_trained(run(tuple(case)))
    with part(0.5, "pulls alone conserve the centre plus all workers"):
        for case in cases:
            elastic_runs.compare_total(elastic_runs.elastic(answer, case, seed, lr=0.0))
    with part(1, "one all-reduce of n words in every period-th step"):
        for case in cases:
            elastic_runs.compare_cost(run(tuple(case)))


@chapter.exercise(
    points=2,
    hints=[
        "Write down the round for equal workers: a step with a pull multiplies x by 1 - lr h - alpha, and adds alpha "
        "times the centre. The centre gains p alpha (x - centre). Each plain step multiplies x by 1 - lr h.",
        "As alpha grows, the smaller eigenvalue of the 2 times 2 matrix falls. At which value does it leave the stable "
        "range? There, det(A - value I) = 0.",
        "The value is -1. With q = (1 - lr h)^(period - 1), the plain steps multiply what the step with the pull gives "
        "for x by q. Multiply out det(A + I) = 0: alpha² cancels.",
    ],
)
def elastic_limit(
    answer: Answer,
    part: Part,
    *,
    alone: Sequence[stability.Setting] = ((1, 0.5, 1.0, 1), (1, 0.1, 1.0, 1), (1, 0.2, 3.0, 1)),
    several: Sequence[stability.Setting] = ((2, 0.5, 1.0, 1), (8, 0.1, 1.0, 1), (4, 0.3, 2.0, 1)),
    periods: Sequence[stability.Setting] = (
        (4, 0.1, 1.0, 4), (8, 0.05, 2.0, 16), (1, 0.5, 1.0, 3), (3, 0.4, 2.0, 2), (2, 0.01, 1.0, 150)
    ),
) -> None:  # fmt: skip
    """The limit up to rounding; three quarters are for several workers, whose pulls come at once, and for periods."""
    with part(0.5, "one worker with a pull in every step"):
        stability.judge(answer, alone)
    with part(0.5, "several workers with a pull in every step"):
        stability.judge(answer, several)
    with part(1, "longer periods"):
        stability.judge(answer, periods)


@chapter.exercise(
    points=3,
    hints=[
        "In every step: x = x - lr * gradient(x, step), with this machine's own weights. After which steps is there a "
        "round?",
        "After step number `step`, step + 1 steps are done. If step < first, there is a round. Later, step + 1 - first "
        "counts the steps since then: there is a round if it is a multiple of the period.",
        "comm.all_reduce gives the sum, and a round takes the mean. There is one after the last step in any case, but "
        "only one.",
    ],
)
def local_sgd(
    answer: Answer,
    part: Part,
    *,
    synchronous: Sequence[local_runs.Case] = ((2, 3, 1, 4, 0), (3, 2, 1, 3, 0)),
    periods: Sequence[local_runs.Case] = (
        (2, 3, 2, 5, 0), (3, 4, 3, 6, 0), (4, 2, 8, 5, 0), (1, 3, 2, 3, 0), (2, 1100, 2, 24, 0)
    ),
    post_local: Sequence[local_runs.Case] = ((2, 3, 3, 10, 1), (3, 2, 2, 6, 3), (2, 2, 4, 3, 5)),
    seed: int = 0,
) -> None:  # fmt: skip
    """The mean after the last round; half of it is for the rounds, and for the words in them."""

    run = cache(partial(local_runs.local, answer, seed=seed))
    with part(0.5, "a period of 1: minibatch SGD"):
        for case in synchronous:
            local_runs.compare_trained(run(tuple(case)))
    with part(0.5, "longer periods, the last of which may be incomplete"):
        for case in periods:
            local_runs.compare_trained(run(tuple(case)))
    with part(0.5, "a round after each of the first steps (post-local SGD)"):
        for case in post_local:
            local_runs.compare_trained(run(tuple(case)))
    with part(1.5, "one all-reduce of n words in each round, and nothing else"):
        for case in (*synchronous, *periods, *post_local):
            local_runs.compare_cost(run(tuple(case)))


@chapter.exercise(
    points=1,
    hints=[
        "min(first, steps) steps have a round each. How many periods are there in the other ones, if the last may be "
        "incomplete?",
        "-(-a // b) is a / b, rounded up. The words of a round are 2 (p - 1) messages of n / p words.",
    ],
)
def rounds_and_words(
    answer: Answer,
    part: Part,
    *,
    cases: Sequence[local_runs.Counted] = (
        (4, 10, 10, 3, 2), (8, 16, 12, 4, 0), (3, 5, 10, 4, 0), (2, 7, 4, 8, 0), (5, 10, 3, 2, 6), (1, 6, 8, 3, 1),
        (3, 7, 5, 5, 0), (7, 2_345_679, 9, 4, 0), (6, 5_000_000_011, 1000, 7, 3),
    ),
) -> None:  # fmt: skip
    """Rounds, and words of a ring all-reduce in each."""
    with part(0.5, "the number of rounds"):
        local_runs.judge_rounds(answer, cases)
    with part(0.5, "the words that a machine sends"):
        local_runs.judge_words(answer, cases)


@chapter.exercise(
    points=2,
    hints=[
        "If W is symmetric, its columns sum to what its rows sum to. So both machines of a pair should use the same "
        "weight for each other.",
        "The same weight for all pairs would do. How large may it be, if each machine has the rest for itself, which "
        "must not be below 0?",
        "Larger weights are better where both machines of a pair have few neighbours: the weights of Metropolis and "
        "Hastings look at the one of the two that has more.",
    ],
)
def mixing_matrix(
    answer: Answer,
    part: Part,
    *,
    regular: Sequence[graphs.Graph] = (("ring", 4), ("ring", 5), ("full", 3), ("path", 2)),
    irregular: Sequence[graphs.Graph] = (("star", 5), ("path", 4), ("random", 9), ("two stars", 8), ("path", 1)),
    seed: int = 0,
) -> None:
    """Averages that conserve the mean, on graphs of any kind; half of it is for that on irregular ones."""
    with part(0.5, "averages over neighbours: the rows sum to 1"):
        for graph in (*regular, *irregular):
            graphs.judge_rows(answer, [graph], seed)
    with part(1, "the mean stays: the columns sum to 1, too, on every graph"):
        for graph in (*regular, *irregular):
            graphs.judge_columns(answer, [graph], seed)
    with part(0.5, "machines agree fast enough"):
        for graph in (*regular, *irregular):
            graphs.judge_factor(answer, [graph], seed)


@chapter.exercise(
    points=1,
    hints=[
        "np.linalg.eigvals(W) has the eigenvalues of any matrix. One of them is 1: it belongs to the mean.",
        "Eigenvalues may be negative or complex: take the absolute values before you sort. With one machine there is "
        "no second one.",
    ],
)
def consensus_factor(
    answer: Answer,
    part: Part,
    *,
    symmetric: Sequence[graphs.Graph] = (("ring", 4), ("ring", 8), ("random", 6), ("full", 4), ("full", 1)),
    others: Sequence[graphs.Graph] = (
        ("two halves", 6), ("directed ring", 4), ("no own weight", 4), ("two groups", 5), ("permutations", 5),
        ("two wheels", 10),
    ),
    seed: int = 0,
) -> None:  # fmt: skip
    """The second largest absolute value of the eigenvalues, which may be negative, complex, or occur twice."""
    with part(0.5, "symmetric matrices, eigenvalues of 0 and above near 1"):
        for name, p in symmetric:
            graphs.judge_consensus(answer, [(name, p)], seed)
    with part(0.5, "negative and complex eigenvalues, and an eigenvalue 1 that occurs twice"):
        for name, p in others:
            graphs.judge_consensus(answer, [(name, p)], seed)


@chapter.exercise(
    points=2,
    hints=[
        "In each step: send x to all neighbours, then receive from all of them. Who waits for whom, if everybody "
        "receives first?",
        "Begin all sends by comm.isend, and keep what it returns. Then receive from each neighbour by its rank, as "
        "each has its own weight. The machine's own number needs no message.",
        "x itself is on its way while the messages are not taken: put the result into a new array, and wait for the "
        "sends before the next step.",
    ],
)
def gossip(
    answer: Answer,
    part: Part,
    *,
    once: Sequence[gossip_runs.Case] = ((("ring", 4), 3, 1), (("random", 5), 2, 1), (("star", 3), 2, 0)),
    often: Sequence[gossip_runs.Case] = (
        (("ring", 5), 2, 6), (("star", 4), 3, 3), (("random", 6), 2, 5), (("path", 3), 9000, 2)
    ),
    together: Sequence[gossip_runs.Case] = ((("ring", 9), 2, 1), (("path", 8), 1, 1)),
    seed: int = 0,
) -> None:  # fmt: skip
    """Rows of W^steps x; half of it is for messages to neighbours only, all at the same time."""

    @cache
    def run(case: gossip_runs.Case, in_rounds: bool = False) -> gossip_runs.Gossiped:
        return gossip_runs.gossiped(answer, case, seed, in_rounds)

    cases = [((str(graph[0]), int(graph[1])), n, steps) for graph, n, steps in (*once, *often)]
    with part(0.5, "one step: each machine's own average"):
        for case in cases[: len(once)]:
            gossip_runs.compare_mixed(run(case))
    with part(0.5, "several steps: the mean stays, and the distance to it shrinks by the consensus factor"):
        for case in cases[len(once) :]:
            gossip_runs.compare_consensus(run(case))
    with part(0.5, "in each step one message of n words to each neighbour, and nothing else"):
        for case in cases:
            gossip_runs.compare_messages(run(case))
            gossip_runs.compare_waited(run(case))
    with part(0.5, "all machines send at the same time"):
        for graph, n, steps in together:
            gossip_runs.compare_rounds(run(((str(graph[0]), int(graph[1])), n, steps), in_rounds=True))


@chapter.exercise(
    points=4,
    hints=[
        "In a round a machine waits for two kinds of messages at the same time: gradients of its training, and the "
        "activation by its parent in the tree of this round, whose root is drawn[r]. Gradients are added up until the "
        "activation comes.",
        "parent, children = tree(p, drawn[r], comm.rank). Wait by comm.recv({p + comm.rank, parent}), and look at "
        "comm.last_source. The drawn machine itself has no parent: its own gradient activates it.",
        "Once active, a machine activates its children, and then takes part in machines(comm, p).all_reduce, which "
        "writes the sum into its argument. What is put into the list must not change in the next round.",
        "An empty array from training says that nothing more will come. Remember it: it may come between two rounds, "
        "and the loop at the end has to know.",
    ],
)
def majority(
    answer: Answer,
    part: Part,
    *,
    even: Sequence[majority_rounds.Case] = ((2, 2, 3), (4, 3, 4), (1, 2, 2), (5, 2, 3)),
    uneven: Sequence[majority_rounds.Case] = ((2, 3, 3), (4, 2, 4)),
    same: Sequence[majority_rounds.Case] = ((4, 2, 3),),
    machines: int = 16,
    seed: int = 0,
) -> None:
    """Sums of what is ready; three quarters are for gradients that count once, times, and messages."""

    @cache
    def run(kind: str, case: majority_rounds.Case) -> majority_rounds.Majority:
        return majority_rounds.majority(answer, kind, case, seed)

    kinds = {"even": even, "uneven": uneven, "same": same}
    cases = [(kind, tuple(case)) for kind, of_kind in kinds.items() for case in of_kind]
    with part(1, "the sum of each round: all gradients that are ready"):
        for case in cases:
            majority_rounds.compare_sums(run(*case))
    with part(1, "each gradient counts once, late ones too: in a round, or in what is left"):
        for case in cases:
            majority_rounds.compare_conserved(run(*case))
    with part(1, "a round begins when the drawn machine is ready, and waits for nobody else"):
        for case in cases:
            majority_rounds.compare_times(run(*case))
    with part(0.5, "one all-reduce of n words in a round, and ceil(lg p) empty messages at most"):
        for case in cases:
            majority_rounds.compare_messages(run(*case))
    with part(0.5, "the last machine is activated within 3 ceil(lg p) seconds, if a message takes one"):
        majority_rounds.compare_activation(majority_rounds.far_between(answer, machines))
