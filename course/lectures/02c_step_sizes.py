# %% [markdown]
# # 02c. How far should one step go?
#
# *Chapter 02, third of four. Before it: [02b](02b_starting_points.ipynb). After it: [02d](02d_update_rules.ipynb).
# Reading time: about 16 minutes. Figures are* measured *on the computer that ran this page, or come from a* formula.
#
# ## The question
#
# The simplest valley is $f(w) = \frac12 (1 w_1^2 + 50 w_2^2)$: flat one way, steep the other, with its minimum at 0.
# The second derivatives 1 and 50 are its *curvatures*. Near a minimum a smooth loss looks like this, with more
# directions. Here are two runs of gradient descent, $w \leftarrow w - \eta\, \nabla f(w)$, with learning rates $\eta$
# that differ by two percent:

# %% source_hidden=true
import numpy as np
from threadpoolctl import threadpool_limits

from course.figures.page import say, see, table
from course.interaction import explore, guess, warm_up
from minidl import Tensor, optim
from minidl.plots import style
from minidl.plots.lines import Line, Panel, draw

warm_up()
one_thread = threadpool_limits(1)  # matrices as small as ours are not worth a second thread

# %%
curvature, begin = np.array([1.0, 50.0]), np.array([-1.8, 0.8])


def height(w):
    return 0.5 * (curvature * np.square(w)).sum(axis=-1)


def slope(w):
    return curvature * w


def gradient_descent(rate, steps, slope=slope, w=begin):
    path = [w]
    for _ in range(steps):
        path.append(path[-1] - rate * slope(path[-1]))
    return np.array(path)


# %% source_hidden=true
rows = []
for rate in (0.0396, 0.0404):
    path = gradient_descent(rate, 600)
    rows.append([rate, *(f"{height(path[k]):.3g}" for k in (0, 10, 100, 600))])
table(["learning rate", "f at the start", "after 10 steps", "after 100", "after 600"], rows, "measured")

# %% [markdown]
# One converges, the other explodes. Where is the border, and what moves it?
#
# ## The border
#
# Along a direction of curvature $\lambda_i$ the slope is $\lambda_i w_i$, so a step makes $w_i$ into
# $(1 - \eta \lambda_i)\, w_i$, and $t$ steps make it $(1 - \eta \lambda_i)^t w_i$. That goes to 0 if
# $-1 < 1 - \eta \lambda_i < 1$, which is $0 < \eta < 2 / \lambda_i$. All directions together converge if this holds for
# the largest curvature:
#
# $$\text{gradient descent converges if}\quad 0 < \eta < 2 / \lambda_{\max}.$$
#
# If $\eta > 2 / \lambda_{\max}$, then $|1 - \eta \lambda_{\max}| > 1$, and the error grows along that direction, unless
# it is exactly 0 there. The directions need not be the axes: they are the eigenvectors of the matrix of second
# derivatives, and the curvatures are its eigenvalues. Here are three of ten, turned at random, and the error along
# each:

# %% source_hidden=true
rng = np.random.default_rng(0)
turn, eigenvalues = np.linalg.qr(rng.normal(size=(10, 10)))[0], np.geomspace(0.1, 10, 10)
matrix = turn * eigenvalues @ turn.T
along = gradient_descent(0.15, 4, slope=lambda w: matrix @ w, w=rng.normal(size=10)) @ turn
rows = [
    [f"{eigenvalues[i]:.3f}", f"{along[4, i] / along[3, i]:+.9f}", f"{1 - 0.15 * eigenvalues[i]:+.9f}"]
    for i in (0, 4, 9)
]
table(["curvature", "factor of a step, measured", "1 - 0.15 x curvature, formula"], rows, "learning rate 0.15")

# %%
guess_rate = guess(
    "In the valley, which learning rate leaves the smallest error after 100 steps? The border is at 0.04."
)

# %% source_hidden=true
tried = np.linspace(0.002, 0.0425, 82)
rest = [np.linalg.norm(gradient_descent(rate, 100)[-1]) for rate in tried]
formula = [np.linalg.norm((1 - rate * curvature) ** 100 * begin) for rate in tried]
best = tried[int(np.argmin(rest))]
lines = [
    Line("measured", tried, rest, "points", 0),
    Line("formula", tried, formula, "line", 1),
    Line("border 2/λmax", [2 / curvature.max()] * 2, [1e-2, 1e5], tone=6),
    Line("best 2/(λmin + λmax)", [2 / curvature.sum()] * 2, [1e-2, 1e5], tone=2),
]
see(
    draw([Panel(lines, "learning rate", "distance after 100 steps", log="y")], source=("measured", "formula")),
    f"the distance falls until a learning rate of {best:.4f}, close below the border, and rises steeply beyond. Points "
    f"and formula agree to 1e-9: {np.allclose(rest, formula, rtol=1e-9)}.",
)
say(f"Your guess: {guess_rate.against(best)}. **Measured: {best:.4f}**; formula {2 / curvature.sum():.4f}.")

