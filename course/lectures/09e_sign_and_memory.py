# %% [markdown]
# # 09e. Why is the sign alone wrong, and the sign with a memory right?
#
# *Read [09a](09a_top_k.ipynb) (error feedback) and [09d](09d_few_bits.ipynb) (compressors that are right on average)
# first. Reading time: about 21 minutes. Figures are* measured, simulated *or come from a* formula.
#
# ## The question
#
# If every number has bits of its own, one bit is the least. The obvious one is the sign: "this weight should go up",
# "that one should go down". **signSGD** moves every weight by the same amount, the learning rate $\eta$, in the
# direction of the negative sign. It sends 32 times fewer bits, and often it trains well.
#
# Now the simplest problem there is. Minimise $f(x) = x/4$ on the interval from $-1$ to $1$; start in the middle. The
# minimum is at $-1$. The gradients are noisy, as those of minibatches are: 4 with probability 1/4, and $-1$ with
# probability 3/4. Their mean is the slope, $4\cdot\frac14 - 1\cdot\frac34 = \frac14$.

# %% source_hidden=true
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from course.figures.page import say, see, table
from course.interaction import bar, explore, guess, step_through, warm_up
from minidl import Tensor, cluster, compress, data, nn, optim, parallel, random
from minidl import functional as F
from minidl.plots import lines, style

warm_up()
one_thread = threadpool_limits(1)  # matrices as small as ours are not worth a second thread

# %%
guess_end = guess("SGD ends near -0.9. Where does signSGD end?", [-1, -0.5, 0, 0.5, 1])

# %%
RATE, STEPS, RUNS = 0.01, 4000, 200
noisy = np.where(np.random.default_rng(0).random((STEPS, RUNS)) < 1 / 4, 4.0, -1.0)


def descend(update):
    """x of all runs after every step; `update` makes of a gradient what is multiplied by the learning rate."""
    x = [np.zeros(RUNS)]
    for gradient in noisy:
        x.append(np.clip(x[-1] - RATE * update(gradient), -1, 1))
    return np.array(x)


line = {"SGD": descend(lambda gradient: gradient), "signSGD": descend(np.sign)}

# %% source_hidden=true
table(["", "x at the end, mean of 200 runs", "from ... to"],
      [[name, f"{x[-1].mean():+.3f}", f"{x[-1].min():+.2f} to {x[-1].max():+.2f}"] for name, x in line.items()],
      "measured; 4,000 steps, learning rate 0.01; the minimum is at -1, the maximum at +1; your guess for signSGD: "
      f"{guess_end.against(round(line['signSGD'][-1].mean()))}")  # fmt: skip

# %% [markdown]
# signSGD climbs to the *maximum*, in every run. The reason is one line: the sign is $-1$ three times out of four, so
# the mean of the signs is $\frac14 - \frac34 = -\frac12$, where the mean of the gradients is $+\frac14$. Many small
# gradients outvote one large one. The sign is *biased* (09d). More steps or a smaller learning rate change nothing in
# that. And more nodes? Let each node send the sign of its own gradient, and let the majority decide.

# %%
guess_vote = guess("Nine nodes vote on each step: where does x end now?", [-1, 0, 1])


# %%
def vote(comm, compressor, steps=400):
    x = np.zeros(1)
    for step in range(steps):
        own = noisy[step, comm.rank : comm.rank + 1]
        x = np.clip(x - RATE * compressor.begin_all_reduce(own, comm)(), -1, 1)
    return float(x[0])


# %% source_hidden=true
rows = []
for momentum in (0.0, 0.99):
    ends = [cluster.launch(vote, (compress.Signum(momentum),), nodes, "simulation").results[0] for nodes in (1, 9)]
    rows.append([f"Signum, momentum {momentum}", *(f"{end:+.2f}" for end in ends)])
