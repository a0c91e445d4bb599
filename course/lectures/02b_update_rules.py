# %% [markdown]
# # 02b. How far should one step go?
#
# *Chapter 02, second half: from the plain step to Adam, six update rules, one table, and a border that can be computed.
# Before it: [02a](02a_from_a_unit_to_a_network.ipynb). After it: the exercises.*
#
# [Lecture 02a](02a_from_a_unit_to_a_network.ipynb) ended with a gradient, noisy or exact. What is done with it? "Step
# against it, by a learning rate" leaves open how far, and whether every weight should go equally far. Reading time:
# about 35 minutes. Figures are *measured* on the computer that ran this page or come from a *formula*; one node needs
# no simulation. S1 to S5 are the course's sources, named in section 13 of
# 02a.

# %%
import time

import numpy as np
from threadpoolctl import threadpool_limits

from course.figures.page import say, see, table
from minidl import Tensor, data, manual_seed, nn, optim
from minidl import functional as F
from minidl.plots import valley
from minidl.plots.lines import Line, Panel, draw

one_thread = threadpool_limits(1)  # matrices as small as ours are not worth a second thread

# %% [markdown]
# ## 1. The question
#
# The simplest valley: $f(w) = \frac12 (1 w_1^2 + 50 w_2^2)$, flat one way and steep the other, with the minimum at 0.
# The numbers 1 and 50 are its *curvatures*, the second derivatives. Near a minimum nearly every smooth loss looks like
# this, with more directions. Two runs of gradient descent, $w \leftarrow w - \eta\, \nabla f(w)$, whose learning rates
# $\eta$ differ by two percent:

# %%
curvature = np.array([1.0, 50.0])
begin = np.array([-1.8, 0.8])


def height(w):
    return 0.5 * (curvature * np.square(w)).sum(axis=-1)


def slope(w):
    return curvature * w


def gradient_descent(lr, steps, slope=slope, w=begin):
    path = [w]
    for _ in range(steps):
        path.append(path[-1] - lr * slope(path[-1]))
    return np.array(path)


# %%
HEAD = ["learning rate", "f at the start", "after 10 steps", "after 100", "after 600"]


def heights(lr, path):
    return [f"{lr:g}", *(f"{height(path[k]):.3g}" for k in (0, 10, 100, 600))]


table(HEAD, [heights(lr, gradient_descent(lr, 600)) for lr in (0.0396, 0.0404)], "measured")

# %% [markdown]
# One converges, the other explodes. By the end of this page you can say where the border is, why it is there, what
# moves it, and what six rules make of the same gradients.
#
# ## 2. The border
#
# On a valley each direction lives by itself. Along a direction of curvature $\lambda_i$ the slope is
# $\lambda_i w_i$, so a step makes $w_i$ into $(1 - \eta \lambda_i)\, w_i$: the error *contracts* by exactly that factor
# every step. It shrinks if $|1 - \eta \lambda_i| < 1$, and that must hold for all $i$:
#
# $$\text{gradient descent diverges if and only if}\quad \eta > 2 / \lambda_{\max}.$$
#
# The directions need not be the axes. They are the eigenvectors of the matrix of second derivatives, and the curvatures
# its eigenvalues: here ten of them, turned at random, with the error measured along each eigenvector.

# %%
rng = np.random.default_rng(0)
turn = np.linalg.qr(rng.normal(size=(10, 10)))[0]
eigenvalues = np.geomspace(0.1, 10, 10)
matrix = turn * eigenvalues @ turn.T
path = gradient_descent(0.15, 4, slope=lambda w: matrix @ w, w=rng.normal(size=10))
along = path @ turn  # the error's components along the eigenvectors
rows = [
    [f"{eigenvalues[i]:.3f}", f"{along[4, i] / along[3, i]:+.9f}", f"{1 - 0.15 * eigenvalues[i]:+.9f}"]
    for i in (0, 4, 8, 9)
]
table(["curvature", "factor of a step, measured", "1 - rate x curvature"], rows, "measured, and formula")

# %% [markdown]
# **Predict.** In the valley of section 1, at which rate is the error after 100 steps smallest: close below the border
# 0.04, at half of it, or far below?

# %%
my_guess = "?"  # write a rate

tried = np.linspace(0.002, 0.0425, 82)
rest = [np.linalg.norm(gradient_descent(lr, 100)[-1]) for lr in tried]
formula = [np.linalg.norm((1 - lr * curvature) ** 100 * begin) for lr in tried]
best = tried[int(np.argmin(rest))]
lines = [Line("measured", tried, rest, "points", 0), Line("formula", tried, formula, "line", 1)]
see(
    draw([Panel(lines, "learning rate", "distance after 100 steps", log="y")], source=("measured", "formula")),
    f"the distance to the minimum falls until a rate of {best:.4f} and then rises steeply; points and formula agree: "
    f"{np.allclose(rest, formula, rtol=1e-9)}.",
)
say(f"Your guess: {my_guess}. **Measured: {best:.4f}**; formula 2/(λmin + λmax) = {2 / curvature.sum():.4f}.")

