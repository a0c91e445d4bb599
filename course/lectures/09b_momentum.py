# %% [markdown]
# # 09b. What happens to momentum when most of the gradient waits?
#
# *Read [09a](09a_top_k.ipynb) (the largest entries are sent, the rest is kept) and [02d](02d_update_rules.ipynb)
# (momentum) first. Reading time: about 22 minutes. Figures are* measured, simulated *or come from a* formula.
#
# ## The question
#
# Momentum SGD with learning rate $\eta$ and momentum $m$ keeps a **velocity** $v$:
#
# $$v \leftarrow m v + g, \qquad w \leftarrow w - \eta v.$$
#
# A weight whose gradient always points the same way gets faster and faster. In 09a most entries of a gradient *wait* in
# the residual $e$ until they are among the largest, and are then sent as one sum. What does momentum make of a sum that
# comes late? Take one weight, a gradient of 1 in every step, learning rate 1, and let it wait for 10 steps.

# %% source_hidden=true
from dataclasses import replace
from functools import cache, partial

import numpy as np
from threadpoolctl import threadpool_limits

from course.figures.page import say, see, table
from course.interaction import bar, explore, guess, warm_up
from minidl import Tensor, cluster, compress, data, manual_seed, nn, optim, parallel
from minidl import functional as F
from minidl.plots import lines, style

warm_up()
one_thread = threadpool_limits(1)  # matrices as small as ours are not worth a second thread

# %%
guess_dense = guess("m = 0.9, nothing waits: how far does the weight move in 10 steps?")

# %%
guess_late = guess("It waits for 10 steps, then the sum goes into momentum SGD. How far has it moved at once?")


# %% [markdown]
# ## Build: momentum after and before the waiting
#
# The compressor of 09a has a residual on each node; momentum is in the optimizer, *after* compression. That is the
# obvious way. Call it **late momentum**. Lin et al. (2018) do it in the other order: each node keeps a velocity of its
# own, and the residual adds up *velocities*. The optimizer has no momentum. That is **momentum correction**. For one
# weight:


# %%
def dense(gradients, sends, m):
    """How far the weight has moved after each step; sends: the steps at whose end a node may send."""
    v = moved = 0.0
    for g in gradients:
        v = m * v + g
        moved += v
        yield moved


def late(gradients, sends, m):
    v = e = moved = 0.0
    for step, g in enumerate(gradients):
        e = e + g
        sent, e = (e, 0.0) if step in sends else (0.0, e)
        v = m * v + sent  # the optimizer, on all nodes
        moved += v
        yield moved


def corrected(gradients, sends, m, masking=False):
    v = e = moved = 0.0
    for step, g in enumerate(gradients):
        v = m * v + g  # on the node, before compression
        e = e + v
        sent, e = (e, 0.0) if step in sends else (0.0, e)
        if masking and step in sends:
            v = 0.0  # explained below
        moved += sent
        yield moved


METHODS = {"dense": dense, "late momentum": late, "momentum correction": corrected}

# %% source_hidden=true
after_10 = {name: list(method([1.0] * 10, {9}, 0.9))[-1] for name, method in METHODS.items()}
table(["", "moved after 10 steps"], [[name, f"{moved:.3f}"] for name, moved in after_10.items()],
      f"measured: m = 0.9; your guesses: dense {guess_dense.against(after_10['dense'])}; late momentum "
      f"{guess_late.against(after_10['late momentum'])}")  # fmt: skip

# %% [markdown]
# The corrected entry arrives where dense training would be. The late one has moved by the plain sum of its gradients.
#
# The formula: after $j$ steps the velocity is $v_j = 1 + m + \dots + m^{j-1} = \frac{1 - m^j}{1 - m}$. After $T$ steps
# the weight has moved by the sum of all velocities,
#
# $$\sum_{j=1}^{T} \frac{1 - m^j}{1 - m} = \frac{T}{1-m} - \frac{m\,(1 - m^T)}{(1-m)^2}.$$
#
# In minidl, momentum correction is in `compress.DGC`; late momentum is the same without it. Here are two entries. The
# first is huge, and is the one of the two that is sent, until step $T$; the second one is ours.


# %% source_hidden=true
def formula(m, T):
    return T / (1 - m) - m * (1 - m**T) / (1 - m) ** 2


