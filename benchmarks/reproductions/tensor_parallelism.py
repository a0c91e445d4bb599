"""Tensor parallelism: a divided layer computes the same, and sends what the papers state (T17, M3).

Megatron-LM (Shoeybi et al., arXiv:1909.08053) divides the first layer of each pair by columns and the second by rows: a
transformer block then takes two all-reduces in forward and two in backward. SUMMA (van de Geijn and Watts 1997) divides
both dimensions of a layer. A source warns that small products use a processor badly.

Here: a GPT in float64 trained by `parallel.Hybrid` under every factorisation of 8 nodes, simulated; its all-reduces as
the ledger has them; products of SUMMA on five grids; and the time of real products of which a rank has fewer and fewer
columns.

What must show: (1) weights equal to one node's within 1e-10 after training. (2) 2 + 2 all-reduces a block, 4 + 2 where
forward is computed again. (3) A rank of SUMMA receives m k/pr (1 - 1/pc) + k n/pc (1 - 1/pr) words exactly. (4) Layers
divided by rows first and by columns second, with GELU of each rank's share of the sum between them, differ from one
node by more than 0.1.

Shown and not judged: a product of N/P columns computes fewer GFLOP/s for a large P than for P = 1. On a busy machine
the clock said otherwise once in five runs.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from time import perf_counter
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.reproductions.reproduction import Reproduction, main
from minidl import Tensor, cluster, nn, optim, parallel
from minidl import functional as F
from minidl.cluster import Communicator
from minidl.data import Dataset, Splits
from minidl.parallel import Hybrid, Job, Serial
from minidl.parallel.products import Grid, block, summa
from minidl.parallel.tensor import layout_of, split_layers, vocabulary_cross_entropy
from minidl.plots import lines

TITLE = "Tensor parallelism: 2 + 2 all-reduces a block, and the words of SUMMA (T17, M3)"

NODES, VOCABULARY, POSITIONS = 8, 24, 8
GRIDS = ((1, 8), (2, 4), (4, 2), (8, 1), (3, 4))
SHARES = (1, 2, 4, 8, 16, 32, 64)
"""Ranks that divide the columns of the measured product."""
N = 1024


def experiment(reproduction: Reproduction) -> None:
    equality(reproduction)
    calls(reproduction)
    words(reproduction)
    order(reproduction)
    reproduction.picture(small_products(reproduction))


# The same numbers


def texts() -> Splits:
    tokens = np.random.default_rng(3).integers(VOCABULARY, size=(40, POSITIONS + 1))
    x, y = tokens[:, :-1], (tokens[:, :-1] * 5 + 1) % VOCABULARY
    return Splits(Dataset(x[:32], y[:32]), Dataset(x[32:], y[32:]))


def gpt(layers: int = 2) -> nn.Module:
    return nn.models.GPT(VOCABULARY, POSITIONS, layers, n_head=8, n_embd=32, dropout=0.1).double()


def equality(reproduction: Reproduction) -> None:
    """Train under every factorisation of the nodes, and compare the weights with one node's."""
    job = Job(gpt, texts, partial(optim.AdamW, lr=0.01), batch_size=16, epochs=2, clip_norm=0.5)
    rows, worst = [], 0.0
    for dp, pp, tp in product((1, 2, 4, 8), repeat=3):
        if dp * pp * tp != NODES or pp > 4:
            continue
        truth = parallel.train(job, Serial(shards=dp, micro_batches=2), on="simulation").checkpoint
        report = parallel.train(job, Hybrid(dp=dp, pp=pp, tp=tp, micro_batches=2), NODES, on="simulation")
        ours = report.checkpoint
        assert truth is not None
        assert ours is not None
        difference = max(float(np.abs(ours.model[name] - array).max()) for name, array in truth.model.items())
        sent = {axis: nbytes_along(report.trace, axis) for axis in ("tp", "pp", "dp")}
        rows.append([dp, pp, tp, difference, *(sent[axis] / 1e6 for axis in ("tp", "pp", "dp"))])
        worst = max(worst, difference)
    columns = ["dp", "pp", "tp", "difference from one node", "MB along tp", "MB along pp", "MB along dp"]
    reproduction.table(columns, rows, "weights after 4 steps, in float64; megabytes that rank 0 sent, simulated")
    reproduction.accept(worst < 1e-10, f"{len(rows)} factorisations of 8 nodes: weights differ by at most {worst:.0e}")


def nbytes_along(trace: Any, axis: str) -> int:
    return sum(each.nbytes for each in trace.ledger(axis)[0].values()) if axis in trace.axes else 0


# Messages


