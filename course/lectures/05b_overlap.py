# %% [markdown]
# # 05b. Can communication hide behind backward?
#
# *Read [05a](05a_data_parallelism.ipynb) first: the data-parallel step. Reading time: about 22 minutes. Figures are*
# measured *on the computer that ran this page,* simulated, *or come from a* formula.
#
# ## The question
#
# Eight machines train a network of 64 equal layers. Each layer has 64,000 weights, 256 KB. Forward takes 0.25 ms a
# layer, backward 0.5 ms. Then the gradients, 16 MB, are all-reduced on 10 Gbit/s Ethernet.

# %% source_hidden=true
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from course.figures import buckets
from course.figures.page import say, see, table
from course.interaction import bar, explore, guess, step_through, warm_up
from minidl import cluster, data, kernels, nn, optim, parallel
from minidl import functional as F
from minidl.cluster import cost
from minidl.plots import style
from minidl.plots.style import bytes_text, time_text

warm_up()
one_thread = threadpool_limits(1)  # matrices as small as ours are not worth a second thread

# %%
LAYERS, LAYER_BYTES = 64, 256_000
FORWARD, BACKWARD = 0.25e-3, 0.5e-3  # seconds a layer
COMPUTATION = LAYERS * (FORWARD + BACKWARD)


def plain_step(comm):
    comm.compute(seconds=LAYERS * FORWARD, label="forward")
    comm.compute(seconds=LAYERS * BACKWARD, label="backward")
    comm.all_reduce(cluster.Phantom(LAYERS * LAYER_BYTES), algorithm="ring")  # a Phantom has a size and no contents


plain = cluster.launch(plain_step, nodes=8, on="simulation", network="10gbe")

# %% source_hidden=true
see(
    cluster.plot_traces([plain.trace], row_height=0.2),
    "eight machines compute (blue), and the network does nothing. Then the network is busy (sends above, receives "
    "below), and the machines compute nothing.",
)
share = 1 - COMPUTATION / plain.seconds
say(f"A step takes {time_text(plain.seconds)} (simulated). In {share:.0%} of it nobody computes.")

# %% [markdown]
# There are two resources, and one of them is always idle. Must the network wait until backward is done?
#
# ## When is a gradient final?
#
# Backward walks from the loss to the input. So the last layer's gradient is complete first, and nothing that comes
# later changes it. A *hook* is a function that backward calls at that moment. Here each hook notes how many
# floating-point operations backward has done so far:

# %%
model = nn.models.MLP(64, 128, 128, 128, 10)
images, labels = data.digits().train[np.arange(32)]
loss = F.cross_entropy(model(images), labels)
final = []
with kernels.counted() as work:
    for name, parameter in model.named_parameters():
        parameter.register_post_accumulate_grad_hook(lambda _, name=name: final.append((name, work.flops)))
    loss.backward()

# %% source_hidden=true
table(
    ["gradient", "final after this share of backward"],
    [[name, f"{flops / work.flops:.0%}"] for name, flops in final if name.endswith("weight")],
    "measured: floating-point operations, counted on the tape",
)

# %% [markdown]
# Layer 3, the last one, is final almost at once, layer 0 at the very end. So the all-reduce of layer 3 can run while
# backward computes layers 2, 1 and 0. (A misprint to know: "sum up the gradients of layer $i$ while backward computes
# layer $i + 1$". Backward computes layer $i - 1$ then.)
#
# ## Build it
#
# Gradients are collected in a *bucket*. When it is full, its all-reduce begins: at once and in the background, or, for
# comparison, only when backward is done.