# %% [markdown]
# The best rate lies close below the border, where the steep direction still swings from side to side and the flat one
# at last gets along. There the factor of a step is $(\kappa - 1)/(\kappa + 1)$, where
# $\kappa = \lambda_{\max}/\lambda_{\min}$ is the *condition number*. Narrow valleys (large $\kappa$) are slow, and the
# steepest direction sets the pace for all.
#
# ## 3. Rates that fall
#
# Now with the noisy gradient of 02a: slope plus noise of variance $\sigma^2$. Close to the minimum the noise is all
# there is. One direction suffices: $w \leftarrow w - \eta(\lambda w + \text{noise})$ makes $E[w^2]$ into
# $(1 - \eta\lambda)^2 E[w^2] + \eta^2 \sigma^2$, which settles not at 0 but at the *noise floor*
#
# $$E[w^2] = \frac{\eta\,\sigma^2}{\lambda\,(2 - \eta\lambda)}.$$
#
# **Predict.** Ten times smaller rate: how many times lower is the floor, and how many times longer is the way to it?

# %%
my_guess = "?"  # for instance "3 times lower, 10 times longer"


def noisy_runs(rates, runs=2000, seed=0):
    """The mean of w^2 over many runs with noise of variance 1, curvature 1, from w = 3, after each step."""
    noise = np.random.default_rng(seed)
    w, squares = np.full(runs, 3.0), []
    for lr in rates:
        w = w - lr * (w + noise.standard_normal(runs))
        squares.append(np.square(w).mean())
    return np.array(squares)


# %%
rows, floors, ways = [], [], []
for lr in (0.5, 0.05, 0.005):
    squares = noisy_runs([lr] * 1500)
    floors.append(squares[-100:].mean())
    ways.append(int(np.argmax(squares < 1.5 * lr / (2 - lr))) + 1)
    rows.append([lr, f"{floors[-1]:.5f}", f"{lr / (2 - lr):.5f}", f"{ways[-1]:,}"])
note = "measured (mean of 2,000 runs), formula, measured"
table(["rate", "E[w²] at the end", "η σ² / (λ (2 - ηλ))", "steps until E[w²] is 1.5 times the floor"], rows, note)
say(
    f"Your guess: {my_guess}. **From 0.05 to 0.005 the floor falls {floors[1] / floors[2]:.1f} times, the way grows "
    f"{ways[2] / ways[1]:.1f} times** (a little more, because the lower floor is also further down)."
)

# %% [markdown]
# So a large rate travels and a small one settles. *Decay* does both. `minidl.optim` has PyTorch's schedules; each is
# first shown to be its formula, then used.


# %%
def rates_of(schedule, steps, lr=0.5):
    """The rates that a schedule gives, one a step."""
    optimizer = optim.SGD([Tensor(0.0, requires_grad=True)], lr=lr)
    clock, rates = schedule(optimizer), []
    for _ in range(steps):
        rates.append(clock.get_last_lr()[0])
        optimizer.step()
        clock.step()
    return np.array(rates)


