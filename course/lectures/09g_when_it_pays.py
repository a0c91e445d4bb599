# %% [markdown]
# # 09g. When does compression pay?
#
# *Read [09c](09c_sparse_sums.ipynb) (sums of sparse gradients), [09d](09d_few_bits.ipynb) (few bits),
# [09e](09e_sign_and_memory.ipynb) (error feedback) and [09f](09f_low_rank.ipynb) (low rank) first. Reading time: about
# 21 minutes. Figures are* measured, simulated *or come from a* formula.
#
# ## The question
#
# This chapter has many ways to send less: 2 times fewer bits, 8 times, 32 times, 50 times. But the question is *when
# the model is trained*. We train the same model in six ways, on 4 nodes and three networks. EF is error feedback.

# %% source_hidden=true
import time
from functools import cache, partial
from itertools import pairwise

import numpy as np

from course.figures.page import say, see, table
from course.interaction import bar, explore, guess, warm_up
from minidl import cluster, compress, data, nn, optim, parallel
from minidl.plots import style

warm_up()

# %% [markdown]
# ## A cluster that charges for coding
#
# The model is small (digits, 64-64-64-64-10, no biases), so that every cell runs in seconds. It stands in for a large
# one: its gradient takes as long to send as 25 million numbers (100 MB) and 0.12 s to compute, as in
# [06d](06d_sync_or_async.ipynb). Times below are virtual times of that large model; losses are those of the small one.
# Latency is left out. (Low rank saves less here, in matrices of 64 x 64, than in large ones.)
#
# **Coding takes time, too.** A node *encodes* its gradient before it sends and *decodes* what it receives. We count
# this in **passes**: one pass reads and writes every number of the gradient once, 8 bytes a number. A node whose memory
# moves 500 GB/s makes a pass over 25 million numbers in 0.4 ms.

# %%
NODES, NUMBERS, SECONDS, MEMORY = 4, 25e6, 0.12, 500e9  # SECONDS: of a gradient; MEMORY: bytes/s
PASS = 8 * NUMBERS / MEMORY
METHODS = {
    "dense": None,
    "fp16": compress.Half(),
    "QSGD, 4 bits": compress.QSGD(7),
    "sign + EF": compress.ErrorFeedback(compress.Sign()),
    "top-k 1 % + EF": compress.ErrorFeedback(compress.TopK(0.01)),
    "PowerSGD r = 2 + EF": compress.ErrorFeedback(compress.PowerSGD(2)),
}
CODING = {  # passes to encode, and to decode one message; measured once (next cell)
    "fp16": (0.8, 1.2),
    "QSGD, 4 bits": (12, 2.0),
    "sign + EF": (5.0, 1.0),
    "top-k 1 % + EF": (4.6, 0.7),
    "PowerSGD r = 2 + EF": (7.3, 1.1),
}
AT_BEST = {  # the same, of code written for the purpose, and the passes to write the sum
    "fp16": (0.75, 0.25, 0.75), "QSGD, 4 bits": (1.1, 1 / 16, 0.5), "sign + EF": (2.5, 1 / 64, 0.5),
    "top-k 1 % + EF": (3.5, 0.02, 0.5), "PowerSGD r = 2 + EF": (3.0, 0.0, 1.0),
}  # fmt: skip


def messages(method, nodes=NODES):
    """How many messages a node decodes: sums travel with fp16 and PowerSGD, else the message of every node."""
    return {"fp16": 2, "PowerSGD r = 2 + EF": 1}.get(method, nodes)


def passes(method, code, nodes=NODES):
    """Passes to encode, and to decode all messages."""
    if method == "dense" or code == "free":
        return 0.0, 0.0
    encode, decode, once = (*CODING[method], 0.0) if code == "minidl" else AT_BEST[method]
    return encode, once + decode * messages(method, nodes)


# %% [markdown]
# `CODING` is minidl's own code, measured on one core of an AMD EPYC, where a pass moves 28 GB/s. Compiled loops walk
# through memory a few times. QSGD also draws a random number for each number of the gradient, which takes seven of
# its passes. (In plain numpy the same bits take many times as long. We assume that faster memory makes all coding
# faster.) `AT_BEST` is a count on paper: sign with error feedback, say, reads gradient and residual (8 bytes a number),
# writes their sum, reads it again and writes the residual (12 bytes): 20 bytes are 2.5 passes. How much does your
# machine need? The arrays below have 16 MB each. If all of them fitted into its caches, a pass would take far less time
# than in memory, and the same coding would count as more passes.

