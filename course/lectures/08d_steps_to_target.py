# %% [markdown]
# # 08d. How large a minibatch is worth having?
#
# *Read [08a](08a_linear_scaling.ipynb) first: the learning rate that a minibatch wants. Reading time: about 19 minutes.
# Figures are* measured, simulated *or come from a* formula.
#
# ## The question
#
# Twice the minibatch is half the communication per sample (05c). So far a larger minibatch looked like a matter of the
# right learning rate. Suppose that you have so many nodes that a step takes equally long with any minibatch $B$. Then
# only the number of steps counts. Here it is counted: steps of plain SGD until the loss on the training set is at most
# 0.3.

# %% source_hidden=true
from itertools import count

import numpy as np
from threadpoolctl import threadpool_limits

import minidl
from course.figures.page import say, see, table
from course.interaction import bar, explore, guess, warm_up
from minidl import cluster, data, nn, no_grad, optim, parallel
from minidl import functional as F
from minidl.parallel import noise_scale
from minidl.plots import lines, style

warm_up()
one_thread = threadpool_limits(1)  # matrices as small as ours are not worth a second thread

# %%
TRAIN = data.digits().train
N = len(TRAIN)  # samples


def loss_of(model):
    """The loss on the whole training set."""
    with no_grad():
        return F.cross_entropy(model(TRAIN.x), TRAIN.y).item()


def minibatches(B, seed):
    """Endless minibatches of B samples, epoch after epoch."""
    loader = data.DataLoader(TRAIN, B, shuffle=True, seed=seed, drop_last=True)
    for epoch in count():
        loader.set_epoch(epoch)
        yield from loader


# %%
def losses(B, rate, seed):
    """Train; after each step, give the loss on the training set."""
    minidl.manual_seed(seed)
    model = nn.models.MLP(64, 32, 10)
    sgd = optim.SGD(model.parameters(), lr=rate)
    for x, y in minibatches(B, seed):
        sgd.zero_grad()
        F.cross_entropy(model(x), y).backward()
        sgd.step()
        yield loss_of(model)


TARGET, HALFWAY = 0.3, 0.5


def steps_to(targets, B, rate, seed, limit):
    """Steps until the loss is at most each target; infinite beyond the limit, and if the loss is no number."""
    found = dict.fromkeys(targets, np.inf)
    with np.errstate(all="ignore"):  # a rate that is too high
        for step, loss in enumerate(losses(B, rate, seed), 1):
            found |= {target: step for target in targets if loss <= target and found[target] == np.inf}
            if loss <= min(targets) or step >= limit or not np.isfinite(loss):
                break
    return [found[target] for target in targets]


# %% source_hidden=true
SEEDS = range(5)
few = {B: np.median([steps_to([TARGET], B, rate, seed, 500) for seed in SEEDS]) for B, rate in ((8, 1.0), (16, 2.0))}
say(f"{few[8]:.0f} steps with B = 8, {few[16]:.0f} with B = 16 and twice the learning rate (measured, median of "
    f"{len(SEEDS)} seeds). **Nearly half.** What if we go on: 32, 64, ..., all {N:,} samples?")  # fmt: skip

# %%
guess_steps = guess(f"With B = {N:,} and the best learning rate for it: how many steps?", unit="steps")

# %% [markdown]
# ## Count it, and tune the learning rate for every minibatch
#
# A fair count needs the best learning rate of *each* minibatch. We try seven, a factor of $\sqrt 2$ apart, around a
# first guess, with five seeds each, and keep the lowest median. A run that is slower than twice the best so far is cut
# off.

# %%
SIZES = (2, 4, 8, 16, 32, 64, 128, 256, 512, N)
SEVEN = 2.0 ** np.arange(-1.5, 2, 0.5)  # half-octaves


def sweep(B):
    """By learning rate: the steps of each seed to both targets."""
    found, limit = {}, 500
    rates = min(B / 8, 4) * SEVEN
    for rate in sorted(rates, key=lambda rate: abs(np.log(rate / rates[3]))):
        found[rate] = np.array([steps_to((TARGET, HALFWAY), B, rate, seed, limit) for seed in SEEDS])
        limit = min(limit, 2 * np.median(found[rate][:, 0]))
    return found


