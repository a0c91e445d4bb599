# %% [markdown]
# # 02d. Which way down?
#
# *Chapter 02, last of four. Before it: [02c](02c_step_sizes.ipynb). After it: the exercises. Reading time: about 19
# minutes. Figures are* measured *on the computer that ran this page, or come from a* formula.
#
# ## The question
#
# Once more the valley $f(w) = \frac12 (1 w_1^2 + 50 w_2^2)$ of [02c](02c_step_sizes.ipynb). Six update rules of
# `minidl.optim`, defined below, walk down it from one start. How many steps does each need until it stays within 0.02
# of the minimum? Each gets the best of 400 learning rates from 0.001 to 10.

# %% source_hidden=true
from functools import cache

import numpy as np
from threadpoolctl import threadpool_limits

from course.figures.page import say, see, table
from course.interaction import bar, explore, guess, step_through, warm_up
from course.results import glyph_resnet, pictures
from course.results.history import recorded
from minidl import Tensor, data, manual_seed, nn, optim
from minidl import functional as F
from minidl.plots import style
from minidl.plots.lines import Line, Panel, draw

warm_up()
one_thread = threadpool_limits(1)  # matrices as small as ours are not worth a second thread

# %%
EPS, START = 1e-8, np.array([-1.8, 0.8])
OPTIMIZERS = {
    "SGD": lambda p, rate: optim.SGD(p, lr=rate),
    "momentum": lambda p, rate: optim.SGD(p, lr=rate, momentum=0.9),
    "Nesterov": lambda p, rate: optim.SGD(p, lr=rate, momentum=0.9, nesterov=True),
    "AdaGrad": lambda p, rate: optim.Adagrad(p, lr=rate, eps=EPS),
    "RMSProp": lambda p, rate: optim.RMSprop(p, lr=rate, alpha=0.9, eps=EPS),
    "Adam": lambda p, rate: optim.Adam(p, lr=rate, betas=(0.9, 0.999), eps=EPS),
}


def valley(degrees):
    """The slope of the valley turned by an angle, and the matrix that turns."""
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    turn = np.array([[c, -s], [s, c]])
    matrix = turn * [1, 50] @ turn.T
    return lambda w: w @ matrix, turn


def walk(name, rates, steps, slope, begin):
    """The positions of walks from `begin`, shape (..., 2), all at once."""
    weight = Tensor(np.array(begin, dtype=float), requires_grad=True)
    optimizer, path = OPTIMIZERS[name]([weight], 1.0), [weight.data.copy()]
    for _ in range(steps):
        weight.grad = slope(weight.data)
        optimizer.step()  # of learning rate 1: every rule's step is proportional to its learning rate
        weight.data[...] = path[-1] + rates * (weight.data - path[-1])
        path.append(weight.data.copy())
    return np.array(path)


# %%
guess_fastest = guess("Which rule needs the fewest steps?", list(OPTIMIZERS))

# %% source_hidden=true
RATES = np.geomspace(1e-3, 10, 400)
AROUND = np.radians(np.arange(9, 360, 18))
OTHERS = np.linalg.norm(START) * np.column_stack([np.cos(AROUND), np.sin(AROUND)])


@cache
def needed(name, degrees):
    """Steps to stay within 0.02, from 21 starts (START is the first) with each rate; 301 is more than 300."""
    slope, turn = valley(degrees)
    begin = np.repeat((np.vstack([START, OTHERS]) @ turn.T)[:, None], len(RATES), axis=1)
    with np.errstate(all="ignore"):  # rates beyond the border overflow
        near = np.linalg.norm(walk(name, RATES[:, None], 300, slope, begin), axis=-1) <= 0.02
    return 301 - np.argmax(~near[::-1], axis=0)


def fewest(name, degrees):
    """A row: the fewest steps of any rate, that rate, and the fewest from each of the other starts."""
    steps = needed(name, degrees)
    others = steps[1:].min(axis=1)
    return [name, steps[0].min(), f"{RATES[steps[0].argmin()]:.3g}", f"{others.min()} to {others.max()}"]