table(
    ["", "1 node", "9 nodes"],
    rows,
    "simulated: x after 400 steps; your guess for 9 nodes, without "
    f"momentum: {guess_vote.against(round(float(rows[0][2])))}",
)

# %% [markdown]
# (minidl's `Signum` is the majority vote of Bernstein et al. (2018, arXiv:1802.04434): with momentum each node averages
# its gradients *before* it takes the sign. That helps here, where the gradients are noisy. In the next example they are
# not.)
#
# ## A valley that the sign does not see
#
# Two weights, no noise: $f(x) = \varepsilon\,|x_1 + x_2| + |x_1 - x_2|$ with $\varepsilon = 0.5$. The minimum is 0, at
# the origin. Start at $(1, 1)$. With $\pm$ for the signs of the two sums, the gradient is
# $\pm\varepsilon\,(1, 1) \pm (1, -1)$. Since $\varepsilon < 1$ the second part decides both signs: the sign of the
# gradient is always $(1, -1)$ or $(-1, 1)$. Neither changes $x_1 + x_2$.
#
# Perhaps the length of the step is the problem? The **scaled sign** sends one more number, the mean magnitude $c$ of
# the gradient, and decodes to $\pm c$. That is minidl's `Sign`.


# %%
def value(x, epsilon=0.5):
    return epsilon * abs(x[0] + x[1]) + abs(x[0] - x[1])


def gradient_of(x, epsilon=0.5):
    across, along = (1.0 if side >= 0 else -1.0 for side in (x[0] - x[1], x[0] + x[1]))
    return np.array([epsilon * along + across, epsilon * along - across])


def scaled_sign(a):
    return np.abs(a).mean() * np.where(a < 0, -1.0, 1.0)


def walk(compressor, gradient=gradient_of, rate=0.001, steps=4000):
    """x after every step, from (1, 1)."""
    x = [np.ones(2)]
    for _ in range(steps):
        x.append(x[-1] - rate * compressor(gradient(x[-1])))
    return np.array(x)


def by_minidl(compressor):
    return lambda a: compressor.decode(compressor.encode(a))


# %% source_hidden=true
signs = walk(scaled_sign)
assert np.array_equal(signs, walk(by_minidl(compress.Sign())))
say(f"4,000 steps by the scaled sign: $x_1 + x_2$ differs from 2 by at most **{np.abs(signs.sum(1) - 2).max():.1g}**, "
    f"and f never falls below **{min(map(value, signs)):.3f}** (f at the start: {value(np.ones(2)):g}; measured). "
    "minidl's Sign takes the same path to the bit.")  # fmt: skip

# %% [markdown]
# ## A memory
#
# What did the message leave out? The gradient $g$ was $(1.5, -0.5)$, the message said $(1, -1)$. The difference,
# $(0.5, 0.5)$, is exactly the direction that is missing. Error feedback (09a) keeps it as the residual $e$ and adds it
# to the next gradient. In 09a the compressor was top-k; any other one, $C$, can stand in its place:


# %%
class Memory:
    def __init__(self, compressor, size=2):
        self.compressor, self.e = compressor, np.zeros(size)

    def __call__(self, g):
        a = g + self.e  # what should have been sent by now
        sent = self.compressor(a)
        self.e = a - sent  # what was not
        return sent


# %%
feedback = walk(Memory(scaled_sign))
assert np.allclose(feedback, walk(by_minidl(compress.ErrorFeedback(compress.Sign()))), atol=1e-6)
plain = walk(lambda a: a)

# %% source_hidden=true
table(["", "f after 4,000 steps", "x1 + x2"],
      [[name, f"{value(x[-1]):.4f}", f"{x[-1].sum():+.4f}"]
       for name, x in {"SGD": plain, "scaled sign": signs, "scaled sign with memory": feedback}.items()],
      "measured, learning rate 0.001; minidl's ErrorFeedback(Sign()) takes the same path")  # fmt: skip

