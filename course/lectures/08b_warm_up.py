# %% [markdown]
# # 08b. Warm-up: why does a learning rate that is right later fail in the first hundred steps?
#
# *Read [08a](08a_linear_scaling.ipynb) first: the linear scaling rule. [02c](02c_step_sizes.ipynb) has the limit of the
# learning rate on a parabola. Reading time: about 20 minutes. Figures are* measured *or come from a* formula.
#
# ## The question
#
# A deeper network than in 08a: five layers of weights instead of two, on the same 8x8 digits. Minibatches of $B$ = 128
# samples, learning rate (on this page: rate) $\eta$ = 0.32, momentum $m$ = 0.9, 30 epochs. Ten runs differ in nothing
# but the seed, which draws the first weights and the order of the samples.

# %% source_hidden=true
from functools import cache, partial
from itertools import combinations, islice
from math import ceil

import numpy as np
from threadpoolctl import threadpool_limits

from course.figures.page import say, see, table
from course.interaction import bar, explore, guess, warm_up
from minidl import Tensor, cluster, data, nn, optim, parallel
from minidl import functional as F
from minidl.plots import lines, style

warm_up()
one_thread = threadpool_limits(1)  # matrices as small as ours are not worth a second thread
DIGITS = data.digits()
FAILED = 20.0  # test error in % above which we call a run failed

# %%
EPOCHS, B0, MOMENTUM = 30, 16, 0.9


def he_network(layers):
    """Hidden layers of 64 units; first weights of He et al. (2015), with which deep networks learn from the start."""
    model = nn.models.MLP(64, *[64] * (layers - 1), 10)
    for parameter in model.parameters():
        (nn.init.kaiming_normal_ if parameter.ndim == 2 else nn.init.zeros_)(parameter)
    return model


def job(B, rate, layers=5, seed=0, epochs=EPOCHS, optimizer=optim.SGD, milestones=(18, 25.5), **warm):
    """Train with minibatches of B samples; `rate` belongs to B0 samples and is scaled linearly; `warm`: the warm-up."""
    schedule = partial(optim.LargeBatchLR, batch_size=B, base_batch_size=B0, milestones=milestones, **warm)
    rule = partial(optimizer, lr=rate, momentum=MOMENTUM, weight_decay=1e-4)
    return parallel.Job(partial(he_network, layers), DIGITS, rule, schedule, batch_size=B, epochs=epochs, seed=seed)


# %% source_hidden=true
def outcome(this):
    """The test error in % and the training loss of each epoch; a run that overflows counts as one that guesses."""
    losses = []
    try:
        report = parallel.train(this, on=cluster.Simulation(trace="ledger"),
                                progress=lambda now: losses.append(now.loss) if now.row else None)  # fmt: skip
    except parallel.NonFiniteLoss:
        return 90.0, losses
    return 100 * (1 - report.accuracy), losses


@cache
def train(B, rate, seed, layers=5, **warm):
    return outcome(job(B, rate, layers, seed, **warm))


def failures(found):
    return sum(e > FAILED for e in found)


# %%
guess_failed = guess("How many of the ten runs end with more than 20 % test error?", unit="runs")

# %% source_hidden=true
# measured: differs from run to run
first = [train(128, 0.04, seed, warmup="none")[0] for seed in bar(range(10), "ten seeds")]
say("Test errors of the ten runs, sorted: " + ", ".join(f"{e:.1f} %" for e in sorted(first))
    + f". Your guess: {guess_failed.against(failures(first))}.")  # fmt: skip

# %% [markdown]
# Some runs learn, others guess. (Runs like these are chaotic: a rounding error grows until it decides between the two.
# On another computer other seeds fail, about as many.)
#
# The rate is not too high for this network. Runs that begin well keep it for 18 epochs and end well. It is too high *at
# the start*. This page shows why, and what to do.
#
# ## Three ways to begin
#
# The base rate $\eta_0$ belongs to $B_0$ = 16 samples, and $k = B/B_0$. The linear rule's peak is $k\eta_0$. Goyal et
# al. (2017) compare three beginnings: **none**, the peak from the first step; **constant**, 5 epochs at $\eta_0$, then
# the peak; **gradual**, 5 epochs on a straight line from $\eta_0$ to the peak. We add a longer one: 10 epochs from 0.

