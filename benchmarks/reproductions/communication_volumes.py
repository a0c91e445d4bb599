"""Communication volumes: what a rank needs for a matrix product by 1-D to 3-D grids, and for a step in 1.5-D (M6, M7).

COSMA (Kwasniewski et al., arXiv:1908.09606) multiplies matrices with as few words as the memory of the ranks allows, up
to sqrt(3) times fewer than earlier algorithms. Gholami et al. (arXiv:1712.04432) divide a network's weights over pr
ranks and its samples over pc; the fewest words are often between pure model and pure batch parallelism.

Here: the formulas. Square matrices of 4,096 x 4,096 numbers are multiplied on 4 to 16,384 ranks, which have three times
the memory that the matrices take; 2.5-D keeps four copies of the factors. A network of four layers is divided over 64
ranks in all seven ways. Tests compare the formulas with the words in the ledger.

What must show: (1) the volumes are ordered 1-D > 2-D > 2.5-D >= lower bound on 64 ranks and more. (2) The recursive
algorithm never needs more than sqrt(3) times the bound's words of the two factors, and exactly that with a hundredth of
the memory. (3) The best of the seven ways is all batch for many samples and all model for few. For a number between, it
is near the closed form pr = sqrt(2 d p / (3 B)) for layers of width d, p ranks and B samples, within a factor of 2.
"""

from __future__ import annotations

from math import inf, isclose, sqrt

from matplotlib.figure import Figure

from benchmarks.reproductions.reproduction import Reproduction, main
from minidl.parallel.products import faces, lower_bound, model_and_batch, recursive
from minidl.plots import lines

TITLE = "Fewest words: matrix products by COSMA's bound, networks by model and batch together (M6, M7)"

SIDE = 4096
RANKS = [4**power for power in range(1, 8)]
COPIES = 4  # of the factors in 2.5-D
WIDTH, LAYERS, NODES = 1024, 4, 64
MODEL = [2**power for power in range(7)]
BATCHES = (16, 1024, 65536)


def experiment(reproduction: Reproduction) -> None:
    needed = products(reproduction)
    sent = networks(reproduction)
    reproduction.picture(draw(needed, sent))


def products(reproduction: Reproduction) -> dict[str, list[float]]:
    """Compare the volumes of grids with the bound; returns them relative to it, for each number of ranks."""
    n, rows, gains = SIDE, [], []
    for p in RANKS:
        root, memory, cube = round(sqrt(p)), 9 * n * n / p, (n**3 / p) ** (2 / 3)
        deep = (root // 2, root // 2, COPIES) if p >= COPIES**3 else (root, root, 1)
        grids = [sum(faces(n, n, n, grid)) for grid in ((p, 1, 1), (root, root, 1), deep)]
        by_recursion, bound = recursive(n, n, n, p, memory), lower_bound(n, n, n, p, memory)
        rows.append([p, *grids, by_recursion, bound, lower_bound(n, n, n, p, inf)])
        for room in (memory, memory / 100):
            least = lower_bound(n, n, n, p, room) - min(room, cube)
            gains.append((recursive(n, n, n, p, room) - cube) / least)
    columns = ["ranks", "1-D", "2-D", "2.5-D", "recursive", "bound", "3-D: bound with any memory"]
    note = f"formula; words that a rank needs, its own included; ({n}, {n}) times ({n}, {n})"
    reproduction.table(columns, rows, note)
    large = [row for row in rows if row[0] >= COPIES**3]
    reproduction.accept(
        all(one > two > half >= bound * (1 - 1e-12) for _, one, two, half, _, bound, _ in large),
        f"1-D > 2-D > 2.5-D >= bound; on {RANKS[-1]:,} ranks they are "
        + ", ".join(f"{words / large[-1][5]:.3g}" for words in large[-1][1:4])
        + " times the bound",
    )
    reproduction.accept(
        isclose(max(gains), sqrt(3)) and min(gains) > 1 - 1e-9,
        f"words of the factors by recursion: {min(gains):.3f} to {max(gains):.3f} times the bound's, sqrt(3) = 1.732",
    )
    return {name: [row[1 + at] / row[5] for row in rows] for at, name in enumerate(columns[1:5])}


def networks(reproduction: Reproduction) -> dict[int, list[float]]:
    """Divide a network in all ways; returns the words of a step for each batch."""
    sent = {
        batch: [sum(model_and_batch([WIDTH] * (LAYERS + 1), batch, model, NODES // model)) for model in MODEL]
        for batch in BATCHES
    }
    columns = ["pr", "pc", *(f"{batch:,} samples" for batch in BATCHES)]
    rows = [[model, NODES // model, *(sent[batch][at] for batch in BATCHES)] for at, model in enumerate(MODEL)]
    reproduction.table(columns, rows, f"formula; words that a rank sends in a step; {LAYERS} layers of width {WIDTH}")
    best = {batch: MODEL[words.index(min(words))] for batch, words in sent.items()}
    few, some, many = BATCHES
    near = sqrt(2 * WIDTH * NODES / (3 * some))
    saved = min(sent[some][0], sent[some][-1]) / min(sent[some])
    reproduction.accept(
        best[few] == NODES and best[many] == 1 and 1 < best[some] < NODES and 1 / 2 < best[some] / near < 2,
        f"fewest words for {few} samples at pr = {best[few]}, for {some:,} at pr = {best[some]} (closed form "
        f"{near:.1f}; {saved:.2g} times fewer than either extreme), for {many:,} at pr = {best[many]}",
    )
    return sent


def draw(needed: dict[str, list[float]], sent: dict[int, list[float]]) -> Figure:
    """Volumes relative to the bound over the ranks, and words of a step over the ranks that divide a layer."""
    of_products = [lines.Line(name, RANKS, ratios, "both") for name, ratios in needed.items()]
    of_steps = [lines.Line(f"{batch:,} samples", MODEL, words, "both") for batch, words in sent.items()]
    return lines.draw(
        [
            lines.Panel(of_products, "ranks", "words / lower bound", "Matrix products", "xy"),
            lines.Panel(of_steps, f"pr of {NODES} ranks", "words sent in a step", "Model and batch together", "xy"),
        ],
        source="formula",
    )


if __name__ == "__main__":
    main(__file__, TITLE, experiment)