# %%
t = np.arange(300)
schedules = {
    "constant": (lambda o: optim.LambdaLR(o, lambda k: 1.0), 0.5 + 0 * t),
    "step": (lambda o: optim.StepLR(o, step_size=100, gamma=0.1), 0.5 * 0.1 ** (t // 100)),
    "1/t": (lambda o: optim.LambdaLR(o, lambda k: 1 / (1 + k / 4)), 0.5 / (1 + t / 4)),
    "cosine": (lambda o: optim.CosineAnnealingLR(o, T_max=300), 0.25 * (1 + np.cos(np.pi * t / 300))),
}
rates = {name: rates_of(schedule, 300) for name, (schedule, _) in schedules.items()}
gaps = {name: np.abs(rates[name] - schedules[name][1]).max() for name in rates}
print("each schedule of minidl's is its formula, to 1e-12:", all(gap < 1e-12 for gap in gaps.values()))

# %%
squares = {name: noisy_runs(rate) for name, rate in rates.items()}
panels = [
    Panel([Line(name, t, rate) for name, rate in rates.items()], "steps", "learning rate", log="y", ylim=(1e-3, 1)),
    Panel([Line("", t, square) for square in squares.values()], "steps", "mean of w²", log="y"),
]
see(
    draw(panels, source=("formula", "measured"), title="left: formula; right: measured, in the same lines"),
    "at a constant rate the error stays at its floor; at each drop of the step schedule it falls to a new one. At the "
    f"end: constant {squares['constant'][-1]:.3f}, step {squares['step'][-1]:.4f}, 1/t {squares['1/t'][-1]:.4f}, "
    f"cosine {squares['cosine'][-1]:.4f}.",
)

# %% [markdown]
# In the training curves of Goyal et al. (2017) the error falls in such a staircase, at every drop of the rate. Here it
# is on digits: a network 64-128-10, minibatches of 16, a rate that falls tenfold after five epochs. A *weight decay* of
# 0.003 (that times the weights is added to the gradient) keeps the network from fitting every image perfectly; without
# it the gradients of all samples, and so the noise, vanish at the minimum, and the rate need not fall. Try it.
#
# **Predict.** What does the training loss do when the rate falls: fall within an epoch and stay there, fall slowly, or
# stop falling?


# %%
train, test = data.digits()


def train_digits(rule, seed=0, epochs=12, batch_size=64, part=train, schedule=None, note=lambda model: None):
    """Train an MLP 64-128-10 by an optimizer that `rule` makes; returns it, and `note(model)` after every epoch."""
    manual_seed(seed)
    model = nn.models.MLP(64, 128, 10)
    optimizer = rule(model.parameters())
    clock = schedule(optimizer) if schedule else None
    loader, notes = data.DataLoader(part, batch_size, shuffle=True, seed=seed), []
    for epoch in range(epochs):
        loader.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(Tensor(x)), y).backward()
            optimizer.step()
        if clock:
            clock.step()
        notes.append(note(model))
    return model, notes


# %%
def loss_on(model, part):
    return F.cross_entropy(model(Tensor(part.x)), part.y).item()


def error_on(model, part):
    return float((model(Tensor(part.x)).data.argmax(axis=1) != part.y).mean())


# %%
my_guess = "?"  # in a word

settings = {"batch_size": 16, "epochs": 10, "note": lambda model: loss_on(model, train)}


def decaying(parameters):
    return optim.SGD(parameters, lr=1.5, weight_decay=0.003)


_, fixed = train_digits(decaying, **settings)
_, stepped = train_digits(decaying, schedule=lambda o: optim.MultiStepLR(o, milestones=[5]), **settings)
epochs = np.arange(1, 11)
lines = [Line("constant", epochs, fixed, "both"), Line("falls after epoch 5", epochs, stepped, "both")]
see(
    draw([Panel(lines, "epoch", "training loss (nats)")], source="measured"),
    f"the curves are one until epoch 5. In the five after it the constant rate's loss jumps about between "
    f"{min(fixed[5:]):.3f} and {max(fixed[5:]):.3f}; the other falls at once, and lies between "
    f"{min(stepped[5:]):.3f} and {max(stepped[5:]):.3f}.",
)
say(f"Your guess: {my_guess}. **It falls within an epoch and stays there:** the floor of the noise fell.")

# %% [markdown]
# ## 4. Momentum, in two forms
#
# The narrow valley is slow because the steep direction forbids a large rate. *Momentum* (Polyak, 1964) steps along a
# decaying sum of all gradients so far: in the steep direction their signs alternate and they cancel, in the flat one
# they add up. Two ways to write it are in use, with $\mu$ the momentum, $\eta_t$ the rate of step $t$, $g_t$ its
# gradient:
#
# | form | recursion | the step, written out |
# |---|---|---|
# | rate outside | $u \leftarrow \mu u + g_t,\ w \leftarrow w - \eta_t u$ | $-\eta_t \sum_{s \le t} \mu^{t-s} g_s$ |
# | rate inside | $v \leftarrow \mu v - \eta_t g_t,\ w \leftarrow w + v$ | $-\sum_{s \le t} \mu^{t-s} \eta_s g_s$ |
#
# The rate is outside in PyTorch, in `minidl` by default, and on S1's slide about handling momentum; it is inside in S2
# and where S1 first defines it.
#
# **Predict.** At a constant rate, are they the same? And if the rate falls tenfold on the way?

# %%
my_guess = "?"  # for instance "same, same"


def faded(history, beta):
    """The sum of beta^(t - s) history[s] over all s up to the last one, t."""
    ages = np.arange(len(history))[::-1]
    return np.tensordot(beta**ages, np.asarray(history), axes=1)


def follow(step, rates, slope=slope, w=begin):
    """Go w + step(gradients so far, rates so far) again and again."""
    path, gradients = [w], []
    for t in range(len(rates)):
        gradients.append(slope(path[-1]))
        path.append(path[-1] + step(np.array(gradients), np.array(rates[: t + 1])))
    return np.array(path)


# %%
def rate_outside(gradients, rates, mu=0.9):
    return -rates[-1] * faded(gradients, mu)


def rate_inside(gradients, rates, mu=0.9):
    return -faded(rates[:, None] * gradients, mu)


plans = {"constant": [0.02] * 60, "falls tenfold": [0.02] * 30 + [0.002] * 30}
gap = {name: np.abs(follow(rate_outside, p) - follow(rate_inside, p)).max() for name, p in plans.items()}
say(
    f"Your guess: {my_guess}. **Largest difference of the two, measured:** "
    + ", ".join(f"{k}: {v:.1e}" for k, v in gap.items())
)

# %% [markdown]
# At a constant rate they are the same up to rounding. When the rate falls, the form with the rate inside still carries
# a velocity made at the old rate. Goyal et al. (2017, section 3, remark 2) give the remedy: when the rate changes from
# $\eta$ to $\eta'$, multiply the velocity once by $\eta'/\eta$. In the sum that turns every old $\eta_s$ into
# $\eta'$, which *is* the other form. (You will write it in the assignment.) `optim.SGD` has both forms: the rate is
# outside by default, and inside with `momentum_form="v"`. The check needs a few lines that drive an optimizer of
# `minidl`'s through our valley:


# %%
def follow_optimizer(make, rates, slope=slope, w=begin):
    """The path of an optimizer of minidl's, in float64."""
    weight = Tensor(w.copy(), requires_grad=True)
    optimizer, path = make([weight]), [w]
    for lr in rates:
        optimizer.param_groups[0]["lr"] = lr
        weight.grad = slope(weight.data)
        optimizer.step()
        path.append(weight.data.copy())
    return np.array(path)


# %%
def momentum_in(form):
    return lambda parameters: optim.SGD(parameters, lr=1.0, momentum=0.9, momentum_form=form)


for form, ours, where in (("u", rate_outside, "outside"), ("v", rate_inside, "inside")):
    path = follow_optimizer(momentum_in(form), plans["falls tenfold"])
    agree = np.allclose(path, follow(ours, plans["falls tenfold"]), rtol=1e-12, atol=1e-12)
    print(f'optim.SGD(momentum_form="{form}") is the form with the rate {where}, to 1e-12: {agree}')

away = follow(rate_outside, [0.1] * 200, slope=lambda w: np.ones(1), w=np.zeros(1))
print(f"constant gradient 1, rate 0.1: step 200 is {away[-2, 0] - away[-1, 0]:.6f} long (measured)")
print(f"rate / (1 - momentum) = {0.1 / (1 - 0.9):.6f} (formula)")

# %% [markdown]
# Where the gradient stays the same, momentum 0.9 amounts in the long run to a rate ten times larger. On a valley, with
# the best rate and momentum, a step contracts by $(\sqrt\kappa - 1)/(\sqrt\kappa + 1)$ instead of
# $(\kappa - 1)/(\kappa + 1)$ (Polyak, 1964):

# %%
kappa = curvature[1] / curvature[0]
best_mu = ((np.sqrt(kappa) - 1) / (np.sqrt(kappa) + 1)) ** 2
best_lr = 4 / np.square(np.sqrt(curvature).sum())
paths = {
    "plain": (gradient_descent(2 / curvature.sum(), 300), (kappa - 1) / (kappa + 1)),
    "momentum": (follow(lambda g, r: rate_outside(g, r, best_mu), [best_lr] * 300), np.sqrt(best_mu)),
}
rows = []
for name, (path, factor) in paths.items():
    size = np.linalg.norm(path, axis=1)
    needed = int(np.argmax(size < 1e-6))
    rows.append([name, f"{(size[200] / size[100]) ** 0.01:.4f}", f"{factor:.4f}", needed or "more than 300"])
table(["", "factor a step, steps 100 to 200", "formula", "steps to 1e-6"], rows, "measured; third column formula")

# %% [markdown]
# (The measured factor of momentum lies a little above the formula's because at its best setting two roots coincide and
# the error falls as $t$ times a power; the excess goes to 0 with $t$.) The border itself moves too, to
# $2 (1 + \mu) / \lambda_{\max}$; as in section 1, two runs a little below and above it:

# %%
edge = 2 * (1 + 0.9) / curvature[1]
rows = [heights(lr, follow(rate_outside, [lr] * 600)) for lr in (0.99 * edge, 1.01 * edge)]
table(HEAD, rows, f"measured, momentum 0.9; the border by the formula is {edge:.4f}")

# %% [markdown]
# ## 5. Nesterov, and a table that diverges
#
# Nesterov's variant looks ahead: it takes the gradient where the old velocity is about to carry the weights,
# $v \leftarrow \mu v - \eta\, g(w + \mu v),\ w \leftarrow w + v$ (in this form: Sutskever et al., 2013, section 2).
# Optimizers that are handed a gradient cannot look ahead, so they keep $x = w + \mu v$ as *the* weights and do
# $u \leftarrow \mu u + g(x),\ x \leftarrow x - \eta\,(g(x) + \mu u)$. Same iterates:


# %%
def look_ahead(steps, lr, mu=0.9, sign=+1, late=False):
    """The points w + mu v at which Nesterov's rule takes its gradients; `sign` and `late` plant two slips."""
    w, v, points = begin, np.zeros(2), [begin]
    for _ in range(steps):
        new = mu * v - lr * slope(w + sign * mu * v)
        w, v = w + (v if late else new), new
        points.append(w + mu * v)
    return np.array(points)


rewritten = follow_optimizer(lambda p: optim.SGD(p, lr=1.0, momentum=0.9, nesterov=True), [0.01] * 60)
agree = np.allclose(look_ahead(60, 0.01), rewritten, atol=1e-12)
print("look-ahead and optim.SGD(nesterov=True) agree to 1e-12:", agree)

# %% [markdown]
# One of our sources (S2, table of update rules) prints this rule with the gradient at $w - \mu v$, although its $v$ is
# *added* to $w$, and slips an index as well. A slip of an index that is easily made is to move by the velocity of the
# step before, $w \leftarrow w + v_{t-1}$; it stands for the second one here.
#
# **Predict.** Which is worse, the sign or the index?
#
# It can be computed. On a valley a rule with velocity is a 2 x 2 matrix for each curvature, taking $(w, v)$ to the next
# $(w, v)$; the largest of the absolute values of its eigenvalues, the *spectral radius*, is the factor of a step in the
# long run: below 1 the rule converges, above 1 it diverges.


# %%
def radius(lr, mu, sign, late):
    """The largest spectral radius over both curvatures."""
    rules = [np.array([[-lr * h, mu - sign * lr * h * mu], [0, 0]]) for h in curvature]  # the new velocity
    steps = [np.array([[1, 1], m[0]]) if late else np.array([[1, 0] + m[0], m[0]]) for m in rules]
    return max(abs(np.linalg.eigvals(step)).max() for step in steps)


# %%
my_guess = "?"  # "sign" or "index"

cases = {
    "right": (+1, False),
    "sign wrong: gradient at w - μv": (-1, False),
    "index wrong: moves by the old velocity": (+1, True),
    "both wrong": (-1, True),
}
radii = {name: radius(0.01, 0.9, sign, late) for name, (sign, late) in cases.items()}
rows = []
for name, (sign, late) in cases.items():
    size = np.linalg.norm(look_ahead(1000, 0.01, sign=sign, late=late), axis=1)
    rows.append([name, f"{(size[1000] / size[200]) ** (1 / 800):.3f}", f"{radii[name]:.3f}", f"{size[300]:.1e}"])
head = ["", "factor a step, steps 200 to 1000", "spectral radius", "distance after 300 steps"]
table(head, rows, "measured, formula, measured")
_, sign_wrong, index_wrong, _ = radii.values()
worse = "sign" if sign_wrong > index_wrong else "index"
say(f"Your guess: {my_guess}. **The {worse}.** Looking back feeds the swing that looking ahead damps.")

# %% [markdown]
# ## 6. One table for all
#
# Written as sums over the gradients so far, all rules are close relatives. Let
# $S_\beta(x) = \sum_{s \le t} \beta^{t-s} x_s$ be a *decaying sum* and $M_\beta(x) = S_\beta(x) / S_\beta(1)$ a
# *decaying mean*, whose weights add up to one. All operations are element by element: each weight has its own.
# $\epsilon$ is a small number against division by zero.
#
# | rule | step divided by $-\eta$ | kept between steps | arrays |
# |---|---|---|---|
# | SGD | $g_t$ | nothing | 0 |
# | momentum | $S_\mu(g)$ | $u \leftarrow \mu u + g$ | 1 |
# | Nesterov | $g_t + \mu S_\mu(g)$ | the same | 1 |
# | AdaGrad | $g_t / (\sqrt{S_1(g^2)} + \epsilon)$ | $A \leftarrow A + g^2$ | 1 |
# | RMSProp | $g_t / (\sqrt{(1 - \beta) S_\beta(g^2)} + \epsilon)$ | $A \leftarrow \beta A + (1 - \beta) g^2$ | 1 |
# | Adam | $M_{\beta_1}(g) / (\sqrt{M_{\beta_2}(g^2)} + \epsilon)$ | two such sums, and $t$ | 2 |
#
# Momentum changes *which* gradient is followed; the last three change *how far each weight* goes, by the size of its
# own past gradients. Adam does both. In its paper $M_\beta$ appears as $m_t / (1 - \beta^t)$, the *bias correction*: as
# $m_t = (1 - \beta) S_\beta(g)$ starts at zero, its weights add up to $1 - \beta^t$ only. The table as code, six lines:

# %%
EPS = 1e-8


def mean(history, beta):
    return faded(history, beta) / faded(np.ones(len(history)), beta)


RULES = {
    "SGD": lambda g: g[-1],
    "momentum": lambda g: faded(g, 0.9),
    "Nesterov": lambda g: g[-1] + 0.9 * faded(g, 0.9),
    "AdaGrad": lambda g: g[-1] / (np.sqrt(faded(g**2, 1.0)) + EPS),
    "RMSProp": lambda g: g[-1] / (np.sqrt(0.01 * faded(g**2, 0.99)) + EPS),
    "Adam": lambda g: mean(g, 0.9) / (np.sqrt(mean(g**2, 0.999)) + EPS),
}

# %% [markdown]
# Keeping all gradients is of course no way to train. The third column of the table turns each sum into an array or two
# that are updated in place, and that is how `minidl.optim` has them (one short file each in `minidl/optim/`). The two
# must agree; the recursion of Adam you will write yourself in the assignment.

# %%
OPTIMIZERS = {
    "SGD": lambda p, lr: optim.SGD(p, lr=lr),
    "momentum": lambda p, lr: optim.SGD(p, lr=lr, momentum=0.9),
    "Nesterov": lambda p, lr: optim.SGD(p, lr=lr, momentum=0.9, nesterov=True),
    "AdaGrad": lambda p, lr: optim.Adagrad(p, lr=lr, eps=EPS),
    "RMSProp": lambda p, lr: optim.RMSprop(p, lr=lr, alpha=0.99, eps=EPS),
    "Adam": lambda p, lr: optim.Adam(p, lr=lr, betas=(0.9, 0.999), eps=EPS),
}


# %%
def by_sums(name, lr, steps, slope=slope, w=begin):
    return follow(lambda g, r: -lr * RULES[name](g), [lr] * steps, slope, w)


def by_minidl(name, lr, steps, slope=slope, w=begin):
    return follow_optimizer(lambda p: OPTIMIZERS[name](p, lr), [lr] * steps, slope, w)


agree = [np.allclose(by_sums(name, 0.01, 200), by_minidl(name, 0.01, 200), atol=1e-10) for name in RULES]
print("200 steps by sums and by minidl agree to 1e-10, for all six rules:", all(agree))

# %% [markdown]
# **Predict.** Someone measures the loss in cents instead of euros: all gradients are 100 times larger. For
# which rules do the first steps stay the same?

# %%
my_guess = "?"  # names of rules

rows, unmoved = [], []
for name in RULES:
    one, hundredfold = (by_minidl(name, 0.01, 2000, slope=lambda w, k=k: k * np.array([3.0, -0.02])) for k in (1, 100))
    steps = one[1] - begin, hundredfold[1] - begin, one[-1] - one[-2]
    rows.append([name, *(" ".join(f"{v:+.5f}" for v in step) for step in steps)])
    if np.allclose(*steps[:2], rtol=1e-3):
        unmoved.append(name)
head = ["", "first step", "first step, gradient x 100", "2,000th step"]
table(head, rows, "measured, rate 0.01, constant gradient (3, -0.02)")
say(f"Your guess: {my_guess}. **{', '.join(unmoved)}.**")

# %% [markdown]
# The first step of AdaGrad and of Adam is the rate times the *sign* of the gradient (as $\epsilon \to 0$), and at a
# constant gradient the steps of RMSProp and Adam tend to that. RMSProp's first is $1/\sqrt{1 - \beta}$ times longer,
# for want of a bias correction; AdaGrad's shrink as $1/\sqrt{t}$ for ever. SGD and its kin scale with the gradient:
# their good rates depend on the units of the loss.
#
# ## 7. The same table, misprinted
#
# S2's table of these rules has slips worth knowing, because they look so harmless. Each is run here beside the rule of
# the paper:
#
# - **AdaGrad** sums $g_t^2$, the gradient of *this* step, over $\tau$ instead of $g_\tau^2$, so that $A = t\, g_t^2$.
#   With a constant gradient that is the same. In general it is another method: steps of $\eta/\sqrt{t}$ along the
#   *sign* of the gradient. Run where the sign misleads: the loss $x/4$ with a noisy slope that is 4 in one case of
#   four and -1 otherwise (a counter-example of Karimireddy et al., 2019). Its mean is 1/4: $x$ should fall.
# - **Adam** divides its moments (the decaying means $m_t$ and $v_t$) by $1 - \beta^t$ and feeds the *divided* ones back
#   into the recursion. Run in the valley, with both moments treated so.
# - $\epsilon$ stands outside the root for AdaGrad, inside for RMSProp and Adam. Kingma and Ba's algorithm 1, PyTorch
#   and `minidl` have it outside for all. With $10^{-8}$ nobody notices; with 0.1, as here in the valley, one does.


# %%
def adam_fed_back(gradients, betas=(0.9, 0.99)):
    """Adam's step if the corrected moments are kept, as printed."""
    m, v = 0.0, 0.0
    for t, g in enumerate(gradients, start=1):
        m = (betas[0] * m + (1 - betas[0]) * g) / (1 - betas[0] ** t)
        v = (betas[1] * v + (1 - betas[1]) * g**2) / (1 - betas[1] ** t)
    return m / (np.sqrt(v) + EPS)


def adagrad_misprinted(g):
    return g[-1] / (np.sqrt(len(g)) * abs(g[-1]) + EPS)


def misleading(x):
    return np.where(rng.random(len(x)) < 0.25, 4.0, -1.0)


def adam(g, beta=0.99, inside=0.0, outside=EPS):
    """Adam's step with an ε inside the root, outside it, or both."""
    return mean(g, 0.9) / (np.sqrt(mean(g**2, beta) + inside) + outside)


# %%
def run_both(one, other, steps=100, **where):
    return [follow(lambda g, r, rule=rule: -0.1 * rule(g), [0.1] * steps, **where) for rule in (one, other)]


def beside(title, ylabel, values, log=""):
    names = ("the paper's", "misprinted")
    lines = [Line(name, range(len(value)), value) for name, value in zip(names, values, strict=True)]
    return Panel(lines, "steps", ylabel, title, log)


x_mean = [
    p.mean(axis=1) for p in run_both(RULES["AdaGrad"], adagrad_misprinted, 300, slope=misleading, w=np.zeros(200))
]
fed_back = run_both(adam, adam_fed_back)
root = run_both(lambda g: adam(g, 0.999, outside=0.1), lambda g: adam(g, 0.999, inside=0.1, outside=0.0))

# %%
panels = [beside("AdaGrad: this step's gradient", "mean x of 200 runs", x_mean)]
for title, paths in (("Adam: moments fed back", fed_back), ("Adam: ε = 0.1 in the root", root)):
    panels.append(beside(title, "distance to the minimum", [np.linalg.norm(p, axis=1) for p in paths], "y"))
stuck = np.linalg.norm(np.diff(fed_back[1], axis=0), axis=1)
see(
    draw(panels, source="measured", height=3.0),
    f"misprinted AdaGrad climbs to {x_mean[1][-1]:+.1f} where the paper's falls to {x_mean[0][-1]:+.1f}; Adam fed back "
    f"freezes: its fifth step is {stuck[4]:.0e} long, its tenth {stuck[9]:.0e}; ε in the root gives another path, "
    f"{np.abs(root[0] - root[1]).max():.2f} away at most.",
)

# %% [markdown]
# Why it freezes: each division by $1 - \beta^t$ makes the kept moment larger, again and again, and the second moment,
# whose $\beta$ is closer to one, far more than the first; the quotient goes to zero. A correction belongs where the
# moments are *used*, not where they are *kept*.
#
# ## 8. Paths
#
# Give every rule its best rate, and count the steps down the valley.
#
# **Predict.** AdaGrad, RMSProp and Adam give every weight a length of step of its own. Is that advantage kept or lost
# when the valley lies *across* the axes instead of along one?

# %%
my_guess = "?"  # "kept" or "lost", and by which rules

angle = np.pi / 4
across = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])  # turns by 45 degrees
hessian = across * curvature @ across.T


