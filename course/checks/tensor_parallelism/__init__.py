"""The checks of chapter 10: tensor parallelism."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial

from course.checks.library_versions import BUILDS
from course.checks.tensor_parallelism import (
    attention_heads,
    grid_products,
    linear_layers,
    mesh_and_grid,
    mlp_blocks,
    vocabulary_shards,
)
from course.checks.tensor_parallelism.counted_all_reduces import compare_all_reduces
from course.checks.tensor_parallelism.divided_runs import compare_runs, returned
from course.judging import Answer, ChapterChecks, Part

chapter = ChapterChecks("10_tensor_parallelism", BUILDS["10_tensor_parallelism"])
hint = chapter.hint
__all__ = [
    "attention", "best_grid", "chapter", "column_linear", "cross_entropy", "embedding", "hint", "mesh_groups", "mlp",
    "row_linear", "summa",
]  # fmt: skip


@chapter.exercise(
    points=1.5,
    hints=[
        "With all of x and some columns of w, a rank computes these columns of y, complete. Which of the four results "
        "needs what other ranks have?",
        "On one node gx = g @ w.T sums over the columns of w. Here each rank has some of them: it gets a partial sum.",
        "comm.all_reduce(array) makes the partial sum whole, in place. The three others are those of one node with "
        "this rank's w, b and g.",
    ],
)
def column_linear(
    answer: Answer,
    part: Part,
    *,
    cases: Sequence[linear_layers.Case] = ((2, 3, 4, 6), (3, 5, 2, 7), (1, 2, 3, 4), (4, 2, 5, 6), (2, 40, 30, 9)),
    seed: int = 0,
) -> None:
    """The shards of one node; two thirds are for the gradient of x and the one all-reduce."""

    run = cache(partial(linear_layers.by_columns, answer, seed=seed))

    with part(0.5, "this rank's columns of y, and the gradients of its weights and bias"):
        compare_runs(run, cases, returned("y", "gw", "gb"))
    with part(0.5, "the gradient of x, whole on each rank"):
        compare_runs(run, cases, returned("gx"))
    with part(0.5, "one all-reduce of B m words, and nothing else"):
        for p, B, m, n in cases:
            compare_all_reduces(run((p, B, m, n)), "gx", B * m, "Only gx is a partial sum.")


@chapter.exercise(
    points=1.5,
    hints=[
        "A rank's product of its columns of x and its rows of w has the shape of y. What do the other ranks have?",
        "comm.all_reduce(array) adds up the products of all ranks, in place. The bias is the same on all ranks: "
        "when is it to be added so that it counts once?",
        "g is whole on each rank, so gx, gw and gb are those of one node with this rank's x and w, without messages.",
    ],
)
def row_linear(
    answer: Answer,
    part: Part,
    *,
    cases: Sequence[linear_layers.Case] = ((2, 3, 6, 4), (3, 5, 7, 2), (1, 2, 4, 3), (4, 2, 6, 5), (2, 40, 9, 30)),
    seed: int = 0,
) -> None:
    """The output of one node; two thirds are for y, with the bias once, and the one all-reduce."""

    run = cache(partial(linear_layers.by_rows, answer, seed=seed))

    with part(0.5, "y, whole on each rank"):
        compare_runs(run, cases, returned("y"))
    with part(0.5, "the gradients of this rank's columns of x, of its weights, and of the bias"):
        compare_runs(run, cases, returned("gx", "gw", "gb"))
    with part(0.5, "one all-reduce of B n words, and nothing else"):
        for p, B, m, n in cases:
            compare_all_reduces(run((p, B, m, n)), "y", B * n, "Only y is a partial sum.")


@chapter.exercise(
    points=3,
    hints=[
        "A GELU of a sum needs the whole sum. Divide w1 so that each rank has complete hidden units without messages. "
        "Which rows of w2 do these units belong to?",
        "units = np.array_split(np.arange(h), comm.size)[comm.rank]. The rank reads w1[:, units] and w2[units, :]. Of "
        "the two products of the forward, only the second is a partial sum.",
        "Backward: the gradient of z comes from g, this rank's rows of w2 and gelu_slope(z). All hidden units "
        "depend on x: which result is a partial sum, then? All other gradients are complete.",
    ],
)
def mlp(
    answer: Answer,
    part: Part,
    *,
    cases: Sequence[mlp_blocks.Case] = ((2, 3, 4, 6), (3, 5, 4, 7), (1, 2, 3, 4), (4, 2, 5, 6), (2, 40, 30, 9)),
    seed: int = 0,
) -> None:
    """The MLP of one node; half of it is for one all-reduce in each direction, and for reading one shard only."""

    run = cache(partial(mlp_blocks.block, answer, seed=seed))

    with part(0.5, "y, whole on each rank"):
        compare_runs(run, cases, returned("y"))
    with part(0.5, "the gradient of x, whole on each rank"):
        compare_runs(run, cases, returned("gx"))
    with part(0.5, "the gradients of the weights and biases"):
        compare_runs(run, cases, returned("gw1", "gb1", "gw2", "gb2"))
    with part(1, "one all-reduce of B d words in the forward, and one in the backward"):
        why = "Divided by columns and then by rows, only y and gx are partial sums."
        for p, B, d, h in cases:
            compare_all_reduces(run((p, B, d, h)), "y", B * d, why, most=2)
    with part(0.5, "each rank reads its shard of the weights only"):
        compare_runs(partial(mlp_blocks.block, answer, seed=seed, is_limited=True), cases, returned("y", "gx"))


@chapter.exercise(
    points=3,
    hints=[
        "Which columns of wqkv does head i need? There are three blocks of them: one for Q, one for K and one for V.",
        "With width = d // heads, head i has columns i * width to (i + 1) * width - 1 of Q. For K they begin d columns "
        "later, for V 2 d columns later.",
        "Side by side, the outputs of the heads are multiplied with wo. So a head's columns are multiplied with the "
        "rows of wo of the same numbers: a rank's heads give a partial sum of y.",
        'First of all: if heads % comm.size: raise ValueError(f"{heads} heads ... {comm.size} ranks").',
    ],
)
def attention(
    answer: Answer,
    part: Part,
    *,
    cases: Sequence[attention_heads.Case] = ((2, 3, 8, 4), (3, 4, 6, 3), (1, 3, 4, 2), (2, 5, 6, 2), (2, 130, 8, 4)),
    uneven: Sequence[tuple[int, int]] = ((2, 3), (4, 6), (3, 2)),
    seed: int = 0,
) -> None:
    """The attention of one node; half of it is for the one all-reduce, reading one shard, and refusing uneven heads."""

    run = cache(partial(attention_heads.heads_of, answer, seed=seed))

    with part(1.5, "y, whole on each rank"):
        compare_runs(run, cases, returned("y"))
    with part(0.5, "one all-reduce of T d words, and nothing else"):
        why = "The heads do not depend on each other: only y is a partial sum."
        for p, T, d, heads in cases:
            compare_all_reduces(run((p, T, d, heads)), "y", T * d, why)
    with part(0.5, "each rank reads its heads' weights only"):
        compare_runs(partial(attention_heads.heads_of, answer, seed=seed, is_limited=True), cases, returned("y"))
    with part(0.5, "heads that p does not divide are refused"):
        for p, heads in uneven:
            attention_heads.refused(answer, p, heads, seed)


@chapter.exercise(
    points=2,
    hints=[
        "Each token is a row of one rank's table. What should all other ranks add for it, so that the sum is this row?",
        "here = (ids >= start) & (ids < start + len(table)) says which tokens are rows of this rank. y is zero for all "
        "others; then comm.all_reduce(y).",
        "gtable[rows] += g[here] counts a repeated token once; np.add.at adds all of them.",
    ],
)
def embedding(
    answer: Answer,
    part: Part,
    *,
    cases: Sequence[vocabulary_shards.Lookup] = (
        (2, 7, 5, 3), (3, 12, 8, 4), (1, 4, 3, 2), (4, 10, 9, 2), (2, 200, 300, 6),
    ),
    seed: int = 0,
) -> None:  # fmt: skip
    """The rows of one node; half of it is for tokens that are elsewhere, or several times, and for the all-reduce."""

    run = cache(partial(vocabulary_shards.lookup, answer, seed=seed))

    with part(0.5, "the rows of the tokens, whole on each rank"):
        compare_runs(run, cases, returned("y"))
    with part(0.5, "the gradient of this rank's rows, tokens that differ"):
        compare_runs(partial(run, is_repeated=False), cases, returned("gtable"))
    with part(0.5, "the gradient of this rank's rows, tokens that are there several times"):
        compare_runs(run, cases, returned("gtable"))
    with part(0.5, "one all-reduce of n d words, and nothing else"):
        for p, n, V, d in cases:
            compare_all_reduces(run((p, n, V, d)), "y", n * d, "Only y needs the rows of other ranks.")


@chapter.exercise(
    points=2,
    hints=[
        "log(sum_j exp(l_j)) = c + log(sum_j exp(l_j - c)) for each c, the same on all ranks. With c the maximum of "
        "the whole row nothing overflows.",
        "Three numbers of each sample come from all ranks: the maximum, then the sum of the exponentials, and the "
        "logit of the target, which one rank has and the others count as 0.",
        "The gradient of a logit is its share of the sum, less 1 in the column of the target. Which rank has that "
        "column? What does the mean over n samples change?",
    ],
)
def cross_entropy(
    answer: Answer,
    part: Part,
    *,
    cases: Sequence[vocabulary_shards.Loss] = ((2, 4, 5), (3, 6, 8), (1, 2, 3), (4, 5, 9), (2, 60, 70)),
    seed: int = 0,
) -> None:
    """The loss and gradient of one node; half of it is for few words, and for logits that overflow."""

    run = cache(partial(vocabulary_shards.loss, answer, seed=seed))

    with part(0.5, "the loss, the same on each rank"):
        compare_runs(run, cases, returned("loss"))
    with part(0.5, "the gradient of this rank's logits"):
        compare_runs(run, cases, returned("glogits"))
    with part(0.5, "large and small logits"):
        compare_runs(partial(run, is_large=True), cases, returned("loss", "glogits"))
    with part(0.5, "at most three all-reduces, of 3 n words together"):
        why = "A sample needs three numbers of all ranks: the maximum, the sum, and the logit of its target."
        for p, n, V in cases:
            compare_all_reduces(run((p, n, V)), "loss", n, why, most=3)


@chapter.exercise(
    points=3,
    hints=[
        "For a panel that begins at column t of A: which column of the grid has it? Which row of the grid has the "
        "panel of B that begins at row t?",
        "A block of A has k / pc columns, one of B has k / pr rows. So the panel at t is in column t // (k / pc) of "
        "the grid, and in row t // (k / pr). Where does it begin within the block?",
        "In each step the owner broadcasts its part, and the others give None: row.broadcast(..., src=owner), and "
        "the same with column for B. A slice of columns is sent as a copy: .copy(). What is added to the block of "
        "C?",
    ],
)
def summa(
    answer: Answer,
    part: Part,
    *,
    cases: Sequence[grid_products.Case] = (
        (2, 2, 1, 4, 4, 6), (2, 3, 2, 4, 12, 6), (1, 2, 1, 3, 4, 4), (3, 1, 1, 6, 6, 2), (1, 1, 2, 3, 4, 2),
        (2, 1, 4, 80, 8, 30), (1, 3, 2, 4, 6, 3),
    ),
    seed: int = 0,
) -> None:  # fmt: skip
    """The blocks of C; two thirds are for the words that a rank receives, and for panels of the given width."""

    run = cache(partial(grid_products.grid, answer, seed=seed))

    with part(1, "each rank's block of C"):
        compare_runs(run, cases, returned("C"))
    with part(1, "the words that each rank receives"):
        for case in cases:
            grid_products.compare_words(run(tuple(case)), tuple(case))
        compare_runs(run, cases, returned("C"))
    with part(1, "messages of one panel at most"):
        for case in cases:
            grid_products.compare_panels(run(tuple(case)), tuple(case))
        compare_runs(run, cases, returned("C"))


@chapter.exercise(
    points=1,
    hints=[
        "np.arange(dp * pp * tp).reshape(dp, pp, tp) has the rank of all coordinates: which axis changes first?",
        "The rank with coordinates (d, s, t) is (d * pp + s) * tp + t. In a group, one of the three goes through all "
        "its numbers, the two others stay.",
    ],
)
def mesh_groups(
    answer: Answer,
    part: Part,
    *,
    cases: Sequence[mesh_and_grid.Mesh] = ((2, 2, 2), (2, 3, 4), (3, 1, 2), (1, 1, 1), (4, 2, 1), (4, 8, 9)),
) -> None:
    """The groups of a mesh with the tensor coordinate innermost."""
    with part(0.5, "the groups that divide layers"):
        for dp, pp, tp in cases:
            mesh_and_grid.judge_groups(answer, (dp, pp, tp), ("tp",))
    with part(0.5, "the groups of stages and of replicas"):
        for dp, pp, tp in cases:
            mesh_and_grid.judge_groups(answer, (dp, pp, tp), ("pp", "dp"))


@chapter.exercise(
    points=1,
    hints=[
        "Write a function for the words of one grid, then take the smallest of all grids with dp tp = p.",
        "A replica's x has (B / dp) d words. A rank has 2 d h / tp weights of the MLP.",
        "Both sums have the factor 2 (q - 1) / q, with q = tp for activations and q = dp for gradients. How many "
        "all-reduces are there of each?",
    ],
)
def best_grid(
    answer: Answer,
    part: Part,
    *,
    cases: Sequence[mesh_and_grid.Cluster] = mesh_and_grid.CASES,
) -> None:  # fmt: skip
    """The cheapest grid of data and tensor parallelism, and its words."""
    with part(0.5, "the words on the grid that was chosen"):
        for p, B, d, h in cases:
            mesh_and_grid.judge_words(answer, (p, B, d, h))
    with part(0.5, "the grid that sends the fewest words"):
        for p, B, d, h in cases:
            mesh_and_grid.judge_choice(answer, (p, B, d, h))