# %% [markdown]
# At the best learning rate the flattest and the steepest direction contract equally:
# $1 - \eta \lambda_{\min} = \eta \lambda_{\max} - 1$. A step then multiplies the error by $(\kappa - 1)/(\kappa + 1)$,
# with the *condition number* $\kappa = \lambda_{\max}/\lambda_{\min}$. Narrow valleys are slow: the steepest direction
# limits the learning rate of all.
#
# ## Momentum moves the border
#
# *Momentum* (Polyak, 1964) steps along a decaying sum of all gradients so far. In the steep direction their signs
# alternate and they cancel, in the flat one they add up. With the momentum $\mu$:
#
# $$u \leftarrow \mu u + g, \qquad w \leftarrow w - \eta u .$$
#
# In a direction of curvature $\lambda$ a step turns $(w, u)$ into
# $\begin{pmatrix} 1 - \eta\lambda & -\eta\mu \\ \lambda & \mu \end{pmatrix} (w, u)$. The largest absolute value of this
# matrix' eigenvalues, its *spectral radius*, is the factor of a step in the long run. The eigenvalues are the zeros of
#
# $$q(z) = z^2 - (1 + \mu - \eta\lambda)\, z + \mu .$$
#
# Their product is $\mu < 1$. If they are complex, they are conjugate, and both have the absolute value $\sqrt\mu < 1$.
# If they are real, look at $q(1) = \eta\lambda > 0$ and $q(-1) = 2 (1 + \mu) - \eta\lambda$. Where $q(-1) < 0$, one
# zero lies below $-1$: the error grows. Where $q(-1) > 0$, both zeros lie between $-1$ and 1, or both beyond the same
# end; the latter would make their product larger than 1. So the border is $\eta = 2 (1 + \mu)/\lambda_{\max}$: momentum
# 0.9 allows a learning rate 1.9 times as large.


# %%
def with_momentum(rate, momentum, steps, w=begin):
    u, path = np.zeros(2), [w]
    for _ in range(steps):
        u = momentum * u + slope(path[-1])
        path.append(path[-1] - rate * u)
    return np.array(path)


def contraction(rate, momentum):
    """The spectral radius, in the worse of the two directions."""
    steps = [[[1 - rate * h, -rate * momentum], [h, momentum]] for h in curvature]
    return abs(np.linalg.eigvals(steps)).max()


# %% source_hidden=true
def valley(axes, learning_rate, momentum):
    flat, steep = np.linspace(-2.2, 2.2, 101), np.linspace(-1.6, 1.6, 101)
    heights = 0.5 * (flat**2 + 50 * steep[:, None] ** 2)
    axes.contour(flat, steep, heights, np.geomspace(0.05, 60, 8), cmap="Greys_r", linewidths=0.6)
    path = with_momentum(learning_rate, momentum, 40)
    outside = np.nonzero(abs(path[:, 1]) > 6)[0]
    path = path[: outside[0] + 1] if len(outside) else path
    axes.plot(*path.T, ".-", color=style.SERIES[0], linewidth=1, label="steps")
    axes.plot(*begin, "o", color=style.SERIES[0], markersize=8, fillstyle="none", label="start")
    axes.plot(0, 0, "*", color="black", markersize=9, linestyle="none", label="minimum")
    axes.legend(fontsize=7, loc="upper right")
    axes.set_title(f"border {2 * (1 + momentum) / 50:.3f}, factor a step {contraction(learning_rate, momentum):.3f}")
    axes.set(xlim=(-2.2, 2.2), ylim=(-1.6, 1.6), xlabel="weight 1", ylabel="weight 2", aspect="equal")


explore(
    valley,
    "up to forty steps from the circle. Above the picture stand the border for this momentum and the factor of a step "
    "in the long run. A learning rate below the border has a factor below 1, and the path closes in on the star; "
    "beyond the border it leaves the picture.",
    learning_rate=[0.005, 0.01, 0.02, 0.035, 0.05, 0.065, 0.08],
    momentum=[0.0, 0.3, 0.5, 0.75, 0.9],
    multiples=[
        {"learning_rate": 0.01},
        {"learning_rate": 0.035},
        {"learning_rate": 0.05},
        {"learning_rate": 0.05, "momentum": 0.75},
    ],
    source=("measured", "formula"),
)