# %%
WAYS = {"none": {"warmup": "none"}, "constant": {"warmup": "constant", "warmup_epochs": 5},
        "gradual": {"warmup": "gradual", "warmup_epochs": 5},
        "10 epochs from 0": {"warmup": "gradual", "warmup_epochs": 10, "start_factor": 0.0}}  # fmt: skip


def rate_at(epoch, way, k, base):
    """The rate before the first drop."""
    peak, start, length = k * base, base, 5
    if way == "10 epochs from 0":
        start, length = 0.0, 10
    if way == "none" or epoch >= length:
        return peak
    return start if way == "constant" else start + (peak - start) * epoch / length


# %% source_hidden=true
def rates_of_minidl(B, base, way, epochs):
    steps = ceil(len(DIGITS.train) / B)
    weight = Tensor(0.0, requires_grad=True)
    schedule = job(B, base, **WAYS[way]).schedule(optim.SGD([weight], lr=base), steps)
    return [base * schedule.factor(step) for step in range(epochs * steps)]


steps = ceil(len(DIGITS.train) / 128)
ours = {way: [rate_at(step / steps, way, 8, 0.04) for step in range(15 * steps)] for way in WAYS}
same = all(np.allclose(ours[way], rates_of_minidl(128, 0.04, way, 15)) for way in WAYS)
curves = [lines.Line(way, np.arange(15 * steps) / steps, values) for way, values in ours.items()]
see(lines.draw([lines.Panel(curves, "epoch", "rate")], source="formula", height=2.8),
    "all beginnings lead to the rate 0.32; the constant one gets there by a jump. "
    f"(128 samples, base rate 0.04. Equal to minidl's in every step: {same}.)")  # fmt: skip

# %% [markdown]
# Two settings with the same peak rate of 0.32: 256 samples (base rate 0.02, $k = 16$) and 128 samples (base rate 0.04,
# $k = 8$). Twenty seeds each.

# %%
guess_worst = guess("Which beginning fails most often with 256 samples?", ["none", "constant", "gradual"])

# %% source_hidden=true
# measured: differs from run to run
SEEDS, SETTINGS = range(20), {256: 0.02, 128: 0.04}
cases = [(B, rate, way, seed) for B, rate in SETTINGS.items() for way in WAYS for seed in SEEDS]
errors = {(B, way): [] for B in SETTINGS for way in WAYS}
for B, rate, way, seed in bar(cases, "160 runs"):
    errors[B, way].append(train(B, rate, seed, **WAYS[way])[0])
shallow = [train(256, 0.02, seed, layers=2, warmup="none")[0] for seed in SEEDS]
failed = {case: failures(found) for case, found in errors.items()}
worst = max(("none", "constant", "gradual"), key=lambda way: failed[256, way])


def uncertain(count):
    """Standard deviation of a count of failures."""
    return np.sqrt(count * (1 - count / len(SEEDS)))


def row(layers, B, way, found):
    count = failures(found)
    return [layers, B, way, f"**{count}** ± {uncertain(count):.1f}", f"{np.median(found):.1f} %"]


table(["layers", "B", "beginning", f"failures of {len(SEEDS)}", "median error"],
      [*(row(5, B, way, found) for (B, way), found in errors.items()), row(2, 256, "none", shallow)],
      f"measured; failure: error above {FAILED:.0f} %; ±: standard deviation of the count; your guess for the worst "
      f"with 256: {guess_worst.against(worst)}")  # fmt: skip

# %% source_hidden=true
# measured: differs from run to run
with style.applied():
    figure, places = style.new_figure(9.6, 3.4, columns=2, sharey=True)
    for axes, B in zip(places, SETTINGS, strict=True):
        for tone, way in enumerate(WAYS):
            axes.plot(range(1, len(SEEDS) + 1), sorted(errors[B, way]), style.DASHES[tone], color=style.SERIES[tone],
                      marker="os^D"[tone], markersize=3.5, label=way)  # fmt: skip
        axes.axhline(FAILED, color="0.4", linewidth=0.8, linestyle=(0, (1, 2)))
        axes.set(yscale="log", xlabel="runs, from the best to the worst", title=f"B = {B}, peak rate 0.32")
        axes.set_yticks([2, 5, 10, 20, 90], ["2", "5", "10", "20", "90"])
        axes.set_xticks([1, 5, 10, 15, 20])
        axes.minorticks_off()
    places[0].set_ylabel("test error (%)")
    places[0].legend(title="beginning", fontsize=8)
    style.label_source(figure, "measured", "five layers, 20 seeds each; dotted: above it a run has failed")
