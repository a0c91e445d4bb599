# %% [markdown]
# # 02d. Which way down?
#
# *Chapter 02, last of four. Before it: [02c](02c_step_sizes.ipynb). After it: the exercises. Reading time: about 30
# minutes. Figures are* measured *on the computer that ran this page, or come from a* formula.
#
# ## The question
#
# Once more the valley $f(w) = \frac12 (1 w_1^2 + 50 w_2^2)$ of [02c](02c_step_sizes.ipynb). Six update rules of
# `minidl.optim` walk down it from one start, each at the best of eleven rates. How many steps does each need until it
# stays within 0.02 of the minimum?

# %%
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
EPS = 1e-8
OPTIMIZERS = {
    "SGD": lambda p, rate: optim.SGD(p, lr=rate),
    "momentum": lambda p, rate: optim.SGD(p, lr=rate, momentum=0.9),
    "Nesterov": lambda p, rate: optim.SGD(p, lr=rate, momentum=0.9, nesterov=True),
    "AdaGrad": lambda p, rate: optim.Adagrad(p, lr=rate, eps=EPS),
    "RMSProp": lambda p, rate: optim.RMSprop(p, lr=rate, alpha=0.99, eps=EPS),
    "Adam": lambda p, rate: optim.Adam(p, lr=rate, betas=(0.9, 0.999), eps=EPS),
}


def turned(degrees):
    """The valley's matrix of second derivatives, and the start, both turned by an angle."""
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    turn = np.array([[c, -s], [s, c]])
    return turn * [1, 50] @ turn.T, turn @ [-1.8, 0.8]


def walk(name, rate, steps, degrees=0, slope=None):
    matrix, begin = turned(degrees)
    weight = Tensor(begin.copy(), requires_grad=True)
    optimizer, path = OPTIMIZERS[name]([weight], rate), [begin]
    for _ in range(steps):
        weight.grad = slope(weight.data) if slope else matrix @ weight.data
        optimizer.step()
        path.append(weight.data.copy())
    return np.array(path)


@cache
def best(name, degrees):
    """The fewest steps (at most 300) to stay within 0.02 of the minimum, and the rate that needs them."""
    found = []
    for rate in (0.001, 0.002, 0.005, 0.01, 0.02, 0.035, 0.05, 0.1, 0.2, 0.5, 1.0):
        with np.errstate(all="ignore"):  # rates beyond the border overflow
            far = ~(np.linalg.norm(walk(name, rate, 300, degrees), axis=1) <= 0.02)
        found.append((300 if far[-1] else int(np.max(np.nonzero(far)[0])) + 1, rate))
    return min(found)


table(["", "steps", "rate"], [[name, *best(name, 0)] for name in OPTIMIZERS], "measured")

# %% [markdown]
# What do the fast ones know that the slow ones do not? Watch them:


# %%
def paths(axes, degrees, steps):
    matrix, begin = turned(degrees)
    x, y = np.meshgrid(np.linspace(-2.2, 1.2, 301), np.linspace(-2.2, 1.2, 301))
    heights = 0.5 * (matrix[0, 0] * x**2 + 2 * matrix[0, 1] * x * y + matrix[1, 1] * y**2)
    axes.contour(x, y, heights, np.geomspace(0.05, 90, 8), cmap="Greys_r", linewidths=0.5)
    for place, name in enumerate(OPTIMIZERS):
        path = walk(name, best(name, degrees)[1], steps, degrees)
        axes.plot(*path.T, color=style.SERIES[place], linestyle=style.DASHES[place], linewidth=1.3, label=name)
        axes.plot(*path[-1], "s", color=style.SERIES[place], markersize=5)
    axes.plot(*begin, "o", color="black", markersize=8, fillstyle="none")
    axes.plot(0, 0, "*", color="black", markersize=10)
    axes.set(xlim=(-2.2, 1.2), ylim=(-2.2, 1.2), xlabel="weight 1", ylabel="weight 2", aspect="equal")
    axes.legend(fontsize=7, loc="lower right")


