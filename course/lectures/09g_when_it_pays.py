# %% [markdown]
# # 09g. When does compression pay?
#
# *Read [09c](09c_sparse_sums.ipynb) (sums of sparse gradients), [09d](09d_few_bits.ipynb) (few bits),
# [09e](09e_sign_and_memory.ipynb) (error feedback) and [09f](09f_low_rank.ipynb) (low rank) first. Reading time: about
# 35 minutes. Figures are* measured, simulated *or come from a* formula.
#
# ## The question
#
# This chapter has many ways to send less: 2 times fewer bits, 8 times, 32 times, 50 times. But the question is *when
# the model is trained*. We train the same model with eight methods, on 4 nodes and three networks. We begin with the
# fastest network and a method of one bit a number: the signs, with error feedback (EF).

# %%
import copy
import time
from functools import cache, partial

import numpy as np

from course.figures.page import say, see, table
from course.interaction import bar, explore, guess, warm_up
from minidl import cluster, compress, data, nn, optim, parallel
from minidl import functional as F
from minidl.plots import style

warm_up()

# %% [markdown]
# ## A cluster that charges for coding
#
# The model is small (digits, 64-64-64-64-10), so that every cell runs in seconds. It stands in for a large one: its
# gradient takes as long to send as 25 million numbers (100 MB) and 0.12 s to compute, as in
# [06d](06d_sync_or_async.ipynb). Times below are virtual times of that large model; losses are those of the small one.
# Latency is left out. (Low rank saves less here, in matrices of 64 x 64, than in large ones.)
#
# **Coding takes time, too.** A node *encodes* its gradient before it sends and *decodes* what it receives. We count
# this in **passes**: one pass reads and writes every number of the gradient once, 8 bytes a number. A node whose memory
# moves 500 GB/s makes a pass over 25 million numbers in 0.4 ms.

# %%
NODES, NUMBERS, SECONDS, MEMORY = 4, 25e6, 0.12, 500e9  # SECONDS: of a gradient; MEMORY: bytes/s
PASS = 8 * NUMBERS / MEMORY
with_memory = compress.ErrorFeedback  # EF
METHODS = {
    "dense": None,
    "fp16": compress.Half(),
    "QSGD, 4 bits": compress.QSGD(7),
    "TernGrad": compress.TernGrad(),
    "sign + EF": with_memory(compress.Sign()),
    "top-k 1 % + EF": with_memory(compress.TopK(0.01)),
    "DGC 1 %": compress.DGC(0.01, momentum=0.5, warmup=()),
    "PowerSGD r = 2 + EF": with_memory(compress.PowerSGD(2)),
}
CODING = {  # passes: encode, decode one message, messages to decode; measured once (next cell)
    "fp16": (6, 1.3, 2),
    "QSGD, 4 bits": (90, 33, NODES),
    "TernGrad": (52, 20, NODES),
    "sign + EF": (30, 18, NODES),
    "top-k 1 % + EF": (12, 0.2, NODES),
    "DGC 1 %": (10, 0.2, NODES),
    "PowerSGD r = 2 + EF": (7, 1, 1),
}
AT_BEST = {  # passes of code that reads and writes each array only once; all messages decoded together
    "fp16": (0.75, 1.25), "QSGD, 4 bits": (1.1, 1.0), "TernGrad": (1.1, 0.75), "sign + EF": (2.5, 0.6),
    "top-k 1 % + EF": (3.5, 0.6), "DGC 1 %": (4.5, 0.6), "PowerSGD r = 2 + EF": (3.0, 1.0),
}  # fmt: skip


def passes(method, coding):
    """Passes to encode, and to decode all messages."""
    if method == "dense" or coding == "free":
        return 0.0, 0.0
    if coding == "at best":
        return AT_BEST[method]
    encode, decode, messages = CODING[method]
    return encode, decode * messages


# %% [markdown]
# `CODING` is minidl's own code: numpy, which walks through memory many times. `AT_BEST` is a count on paper, of code
# written for the purpose: sign with error feedback, say, reads gradient and residual (8 bytes a number), writes their
# sum, reads it again and writes the residual (12 bytes): 20 bytes are 2.5 passes. How much does your machine need?