def minidls(compressor, gradients, m=0.0):
    """How far the second of two entries has moved when it is sent in the last step; m: of the optimizer."""
    v = moved = 0.0
    for step, g in enumerate(gradients):
        huge = 1e9 if step < len(gradients) - 1 else 0.0
        message = compressor.encode(np.array([huge, g]))
        v = m * v + compressor.decode(message)[1]
        moved += v
    return moved


rows, rng, apart = [], np.random.default_rng(0), 0.0
for m, T in ((0.5, 10), (0.9, 10), (0.99, 100)):
    before, after = compress.DGC(0.5, m, warmup=()), compress.DGC(0.5, momentum_correction=False, warmup=())
    rows.append([m, T, f"{formula(m, T):,.3f}", f"{list(dense([1.0] * T, {}, m))[-1]:,.3f}",
                 f"{minidls(before, [1.0] * T):,.3f}", f"{minidls(after, [1.0] * T, m):,.3f}"])  # fmt: skip
    random = rng.standard_normal(T)
    *_, exact = dense(random, {}, m)
    apart = max(apart, abs(minidls(compress.DGC(0.5, m, warmup=()), random) - exact))
table(["m", "T", "formula", "dense", "minidl, corrected", "minidl, late"], rows, "formula, measured")
say(f"With random gradients instead of ones, dense and corrected end at most {apart:.1g} apart (measured).")

# %% [markdown]
# ## Where does the weight come to rest?
#
# We have stopped in the middle: the optimizer's velocity has just received 10. So let the gradient be 1 for 10 steps,
# then 0, and send every 10 steps until the weights rest.

# %%
guess_rest = guess("Which of them comes to rest closest to dense?",
                   ["late momentum", "momentum correction", "both at the same place"])  # fmt: skip

# %% source_hidden=true
METHODS["correction and masking"] = partial(corrected, masking=True)
push, every_10 = [1.0] * 10 + [0.0] * 190, set(range(9, 200, 10))
paths = {name: list(method(push, every_10, 0.9)) for name, method in METHODS.items()}
assert abs(paths["late momentum"][-1] - paths["momentum correction"][-1]) < 1e-6
table(["", "after 10 steps", "after 20", "at rest"],
      [[name, *(f"{path[step - 1]:.2f}" for step in (10, 20, 200))] for name, path in paths.items()],
      "measured: gradient 1 for 10 steps, then 0; your guess: "
      f"{guess_rest.against('both at the same place')}")  # fmt: skip

# %% [markdown]
# The first three rows come to $\frac{T}{1-m}$ = 100. A gradient of 1 moves a weight by
# $1 + m + m^2 + \dots = \frac{1}{1-m}$ in the end, no matter who applies the momentum, and when. **Late momentum loses
# nothing in the long run. It comes late.** Each time that the entry is sent, the corrected one is where dense training
# is.
#
# The last row has a rule of DGC that we have not named yet: **momentum factor masking**. When an entry is sent, its
# velocity is set to 0. So the weight loses what the velocity would still have moved it. That is the second term of the
# formula:
#
# $$\underbrace{\frac{T}{1-m}}_{\text{in the end}} =
#   \underbrace{\frac{T}{1-m} - \frac{m(1-m^T)}{(1-m)^2}}_{\text{moved when it is sent}}
#   + \underbrace{\frac{m(1-m^T)}{(1-m)^2}}_{\text{forgotten by masking}}$$
#
# An entry that is sent in every step ($T = 1$) has no momentum at all under masking: it moves by 1 and not by
# $\frac{1}{1-m}$. One that waits long has nearly all of it. Turn the momentum `m`, the number of steps `T` in which the
# gradient is 1, and the steps `wait` from one sending to the next:


# %% source_hidden=true
TONES = dict(zip(METHODS, (6, 0, 2, 3), strict=True))


def path(axes, m, wait, T):
    gradients = [1.0] * T + [0.0] * (80 - T)
    for name, method in METHODS.items():
        moved = [0.0, *method(gradients, set(range(wait - 1, 80, wait)), m)]
        look = "steps-post" if "correction" in name and wait > 1 else "default"  # moves in jumps, or smoothly
        tone = TONES[name]
        axes.plot(moved, linestyle=style.DASHES[tone], color=style.SERIES[tone], label=name, drawstyle=look)
    axes.axvline(T, color="0.7", linewidth=0.8)
    axes.set(xlabel="step", ylabel="moved (learning rate x gradient)", xlim=(0, 80), ylim=(0, None))
    axes.legend(fontsize=7)