step_through(
    lambda axes, step: paths(axes, 0, step),
    "circle: start; squares: where each rule stands; star: the minimum. SGD hops from wall to wall and creeps along "
    "the floor. Momentum swings wide. AdaGrad, RMSProp and Adam set out at 45 degrees, as if the valley were round.",
    frames=range(41),
    multiples=[1, 10, 40],
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
    "RMSProp": lambda g: g[-1] / (np.sqrt(0.01 * total(g**2, 0.99)) + EPS),
    "Adam": lambda g: mean(g, 0.9) / (np.sqrt(mean(g**2, 0.999)) + EPS),
}


def follow(rule, rate, steps):
    matrix, w = turned(0)
    path, gradients = [w], []
    for _ in range(steps):
        gradients.append(matrix @ path[-1])
        path.append(path[-1] - rate * rule(np.array(gradients)))
    return np.array(path)


agree = [np.allclose(follow(rule, 0.01, 200), walk(name, 0.01, 200), atol=1e-10) for name, rule in RULES.items()]
print("200 steps by these six lines and by minidl agree to 1e-10, for all six rules:", all(agree))

# %% [markdown]
# Nobody keeps all gradients: the third column turns each sum into an array that is updated in place. (You will write
# Adam's in the assignment.) Nesterov's rule is often written (Sutskever et al., 2013, section 2) as momentum that looks
# ahead, with the gradient where the old velocity is about to carry it:
# $v \leftarrow \mu v - \eta\, g(w + \mu v),\ w \leftarrow w + v$. An optimizer that is handed a gradient cannot look
# ahead; it keeps $w + \mu v$ as *the* weights. The points are the same:

# %%
matrix, w = turned(0)
v, points = np.zeros(2), [w]
for _ in range(200):
    v = 0.9 * v - 0.02 * matrix @ (w + 0.9 * v)
    w = w + v
    points.append(w + 0.9 * v)
print("the same points to 1e-12:", np.allclose(points, walk("Nesterov", 0.02, 200), atol=1e-12))
for name, radius in (("momentum", np.sqrt(0.9)), ("Nesterov", np.sqrt(0.9 * (1 - 0.02 * 1)))):  # spectral radius (02c)
    logarithms = np.log(np.linalg.norm(walk(name, 0.02, 1000), axis=1))
    factor = np.exp(np.polyfit(range(900), logarithms[100:1000], 1)[0])  # of a straight line through its swings
    print(f"{name}: in the long run a step multiplies the distance by {factor:.4f} (measured), {radius:.4f} (formula)")

# %% [markdown]
# ## What the lengths depend on
#
# Someone measures the loss in cents instead of euros: all gradients are 100 times larger.

# %%
guess_cents = guess("How many of the six rules still take the same first step?", [0, 1, 2, 3, 4])

# %%
rows, unmoved = [], []
for name in OPTIMIZERS:
    once, hundred = (walk(name, 0.01, 2000, slope=lambda w, k=k: k * np.array([3.0, -0.02])) for k in (1, 100))
    steps = once[1] - once[0], hundred[1] - hundred[0], once[-1] - once[-2]
    rows.append([name, *(" ".join(f"{v:+.4f}" for v in step) for step in steps)])
    unmoved += [name] if np.allclose(*steps[:2], rtol=1e-3) else []
head = ["", "first step", "first step, gradient x 100", "2,000th step"]
table(head, rows, "measured: rate 0.01, constant gradient (3, -0.02)")
say(f"Your guess: {guess_cents}. **{len(unmoved)}: {', '.join(unmoved)}.**")

# %% [markdown]
# The first step of AdaGrad and Adam is the rate times the *sign* of the gradient. RMSProp's is $1/\sqrt{1 - \beta}$
# times longer, for want of a bias correction. AdaGrad's steps shrink as $1/\sqrt t$ for ever. The others scale with the
# gradient: their good rates depend on the units of the loss. So in our valley three rules walk as if it were round. Now
# turn the valley by 45 degrees, so that its floor runs across the axes. Nothing else changes.

