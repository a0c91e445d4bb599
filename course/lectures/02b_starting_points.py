# %% [markdown]
# # 02b. What must a deep net start from?
#
# *Chapter 02, second of four. Before it: [02a](02a_noisy_gradients.ipynb). After it: [02c](02c_step_sizes.ipynb).
# Reading time: about 15 minutes. Figures are* measured *on the computer that ran this page, or come from a* formula.
#
# ## The question
#
# The classifier of [02a](02a_noisy_gradients.ipynb) began with weights that were all zero, and that did no harm. Put
# ten layers of 64 units between its pixels and its scores, and train this *deep network* from weights of four sizes:
# same images, same order, three epochs. `sigma`, or $\sigma$, is the standard deviation of the first weights; the
# biases start at zero. Each start gets the best of seven learning rates.

# %% source_hidden=true
import numpy as np
from threadpoolctl import threadpool_limits

from course.figures import decision_map
from course.figures.page import say, see, table
from course.interaction import bar, explore, guess, warm_up
from minidl import Tensor, data, manual_seed, nn, optim
from minidl import functional as F
from minidl.plots import style
from minidl.plots.lines import Line, Panel, draw

warm_up()
one_thread = threadpool_limits(1)  # matrices as small as ours are not worth a second thread
train, test = data.digits()
n = len(train.y)


# %%
def network(sigma, hidden=10, width=64, seed=0):
    """64 pixels, hidden layers with ReLU, 10 scores; `sigma(d)`: the deviation of weights behind d inputs."""
    manual_seed(seed)
    model = nn.models.MLP(64, *[width] * hidden, 10)
    for name, parameter in model.named_parameters():
        nn.init.zeros_(parameter) if "bias" in name else nn.init.normal_(parameter, std=sigma(parameter.shape[1]))
    return model


# %%
def loss_on(model, part):
    return F.cross_entropy(model(Tensor(part.x)), part.y).item()


def error_on(model, part):
    return float((model(Tensor(part.x)).data.argmax(axis=1) != part.y).mean())


def trained(model, rate, epochs=3, part=train):
    """The model after some epochs of minibatch SGD with 32 samples a step."""
    optimizer, loader = optim.SGD(model.parameters(), lr=rate), data.DataLoader(part, 32, shuffle=True, seed=0)
    for epoch in range(epochs):
        loader.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(Tensor(x)), y).backward()
            optimizer.step()
    return model


# %% source_hidden=true
RATES, rows = 10.0 ** np.arange(-9, 1), []
with np.errstate(all="ignore"):  # too large a start overflows
    for sigma in bar((0.0, 0.02, np.sqrt(2 / 64), 0.5), "training 84 networks"):
        best = []
        for seed in range(3):
            models = [trained(network(lambda d, s=sigma: s, seed=seed), rate) for rate in RATES[3:]]
            best.append(100 * min(error_on(model, test) for model in models))
        start = loss_on(network(lambda d, s=sigma: s), train)
        rows.append([f"{sigma:.3g}", f"{start:,.2f}", f"{min(best):.0f} to {max(best):.0f}"])
head = ["sigma", "loss at the start", "test error after three epochs (%)"]
table(head, rows, "measured, three seeds, each with the best learning rate from 1e-6 to 1 in factors of 10")

# %% [markdown]
# Guessing gives 90 %. One start trains; the others do not, or much worse, each for a reason of its own. This page finds
# the reasons, and how to know a good start before the first step.
#
# ## Why have hidden layers at all?
#
# A *linear unit* adds up its inputs, each times a weight, and a bias: $z = w_1 x_1 + w_2 x_2 + b$. Rosenblatt's
# *perceptron* (1958) answers yes if $z > 0$, so a straight line separates its yes from its no. The exclusive or, XOR,
# of two bits is yes if exactly one of them is 1.

# %%
guess_xor = guess("How many of XOR's four cases can one unit get right at most?", [2, 3, 4])

# %%
corners = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=np.float32)
xor = np.array([0, 1, 1, 0])
grid = np.linspace(-2, 2, 41)
w1, w2, b = (axis.reshape(-1, 1) for axis in np.meshgrid(grid, grid, grid))
right = ((w1 * corners[:, 0] + w2 * corners[:, 1] + b > 0) == xor).sum(axis=1)
most = int(right.max())
say(f"Your guess: {guess_xor.against(most)}. **The best of {len(right):,} lines gets {most} of 4** (measured).")