def best(found, target=0, most=np.inf):
    """The learning rate with the lowest median of steps, and its steps by seed; target 0: TARGET, 1: HALFWAY."""
    rate = min((rate for rate in sorted(found) if rate <= most), key=lambda rate: np.median(found[rate][:, target]))
    return rate, found[rate][:, target]


runs = {B: sweep(B) for B in bar(SIZES, "sweeping the learning rates of 10 minibatches")}
rate = {B: best(runs[B])[0] for B in SIZES}
steps = {B: np.median(best(runs[B])[1]) for B in SIZES}
assert all(min(runs[B]) < rate[B] < max(runs[B]) for B in SIZES)

# %% source_hidden=true
shown = (2, 8, 16, 64, 256, N)
counts = {B: best(runs[B])[1] for B in SIZES}
table(["B", *map(str, shown)],
      [["steps", *(f"{steps[B]:.0f} ({counts[B].min():.0f} to {counts[B].max():.0f})" for B in shown)],
       ["samples", *(f"{B * steps[B]:,.0f}" for B in shown)],
       ["best learning rate", *(f"{rate[B]:.2g}" for B in shown)]],
      f"measured: loss {TARGET}, median (range) of {len(SEEDS)} seeds; your guess for {N:,}: "
      f"{guess_steps.against(steps[N])}")  # fmt: skip
say(f"From 2 to 16 samples: {steps[2] / steps[16]:.1f} times fewer steps for 8 times the samples. From 16 to {N:,}: "
    f"**{steps[16] / steps[N]:.1f} times fewer steps for {N / 16:.0f} times the samples.** No best learning rate lies "
    "at the border of its sweep.")  # fmt: skip

# %% [markdown]
# ## Why: a step on a noisy gradient
#
# Let $G$ be the gradient over all samples and $G_B$ the mean over a random minibatch. Its mean is $G$; its variance,
# summed over all weights, is $\mathrm{tr}(\Sigma)/B$, where $\Sigma$ is the covariance of one sample's gradient
# ([02a](02a_noisy_gradients.ipynb)). So $\overline{|G_B|^2} = |G|^2 + \mathrm{tr}(\Sigma)/B$, where a bar is the mean
# over all minibatches. (The samples are drawn with replacement. Without, as in an epoch, the variance has the factor
# $\frac{N-B}{N-1}$. It is far from 1 only for $B$ near $N$, where there is little noise anyway.) Take the simplest
# loss, with the same curvature $h$ in all directions. A step $w - \eta G_B$ changes it by
#
# $$\overline{\Delta} = -\eta |G|^2 + \frac h2 \eta^2\Big(|G|^2 + \frac{\mathrm{tr}(\Sigma)}{B}\Big).$$
#
# The first term is what the step gains, the second what it pays for its length; noise has length, too, and gains
# nothing. Set the derivative by $\eta$ to zero. With $\eta_{\max} = 1/h$ and the **noise scale**
# $B_{\text{simple}} = \mathrm{tr}(\Sigma) / |G|^2$:
#
# $$\eta_{\text{best}} = \frac{\eta_{\max}}{1 + B_{\text{simple}}/B}, \qquad
# -\overline{\Delta}_{\text{best}} = \frac{\eta_{\max} |G|^2 / 2}{1 + B_{\text{simple}}/B}.$$
#
# For $B \ll B_{\text{simple}}$ the best learning rate is $\eta_{\max} B / B_{\text{simple}}$: the linear scaling rule.
# Far above it the learning rate, and the gain, hardly grow: the gradient is nearly exact already. Try it: 1,000 points
# $x_i$, loss $\frac12|w - x_i|^2$ ($h = 1$), one step from $w = 0$ with 81 learning rates.