# %%
def step(comm, bucket, overlap, layers=LAYERS, layer_bytes=LAYER_BYTES, forward=FORWARD, backward=BACKWARD,
         algorithm="ring", array=cluster.Phantom):  # fmt: skip
    """One step. bucket: layers in a bucket; forward, backward: seconds a layer; array: of a size in bytes."""
    for _ in range(layers):
        comm.compute(seconds=forward, label="forward")
    in_flight = []
    for done in range(1, layers + 1):
        comm.compute(seconds=backward, label="backward")  # one more gradient is final
        if overlap and done % bucket == 0:  # the bucket is full: begin, and go on with backward
            in_flight.append(comm.all_reduce(array(bucket * layer_bytes), algorithm=algorithm, async_op=True))
    for work in in_flight:
        work.wait()
    for _ in range(0 if overlap else layers // bucket):
        comm.all_reduce(array(bucket * layer_bytes), algorithm=algorithm)


def simulate(bucket, overlap=True, network="10gbe", **options):
    return cluster.launch(partial(step, bucket=bucket, overlap=overlap, **options), (), 8, "simulation", network)


# %%
overlapped_guess = guess("How long does a step with buckets of 8 layers take, with overlap?", unit="ms")

# %%
serial, overlapped = simulate(8, overlap=False), simulate(8)

# %% source_hidden=true
FINAL = [LAYERS * FORWARD + done * BACKWARD for done in range(1, LAYERS + 1)]  # seconds
eight = buckets.buckets(overlapped.trace, FINAL)
MOMENTS = {f"bucket {i} is full": bucket.start + 1e-3 for i, bucket in enumerate(eight)}
MOMENTS["all sums are there"] = overlapped.seconds
step_through(
    lambda axes, until: buckets.draw(axes, eight, LAYERS * FORWARD, MOMENTS[until]),
    "a rank's step until a moment. Each gradient fills an eighth of its bucket (light blue) as soon as backward has "
    "completed it. A full bucket is all-reduced (vermilion) while backward fills the next one. The line marks the end "
    "of backward; only the last all-reduce will be after it.",
    frames=list(MOMENTS), multiples=["bucket 3 is full", "all sums are there"],
    name="until", height=3.4, source="simulated",
)  # fmt: skip
table(
    ["buckets of 8 layers", "step"],
    [["no overlap", time_text(serial.seconds)], ["overlap", time_text(overlapped.seconds)],
     ["computation alone", time_text(COMPUTATION)],
     ["your guess, with overlap", overlapped_guess.against(1e3 * overlapped.seconds)]],
    "simulated: 8 machines, 10 Gbit/s Ethernet",
)  # fmt: skip

# %% [markdown]
# What remains after the computation is called *exposed* communication.
#
# ## Measure, simulate, compute
#
# There are $m$ buckets. Backward needs $r$ seconds for the layers of one bucket, its all-reduce takes $c$ seconds, and
# forward takes $F$. The all-reduces run one after the other, each from the moment when its bucket is full. Then a step
# takes
#
# $$F + m r + m c \;\text{ without overlap}, \qquad F + r + (m - 1)\max(r, c) + c \;\text{ with it:}$$
#
# the first bucket must be filled and the last one sent, and in between the slower of the two decides.


# %%
def exposed(run):
    """Seconds in which rank 0 does not compute."""
    return (1 - run.trace.shares(0).compute) * run.seconds


def formula(bucket, overlap=True, network="10gbe", nodes=8):
    m, net = LAYERS // bucket, cluster.Network.preset(network)
    r, c = bucket * BACKWARD, cost.all_reduce("ring", nodes, bucket * LAYER_BYTES, net.alpha, net.beta)
    return LAYERS * FORWARD + (r + (m - 1) * max(r, c) + c if overlap else m * (r + c))


# %% source_hidden=true
rows = []
for bucket in (1, 2, 8, 64):
    before, run = simulate(bucket, overlap=False), simulate(bucket)
    rows.append([f"{LAYERS // bucket} of {bytes_text(bucket * LAYER_BYTES)}", time_text(before.seconds),
                 time_text(run.seconds), time_text(formula(bucket)), time_text(exposed(run))])  # fmt: skip
    assert np.isclose(before.seconds, formula(bucket, overlap=False), rtol=1e-9)
    assert np.isclose(run.seconds, formula(bucket), rtol=1e-9)
    assert np.isclose(exposed(run), run.seconds - COMPUTATION)
table(
    ["buckets", "no overlap, simulated", "overlap, simulated", "overlap, formula", "exposed, from the trace"],
    rows,
    f"8 machines, 10 Gbit/s Ethernet; {time_text(COMPUTATION)} of computation",
)

# %% [markdown]
# Simulation and formula agree. This answers the question of the page. Where an all-reduce takes less time than backward
# needs to fill the next bucket ($c \le r$), only that of the last bucket is exposed. Otherwise the network sets the
# pace. With one bucket nothing hides, but 64 buckets are not the best, either.
#
# ## How large should a bucket be?

# %%
best_guess = guess("Which buckets are best on 1 Gbit/s Ethernet?", ["1 layer", "2 layers", "8 layers", "64 layers"])

# %%
SIZES = [1, 2, 4, 8, 16, 32, 64]
NETWORKS = ["1gbe", "10gbe", "100gbe", "infiniband"]
curves = {name: [exposed(simulate(bucket, network=name)) for bucket in SIZES] for name in NETWORKS}
best_of = {name: SIZES[int(np.argmin(seconds))] for name, seconds in curves.items()}

# %% source_hidden=true
with style.applied():
    figure, [axes] = style.new_figure(8.0, 4.0)
    for tone, (name, seconds) in enumerate(curves.items()):
        axes.plot(SIZES, [1e3 * s for s in seconds], "o", color=style.SERIES[tone], label=f"{name}, simulated")
        expected = [1e3 * (formula(bucket, network=name) - COMPUTATION) for bucket in SIZES]
        axes.plot(SIZES, expected, style.DASHES[tone], color=style.SERIES[tone], label=f"{name}, formula")
        axes.plot(best_of[name], 1e3 * min(seconds), "o", markersize=12, fillstyle="none", color="black")
    axes.set(xscale="log", yscale="log", xlabel="layers in a bucket", ylabel="exposed communication (ms)")
    axes.set_xticks(SIZES, [str(size) for size in SIZES])
    axes.set_yticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
    axes.minorticks_off()
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    style.label_source(figure, ["simulated", "formula"], "circle: the best bucket")
level = max(curves["1gbe"]) / min(curves["1gbe"])
see(
    figure,
    "on 10gbe and slower networks the best bucket is in between; on the faster ones it is one layer. On 1gbe the line "
    f"is nearly level: the worst bucket exposes {level:.2f} times as much as the best one, since most of the "
    "communication cannot hide.",
)
found = ", ".join(f"{size} on {name}" for name, size in best_of.items())
right = {1: "1 layer", 2: "2 layers", 8: "8 layers", 64: "64 layers"}[best_of["1gbe"]]
say(f"Best number of layers in a bucket: {found}. Your guess for 1gbe: {best_guess.against(right)}.")

# %% [markdown]
# Why are both small and large buckets slow? A bucket of $b$ bytes costs a ring of $p$ ranks
# $c = 2(p-1)(\alpha + \beta b/p)$. Below $b = p\,\alpha/\beta$ most of it is latency: small buckets are expensive.
# Above it, larger buckets save little, and the part of the step that cannot overlap grows with $b$. If computation is
# the slower of the two ($c < r$), that part is the all-reduce of the last bucket. If communication is slower, that part
# is the backward that fills the first bucket. Turn both:


# %% source_hidden=true
def draw_step(axes, bucket, network):
    run = simulate(bucket, network=network)
    buckets.draw(axes, buckets.buckets(run.trace, FINAL), LAYERS * FORWARD, run.seconds)
    axes.set_title(f"step {time_text(run.seconds)}, exposed {time_text(exposed(run))}")


explore(
    draw_step,
    "a rank's step, one row a bucket. What is to the right of the line, the end of backward, is exposed. A full "
    "bucket that stays light blue waits for the network.",
    bucket=[8, 1, 2, 4, 16, 32, 64],
    network=["10gbe", "1gbe", "100gbe", "infiniband"],
    multiples=[{"bucket": 1}, {"bucket": 2}, {"bucket": 32}, {"network": "1gbe"}],
    height=2.6, shared=False, source="simulated",
)  # fmt: skip

# %% [markdown]
# ## The same by minidl
#
# `Synchronous(bucket_mb=..., overlap=...)` does this for any model, with hooks. Here are eight layers of 256 x 256
# weights on four simulated machines of 10 GFLOP/s. The gradients are real, and so is the training:


# %%
def simulated_training(bucket_mb, overlap, model=lambda: nn.models.MLP([256] * 9)):
    random = np.random.default_rng(0)
    x = random.standard_normal((4 * 64, 256)).astype(np.float32)
    splits = data.Splits(data.Dataset(x, 0 * x), data.Dataset(x[:1], 0 * x[:1]))
    job = parallel.Job(model=model, data=splits, loss=F.mse_loss, batch_size=64, epochs=1,
                       optimizer=partial(optim.SGD, lr=0.01))  # fmt: skip
    machine = cluster.Node(flops_per_s=10e9, bytes_per_s=np.inf)
    strategy = parallel.Synchronous(bucket_mb, "ring", overlap=overlap)
    return parallel.train(job, strategy, 4, cluster.Simulation("10gbe", machine))


def seconds(report):
    return report.history[-1]["seconds"]


# %% source_hidden=true
reports = {(mb, overlap): simulated_training(mb, overlap) for mb in (0.3, 0.6, 3.0) for overlap in (False, True)}
table(
    ["bucket_mb", "no overlap", "overlap", "equal weights"],
    [[mb, *(time_text(seconds(reports[mb, overlap])) for overlap in (False, True)),
      reports[mb, False].digests[0] == reports[mb, True].digests[0]] for mb in (0.3, 0.6, 3.0)],
    "simulated: four steps; overlap changes the time of the sums and not the sums",
)  # fmt: skip

# %% [markdown]
# ## A layer without a gradient, and `no_sync`
#
# Let the model have one more layer, registered last, that forward does not use. Its hook never fires.


# %%
class WithIdleLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.idle = nn.models.MLP([256] * 9), nn.Linear(256, 256)

    def forward(self, x):
        return self.used(x)


# %%
idle_guess = guess("What does the idle layer do to `Synchronous(bucket_mb=0.3, overlap=True)`?",
                   ["nothing", "the run hangs", "its gradient is garbage", "nothing overlaps any more"])  # fmt: skip

# %%
idle = {overlap: simulated_training(0.3, overlap, WithIdleLayer) for overlap in (False, True)}
same = all(np.array_equal(idle[True].checkpoint.model[f"used.{name}"], w)
           for name, w in reports[0.3, True].checkpoint.model.items())  # fmt: skip
lost = "nothing overlaps any more" if seconds(idle[True]) == seconds(idle[False]) else "nothing"

# %% source_hidden=true
say(f"With the idle layer four steps take {time_text(seconds(idle[False]))} without overlap and "
    f"{time_text(seconds(idle[True]))} with it (simulated). The weights of the other layers are "
    f"{'the same bits as before' if same else 'others'}. Your guess: {idle_guess.against(lost)}.")  # fmt: skip

# %% [markdown]
# Buckets are filled from the last layer to the first, and begin in this order on every rank. The first bucket never
# becomes full, so all buckets begin after backward. minidl then sends zeros for a missing gradient, and with the last
# bucket a flag for each parameter: if no rank has its gradient, the optimizer skips it, as on one machine. PyTorch's
# DDP stops at the next forward with an error. `find_unused_parameters=True` searches the graph after each forward and
# counts unused parameters as ready, which keeps the overlap and costs the search.
#
# Another case: several backward passes before one step (*gradient accumulation*). An all-reduce after each of $m$
# passes sends $m$ times the bytes for the same sum. Under DDP's `no_sync()` the first $m - 1$ passes only add up;
# `Synchronous(accumulate=m)` does the same. The second mistake below sends after the first pass.
#
# ## On real processes
#
# Does it work outside of a simulation? Two processes of this computer sleep for the time of the computation (so that it
# does not matter how many cores there are) and send real messages, slowed down to 1 Gbit/s:

# %%
# measured: differs from run to run
slower = partial(step, layers=8, layer_bytes=1_000_000, forward=5e-3, backward=10e-3,
                 array=lambda nbytes: np.zeros(nbytes // 4, np.float32))  # fmt: skip
rows = []
for overlap in (False, True):
    program = partial(slower, bucket=1, overlap=overlap)
    real = min(cluster.launch(program, (), 2, network="1gbe").seconds for _ in range(3))
    virtual = cluster.launch(program, (), 2, "simulation", "1gbe").seconds
    rows.append(["overlap" if overlap else "no overlap", real, virtual])

# %% source_hidden=true
# measured: differs from run to run
table(
    ["8 layers of 1 MB, 2 ranks", "measured", "simulated"],
    [[name, time_text(real), time_text(virtual)] for name, real, virtual in rows],
    "measured: the best of three; computation: 120 ms of sleep",
)
(_, *without), (_, *with_overlap) = rows
saved = [1e3 * (before - after) for before, after in zip(without, with_overlap, strict=True)]
say(f"Overlap saves {saved[0]:.1f} ms measured and {saved[1]:.1f} ms simulated. Real steps take longer: "
    "a sleeping process wakes up late, and the cores copy the messages.")  # fmt: skip

# %% [markdown]
# Two warnings. First, the processes of one computer have no network to hide: sums in shared memory need the cores that
# backward needs, and overlap makes such a step slower. `Synchronous` therefore overlaps only where there is a network
# (its docstring has the measurement). Second, on GPUs the all-reduce uses some of the GPU, so that backward becomes a
# little slower; our model leaves that out.
#
# ## From 8 to 256 machines
#
# Now a large model: 25 million weights, 100 MB of gradients, whose backward takes 120 ms (Goyal et al., section 4);
# suppose 60 ms for forward. It has 8 equal buckets; the all-reduce is Rabenseifner's (04b).

# %% source_hidden=true
large = partial(step, bucket=1, layers=8, layer_bytes=12_500_000, forward=60e-3 / 8, backward=120e-3 / 8,
                algorithm="rabenseifner")  # fmt: skip
MACHINES, SHOWN = [8, 16, 32, 64, 128, 256], ["1gbe", "10gbe", "100gbe"]
bars = {}
for name in SHOWN:
    engine = cluster.Simulation(name, trace="ledger")
    for p in bar(MACHINES, f"simulating {name}"):
        runs = [cluster.launch(partial(large, overlap=overlap), (), p, engine) for overlap in (False, True)]
        bars[name, p] = [1e3 * exposed(run) for run in runs]

# %% source_hidden=true
with style.applied():
    figure, panels = style.new_figure(9.5, 3.6, columns=3)
    for axes, name in zip(panels, SHOWN, strict=True):
        for i, p in enumerate(MACHINES):
            for side, waiting in zip((-0.2, 0.2), bars[name, p], strict=True):
                look = {"width": 0.36, **style.BORDER}
                axes.bar(i + side, 180, color=style.ACTIVITY["compute"], **look)
                hatch = "" if side < 0 else "///"
                axes.bar(i + side, waiting, bottom=180, color=style.ACTIVITY["send"], hatch=hatch, **look)
        axes.set_xticks(range(len(MACHINES)), MACHINES)
        axes.set(title=name, xlabel="machines")
    panels[0].set_ylabel("step (ms)")
    labels = {"computation": "compute", "exposed communication": "send"}
    for label, activity in labels.items():
        panels[2].bar(0, 0, color=style.ACTIVITY[activity], label=label)
    panels[2].set_ylim(0, 270)
    panels[2].legend(fontsize=8, loc="upper left")
    style.label_source(
        figure, "simulated", "left bar: no overlap; right bar, hatched: overlap; each panel has its own scale"
    )
grown = [bars[name, 256][0] / bars[name, 8][0] - 1 for name in SHOWN]
hidden = {name: 1 - bars[name, 256][1] / bars[name, 256][0] for name in SHOWN}
see(
    figure,
    f"the communication grows by {min(grown):.0%} to {max(grown):.0%} from 8 to 256 machines, since an all-reduce "
    "sends 2(p-1)/p of the gradient in 2 lg p rounds. On 100gbe overlap hides all but the last of eight "
    "buckets; on 1gbe it can hide at most the time of backward.",
)
say("Share of the communication that overlap hides on 256 machines: "
    + ", ".join(f"{share:.0%} on {name}" for name, share in hidden.items()) + ".")  # fmt: skip

# %% [markdown]
# How fast must a network be, so that all but the last bucket can hide? In the time of backward it must move twice the
# gradient. Goyal et al. compute with 125 ms:

# %% source_hidden=true
nbytes, backward = 25_000_000 * 4, 0.125
say(f"{bytes_text(nbytes)} of gradients, {bytes_text(2 * nbytes)} to send and receive in {backward} s: "
    f"{2 * nbytes / backward / 1e6:,.0f} MB/s, or {8 * 2 * nbytes / backward / 1e9:.1f} Gbit/s.")  # fmt: skip

# %% [markdown]
# ## Break it: two orders
#
# Collectives are matched by their order: the first call on one rank belongs to the first call on every other rank. Now
# suppose that backward runs in another order on rank 1, because its model skips a branch. Its second bucket is full
# first:


# %%
def two_orders(comm, labels):
    buckets = [np.full(3, 1.0), np.full(3, 10.0)]
    full_first = (0, 1) if comm.rank == 0 else (1, 0)
    works = [comm.all_reduce(buckets[i], async_op=True, label=f"bucket {i}" if labels else None) for i in full_first]
    for work in works:
        work.wait()
    return [float(bucket[0]) for bucket in buckets]


# %%
orders_guess = guess("Bucket 0 should become 1 + 1, bucket 1 should become 10 + 10. What comes out without labels?",
                     ["2 and 20", "11 and 11", "a deadlock", "an error"])  # fmt: skip

# %%
sums = cluster.launch(two_orders, (False,), nodes=2, on="simulation").results[0]
print("without labels:", sums)
try:
    cluster.launch(two_orders, (True,), nodes=2, on="simulation")
except cluster.CollectiveMismatch as error:
    print("with labels:", str(error).partition("\n")[0])
right = f"{sums[0]:g} and {sums[1]:g}"
say(f"Your guess: {orders_guess.against(right)}")

# %% [markdown]
# Sizes and types are equal, so no error is found, and gradients of different layers are added up. With a label on each
# bucket minidl compares the labels and names both calls. `Synchronous` does that, and begins buckets strictly from
# first to last, even if a later one is full earlier.
#
# ## Break it: a gradient that is not final
#
# To save memory, a rank may cut its share into two *micro-batches*: forward and backward for each, and the gradients
# add up. Then a hook is called twice, and only the second time is the gradient final:


# %%
def two_micro_batches(comm, send_at_call):
    w, calls, sums = nn.Parameter(np.array([3.0])), [], []

    def hook(parameter):
        calls.append(parameter)
        if len(calls) == send_at_call:
            sums.append(comm.all_reduce(parameter.grad.copy()))

    w.register_post_accumulate_grad_hook(hook)
    for x in (1.0, 10.0):
        (w * x).sum().backward()  # the gradient of w * x is x
    return float(sums[0][0])


early, final_one = (cluster.launch(two_micro_batches, (call,), 2, "simulation").results[0] for call in (1, 2))
say(f"Two ranks, each with gradients 1 and 10: sent too early {early:g}, sent when final {final_one:g}.")

# %% [markdown]
# No error, and every rank has the same wrong sum. `Synchronous(accumulate=2)` begins to send in the last micro-batch
# only.
#
# ## What the papers report
#
# - **The idea.** Zhang et al., *Poseidon* (arXiv:1706.03292), section 3.1, call it wait-free backpropagation.
# - **Buckets.** Li et al., *PyTorch Distributed* (arXiv:2006.15704), sections 3.2.2 and 3.2.3: gradients are put into
#   buckets in reverse order of the model's parameters, and reduced while backward goes on. Slides call this an
#   "asynchronous ring all-reduce". Only the *call* is asynchronous. Training is synchronous: no rank begins the next
#   forward before it has all sums, and the weights are those of 05a.
# - **The bandwidth.** Goyal et al. (arXiv:1706.02677), section 4.3, make the estimate above: 12.8 Gbit/s, about 15 with
#   overheads. Some slides call this a matter of latency; it is one of bandwidth. Latency is why they prefer halving
#   and doubling (Rabenseifner's algorithm) to the ring, which has more rounds and sends as many bytes.
# - **The larger experiment**, on networks from 8 times too fast to 8 times too slow:
#   [overlap.py](../benchmarks/reproductions/overlap.py).
#
# ## To the exercises
#
# [Exercises of chapter 05](../exercises/05_synchronous_data_parallelism/05_synchronous_data_parallelism.ipynb): after
# this page you can write the bucketed, overlapped all-reduce.
#
# **Three questions to argue about**
#
# 1. Forward of the next step begins with layer 0, whose gradient comes last. Could it begin before the all-reduce of
#    the other layers is done? What would have to change?
# 2. With overlap, is a network of half the bandwidth worth half the price?
# 3. The last bucket is never hidden. Which layers would you put into it, and how large would you make it?
#
# Next: [05c. Scaling](05c_scaling.ipynb)