rows = [fewest(name, 0) for name in OPTIMIZERS]
table(["", "fewest steps", "learning rate", "from 20 other starts"], rows, "measured")
say(f"Your guess: {guess_fastest.against(min(rows, key=lambda row: row[1])[0])}.")

# %% [markdown]
# The 20 other starts lie as far from the minimum as the first, all around it; each has its own best learning rate.
# The ranges of SGD, momentum and Adam overlap: the start decides which of these three is the fastest. What do the paths
# look like?


# %% source_hidden=true
def paths(axes, degrees, steps):
    slope, turn = valley(degrees)
    grid = np.stack(np.meshgrid(np.linspace(-2.2, 1.2, 301), np.linspace(-2.2, 1.2, 301)), axis=-1)
    axes.contour(*np.moveaxis(grid, -1, 0), 0.5 * (grid * slope(grid)).sum(-1), np.geomspace(0.05, 90, 8),
                 cmap="Greys_r", linewidths=0.5)  # fmt: skip
    for place, name in enumerate(OPTIMIZERS):
        path = walk(name, RATES[needed(name, degrees)[0].argmin()], steps, slope, turn @ START)
        axes.plot(*path.T, color=style.SERIES[place], linestyle=style.DASHES[place], linewidth=1.3, label=name)
        axes.plot(*path[-1], "s", color=style.SERIES[place], markersize=5)
    axes.plot(*turn @ START, "o", color="black", markersize=8, fillstyle="none")
    axes.plot(0, 0, "*", color="black", markersize=10)
    axes.set(xlim=(-2.2, 1.2), ylim=(-2.2, 1.2), xlabel="weight 1", ylabel="weight 2", aspect="equal")
    axes.legend(fontsize=7, loc="lower right")


step_through(
    lambda axes, step: paths(axes, 0, step),
    "circle: start; squares: where each rule stands; star: the minimum. SGD jumps from wall to wall and is slow along "
    "the floor. Momentum and Nesterov swing. AdaGrad, RMSProp and Adam set out at 45 degrees, however steep the walls "
    "are.",
    frames=range(1, 41),
    multiples=[1, 5, 40],
    source="measured",
    height=5,
)

# %% [markdown]
# ## One table for six rules
#
# Let $g_s$ be the gradient of step $s$, and $S_\beta(x) = \sum_{s \le t} \beta^{t-s} x_s$ a *decaying sum* up to the
# present step $t$. Divided by the sum of its weights it is a *decaying mean*, $M_\beta(x) = S_\beta(x) / S_\beta(1)$.
# All operations are element by element; $\epsilon$ is a small number against division by zero.
#
# | rule | step divided by $-\eta$ | kept between steps | arrays |
# |---|---|---|---|
# | SGD | $g_t$ | nothing | 0 |
# | momentum | $S_\mu(g)$ | $u \leftarrow \mu u + g$ | 1 |
# | Nesterov | $g_t + \mu S_\mu(g)$ | the same | 1 |
# | AdaGrad | $g_t / (\sqrt{S_1(g^2)} + \epsilon)$ | $a \leftarrow a + g^2$ | 1 |
# | RMSProp | $g_t / (\sqrt{(1 - \beta) S_\beta(g^2)} + \epsilon)$ | $a \leftarrow \beta a + (1 - \beta) g^2$ | 1 |
# | Adam | $M_{\beta_1}(g) / (\sqrt{M_{\beta_2}(g^2)} + \epsilon)$ | two such sums, and $t$ | 2 |
#
# Momentum changes **which gradient** is followed. AdaGrad and RMSProp change **how far each weight** goes, by the size
# of its own past gradients. Adam does both. Its paper writes $M_\beta$ as $m / (1 - \beta^t)$, the *bias correction*:
# $m \leftarrow \beta m + (1 - \beta) g$ starts at zero, so its weights add up to $1 - \beta^t$ only.