# %% [markdown]
# The best pair of learning rate and momentum is known (Polyak, 1964). Our valley has $\kappa = 50$.

# %%
guess_steps = guess("By which factor does the best momentum reduce the steps to a distance of 1e-6?")

# %% source_hidden=true
kappa = curvature[1] / curvature[0]
best_momentum, best_rate = ((np.sqrt(kappa) - 1) / (np.sqrt(kappa) + 1)) ** 2, 4 / np.square(np.sqrt(curvature).sum())
rows = []
for name, rate, momentum, factor in (
    ("plain", 2 / curvature.sum(), 0.0, (kappa - 1) / (kappa + 1)),
    ("momentum", best_rate, best_momentum, np.sqrt(best_momentum)),
):
    size = np.linalg.norm(with_momentum(rate, momentum, 600), axis=1)
    row = (rate, momentum, (size[200] / size[100]) ** 0.01, factor)
    rows.append([name, *(f"{number:.4f}" for number in row), int(np.argmax(size < 1e-6))])
head = ["", "learning rate", "momentum", "factor, steps 100 to 200, measured", "formula", "steps to 1e-6, measured"]
fewer = rows[0][-1] / rows[1][-1]
table(head, rows, "the valley with curvatures 1 and 50")
say(f"Your guess: {guess_steps.against(fewer)}. **Measured: {fewer:.1f} times fewer steps.**")

# %% [markdown]
# The best pair multiplies the error by $(\sqrt\kappa - 1)/(\sqrt\kappa + 1)$ a step instead of $(\kappa - 1)/(\kappa +
# 1)$. (There the two eigenvalues coincide, which slows it a little.) The border, in runs at many pairs:

# %% source_hidden=true
runs, agree = {True: [], False: []}, []
for rate in np.arange(0.0075, 0.09, 0.005):
    for momentum in (0, 0.2, 0.4, 0.6, 0.8):
        end = with_momentum(rate, momentum, 300)[-1]
        converged = bool(abs(end).max() < abs(begin).max())
        runs[converged].append((rate, momentum))
        agree.append(converged == (rate < 2 * (1 + momentum) / 50))
lines = [
    Line("border 2 (1 + μ)/λmax", [0.04, 0.08], [0, 1], "line", 6),
    Line("converged", *zip(*runs[True], strict=True), "points", 0),
    Line("diverged", *zip(*runs[False], strict=True), "points", 6),
    Line("best pair", [best_rate], [best_momentum], "points", 1),
]
see(
    draw([Panel(lines, "learning rate", "momentum μ", xlim=(0, 0.14))], source=("measured", "formula")),
    f"left of the line runs of 300 steps converge, right of it they diverge: {sum(agree)} of {len(agree)} runs are on "
    "their side. The best pair lies to the right of 0.04, the border of plain descent.",
)

# %% [markdown]
# ## Two forms of momentum
#
# The learning rate stands outside the sum in PyTorch and by default in `minidl`. Textbooks often put it inside:
#
# | form | recursion | step $t$ written out, with $g_s$ the gradient and $\eta_s$ the learning rate of step $s$ |
# |---|---|---|
# | outside | $u \leftarrow \mu u + g_t,\ w \leftarrow w - \eta_t u$ | $-\eta_t \sum_{s \le t} \mu^{t-s} g_s$ |
# | inside | $v \leftarrow \mu v - \eta_t g_t,\ w \leftarrow w + v$ | $-\sum_{s \le t} \mu^{t-s} \eta_s g_s$ |

# %%
guess_forms = guess(
    "In which cases do both forms walk the same path?", FORMS := ["always", "at a constant learning rate only", "never"]
)


# %%
def momentum_path(form, rates):
    weight = Tensor(begin.copy(), requires_grad=True)
    optimizer, path = optim.SGD([weight], lr=1.0, momentum=0.9, momentum_form=form), [begin]
    for rate in rates:
        optimizer.param_groups[0]["lr"] = rate
        weight.grad = slope(weight.data)
        optimizer.step()
        path.append(weight.data.copy())
    return np.array(path)