# %% [markdown]
# The message still has one bit a number and one scale. Watch how it works, with a learning rate large enough to see the
# steps:

# %% source_hidden=true
BIG = 0.15


def remembered(steps, epsilon=0.5, rate=BIG):
    """Path by the sign with memory, and the residual after every step."""
    memory, x, residuals = Memory(scaled_sign), [np.ones(2)], [np.zeros(2)]
    for _ in range(steps):
        x.append(x[-1] - rate * memory(gradient_of(x[-1], epsilon)))
        residuals.append(memory.e)
    return np.array(x), np.array(residuals)


def valley(axes, epsilon=0.5):
    grid = np.linspace(-0.9, 1.6, 251)
    heights = value(np.meshgrid(grid, grid), epsilon)
    axes.contour(grid, grid, heights, levels=8, colors="0.8", linewidths=0.8)
    axes.plot(0, 0, "+", color="0.2", markersize=10)
    axes.set(aspect="equal", xlabel="weight x1", ylabel="weight x2", xlim=(-0.9, 1.6), ylim=(-0.9, 1.6))


def step_by_step(axes, step):
    valley(axes)
    x, residuals = remembered(step)
    alone = walk(scaled_sign, rate=BIG, steps=step)
    axes.plot(*alone.T, color=style.SERIES[1], marker="s", markersize=4, linewidth=1, label="sign alone")
    axes.plot(*x.T, color=style.SERIES[2], marker="o", markersize=3, linewidth=1, label="with memory")
    owed = x[-1] - BIG * residuals[-1]
    axes.plot(*np.array([x[-1], owed]).T, color=style.SERIES[0], linewidth=1.5, linestyle=":")
    axes.plot(*owed, color=style.SERIES[0], marker="D", markersize=6, markerfacecolor="white", linestyle="none",
              label="had all been sent")  # fmt: skip
    axes.legend(fontsize=7, loc="upper left")
    axes.set_title(f"e = ({residuals[-1][0]:+.2f}, {residuals[-1][1]:+.2f})")


step_through(
    step_by_step,
    "two paths that begin at (1, 1); cross: the minimum; grey: lines of equal f. Vermilion, the sign alone jumps to "
    "and fro on one line. Green, with memory: the same until the residual e is large enough to turn a sign. That step "
    "goes down the valley. Diamond: where the path would be had everything been sent.",
    frames=[2, 3, 4, 5, 6, 8, 10, 15, 20, 30], multiples=[2, 5, 20], height=5.4, source="measured",
)  # fmt: skip

# %% [markdown]
# ## SGD from a slightly wrong place
#
# The diamond has an equation. In step $t$ the node sends $g_t + e_t - e_{t+1}$, so
#
# $$x_{t+1} = x_t - \eta\,(g_t + e_t - e_{t+1})
#   \quad\Longrightarrow\quad
#   \underbrace{x_{t+1} - \eta e_{t+1}}_{\tilde x_{t+1}} = \underbrace{x_t - \eta e_t}_{\tilde x_t} - \eta g_t .$$
#
# The **corrected iterate** $\tilde x$ (the diamond) moves by the full gradients, as in SGD. One difference remains:
# $g_t$ is taken at $x_t$, not at $\tilde x_t$. They are $\eta\,|e_t|$ apart. So error feedback is SGD with gradients
# from a slightly wrong place, *if the residual stays small*. Do both hold in our example?

# %% source_hidden=true
x, e = remembered(2000)
corrected = x - BIG * e
moved = corrected[0] - BIG * np.cumsum([gradient_of(at) for at in x[:-1]], axis=0)
off = np.abs(corrected[1:] - moved).max()
assert off < 1e-12
say(f"2,000 steps: the corrected iterate differs from the sum of all gradients by at most **{off:.0e}**; the "
    f"residual's norm is never above **{np.linalg.norm(e, axis=1).max():.2f}** (a gradient's norm: "
    f"{np.linalg.norm(gradient_of(np.ones(2))):.2f}; measured).")  # fmt: skip