# %%
# measured: differs from run to run
one_million = np.random.default_rng(0).normal(size=(1000, 1000)).astype(np.float32)


def fastest(work, times=5):
    took = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        took.append(time.perf_counter() - began)
    return min(took)


into = np.empty_like(one_million)
one_pass = fastest(lambda: np.multiply(one_million, 2, out=into), 20)
rows = []
for name in bar(list(CODING), "measuring the coding"):
    method, (encode, decode, messages) = METHODS[name], CODING[name]
    message = method.encode(one_million)
    if "%" in name:  # adds up the entries that were sent, no others

        def decoding(sparse=method.compressor if "top-k" in name else method, message=message):
            indices, values = sparse.entries(message)
            into.reshape(-1)[indices] += values
    else:
        decoding = partial(method.decode, message)
    here = [fastest(partial(method.encode, one_million)) / one_pass, fastest(decoding) / one_pass]
    rows.append([name, *(f"{one:.1f}" for one in here), f"{encode}, {decode}", messages,
                 f"{sum(passes(name, 'numpy')):.0f}", f"{sum(AT_BEST[name]):.1f}"])  # fmt: skip
table(["method", "encode, here", "decode, here", "both, as charged below", "messages", "in all", "at best"], rows,
      "in passes; here: measured now on a matrix of 1,000 x 1,000; in all: encode one, decode all messages; "
      "at best: counted")  # fmt: skip

# %% [markdown]
# In a simulation a compressor takes no time by itself. `compress.CodingTime(compressor, encode_seconds,
# decode_seconds)` charges it, per number. Now the cluster:


# %%
images, tests = data.digits()
TRAIN = data.Dataset(*images[:1408])  # 11 minibatches of 128, 32 samples a node


def model():
    net = nn.models.MLP(64, 64, 64, 64, 10)
    for parameter in net.parameters():
        if parameter.ndim > 1:
            parameter.copy_(parameter.numpy() * np.float32(6**0.5))  # He's first weights
    return net


def job(lr=0.1, samples=1408, epochs=4, seed=0, batch=128):
    few = data.Splits(data.Dataset(*TRAIN[:samples]), tests)
    return parallel.Job(model, few, partial(optim.SGD, lr=lr), batch_size=batch, epochs=epochs,
                        seed=seed)  # fmt: skip


weights = sum(parameter.size for parameter in model().parameters())
counting = cluster.Simulation(node=cluster.Node(1.0, np.inf))
flops = parallel.train(job(samples=32, epochs=1, batch=32), on=counting).history[-1]["seconds"]
NODE = cluster.Node(flops / SECONDS, np.inf)
BETA = {name: cluster.Network.preset(preset).beta
        for name, preset in {"1 GbE": "1gbe", "10 GbE": "10gbe", "InfiniBand": "infiniband"}.items()}  # fmt: skip


def as_if_large(beta):
    return cluster.Network(0.0, beta * NUMBERS / weights)


def strategy(method, coding="numpy", overlap=True):
    compressor, per_number = METHODS[method], PASS / weights
    if compressor is not None:
        compressor = compress.CodingTime(compressor, *(one * per_number for one in passes(method, coding)))
    return parallel.Synchronous(bucket_mb=0.016, algorithm="ring", compressor=compressor, overlap=overlap)


@cache
def step(method, beta, coding="numpy", overlap=True):
    """Seconds and bytes of a training step (simulated; the mean of the two of the second epoch)."""
    settings = job(samples=256, epochs=2)
    engine = cluster.Simulation(as_if_large(beta), NODE, trace="ledger")
    first, second = parallel.train(settings, strategy(method, coding, overlap), NODES, engine).history
    return tuple((second[name] - first[name]) / 2 for name in ("seconds", "bytes"))


# %%
guess_sign = guess("Sign sends one bit for every 32. How many times as fast is a training step on InfiniBand?",
                   unit="times")  # fmt: skip