# %% source_hidden=true
rng = np.random.default_rng(0)
points = rng.normal(0.5, 2.0, (1000, 20))
truth = points.mean(axis=0)  # of samples x the gradient at 0 is -mean(x); the loss is least at the mean of all points
simple = points.var(axis=0).sum() / (truth @ truth)
rows, rates = [], np.linspace(0, 1, 81)
for B in (4, 16, 64, 256):
    steps_taken = points[rng.integers(1000, size=(4000, B))].mean(axis=1)  # -G_B, 4,000 times
    after = [np.mean(np.sum((r * steps_taken - truth) ** 2, axis=1)) for r in rates]
    rows.append([B, f"{rates[np.argmin(after)]:.2f}", f"{1 / (1 + simple / B):.2f}",
                 f"{1 - min(after) / (truth @ truth):.2f}"])  # fmt: skip
table(
    ["B", "best learning rate, measured", "formula", "gain / largest gain, measured"],
    rows,
    f"noise scale {simple:.0f}, 4,000 minibatches each; by the formula, this gain is the same number",
)

# %% [markdown]
# If every step of a run gains $1/(1 + B_c/B)$ of the largest gain, the run needs $1 + B_c/B$ times the fewest steps:
#
# $$S = S_{\min}\Big(1 + \frac{B_c}{B}\Big), \qquad
# E = BS = E_{\min}\Big(1 + \frac{B}{B_c}\Big), \qquad E_{\min} = S_{\min} B_c .$$
#
# $S$ are the steps of the run, $E$ its samples. $S_{\min}$ steps are needed with a gradient without noise, $E_{\min}$
# samples with a tiny minibatch. $B_c$, the *critical minibatch*, is the noise scale, if that were constant. Multiply
# $S/S_{\min} - 1 = B_c/B$ and $E/E_{\min} - 1 = B/B_c$:
#
# $$\Big(\frac{S}{S_{\min}} - 1\Big)\Big(\frac{E}{E_{\min}} - 1\Big) = 1.$$
#
# A hyperbola: steps are paid for in samples. At $B = B_c$ the run has twice the fewest steps and twice the fewest
# samples. Does a network obey it? $S = S_{\min} + E_{\min}/B$ is a straight line in $1/B$, so the fit is one line.


# %%
def fit(steps):
    """S_min and B_c, by least squares of the relative errors."""
    B, S = np.array(list(steps), float), np.array(list(steps.values()), float)
    e_min, s_min = np.polyfit(1 / B, S, 1, w=1 / S)
    return s_min, e_min / s_min


s_min, b_c = fit(steps)

# %% source_hidden=true
off = np.sqrt(np.mean([np.log(s_min * (1 + b_c / B) / steps[B]) ** 2 for B in SIZES]))
by_seed = [fit({B: best(runs[B])[1][seed] for B in SIZES})[1] for seed in SEEDS]
say(f"**$S_{{\\min}}$ = {s_min:.1f} steps, $B_c$ = {b_c:.0f} samples**, $E_{{\\min}}$ = {s_min * b_c:.0f} "
    f"samples. The points are off the curve by {100 * off:.0f} % (root mean square). Each seed alone gives a $B_c$ "
    f"from {min(by_seed):.0f} to {max(by_seed):.0f}: one digit is all that can be trusted.")  # fmt: skip

# %% source_hidden=true
smooth = np.geomspace(SIZES[0], N, 200)


