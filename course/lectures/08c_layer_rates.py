# %% [markdown]
# # 08c. What if every layer had its own learning rate?
#
# *Read [08a](08a_linear_scaling.ipynb) (the linear scaling rule) and [08b](08b_warm_up.ipynb) (warm-up) first. Reading
# time: about 22 minutes. Figures are* measured, simulated *or come from a* formula.
#
# ## The question
#
# 08a and 08b gave one learning rate (on this page: rate) to all layers of a network. Here are two networks that
# compute *the same function*. The first is an MLP with five layers of weights, 64-64-64-64-64-10, with first weights
# of He et al. ([02b](02b_starting_points.ipynb)). In the second, the weights and biases of layer 2 are multiplied by
# $a = 64$ and the weights of layer 3 are divided by 64. Between them stands a ReLU, and $\text{ReLU}(64 x) = 64\,
# \text{ReLU}(x)$, so the outputs are equal. Train both: momentum SGD, minibatches of 512, the best of seven rates for
# the first one (a table below compares them).

# %% source_hidden=true
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from course.figures.page import say, see, table
from course.interaction import bar, explore, guess, warm_up
from minidl import Tensor, cluster, data, manual_seed, nn, optim, parallel
from minidl import functional as F
from minidl.plots import style
from minidl.plots.lines import Line, Panel, draw

warm_up()
one_thread = threadpool_limits(1)  # matrices as small as ours are not worth a second thread
DIGITS = data.Splits(*data.digits())
SEEDS, norm = range(3), np.linalg.norm


# %%
def he_start(a=1):
    """Weights of He et al., biases of zero; layer 2 times a, layer 3 divided by a."""
    model = nn.models.MLP(64, 64, 64, 64, 64, 10)
    for parameter in model.parameters():
        nn.init.kaiming_normal_(parameter) if parameter.ndim == 2 else nn.init.zeros_(parameter)
    return rescaled(model, a)


def rescaled(model, a):
    for parameter, factor in zip(list(model.parameters())[2:5], (a, a, 1 / a), strict=True):
        parameter.data *= factor
    return model


def sgd(lr):
    return partial(optim.SGD, lr=lr, momentum=0.9, weight_decay=1e-4)


def train(optimizer, minibatch, seed, model=he_start, splits=DIGITS, epochs=30, **settings):
    """Train with five epochs of warm-up from zero, then decay; None if the loss is no number any more."""
    schedule = {"base_batch_size": 16, "warmup_epochs": 5, "total_epochs": epochs, "power": 2.0, "scaling": "fixed",
                "start_factor": 0.0} | settings  # fmt: skip
    schedule = partial(optim.LargeBatchLR, batch_size=minibatch, **schedule)
    job = parallel.Job(model, splits, optimizer, schedule, batch_size=minibatch, epochs=epochs, seed=seed)
    try:
        return parallel.train(job, on=cluster.Simulation(trace="ledger"))
    except parallel.NonFiniteLoss:
        return None


# %% source_hidden=true
def error(report):
    """The test error in percent; that of guessing, if the run diverged."""
    return 90.0 if report is None else 100 - 100 * report.accuracy


def spread(misses):
    return f"{np.mean(misses):.1f} ± {np.std(misses, ddof=1):.1f}"


# %% source_hidden=true
twins = {"first": he_start, "second": partial(he_start, 64)}
images = Tensor(DIGITS.test.x)
manual_seed(0)
outputs = twins["first"]()(images).data
manual_seed(0)
apart = np.abs(twins["second"]()(images).data - outputs).max()
missed = {name: [error(train(sgd(0.2), 512, seed, model)) for seed in SEEDS] for name, model in twins.items()}
table(["network", *(f"test error, seed {seed}" for seed in SEEDS)],
      [[name, *(f"{miss:.1f} %" for miss in misses)] for name, misses in missed.items()],
      f"measured: 30 epochs, rate 0.2; before training the outputs of the two differ by {apart:g}")  # fmt: skip