# %%
guess_turn = guess("Which of these rules needs the most steps then?", ["AdaGrad", "RMSProp", "Adam"])

# %%
rows = [[name, *("{} (rate {:g})".format(*best(name, degrees)) for degrees in (0, 45))] for name in OPTIMIZERS]
head = ["steps to stay within 0.02", "valley along an axis", "turned by 45 degrees"]
table(head, rows, f"measured, the best of 11 rates; your guess: {guess_turn}")
explore(
    paths,
    "turned, SGD, momentum and Nesterov do exactly what they did before. AdaGrad and RMSProp have lost their "
    "advantage, because now both weights see gradients of one size.",
    degrees=[0, 15, 30, 45, 60, 75, 90],
    steps=[5, 10, 20, 40, 80],
    multiples=[{"degrees": 0, "steps": 40}, {"degrees": 45, "steps": 40}],
    source="measured",
    height=5,
)

# %% [markdown]
# A length for each *weight* helps where the weights differ in scale, for instance between layers or for rare words. It
# is no cure for narrow valleys in general. And it costs memory. Counted from the arrays that the optimizers really
# hold:

# %%
train, test = data.digits()
rows = []
for name, make in OPTIMIZERS.items():
    model = nn.models.MLP(64, 128, 10)
    optimizer = make(model.parameters(), 0.1)
    F.cross_entropy(model(Tensor(train.x[:8])), train.y[:8]).backward()
    optimizer.step()
    weights = sum(p.data.nbytes for p in model.parameters())
    held = sum(a.nbytes for state in optimizer.state.values() for a in state.values() if isinstance(a, np.ndarray))
    rows.append([name, f"{held:,} B", f"{held / weights:g}", f"{held / weights * 4 * 138_357_544 / 1e9:.2f} GB"])
head = ["", "state", "state / weights", "state for VGG-16, 138,357,544 weights in float32 (formula)"]
table(head, rows, f"measured, weights: {weights:,} B")

# %% [markdown]
# ## Break it: a common misprint
#
# Adam's correction is sometimes printed as $m \leftarrow (\beta_1 m + (1 - \beta_1) g) / (1 - \beta_1^t)$, the mean of
# the squares likewise. So the corrected mean is fed back into its own recursion.

# %%
guess_misprint = guess("What do the steps do?", ["the same", "grow", "shrink to nothing"])


# %%
def adam_fed_back(gradients):
    m = a = 0.0
    for t, g in enumerate(gradients, start=1):
        m = (0.9 * m + 0.1 * g) / (1 - 0.9**t)
        a = (0.999 * a + 0.001 * g**2) / (1 - 0.999**t)
    return m / (np.sqrt(a) + EPS)


walks = {"right": follow(RULES["Adam"], 0.1, 100), "misprinted": follow(adam_fed_back, 0.1, 100)}
lines = [Line(name, range(101), np.linalg.norm(path, axis=1)) for name, path in walks.items()]
frozen = np.linalg.norm(np.diff(walks["misprinted"], axis=0), axis=1)
see(
    draw([Panel(lines, "steps", "distance to the minimum", log="y")], source="measured"),
    f"the misprinted rule freezes on its way: its fifth step is {frozen[4]:.0e} long, its tenth {frozen[9]:.0e}.",
)
say(f"Your guess: {guess_misprint}. **They shrink to nothing**: each division enlarges what is kept, the squares most.")

# %% [markdown]
# A correction belongs where a mean is *used*, not where it is *kept*. More misprints: [errata](../course/errata.md).
#
# ## Digits under three percent
#
# Valleys are models. Now a network 64-128-10 on digits, 8 epochs with $B$ = 64, each rule at the best of four rates.
# The *training set* sets the weights. The *validation set*, 287 images kept out of the training, decides whatever is
# chosen by looking, here the rate. The *test set* is read once, at the end.

# %%
guess_rule = guess("Whose test error will be lowest?", list(OPTIMIZERS))

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


