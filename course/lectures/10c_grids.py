# %% [markdown]
# # 10c. How few words does a product need?
#
# *Read [10a](10a_dividing_a_layer.ipynb) first: layers by columns and by rows; [10b](10b_groups.ipynb) has meshes.
# Reading time: about 14 minutes. Figures are* simulated *or come from a* formula.
#
# ## The question
#
# A layer is a matrix product $Y = XW$: $m$ samples, $k$ inputs, $n$ outputs. A machine that has some columns of $W$ and
# computes these columns of $Y$ needs *all* of $X$. With more machines each of them computes less, but does not receive
# less:

# %%
from course.interaction import explore, guess, step_through, warm_up

warm_up()

# %% source_hidden=true
from math import lcm

import numpy as np

from course.figures import rank_grid
from course.figures.page import say, see, table
from minidl import cluster, parallel
from minidl.plots import lines, style

N = 4096
table(["machines", *(4, 16, 64, 256)],
      [["multiplications of a machine (10⁹)", *(f"{N**3 / p / 1e9:.1f}" for p in (4, 16, 64, 256))],
       ["words that it receives (10⁶)", *(f"{N * N * (1 - 1 / p) / 1e6:.1f}" for p in (4, 16, 64, 256))]],
      "square matrices of 4,096 x 4,096, divided by columns; X begins in equal shares; formula")  # fmt: skip

# %% [markdown]
# A *word* is one number. In 10a and 10b a layer was divided in one direction. Can a machine receive less?
#
# ## Two dimensions
#
# Take $p = p_r p_c$ machines as a grid of $p_r$ rows and $p_c$ columns, and cut all three matrices into $p_r$ by $p_c$
# blocks. Machine $(i, j)$ holds the block $(i, j)$ of $X$, $W$ and $Y$. Nobody holds anything twice. *SUMMA* (van de
# Geijn and Watts, 1997) goes through $k$ in panels, thin strips. The owners of a strip of $X$ broadcast it along their
# rows, and the owners of a strip of $W$ along their columns. Every machine adds the product of the two strips to its
# block of $Y$.