def two_laws():
    with style.applied():
        figure, (left, right) = style.new_figure(9.5, 3.6, columns=2)
        left.plot(smooth, s_min * (1 + b_c / smooth), color=style.SERIES[0], label="$S_{min}(1 + B_c/B)$, fitted")
        left.plot(smooth, s_min * b_c / smooth, ":", color="0.4", label="half the steps for twice B")
        left.plot(SIZES, list(steps.values()), "o", color=style.SERIES[0], markersize=5, label="measured")
        left.axhline(s_min, color="0.4", linestyle="--", linewidth=1, label="$S_{min}$")
        left.set(ylabel="steps to the target", ylim=(s_min / 2, None))
        top = s_min * (1 + b_c / SIZES[0])
        for at, text in ((5, "perfect\nscaling"), (b_c, "diminishing\nreturns"), (480, "nothing\nto gain")):
            left.text(at, 1.35 * top, text, ha="center", va="top", fontsize=8, color="0.3")
        left.set_ylim(top=1.5 * top)
        right.plot(smooth, rate[N] / (1 + b_c / smooth), color=style.SERIES[1],
                   label="$\\eta_{max}/(1 + B_c/B)$, formula")  # fmt: skip
        right.plot(SIZES, list(rate.values()), "s", color=style.SERIES[1], markersize=5, label="measured, best of 7")
        right.set(ylabel="learning rate")
        for axes in (left, right):
            axes.set(xscale="log", yscale="log", xlabel="minibatch B (samples)")
            axes.axvline(b_c, 0, 0.85, color="0.4", linestyle=":", linewidth=1)
            axes.set_xticks([2, 8, 32, 128, 512], [2, 8, 32, 128, 512])
            axes.minorticks_off()
        left.set_yticks([10, 20, 50, 100, 200], [10, 20, 50, 100, 200])
        right.set_yticks([0.2, 0.5, 1, 2, 5], [0.2, 0.5, 1, 2, 5])
        left.legend(fontsize=8, loc="lower left", bbox_to_anchor=(0.42, 0.42))
        right.legend(fontsize=8, loc="lower right")
        style.label_source(
            figure, ("measured", "formula"), f"loss {TARGET}, median of {len(SEEDS)} seeds; dotted: $B_c$"
        )
    return figure


predicted = {B: rate[N] / (1 + b_c / B) for B in SIZES}
factor = np.exp(max(abs(np.log(rate[B] / predicted[B])) for B in SIZES))
see(two_laws(), "left, the steps nearly halve with each doubling of B far below $B_c$; above it they flatten to "
    "$S_{\\min}$. Right, the best learning rate: it follows the formula with the same $B_c$, although that was fitted "
    f"to the steps alone ($\\eta_{{\\max}}$ is the best one of the largest B); they differ by at most a factor of "
    f"{factor:.1f}, where the sweep has steps of 1.4. The linear scaling rule is its left half.")  # fmt: skip

# %% [markdown]
# Now walk along the hyperbola: each minibatch is one point of it.


# %% source_hidden=true
def hyperbola(axes, minibatch, critical_B):
    """Steps and samples of one minibatch, for this task or for one with another B_c."""
    scale = round(b_c) if critical_B == "of our task" else critical_B
    s, e = s_min * (1 + scale / smooth), s_min * (scale + smooth)
    here = s_min * (1 + scale / minibatch), s_min * (scale + minibatch)
    axes.plot(e, s, color=style.SERIES[0])
    axes.axvline(s_min * scale, color="0.4", linestyle="--", linewidth=0.8)
    axes.axhline(s_min, color="0.4", linestyle="--", linewidth=0.8)
    if critical_B == "of our task":
        axes.plot([B * steps[B] for B in SIZES], list(steps.values()), "o", color="0.5", markersize=3)
    axes.plot(here[1], here[0], "D", color=style.SERIES[1], markersize=8)
    axes.annotate(f"{here[0] / s_min:.1f} x $S_{{min}}$\n{here[1] / (s_min * scale):.1f} x $E_{{min}}$", here[::-1],
                  (10, 6), textcoords="offset points", fontsize=8)  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="samples E", ylabel="steps S", xlim=(200, 40_000), ylim=(8, 3_000))


explore(hyperbola,
        "the diamond is the chosen minibatch, dashed are $S_{\\min}$ and $E_{\\min}$, grey points (for our task) are "
        "the measured runs. A small minibatch stands high on the left (few samples, many steps), a large one low on "
        "the right. A task with more noise has a larger $B_c$: the same minibatch stands higher on its arm.",
        minibatch=[32, 2, 4, 8, 16, 64, 128, 256, 512, 1437], critical_B=["of our task", 8, 128, 512],
        multiples=[{"minibatch": 4}, {}, {"minibatch": 512}, {"critical_B": 512}],
        source=("measured", "formula"), height=3.8)  # fmt: skip