def error_on(model, x, y):
    return 100 * float((model(Tensor(x)).data.argmax(axis=1) != y).mean())


LOWEST = {"SGD": 0.3, "momentum": 0.03, "Nesterov": 0.03, "AdaGrad": 0.01, "RMSProp": 0.001, "Adam": 0.001}
rows, means = [], []
for name, lowest in bar(LOWEST.items(), "tuning and training six rules"):
    scores = {lowest * k: trained(name, lowest * k, part=fit_part)(Tensor(validation.x)) for k in (1, 3, 10, 30)}
    rate = min(scores, key=lambda some, scores=scores: F.cross_entropy(scores[some], validation.y).item())
    errors = [error_on(trained(name, rate, seed), test.x, test.y) for seed in range(5)]
    means.append(np.mean(errors))
    rows.append([name, f"{rate:g}", " ".join(f"{e:.2f}" for e in errors), f"**{means[-1]:.2f}**"])
table(["", "rate", "test error (%), five seeds", "mean"], rows, "measured")
say(
    f"Your guess: {guess_rule}. All means are under 3 %: **{max(means) < 3}**. They differ by "
    f"{max(means) - min(means):.2f} %; one test image is {100 / len(test.y):.2f} %. A ranking of the rules reads noise."
)

# %% [markdown]
# Why not choose by the test set? Take labels that are pure noise, so that in truth everybody has an error of 90 %.
# Choose the best of 100 *untrained* networks on 180 images:

# %%
guess_luck = guess("Which error does the best of the 100 show on these 180 images?", unit="%")

# %%
noise, shown = np.random.default_rng(1).integers(10, size=len(test.y)), []
for seed in range(100):
    manual_seed(seed)
    model = nn.models.MLP(64, 128, 10)
    shown.append([error_on(model, test.x[some], noise[some]) for some in (slice(180), slice(180, 360))])
winner, fresh = min(shown)
say(f"Your guess: {guess_luck}. **Shown: {winner:.1f} %. On 180 other images: {fresh:.1f} %.** Choosing alone did it.")

# %% [markdown]
# ## A result to be proud of
#
# The result of Part I works on larger pictures than 8x8 digits. It is a residual network: groups of layers whose input
# is added to their output (ResNet; He et al., arXiv:1512.03385, section 3.1). It reads letters of 28x28 pixels in fonts
# that it has never seen. `python3 -m course result 1` trains it with *your* `adam_step` of the exercises, in at most
# ten minutes. Here are the first steps of a smaller one, with minidl's Adam:

# %%
# measured: differs from run to run
settings = glyph_resnet.Settings(depth=8, n_train=3000, n_test=300, minibatch=32, steps=200, evaluate_every=25)
done = iter(bar(range(settings.steps), "learning to read"))
short = glyph_resnet.train(glyph_resnet.library_rule, settings, lambda *_: next(done, None))
next(done, None)  # the bar is removed
full = recorded(1)
see(
    pictures.losses([(f"{settings.steps} steps, 8 layers", short.rows), ("recorded", full.rows)]),
    "the test loss falls as the network learns. The recorded run continues for longer than it seems: the horizontal "
    "axes are logarithmic.",
)
say(
    f"Test accuracy after {settings.steps} steps: {short.rows[-1]['test_accuracy']:.0%}; of the recorded run after "
    f"{full.last['step']:,} steps and {full.last['seconds'] / 60:.0f} minutes: {full.last['test_accuracy']:.1%} "
    "(measured)."
)

# %%
# measured: differs from run to run
see(
    pictures.letters(short.test, glyph_resnet.probabilities(short.model, short.test)),
    "in the first row letters that the network reads rightly after these few steps, below the letters that it finds "
    "hardest; the title is coloured where it misreads them.",
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
# 1. "Adam needs no tuning." Which tables on this page speak for it, and which against?
# 2. Would a rule that turns its axes into the valley's directions be worth its memory, with a million weights?
# 3. A public leaderboard shows the test error of 500 entries. By how much does it flatter the winner?