see(figure, "a curve that jumps to 90 early belongs to a beginning that often fails. On the left that is "
    f"'{max(WAYS, key=lambda way: failed[256, way])}', on the right '{max(WAYS, key=lambda way: failed[128, way])}'; "
    f"the last to jump is '{min(WAYS, key=lambda way: failed[128, way])}'.")  # fmt: skip


def apart(B, one, other):
    """How many standard deviations two counts are apart."""
    a, b = failed[B, one], failed[B, other]
    return abs(a - b) / max(np.hypot(uncertain(a), uncertain(b)), 1)


*others, long = WAYS
least, most = min(apart(128, way, long) for way in others), max(apart(128, *two) for two in combinations(others, 2))
say(f"In standard deviations apart: with 256 samples *constant* and *none* {apart(256, 'constant', 'none'):.1f}; with "
    f"128 *{long}* and any other at least {least:.1f}, two of the others at most {most:.1f}. Below 2 two beginnings "
    "may differ by chance alone.")  # fmt: skip

# %% [markdown]
# With 256 samples a constant warm-up is *worse than none*. With 128 samples the longest warm-up fails least; the
# differences between the others are too small. With two layers of weights no run fails, even without warm-up.
#
# ## Why?
#
# In a direction of curvature $h$, SGD with momentum is stable while (02c)
#
# $$\eta\, h < 2\,(1 + m) = 3.8 .$$
#
# So look at the **largest curvature** of the training loss while a run goes on. The curvature along a unit vector $d$
# needs no second derivatives: go a little way $\varepsilon$ along $d$ and see how much the gradient changes.
#
# $$H d \approx \frac{\nabla f(w + \varepsilon d) - \nabla f(w - \varepsilon d)}{2 \varepsilon}.$$
#
# Now take the gradient, apply $H$ to it, apply $H$ again, and so on, and make each vector perpendicular to those
# before. Seven such directions are the columns of a matrix $Q$. They soon contain the direction of the largest
# curvature, so the largest eigenvalue of the small matrix $Q^\top H Q$ is that of $H$, nearly. (This is Lanczos'
# method.) We take $\varepsilon = 0.01$. A much smaller one measures the switching of single ReLUs, where the gradient
# jumps. `loss_and_gradient` (collapsed) takes all weights as one vector, and 512 training samples.

# %% source_hidden=true
SAMPLE = DIGITS.train.x[:512].reshape(512, -1), DIGITS.train.y[:512]


def loss_and_gradient(flat, shapes):
    """The training loss on 512 samples and its gradient, for all weights as one vector."""
    ends = np.cumsum([np.prod(shape) for shape in shapes])
    weights = [Tensor(part.reshape(shape), requires_grad=True)
               for part, shape in zip(np.split(flat, ends[:-1]), shapes, strict=True)]  # fmt: skip
    hidden = Tensor(SAMPLE[0])
    for number, (weight, bias) in enumerate(zip(weights[::2], weights[1::2], strict=True), start=1):
        hidden = hidden @ weight.T + bias
        hidden = F.relu(hidden) if 2 * number < len(weights) else hidden
    loss = F.cross_entropy(hidden, SAMPLE[1])
    loss.backward()
    return loss.item(), np.concatenate([weight.grad.ravel() for weight in weights])


# %%
def largest_curvature(flat, shapes, rounds=7, little=0.01):
    _, d = loss_and_gradient(flat, shapes)
    directions, curved = [], []
    for _ in range(rounds):
        for other in directions:
            d = d - (d @ other) * other
        d = d / np.linalg.norm(d)
        ahead, behind = (loss_and_gradient(flat + sign * little * d, shapes)[1] for sign in (1, -1))
        directions.append(d)
        curved.append((ahead - behind) / (2 * little))
        d = curved[-1]
    small = np.array(directions) @ np.array(curved).T
    return np.linalg.eigvalsh((small + small.T) / 2)[-1]