# %% [markdown]
# ## Can the noise scale be measured before the sweep?
#
# The sweep cost hundreds of runs. The noise scale costs none: $B_{\text{simple}}$ is made of gradients. Our training
# set is so small that we can afford the gradient of every single sample. At the initial weights:

# %% source_hidden=true
minidl.manual_seed(0)
fresh = nn.models.MLP(64, 32, 10)
each = np.array([noise_scale.gradient(fresh, TRAIN, [i]) for i in range(N)])  # a row: the gradient of one sample
G = each.mean(axis=0)
trace = np.mean(np.sum((each - G) ** 2, axis=1))
ours, theirs = trace / (G @ G), noise_scale.exact(fresh, TRAIN)
say(f"Squared length of G: {G @ G:.3f}; $\\mathrm{{tr}}(\\Sigma)$ = {trace:.2f}; so $B_{{\\text{{simple}}}}$ "
    f"= **{ours:.1f}** samples. minidl's `noise_scale.exact`: {theirs.scale:.1f}.")  # fmt: skip
assert abs(ours / theirs.scale - 1) < 1e-6

# %% [markdown]
# A large network cannot enumerate. But it computes gradients of two sizes anyway: every node has the gradient of its
# own $b$ samples, and the all-reduce gives that of all $B$. Both squared lengths follow the same law,
# $\overline{|G_B|^2} = |G|^2 + \mathrm{tr}(\Sigma)/B$: two equations, two unknowns. Subtract them:
#
# $$\mathrm{tr}(\Sigma) \approx \frac{|G_b|^2 - |G_B|^2}{1/b - 1/B}, \qquad
# |G|^2 \approx \frac{B\,|G_B|^2 - b\,|G_b|^2}{B - b}.$$


# %%
def two_sizes(b_square, B_square, b, B):
    """Estimates of |G|^2 and tr(Sigma) from the squared lengths of gradients over b and over B samples."""
    return (B * B_square - b * b_square) / (B - b), (b_square - B_square) / (1 / b - 1 / B)


def one_step(comm, gradients, b):
    """Every node: the mean gradient of its own b samples; all nodes: estimates of the noise."""
    mine = gradients[comm.rng.integers(len(gradients), size=b)].mean(axis=0)
    return mine, noise_scale.over_nodes(comm, mine, b)


# %% source_hidden=true
results = cluster.launch(one_step, (each, 16), nodes=4, on="simulation").results
shares = np.array([share for share, _ in results])
mean_share = shares.mean(axis=0)
built_in = results[0][1]
square, noise = two_sizes(np.mean(np.sum(shares**2, axis=1)), mean_share @ mean_share, 16, 64)
table(["one step of 4 nodes with 16 samples each", "squared length of G", r"$\mathrm{tr}(\Sigma)$",
       r"$B_{\text{simple}}$"],
      [["two equations, by hand", f"{square:.3f}", f"{noise:.2f}", f"{noise / square:.1f}"],
       ["noise_scale.over_nodes", f"{built_in.squared_norm:.3f}", f"{built_in.trace:.2f}", f"{built_in.scale:.1f}"],
       ["exact, all samples", f"{G @ G:.3f}", f"{trace:.2f}", f"{ours:.1f}"]],
      "simulated nodes, real gradients")  # fmt: skip

# %% [markdown]
# One step is a rough estimate. So average over many. There are two ways to do it: average the ratios, or average
# numerator and denominator and divide once. Say 500 steps of 4 nodes, now at weights that are trained a little
# ($B = 16$, learning rate 0.5, 100 steps).

# %%
guess_mean = guess("Which average comes closer to the exact noise scale?", ["of the ratios", "ratio of the averages",
                                                                            "no difference"])  # fmt: skip


# %%
def trained(seed, steps, B=16):
    """A model after that many steps with learning rate 0.5."""
    minidl.manual_seed(seed)
    model = nn.models.MLP(64, 32, 10)
    sgd = optim.SGD(model.parameters(), lr=0.5)
    for _, (x, y) in zip(range(steps), minibatches(B, seed), strict=False):
        sgd.zero_grad()
        F.cross_entropy(model(x), y).backward()
        sgd.step()
    return model