# %%
one, other = (step(method, BETA["InfiniBand"])[0] for method in ("dense", "sign + EF"))
say(f"A step on InfiniBand: dense **{1e3 * one:.0f} ms**, sign **{1e3 * other:.0f} ms** (simulated): with a 32nd of "
    f"the bits, {one / other:.2f} times as fast. Your guess: {guess_sign}.")  # fmt: skip

# %% [markdown]
# Compression makes the step *slower*. There was hardly anything to save, and coding takes time. Up to which bandwidth
# does it pay?
#
# ## The break-even bandwidth
#
# On a network that needs $\beta$ seconds for a byte a compressor saves $\beta$ times the bytes by which a node's
# traffic shrinks. It costs the seconds of coding. It pays while it saves more than it costs, that is, while the
# bandwidth is below
#
# $$\frac1\beta < \frac{\text{bytes saved}}{\text{seconds of coding}}.$$
#
# No other property of the method matters for the time of a step. (This is for communication that nothing hides. Overlap
# comes below.)

# %%
guess_border = guess("Up to which bandwidth does top-k of 1 % pay, with minidl's code on 4 nodes?", unit="Gbit/s")

# %%
dense_bytes = step("dense", BETA["10 GbE"])[1]


def break_even(method, coding):
    """Bytes per second."""
    saved = (dense_bytes - step(method, BETA["10 GbE"])[1]) * NUMBERS / weights
    return saved / (sum(passes(method, coding)) * PASS)


def gbits(bytes_per_second):
    return f"{8e-9 * bytes_per_second:,.0f}" if bytes_per_second >= 1e10 else f"{8e-9 * bytes_per_second:.1f}"


rows, checked = [], []
for method in bar(list(CODING), "looking on both sides of the border"):
    border = break_even(method, "numpy")
    for factor in (0.9, 1.1):
        gain = (step("dense", 1 / (factor * border), overlap=False)[0]
                - step(method, 1 / (factor * border), overlap=False)[0])  # fmt: skip
        checked.append((gain > 0) == (factor < 1))
    rows.append([method, f"{(dense_bytes - step(method, BETA['10 GbE'])[1]) / dense_bytes:.0%}",
                 f"{1e3 * PASS * sum(passes(method, 'numpy')):.1f} ms", gbits(border),
                 gbits(break_even(method, "at best"))])  # fmt: skip
table(["method", "traffic saved", "coding", "break-even, minidl's code (Gbit/s)", "break-even, at best (Gbit/s)"],
      rows, f"traffic: simulated, {NODES} nodes; break-even: formula. Simulated 10 % below and above the border, "
      f"without overlap: {sum(checked)} of {len(checked)} are faster below and slower above; your guess for top-k: "
      f"{guess_border}")  # fmt: skip


# %%
def borders():
    with style.applied():
        figure, [axes] = style.new_figure(8.5, 3.6)
        names = list(CODING)
        for place, method in enumerate(names):
            ends = [8e-9 * break_even(method, coding) for coding in ("numpy", "at best")]
            axes.plot(ends, [place, place], color="0.75", linewidth=2, zorder=1)
        for coding, marker, tone in (("numpy", "o", 0), ("at best", "D", 1)):
            axes.plot([8e-9 * break_even(method, coding) for method in names], range(len(names)), marker,
                      color=style.SERIES[tone], label={"numpy": "minidl's code"}.get(coding, coding))  # fmt: skip
        for name, beta in BETA.items():
            axes.axvline(8e-9 / beta, color="0.4", linewidth=1, linestyle="--")
            axes.annotate(name, (8e-9 / beta, -0.9), xytext=(3, 0), textcoords="offset points", fontsize=8)
        axes.set(xscale="log", xlim=(0.7, 5000), ylim=(len(names) - 0.4, -1.2), xlabel="bandwidth (Gbit/s)")
        axes.set_yticks(range(len(names)), names)
        axes.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
        axes.minorticks_off()
        axes.legend(loc="lower right")
        style.label_source(figure, "formula", f"traffic from the simulation, {NODES} nodes, no overlap")
    return figure


see(borders(), "a method pays on every network to the left of its mark. All pay on 1 GbE. With minidl's code the "
               "quantized methods, whose coding walks through memory most often, have their border not far from 10 "
               "GbE. Sparse and low-rank methods have it beyond InfiniBand. Code at best moves all of them beyond "
               "InfiniBand.")  # fmt: skip