# %% [markdown]
# Same function, same data, same rate, and the second learns nothing. SGD does not see functions, it sees numbers. Look
# at the numbers, layer by layer: a step of rate $\eta$ along the gradient $g$ changes the weights $w$ of a layer by the
# share $\eta\, |g| / |w|$, where $|\cdot|$ is the 2-norm of the whole layer. So $|w|/|g|$ is the rate at which one step
# is as long as the weights themselves. Four networks at their start: the twins, the MLP with minidl's default weights
# (PyTorch's), and the convolutional LeNet.


# %%
def gradients(model, x, y):
    """The weights (and biases) and their gradients of the mean loss over these samples."""
    for parameter in model.parameters():
        parameter.grad = None
    F.cross_entropy(model(Tensor(x)), y).backward()
    return [(parameter.data, parameter.grad) for parameter in model.parameters()]


# %%
guess_factor = guess("By which factor do |w| / |g| of the layers differ in the MLP with default weights?", unit="times")


# %% source_hidden=true
STARTS = {
    "first twin": he_start,
    "second twin": partial(he_start, 64),
    "default weights": partial(nn.models.MLP, 64, 64, 64, 64, 64, 10),
    "LeNet": partial(nn.models.LeNet, size=8),
}
ratios = {}
for name, start in STARTS.items():
    manual_seed(0)
    pairs = gradients(start(), DIGITS.train.x[:256], DIGITS.train.y[:256])
    ratios[name] = [norm(w) / norm(g) for w, g in pairs if w.ndim > 1]


@style.applied()
def layer_bars():
    figure, places = style.new_figure(9.5, 2.9, columns=4, sharey=True)
    for axes, (name, values) in zip(places, ratios.items(), strict=True):
        axes.bar(range(1, 6), values, color=style.SERIES[5], **style.BORDER)
        axes.axhline(0.2, color="0.3", linewidth=0.9, linestyle=(0, (3, 2)))
        axes.set(yscale="log", ylim=(3e-3, 3e5), xlabel="layer", xticks=range(1, 6), title=name)
    places[0].set_ylabel("|w| / |g|")
    style.label_source(figure, "measured", "first step, 256 samples, seed 0; dashed: rate 0.2")
    return figure


factors = {name: max(values) / min(values) for name, values in ratios.items()}
see(layer_bars(), "a bar near the dashed line means that a step of rate 0.2 replaces the whole layer; a bar far above "
    "it means that the layer moves little. The first twin's bars are nearly equal. The second's are "
    "not: one step at rate 0.2 throws layer 3 far away and leaves layer 2 where it is.")  # fmt: skip
say("Largest over smallest bar: " + "; ".join(f"{name}, **{factor:,.1f}**" for name, factor in factors.items())
    + f". Your guess for default weights: {guess_factor.against(factors['default weights'])}.")  # fmt: skip

# %% [markdown]
# One rate for all layers is at the same time too high for one layer and too low for another. With small minibatches a
# small rate will do for all. The linear scaling rule multiplies the rate by $k$, and the layer with the lowest bar is
# in danger first.
#
# ## Build: the length of a step, layer by layer
#
# **LARS** (layer-wise adaptive rate scaling; You, Gitman, Ginsburg 2017) fixes what the gradient may not decide: the
# *length* of each layer's step, as a share of $|w|$. The gradient keeps the direction. With weight decay $\lambda$ and
# momentum $m$:
#
# $$\text{ratio} = \frac{\text{trust}\;|w|}{|g| + \lambda |w|}, \qquad
#   v \leftarrow m\,v + \eta \cdot \text{ratio} \cdot (g + \lambda w), \qquad w \leftarrow w - v .$$
#
# The **trust coefficient** is the largest length of a step with $\eta = 1$ and no momentum, as a share of $|w|$:
# $|g + \lambda w| \le |g| + \lambda |w|$. A layer whose weights or gradient are all zero gets the ratio 1, else it
# could never leave zero.


# %%
def trust_ratio(w, g, trust, decay):
    """w and g: norms of a layer's weights and of its gradient."""
    return trust * w / (g + decay * w) if w and g else 1.0