# %%
def total(history, beta):
    return np.tensordot(beta ** np.arange(len(history))[::-1], history, axes=1)


def mean(history, beta):
    return total(history, beta) / total(np.ones(len(history)), beta)


RULES = {
    "SGD": lambda g: g[-1],
    "momentum": lambda g: total(g, 0.9),
    "Nesterov": lambda g: g[-1] + 0.9 * total(g, 0.9),
    "AdaGrad": lambda g: g[-1] / (np.sqrt(total(g**2, 1.0)) + EPS),
    "RMSProp": lambda g: g[-1] / (np.sqrt(0.1 * total(g**2, 0.9)) + EPS),
    "Adam": lambda g: mean(g, 0.9) / (np.sqrt(mean(g**2, 0.999)) + EPS),
}


def follow(rule, rate, steps):
    slope, _ = valley(0)
    path, gradients = [START], []
    for _ in range(steps):
        gradients.append(slope(path[-1]))
        path.append(path[-1] - rate * rule(np.array(gradients)))
    return np.array(path)


# %% source_hidden=true
def by_minidl(name, rate, steps):
    return walk(name, rate, steps, valley(0)[0], START)


agree = [np.allclose(follow(rule, 0.01, 200), by_minidl(name, 0.01, 200), atol=1e-10) for name, rule in RULES.items()]
print("200 steps by these six lines and by minidl agree to 1e-10, for all six rules:", all(agree))

# %% [markdown]
# An optimizer does not keep all gradients: by the third column each sum is an array that is updated in place. (You will
# write Adam's in the assignment.) Nesterov's rule is often written (Sutskever et al., 2013, section 2) as momentum that
# looks ahead, with the gradient where the old velocity is about to carry it:
# $v \leftarrow \mu v - \eta\, g(w + \mu v),\ w \leftarrow w + v$. An optimizer receives a gradient and cannot look
# ahead; it keeps $w + \mu v$ as *the* weights. The points are the same:

# %%
slope, (v, w) = valley(0)[0], (np.zeros(2), START)
points = [w]
for _ in range(200):
    v = 0.9 * v - 0.02 * slope(w + 0.9 * v)
    w = w + v
    points.append(w + 0.9 * v)
print("the same points as by minidl, to 1e-12:", np.allclose(points, by_minidl("Nesterov", 0.02, 200), atol=1e-12))

# %% [markdown]
# ## What the lengths depend on
#
# Someone measures the loss in cents instead of euros: all gradients are 100 times larger.

# %%
guess_cents = guess("How many of the six rules still take the same first step?", [0, 1, 2, 3, 4])

# %% source_hidden=true
rows, unmoved = [], []
for name in OPTIMIZERS:
    once, hundred = (walk(name, 0.01, 2000, lambda w, k=k: k * np.array([3.0, -0.02]), START) for k in (1, 100))
    steps = once[1] - once[0], hundred[1] - hundred[0], once[-1] - once[-2]
    rows.append([name, *(" ".join(f"{v:+.4f}" for v in step) for step in steps)])
    unmoved += [name] if np.allclose(*steps[:2], rtol=1e-3) else []
head = ["", "first step", "first step, gradient x 100", "2,000th step"]
table(head, rows, "measured: learning rate 0.01, constant gradient (3, -0.02)")
say(f"Your guess: {guess_cents.against(len(unmoved))}. **{len(unmoved)}: {', '.join(unmoved)}.**")

# %% [markdown]
# The first step of AdaGrad and Adam is the learning rate times the *sign* of the gradient. RMSProp's is
# $1/\sqrt{1 - \beta}$ times longer, because it has no bias correction. AdaGrad's steps shrink as $1/\sqrt t$; those of
# RMSProp do not, so it stays within 0.02 only with a learning rate of about that size. The steps of the other rules
# scale with the gradient: their good learning rates depend on the units of the loss.
#
# So three rules set out at 45 degrees, however narrow the valley is. Now turn it by 45 degrees, so that its floor runs
# across the axes. Nothing else changes.