# %%
def block(matrix, shape, i, j):
    rows, columns = (extent // parts for extent, parts in zip(matrix.shape, shape, strict=True))
    return matrix[i * rows : (i + 1) * rows, j * columns : (j + 1) * columns]


def summa(comm, shape, X, W, names=("down", "across")):
    """This rank's block of X W, from its own blocks of X and W."""
    mesh, (p_r, p_c) = comm.mesh(shape, names), shape
    i, j = mesh.coordinates.values()
    mine_x, mine_w = block(X, shape, i, j), block(W, shape, i, j)
    panels = lcm(p_r, p_c)  # each lies within one block of X, and within one of W
    width, Y = X.shape[1] // panels, 0
    for panel in range(panels):
        column, row = panel * p_c // panels, panel * p_r // panels  # of the owners
        x, w = np.zeros((len(mine_x), width)), np.zeros((width, mine_w.shape[1]))
        if j == column:
            x[:] = mine_x[:, panel * width % mine_x.shape[1] :][:, :width]
        if i == row:
            w[:] = mine_w[panel * width % len(mine_w) :][:width]
        x, w = mesh["across"].broadcast(x, src=column), mesh["down"].broadcast(w, src=row)
        Y = Y + x @ w
    return Y


# %% source_hidden=true
step_through(
    lambda axes, panel: rank_grid.draw_broadcasts(axes, (2, 4), column=panel, row=panel // 2),
    "eight machines as 2 x 4. Blue: those of one column send their strip of X along their rows. Vermilion: those of "
    "one row send their strip of W along their columns. With each panel the next column owns the strip of X; after two "
    "panels the next row owns that of W.",
    frames=list(range(4)),
    multiples=list(range(4)),
    name="panel",
    height=2.6,
    source="formula",
)

# %% [markdown]
# A machine needs its whole rows of $X$, $mk/p_r$ words, of which it has the share $1/p_c$ itself. The same holds for
# $W$. So it receives
#
# $$\frac{mk}{p_r}\Big(1 - \frac{1}{p_c}\Big) + \frac{kn}{p_c}\Big(1 - \frac{1}{p_r}\Big) \text{ words.}$$

# %%
guess_grid = guess("1,024 samples, 256 inputs, 256 outputs, 16 machines. Which grid receives least?",
                   ["16 x 1", "8 x 2", "4 x 4", "2 x 8", "1 x 16"])  # fmt: skip

# %%
m, k, n = 1024, 256, 256
X, W = np.random.default_rng(1).standard_normal((m, k)), np.random.default_rng(2).standard_normal((k, n))
GRIDS = [(16 // p_c, p_c) for p_c in (1, 2, 4, 8, 16)]
runs = {shape: cluster.launch(summa, (shape, X, W), 16, "simulation") for shape in GRIDS}


def off(run, p_r, p_c):
    """The largest difference from one machine's product."""
    Y = np.block([[run.results[i * p_c + j] for j in range(p_c)] for i in range(p_r)])
    return np.abs(Y - X @ W).max()


# %% source_hidden=true
rows, received = [], {}
for (p_r, p_c), run in runs.items():
    counted = [0] * 16
    for event in run.trace.events:
        counted[event.rank] += event.nbytes // 8 if event.kind == "receive" and event.axis else 0
    expected = m * k / p_r * (1 - 1 / p_c) + k * n / p_c * (1 - 1 / p_r)
    text = f"{counted[0]:,}" if len(set(counted)) == 1 else "differ"
    received[f"{p_r} x {p_c}"] = counted[0]
    rows.append([f"{p_r} x {p_c}", f"{off(run, p_r, p_c):.0e}", text, f"{expected:,.0f}"])
least = min(received, key=received.get)
head = ["grid", "difference from one machine", "words that each rank receives", "formula"]
table(head, rows, f"simulated; your guess: {guess_grid.against(least)}")

# %% [markdown]
# A grid of one column divides the samples, and every machine receives all of $W$. For square matrices of $n^2$ words a
# square grid receives about $2n^2/\sqrt{p}$ instead of $n^2$. `parallel.products.summa` also has both gradients.
#
# ## Three dimensions
#
# A product has three dimensions: $m$, $n$, and $k$, over which it sums. Why divide only two? Let $p = p_r p_c p_l$
# machines each compute a box of $m/p_r$ by $n/p_c$ by $k/p_l$ multiplications. A box needs its faces: one of $X$, one
# of $W$, and one of $Y$, whose $p_l$ partial sums are added up. If every word starts on one machine and ends on one,
#
# $$V = \tfrac{mk}{p_r p_l}(1 - \tfrac{1}{p_c}) + \tfrac{kn}{p_c p_l}(1 - \tfrac{1}{p_r})
# + \tfrac{mn}{p_r p_c}(1 - \tfrac{1}{p_l}).$$
#
# The known methods are boxes: *1-D* ($p, 1, 1$), *2-D* ($\sqrt p, \sqrt p, 1$), *2.5-D* with $c$ layers
# ($\sqrt{p/c}, \sqrt{p/c}, c$), *3-D* ($\sqrt[3]p$ each).


# %%
def volume(m, n, k, p_r, p_c, p_l):
    return m * k / p_r / p_l * (1 - 1 / p_c) + k * n / p_c / p_l * (1 - 1 / p_r) + m * n / p_r / p_c * (1 - 1 / p_l)


def held(m, n, k, p_r, p_c, p_l):  # its share of X and W, and the partial sums of its face of Y
    return (m * k + k * n) / p_r / p_c / p_l + m * n / p_r / p_c


METHODS = {
    "1-D": lambda p: (p, 1, 1),
    "2-D": lambda p: (p**0.5, p**0.5, 1),
    "2.5-D, c = 4": lambda p: ((p / 4) ** 0.5, (p / 4) ** 0.5, 4),
    "3-D": lambda p: (p ** (1 / 3),) * 3,
}

# %%
guess_cube = guess("4,096 machines, square matrices: how many times as much does 2-D receive as 3-D?", unit="times")

# %% source_hidden=true
COUNTS = [2**e for e in range(4, 13)]
best = {p: parallel.products.best_grid(N, N, N, p) for p in COUNTS}  # minidl tries all whole numbers
panels = []
for title, of in (("words received", volume), ("words held", held)):
    curves = [lines.Line(name, COUNTS, [of(N, N, N, *box(p)) / 1e6 for p in COUNTS]) for name, box in METHODS.items()]
    panels.append(lines.Panel(curves, "machines p", "million words", title, log="xy"))
points = [volume(N, N, N, *best[p]) / 1e6 for p in COUNTS]
panels[0].lines.append(lines.Line("best box of whole numbers", COUNTS, points, "points", 6))
see(
    lines.draw(panels, source="formula"),
    "left: 1-D gains nothing from more machines; 2-D falls with the square root of p, 3-D with its power 2/3. On the "
    "right is the price: 1-D and 2-D hold the three matrices once. 2.5-D holds the sums Y four times, 3-D with more "
    "than 64 machines more often.",
)
flat, cube = (volume(N, N, N, *METHODS[name](4096)) for name in ("2-D", "3-D"))
say(f"2-D receives **{flat / cube:.2f}** times as much as 3-D on 4,096 machines (your guess: "
    f"{guess_cube.against(flat / cube)}). Best box of 64 machines: {best[64]} for square matrices, "
    f"{parallel.products.best_grid(65536, 256, 256, 64)} for 65,536 x 256 times 256 x 256.")  # fmt: skip

# %% [markdown]
# In the last example, many samples and a small layer, the best box is 1-D over the samples, and that is data
# parallelism.
#
# ## One and a half dimensions
#
# Training needs three products: $Y = XW$, and in backward, with the gradient $G$ of the loss with respect to $Y$, those
# with respect to $X$ and $W$: $dX = GW^T$ and $dW = X^T G$. Gholami et al. (2018,
# arXiv:1712.04432) use a grid of $p_r$ parts of the model and $p_c$ shares of the batch, but without panels: each
# machine *holds* its part of $W$, so $W$ is never sent. A GPT with tp and dp does the same.


# %%
def one_and_a_half(comm, shape, X, W, G):
    """A layer divided by outputs along "model", samples along "batch"; returns this rank's Y, dX and dW."""
    mesh = comm.mesh(shape, ("batch", "model"))
    i, j = mesh.coordinates.values()
    x, w = np.split(X, shape[0])[i], np.split(W, shape[1], axis=1)[j]
    g = np.split(np.split(G, shape[0])[i], shape[1], axis=1)[j]
    Y = np.concatenate(mesh["model"].all_gather(x @ w), axis=1)  # the next layer needs all outputs
    dX = mesh["model"].all_reduce(g @ w.T, algorithm="ring")
    dW = mesh["batch"].all_reduce(x.T @ g, algorithm="ring")
    return Y, dX, dW


def words_of_layer(p_r, p_c, B, k, n):
    """Words that each machine sends: all-gather of Y, all-reduce of dX, all-reduce of dW."""
    return B / p_c * (1 - 1 / p_r) * (n + 2 * k) + 2 * (1 - 1 / p_c) * k * n / p_r


# %%
guess_mixed = guess("The same layer on 16 machines: which grid of model x batch sends least?",
                    ["1 x 16", "2 x 8", "4 x 4", "8 x 2", "16 x 1"])  # fmt: skip

# %% source_hidden=true
G = np.random.default_rng(3).standard_normal((m, n))
right, rows, by_grid = (X @ W, G @ W.T, X.T @ G), [], {}
for p_r in (1, 2, 4, 8, 16):
    p_c = 16 // p_r
    run = cluster.launch(one_and_a_half, ((p_c, p_r), X, W, G), 16, "simulation")
    last = right[0][-m // p_c :], right[1][-m // p_c :], right[2][:, -n // p_r :]  # the last rank
    wrong_by = max(np.abs(ours - theirs).max() for ours, theirs in zip(run.results[-1], last, strict=True))
    sent = sum(sum(traffic.nbytes for traffic in run.trace.ledger(axis)[0].values()) for axis in run.trace.axes if axis)
    by_grid[f"{p_r} x {p_c}"] = sent // 8
    rows.append([f"{p_r} x {p_c}", f"{wrong_by:.0e}", f"{sent // 8:,}", f"{words_of_layer(p_r, p_c, m, k, n):,.0f}"])
table(["model x batch", "difference from one machine", "words that a rank sends, ledger", "formula"], rows,
      f"1,024 samples, 256 inputs, 256 outputs, 16 machines; simulated; your guess: "
      f"{guess_mixed.against(min(by_grid, key=by_grid.get))}")  # fmt: skip

# %% [markdown]
# The best grid is neither pure data parallelism nor a layer divided over all machines. The words of activations grow
# with the samples, those of gradients do not. With $B$ samples and $k = n = d$ the minimum is at
# $p_r = \sqrt{2dp / (3B)}$. Turn it:


# %% source_hidden=true
def best_grid(axes, samples, outputs, machines):
    parts = [2**e for e in range(machines.bit_length())]
    total = [words_of_layer(p_r, machines / p_r, samples, outputs, outputs) / 1e6 for p_r in parts]
    least = int(np.argmin(total))
    axes.plot(parts, total, color=style.SERIES[0], marker="o", markersize=4, label="all grids")
    look = {"color": style.SERIES[1], "markersize": 9, "fillstyle": "none", "linestyle": ""}
    axes.plot(parts[least], total[least], marker="s", label="best grid", **look)
    at = (2 * outputs * machines / 3 / samples) ** 0.5
    axes.axvline(at, color="0.5", linewidth=0.9, label="formula's minimum")
    axes.set_xscale("log", base=2)
    axes.set(yscale="log", xlabel=f"parts of the model p_r; best: {parts[least]} x {machines // parts[least]}",
             ylabel="million words", xlim=(0.8, 1.25 * machines))  # fmt: skip
    axes.legend(fontsize=7)


explore(
    best_grid,
    "at the left end only the batch is divided, at the right end only the layer. With few samples per output the best "
    "grid moves right, with many it moves left, until data parallelism alone is best.",
    samples=[512, 64, 4096, 65536],
    outputs=[1024, 256, 4096],
    machines=[64, 16, 256],
    multiples=[{}, {"samples": 64}, {"samples": 4096}, {"samples": 65536}],
    height=2.8,
    shared=False,
    source="formula",
)

# %% [markdown]
# ## Find the bug
#
# A programmer writes the names of the mesh in the other order, `("across", "down")`, and tests on a grid of 4 x 4. It
# runs.

# %%
guess_bug = guess("On which grid of 16 machines does the program raise an error?", ["4 x 4", "2 x 8", "none"])

# %%
swapped = cluster.launch(summa, ((4, 4), X, W, ("across", "down")), 16, "simulation")
try:
    cluster.launch(summa, ((2, 8), X, W, ("across", "down")), 16, "simulation")
    message = ""
except cluster.RankFailed as error:
    message = str(error.__cause__ or error).splitlines()[0]

# %% source_hidden=true
words = [sum(traffic.nbytes for axis in run.trace.axes if axis
             for rank in run.trace.ledger(axis) for traffic in rank.values()) // 8
         for run in (swapped, runs[4, 4])]  # fmt: skip
say(f"4 x 4: largest difference from one machine {off(swapped, 4, 4):.2g}, largest element {np.abs(X @ W).max():.2g}; "
    f"{words[0]:,} words are sent, without the bug {words[1]:,}. "
    f"2 x 8: {f'“{message}”' if message else 'no error'}. Your guess: "
    f"{guess_bug.against('2 x 8' if message else 'none')}.")  # fmt: skip

# %% [markdown]
# A square grid hides what is mixed up: every group has the right size. The count of words is right, and only the
# product is wrong. Test on grids that are not square, and compare with one machine.
#
# ## What the papers report
#
# Kwasniewski et al. (2019), COSMA (arXiv:1908.09606), find the best box for any $m$, $n$, $k$, $p$ and memory. They
# report up to $\sqrt 3$ times less volume than the best of the older methods, and programs that are 2.2 times as fast
# in the mean. Van Essen et al. (2015), LBANN, train fully connected layers on a grid.
#
# ## The answer
#
# A product of square matrices divided in one direction needs nearly as many words on each machine as one matrix has.
# Two directions divide that by about $\sqrt p / 2$, three by still more, at the price of memory. In training, the
# weights stay where they are, and the best grid of model and batch can lie between the two pure ones.
#
# **Chapter 10 in two sentences**: machines share one layer by dividing a matrix, and pay with messages whose words can
# be counted beforehand. So count them, and give the most words to the fastest links.
#
# ## To the exercises
#
# [Exercises of chapter 10](../exercises/10_tensor_parallelism/10_tensor_parallelism.ipynb): SUMMA with its words
# counted, and the best grid.
#
# **Three questions to argue about**
#
# 1. 3-D needs the fewest words. Why does nearly everybody train with 1-D divisions along tp and dp?
# 2. Panels can be thin or as wide as a block. What speaks for either?
# 3. The layer has 65,536 samples and 256 outputs. What does a grid of 64 x 1 (model x batch) keep on
#    every machine?
#
# Next: [11a. Why are three of four machines idle?](11a_pipelines.ipynb)