# %% [markdown]
# No line gets 4: added up, the two yes cases ask for $w_1 + w_2 + 2b > 0$ and the two no cases for
# $w_1 + w_2 + 2b \le 0$. A *network* puts a *hidden layer* of units between input and output, each bent by a
# *nonlinearity* such as ReLU, $\max(0, z)$. Without the bend, two layers are one: $(xP)Q = x(PQ)$. With it, two hidden
# units suffice:


# %%
def by_hand(points):
    z = points.sum(axis=1)
    return np.maximum(z, 0) - 2 * np.maximum(z - 1, 0)


# %% source_hidden=true
print("max(0, x1 + x2) - 2 max(0, x1 + x2 - 1) in the four cases:", by_hand(corners))
maps = {
    "one unit: 3 of 4": lambda points: points.sum(axis=1) > 0.5,
    "two hidden units: 4 of 4": lambda points: by_hand(points) > 0.5,
}
see(
    decision_map.draw(maps, corners, xor),
    "one straight border leaves a corner on the wrong side; the network has two borders and leaves none.",
)

# %% [markdown]
# So hidden layers are worth having. These weights were written by hand; weights that are trained need a start.
#
# ## From zero, nothing moves
#
# Take two layers, $\mathrm{ReLU}(xP)\,Q$. By the chain rule the gradient of $P$ contains a factor $Q$, and that of $Q$
# contains the factor $\mathrm{ReLU}(xP)$. If $P$ and $Q$ are zero, both gradients are zero. And if every weight starts
# at 0.05?

# %%
guess_equal = guess("32 hidden units start with equal weights. How many different ones are there after three epochs?")


# %%
def different_units(model):
    """How many different rows the first layer's matrix has: one row of weights is one hidden unit."""
    return len(np.unique(next(model.parameters()).data.round(5), axis=0))


# %% source_hidden=true
rows = []
for name, weight, spread in (("all 0", 0.0, 0.0), ("all 0.05", 0.05, 0.0), ("normal, sigma 0.177", 0.0, 0.177)):
    model = network(lambda d, s=spread: s, hidden=1, width=32)
    for parameter in model.parameters():
        parameter.data[...] += weight
    trained(model, 0.1)
    rows.append([name, different_units(model), f"{error_on(model, test):.1%}"])
table(["start", "different hidden units after three epochs", "test error"], rows, "measured, one hidden layer of 32")
say(f"Your guess: {guess_equal.against(rows[1][1])}. **Measured: {rows[1][1]}.**")

# %% [markdown]
# Equal units get equal gradients, and stay equal. (A single layer of weights does not have this problem, because its
# gradient contains its inputs and no other weights.) So weights are drawn at random. But how large?
#
# ## A first check: the loss before the first step
#
# A network that knows nothing should give each of ten digits one tenth: a loss of $-\log \frac1{10} = \log 10 = 2.30$.
# In the first table two starts have that loss. At $\sigma$ = 0.5 the scores are far apart: the network is certain of
# wrong answers. (Large scores also make $e^z$ overflow. Softmax does not change if the same number is subtracted from
# all scores, so libraries subtract the largest one first.) The check does not find the small start, whose loss is
# right. It fails for another reason.
#
# ## How large? Count the variance
#
# Take ten layers of 256 units without ReLU, weights of $\sigma = 0.1$, inputs of variance 1.

# %%
guess_variance = guess(
    "What is the variance of the tenth layer's outputs?",
    SIZES := ["below 0.001", "between 0.001 and 1,000", "above 1,000"],
)


# %%
def mean_squares(sigma, bend=lambda z: z, layers=10, d=256, seed=0):
    """The mean square of the input and of each layer's sums, before the bend."""
    normal = np.random.default_rng(seed)
    signal = normal.standard_normal((256, d))
    found = [np.square(signal).mean()]
    for layer in range(layers):
        signal = (bend(signal) if layer else signal) @ normal.normal(0, sigma, (d, d))
        found.append(np.square(signal).mean())
    return np.array(found)


found = mean_squares(0.1)[-1]
size = SIZES[int(found > 1e-3) + int(found > 1e3)]
say(
    f"Your guess: {guess_variance.against(size)}. **Measured: {found:,.0f}**; "
    f"(256 x 0.1²)¹⁰ = {2.56**10:,.0f} (formula)."
)

# %% [markdown]
# A sum of $d$ independent terms has $d$ times the variance of one. So a layer with $d$ inputs a unit multiplies the
# variance by $d\sigma^2$, and ten layers by the tenth power. It stays if $\sigma = 1/\sqrt d$. ReLU halves the mean
# square, so behind it $\sigma = \sqrt{2/d}$ keeps the size (He et al., 2015). Turn the *gain* $\sigma\sqrt d$:

# %% source_hidden=true
BENDS = {"none": lambda z: z, "ReLU": lambda z: np.maximum(z, 0), "tanh": np.tanh}


def through_the_layers(axes, gain, nonlinearity):
    layers = np.arange(11)
    found = [mean_squares(gain / 16, BENDS[nonlinearity], seed=seed) for seed in range(5)]
    axes.plot(layers, np.median(found, axis=0), "o", color=style.SERIES[0], label="measured, median of five")
    if nonlinearity != "tanh":
        factor = gain**2 / (2 if nonlinearity == "ReLU" else 1)
        formula = factor**layers * np.where((nonlinearity == "ReLU") & (layers > 0), 2, 1)  # the inputs are not bent
        axes.plot(layers, formula, "-", color=style.SERIES[1], label="formula")
    axes.axhline(1, color="black", linewidth=0.8, linestyle=":")
    axes.set(xlabel="layer (0: the input)", ylabel="mean square", yscale="log", ylim=(1e-9, 1e7))
    axes.legend(fontsize=7)


explore(
    through_the_layers,
    "without a nonlinearity every layer multiplies the mean square by gain². With ReLU every layer multiplies it by "
    "gain²/2, except the first, whose inputs are not bent. At a factor of 1 the size stays. For tanh no formula is "
    "drawn; its results lie between -1 and 1, so the size does not explode.",
    gain=[0.5, 1.0, 1.414, 2.0],
    nonlinearity=["none", "ReLU", "tanh"],
    source=("measured", "formula"),
    multiples=[{"gain": 2.0}, {"gain": 1.0}, {"gain": 1.0, "nonlinearity": "ReLU"},
               {"gain": 1.414, "nonlinearity": "ReLU"}],
)  # fmt: skip

# %% source_hidden=true
off = max(abs(mean_squares(1 / 16, seed=seed)[1:] - 1).max() for seed in range(5))
print(f"gain 1, ten linear layers, five seeds: the variance is off 1 by at most {off:.0%} (measured)")
print("gains of the question's starts:", *(f"{sigma * np.sqrt(64):.3g}" for sigma in (0, 0.02, np.sqrt(2 / 64), 0.5)))
manual_seed(0)
for rule, formula in ((nn.init.xavier_normal_, 1 / 16), (nn.init.kaiming_normal_, np.sqrt(2) / 16)):
    print(f"minidl's nn.init.{rule.__name__}: sigma {rule(Tensor(np.zeros((256, 256)))).data.std():.4f}; {formula:.4f}")

# %% [markdown]
# The signal of the start 0.02 dies on its way through ten layers, and that of 0.5 explodes. (Glorot and Bengio,
# 2010, also want to keep the size of the gradients on their way back, which would need $1/\sqrt{\text{outputs}}$, and
# take $\sigma^2 = 2/(\text{inputs} + \text{outputs})$, called Xavier initialisation. For equal widths it is $1/d$.)
#
# Now training: nine gains from 0.09 to 23, each twice the one before, each with the best of ten learning rates from
# 1e-9 to 1. A network of one hidden layer gets below 20 % errors from all of them.

# %%
guess_depth = guess("From how many of the nine gains does a network of ten hidden layers get below 20 %?")

# %% source_hidden=true
gains = np.sqrt(2) * 2.0 ** np.arange(-4, 5)
errors = {1: [], 10: []}
with np.errstate(all="ignore"):
    for hidden, gain in bar([(hidden, gain) for hidden in errors for gain in gains], "training 180 networks"):
        models = [trained(network(lambda d, gain=gain: gain / np.sqrt(d), hidden), rate) for rate in RATES]
        errors[hidden].append(100 * min(error_on(model, test) for model in models))
lines = [Line(f"hidden layers: {hidden}", gains, some, "both") for hidden, some in errors.items()]
lines.append(Line("gain √2", [np.sqrt(2)] * 2, [0, 100], tone=6))
below = {hidden: sum(error < 20 for error in some) for hidden, some in errors.items()}
see(
    draw([Panel(lines, "gain", "test error after three epochs (%)", log="x", xlim=(0.08, 30))], source="measured"),
    f"with one hidden layer {below[1]} of 9 gains get below 20 %, with ten {below[10]}; the black line is gain √2.",
)
say(f"Your guess: {guess_depth.against(below[10])}. **Measured: {below[10]}.**")