class OurLARS(optim.Optimizer):
    def __init__(self, params, lr, trust=0.02, decay=1e-4, momentum=0.9, ratio=trust_ratio):
        super().__init__(params, {"lr": lr})
        self.trust, self.decay, self.momentum, self.ratio = trust, decay, momentum, ratio

    def new_state(self, data, group):
        return {"v": np.zeros_like(data)}

    def norms(self, w, g):
        return norm(w), norm(g)

    def update(self, w, g, state, group):  # minidl calls it for each parameter
        own = group["lr"] * self.ratio(*self.norms(w, g), self.trust, self.decay)
        state["v"][:] = self.momentum * state["v"] + own * (g + self.decay * w)
        w -= state["v"]


# %%
LARS = partial(optim.LARS, lr=1.0, momentum=0.9, weight_decay=1e-4, trust_coefficient=0.02)  # one setting for all


def stepped(optimizer, a=1, loss_times=1.0, steps=20):
    """The MLP with default weights after some steps, each on all samples, in float64; a: as for the twins."""
    manual_seed(0)
    model = rescaled(STARTS["default weights"]().double(), a)
    rule = optimizer(model.parameters())
    for _ in range(steps):
        rule.zero_grad()
        (F.cross_entropy(model(Tensor(DIGITS.train.x.astype(float))), DIGITS.train.y) * loss_times).backward()
        rule.step()
    return model


# %% source_hidden=true
ours, minidls = (list(stepped(rule).parameters()) for rule in (partial(OurLARS, lr=1.0), LARS))
far = max(np.abs(one.data - other.data).max() for one, other in zip(ours, minidls, strict=True))
print(f"after 20 steps our weights and those of optim.LARS differ by at most {far:.0e}")

# %% [markdown]
# In `minidl`, as here, every weight matrix *and* every bias vector counts as a layer of its own; `exclude_1d=True`
# gives biases the ratio 1 instead.
#
# ## What it is blind to
#
# Multiply a layer by $a$ and the next one by $1/a$. The gradient of the first shrinks by $1/a$, so $|w|/|g|$ grows by
# $a^2$, and LARS makes a step that is $a$ times as long: *the same share of the weights*. Multiply the loss by 1,000:
# the gradient's length cancels. So the networks should stay the same *function* at every step, to rounding:

# %% source_hidden=true
inputs = Tensor(DIGITS.test.x.astype(float))
plain = partial(optim.SGD, lr=0.2, momentum=0.9)
pure = partial(optim.LARS, lr=1.0, momentum=0.9, trust_coefficient=0.02)  # without weight decay
changes = {
    "layer 2 times 3, layer 3 divided by 3": {"a": 3},
    "loss times 1,000": {"loss_times": 1000.0},
}
rows = []
with np.errstate(all="ignore"):  # SGD overflows
    for change, settings in changes.items():
        gaps = []
        for optimizer in (plain, pure):
            reference, changed = stepped(optimizer)(inputs).data, stepped(optimizer, **settings)(inputs).data
            gaps.append(f"{np.abs(changed - reference).max() / np.abs(reference).max():.0e}")
        rows.append([change, *gaps])
table(["change", "SGD", "LARS"], rows,
      "measured: relative difference of the outputs after 20 steps, float64, no weight decay")  # fmt: skip

# %% [markdown]
# The second row has a dark side. A classic mistake of chapter 05 is to *sum* the nodes' gradients instead of
# averaging them. With SGD and many nodes the loss explodes and you notice. LARS trains on and hides it (but for
# weight decay, whose share is then wrong).
#
# And the twin that learned nothing? To be fair, SGD now gets the best of seven rates for each network. LARS has one
# setting for all.

# %%
guess_twin = guess("What test error does LARS reach on the second twin?", unit="%")

# %% source_hidden=true
RATES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8)
NETWORKS = list(STARTS)[:3]
tuned = {(name, lr): [error(train(sgd(lr), 512, seed, STARTS[name])) for seed in SEEDS]
         for name, lr in bar([(name, lr) for name in NETWORKS for lr in RATES], "tuning SGD")}  # fmt: skip
with_lars = {name: [error(train(LARS, 512, seed, STARTS[name])) for seed in SEEDS] for name in NETWORKS}
rows = []
for name in NETWORKS:
    best = min(RATES, key=lambda lr: np.mean(tuned[name, lr]))
    rows.append([name, spread(tuned[name, 0.2]), f"{spread(tuned[name, best])}, at {best}", spread(with_lars[name])])