# %% source_hidden=true
def known_parabola():
    """A loss whose curvature we know: one layer, all weights 0, so that every class has probability 1/10."""
    flat, shapes = np.zeros(650, np.float32), [(10, 64), (10,)]
    inputs = np.concatenate([SAMPLE[0], np.ones((512, 1))], axis=1)
    exact = np.linalg.eigvalsh(inputs.T @ inputs / 512)[-1] * 0.1
    return largest_curvature(flat, shapes), exact


say("Check on a single layer at $w = 0$: {:.4f} by seven directions, {:.4f} exact.".format(*known_parabola()))

# %% [markdown]
# A training loop that looks before it steps: every fourth step it writes down the rate, the curvature and the loss. The
# job builds the same network and draws the same samples as above.


# %%
def watch(B, way, seed, steps=104, every=4, layers=5):
    """Rows step, rate, largest curvature, loss of the first steps of a run; it ends when the loss exceeds 100."""
    this = job(B, SETTINGS[B], layers, seed, **WAYS[way])
    model = this.build_model()
    optimizer = this.build_optimizer(model)
    schedule = this.build_schedule(optimizer, len(DIGITS.train))
    order = this.order(DIGITS.train, 1, B)
    minibatches = (order(epoch)[i : i + B] for epoch in range(EPOCHS) for i in range(0, len(DIGITS.train), B))
    seen = []
    for step, part in enumerate(islice(minibatches, steps)):
        if step % every == 0:
            weights = list(model.parameters())
            flat, shapes = np.concatenate([w.data.ravel() for w in weights]), [w.shape for w in weights]
            loss, _ = loss_and_gradient(flat, shapes)
            if not loss < 100:
                break
            seen.append((step, optimizer.param_groups[0]["lr"], largest_curvature(flat, shapes), loss))
        optimizer.zero_grad()
        F.cross_entropy(model(Tensor(DIGITS.train.x[part])), DIGITS.train.y[part]).backward()
        optimizer.step()
        schedule.step()
    return np.array(seen).T


# %%
guess_peak = guess("To how many times its first value does the largest curvature rise, without warm-up, in 50 steps?",
                   unit="times")  # fmt: skip

# %% source_hidden=true
# measured: differs from run to run
STARTS, FEW = [(128, "none"), (256, "none"), (256, "constant"), (128, "10 epochs from 0")], range(4)
LIMIT = 2 * (1 + MOMENTUM)
fails = {start: [e > FAILED for e in errors[start]] for start in STARTS}
one = fails[256, "constant"].index(True)  # a constant warm-up that fails
watched = [(*start, seed) for start in STARTS for seed in ({*FEW, one} if start[1] == "constant" else FEW)]
with np.errstate(all="ignore"):
    seen = {run: watch(*run) for run in bar(watched, "watching the runs")}
    flat = [watch(256, "none", seed, steps=50, layers=2) for seed in FEW]


def peak_of(run):
    """The largest curvature in the first 50 steps."""
    step, _, curvature, _ = run
    return curvature[step < 50].max()


def span(values, form=".0f"):
    return f"{min(values):{form}} to {max(values):{form}}"


rows, five = [], [seen[128, "none", seed] for seed in FEW]
for name, runs in (("five", five), ("two", flat)):
    first, peaks = [run[2][0] for run in runs], [peak_of(run) for run in runs]
    rows.append([name, span(first, ".1f"), span([LIMIT / h for h in first], ".1f"), span(peaks, ".1f"),
                 span([LIMIT / h for h in peaks], ".2f")])  # fmt: skip
table(["layers", "curvature before step 1", "stable rate there", "peak, steps 0 to 48", "stable rate there"], rows,
      f"measured, no warm-up, {len(FEW)} seeds; stable rate: 3.8 / curvature; your guess: "
      f"{guess_peak.against(np.mean([peak_of(run) / run[2][0] for run in five]))}")  # fmt: skip