# %% [markdown]
# What about the first example? For a single number the scaled sign is the number itself: mean magnitude times sign.
# Nothing is left out, the residual is 0, and error feedback *is* SGD. There signSGD only lacks the scale.
#
# ### How small must the compressor's error be?
#
# A compressor $C$ is a **contraction** if its error is smaller than what it is given: for some $\delta > 0$ and every
# $a$
#
# $$|a - C(a)|^2 \le (1 - \delta)\,|a|^2 .$$
#
# Let no gradient be longer than $G$, and write $\gamma = \sqrt{1-\delta} < 1$. Then
# $|e_{t+1}| \le \gamma\,|g_t + e_t| \le \gamma\,(G + |e_t|)$. That is a geometric series: in every step
# $|e_t| \le \frac{\gamma}{1-\gamma}\,G$.
#
# The formulas for $\delta$, with $n$ numbers: $1 - |a - C(a)|^2/|a|^2 = |a|_1^2/(n|a|^2)$ for the scaled sign ($|a|_1$:
# sum of the magnitudes), and at least $k/n$ for the $k$ largest numbers (09a). How large is it for a real gradient, of
# the first layer of a network on digits? minidl's `OneBit` is the compressor of Seide et al.: a bit a number, and for
# each column of the matrix *two* values, the mean of its negative numbers and the mean of the others. (The
# means of 64 columns cost another half bit a number here.)


# %% source_hidden=true
def real_gradient():
    random.manual_seed(0)
    model, (images, labels) = nn.models.MLP(64, 128, 10), data.digits().train[np.arange(64)]
    F.cross_entropy(model(Tensor(images)), labels).backward()
    return model.layers[0].weight.grad.astype(np.float64)


a = real_gradient()
formula = {"scaled sign": np.abs(a).sum() ** 2 / (a.size * (a**2).sum())}
rows = []
for name, c, worst in (("scaled sign", compress.Sign(), 1 / a.size),
                       ("one bit, two means a column", compress.OneBit(), 1 / len(a)),
                       ("top-k, k = n/10", compress.TopK(0.1), 0.1),
                       ("top-k, k = n/100", compress.TopK(0.01), 0.01)):  # fmt: skip
    delta = 1 - np.sum((a - c.decode(c.encode(a))) ** 2) / np.sum(a**2)
    assert name not in formula or abs(delta - formula[name]) < 1e-6
    rows.append([name, f"{8 * c.encode(a).nbytes / a.size:.2f}", f"{delta:.3f}", f"{worst:.2g}"])
table(["compressor", "bits a number", "delta of this gradient", "delta at worst"], rows,
      f"measured; the last column: formula, for {a.shape[0]} rows and {a.shape[1]} columns (1/n for the sign, "
      "1/rows for two means a column, k/n for top-k)")  # fmt: skip

# %% [markdown]
# The worst case of the sign is a gradient with a single number that is not 0, and that of two means a column one such
# number in each column. Real gradients are far from it.
#
# ### And what is no contraction?
#
# QSGD with one level (09d) is unbiased. Its squared error is up to $\sqrt n$ times the gradient's own square. What if
# we add that to the next gradient?

# %%
guess_twenty = guess("n = 1,024, QSGD with s = 1: the residual's norm after 20 gradients of norm 1?", unit="times")


# %%
def residuals(compressor, steps, n=1024):
    """The residual's norm after every step, with random gradients of norm 1."""
    rng, memory, norms = np.random.default_rng(0), Memory(compressor, n), []
    for _ in range(steps):
        g = rng.standard_normal(n)
        memory(g / np.linalg.norm(g))
        norms.append(np.linalg.norm(memory.e))
    return norms