table(["test error in %", "SGD 0.2", f"SGD, best of {len(RATES)} rates", "LARS"], rows,
      f"measured: B = 512, {len(SEEDS)} seeds, rates from {RATES[0]} to {RATES[-1]}; your guess for the second twin: "
      f"{guess_twin.against(np.mean(with_lars['second twin']))}")  # fmt: skip

# %% [markdown]
# Where the layers happen to be balanced, as in the first twin, a tuned rate is as good: the two are within each other's
# spread. He's weights *are* a way to balance layers, by hand, for the first step. LARS balances them at every step.
#
# ## Does it help with large minibatches?
#
# That was the purpose. Now the first twin alone, whose bars are equal: the hard case for LARS. Five rules, each in
# *one* setting for all minibatches. "1,024 of 1,024" trains on fewer samples, with one step an epoch. SGD with linear
# scaling has the rate 0.04 for 16 samples.

# %%
RULES = {"SGD, linear": (sgd(0.04), {"scaling": "linear", "start_factor": 1.0}), "SGD, rate 0.1": (sgd(0.1), {}),
         "SGD, rate 0.2": (sgd(0.2), {}), "SGD, rate 0.4": (sgd(0.4), {}), "LARS": (LARS, {})}  # fmt: skip

# %%
guess_linear = guess("From which minibatch on does linear scaling fail in some runs?", ["128", "256", "512", "1,024"])

# %% source_hidden=true
ONE_STEP = "1,024 of 1,024"
CASES = {"128": 128, "256": 256, "512": 512, "1,024": 1024, ONE_STEP: 1024}
FEWER = data.Splits(data.Dataset(*DIGITS.train[:1024]), DIGITS.test)


def errors_of(rule, case):
    splits = FEWER if case == ONE_STEP else DIGITS
    optimizer, settings = RULES[rule]
    return [error(train(optimizer, CASES[case], seed, splits=splits, **settings)) for seed in SEEDS]


found = {key: errors_of(*key) for key in bar([(rule, case) for rule in RULES for case in CASES], "25 cases")}
best = {case: min(np.mean(found[rule, case]) for rule in RULES) for case in CASES}
behind = {rule: max(np.mean(found[rule, case]) - best[case] for case in CASES) for rule in RULES}
first_failure = next(case for case in CASES if max(found["SGD, linear", case]) > 50)
table(["test error in %", *CASES, "furthest behind the best"],
      [[rule, *(spread(found[rule, case]) for case in CASES),
        f"{behind[rule]:.1f} points"] for rule in RULES],
      f"measured: means of {len(SEEDS)} seeds ± standard deviation; your guess: "
      f"{guess_linear.against(first_failure)}")  # fmt: skip


# %% source_hidden=true
@style.applied()
def five_rules():
    figure, [axes] = style.new_figure(8.0, 3.6)
    for number, rule in enumerate(RULES):
        look = {"color": style.SERIES[number], "linestyle": style.DASHES[number], "marker": "os^Dv"[number]}
        means = [np.mean(found[rule, case]) for case in CASES]
        axes.plot(range(4), means[:4], label=rule, markersize=5, **look)
        axes.plot([4], means[4:], markersize=5, **look)
        for place, case in enumerate(CASES):
            x = [place + 0.05 * (number - 2)] * len(SEEDS)
            axes.plot(x, found[rule, case], ".", color=style.SERIES[number], markersize=4, alpha=0.6)
    axes.set(yscale="log", xlabel="minibatch (samples)", ylabel="test error (%)")
    axes.axvline(3.5, color="0.4", linewidth=0.8, linestyle=(0, (1, 2)))  # beyond it: fewer training samples
    axes.set(xlim=(-0.3, 4.4))
    axes.set_xticks(range(5), list(CASES))
    axes.set_yticks([2, 5, 10, 20, 50, 90], ["2", "5", "10", "20", "50", "90"])
    axes.minorticks_off()
    figure.legend(loc="outside right upper", fontsize=8)
    style.label_source(figure, "measured", "dots: runs, lines: means")
    return figure