# %% [markdown]
# ## Overlap shrinks the gain
#
# In [05b](05b_overlap.ipynb) messages travel while backward still computes. Such messages take no extra time, so
# compression cannot save any on them:

# %%
guess_overlap = guess("10 GbE, top-k: how many times as fast as dense is a step with overlap?", unit="times")

# %%
rows = []
for network, beta in BETA.items():
    for method in ("dense", "top-k 1 % + EF", "PowerSGD r = 2 + EF"):
        apart, hidden = (step(method, beta, overlap=overlap)[0] for overlap in (False, True))
        gains = [step("dense", beta, overlap=overlap)[0] / step(method, beta, overlap=overlap)[0]
                 for overlap in (False, True)]  # fmt: skip
        rows.append([network, method, f"{1e3 * apart:.0f} ms", f"{1e3 * hidden:.0f} ms",
                     f"{gains[0]:.2f}", f"{gains[1]:.2f}"])  # fmt: skip
table(["network", "method", "step, no overlap", "step, overlap", "gain, no overlap", "gain, overlap"], rows,
      f"simulated; gain: dense / method; your guess for top-k on 10 GbE with overlap: {guess_overlap}")  # fmt: skip

# %% [markdown]
# On 10 GbE and InfiniBand overlap shrinks the gain: the dense step hides a part of its messages, and the compressed one
# has little left to hide. On 1 GbE the gain grows. There backward hides a large share of the compressed messages, and
# hardly any of the dense ones. A fair comparison overlaps both sides. From here on all methods overlap as well
# as they can.
#
# ## Loss against bytes, loss against seconds
#
# A faster step is no gain if training then needs more steps. So we train, with plain SGD. Every method gets the best of
# the same four rates: the one that brings the test loss to 0.3 in the fewest epochs (seed 0). Then three more seeds.
# DGC has momentum $m$ of its own, here 0.5. A gradient then moves the weights $1/(1-m)$ = 2 times as far in the end, so
# DGC gets half the rate.

# %%
guess_order = guess("10 GbE: which method reaches a test loss of 0.3 first?", list(METHODS))

# %%
TARGET, RATES, SEEDS = 0.3, (0.3, 0.9, 2.7, 8.1), (1, 2, 3)


def losses(method, lr, seed):
    """Test loss before training and after each epoch. (The network does not change it: all wait for all.)"""
    settings = job(lr / 2 if method.startswith("DGC") else lr, seed=seed)
    first = F.cross_entropy(settings.build_model()(tests.x), tests.y).item()
    try:
        rows = parallel.train(settings, strategy(method), NODES, cluster.Simulation(trace="ledger")).history
    except parallel.NonFiniteLoss:  # the rate is too large
        return [first, *[np.inf] * settings.epochs]
    return [first, *(row["test_loss"] for row in rows)]


tuning = {case: losses(*case, 0) for case in bar([(m, lr) for m in METHODS for lr in RATES], "tuning eight methods")}


def epochs_to_target(curve):
    """Epochs until the loss is TARGET, the logarithm of the loss falling evenly within an epoch; inf: never."""
    for epoch in range(1, len(curve)):
        if curve[epoch] <= TARGET:
            before, after = np.log(curve[epoch - 1]), np.log(curve[epoch])
            return epoch - 1 + (before - np.log(TARGET)) / (before - after)
    return np.inf


best = {method: min(RATES, key=lambda lr: epochs_to_target(tuning[method, lr])) for method in METHODS}
runs = {(method, seed): losses(method, best[method], seed)
        for method, seed in bar([(m, s) for m in METHODS for s in SEEDS], "training with three seeds")}  # fmt: skip