# %% source_hidden=true
random.manual_seed(0)
tried = {"top-k, k = n/100": (by_minidl(compress.TopK(0.01)), 400), "scaled sign": (scaled_sign, 400),
         "QSGD, s = 32": (by_minidl(compress.QSGD(32, None)), 400),
         "QSGD, s = 1": (by_minidl(compress.QSGD(1, None)), 20)}  # fmt: skip
grown = {name: residuals(*how) for name, how in tried.items()}
panel = lines.Panel([lines.Line(name, range(1, len(norms) + 1), norms, tone=i)
                     for i, (name, norms) in enumerate(grown.items())],
                    "step", "norm of the residual", log="y", ylim=(0.1, 1e5))  # fmt: skip
see(
    lines.draw([panel], source="measured", title="The residual of random gradients of norm 1"),
    "three contractions level off, each at a height of its own. The residual of QSGD with s = 1 grows exponentially "
    f"from the first step on: {grown['QSGD, s = 1'][-1]:.0e} after 20 steps (your guess: "
    f"{guess_twenty.against(grown['QSGD, s = 1'][-1])}).",
)

# %% source_hidden=true
try:
    compress.ErrorFeedback(compress.QSGD(levels=1, bucket=1024))
except ValueError as error:
    say(f"minidl refuses it:\n\n> {error}")

# %% [markdown]
# So there are two families. *Unbiased* compressors may have a large error. They need no memory, and with one their
# residual may grow without bound. *Contractions* may be biased. They need a memory, and with one their residual stays
# bounded. (QSGD with many levels is in both families.)
#
# ## Three examples and a network
#
# Karimireddy et al. (2019) have a third example, smooth and noisy:
#
# $$f(x) = (1.5\,x_1 - 0.5\,x_2)^2 + (1.5\,x_2 - 0.5\,x_1)^2 .$$
#
# Each step takes the gradient of one of the two squares, at random. Its signs are again $(1, -1)$ or $(-1, 1)$.

# %% source_hidden=true
ROWS = np.array([[1.5, -0.5], [-0.5, 1.5]])


def one_square(rng):
    """The gradient of one of the two squares, at random."""

    def gradient(x):
        row = ROWS[rng.integers(2)]
        return 2 * (row @ x) * row

    return gradient


def squares(x):
    return ((ROWS @ x) ** 2).sum()


methods = {"SGD": lambda a: a, "scaled sign": scaled_sign, "sign with memory": Memory(scaled_sign)}
smooth = {name: walk(c, one_square(np.random.default_rng(1)), 0.05, 800) for name, c in methods.items()}
twice = {"SGD": plain, "scaled sign": signs, "sign with memory": feedback}
panels = [
    lines.Panel([lines.Line(name, range(STEPS + 1), x.mean(1), tone=i) for i, (name, x) in enumerate(line.items())],
                "step", "x, mean of 200 runs", "1: x / 4, noisy"),
    lines.Panel([lines.Line(name, range(0, 4001, 10), [value(at) for at in x[::10]], tone=i)
                 for i, (name, x) in enumerate(twice.items())], "step", "f", "2: the valley"),
    lines.Panel([lines.Line(name, range(0, 801, 4), [squares(at) for at in x[::4]], tone=i)
                 for i, (name, x) in enumerate(smooth.items())], "step", "f", "3: two squares", log="y"),
]  # fmt: skip
assert np.abs(smooth["scaled sign"].sum(1) - 2).max() < 1e-9
assert min(map(squares, smooth["scaled sign"])) > 2 - 1e-9
see(
    lines.draw(panels, source="measured"),
    "in all three the sign alone (vermilion) goes the wrong way or stays: in the third x1 + x2 stays 2, and f at 2 or "
    "above. In the second and third the sign with memory "
    "(green) arrives like SGD (blue, in the second hidden under green). In the first the scaled sign would be SGD.",
)

# %% [markdown]
# Do real gradients have this problem? We train a network on digits, on two nodes, with the scaled sign and with Seide's
# one bit, each with five seeds:

# %%
guess_network = guess("Digits: the training loss of the sign without memory, against exact gradients?",
                      ["ten times or more", "higher", "equal"])  # fmt: skip

# %%
WAYS = {"exact gradients": None, "scaled sign": compress.Sign(), "one bit": compress.OneBit()}
WAYS |= {f"{name} with memory": compress.ErrorFeedback(c) for name, c in WAYS.items() if c}
SEEDS, EPOCHS = range(5), 12


def train(compressor, seed):
    model, optimizer = partial(nn.models.MLP, 64, 128, 10), partial(optim.SGD, lr=0.1, momentum=0.9)
    job = parallel.Job(model, data.digits, optimizer, batch_size=64, epochs=EPOCHS, seed=seed)
    strategy = parallel.Synchronous(compressor=compressor)
    return parallel.train(job, strategy, 2, cluster.Simulation(trace="ledger"))


# %% source_hidden=true
runs = {name: [train(c, seed) for seed in SEEDS] for name, c in bar(WAYS.items(), "training")}
losses = {name: np.array([[row["loss"] for row in run.history] for run in of]) for name, of in runs.items()}
full = runs["exact gradients"][0].history[-1]["bytes"]
last = {name: of[:, -1] for name, of in losses.items()}
tests = {name: [100 - 100 * run.accuracy for run in of] for name, of in runs.items()}
ratio = last["scaled sign"].mean() / last["exact gradients"].mean()
answer = "ten times or more" if ratio >= 10 else "higher" if ratio > 1.1 else "equal"
table(["", "bytes sent", "training loss, last epoch", "test error (%)"],
      [[name, f"1/{full / of[0].history[-1]['bytes']:.1f}",
        f"{last[name].mean():.4f} ({last[name].min():.4f} to {last[name].max():.4f})",
        f"{np.mean(tests[name]):.1f} ({min(tests[name]):.1f} to {max(tests[name]):.1f})"] for name, of in runs.items()],
      f"simulated: two nodes, {EPOCHS} epochs, mean (range) of {len(SEEDS)} seeds; your guess: "
      f"{guess_network.against(answer)}")  # fmt: skip
say("The training loss without memory is above that with memory with "
    + ", ".join(f"{(last[name] > last[f'{name} with memory']).sum()} of {len(SEEDS)} seeds ({name})"
                for name in ("scaled sign", "one bit")) + ".")  # fmt: skip

# %% [markdown]
# On real gradients the sign alone learns, to a higher training loss; the ranges of the test errors overlap. The
# memory costs not one byte of traffic. (We tried one learning rate, 0.1 with momentum 0.9. 30
# epochs, four nodes: `benchmarks/reproductions/quantized_training.py`; the examples for longer:
# `benchmarks/reproductions/sign_and_error_feedback.py`.)
#
# Turn the valley. A smaller $\varepsilon$ makes its floor flatter, a larger learning rate makes the steps coarser:


# %% source_hidden=true
def paths(axes, epsilon, rate):
    valley(axes, epsilon)
    alone = walk(scaled_sign, partial(gradient_of, epsilon=epsilon), rate, 400)
    x, _ = remembered(400, epsilon, rate)
    axes.plot(*alone.T, color=style.SERIES[1], linewidth=2, label="sign alone")
    axes.plot(*x.T, color=style.SERIES[2], linewidth=1, label="with memory")
    axes.legend(fontsize=7, loc="upper left")
    axes.set_title(f"f: {value(alone[-1], epsilon):.2f} alone, {value(x[-1], epsilon):.2f} with memory")


explore(
    paths,
    "400 steps from (1, 1). The sign alone stays on its line. The sign with memory comes down the valley. The smaller "
    "epsilon is, the slower: more must pile up before a sign turns. A larger learning rate takes it further, in wider "
    "swings.",
    epsilon=[0.5, 0.1, 0.2, 0.35, 0.7, 0.9], rate=[0.02, 0.005, 0.01, 0.05, 0.1],
    multiples=[{"epsilon": 0.1}, {"epsilon": 0.5}, {"rate": 0.1}], height=5.4, source="measured",
)  # fmt: skip