# %%
guess_turn = guess("How many steps does AdaGrad need in the turned valley, at its best learning rate?", unit="steps")

# %% source_hidden=true
panels = []
for degrees, title in ((0, "floor along an axis"), (45, "turned by 45 degrees")):
    lines = []
    for name in OPTIMIZERS:
        steps = needed(name, degrees)[0].astype(float)
        lines.append(Line(name, RATES, np.where(steps > 300, np.nan, steps)))
    panels.append(Panel(lines, "learning rate", "steps to stay within 0.02", title, log="xy", ylim=(3, 400)))
flat = needed("AdaGrad", 0)[0][RATES > 1.1]
see(
    draw(panels, source="measured", height=3.8),
    f"left, AdaGrad needs at most {flat.max()} steps with any of the learning rates above 1.1; the curves of SGD, "
    "momentum and Nesterov end at a border (02c). Right, these three curves have not moved, and AdaGrad has lost its "
    "advantage. (No line: more than 300 steps.)",
)
rows = [fewest(name, 45) for name in OPTIMIZERS]
table(["turned by 45 degrees", "fewest steps", "learning rate", "from 20 other starts"], rows, "measured")
turned = dict(zip(OPTIMIZERS, rows, strict=True))["AdaGrad"][1]
say(f"Your guess: {guess_turn.against(turned)}. **Measured: {turned} steps; {fewest('AdaGrad', 0)[1]} before.**")

# %% [markdown]
# Across the axes both weights have gradients of one size, and a length for each *weight* does not help. It helps where
# weights differ in scale, for instance between layers or for rare words. Turn the valley:

# %% source_hidden=true
explore(
    paths,
    "each rule at the best learning rate for this angle. SGD, momentum and Nesterov turn with the valley. AdaGrad, "
    "RMSProp and Adam begin at 45 degrees to the axes, whatever the direction of the floor.",
    degrees=[0, 15, 30, 45, 60, 75, 90],
    steps=[5, 10, 20, 40, 80],
    multiples=[{"degrees": 0, "steps": 40}, {"degrees": 45, "steps": 40}],
    source="measured",
    height=5,
)

# %% [markdown]
# And it costs memory. Counted from the arrays that the optimizers hold:

# %% source_hidden=true
train, test = data.digits()
held = {}
for name, make in OPTIMIZERS.items():
    model = nn.models.MLP(64, 128, 10)
    optimizer = make(model.parameters(), 0.1)
    F.cross_entropy(model(Tensor(train.x[:8])), train.y[:8]).backward()
    optimizer.step()
    arrays = [a for state in optimizer.state.values() for a in state.values() if isinstance(a, np.ndarray)]
    held[name] = sum(a.nbytes for a in arrays) / sum(p.data.nbytes for p in model.parameters())
print("state / weights (measured):", ", ".join(f"{name} {ratio:g}" for name, ratio in held.items()))
print(
    f"Adam's state for VGG-16, 138,357,544 weights in float32: {held['Adam'] * 4 * 138_357_544 / 1e9:.2f} GB (formula)"
)

# %% [markdown]
# ## Break it: a common misprint
#
# Adam's correction is sometimes printed as $m \leftarrow (\beta_1 m + (1 - \beta_1) g) / (1 - \beta_1^t)$, the mean of
# the squares likewise. So the corrected mean is fed back into its own recursion.


# %%
def adam_fed_back(gradients):
    m = a = 0.0
    for t, g in enumerate(gradients, start=1):
        m = (0.9 * m + 0.1 * g) / (1 - 0.9**t)
        a = (0.999 * a + 0.001 * g**2) / (1 - 0.999**t)
    return m / (np.sqrt(a) + EPS)