# %%
def curves():
    shown = [method for method in METHODS if method != "TernGrad"]
    with style.applied():
        figure, places = style.new_figure(9.6, 6.4, columns=2, heights=(1, 1), sharey=True)
        for axes, network in zip(places, ("bytes", *BETA), strict=True):
            for number, method in enumerate(shown):
                loss = np.exp(np.mean([np.log(runs[method, seed]) for seed in SEEDS], axis=0))
                seconds, sent = step(method, BETA.get(network, BETA["10 GbE"]))
                a_step = sent * NUMBERS / weights / 1e9 if network == "bytes" else seconds
                axes.plot(11 * a_step * np.arange(1, len(loss)), loss[1:], linestyle=style.DASHES[number],
                          color=style.SERIES[number], marker="os^DvPX"[number], markersize=4, label=method)  # fmt: skip
            axes.axhline(TARGET, color="0.4", linewidth=0.8, linestyle=(0, (1, 2)))
            axes.set(xscale="log", yscale="log", title="against bytes" if network == "bytes" else network)
            axes.set_xlabel("GB that a node sent" if network == "bytes" else "virtual time (s)")
            axes.set_yticks([0.2, 0.5, 1, 2], ["0.2", "0.5", "1", "2"])
            axes.minorticks_off()
        for axes, ticks in zip(places, ([0.1, 1, 10], [2, 5, 10, 20, 50], [2, 5, 10], [2, 5, 10]), strict=True):
            axes.set_xticks(ticks, ticks)
        for axes in places[::2]:
            axes.set_ylabel("test loss")
        figure.legend(*places[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
        style.label_source(figure, "simulated", f"{NODES} nodes, 4 epochs, geometric mean of {len(SEEDS)} seeds")
    return figure


see(curves(), "the same runs on four axes; a point is the end of an epoch, dotted: the target. Against bytes the "
              "methods are far apart, and dense training is last. On 1 GbE the order hardly changes. On 10 GbE the "
              "curves come close, and on InfiniBand dense training leads for most of the way. (TernGrad: in the "
              "table.)")  # fmt: skip

# %%
need = {method: np.array([epochs_to_target(runs[method, seed]) for seed in SEEDS]) for method in METHODS}


def to_target(method, network, coding):
    """Seconds until the loss is TARGET, one for each seed."""
    return 11 * need[method] * step(method, BETA[network], coding)[0]


rows, winners = [], {}
cells = [(network, coding) for network in BETA for coding in ("numpy", "at best")]
for network, coding in bar(cells, "six clusters"):
    times = {method: to_target(method, network, coding) for method in METHODS}
    first = min(METHODS, key=lambda method: times[method].mean())
    winners[network, coding] = [
        method for method in METHODS
        if times[method].mean() - times[first].mean() <= np.hypot(times[method].std(ddof=1), times[first].std(ddof=1))
    ]  # fmt: skip
    rows.append([network, {"numpy": "minidl's code"}.get(coding, coding),
                 *("{0}{1:.1f} ± {2:.1f}{0}".format("**" * (method in winners[network, coding]), times[method].mean(),
                                                    times[method].std(ddof=1)) for method in METHODS)])  # fmt: skip
rows.append(["epochs", "", *(f"{need[method].mean():.1f} ± {need[method].std(ddof=1):.1f}" for method in METHODS)])
rows.append(["rate", "", *(best[method] for method in METHODS)])
table(["network", "coding", *METHODS], rows,
      f"virtual seconds to test loss {TARGET}, mean ± standard deviation of {len(SEEDS)} seeds, simulated; bold: the "
      "first, and all within a standard deviation of the difference")  # fmt: skip
fastest_on_10 = min(METHODS, key=lambda method: to_target(method, "10 GbE", "numpy").mean())
gain_on_1, gain_on_3 = (to_target("dense", network, "numpy").mean()
                        / min(to_target(method, network, "numpy").mean() for method in CODING)
                        for network in ("1 GbE", "InfiniBand"))  # fmt: skip
say(f"First on 10 GbE, by its mean: {fastest_on_10} (your guess: {guess_order}). The best compressed method "
    f"trains {gain_on_1:.1f} times as fast as dense on 1 GbE, and {gain_on_3:.2f} times on InfiniBand.")  # fmt: skip

# %%
ratio = {method: need[method].mean() / need["dense"].mean() for method in METHODS if method != "dense"}
say("Epochs to the target, relative to dense: " + ", ".join(f"{m} {one:.2f}" for m, one in ratio.items()) + ".")

# %% [markdown]
# Compression has two costs, and a count of bytes shows neither. **Coding**: compare the two rows of a network. The same
# method wins with one code and loses with the other. **Learning**: see the row of epochs. Rounding adds noise, and what
# is left out arrives late. Where the number of epochs relative to dense is below 1, be careful. Four rates with factors
# of 3 between them are a coarse grid: a method whose steps have another length, such as sign, may happen to find a
# better rate on it. Then the gain is not one of compression.
#
# ## Every cluster
#
# The time of a step on any other cluster can be computed without a run. The model has three equal layers, so there are
# three buckets. A bucket is ready when its layer's backward is done and it is encoded; it is sent when the one before
# has been sent. After backward the node waits for one bucket after the other and decodes it. Two methods need two
# rounds of messages (fp16: scatter, then gather; PowerSGD: P, then Q), of which only the first can overlap backward.

# %%
READY = (5 / 8, 7 / 8, 1.0)  # work: forward 3 units, backward 2 + 2 + 1 (the first layer needs no input gradient)
GATHERED = {"QSGD, 4 bits", "TernGrad", "sign + EF", "top-k 1 % + EF", "DGC 1 %"}
TWO_ROUNDS = {"fp16", "PowerSGD r = 2 + EF"}


def traffic(method, nodes):
    """Bytes that a node sends / bytes of the gradient."""
    at = step(method, BETA["10 GbE"])[1] / (4 * weights)
    growth = (lambda p: p - 1) if method in GATHERED else (lambda p: (p - 1) / p)
    return at * growth(nodes) / growth(NODES)


def formula(method, beta, nodes=NODES, numbers=NUMBERS, coding="numpy", seconds=SECONDS):
    """Seconds of a step with overlap: compute, code, wait for messages."""
    encode, decode = (one * 8 * numbers / MEMORY / 3 for one in passes(method, coding))  # of one bucket
    if coding == "numpy" and method in GATHERED:
        decode *= nodes / NODES  # a message of every node
    sending = traffic(method, nodes) * 4 * numbers * beta / 3
    first = sending / 2 if method in TWO_ROUNDS else sending
    sent, now = 0.0, seconds + 3 * encode
    arrived = [sent := max(sent, ready * seconds + i * encode) + first for i, ready in enumerate(READY, start=1)]
    for bucket in arrived:  # a second round waits until all first rounds have left the network free
        now = max(now, sent if method in TWO_ROUNDS else bucket) + (sending - first) + decode
    return seconds, 3 * (encode + decode), now - seconds - 3 * (encode + decode)


off = [sum(formula(method, beta)) / step(method, beta)[0] - 1 for method in METHODS for beta in BETA.values()]
say(f"Formula and simulation differ by {100 * min(off):+.1f} % to {100 * max(off):+.1f} % over the {len(METHODS)} "
    f"methods and {len(BETA)} networks.")  # fmt: skip


# %%
def steps(axes, Gbit_per_s, MB, nodes, code):
    bars = np.array([formula(method, 8e-9 / Gbit_per_s, nodes, MB * 1e6 / 4, code) for method in METHODS]) * 1e3
    left = np.zeros(len(METHODS))
    for values, name, colour in zip(
        bars.T,
        ("compute", "code", "wait for messages"),
        (style.ACTIVITY[kind] for kind in ("compute", "reduce", "wait")),
        strict=True,
    ):
        axes.barh(range(len(METHODS)), values, left=left, label=name, color=colour, **style.BORDER)
        left += values
    axes.axvline(left[0], color="0.4", linewidth=0.8, linestyle=":")
    axes.set_yticks(range(len(METHODS)), list(METHODS), fontsize=7)
    axes.set(xlabel="time of a step (ms)", ylim=(len(METHODS) - 0.4, -0.6), xlim=(0, 1.5 * left.max()))
    axes.legend(fontsize=6, loc="lower right")


explore(
    steps,
    "the time of a step, by bandwidth, size of the gradient and nodes; dotted: the dense step. On 10 "
    "Gbit/s all but the 4-bit method win, sparse and low-rank ones most. With code at best all win. With 32 nodes the "
    "quantized methods, which decode a message of every node, are far behind dense. On 200 Gbit/s nothing is left to "
    "win. (0.12 s of computing for every gradient.)",
    Gbit_per_s=[10, 1, 2, 5, 25, 50, 100, 200],
    MB=[100, 10, 50, 250, 500],
    nodes=[4, 2, 8, 16, 32, 64],
    code=["numpy", "at best", "free"],
    multiples=[{}, {"code": "at best"}, {"nodes": 32}, {"Gbit_per_s": 200}],
    shared=False,
    height=2.8,
    source="formula",
)

# %% [markdown]
# ## Break it: how to report a large number
#
# Three methods on one cluster, 10 GbE. Each line of the table below could be reported as "... times faster":

# %%
guess_claim = guess("Top-k of 1 % on 10 GbE: how far apart are the largest and the smallest 'speed-up' one can report?",
                    unit="times")  # fmt: skip

# %%
three = ("sign + EF", "top-k 1 % + EF", "PowerSGD r = 2 + EF")
ten = BETA["10 GbE"]
star = parallel.Synchronous(bucket_mb=1e6, algorithm="parameter_server", overlap=False)
engine = cluster.Simulation(as_if_large(ten), NODE, trace="ledger")
one, two = parallel.train(job(samples=256, epochs=2), star, NODES, engine).history
slow_step = (two["seconds"] - one["seconds"]) / 2
bits = {method: 8 * METHODS[method].encode(one_million).nbytes / one_million.size for method in three}
claims = {
    "compression ratio (bits of a message)": lambda m: 32 / bits[m],
    "traffic, counting what a node sends, not what it receives": lambda m: 2 * (NODES - 1) / NODES * 32 / bits[m],
    "traffic of a step": lambda m: traffic("dense", NODES) / traffic(m, NODES),
    "step, against one server that adds up, no overlap": lambda m: slow_step / step(m, ten)[0],
    "step, against the best dense step": lambda m: step("dense", ten)[0] / step(m, ten)[0],
    f"time to test loss {TARGET}": lambda m: (to_target("dense", "10 GbE", "numpy").mean()
                                              / to_target(m, "10 GbE", "numpy").mean()),
}  # fmt: skip
table(
    ["'... times faster'", *three],
    [[name, *(f"{claim(m):.3g}" for m in three)] for name, claim in claims.items()],
    f"{NODES} nodes; first line measured on a matrix of 1,000 x 1,000, others simulated; 1: as good as dense",
)
values = [claim("top-k 1 % + EF") for claim in claims.values()]
say(f"Between the largest and the smallest number for top-k lies a factor of {max(values) / min(values):.0f} (your "
    f"guess: {guess_claim}). Only the last line says when the model is trained.")  # fmt: skip

# %% [markdown]
# ## What the papers report
#
# **Alistarh et al. (2017)**, QSGD (arXiv:1610.02132, table 1): 4 bits make AlexNet 2.05 times as fast, 8 bits make
# ResNet-152 1.56 times as fast; ResNet-110 gains 1.10 times. Four bits are 8 times fewer than 32: the gain in seconds
# is far smaller than that in bits. **Lin et al. (2018)**, DGC (arXiv:1712.01887): AlexNet on 64 nodes is more than 40
# times as fast as on one with DGC on 1 GbE, about 30 times with dense gradients on 10 GbE. Compression replaced a
# faster network. **Vogels et al. (2019)**, PowerSGD (arXiv:1905.13727), abstract: of the methods that they evaluate,
# only theirs is consistently faster in wall-clock time than well-tuned dense SGD. It adds up in all-reduces, and its
# coding is two matrix products. Both show in our table of break-even bandwidths.
#
# ## The chapter on one page

# %%
sample = np.random.default_rng(1).normal(size=(64, 64)).astype(np.float32)
EVERY = {
    "fp16": compress.Half(), "QSGD, 4 bits": compress.QSGD(7),
    "the same, lossless code": compress.Lossless(compress.QSGD(7)), "TernGrad": compress.TernGrad(),
    "sign": compress.Sign(), "one bit, two means a column": compress.OneBit(), "random 1 %": compress.RandomK(0.01),
    "top-k 1 %": compress.TopK(0.01), "DGC 1 %": compress.DGC(0.01, warmup=()), "PowerSGD r = 2": compress.PowerSGD(2),
}  # fmt: skip


def bytes_sent(comm, method):
    method.begin_all_reduce(sample, comm, algorithm="ring")()
    return comm.bytes_sent


def per_node(method, nodes):
    return np.mean(cluster.launch(bytes_sent, (method,), nodes, "simulation").results) / sample.nbytes


rows = []
for name, method in EVERY.items():
    method.begin_run(0, name, 0)  # fixes its random numbers
    size = 8 * copy.deepcopy(method).encode(one_million).nbytes / one_million.size
    if name.startswith("DGC"):
        bias, one_error, remembers = "", "", "its own"
    else:
        decoded = np.array([method.decode(method.encode(sample)) for _ in range(200)], np.float64)
        one_error, bias = (np.linalg.norm(each - sample) / np.linalg.norm(sample)
                           for each in (decoded[0], decoded.mean(axis=0)))  # fmt: skip
        remembers = "yes" if bias > 0.5 * one_error and bias > 0.01 else "no"
        one_error, bias = (f"{100 * each:.{0 if each > 0.1 else 2}f} %" for each in (one_error, bias))
    method.begin_run(0, name, 0)  # forgets the arrays so far
    four, sixteen = (per_node(method, nodes) for nodes in (4, 16))
    rows.append([name, f"{size:.3g}", one_error, bias, remembers, "yes" if sixteen < 2 * four else "no",
                 f"{four:.2g}", f"{sixteen:.2g}"])  # fmt: skip
table(["method", "bits a number", "error of one message", "error of the mean of 200", "needs memory",
       "adds up on the way", "traffic, 4 nodes", "16 nodes"], rows,
      "bits: a matrix of 1,000 x 1,000; the rest: 64 x 64, normal numbers, where low rank and columns save less; "
      "traffic of a node / bytes of the gradient (dense: 1.5 and 1.875), simulated; all else measured. The lossless "
      "code decodes to the same numbers, so it learns the same")  # fmt: skip

# %% [markdown]
# The error of an unbiased message is large once and small in the mean of many: it needs no memory. A method that makes
# the same error every time needs one. (fp16's error is also the same every time, but tiny.) And which methods were
# first, on the cluster of this page?

# %%
for network in BETA:
    named = {coding: ", ".join(winners[network, coding]) for coding in ("numpy", "at best")}
    say(f"* **{network}**: first with minidl's code: {named['numpy']}; with code at best: {named['at best']}.")

# %% [markdown]
# The chapter asked: **who needs 99.9 % of the gradient, and when does it pay to leave it out?**
#
# *Who needs it?* Training does, but not at once. What is dropped for good costs accuracy. What is kept in a residual
# and sent later costs little, whether a node sends its largest entries (09a), signs (09e) or products of two vectors
# (09f). Momentum can wait, too (09b). Numbers that are rounded at random need no residual (09d).
#
# *When does it pay?* When three things hold:
#
# 1. Nodes wait for messages even with overlap and the best dense all-reduce. That wait is all that compression can win.
#    Measure it first.
# 2. The bandwidth is below bytes saved / seconds of coding. The bytes are those of adding up over all nodes, which grow
#    with the nodes if sums fill up (09c).
# 3. The faster steps make up for the additional ones. Train, and compare the *time* to the loss that you need.
#
# ## To the exercises
#
# [Exercises of chapter 09](../exercises/09_gradient_compression/09_gradient_compression.ipynb): threshold, top-k, QSGD
# and a sparse all-reduce, with their bytes counted.
#
# **Three questions to argue about**
#
# 1. Computers become 10 times as fast, in arithmetic and in memory; the network stays. Which marks of the break-even
#    picture move, and where to?
# 2. We charged coding on the node's own time. A network card with a processor could code. What changes in the formula?
# 3. We gave all methods four learning rates. Which method could have been treated unfairly by that, and how would you
#    find out?
#
# This lecture is the last of the chapter.