# %% source_hidden=true
# measured: differs from run to run
shown = [(*STARTS[0], fails[STARTS[0]][: len(FEW)].index(True)), (256, "constant", one),
         (*STARTS[-1], fails[STARTS[-1]][: len(FEW)].index(False))]  # fmt: skip
with style.applied():
    figure, places = style.new_figure(9.6, 4.6, columns=3, heights=(1.3, 1), sharex=True, sharey="row")
    for above, below, (B, way, seed) in zip(places[:3], places[3:], shown, strict=True):
        step, rate, curvature, loss = seen[B, way, seed]
        limit = LIMIT / np.maximum(rate, 1e-6)
        above.plot(step, curvature, "o-", color=style.SERIES[0], markersize=3, label="largest curvature, measured")
        above.plot(step, limit, "--", color=style.SERIES[1], label="largest stable curvature 3.8 / rate, formula")
        above.fill_between(step, limit, curvature, curvature > limit, color=style.SERIES[1], alpha=0.25, linewidth=0)
        below.plot(step, loss, color=style.SERIES[2], marker="o", markersize=3)
        above.set(yscale="log", ylim=(1, 1000), yticks=[1, 10, 100, 1000], yticklabels=["1", "10", "100", "1,000"])
        above.set_title(f"{way}, B = {B}: {'fails' if fails[B, way][seed] else 'survives'}", fontsize=9)
        below.set(yscale="log", xlabel="step", xlim=(0, 104), yticks=[0.1, 1], yticklabels=["0.1", "1"])
        above.minorticks_off()
    places[0].set_ylabel("curvature")
    places[3].set_ylabel("training loss")
    figure.legend(*places[0].get_legend_handles_labels(), loc="outside upper center", ncols=2, fontsize=8)
    style.label_source(figure, ("measured", "formula"), "512 training samples, every fourth step, until it overflows")
see(figure, "a step is stable while the solid line is below the dashed one. Left: the curvature passes it as soon as "
    "the loss begins to fall, and again and again (shaded). Middle: the small rate allows any curvature; when it "
    "jumps, after 30 steps, the curvature jumps, too. Right: the same rise of the curvature happens, later, and finds "
    "a rate that is still small.")  # fmt: skip

# %% source_hidden=true
# measured: differs from run to run
rows = []
for B, way in STARTS:
    found = np.concatenate([seen[B, way, seed] for seed in FEW], axis=1)
    products, late = (found[1] * found[2])[found[0] < 50], found[2][found[0] >= 60]
    rows.append([way, B, span([peak_of(seen[B, way, seed]) for seed in FEW]), f"{np.mean(products > LIMIT):.0%}",
                 f"{products.max():.1f}", f"{np.median(late):.0f}, hence {LIMIT / np.median(late):.2f}"])  # fmt: skip
head = ["beginning", "B", "peak curvature", "rate x curvature above 3.8", "highest product", "late; stable rate"]
note = "columns 3 to 5: steps 0 to 48; last column: median curvature of steps 60 to 100"
table(head, rows, f"measured, {len(FEW)} seeds; {note}")

# %% [markdown]
# There is the answer. **The curvature is small before training, rises when the network begins to learn, and falls when
# it has learned.** Every run has to pass this rise. At the full rate the product of rate and curvature is far above the
# limit there: each step overshoots and throws the weights further away. Some runs land where all is well; others
# overflow, or end where the network guesses, and stay there. The long warm-up meets the same curvature while the rate
# is still small. Later the network is sure of most samples. The curvature of softmax and cross-entropy along an output
# is $q(1 - q)$, with $q$ the probability of the class, and this is small when $q$ is near 0 or 1. The same rate is
# stable then.
#
# The constant warm-up jumps at the worst moment. Five epochs at the small rate take the loss just to where the rise
# begins, and the jump throws the network into it at the full rate. That is how a warm-up can be worse than none.
#
# What the limit does not explain: with 256 samples and no warm-up the product is above it, too (second row of the last
# table), and fewer runs fail. Each epoch has half as many steps, with less noise. The limit says where a run is in
# danger, not whether it survives.
#
# ## Turn it
#
# How long must the warm-up be? From 0 to the peak, base rate 0.04 for 16 samples. Four seeds a picture:


# %% source_hidden=true
# measured: differs from run to run
def beginnings(axes, warm_up_epochs, minibatch):
    settings = {"warmup": "gradual", "warmup_epochs": warm_up_epochs, "start_factor": 0.0}
    for seed in FEW:
        losses = np.minimum(train(minibatch, 0.04, seed, **settings)[1], 15)
        axes.plot(range(1, len(losses) + 1), losses, color=style.SERIES[0], linewidth=1)
        if 0 < len(losses) < EPOCHS:
            axes.plot(len(losses), losses[-1], "x", color=style.SERIES[1], markersize=8)
    axes.set(yscale="log", ylim=(1e-4, 50), xlabel="epoch", ylabel="training loss", xlim=(0, EPOCHS))
    rates, peak = axes.twinx(), 0.04 * minibatch / B0
    epochs = np.linspace(0, EPOCHS, 301)
    plan = [peak * (e / warm_up_epochs if e < warm_up_epochs else 0.1 ** ((e >= 18) + (e >= 25.5))) for e in epochs]
    rates.plot(epochs, plan, "--", color="0.5", linewidth=1)
    rates.set(ylim=(0, 1.4), ylabel="rate (dashed)")
    rates.spines["right"].set_visible(True)


FOUR = [(0, 128), (10, 128), (10, 256), (20, 256)]
settings = [{"warmup": "gradual", "warmup_epochs": length, "start_factor": 0.0} for length, _ in FOUR]
lost = [failures(train(B, 0.04, seed, **setting)[0] for seed in FEW)
        for (_, B), setting in zip(FOUR, settings, strict=True)]  # fmt: skip
explore(
    beginnings,
    "solid: the training loss of four runs; a cross: the run overflowed; dashed: the rate. A run fails when its loss "
    f"stays at 2.3, that of guessing, or overflows. With 128 samples {lost[0]} of {len(FEW)} fail without warm-up and "
    f"{lost[1]} with one of 10 epochs; with 256, whose peak rate is twice as high, {lost[2]} after 10 epochs and "
    f"{lost[3]} after 20.",
    warm_up_epochs=[10, 0, 1, 2, 5, 20],
    minibatch=[128, 64, 256],
    source="measured",
    height=2.8,
    multiples=[{"warm_up_epochs": length, "minibatch": B} for length, B in FOUR],
)

# %% [markdown]
# ## When the rate changes: momentum correction
#
# In a warm-up the rate changes in every step. That matters for the form of momentum (02c). The $u$-form, PyTorch's,
# multiplies the whole sum of gradients by the new rate: $u \leftarrow mu + g$, $w \leftarrow w - \eta u$. The $v$-form
# has the rate inside, $v \leftarrow mv + \eta g$, $w \leftarrow w - v$. Its past gradients still carry the old rate.
# Substitute $v = \eta u$: when $\eta$ becomes $\eta'$, the $v$-form needs the factor $\eta'/\eta$ on $mv$ for one step,
# and is the $u$-form again. (Goyal et al., remark 2: **momentum correction**.)


# %% source_hidden=true
def weights(form, epochs, correct=False):
    """The weights of two layers after some epochs, as one vector; momentum in the given form."""
    this = job(128, 0.05, 2, epochs=epochs, optimizer=partial(optim.SGD, momentum_form=form), milestones=(8,),
               warmup_epochs=5, momentum_correction=correct)  # fmt: skip
    report = parallel.train(this, on=cluster.Simulation(trace="ledger"))
    return np.concatenate([w.ravel() for w in report.checkpoint.model.values()])


forms = {"v, corrected": ("v", True), "v, not corrected": ("v", False)}
rows = [[name, *(f"{np.abs(weights(form, e, correct) - weights('u', e)).max():.1e}" for e in (1, 5, 9))]
        for name, (form, correct) in forms.items()]  # fmt: skip
table(
    ["form", "after epoch 1", "5, peak reached", "9, after a drop by 10"],
    rows,
    "measured: largest difference of a weight from the u-form",
)