# %% source_hidden=true
# measured: differs from run to run
large = np.random.default_rng(0).standard_normal((2000, 2000), dtype=np.float32)


# seconds of this core, without those of other programs, where the system counts them finely enough
clock = time.thread_time if time.get_clock_info("thread_time").resolution < 1e-6 else time.perf_counter


def fastest(work, times=9):
    took = []
    for _ in range(times):
        began = clock()
        work()
        took.append(clock() - began)
    return min(took)


into = np.empty_like(large)
one_pass = fastest(lambda: np.multiply(large, 2, out=into))
rows = []
for name in bar(list(CODING), "measuring the coding"):
    method, (encode, decode) = METHODS[name], CODING[name]
    message = method.encode(large)
    if "top-k" in name:  # adds up the entries that were sent, no others

        def decoding(sparse=method.compressor, message=message):
            indices, values = sparse.entries(message)
            into.reshape(-1)[indices] += values
    else:
        decoding = partial(method.decode, message)
    here = [fastest(partial(method.encode, large)) / one_pass, fastest(decoding) / one_pass]
    rows.append([name, *(f"{one:.1f}" for one in here), f"{encode} + {messages(name)} x {decode}",
                 f"{sum(passes(name, 'minidl')):.0f}", f"{sum(passes(name, 'at best')):.1f}"])  # fmt: skip
table(["method", "encode, here", "decode, here", "charged below", "in all", "at best"], rows,
      f"in passes; here: measured now on {large.nbytes / 1e6:.0f} MB, one pass at {8e-9 * large.size / one_pass:.0f} "
      "GB/s; charged: encode one message, decode all; at best: counted")  # fmt: skip

# %% [markdown]
# In a simulation a compressor takes no time by itself. `compress.CodingTime(compressor, encode_seconds,
# decode_seconds)` charges it, per number. Below, `job` is a training of the small model; `NODE` and `as_if_large(beta)`
# are a node and a network with the times of the large one.

# %% source_hidden=true
images, tests = data.digits()
TRAIN = data.Dataset(*images[:1408])  # 11 minibatches of 128, 32 samples a node


def model():
    layers = [nn.Flatten()]
    for inputs, outputs in pairwise((64, 64, 64, 64, 10)):
        layers += [nn.Linear(inputs, outputs, bias=False), nn.ReLU()]
    net = nn.Sequential(*layers[:-1])
    for weight in net.parameters():
        weight.copy_(weight.numpy() * np.float32(6**0.5))  # He's first weights
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


# %%
def strategy(method, code="minidl", overlap=True):
    compressor, per_number = METHODS[method], PASS / weights
    if compressor is not None:
        compressor = compress.CodingTime(compressor, *(one * per_number for one in passes(method, code)))
    return parallel.Synchronous(bucket_mb=0.016, algorithm="ring", compressor=compressor, overlap=overlap)


@cache
def step(method, beta, code="minidl", overlap=True):
    """Seconds and bytes of a training step (simulated; the mean of the two of the second epoch)."""
    engine = cluster.Simulation(as_if_large(beta), NODE, trace="ledger")
    run = parallel.train(job(samples=256, epochs=2), strategy(method, code, overlap), NODES, engine)
    first, second = run.history
    return tuple((second[name] - first[name]) / 2 for name in ("seconds", "bytes"))


# %%
guess_sign = guess("Sign sends one bit for every 32. How many times as fast is a training step on InfiniBand?",
                   unit="times")  # fmt: skip

# %% source_hidden=true
one, other = (step(method, BETA["InfiniBand"])[0] for method in ("dense", "sign + EF"))
say(f"A step on InfiniBand: dense **{1e3 * one:.0f} ms**, sign **{1e3 * other:.0f} ms** (simulated): with a 32nd of "
    f"the bits, {one / other:.2f} times as fast. Your guess: {guess_sign.against(one / other)}.")  # fmt: skip