def estimates(gradients, b, draws=500, nodes=4):
    """Many estimates (|G|^2, tr(Sigma)) from nodes with b samples each."""
    rng = np.random.default_rng(1)
    shares = gradients[rng.integers(len(gradients), size=(draws, nodes, b))].mean(axis=2)
    whole = shares.mean(axis=1)
    return two_sizes(np.mean(np.sum(shares**2, axis=2), axis=1), np.sum(whole**2, axis=1), b, nodes * b)


# %% source_hidden=true
later_model = trained(0, 100)
later = np.array([noise_scale.gradient(later_model, TRAIN, [i]) for i in range(N)])
truth_later = np.sum((later - later.mean(axis=0)) ** 2) / N / np.sum(later.mean(axis=0) ** 2)
rows = []
for name, gradients, exact in (("initial", each, ours), ("after 100 steps", later, truth_later)):
    for b in (4, 16):
        squares, traces = estimates(gradients, b)
        rows.append([name, b, round(exact), round(traces.mean() / squares.mean()), round(np.mean(traces / squares)),
                     f"{np.mean(squares < 0):.0%}"])  # fmt: skip
assert all(abs(row[3] / row[2] - 1) < abs(row[4] / row[2] - 1) for row in rows)
table(["weights", "samples of a node", "exact", "ratio of averages", "average of ratios",
       "estimated squared lengths below 0"], rows,
      "noise scale, measured: 500 steps of 4 nodes; your guess: "
      f"{guess_mean.against('ratio of the averages')}")  # fmt: skip

# %% [markdown]
# Each estimate is unbiased: its average is right, for the numerator and for the denominator. The *ratio* of two noisy
# estimates is not. Where an estimate of $|G|^2$ comes near zero its ratio is huge, and where it falls below zero the
# noise scale of that step is negative: nonsense that no average repairs. `noise_scale.mean` divides once.
#
# ## Does the noise scale predict the bend?
#
# The loss falls along the run, and $|G|^2$ falls faster than the noise. So which noise scale?

# %% source_hidden=true
LOOKS = (0, 10, 20, 30, 50, 70, 100, 300)
path = {}
for seed in bar(range(3), "enumerating the gradients along three runs"):
    for at in LOOKS:
        model = trained(seed, at)
        path[seed, at] = loss_of(model), noise_scale.exact(model, TRAIN).scale
median = {at: np.median([path[seed, at] for seed in range(3)], axis=0) for at in LOOKS}
s_half, b_half = fit({B: np.median(best(runs[B], 1)[1]) for B in SIZES})

# %% source_hidden=true
name = r"$B_\mathrm{simple}$ along a run (three seeds)"
drawn = [lines.Line("" if seed else name, *zip(*(path[seed, at] for at in LOOKS), strict=True), "both", 0)
         for seed in range(3)]  # fmt: skip
drawn += [lines.Line(f"$B_c$ of the run to loss {target}, fitted", [2.5, target], [critical] * 2, "both", tone)
          for target, critical, tone in ((TARGET, b_c, 1), (HALFWAY, b_half, 2))]  # fmt: skip
figure = lines.draw([lines.Panel(drawn, "training loss (falls to the right)", "minibatch (samples)", "", "xy")],
                    source=("measured", "formula"), height=3.6)  # fmt: skip
figure.axes[0].invert_xaxis()
see(
    figure,
    "in the first steps the noise scale falls, then it rises while the loss falls. The critical minibatches are lower "
    "than it all the way, and the one of the longer run (lower target) is the larger one.",
)
falling, scales = np.log(list(median.values())).T
at_target = np.exp(np.interp(-np.log(TARGET), -falling, scales))
way = [*(scale for loss, scale in median.values() if loss > TARGET), at_target]
low, high, end = min(way), max(way), median[LOOKS[-1]]
say(f"On the way to loss {TARGET} the noise scale lies between {low:.0f} and {high:.0f}; $B_c$ of the run is "
    f"{b_c:.0f} (to loss {HALFWAY}: {b_half:.0f}). $B_{{\\text{{simple}}}}$ is **{low / b_c:.1f} to "
    f"{high / b_c:.1f} times** $B_c$: right to a factor of {np.ceil(high / b_c):.0f}, not to a percent. "
    f"At loss {end[0]:.2f} it is {end[1]:.0f}.")  # fmt: skip