# %% [markdown]
# Corrected, the two are the same up to rounding. Not corrected, the $v$-form is a slower warm-up than the one you asked
# for, because its velocity carries the lower rates of the last ten steps or so. After a drop it is the other way round.
#
# ## Break it: whose epoch?
#
# "5 epochs of warm-up" must be counted somewhere. Eight nodes, 128 samples a step. A program that divides the samples
# of *all* nodes by the size of *its own* shard counts epochs 8 times too fast. One that divides its own samples by the
# size of the whole set counts 8 times too slowly.
#
# In the second row of the table only the warm-up is counted too fast; the rate drops after 18 and 25.5 true epochs, as
# in the first row. So these two rows differ in the warm-up alone. In the third row both are counted too slowly.

# %% source_hidden=true
# measured: differs from run to run
COUNTS = {"right": (5, {}), "8 times too fast": (5 / 8, {}), "8 times too slowly": (40, {"milestones": (144, 204)})}
rows = []
for name, (length, drops) in bar(COUNTS.items(), "whose epoch?"):
    runs = [train(128, 0.04, s, warmup="gradual", warmup_epochs=length, **drops) for s in range(12)]
    good = [(e, losses[-1]) for e, losses in runs if e <= FAILED]
    miss, loss = np.mean(good, axis=0)
    peak, drops_come = (0.32, "yes") if length < EPOCHS else (0.04 + 0.28 * EPOCHS / length, "never")
    rows.append([name, failures([e for e, _ in runs]), f"{miss:.1f}", f"{loss:.4f}", f"{peak:.2f}", drops_come])
table(["epochs are counted", "failures of 12", "error of the others (%)", "their last training loss", "highest rate",
       "drops"], rows, "measured; last two columns: formula; 8 times too fast: the warm-up alone")  # fmt: skip

# %% [markdown]
# Too fast is like no warm-up. Too slowly is treacherous: no run fails, and the error looks normal. But the rate never
# reached its peak and never dropped. Print the rate of every epoch (minidl's `report.history` has it), and look.
#
# ## What the papers report
#
# **Goyal et al. (2017)** (arXiv:1706.02677, table 1): ResNet-50 on ImageNet, minibatches of 8,192, peak rate 3.2, 5
# epochs of warm-up from 0.1, mean of 5 trials; with 256 samples the error is 23.60 ± 0.12 %.

# %% source_hidden=true
# measured: differs from run to run
PUBLISHED = {"none": "24.84 ± 0.37", "constant": "25.88 ± 0.56", "gradual": "23.74 ± 0.09"}
table(["beginning", "error, ImageNet, published", *(f"failures of {len(SEEDS)}, B = {B}, measured" for B in SETTINGS)],
      [[way, published + " %", *(failures(errors[B, way]) for B in SETTINGS)] for way, published in PUBLISHED.items()],
      "published: top-1 validation error; measured: test error above 20 %")  # fmt: skip

# %% [markdown]
# In the paper *constant* is the worst and *gradual* the best. All its runs learn; ours learn or fail, so we count
# failures. With 256 samples our *constant* is by far the worst, too, but *none* fails as rarely as *gradual*. With 128
# samples the differences are too small. We do not see the paper's whole order in *one* setting.
# (`benchmarks/reproductions/warm_up.py` reports 40 other runs with 128 samples.)
#
# **A second cure** of theirs (table 2b) acts on the network instead of the rate. The last batch norm of every residual
# block starts with the factor $\gamma = 0$, so that each block starts as the identity. The error falls from 23.84 to
# 23.60 % with 256 samples, and from 24.11 to 23.74 % with 8,192.
#
# ## To the exercises
#
# [Exercises of chapter 08](../exercises/08_large_minibatches/08_large_minibatches.ipynb): the schedule with its
# warm-up, and momentum correction.
#
# **Three questions to argue about**
#
# 1. Without warm-up the runs soon leave the stable region. How would you find the largest useful rate for
#    a network in a minute?
# 2. Warm-up makes the rate follow the curvature by the clock. What would a schedule look like that measures
#    instead, and what would it cost?
# 3. One seed in ten fails. Is it honest to report the mean of the other nine? What would you report?
#
# Previous: [08a](08a_linear_scaling.ipynb). Next: [08c](08c_layer_rates.ipynb), where each layer gets a rate of its
# own.