# %% [markdown]
# Compression does *not* make the step faster: the dense step waits only a little for this network, and coding takes
# time. Up to which bandwidth does it pay?
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


def break_even(method, code):
    """Bytes per second."""
    saved = (dense_bytes - step(method, BETA["10 GbE"])[1]) * NUMBERS / weights
    return saved / (sum(passes(method, code)) * PASS)


checked = []
ends = sorted(CODING, key=lambda method: break_even(method, "minidl"))[:: len(CODING) - 1]
for method in ends:  # the lowest and the highest border
    for factor in (0.9, 1.1):
        beta = 1 / (factor * break_even(method, "minidl"))
        gain = step("dense", beta, overlap=False)[0] - step(method, beta, overlap=False)[0]
        checked.append((gain > 0) == (factor < 1))


# %% source_hidden=true
def borders():
    with style.applied():
        figure, [axes] = style.new_figure(8.5, 3.2)
        names = list(CODING)
        ends = {code: [8e-9 * break_even(method, code) for method in names] for code in ("minidl", "at best")}
        axes.hlines(range(len(names)), *ends.values(), color="0.75", linewidth=2, zorder=1)
        for (code, values), marker, tone in zip(ends.items(), "oD", (0, 1), strict=True):
            axes.plot(values, range(len(names)), marker, color=style.SERIES[tone],
                      label={"minidl": "minidl's code"}.get(code, code))  # fmt: skip
            for place, value in enumerate(values):
                axes.annotate(f"{value:,.0f}", (value, place), xytext=(0, 5), textcoords="offset points", fontsize=8,
                              ha="center")  # fmt: skip
        for name, beta in BETA.items():
            axes.axvline(8e-9 / beta, color="0.4", linewidth=1, linestyle="--")
            axes.annotate(name, (8e-9 / beta, -0.9), xytext=(3, 0), textcoords="offset points", fontsize=8)
        axes.set(xscale="log", xlim=(0.7, 20000), ylim=(len(names) - 0.4, -1.2), xlabel="bandwidth (Gbit/s)")
        axes.set_yticks(range(len(names)), names)
        axes.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
        axes.minorticks_off()
        axes.legend(loc="center right")
        style.label_source(figure, "formula", f"traffic from the simulation, {NODES} nodes, no overlap")
    return figure


def paying(network, code):
    return f"{sum(break_even(method, code) > 1 / BETA[network] for method in CODING)} on {network}"


near = [f"{method} on {network}" for method in CODING for network, beta in BETA.items()
        if abs(beta * break_even(method, "minidl") - 1) < 0.15]  # fmt: skip
border = 8e-9 * break_even("top-k 1 % + EF", "minidl")
see(borders(), f"a method pays on every network to the left of its mark. Methods that pay, of {len(CODING)}: with "
    f"minidl's code {', '.join(paying(network, 'minidl') for network in BETA)}; with code at best "
    f"{', '.join(paying(network, 'at best') for network in BETA)}. Marks of minidl's code within 15 % of a network, "
    f"too near to decide: {', '.join(near) or 'none'}.")  # fmt: skip
say(f"Top-k pays up to **{border:.0f} Gbit/s** (your guess: {guess_border.against(border)}). Simulated 10 % below and "
    f"10 % above a border, {sum(checked)} of {len(checked)} steps are faster below and slower above (the lowest and "
    "the highest border of minidl's code).")  # fmt: skip

# %% [markdown]
# ## And with overlap?
#
# In [05b](05b_overlap.ipynb) messages travel while backward still computes. Such messages take no extra time, so
# compression cannot save any on them.

# %%
guess_overlap = guess("10 GbE, top-k: how many times as fast as dense is a step with overlap?", unit="times")

# %% source_hidden=true
rows, gains = [], {}
for network, beta in BETA.items():
    cells = []
    for overlap in (False, True):
        dense, sparse = (step(method, beta, overlap=overlap)[0] for method in ("dense", "top-k 1 % + EF"))
        gains[network, overlap] = dense / sparse
        cells += [f"{1e3 * dense:.0f} ms", f"{1e3 * sparse:.0f} ms", f"{dense / sparse:.2f}"]
    rows.append([network, *cells])