def all_reduces(layers: int, recompute: bool) -> int:
    """All-reduces of forward and backward of a GPT with that number of blocks on two ranks."""

    def program(comm: Communicator) -> None:
        model = gpt(layers)
        split_layers(model, comm, layout_of(model))
        if recompute:
            nn.checkpointing(model, every=1)
        tokens = np.random.default_rng(0).integers(VOCABULARY, size=(2, POSITIONS))
        vocabulary_cross_entropy(model(tokens), tokens, comm).backward()

    return cluster.launch(program, nodes=2, on="simulation").trace.ledger()[0]["all_reduce"].calls


def calls(reproduction: Reproduction) -> None:
    plain, again = (all_reduces(5, recompute) - all_reduces(1, recompute) for recompute in (False, True))
    reproduction.accept(
        (plain, again) == (4 * 4, 4 * 6),
        f"a block takes {plain / 4:g} all-reduces, and {again / 4:g} if forward is computed again",
    )


def words(reproduction: Reproduction) -> None:
    """Count what ranks receive in a product on several grids."""
    m, k, n = 48, 96, 24
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(m, k)), rng.normal(size=(k, n))
    rows, holds = [], True
    for pr, pc in GRIDS:

        def program(comm: Communicator, shape: tuple[int, int] = (pr, pc)) -> float:
            grid = Grid.of(comm.mesh(shape, ("row", "column")))
            c = summa(block(a, grid), block(b, grid), grid, k, panel=8)
            return float(np.abs(c.numpy() - block(a @ b, grid)).max())

        run = cluster.launch(program, nodes=pr * pc, on="simulation")
        formula = m * k / pr * (1 - 1 / pc) + k * n / pc * (1 - 1 / pr)
        received = {ledger["broadcast"].nbytes_received / 8 for ledger in run.trace.ledger()}
        holds &= received == {formula} and max(run.results) < 1e-12
        rows.append([f"{pr} x {pc}", formula, min(received), max(received), max(run.results)])
    columns = ["grid", "formula", "least", "most", "difference"]
    reproduction.table(columns, rows, f"words that a rank receives; ({m}, {k}) times ({k}, {n}), simulated")
    reproduction.accept(holds, f"SUMMA on {len(GRIDS)} grids: every rank receives the words of the formula")


def order(reproduction: Reproduction) -> None:
    """Divide the first layer by rows and leave out its all-reduce: GELU of a share of a sum is no share of its GELU."""
    rng = np.random.default_rng(0)
    x, first, second = rng.normal(size=(4, 8)), rng.normal(size=(8, 16)), rng.normal(size=(16, 8))
    whole = F.gelu(Tensor(x @ first)).numpy() @ second

    def differences(comm: Communicator) -> list[float]:
        """Of rows before columns, and of columns before rows, from one node."""
        rows, columns = (slice(size * comm.rank, size * (comm.rank + 1)) for size in (4, 8))
        rows_first = F.gelu(Tensor(x[:, rows] @ first[rows])).numpy() @ second
        columns_first = F.gelu(Tensor(x @ first[:, columns])).numpy() @ second[columns]
        return [float(np.abs(comm.all_reduce(share) - whole).max()) for share in (rows_first, columns_first)]

    wrong, right = cluster.launch(differences, nodes=2, on="simulation").results[0]
    reproduction.accept(
        wrong > 0.1 and right < 1e-12,
        f"one all-reduce: columns before rows differ from one node by {right:.0e}, rows before columns by {wrong:.2g}",
    )


# Small products


def small_products(reproduction: Reproduction) -> Figure:
    """Time a rank's share of a product, of N / P columns."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(64, N)).astype(np.float32)
    rates = []
    for p in SHARES:
        weight = rng.normal(size=(N, N // p)).astype(np.float32)
        seconds = min(timed(x, weight) for _ in range(30))
        rates.append(2 * 64 * N * (N // p) / seconds / 1e9)
    rows = [[p, N // p, rate, rate / rates[0]] for p, rate in zip(SHARES, rates, strict=True)]
    reproduction.table(
        ["ranks P", "columns N / P", "GFLOP/s", "of one rank's"],
        rows,
        f"a rank's product of (64, {N}) and ({N}, N / P) on one core, measured, the best of 30",
    )
    line = lines.Line("", [N / p for p in SHARES], rates, look="both")
    panel = lines.Panel([line], "columns of a rank, N / P", "GFLOP/s", log="x", ylim=(0, 1.1 * max(rates)))
    return lines.draw([panel], source="measured", title="The rate of a rank's product falls with its share")


def timed(x: Any, weight: Any) -> float:
    start = perf_counter()
    x @ weight
    return perf_counter() - start


if __name__ == "__main__":
    main(__file__, TITLE, experiment)