explore(path,
        "dense training moves smoothly; momentum correction jumps onto its curve each time the entry is sent (with "
        "wait 1 they are one, as is late momentum). Late momentum runs behind and approaches the same height. With "
        "masking the weight ends below them, by less the longer it waits and the smaller m is. (Grey line: from here on "
        "the gradient is 0.)",
        m=[0.9, 0.0, 0.5, 0.8, 0.95], wait=[10, 1, 2, 5, 20], T=[40, 1, 10, 20, 60], source="formula", height=3.2,
        multiples=[{"wait": 1}, {"wait": 10}, {"wait": 20}, {"m": 0.5}], shared=False)  # fmt: skip

# %% [markdown]
# ## Does it matter when the weight moves?
#
# Old velocity is stale velocity, and chapter 06 found what staleness does: the highest stable learning rate falls. Here
# is a small problem with waiting. The loss is $\frac12 \sum_i h_i w_i^2$ with 50 weights and curvatures $h_i$ from
# $\frac1{30}$ to 1. In each step the 5 largest entries are sent. How many steps until the loss is a hundredth of what
# it was?


# %%
def descend(method, rate, seed, n=50, k=5, m=0.9, most=1000):
    """Steps until the loss is a hundredth of the first one; infinite if that takes more than `most`."""
    h, w = np.geomspace(1 / 30, 1, n), np.random.default_rng(seed).standard_normal(n)
    v, e, target = np.zeros(n), np.zeros(n), 0.01 * (h * w**2).sum()
    for step in range(most):
        g, loss = h * w, (h * w**2).sum()
        if loss <= target or loss > 1e9:
            return step if loss <= target else np.inf
        if method == "late momentum":
            e = e + g
        else:
            v = m * v + g
            e = e + v
        sent = np.zeros(n)
        chosen = slice(None) if method == "dense" else np.argpartition(np.abs(e), -k)[-k:]
        sent[chosen], e[chosen] = e[chosen], 0.0
        if method == "late momentum":
            v = m * v + sent
            w = w - rate * v
        else:
            w = w - rate * sent
        if method == "correction and masking":
            v[chosen] = 0.0
    return np.inf


# %%
guess_break = guess("Which sparse method stays stable at the highest learning rate?", list(METHODS)[1:])

# %% source_hidden=true
rates, STARTS = 0.01 * 2.0 ** np.arange(0, 6, 0.5), range(10)
steps = {(name, rate): np.array([descend(name, rate, seed) for seed in STARTS])
         for name, rate in bar([(name, rate) for name in METHODS for rate in rates], "descending")}  # fmt: skip
stable = {name: [rate for rate in rates if np.isfinite(steps[name, rate]).all()] for name in METHODS}


@style.applied()
def bowls():
    figure, [axes] = style.new_figure(7.5, 3.4)
    for place, (name, good) in enumerate(stable.items()):
        tone = TONES[name]
        found = np.array([steps[name, rate] for rate in good])
        spread = np.abs([found.min(axis=1), found.max(axis=1)] - found.mean(axis=1))
        axes.errorbar(np.array(good) * 1.02 ** (place - 1.5), found.mean(axis=1), spread, label=name, capsize=2,
                      color=style.SERIES[tone], linestyle=style.DASHES[tone], marker="os^D"[place])  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="learning rate", ylabel="steps")
    axes.set_xticks(rates[::2], [f"{rate:.2g}" for rate in rates[::2]])
    axes.set_yticks([50, 100, 200, 500], [50, 100, 200, 500])
    axes.minorticks_off()
    axes.legend(fontsize=8)
    style.label_source(figure, "simulated", f"50 weights, 5 sent a step, mean and range of {len(STARTS)} starts")
    return figure


see(bowls(), "steps until the loss is a hundredth. A curve ends where not every start gets there within 1,000 steps; "
    "points at one learning rate are drawn a little apart.")  # fmt: skip
fastest = {name: min(stable[name], key=lambda rate: steps[name, rate].mean()) for name in METHODS}
last = {name: max(stable[name]) for name in METHODS}
winner = max(list(METHODS)[1:], key=last.get)
say("Highest learning rate with which all starts arrive, and steps at the best one: "
    + "; ".join(f"{name} {last[name]:.2g}, {steps[name, rate].mean():.0f} ({steps[name, rate].min()} to "
                f"{steps[name, rate].max()})" for name, rate in fastest.items())
    + f". Your guess: {guess_break.against(winner)}.")  # fmt: skip