# %% source_hidden=true
walks = {"right": follow(RULES["Adam"], 0.1, 100), "misprinted": follow(adam_fed_back, 0.1, 100)}
lines = [Line(name, range(101), np.linalg.norm(path, axis=1)) for name, path in walks.items()]
frozen = np.linalg.norm(np.diff(walks["misprinted"], axis=0), axis=1)
see(
    draw([Panel(lines, "steps", "distance to the minimum", log="y")], source="measured"),
    f"the misprinted rule freezes on its way: its fifth step is {frozen[4]:.0e} long, its tenth {frozen[9]:.0e}. Each "
    "division enlarges what is kept, the squares most.",
)

# %% [markdown]
# A correction belongs where a mean is *used*, not where it is *kept*. More misprints: [errata](../course/errata.md).
#
# ## Digits under three percent
#
# Valleys are models. Now a network 64-128-10 on digits, 8 epochs with $B$ = 64, each rule at the best of seven learning
# rates, chosen with one seed. The *training set* sets the weights. The *validation set*, 287 images kept out of the
# training, decides whatever is chosen by looking, here the learning rate. The *test set* is read once, at the end.

# %%
guess_gap = guess("How far apart are the best and the worst rule, in their mean test errors?", unit="%")

# %%
order = np.random.default_rng(0).permutation(len(train.y))
fit_part, validation = (data.Dataset(*train[rows]) for rows in (order[287:], order[:287]))


def trained(name, rate, seed=0, part=train):
    manual_seed(seed)
    model = nn.models.MLP(64, 128, 10)
    optimizer, loader = OPTIMIZERS[name](model.parameters(), rate), data.DataLoader(part, 64, shuffle=True, seed=seed)
    for epoch in range(8):
        loader.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(Tensor(x)), y).backward()
            optimizer.step()
    return model


# %% source_hidden=true
def error_on(model, x, y):
    return 100 * float((model(Tensor(x)).data.argmax(axis=1) != y).mean())


LOWEST = {"SGD": 0.3, "momentum": 0.03, "Nesterov": 0.03, "AdaGrad": 0.01, "RMSProp": 0.001, "Adam": 0.001}
rows, errors, inside = [], {}, []
for name, lowest in bar(LOWEST.items(), "tuning and training six rules"):
    rates = [lowest * 10 ** (k / 4) for k in range(7)]
    scores = [
        F.cross_entropy(trained(name, k, part=fit_part)(Tensor(validation.x)), validation.y).item() for k in rates
    ]
    rate = rates[int(np.argmin(scores))]
    inside.append(rates[0] < rate < rates[-1])
    errors[name] = np.array([error_on(trained(name, rate, seed), test.x, test.y) for seed in range(20)])
    some = errors[name]
    rows.append([name, f"{rate:.2g}", f"**{some.mean():.2f}**", f"{some.min():.2f} to {some.max():.2f}"])
note = f"measured, 20 seeds; each best learning rate is inside its grid: {all(inside)}; "
note += f"all means are below 3 %: {all(some.mean() < 3 for some in errors.values())}"
table(["", "learning rate", "mean test error (%)", "range"], rows, note)
best, *_, worst = sorted(errors, key=lambda name: errors[name].mean())
differences = errors[worst] - errors[best]
error = errors[best].mean()
say(
    f"Your guess: {guess_gap.against(differences.mean())}. **Measured: {differences.mean():.2f} %.** On these "
    f"{len(test.y)} test images {best} beats {worst} with {(differences > 0).sum()} of the 20 seeds and loses with "
    f"{(differences < 0).sum()}. But the images are a draw, too: an error of {error:.1f} %, measured on {len(test.y)} "
    f"images, has a standard error of {(error * (100 - error) / len(test.y)) ** 0.5:.1f} % (formula). On other digits "
    "the order may differ."
)

# %% [markdown]
# Why not choose by the test set? Take labels that are pure noise, so that every classifier has a true error of 90 %.
# Choose the best of 100 *untrained* networks on 180 images:

# %%
guess_luck = guess("Which error does the best of the 100 show on these 180 images?", unit="%")

# %% source_hidden=true
noise, shown = np.random.default_rng(1).integers(10, size=len(test.y)), []
for seed in range(100):
    manual_seed(seed)
    model = nn.models.MLP(64, 128, 10)
    shown.append([error_on(model, test.x[some], noise[some]) for some in (slice(180), slice(180, 360))])
winner, fresh = min(shown)
say(
    f"Your guess: {guess_luck.against(winner)}. **Measured: {winner:.1f} %, and {fresh:.1f} % on 180 other images.** "
    "The choice alone made the difference."
)

# %% [markdown]
# So which way down? In the valley along an axis AdaGrad needs the fewest steps, and RMSProp, whose steps do not shrink,
# the most. Turned, both need more steps than momentum, Nesterov and Adam, which average the gradients. On the digits
# every rule gets under three percent, once its learning rate is tuned.
#
# ## A result to be proud of
#
# The result of Part I works on larger pictures than 8x8 digits. It is a residual network: groups of layers whose input
# is added to their output (ResNet; He et al., arXiv:1512.03385, section 3.1). It reads letters of 28x28 pixels in fonts
# that it has never seen. `python3 -m course result 1` trains it with *your* `adam_step` of the exercises, in at most
# ten minutes. Here are the first steps of a smaller one, with minidl's Adam:

# %% source_hidden=true
# measured: differs from run to run
settings = glyph_resnet.Settings(depth=8, n_train=3000, n_test=300, minibatch=32, steps=200, evaluate_every=25)
done = iter(bar(range(settings.steps), "learning to read"))
short = glyph_resnet.train(glyph_resnet.library_rule, settings, lambda *_: next(done, None))
next(done, None)  # the bar is removed
full = recorded(1)
see(
    pictures.losses([(f"{settings.steps} steps, 8 layers", short.rows), ("recorded", full.rows)]),
    "the test loss falls as the network learns. A training loss is the mean over all steps since the last point. The "
    "horizontal axes are logarithmic.",
)
say(
    f"Test accuracy after {settings.steps} steps: {short.rows[-1]['test_accuracy']:.0%}; of the recorded run after "
    f"{full.last['step']:,} steps and {full.last['seconds'] / 60:.0f} minutes: {full.last['test_accuracy']:.1%} "
    "(measured)."
)

# %% source_hidden=true
# measured: differs from run to run
see(
    pictures.letters(short.test, glyph_resnet.probabilities(short.model, short.test)),
    "first row: letters that the network reads rightly after these few steps, with the probability that it gives them; "
    "below: the letters that it finds hardest, with a coloured title where it misreads them.",
)

# %% [markdown]
# ## What the papers report
#
# **Duchi, Hazan and Singer 2011** (AdaGrad) and **Kingma and Ba 2015** (Adam, arXiv:1412.6980, algorithm 1) put
# $\epsilon$ outside the root, as `minidl` and PyTorch do. Some texts put it inside, where
# $10^{-8}$ acts like $10^{-4}$ outside: weights with gradients of that size or smaller then take shorter steps.
#
# ## To the exercises
#
# Exercises 5 and 6 of [`02_minibatch_sgd`](../exercises/02_minibatch_sgd/02_minibatch_sgd.ipynb) are Adam as a
# recursion, and a training loop that chooses by validation and reads the test set once.
#
# **Three questions to argue about.**
#
# 1. PyTorch's default for RMSProp is $\beta$ = 0.99 instead of 0.9. Then RMSProp at a learning rate $\eta$ and AdaGrad
#    at $10\,\eta$ take nearly the same first steps. Why, and for how long?
# 2. Would a rule that turns its axes into the valley's directions be worth its memory, with a million weights?
# 3. A public leaderboard shows the test error of 500 entries. By how much does it flatter the winner?