see(five_rules(), f"linear scaling fails in some runs from {first_failure} on. Each fixed rate is good somewhere and "
                  f"worse elsewhere. LARS is at most {behind['LARS']:.1f} points behind the best mean. (Right of the "
    "dotted line: trained on 1,024 samples.)")  # fmt: skip

# %% [markdown]
# **What shows, and what does not.** LARS is not the best rule of every column: a rate tuned for the column is as good,
# and a column's differences of less than a point are noise of three seeds. (With 12 seeds and the thresholds for what
# must show: `benchmarks/reproductions/lars.py`.) What LARS saves is tuning: the same setting serves all five columns
# and all three networks. Its own trust coefficient was chosen once; how much it matters shows a panel below.
#
# ## Why one setting serves all minibatches
#
# A minibatch's gradient is the full gradient $G$ plus noise. Let $\Sigma$ be the covariance matrix of one sample's
# gradient; its trace $\operatorname{tr}\Sigma$ is the sum of the variances of all entries. Then on average
# $|g|^2 = |G|^2 + \operatorname{tr}\Sigma / B$ (02a). While noise dominates, $|g|$ shrinks like $1/\sqrt B$, so the
# rate that LARS gives the layer grows like $\sqrt B$. Once the noise is gone, it stops growing. LARS scales by itself,
# and it stops in time. For layer 3, early in training, with $\operatorname{tr}\Sigma$ from the gradients of all single
# samples:

# %%
model = he_start()
model.load_state_dict(train(LARS, 128, 0, epochs=6).checkpoint.model)
LAYER, x, y = 4, DIGITS.train.x, DIGITS.train.y  # parameter 4: weights of layer 3
weight, full = (array.copy() for array in gradients(model, x, y)[LAYER])
every = bar(range(len(y)), "a gradient for each sample")
single = (gradients(model, x[i : i + 1], y[i : i + 1])[LAYER][1] for i in every)
variance = np.mean([norm(g - full) ** 2 for g in single])
noise, sizes = np.random.default_rng(0), [4 * 2**power for power in range(10)]


def mean_square(size, draws=20):
    picks = [noise.integers(0, len(y), size) for _ in range(draws)]
    return np.mean([norm(gradients(model, x[pick], y[pick])[LAYER][1]) ** 2 for pick in picks])


measured = [0.02 * norm(weight) / np.sqrt(mean_square(size)) for size in sizes]
formula = [0.02 * norm(weight) / np.sqrt(norm(full) ** 2 + variance / size) for size in sizes]
knee = variance / norm(full) ** 2

# %% source_hidden=true
curves = [
    Line("LARS, measured", sizes, measured, "points", 0),
    Line("LARS, formula", sizes, formula, "line", 0),
    Line("square root of B", sizes, [formula[0] * np.sqrt(size / sizes[0]) for size in sizes], "line", 1),
    Line("linear in B", sizes[:6], [formula[0] * size / sizes[0] for size in sizes[:6]], "line", 2),
]
panel = Panel(curves, "minibatch B (samples)", "rate of layer 3: trust |w| / |g|", log="xy")
picture = draw([panel], source=("measured", "formula"))
picture.axes[0].axvline(knee, color="0.4", linewidth=0.8, linestyle=(0, (1, 2)))
see(picture, "the points lie near the formula's curve. It follows the square root, and bends away from it towards the "
    "dotted line, where noise and gradient are equal.")  # fmt: skip
say(f"The knee is where both parts are equal, at $B = \\operatorname{{tr}}\\Sigma/|G|^2 = {knee:,.0f}$ samples. 08d "
    "calls this number the noise scale, and finds it in the steps to a target.")  # fmt: skip

# %% [markdown]
# ## The two knobs
#
# For weights only the product of $\eta$ and the trust coefficient counts. Turn it up and down:


# %% source_hidden=true
def two_knobs(axes, trust, minibatch):
    rules = {"LARS": (partial(LARS, trust_coefficient=trust), 0), "SGD, rate 0.2": (sgd(0.2), 1)}
    for name, (optimizer, tone) in rules.items():
        report = train(optimizer, minibatch, 0, epochs=20)
        losses = [] if report is None else [row["test_loss"] for row in report.history]
        look = {"color": style.SERIES[tone], "linestyle": style.DASHES[tone]}
        axes.plot(range(1, len(losses) + 1), losses, label=f"{name}: {error(report):.1f} %", **look)
    axes.set(yscale="log", xlabel="epochs", ylabel="test loss", ylim=(0.012, 5), xlim=(0, 20))
    axes.set_yticks([0.1, 0.3, 1, 3], ["0.1", "0.3", "1", "3"])
    axes.minorticks_off()
    axes.legend(loc="lower left", fontsize=7, title="test error", title_fontsize=7, alignment="left")