# %% [markdown]
# On this problem late and corrected momentum need nearly the same number of steps. Both become unstable at a learning
# rate at which dense training is not: the staleness of chapter 06. Masking is *slower* at low learning rates, where it
# throws momentum away, and stable at higher ones. (We tried no learning rate beyond the right end of the picture.)
#
# A common misprint prints DGC *without* the line that sets $v$ to 0. What is printed is our "momentum correction": a
# correct method, but another one.
#
# ## The rest of DGC: clipping and a warm-up
#
# **Clipping.** A gradient longer than a limit is shortened to the limit. In DGC each node clips *before* it adds to its
# residual, when no node knows the sum yet. If the gradients of $p$ nodes were independent noise of length $\ell$ each,
# their squares would add up:
#
# $$\Bigl|\sum_i g_i\Bigr|^2 = \sum_i |g_i|^2 + \text{(products, zero on average)} = p\,\ell^2,$$
#
# so the sum has length $\sqrt p\,\ell$. To keep the sum within the limit, a node must clip at $1/\sqrt p$ of it. (The
# paper writes $N^{-1/2}$, with $N$ for our $p$.) But real gradients also have something in common, and what is the same
# on all nodes adds up to $p\,\ell$. How long is the sum of real gradients?

# %% source_hidden=true
train_set, _ = data.digits()
images, labels = train_set[:]
manual_seed(0)
model, rng = nn.models.MLP(64, 128, 10), np.random.default_rng(0)
optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def gradient_of(samples):
    optimizer.zero_grad()
    F.cross_entropy(model(Tensor(images[samples])), labels[samples]).backward()
    return np.concatenate([parameter.grad.ravel() for parameter in model.parameters()])


rows, when, counts = [], {0: "at the start", 300: "after 300 steps"}, (4, 16, 64)
for step in range(301):
    if step in when:
        nodes = np.array([gradient_of(rng.choice(len(images), 16, replace=False)) for _ in range(64)])
        one = np.sqrt((nodes**2).sum(axis=1).mean())
        rows.append([when[step], *(f"{np.linalg.norm(nodes[:p].sum(axis=0)) / one:.1f}" for p in counts)])
    gradient_of(rng.choice(len(images), 64, replace=False))
    optimizer.step()
rows += [["independent: sqrt(p)", *(f"{p**0.5:.1f}" for p in counts)], ["the same on all nodes: p", *map(str, counts)]]
table(["length of the sum / length of one", *(f"p = {p}" for p in counts)], rows,
      "measured: 16 samples a node; last two rows: formula")  # fmt: skip

# %% [markdown]
# At the start the nodes agree in part, so a sum of clipped gradients may be longer than the limit. Later the noise is a
# larger part, and the rule comes closer.
#
# **Warm-up.** Early gradients change fast, and waiting does most harm then, say Lin et al. So DGC sends more in the
# first epochs: a quarter of the numbers, then a quarter of that, and so on. It is a warm-up of the *density*; the one
# of [08b](08b_warm_up.ipynb) was of the learning rate.

# %% source_hidden=true
usual = compress.DGC(0.001)
say("Left out in epochs 1 to 5 (Lin et al. and minidl): "
    + ", ".join(f"{100 * (1 - d):g} %" for d in (*usual.warmup, usual.density)) + "; $1 - 4^{-epoch}$: "
    + ", ".join(f"{100 * (1 - 0.25**e):.2f} %" for e in range(1, 6)) + ".")  # fmt: skip

# %% [markdown]
# ## Measure: what each part is worth
#
# Digits, 64-128-10, 4 simulated nodes, momentum 0.9, 0.1 % of each layer, at a low and at a high learning rate. The row
# to watch is the **control**: gradient dropping (09a's top-k with a residual, late momentum) with DGC's warm-up of the
# density and nothing else of DGC.

# %%
SEEDS, MOMENTUM, EPOCHS = range(3), 0.9, {0.1: 20, 0.4: 10}  # epochs by learning rate
DGC = compress.DGC(0.001, MOMENTUM)
DROPPING = compress.DGC(0.001, momentum_correction=False, warmup=())
WAYS = {
    "dense": None,
    "dropping": DROPPING,
    "correction, masking": compress.DGC(0.001, MOMENTUM, warmup=()),
    "dropping, warm-up (control)": replace(DROPPING, warmup=DGC.warmup),
    "correction, warm-up": compress.DGC(0.001, MOMENTUM, masking=False),
    "correction, masking, warm-up: DGC": DGC,
}