table(["network", "dense", "top-k", "gain", "dense, overlap", "top-k, overlap", "gain, overlap"], rows,
      "time of a step, simulated; gain: dense / top-k; your guess for 10 GbE with overlap: "
      f"{guess_overlap.against(gains['10 GbE', True])}")  # fmt: skip

# %% [markdown]
# Overlap shrinks the gain where the dense step hides a good part of its messages and the compressed one has little left
# to hide. On 1 GbE backward hides a large share of the compressed messages, and a small one of the dense ones. A fair
# comparison overlaps both sides. From here on all methods overlap as well as they can.
#
# ## Does training need more steps?
#
# A faster step is no gain if training then needs more of them. So we count the updates of plain SGD until the test loss
# is 0.2, by method and learning rate. The learning rates are a factor of 1.5 apart. (fp16 gets the one that is best for
# dense training.)

# %%
guess_updates = guess("Each with its best learning rate: which one needs the fewest updates?",
                      [method for method in METHODS if method != "fp16"])  # fmt: skip

# %%
TARGET, RATES, TUNING, SEEDS = 0.2, [0.675 * 1.5**k for k in range(5)], range(2), range(10, 15)
apart = partial(parallel.Synchronous, bucket_mb=1, algorithm="ring", overlap=False)  # the same sums, simulated sooner


def updates(method, lr, seed, epochs, nodes=NODES):
    """Updates until the test loss is TARGET; within an epoch the logarithm of the loss falls evenly."""
    engine = cluster.Simulation(trace="ledger")
    try:
        run = parallel.train(job(lr, epochs=epochs, seed=seed), apart(compressor=METHODS[method]), nodes, engine)
    except parallel.NonFiniteLoss:  # the learning rate is too large
        return np.inf
    log_loss = [np.log(10), *(np.log(row["test_loss"]) for row in run.history)]  # before training: ten equal digits
    for epoch, (before, after) in enumerate(pairwise(log_loss)):
        if after <= np.log(TARGET):
            return 11 * (epoch + (before - np.log(TARGET)) / (before - after))
    return np.inf


cases = [(method, lr) for method in METHODS if method != "fp16" for lr in RATES]
tuned = {case: np.array([updates(*case, seed, epochs=5) for seed in TUNING])
         for case in bar(cases, "tuning five methods")}  # fmt: skip

# %%
best = {method: min(RATES, key=lambda lr: tuned[method, lr].mean()) for method, _ in tuned}
best["fp16"] = best["dense"]
fresh = {method: np.array([updates(method, best[method], seed, epochs=6) for seed in SEEDS])
         for method in bar(METHODS, "training with fresh seeds")}  # fmt: skip
alone = np.array([updates("sign + EF", best["sign + EF"], seed, epochs=6, nodes=1) for seed in SEEDS])


# %% source_hidden=true
def bowls():
    with style.applied():
        figure, [axes] = style.new_figure(8.5, 3.6)
        for number, method in enumerate(method for method in METHODS if method != "fp16"):
            here = [lr for lr in RATES if np.isfinite(tuned[method, lr]).all()]
            found = np.array([tuned[method, lr] for lr in here]).reshape(-1, len(TUNING))
            spread = np.abs([found.min(axis=1), found.max(axis=1)] - found.mean(axis=1))
            axes.errorbar(np.array(here) * 1.02 ** (number - 2), found.mean(axis=1), spread, capsize=2,
                          color=style.SERIES[number], linestyle=style.DASHES[number], marker="os^Dv"[number],
                          label=method)  # fmt: skip
        axes.set(xscale="log", xlabel="learning rate", ylabel=f"updates to test loss {TARGET}", ylim=(0, 56))
        axes.set_xticks(RATES, [f"{lr:.2g}" for lr in RATES])
        axes.minorticks_off()
        axes.legend(loc="lower left", ncols=2, fontsize=8)
        style.label_source(figure, "simulated", f"{NODES} nodes, mean and range of {len(TUNING)} seeds")
    return figure


see(bowls(), "bars are the range of the seeds; points at the same learning rate are drawn a little apart. No point: "
    "not every seed reached the target within 55 updates, because training is too slow (left) or unstable "
    "(right).")  # fmt: skip


def to_target(method, network):
    """Seconds until the loss is TARGET, one for each seed, with minidl's code and overlap."""
    return fresh[method] * step(method, BETA[network])[0]