# %% [markdown]
# What one layer does to the size, ten layers do to the tenth power.
#
# ## The inputs are a layer, too
#
# The argument began with inputs of variance 1. *Normalisation* subtracts from each input its mean and divides by its
# standard deviation, both **of the training set**. Its effect is seen in the *curvature*: how strongly the loss bends
# along its steepest direction. The more it bends, the smaller the learning rate must be ([02c](02c_step_sizes.ipynb)).
# For a linear unit with half the squared error the curvatures are the eigenvalues of $E[x x^T]$.

# %% source_hidden=true
raw = 16.0 * (train.x + data.digits().mean).reshape(n, 64)
spread = raw.std(axis=0)
safe = np.where(spread > 0, spread, 1)  # a pixel that never changes is left alone
inputs = {
    "ink 0 to 16": raw,
    "scaled to 0 to 1": raw / 16,
    "and the mean image removed, as in data.digits()": (raw - raw.mean(axis=0)) / 16,
    "mean 0, standard deviation 1": (raw - raw.mean(axis=0)) / safe,
}
rows = []
for name, values in inputs.items():
    eigenvalues = np.linalg.eigvalsh(values.T.astype(np.float64) @ values / n)
    rows.append([name, f"{eigenvalues[-1]:,.2f}", f"{eigenvalues[-1] / eigenvalues.sum():.0%}"])
table(["inputs", "largest curvature", "its share of the sum over all directions"], rows, "measured")

# %% [markdown]
# With the mean image, a single direction, common to all samples, has most of the curvature and limits the learning
# rate. That is why `data.digits()` removes it.
#
# ## Break it: the pixel that is never inked
#
# Normalisation is often written `(x - x.mean(axis=0)) / x.std(axis=0)`, without the line `safe` above.

# %%
guess_nan = guess(
    "What does training do with such inputs?",
    NAN := ["it raises an error", "it trains as usual", "it reads all digits as one and the same"],
)

# %% source_hidden=true
with np.errstate(all="ignore"):
    careless = ((raw - raw.mean(axis=0)) / spread).astype(np.float32)
    broken = trained(network(lambda d: np.sqrt(2 / d), hidden=1), 0.1, part=data.Dataset(careless, train.y))
    answers = broken(Tensor(careless)).data.argmax(axis=1)
print(f"pixels that never change: {(spread == 0).sum()} of 64; inputs that are nan: {np.isnan(careless).mean():.1%}")
print("weights that are nan after training:", f"{np.isnan(next(broken.parameters()).data).mean():.0%}")
read_as = np.unique(answers)
outcome = NAN[2] if len(read_as) == 1 else NAN[1]
say(f"Your guess: {guess_nan.against(outcome)}. **The digits are read as: {', '.join(map(str, read_as))}.**")

# %% [markdown]
# 0/0 is nan, nan spreads to all scores and all weights in one step, and `argmax` of ten nan is 0. The sign is an
# accuracy of exactly one class' share. Look for nan first in the inputs, then in the loss of the first step. A relative
# of this mistake normalises the test set with the test set's own mean: the model then sees other inputs than those it
# was trained on.
#
# ## What the papers report
#
# - **Rosenblatt 1958** built the perceptron; the network with a hidden layer was trained by gradients three decades
#   later (Rumelhart, Hinton and Williams, 1986).
# - **Glorot and Bengio 2010** (AISTATS) followed the variance forward and backward through the layers, as we did
#   forward, and derived $2/(\text{inputs} + \text{outputs})$.
# - **He et al. 2015** (arXiv:1502.01852, section 2.2) derived $2/d$ for ReLU. Their abstract says that it makes it
#   possible to train "extremely deep rectified models directly from scratch".
#
# What must a deep net start from? From weights that differ, of deviation $\sqrt{2/d}$ behind ReLU and $1/\sqrt d$
# without, from biases of zero, and from normalised inputs; then the first loss is about $\log 10$. PyTorch and `minidl`
# start a `Linear` from a uniform distribution of $\sigma = 1/\sqrt{3d}$; with ReLU each layer then divides the mean
# square by 6.
#
# ## To the exercises
#
# Exercise 6 of the assignment trains a network whose start you are given. [02c](02c_step_sizes.ipynb) is next: the
# network stands at its start, and asks how far to step.
#
# **Three questions to argue about.**
#
# 1. In the picture of the gains, 2.8 works at depth one and fails at depth ten. At which depth would 1.5 fail?
# 2. The biases start at zero, all of them equal. Why is that no problem?
# 3. A colleague's first loss is 2.30 with ten classes, and it does not fall. Which starts of this page are suspects,
#    and which two numbers would you print?