# %% [markdown]
# ## Break it: three wrong memories
#
# The first forgets the residual when an epoch ends; our epochs have 10 steps. The second multiplies the residual by the
# learning rate twice. The third adds the residual *after* the compressor. Here they are in a flat valley, $\varepsilon
# = 0.05$:


# %%
class Forgets(Memory):
    calls = 0

    def __call__(self, g):
        if self.calls % 10 == 0:  # "a new epoch, a fresh start"
            self.e = np.zeros(2)
        self.calls += 1
        return super().__call__(g)


class RateTwice(Memory):
    def __call__(self, g):
        a = g + 0.01 * self.e  # e comes back times the rate; the optimizer multiplies by it again
        sent = self.compressor(a)
        self.e = a - sent
        return sent


class After(Memory):
    def __call__(self, g):
        compressed = self.compressor(g)
        sent, self.e = compressed + self.e, g - compressed
        return sent


# %% source_hidden=true
rows = []
for name, kind in {"right": Memory, "forgets": Forgets, "rate twice": RateTwice, "after": After}.items():
    memory, given, sent, x = kind(scaled_sign), 0, 0, np.ones(2)
    is_sign = True
    for _ in range(4000):
        g = gradient_of(x, 0.05)
        step = memory(g)
        given, sent, x = given + g, sent + step, x - 0.01 * step
        is_sign &= bool(np.isclose(*np.abs(step)))
    lost = np.abs(given - sent - memory.e).max()
    rows.append([name, f"{value(x, 0.05):.3f}", f"{lost:.0e}", "1, and a scale" if is_sign else "32"])
table(["memory", "f after 4,000 steps", "gradients - sent - residual", "bits a number"], rows,
      f"measured, learning rate 0.01; f at the start is {value(np.ones(2), 0.05):g}")  # fmt: skip

# %% [markdown]
# The third column is the test to write: what was given and what was sent always differ by the residual. The first two
# mistakes lose gradients, and the loss stays where it was. The third loses nothing and trains well, but it compresses
# nothing: signs plus a residual are no longer signs, and the message is as long as the gradient.
#
# ## What the papers report
#
# **Seide et al. (2014)**, *1-bit stochastic gradient descent* (Interspeech), introduced error feedback, for speech
# recognition. Their abstract: 46 million weights on 8 GPUs ran 3.6 times as fast as on one with minibatches of 2,880,
# and 6.3 times with 16,000; 160 million weights on 20 servers of two GPUs, 10 times as fast, "albeit at a small
# accuracy loss". **Karimireddy et al. (2019)**, *Error feedback fixes SignSGD* (arXiv:1901.09847), have the three
# examples and the proof: with error feedback any contraction converges at the rate of SGD; the compressor appears only
# in terms that vanish sooner. They keep the residual in units of the update, $\eta g$; minidl in units of the gradient.
# While the learning rate is constant, it is the same.
#
# ## To the exercises
#
# [Exercises of chapter 09](../exercises/09_gradient_compression/09_gradient_compression.ipynb): you write a residual
# that conserves every gradient to the bit, and top-k with error feedback.
#
# **Three questions to argue about**
#
# 1. For one number the scaled sign is the identity. For which gradients of $n$ numbers is it? What does error feedback
#    do there?
# 2. The learning rate falls by a factor of 10. Which learning rate do the gradients in the residual get, in minidl and
#    with Karimireddy et al.? Does it matter which?
# 3. A residual delays gradients, and 06a's stale gradients were harmful. Why is this delay harmless, or when is it not?
#
# Next: [09f](09f_low_rank.ipynb) sends numbers of 32 bits again, but far fewer: two vectors in place of a matrix.