def slope_across(w):
    return hessian @ w


begin_for = {slope: begin, slope_across: across @ begin}  # the same point of the valley, turned with it
LENGTHS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.035, 0.05, 0.1, 0.2, 0.5, 1.0]


# %%
def steps_needed(name, lr, slope, goal=0.02, limit=300):
    """The number of steps until the distance to the minimum stays below the goal; the limit if it does not."""
    far = np.linalg.norm(by_minidl(name, lr, limit, slope, w=begin_for[slope]), axis=1) > goal
    return limit if far[-1] else int(np.max(np.nonzero(far)[0])) + 1


with np.errstate(all="ignore"):  # rates beyond the border overflow
    best = {
        (name, s): min((steps_needed(name, lr, s), lr) for lr in LENGTHS)
        for name in RULES
        for s in (slope, slope_across)
    }
rows = [[name, *("{} (rate {:g})".format(*best[name, s]) for s in (slope, slope_across))] for name in RULES]
head = ["steps to a distance of 0.02", "valley along an axis", "the same valley at 45°"]
table(head, rows, "measured, the best of 11 rates up to 1")
lost = [name for name in RULES if best[name, slope_across][0] > 2 * best[name, slope][0]]
say(f"Your guess: {my_guess}. **More than twice the steps across the axes: {', '.join(lost)}.**")