def he_mlp():
    """The first weights of He et al. (02b), which do not depend on luck."""
    model = nn.models.MLP(64, 128, 10)
    for parameter in model.parameters():
        (nn.init.kaiming_normal_ if parameter.ndim == 2 else nn.init.zeros_)(parameter)
    return model


@cache
def train(way, rate, seed):
    momentum = 0.0 if way.startswith("correction") else MOMENTUM  # of the optimizer
    job = parallel.Job(
        he_mlp, data.digits, partial(optim.SGD, lr=rate, momentum=momentum), epochs=EPOCHS[rate], seed=seed
    )
    strategy = parallel.Synchronous(compressor=WAYS[way], algorithm="ring")
    return parallel.train(job, strategy, 4, cluster.Simulation(trace="ledger"))


def error(way, rate):
    return [100 - 100 * train(way, rate, seed).accuracy for seed in SEEDS]


def loss(way, rate):
    return np.mean([train(way, rate, seed).history[-1]["loss"] for seed in SEEDS])


# %%
guess_control = guess("Learning rate 0.1: how many points of error does DGC save, against the control?", unit="points")

# %% source_hidden=true
for way in bar(WAYS, "training with learning rate 0.1, three seeds each"):
    error(way, 0.1)

# %% source_hidden=true
for way in bar(WAYS, "training with learning rate 0.4, three seeds each"):
    error(way, 0.4)
rows = []
for way in WAYS:
    last = train(way, 0.1, 0).history[-1]
    found = {rate: error(way, rate) for rate in EPOCHS}
    rows.append([way, *(f"{np.mean(e):.1f} ({min(e):.1f} to {max(e):.1f}) %, {loss(way, rate):.3f}"
                        for rate, e in found.items()), f"{last['bytes'] / last['steps']:,.0f}"])  # fmt: skip
head = [f"learning rate {rate}, {epochs} epochs: error, loss" for rate, epochs in EPOCHS.items()]
table(["", *head, "bytes a step and node"], rows,
      f"simulated: 0.1 % sent, {len(SEEDS)} seeds: mean test error (lowest to highest), mean training loss; bytes: at "
      "learning rate 0.1")  # fmt: skip
CONTROL, ALL = "dropping, warm-up (control)", "correction, masking, warm-up: DGC"
low, high = (np.mean(error(CONTROL, rate)) - np.mean(error(ALL, rate)) for rate in EPOCHS)
first = np.mean(error("dropping", 0.1)) - np.mean(error(CONTROL, 0.1))
ratio = loss(CONTROL, 0.4) / loss("correction, warm-up", 0.4)
every = all(train(CONTROL, 0.4, seed).history[-1]["loss"] > train("correction, warm-up", 0.4, seed).history[-1]["loss"]
            for seed in SEEDS)  # fmt: skip
say(f"Learning rate 0.1: the warm-up alone takes {first:.1f} points off the error of dropping; DGC saves "
    f"{low:.1f} points against the control (your guess: {guess_control.against(low)}). One of the {len(data.digits().test)} "
    f"test images is {100 / len(data.digits().test):.1f} points. Learning rate 0.4: DGC saves {high:.1f} points, with "
    f"overlapping ranges, and the control has {ratio:.0f} times the training loss of correction with warm-up (higher with every seed: "
    f"{every}).")  # fmt: skip

# %% [markdown]
# The answer depends on the learning rate:
#
# - **At the low one momentum correction makes no difference that we can see.** The warm-up alone brings dropping back
#   to dense. A comparison of DGC with dropping *without* a warm-up would credit the momentum with what the warm-up did.
#   The warm-up has a price: look at the bytes. (On ImageNet, Lin et al. warm up for 4 of 90 epochs; we do for 4 of 20.)
# - **At the high one the correction helps**: with it the training loss is below that of dropping, with the warm-up or
#   without. A likely reason: late momentum moves a weight on for about ten more steps, in a direction that was right
#   long ago, and no node sends a gradient against it.
#
# Masking was stable at the highest learning rate on the quadratic, and does not help here: during the warm-up up to a
# quarter of the entries is sent in each step, and an entry that is sent often has little momentum under masking. We
# found no setting in which all parts of DGC are needed at once. Our network is small, and we tried two learning rates.