explore(
    two_knobs,
    "a trust coefficient of 0.001 is enough for the many steps with 128 samples and too timid for the 40 steps with "
    "1,024. One of 0.02 serves both. One of 0.3 can change 30 % of every layer in a step and learns nothing. SGD "
    "does not depend on it and is drawn for comparison. (One seed.)",
    trust=[0.02, 0.001, 0.005, 0.05, 0.1, 0.3],
    minibatch=[512, 128, 256, 1024],
    multiples=[
        {"trust": 0.001, "minibatch": 128},
        {"trust": 0.02, "minibatch": 128},
        {"trust": 0.3, "minibatch": 128},
        {"trust": 0.001, "minibatch": 1024},
        {"trust": 0.02, "minibatch": 1024},
        {"trust": 0.3, "minibatch": 1024},
    ],
    height=2.7,
    source="measured",
)

# %% [markdown]
# ## The same ratio around Adam
#
# **LAMB** (You et al. 2019) takes Adam's direction instead of the gradient's: $r$ below. The ratio stays. (There is no
# trust coefficient; $\eta$ alone is the share.)


# %%
def lamb_step(w, adam, lr, decay):
    r = adam + decay * w  # adam: the mean of gradients over the root of the mean of their squares
    return w - lr * norm(w) / norm(r) * r


# %% source_hidden=true
weight = Tensor(np.random.default_rng(0).standard_normal((4, 3)), requires_grad=True)
weight.grad = np.random.default_rng(1).standard_normal((4, 3))
first_adam = weight.grad / (np.abs(weight.grad) + 1e-6)  # at the first step both means are the gradient's
expected = lamb_step(weight.data, first_adam, 0.1, 0.01)
optim.LAMB([weight], lr=0.1, weight_decay=0.01).step()
print(f"optim.LAMB and our two lines differ by {np.abs(weight.data - expected).max():.0e}")
for size in (128, 1024):
    misses = [error(train(partial(optim.LAMB, lr=0.02), size, seed)) for seed in SEEDS]
    print(f"LAMB, rate 0.02, B = {size:,}: test error {spread(misses)} % (measured, {len(SEEDS)} seeds)")

# %% [markdown]
# ## Break it: four LARS that are none
#
# 1. *One ratio for all*: the norms of the whole network instead of each layer's.
# 2. *Norm without weight decay*: $|w|/|g|$ around a step along $g + \lambda w$.
# 3. *No exception for zeros*: the ratio of a bias that starts at zero is zero.
# 4. *Rate outside*: $v \leftarrow m v + \text{ratio}\,(g + \lambda w)$, $w \leftarrow w - \eta v$.

# %%
guess_visible = guess("Which of the four has a clearly higher error on the second twin?",
                       ["one ratio", "norm without decay", "no exception", "rate outside"])  # fmt: skip


# %%
class OneRatio(OurLARS):
    def step(self):
        parameters = self.param_groups[0]["params"]
        self.whole = [norm([norm(array) for array in arrays])
                      for arrays in ([p.data for p in parameters], [p.grad for p in parameters])]  # fmt: skip
        super().step()

    def norms(self, w, g):
        return self.whole


class RateOutside(OurLARS):
    def update(self, w, g, state, group):
        own = self.ratio(*self.norms(w, g), self.trust, self.decay)
        state["v"][:] = self.momentum * state["v"] + own * (g + self.decay * w)
        w -= group["lr"] * state["v"]


def without_decay(w, g, trust, decay):
    return trust * w / g if w and g else 1.0


def without_exception(w, g, trust, decay):
    return trust * w / (g + decay * w + 1e-12)