# %%
straight = {name: by_minidl(name, best[name, slope][1], 40) for name in RULES}
see(
    valley.draw(lambda a, b: 0.5 * (a**2 + 50 * b**2), straight, x=(-2.1, 1.2), y=(-1.1, 1.1), columns=3),
    "along an axis, SGD hops from wall to wall and creeps along the floor, momentum swings wide but gets along, while "
    "AdaGrad, RMSProp and Adam set out at 45 degrees, as if the valley were round.",
)

# %%
turned = {name: by_minidl(name, best[name, slope_across][1], 40, slope_across, across @ begin) for name in RULES}


def height_across(a, b):
    return 0.5 * (hessian[0, 0] * a**2 + 2 * hessian[0, 1] * a * b + hessian[1, 1] * b**2)


see(
    valley.draw(height_across, turned, x=(-2.2, 1.0), y=(-2.0, 1.0), columns=3),
    "across the axes SGD, momentum and Nesterov go the same way, turned; AdaGrad and RMSProp have lost their "
    "advantage, because both weights see gradients of one size.",
)

# %% [markdown]
# SGD and the two momenta cannot tell: they do the same steps in either valley, as the table says. A length for each
# *weight* helps where the weights themselves differ in scale, in networks for instance those of different layers or
# of rare words; it is no cure for narrow valleys in general.
#
# ## 9. What a rule remembers
#
# The fourth column of the table in section 6 is memory. Counted here from the arrays that the optimizers really hold:

# %%
VGG_16 = 138_357_544  # weights; chapter 03 counts them
rows = []
for name, make in OPTIMIZERS.items():
    model = nn.models.MLP(64, 128, 10)
    optimizer = make(model.parameters(), 0.1)
    F.cross_entropy(model(Tensor(train.x[:8])), train.y[:8]).backward()
    optimizer.step()
    weights = sum(p.data.nbytes for p in model.parameters())
    held = sum(a.nbytes for state in optimizer.state.values() for a in state.values() if isinstance(a, np.ndarray))
    ratio = held / weights
    rows.append([name, f"{weights:,} B", f"{held:,} B", f"{ratio:g}", f"{ratio * 4 * VGG_16 / 1e9:.2f} GB"])
table(
    ["", "weights", "state", "ratio", "state for VGG-16, float32"],
    rows,
    "measured (bytes counted); last column formula",
)

# %% [markdown]
# Nothing to worry about here, but a subject of its own for models that fill a machine: chapter 13 shares it out.
#
# ## 10. Digits under three percent
#
# Valleys are models. Now a network 64-128-10 on digits, 8 epochs, minibatches of 64. Each rule gets the best of four
# rates, chosen on a validation set: 287 of the training images, kept out of the training.
#
# **Predict.** Whose test error will be lowest, and will the difference mean anything?