def spread(values, digits=1):
    return f"{values.mean():.{digits}f} ({values.min():.{digits}f} to {values.max():.{digits}f})"


first = {network: min(METHODS, key=lambda method: to_target(method, network).mean()) for network in BETA}
level = {network: [method for method in METHODS
                   if (to_target(method, network) <= to_target(first[network], network)).any()]
         for network in BETA}  # fmt: skip
table(["method", "learning rate", "updates", *(f"{network} (s)" for network in BETA)],
      [[method, f"{best[method]:.2g}", spread(fresh[method], 0),
        *(f"**{text}**" if method in level[network] else text
          for network in BETA for text in [spread(to_target(method, network))])] for method in METHODS],
      f"to test loss {TARGET}: mean (range) of {len(SEEDS)} fresh seeds, simulated, with overlap and minidl's code; "
      "bold: the first by its mean, and every method that is not behind it with at least one seed")  # fmt: skip
fewest = min(tuned, key=lambda case: fresh[case[0]].mean())[0]
say(f"Fewest updates: {fewest} (your guess: {guess_updates.against(fewest)}), fewer than dense with "
    f"{(fresh[fewest] < fresh['dense']).sum()} of {len(SEEDS)} seeds. Signs with EF on one node, which sends nothing: "
    f"{spread(alone, 0)} updates.\n\nThe first method trains "
    + ", ".join(f"{to_target('dense', network).mean() / to_target(method, network).mean():.2f} times as fast as dense "
                f"on {network} ({method})" for network, method in first.items()) + ".")  # fmt: skip

# %% [markdown]
# Read the picture at a learning rate of 1: there signs and 4 bits need about the updates of dense training; top-k and
# low rank need more, as what they leave out arrives late. Signs need the fewest in all, at a larger learning rate than
# the others, and on one node, too: that is a gain of another update rule, not of sending less. (A likely reason:
# $\pm c$ bounds the largest numbers, like clipping.) Then read the table by its columns: dense training is the slowest
# on 1 GbE. On InfiniBand only signs, which need fewer updates, are ahead of it.
#
# This is the start of training of one small network, with plain SGD and five learning rates. It shows that the order
# depends on the network. It does not rank the methods for other models, losses or optimizers.
#
# ## Every cluster
#
# The time of a step on any other cluster can be computed without a run. The model has three equal layers, so there are
# three buckets. A bucket is ready when its layer's backward is done and it is encoded; it is sent when the one before
# has been sent. After backward the node waits for one bucket after the other and decodes it. Two methods need two
# rounds of messages (fp16: scatter, then gather; PowerSGD: P, then Q), of which only the first can overlap backward.

# %%
READY = (5 / 8, 7 / 8, 1.0)  # work: forward 3 units, backward 2 + 2 + 1 (the first layer needs no input gradient)
GATHERED = {"QSGD, 4 bits", "sign + EF", "top-k 1 % + EF"}
TWO_ROUNDS = {"fp16", "PowerSGD r = 2 + EF"}


def traffic(method, nodes):
    """Bytes that a node sends / bytes of the gradient."""
    at = step(method, BETA["10 GbE"])[1] / (4 * weights)
    growth = (lambda p: p - 1) if method in GATHERED else (lambda p: (p - 1) / p)
    return at * growth(nodes) / growth(NODES)


def formula(method, beta, nodes=NODES, numbers=NUMBERS, code="minidl", seconds=SECONDS):
    """Seconds of a step with overlap: compute, code, wait for messages."""
    encode, decode = (one * 8 * numbers / MEMORY / 3 for one in passes(method, code, nodes))  # of one bucket
    sending = traffic(method, nodes) * 4 * numbers * beta / 3
    first = sending / 2 if method in TWO_ROUNDS else sending
    sent, now = 0.0, seconds + 3 * encode
    arrived = [sent := max(sent, ready * seconds + i * encode) + first for i, ready in enumerate(READY, start=1)]
    for bucket in arrived:  # a second round waits until all first rounds have left the network free
        now = max(now, sent if method in TWO_ROUNDS else bucket) + (sending - first) + decode
    return seconds, 3 * (encode + decode), now - seconds - 3 * (encode + decode)