# %% source_hidden=true
plans = {"constant": [0.02] * 60, "falls tenfold": [0.02] * 30 + [0.002] * 30}
gaps = {name: np.abs(momentum_path("u", plan) - momentum_path("v", plan)).max() for name, plan in plans.items()}
same = np.abs(momentum_path("u", plans["constant"]) - with_momentum(0.02, 0.9, 60)).max()
print(f"our loop and optim.SGD(momentum=0.9) differ by {same:.0e}")
same_path = [gap < 1e-9 for gap in gaps.values()]
answer = FORMS[0 if all(same_path) else 1 if same_path[0] else 2]
differences = ", ".join(f"{plan}: {gap:.1e}" for plan, gap in gaps.items())
say(f"Your guess: {guess_forms.against(answer)}. **Largest difference of the weights: {differences}** (measured).")

# %% [markdown]
# When the learning rate falls, the form with the learning rate inside still carries a velocity made at the old one. The
# remedy (Goyal et al., 2017, section 3, remark 2) is to multiply the velocity once by $\eta'/\eta$ when the learning
# rate changes from $\eta$ to $\eta'$. You will write it in the assignment.
#
# ## Learning rates that fall
#
# Why should a learning rate fall at all? Because of the noise of [02a](02a_noisy_gradients.ipynb), of variance $V/B$.
# With it gradient descent does not settle at 0. Its mean square $E[w^2]$ settles at a *noise floor*.

# %%
guess_floor = guess("With a learning rate of 0.005 instead of 0.05, how many times lower is the floor?")


# %%
def noisy_runs(rates, runs=2000):
    """The mean of w^2 over many runs with noise of variance 1 and curvature 1, from w = 3, after each step."""
    noise, w, squares = np.random.default_rng(0), np.full(runs, 3.0), []
    for rate in rates:
        w = w - rate * (w + noise.standard_normal(runs))
        squares.append(np.square(w).mean())
    return np.array(squares)


# %% source_hidden=true
rows, floors = [], []
for rate in (0.5, 0.05, 0.005):
    squares = noisy_runs([rate] * 1500)
    way = int(np.argmax(squares < 1.5 * rate / (2 - rate))) + 1
    floors.append(squares[-100:].mean())
    rows.append([rate, f"{floors[-1]:.5f}", f"{rate / (2 - rate):.5f}", f"{way:,}"])
head = ["learning rate", "$E[w^2]$ at the end, measured", "floor, formula", "steps to 1.5 times the floor, measured"]
table(head, rows, "mean of 2,000 runs with noise of variance 1 and curvature 1")
lower = floors[1] / floors[2]
say(f"Your guess: {guess_floor.against(lower)}. **Measured: {lower:.1f} times lower.**")

# %% [markdown]
# A noisy step turns $E[w^2]$ into $(1 - \eta\lambda)^2 E[w^2] + \eta^2 V/B$, with $V$ the variance of a sample's
# gradient along this direction. Set equal to $E[w^2]$, this gives the floor
#
# $$E[w^2] = \frac{\eta\,V / B}{\lambda\,(2 - \eta\lambda)}.$$
#
# A large learning rate gets close fast and a small one gets closer. *Decay* does both. Here are four schedules, made
# with `minidl.optim`, whose names are PyTorch's:

# %% source_hidden=true
t = np.arange(300)
SCHEDULES = {
    "constant": (lambda o: optim.LambdaLR(o, lambda k: 1.0), 0.5 + 0 * t),
    "step": (lambda o: optim.StepLR(o, step_size=100, gamma=0.1), 0.5 * 0.1 ** (t // 100)),
    "1/t": (lambda o: optim.LambdaLR(o, lambda k: 1 / (1 + k / 4)), 0.5 / (1 + t / 4)),
    "cosine": (lambda o: optim.CosineAnnealingLR(o, T_max=300), 0.25 * (1 + np.cos(np.pi * t / 300))),
}
rates, off = {}, []
for name, (schedule, formula) in SCHEDULES.items():
    optimizer = optim.SGD([Tensor(0.0, requires_grad=True)], lr=0.5)
    clock, rates[name] = schedule(optimizer), []
    for _ in t:
        rates[name].append(clock.get_last_lr()[0])
        optimizer.step()
        clock.step()
    off.append(np.abs(rates[name] - formula).max())
print("each schedule is its formula, to 1e-12:", bool(max(off) < 1e-12))
squares = {name: noisy_runs(some) for name, some in rates.items()}
means = [Line(name, t, square) for name, square in squares.items()]
for k, rate in enumerate((0.5, 0.05, 0.005)):
    means.append(Line("floors" * (k == 0), [100 * k, 100 * k + 100], [rate / (2 - rate)] * 2, tone=6))
lines = [Line(name, t, some) for name, some in rates.items()]
panels = [
    Panel(lines, "steps", "learning rate (formula)", log="y", ylim=(1e-3, 1)),
    Panel(means, "steps", "mean of w² (measured)", log="y", ylim=(3e-5, 9)),
]
see(
    draw(panels, source=("formula", "measured")),
    "with a constant learning rate the error stays at the first black line, its floor. When the step schedule drops, "
    "the error falls to the next line; 100 steps at the smallest learning rate do not reach the third. With 1/t and "
    "cosine it falls without steps.",
)

# %% [markdown]
# How far should a step go, then? While the distance to the minimum dominates, nearly to the border; once the noise
# dominates, less and less far.
#
# ## Break it: the gradient that was not cleared
#
# `backward()` *adds* to `.grad`, so that several losses can share weights. Somebody forgets `zero_grad()` and steps
# along the sum of all gradients since the beginning. The learning rate is 0.01, below the border.

# %%
guess_forgotten = guess("What does f do?", FATES := ["fall more slowly", "swing for ever", "explode"])

# %%
weight = Tensor(begin.copy(), requires_grad=True)
optimizer, forgotten = optim.SGD([weight], lr=0.01), [begin]
for _ in range(150):
    (0.5 * (Tensor(curvature) * weight * weight).sum()).backward()  # zero_grad() should come before
    optimizer.step()
    forgotten.append(weight.data.copy())

# %% source_hidden=true
friction_free = with_momentum(0.01, 1.0, 150)
lines = [
    Line("right", range(151), height(gradient_descent(0.01, 150))),
    Line("forgotten zero_grad", range(151), height(np.array(forgotten))),
    Line("momentum 1", range(0, 151, 3), height(friction_free)[::3], "points", 6),
]
tail = height(np.array(forgotten))[-50:]
see(
    draw([Panel(lines, "steps", "loss f", log="y", ylim=(3e-2, 2e3))], source="measured"),
    f"the right run falls. The forgetful one still swings between {tail.min():.2f} and {tail.max():.1f} in its last 50 "
    f"steps, from {height(begin):.1f} at the start.",
)
print("the path is that of momentum 1:", np.allclose(forgotten, friction_free, atol=1e-9))
peaks = [height(with_momentum(0.01, 1.0, steps))[-100:].max() for steps in (150, 15_000)]
fate = FATES[0 if peaks[1] < peaks[0] / 2 else 1 if peaks[1] < 2 * peaks[0] else 2]
say(
    f"Your guess: {guess_forgotten.against(fate)}. **It still reaches {peaks[1]:.1f} after 15,000 steps** "
    f"(the start: {height(begin):.1f})."
)

# %% [markdown]
# A sum that forgets nothing is momentum $\mu = 1$: a pendulum without friction. Where the zeros of $q$ are complex,
# below $\eta = 4/\lambda_{\max}$, their absolute value is exactly 1. If a smaller learning rate only makes the swing
# slower, look for the missing `zero_grad()`.
#
# ## What the papers report
#
# - **Robbins and Monro 1951**: noisy steps converge if the learning rates sum to infinity but their squares do not. The
#   schedule 1/t fulfils both; a constant learning rate fails the second, and stays at its floor.
# - **Goyal et al. 2017** (arXiv:1706.02677, table 2a), ResNet-50 on ImageNet, $B$ = 256, momentum 0.9: learning rates
#   of 0.05, 0.1 and 0.2 give top-1 errors of 23.92 ± 0.10, 23.60 ± 0.12 and 23.68 ± 0.09 %. At each drop of the
#   learning rate their training curves fall steeply.
#
# ## To the exercises
#
# Exercises 3 and 4 of [`02_minibatch_sgd`](../exercises/02_minibatch_sgd/02_minibatch_sgd.ipynb) are momentum in both
# forms and the correction when the learning rate changes. [02d](02d_update_rules.ipynb) asks in which direction to
# step.
#
# **Three questions to argue about.**
#
# 1. The border $2/\lambda_{\max}$ was derived for exact gradients. Does noise move it?
# 2. You double the minibatch. Which learning rate leaves the noise floor where it was? (Chapter 08 takes it from
#    there.)
# 3. Your loss explodes in the hundredth epoch and not in the first. What may have happened to $\lambda_{\max}$?