# %% source_hidden=true
VARIANTS = {"right": OurLARS, "one ratio": OneRatio, "norm without decay": partial(OurLARS, ratio=without_decay),
            "no exception": partial(OurLARS, ratio=without_exception), "rate outside": RateOutside}  # fmt: skip
rows, second = [], {}
for name, rule in bar(VARIANTS.items(), "training five variants"):
    optimizer, row = partial(rule, lr=1.0), [name]
    for start in (he_start, partial(he_start, 64)):
        reports = [train(optimizer, 512, seed, start) for seed in SEEDS]
        row.append(f"{spread([error(report) for report in reports])} %")
        second[name] = np.mean([error(report) for report in reports])
    left = sum(np.count_nonzero(v == 0) for v in reports[0].checkpoint.model.values()) if reports[0] else "diverged"
    rows.append([*row, left])
table(["variant", "first twin", "second twin", "weights and biases that never left zero"], rows,
      f"measured: test errors, B = 512, {len(SEEDS)} seeds; your guess: "
      f"{guess_visible.against(max(tuple(VARIANTS)[1:], key=second.get))}")  # fmt: skip

# %% [markdown]
# Only *one ratio* fails for all to see, and only on a network whose layers are not balanced. A test error on a
# well-behaved network would have passed all four. The others need a test of what they break. The biases must move. A
# step must not be longer than the trust coefficient allows, even where the gradient vanishes. After a drop of the rate
# the velocity must still carry the steps of the old rate, as in the paper ([02c](02c_step_sizes.ipynb), "Two forms"):

# %% source_hidden=true
rows, w = [], np.ones(100)
for size in (1, 1e-2, 1e-4, 1e-6):
    g, row = size * np.random.default_rng(0).standard_normal(100), [f"{size:g}"]
    for rule in (trust_ratio, without_decay):
        row.append(f"{rule(norm(w), norm(g), 0.02, 1e-2) * norm(g + 1e-2 * w) / norm(w):.4f}")
    rows.append(row)
table(["norm of g / norm of w, about", "right", "norm without decay"], rows,
      "measured: length of a step as a share of the norm of w, trust coefficient 0.02, weight decay 0.01")  # fmt: skip


def first_step_after_a_drop(rule):
    """The length of the first step after the rate fell tenfold, as a share of the step before; constant gradient."""
    parameter = Tensor(np.ones(100), requires_grad=True)
    optimizer, places = rule([parameter], lr=1.0, trust=1e-5), []
    for step in range(101):
        optimizer.param_groups[0]["lr"] = 1.0 if step < 100 else 0.1
        parameter.grad = np.ones(100)
        optimizer.step()
        places.append(parameter.data.copy())
    return norm(places[100] - places[99]) / norm(places[99] - places[98])


print(f"the rate falls tenfold; the next step, as a share of the last: right {first_step_after_a_drop(OurLARS):.2f}, "
      f"rate outside {first_step_after_a_drop(RateOutside):.2f} (measured)")  # fmt: skip

# %% [markdown]
# ## What the papers report
#
# - **You, Gitman, Ginsburg 2017** (arXiv:1708.03888): linear scaling with warm-up may diverge. With LARS they train
#   AlexNet with minibatches of up to 8,192 and ResNet-50 of up to 32,768 without loss of accuracy. Ours: linear scaling
#   diverges, LARS does not; at our size a tuned rate does not, either.
# - **You et al. 2019** (arXiv:1904.00962): LAMB trains BERT with minibatches of 32,868 (so the abstract; 32,768 is a
#   power of two) in 8,599 iterations instead of a million, in 76 minutes instead of 3 days.
#
# ## To the exercises
#
# [Exercises of chapter 08](../exercises/08_large_minibatches/08_large_minibatches.ipynb): one asks for the trust ratio
# of LARS, and its check asks the questions of "Break it".
#
# **Three questions to argue about**
#
# 1. LARS ignores the gradient's length. When is the length what you want to know?
# 2. Warm-up (08b) and LARS both protect the first steps. Is one of them enough?
# 3. Layers are split over nodes, so that each holds half of a weight matrix. What must the nodes exchange before a step
#    of LARS?
#
# [08d](08d_steps_to_target.ipynb) asks how large a minibatch may usefully be, whatever the rule.