# %% source_hidden=true
shown = ("dense", "dropping", CONTROL, "correction, warm-up", ALL)
panels = []
for rate in EPOCHS:
    curves = []
    for tone, way in enumerate(shown):
        mean = np.mean([[row["loss"] for row in train(way, rate, seed).history] for seed in SEEDS], axis=0)
        name = "DGC" if way == ALL else way
        label = name if rate == 0.1 else ""  # one legend for both
        curves.append(lines.Line(label, range(1, EPOCHS[rate] + 1), mean, tone=(6, 0, 1, 2, 3)[tone]))
    panels.append(lines.Panel(curves, "epoch", "training loss", f"learning rate {rate}", log="y", ylim=(1e-3, 5)))
see(lines.draw(panels, source="simulated", height=3.6),
    "means of the seeds. On the left all curves fall; dropping and DGC start late, and dropping ends lowest. On the "
    "right (same colours) the curves of dropping stay high, with a warm-up or without. Those with momentum "
    "correction go on falling, DGC, which also masks, more slowly.")  # fmt: skip

# %% [markdown]
# ## Break it: momentum twice
#
# The classic mistake when DGC is put into a program that works: the optimizer's momentum stays switched on. Then
# momentum is applied twice: the optimizer keeps a velocity of what are velocities already. A gradient of 1 in each of
# 100 steps, sent every 10:

# %% source_hidden=true
sent = np.diff([0.0, *corrected([1.0] * 100, set(range(9, 100, 10)), 0.9)])
*_, twice = dense(sent, {}, 0.9)
*_, right = dense([1.0] * 100, {}, 0.9)
table(["", "moved after 100 steps"], [["momentum once", f"{right:,.0f}"], ["momentum twice", f"{twice:,.0f}"]],
      "measured: m = 0.9")  # fmt: skip
try:
    optimizer = partial(optim.SGD, lr=0.1, momentum=0.9)
    parallel.train(parallel.Job(he_mlp, data.digits, optimizer), parallel.Synchronous(compressor=DGC), 2, "simulation")
except ValueError as refusal:
    print(f"minidl: {refusal}")

# %% [markdown]
# In the long run that is another factor of $\frac{1}{1-m}$ = 10 on the learning rate. You recognise the mistake when
# training works at a tenth of the learning rate. The opposite mistake, momentum in neither place, looks like plain SGD.
#
# ## What the papers report
#
# **Lin, Han, Mao, Wang and Dally (2018)**, *Deep gradient compression* (arXiv:1712.01887), table 2: accuracy of
# ResNet-110 on CIFAR-10.

# %% source_hidden=true
table(["batch on GPUs", "dense", "gradient dropping", "DGC", "DGC - dropping"],
      [[where, *(f"{x:.2f}" for x in found), f"{found[2] - found[1]:+.2f}"] for where, *found in (
          ("128 on 4", 93.75, 92.75, 93.87), ("256 on 8", 92.92, 93.02, 93.28),
          ("512 on 16", 93.14, 92.93, 93.20), ("1024 on 32", 93.10, 92.10, 93.18))],
      "Lin et al. (2018), table 2, accuracy in %; the last column is computed")  # fmt: skip

# %% [markdown]
# Where DGC gains most, it gains about a point. Their dropping has neither correction nor warm-up, so the table cannot
# say which of the two made the difference. Our control separates them, for a small network. For speech (AN4) they
# report a word error rate that falls from 14.1 % to 12.9 % with momentum correction and clipping.
#
# How small DGC's messages are, and what remains of that when they are added up, is the subject of
# [09c](09c_sparse_sums.ipynb).
#
# The same comparison in minutes, with 30 epochs: `benchmarks/reproductions/deep_gradient_compression.py`.
#
# ## To the exercises
#
# [Exercises of chapter 09](../exercises/09_gradient_compression/09_gradient_compression.ipynb): momentum correction,
# checked against the closed form of this page, for random $m$, $T$ and numbers of nodes.
#
# **Three questions to argue about**
#
# 1. Late momentum moves a weight in steps in which nobody sends anything about it. Is that an advantage of late
#    momentum, or its problem?
# 2. Each node keeps a velocity and a residual of $n$ numbers. Compare that with what Adam keeps. Can both be had?
# 3. A paper compares its new method (with a warm-up) with the old one (without). Which run do you ask for?
#
# Next: [09c](09c_sparse_sums.ipynb) asks what it costs to *add up* what the nodes send.