# %%
my_guess = "?"  # a name

order = np.random.default_rng(0).permutation(len(train.y))
fit_part, validation = (data.Dataset(*train[rows]) for rows in (order[287:], order[:287]))
CANDIDATES = {
    "SGD": (0.3, 1.0, 3.0, 10.0),
    "momentum": (0.03, 0.1, 0.3, 1.0),
    "Nesterov": (0.03, 0.1, 0.3, 1.0),
    "AdaGrad": (0.01, 0.03, 0.1, 0.3),
    "RMSProp": (0.001, 0.003, 0.01, 0.03),
    "Adam": (0.001, 0.003, 0.01, 0.03),
}


# %%
def validated(name, lr):
    """The validation loss after 8 epochs; infinity if the run diverged."""
    model, _ = train_digits(lambda p: OPTIMIZERS[name](p, lr), epochs=8, part=fit_part)
    value = loss_on(model, validation)
    return value if np.isfinite(value) else np.inf


picked = {name: min(rates, key=lambda lr, name=name: validated(name, lr)) for name, rates in CANDIDATES.items()}
print("picked by validation loss:", *(f"{name} {lr:g}" for name, lr in picked.items()), sep="  ")

# %% [markdown]
# Now with all training images, five seeds each. The test set is read here, for the first and only time on this page.


# %%
def whole_run(name, seed):
    """The test error in percent, and (seconds of the processor, training loss) after each epoch."""
    begun = time.process_time()
    model, notes = train_digits(
        lambda p: OPTIMIZERS[name](p, picked[name]),
        seed,
        epochs=8,
        note=lambda model: (time.process_time() - begun, loss_on(model, train)),
    )
    return 100 * error_on(model, test), notes


runs = {name: [whole_run(name, seed) for seed in range(5)] for name in picked}