# %% [markdown]
# Why not exactly? The curvature of a network differs from direction to direction, its best learning rate changes on the
# way, and so does the noise scale. As a forecast of the order of magnitude, before any sweep, it costs nearly nothing.
# That it rises is useful, too: a minibatch that is too large at the start is right at the end
# ([08e](08e_growing_batches.ipynb)).
#
# ## Break it: a sweep that ends too early
#
# A colleague has swept learning rates up to 2. For small minibatches that is enough. The same runs and seeds without
# all learning rates above 2:

# %% source_hidden=true
capped = {B: np.median(best(runs[B], most=2)[1]) for B in SIZES}
s_false, b_false = fit(capped)
large = [B for B in SIZES if B >= 64]
drawn = [
    lines.Line("learning rates as high as it pays", SIZES, list(steps.values()), "points", 0),
    lines.Line("learning rates up to 2", SIZES, list(capped.values()), "points", 1),
    lines.Line("", smooth, s_min * (1 + b_c / smooth), "line", 0),
    lines.Line("", smooth, s_false * (1 + b_false / smooth), "line", 1),
]
panel = lines.Panel(drawn, "minibatch B (samples)", "steps to the target", "", "xy")
see(lines.draw([panel], source=("measured", "formula"), height=3.4),
    "up to 16 samples the two sweeps agree. Then the capped one runs into a floor of its own: it looks like a law of "
    "the task, and is the border of a grid. Lines: the two fits.")  # fmt: skip
say(f"Learning rates up to 2: $S_{{\\min}}$ = {s_false:.0f}, $B_c$ = {b_false:.0f}. Tuned: {s_min:.0f} and {b_c:.0f}. "
    f"With {N:,} samples the colleague counts {capped[N]:.0f} steps instead of {steps[N]:.0f}, and reports that "
    f"minibatches beyond {2 ** round(np.log2(b_false))} are not worth having.")  # fmt: skip

# %% [markdown]
# You recognise it by the best learning rates, which stand at the border of the sweep. The opposite mistake is to keep
# the learning rate of the *large* minibatch for the small ones. "Small against large" with one learning rate for both
# compares learning rates.
#
# ## What the papers report
#
# **Shallue et al. (2019)**, *Measuring the effects of data parallelism on neural network training* (JMLR 20(112)),
# train many kinds of networks, and tune for every minibatch. They find our three regimes on every workload: perfect
# scaling, diminishing returns, and no gain at all ("maximal data parallelism"); where the bend is differs from workload
# to workload. They find no evidence that larger minibatches make models worse, and trace disagreements between
# earlier papers to different tuning and computing budgets. That is "Break it".
#
# **McCandlish et al. (2018)**, *An empirical model of large-batch training* (arXiv:1812.06162): the noise scale
# predicts the largest useful minibatch over many tasks: tens of thousands of samples for ImageNet, millions for an
# agent that plays Dota 2. It rises as the loss falls, as ours does.
#
# The same with B = 1, target 0.2 and 15 learning rates, in minutes: `benchmarks/reproductions/steps_to_target.py`.
#
# ## To the exercises
#
# [Exercises of chapter 08](../exercises/08_large_minibatches/08_large_minibatches.ipynb): one asks for the noise scale
# from two minibatch sizes, averaged the right way.
#
# **Three questions to argue about**
#
# 1. Your run uses $B = B_c$. Machines become free of charge, electricity does not. Which way do you move on the
#    hyperbola, and how far?
# 2. At the end of training the noise scale is ten times that of the start. You may measure it only once: when?
# 3. A paper compares $B = 256$ and $B = 8192$, both with the learning rate that is best for 256, after the same number
#    of epochs. Which two things should it have done?
#
# Next: [08e](08e_growing_batches.ipynb), what noise is good for. After it [08f](08f_best_batch.ipynb) turns
# steps into seconds, on a network.