# %% source_hidden=true
off = [sum(formula(method, beta)) / step(method, beta)[0] - 1 for method in METHODS for beta in BETA.values()]
say(f"Formula and simulation differ by {100 * min(off):+.1f} % to {100 * max(off):+.1f} % over the {len(METHODS)} "
    f"methods and {len(BETA)} networks.")  # fmt: skip


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
    "the time of a step; dotted: the dense step, so a method whose bar ends left of it pays. A faster network shortens "
    "the grey part alone. More nodes lengthen the green part of QSGD, sign and top-k, which decode a message of every "
    "node. (Computing takes 0.12 s for a gradient of any size.)",
    Gbit_per_s=[10, 1, 2, 5, 25, 50, 100, 200],
    MB=[100, 10, 50, 250, 500],
    nodes=[4, 2, 8, 16, 32, 64],
    code=["minidl", "at best", "free"],
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

# %% source_hidden=true
three = ("sign + EF", "top-k 1 % + EF", "PowerSGD r = 2 + EF")
ten = BETA["10 GbE"]
star = parallel.Synchronous(bucket_mb=1e6, algorithm="parameter_server", overlap=False)
engine = cluster.Simulation(as_if_large(ten), NODE, trace="ledger")
one, two = parallel.train(job(samples=256, epochs=2), star, NODES, engine).history
slow_step = (two["seconds"] - one["seconds"]) / 2
bits = {method: 8e-6 * METHODS[method].message_bytes((1000, 1000), np.float32) for method in three}
claims = {
    "compression ratio (bits of a message)": lambda m: 32 / bits[m],
    "traffic, counting what a node sends, not what it receives": lambda m: 2 * (NODES - 1) / NODES * 32 / bits[m],
    "traffic of a step": lambda m: traffic("dense", NODES) / traffic(m, NODES),
    "step, against one server that adds up, no overlap": lambda m: slow_step / step(m, ten)[0],
    "step, against the best dense step": lambda m: step("dense", ten)[0] / step(m, ten)[0],
    f"time to test loss {TARGET}": lambda m: to_target("dense", "10 GbE").mean() / to_target(m, "10 GbE").mean(),
}  # fmt: skip
table(
    ["'... times faster'", *three],
    [[name, *(f"{claim(m):.3g}" for m in three)] for name, claim in claims.items()],
    f"{NODES} nodes; first line: a matrix of 1,000 x 1,000, formula; others simulated; 1: as good as dense",
)
values = [claim("top-k 1 % + EF") for claim in claims.values()]
apart_by = max(values) / min(values)
say(f"Between the largest and the smallest number for top-k lies a factor of {apart_by:.0f} (your guess: "
    f"{guess_claim.against(apart_by)}). Only the last line says when the model is trained.")  # fmt: skip

# %% [markdown]
# ## What the papers report
#
# **Alistarh et al. (2017)**, QSGD (arXiv:1610.02132, table 1): 4 bits make AlexNet 2.05 times as fast, 8 bits make
# ResNet-152 1.56 times as fast; ResNet-110 gains 1.10 times. Four bits are 8 times fewer than 32: the gain in seconds
# is far smaller than that in bits. **Lin et al. (2018)**, DGC (arXiv:1712.01887): AlexNet on 64 nodes is more than 40
# times as fast as on one with DGC on 1 GbE, about 30 times with dense gradients on 10 GbE. Compression replaced a
# faster network. **Vogels et al. (2019)**, PowerSGD (arXiv:1905.13727), abstract: of the methods that they evaluate,
# only theirs is consistently faster in wall-clock time than well-tuned dense SGD. It adds up in all-reduces, and its
# coding is two matrix products.
#
# ## The chapter in two answers
#
# *Who needs 99.9 % of the gradient?* Training does, but not at once. What is dropped for good costs accuracy. What is
# kept in a residual and sent later costs little, whether a node sends its largest entries (09a), signs (09e) or
# products of two vectors (09f). Momentum can wait, too (09b). Numbers that are rounded at random need no residual
# (09d).
#
# *When does it pay to leave it out?* When three things hold:
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
# 3. We gave all methods the same five learning rates. Which method could have been treated unfairly by that, and how
#    would you find out?
#
# This lecture is the last of the chapter.