# %%
errors = {name: [error for error, _ in five] for name, five in runs.items()}
means = {name: np.mean(found) for name, found in errors.items()}
rows = [[name, picked[name], " ".join(f"{e:.2f}" for e in errors[name]), f"**{means[name]:.2f}**"] for name in picked]
table(["", "rate", "test error (%), five seeds", "mean"], rows, "measured")
say(
    f"Your guess: {my_guess}. All means under 3 %: **{all(m < 3 for m in means.values())}**. They lie between "
    f"{min(means.values()):.2f} and {max(means.values()):.2f} %; one rule's seeds differ by up to "
    f"{max(max(e) - min(e) for e in errors.values()):.2f}, and a single test image is {100 / len(test.y):.2f} %. "
    "Whoever ranks the rules by this reads noise."
)

# %% [markdown]
# What does differ is the way there, against epochs and against time (steps of different rules cost differently):

# %%
# measured: differs from run to run
notes = {name: np.mean([notes for _, notes in five], axis=0) for name, five in runs.items()}
by_epoch = [Line(name, range(1, 9), note[:, 1]) for name, note in notes.items()]
by_time = [Line(name, note[:, 0], note[:, 1]) for name, note in notes.items()]
labels = ((by_epoch, "epoch"), (by_time, "time of the processor (s)"))
low = {name: note[-1, 1] for name, note in notes.items()}
see(
    draw([Panel(lines, label, "training loss (nats)", log="y") for lines, label in labels], source="measured"),
    f"means of five runs: after 8 epochs {min(low, key=low.get)} has the lowest training loss, {max(low, key=low.get)} "
    f"the highest, a factor of {max(low.values()) / min(low.values()):.0f}. The test errors above show next to nothing "
    "of it.",
)

# %% [markdown]
# ## 11. Break it: the gradient that was not cleared
#
# `backward()` *adds* to `.grad`, so that several losses can share weights. Whoever forgets `zero_grad()` steps along
# the sum of all gradients since the beginning.
#
# **Predict.** What does $f$ do in the valley: fall more slowly, swing for ever, or explode?


# %%
def forgetful(steps, lr=0.01):
    """Gradient descent without zero_grad()."""
    w = Tensor(begin.copy(), requires_grad=True)
    optimizer, path = optim.SGD([w], lr=lr), [begin]
    for _ in range(steps):
        (0.5 * (Tensor(curvature) * w * w).sum()).backward()  # zero_grad() should come before
        optimizer.step()
        path.append(w.data.copy())
    return np.array(path)


# %%
my_guess = "?"  # "falls", "swings" or "explodes"

right, forgotten = gradient_descent(0.01, 150), forgetful(150)
with_mu_1 = follow_optimizer(lambda p: optim.SGD(p, lr=1.0, momentum=1.0), [0.01] * 150)
steps = np.arange(151)
lines = [
    Line("right", steps, height(right)),
    Line("forgotten zero_grad", steps, height(forgotten)),
    Line("momentum = 1", steps[::3], height(with_mu_1)[::3], "points", 6),
]
tail = height(forgotten)[-50:]
see(
    draw([Panel(lines, "steps", "f", log="y", ylim=(3e-2, 2e3))], source="measured"),
    f"the right run falls; the forgetful one swings, in its last 50 steps between {tail.min():.2f} and "
    f"{tail.max():.1f}, from {height(begin):.1f} at the start.",
)
same = np.allclose(forgotten, with_mu_1, atol=1e-9)
say(f"Your guess: {my_guess}. **It swings for ever**, and it is the path of momentum 1: {same}.")

# %% [markdown]
# A sum that forgets nothing is momentum with $\mu = 1$: a pendulum without friction. Nothing crashes; the loss swings
# and does not settle, at *any* rate below $4/\lambda_{\max}$ (beyond, it explodes). If lowering the rate only makes the
# swing slower, look for the missing `zero_grad()`.
#
# ## 12. What the papers report
#
# - **Goyal et al. 2017** (arXiv:1706.02677, table 2a), ResNet-50 on ImageNet with minibatches of 256 and momentum 0.9:
#   rates 0.05, 0.1 and 0.2 give top-1 errors of 23.92 ± 0.10, 23.60 ± 0.12 and 23.68 ± 0.09 %: near the best rate a
#   factor of two either way changes little. (The table's caption says 23.68 % for rate 0.1; the table, and everything
#   else in the paper, says 23.60 %.)
# - **Kingma and Ba 2015** (arXiv:1412.6980, algorithm 1): Adam as in the table of section 6, $\epsilon$ outside the
#   root. S5 remarks that Adam has superseded AdaGrad.
# - **Sutskever et al. 2013** (ICML, section 2): Nesterov's rule as a velocity, $g$ at $w + \mu v$. S2 prints
#   $w - \mu v$; section 5 shows what comes of it. The other slips of S2's table are in section 7.
#
# ## 13. To the exercises
#
# You have what the assignment `02_minibatch_sgd` asks for: momentum in both forms and what to do when the rate changes,
# Adam as a recursion, and a training loop that chooses by validation and reads the test set once:
# [read the exercises](../exercises/02_minibatch_sgd/02_minibatch_sgd.ipynb), or start your own copy with
# `python3 -m course start 02`.
#
# **Three questions to argue about.**
#
# 1. The border $2/\lambda_{\max}$ was derived for exact gradients. Does noise move it?
# 2. You double the minibatch. By section 3, which rate leaves the noise floor where it was? (Chapter 08 takes it from
#    there.)
# 3. "Adam needs no tuning." Which columns of which tables on this page speak for it, and which against?
