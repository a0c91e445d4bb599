# %% [markdown]
# # 05c. How many machines are worth having?
#
# *Read [05a](05a_data_parallelism.ipynb) and [05b](05b_overlap.ipynb) first. Reading time: about 23 minutes. Figures
# are* measured, simulated *or come from a* formula.
#
# ## The question
#
# A network has 25 million weights, so its gradient has 100 MB. One machine needs 5 ms for forward and backward of one
# sample, and the minibatch has 256 samples. Your team may rent up to 256 such machines.

# %% source_hidden=true
from dataclasses import replace
from functools import lru_cache

import numpy as np
from threadpoolctl import threadpool_limits

import minidl
from course.figures.page import say, see, table
from course.interaction import bar, explore, guess, warm_up
from course.results import pictures, python_gpt
from course.results.history import recorded
from minidl import cluster, data, nn, optim, parallel
from minidl import functional as F
from minidl.cluster import cost
from minidl.plots import lines, style
from minidl.plots.style import time_text

warm_up()
one_thread = threadpool_limits(1)  # matrices as small as ours are not worth a second thread


def ticks(figure, at):
    """Name these values at every horizontal axis, instead of powers of ten."""
    for axes in figure.axes:
        axes.set_xticks(at, [str(value) for value in at])
        axes.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
    return figure


# %%
MB = 1_000_000
GRADIENT = 100 * MB  # N, bytes
SAMPLE = 5e-3  # c, seconds of one machine for one sample
NETWORKS = ("1gbe", "10gbe", "infiniband")


def step(comm, samples):
    """One training step of a machine, without its numbers: compute, then add up 100 MB."""
    comm.compute(seconds=samples * SAMPLE)
    comm.all_reduce(cluster.Phantom(GRADIENT), algorithm="auto")


def simulated(p, samples, network):
    """Seconds for one step on p simulated machines, each with this number of samples."""
    return cluster.launch(step, (samples,), p, cluster.Simulation(trace="ledger"), network).seconds


one, many = simulated(1, 256, "1gbe"), simulated(256, 1, "1gbe")
say(f"256 samples take **{time_text(one)}** on 1 machine and **{time_text(many)}** on 256 machines with Gigabit "
    f"Ethernet (simulated): 256 machines take **{many / one:.2f} times as long** as one.")  # fmt: skip

# %% [markdown]
# ## A step is computation plus communication
#
# Let $p$ machines share a minibatch of $B$ samples; a sample takes $c$ seconds, the gradient has $N$ bytes. Then
#
# $$T(p) = \frac{B}{p}\,c + \text{all-reduce}(p, N).$$
#
# (Here nothing overlaps. Overlap, [05b](05b_overlap.ipynb), hides at most the time of backward; it comes back at the
# end of this page.) The *speed-up* is $T(1)/T(p)$; the *efficiency* is the speed-up divided by $p$. The next network is
# ten times as fast.

# %%
guess_speedup = guess("256 machines on 10 Gbit/s Ethernet: how many times as fast as one machine?", unit="times")


# %%
def formula(p, samples, network):
    """Seconds for one step on p machines, each with this number of samples."""
    net = cluster.Network.preset(network)
    return samples * SAMPLE + cost.all_reduce(cost.best_all_reduce(p, GRADIENT, net), p, GRADIENT, net.alpha, net.beta)


# %% source_hidden=true
rows = []
for network in NETWORKS:
    for p in (8, 256):
        ours, theirs = simulated(p, 256 / p, network), formula(p, 256 / p, network)
        rows.append([network, p, time_text(ours), time_text(theirs), f"{one / ours:.2f}", f"{one / ours / p:.1%}"])
table(["network", "machines", "step, simulated", "step, formula", "speed-up", "efficiency"], rows,
      "256 samples together")  # fmt: skip
say(f"256 machines on 10gbe: your guess was {guess_speedup.against(one / simulated(256, 1, '10gbe'))}.")

# %% [markdown]
# ## Strong or weak?
#
# There are two ways to use more machines. *Strong scaling*: the minibatch stays, and each machine gets less of it.
# *Weak scaling*: each machine keeps its $b$ samples, and the minibatch $B = pb$ grows. In weak scaling, efficiency is
# $T(1)/T(p)$, both with $b$ samples a machine: the step should take no longer when machines are added.

# %%
guess_weak = guess("Weak scaling, 32 samples a machine, 256 machines on 10gbe: the efficiency?", unit="%")

# %%
counts = [2**k for k in range(9)]
SIZES = {"strong": lambda p: 256 / p, "weak": lambda p: 32}  # samples on each of p machines
speed_up = {
    (kind, network): [p * each(p) / each(1) * simulated(1, each(1), network) / simulated(p, each(p), network)
                      for p in counts]
    for kind, each in SIZES.items() for network in NETWORKS
}  # fmt: skip

# %% source_hidden=true
panels = []
for kind, each in SIZES.items():
    drawn = [lines.Line("ideal", counts, counts, tone=6)]
    for tone, network in enumerate(NETWORKS):
        expected = [p * each(p) / each(1) * each(1) * SAMPLE / formula(p, each(p), network) for p in counts]
        drawn += [lines.Line(f"{network}, formula", counts, expected, tone=tone),
                  lines.Line(f"{network}, simulated", counts, speed_up[kind, network], "points", tone)]  # fmt: skip
    title = "strong scaling: 256 samples together" if kind == "strong" else "weak scaling: 32 samples a machine"
    panels.append(lines.Panel(drawn, "machines", "speed-up in samples per second", title, "xy", ylim=(0.15, 300)))
lost = [p for p, fast in zip(counts, speed_up["weak", "1gbe"], strict=True) if fast < 1]
see(ticks(lines.draw(panels, source=("simulated", "formula"), height=3.8), counts),
    "Strong scaling bends to a level, one for each network; on 1gbe this level is below one machine. Weak scaling "
    "goes on rising: its lines become parallel to the ideal one, and lie below it by the efficiency. "
    f"{lost[0]} to {lost[-1]} machines on 1gbe are slower than one there, too.")  # fmt: skip
reached = speed_up["weak", "10gbe"][-1] / 256
say(f"Weak scaling on 10gbe with 256 machines: efficiency {reached:.0%} (simulated); your guess: "
    f"{guess_weak.against(100 * reached)}.")  # fmt: skip

# %% [markdown]
# ## Two laws, one number
#
# Amdahl (1967) asked for strong scaling: if a fraction $f$ of one machine's work is serial, the speed-up is at most
#
# $$S = \frac{1}{f + (1 - f)/p} \le \frac 1 f .$$
#
# Gustafson (1988) asked for weak scaling: if a fraction $s$ of the time on $p$ machines is serial, the same work would
# take one machine $S = p - s\,(p - 1)$ times as long. Nothing in our step is serial. But the all-reduce of a large
# array takes $2\frac{p-1}{p}N\beta$ seconds (04b). With $C = 2N\beta$ the step is
#
# $$T(p) = \frac{B c}{p} + C\,\frac{p - 1}{p}, \qquad \frac{T(p)}{T(1)} = \frac 1p + f\Big(1 - \frac 1p\Big)
# \quad\text{with}\quad f = \frac{C}{Bc}.$$
#
# That is Amdahl's law to the letter: *adding up gradients acts like $C$ seconds of serial work*, for any number of
# machines. Gustafson's law holds with the same $C$ and $s = C / T(p)$.
#
# This answers the question of the page. The efficiency is $1/(1 + f(p-1))$, one half at $p = 1 + 1/f$. **The first
# $1 + 1/f$ machines reach at least half of the limit $1/f$; all further ones together add at most the other half.**
# Solve both laws for their fraction, with the simulated speed-ups:

# %%
rows = []
for network in NETWORKS:
    serial = 2 * GRADIENT * cluster.Network.preset(network).beta  # C
    strong, weak = (speed_up[kind, network][-1] for kind in SIZES)
    f, s = (1 / strong - 1 / 256) / (1 - 1 / 256), (256 - weak) / (256 - 1)
    rows.append([network, f"{f:.4f}", f"{serial / (256 * SAMPLE):.4f}", f"{s:.4f}",
                 f"{serial / formula(256, 32, network):.4f}", f"{1 / f:.1f}", f"{1 + 1 / f:.1f}"])  # fmt: skip
table(["network", "f, simulated", "C/(Bc)", "s, simulated", "C/T(p)", "limit of the speed-up, 1/f",
       "machines at 50 %, 1 + 1/f"], rows, "256 machines; f: 256 samples together; s: 32 a machine")  # fmt: skip

# %% [markdown]
# The small rest is $\alpha$, the time to start a message. (A fraction above 1, on 1gbe, says that the machines together
# are slower than one.)
#
# $f = 2N\beta/(Bc)$ also says what helps: a smaller gradient, a faster network, a larger minibatch. Bytes per sample
# are $2\frac{p-1}{p}\frac NB$: *twice the minibatch, half the communication per sample*. This speaks for large
# minibatches. Turn it:


# %% source_hidden=true
def bars(axes, minibatch, network, machines):
    """A step's computation and communication from 8 machines up to `machines`."""
    shown = [p for p in counts if 8 <= p <= machines]
    compute = [minibatch / p * SAMPLE for p in shown]
    communicate = [formula(p, minibatch / p, network) - work for p, work in zip(shown, compute, strict=True)]
    places = range(len(shown))
    axes.bar(places, compute, color=style.ACTIVITY["compute"], label="compute", **style.BORDER)
    axes.bar(places, communicate, bottom=compute, color=style.ACTIVITY["send"], label="communicate",
             **style.BORDER)  # fmt: skip
    for place, (work, rest) in enumerate(zip(compute, communicate, strict=True)):
        name = f"{work / (work + rest):.0%}"
        axes.annotate(name, (place, work + rest), (0, 2), textcoords="offset points", ha="center", fontsize=7)
    axes.set_xticks(places, [str(p) for p in shown])
    axes.set(xlabel="machines", ylabel="seconds a step")
    axes.set_ylim(0, 1.3 * max(np.add(compute, communicate)))
    axes.legend(fontsize=8, loc="upper right", ncols=2)


sums = {network: [formula(p, 0, network) for p in (8, 256)] for network in NETWORKS}
grown = max(many / few - 1 for few, many in sums.values())
explore(bars, "Blue, the computation, halves with every doubling of machines; vermilion, the communication, grows by "
        f"{grown:.0%} at most from 8 to 256. The percentages are efficiencies: the share of a step that is "
        "computation. A larger minibatch makes blue taller, a faster network vermilion shorter. Each picture has its "
        "own axis.",
        minibatch=[256, 512, 1024, 2048, 4096, 8192], network=["10gbe", "1gbe", "infiniband"],
        machines=[256, 16, 32, 64, 128], width=4.7, height=2.9, shared=False, source="formula",
        multiples=[{}, {"minibatch": 1024}, {"network": "1gbe"}, {"network": "infiniband"}])  # fmt: skip

# %% [markdown]
# ## Every number of machines, not only powers of two
#
# So far each machine had a $p$-th of the minibatch. But samples cannot be cut.

# %%
guess_stairs = guess("64 samples, no time for messages: is it faster with 63 machines than with 40?", ["yes", "no"])


# %%
def whole_samples(comm, minibatch):
    """One step of a machine that gets every p-th sample of the minibatch."""
    comm.compute(seconds=SAMPLE * len(range(comm.rank, minibatch, comm.size)))
    comm.barrier()


every = list(range(1, 81))
run_free = {p: cluster.launch(whole_samples, (64,), p, cluster.Simulation(trace="ledger")).seconds for p in every}

# %% source_hidden=true
stairs = [64 / (-(-64 // p) * SAMPLE) for p in every]
panel = lines.Panel(
    [lines.Line("if samples could be cut", every, [p / SAMPLE for p in every], tone=6),
     lines.Line("formula: B / (c ceil(B/p))", np.repeat(every, 2) + np.tile([-0.5, 0.5], 80), np.repeat(stairs, 2),
                tone=0),
     lines.Line("simulated, each p", every, [64 / run_free[p] for p in every], "points", 1)],
    "machines p", "samples per second", "64 samples, messages take no time", ylim=(0, 16_000))  # fmt: skip
figure = lines.draw([panel], source=("simulated", "formula"), height=3.6)
figure.axes[0].lines[-1].set(markersize=2.2, markeredgewidth=0)  # 80 points side by side
see(figure,
    "A staircase. It touches the straight line where p divides 64; between 32 and 63 machines nothing changes, since "
    "some machine still has two samples; beyond 64 machines nothing changes at all.")  # fmt: skip
faster = "yes" if run_free[63] < run_free[40] else "no"
say(f"40 machines: {64 / run_free[40]:,.0f} samples/s; 63: {64 / run_free[63]:,.0f}; 64: {64 / run_free[64]:,.0f} "
    f"(simulated); your guess: {guess_stairs.against(faster)}.")  # fmt: skip

# %% [markdown]
# With $p$ machines the slowest one has $\lceil B/p \rceil$ samples, and the others wait for it:
# $T = c(m)\,\lceil B/p \rceil$. Data parallelism changes $p$, how many samples are computed at once. Model parallelism
# (chapter 10) changes $c(m)$, how long one sample takes on $m$ machines together.
#
# ## Waiting for the slowest
#
# Machines are not equally fast from step to step. Let each take a random time, exponentially distributed: often short,
# now and then very long.

# %%
guess_barrier = guess("32 machines, each takes 1 s on average: how long is a step with a barrier?", unit="s")


# %%
def uneven(comm, steps, draw_time):
    """Steps with a barrier; in each, a machine computes for draw_time(random numbers) seconds."""
    for step in range(steps):
        comm.compute(seconds=draw_time(comm.rng), label=str(step + 1))
        comm.barrier()


WAYS = {  # seconds of work, the node
    "exponential, mean 1 s": (lambda rng: rng.exponential(1.0), None),
    "log-normal jitter of 20 %": (lambda rng: 1.0, cluster.Node(1e9, 1e10, jitter=0.2)),
    "rank 0 is always half as fast": (lambda rng: 1.0, cluster.Node(1e9, 1e10, speeds={0: 0.5})),
}

# %% source_hidden=true
sizes, drawn, mean = [1, 2, 4, 8, 16, 32], [], {}
for tone, (name, (draw_time, node)) in enumerate(WAYS.items()):
    steps = 1000 if "exponential" in name else 100
    engine = cluster.Simulation(node=node, trace="ledger")
    mean[name] = [cluster.launch(uneven, (steps, draw_time), p, engine).seconds / steps
                  for p in bar(sizes, name)]  # fmt: skip
    drawn.append(lines.Line(f"{name}, simulated", sizes, mean[name], "points", tone))
harmonic = [sum(1 / k for k in range(1, p + 1)) for p in sizes]
drawn.append(lines.Line("1 + 1/2 + ... + 1/p, formula", sizes, harmonic, tone=6))
panel = lines.Panel(drawn, "machines", "seconds per step, mean", "1 s of work on average, then a barrier", "x",
                    ylim=(0, 4.5))  # fmt: skip
exponential, jittered, slow_rank = mean.values()
see(ticks(lines.draw([panel], source=("simulated", "formula"), height=3.4), sizes),
    "Random delays cost more with every doubling of machines; one machine that is always slow costs the same for any "
    f"number. Long tails are what hurts: 32 machines with a jitter of 20 % need {jittered[-1]:.2f} s.")  # fmt: skip
error = sum(1 / k**2 for k in range(1, 33)) ** 0.5 / 1000**0.5  # the variance of the maximum is the sum of 1/k^2
say(f"32 machines, exponential times: {exponential[-1]:.2f} s (simulated, 1,000 steps, standard error {error:.2f} s); "
    f"your guess: {guess_barrier.against(exponential[-1])}.")  # fmt: skip

# %% [markdown]
# Why? Of $p$ exponential times the *first* ends after $1/p$ on average. Then $p - 1$ are left, and, since exponential
# times have no memory, the next ends $1/(p-1)$ later, and so on. The last ends after
#
# $$\mathrm E[\max] = \frac 1p + \frac 1{p-1} + \dots + \frac 12 + 1 = H_p \approx \ln p + 0.58.$$

# %% source_hidden=true
traces = [cluster.launch(uneven, (6, draw_time), 4, cluster.Simulation(node=node), seed=3).trace
          for draw_time, node in WAYS.values()]  # fmt: skip
see(cluster.plot_traces(traces, titles=list(WAYS), row_height=0.17),
    "Six steps on four machines, numbered. Light grey is waiting at the barrier. In the first two pictures the slowest "
    "machine is not always the same; in the third it is rank 0, and the others wait half of the time.")  # fmt: skip

# %% [markdown]
# ## Faster at what?
#
# Samples per second are not what anybody wants. A larger minibatch has more of them, and each sample teaches less: of
# two gradients at the same weights neither builds on the step that the other suggests. From here on the course measures
#
# $$\frac{\text{learning}}{\text{second}} = \frac{\text{learning}}{\text{sample}} \times
# \frac{\text{samples}}{\text{second}},$$
#
# where learning is a fall of the loss, or a run that arrives at a target. Here are both factors for an MLP on scanned
# digits. Learning per sample: train one machine until the training loss is 0.3, and count samples (synchronous machines
# take the same steps, 05a); each minibatch has its own best of eight learning rates, and five seeds. Samples per
# second: eight simulated machines of 1 GFLOP/s.

# %%
train, test = data.digits()
SEEDS, LEARNING_RATES = range(5), [0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0]


def steps_to_target(minibatch, lr, seed, target=0.3):
    """Steps until the loss on all training samples is below the target; 100 if it is not by then."""
    minidl.manual_seed(seed)
    model, rng, left = nn.models.MLP(64, 32, 10), np.random.default_rng(seed), np.empty(0, int)
    sgd = optim.SGD(model.parameters(), lr=lr)
    for count in range(1, 100):
        while len(left) < minibatch:
            left = np.concatenate([left, rng.permutation(len(train.x))])
        taken, left = left[:minibatch], left[minibatch:]
        model.zero_grad()
        F.cross_entropy(model(train.x[taken]), train.y[taken]).backward()
        sgd.step()
        with minidl.no_grad():
            if F.cross_entropy(model(train.x), train.y).item() < target:
                return count
    return 100


minibatches, steps, rates = [8, 16, 32, 64, 128, 256, 512], {}, {}
for B in bar(minibatches, "training to the target"):
    tried = {lr: np.array([steps_to_target(B, lr, seed) for seed in SEEDS]) for lr in LEARNING_RATES}
    rates[B] = min(tried, key=lambda lr: tried[lr].mean())
    steps[B] = tried[rates[B]]  # of each seed

# %% source_hidden=true
NODE = cluster.Node(flops_per_s=1e9, bytes_per_s=1e10)


def samples_per_second(batch_size, network):
    """Of a synchronous run on eight simulated machines, in its second epoch of two minibatches."""
    few = data.Splits(data.Dataset(*train[: 2 * batch_size]), test)
    job = parallel.Job(model=lambda: nn.models.MLP(64, 32, 10), data=few, batch_size=batch_size, epochs=2,
                       optimizer=lambda weights: optim.SGD(weights, lr=1.0))  # fmt: skip
    engine = cluster.Simulation(network=network, node=NODE, trace="ledger")
    first, second = parallel.train(job, parallel.Synchronous(), 8, engine).history
    return 2 * batch_size / (second["seconds"] - first["seconds"])


throughput = {(network, B): samples_per_second(B, network) for network in NETWORKS for B in minibatches}

# %%
guess_batch = guess("Eight machines on 1gbe: which minibatch arrives at the target first?", minibatches)

# %%
learned = {B: 1 / (B * steps[B]) for B in minibatches}  # targets per sample, of each seed
product = {(network, B): learned[B] * throughput[network, B] for network, B in throughput}
best = {network: max(minibatches, key=lambda B: product[network, B].mean()) for network in NETWORKS}
agree = {network: sum(max(minibatches, key=lambda B: product[network, B][seed]) == best[network] for seed in SEEDS)
         for network in NETWORKS}  # fmt: skip

# %% source_hidden=true
panels = [
    lines.Panel([lines.Line("", minibatches, [learned[B].mean() for B in minibatches], "both", 6)], "minibatch",
                "targets per sample, mean", "learning per sample", "xy"),
    lines.Panel([lines.Line(network, minibatches, [throughput[network, B] for B in minibatches], "both", tone)
                 for tone, network in enumerate(NETWORKS)], "minibatch", "samples per second", "samples per second",
                "xy"),
    lines.Panel([lines.Line(network, minibatches, [product[network, B].mean() for B in minibatches], "both", tone)
                 for tone, network in enumerate(NETWORKS)], "minibatch", "targets per second, mean",
                "learning per second", "xy"),
]  # fmt: skip
see(ticks(lines.draw(panels, source=("measured", "simulated"), height=3.4), minibatches),
    f"Left: a sample in a minibatch of 512 teaches {learned[512].mean() / learned[16].mean():.2f} times as much as in "
    "one of 16. Middle: larger ones hide the network. Right: the product has its top in between, on Ethernet "
    "further to the right than on InfiniBand.")  # fmt: skip
say("Best minibatch: " + ", ".join(f"{B} on {network} (in {agree[network]} of {len(SEEDS)} seeds)"
                                   for network, B in best.items())
    + f"; your guess for 1gbe: {guess_batch.against(best['1gbe'])}. Steps counted, seconds simulated; the best "
    f"learning rates go from {min(rates.values()):g} to {max(rates.values()):g}.")  # fmt: skip

# %% [markdown]
# `benchmarks/reproductions/learning_per_second.py` has the formula for the top.
#
# ## Where data parallelism ends
#
# It is simple: copy the model, cut the minibatch, add up. Four things end it.
#
# 1. **Communication.** On 1gbe the best number of machines for 256 samples is one: the first picture of this page.
# 2. **Tuning.** Another minibatch wants another learning rate: chapter 08.
# 3. **One sample too large.** Each machine holds all weights, and the activations of at least one sample. A sample of
#    1024 x 1024 x 1024 voxels takes 4.3 GB for each channel of each layer: chapters 10 to 13.
# 4. **More machines than samples**: the end of the staircase. minidl refuses such a run.
#
# ## Break it: three true sentences that mislead
#
# A report on our cluster says: "90 % efficient." Every number in the following table is right.

# %% source_hidden=true
weak = {(network, p): p * 32 / formula(p, 32, network) for network in NETWORKS for p in (1, 8, 256)}  # samples/s
slow, alone = (weak["1gbe", 256] / (256 / q * weak["1gbe", q]) for q in (8, 1))
strong = formula(1, 256, "10gbe") / formula(256, 1, "10gbe")
table(
    ["what the report says", "what it does not say"],
    [
        [f"1gbe: {slow:.0%} efficiency from 8 to 256 machines", f"8 machines were slow already: {alone:.0%} from 1"],
        [f"10gbe: {weak['10gbe', 256] / weak['10gbe', 1]:.0f} times the speed of one machine",
         f"weak scaling, with minibatches of {256 * 32:,}; with the same 256 samples {strong:.1f} times"],
        [f"minibatch 512: {throughput['10gbe', 512] / throughput['10gbe', 32]:.1f} times the samples/s of 32",
         f"{product['10gbe', 512].mean() / product['10gbe', 32].mean():.2f} times the learning per second"],
    ],
    "simulated and formula",
)  # fmt: skip

# %% [markdown]
# `parallel.report_card.problems(rows)` finds such tricks in a table of results.
#
# ## What the papers report
#
# **Goyal et al. (2017)**, *Accurate, Large Minibatch SGD* (arXiv:1706.02677): ResNet-50, 32 images a GPU, about 90 %
# scaling efficiency from 8 to 256 GPUs. Their definition starts from *eight*, one server:
#
# $$\text{efficiency} = \frac{\text{throughput}(256)}{32 \cdot \text{throughput}(8)}.$$
#
# The last section showed that this definition alone proves little. What makes theirs honest is the fast baseline:
# inside a server the eight GPUs have links of their own. The paper gives 100 MB of gradients, 120 ms of backward and 50
# Gbit/s between servers. **Four numbers are ours**: 60 ms of forward, four buckets, 20 GB/s within a server, and a
# jitter of 5 % in each part of the work. Does the model predict 90 %? Halve and double each of the four:


# %%
@lru_cache
def bucket_seconds(p, buckets, inside):
    """Simulated seconds of one bucket's all-reduce, on servers of eight."""
    net = cluster.Network.tree(32, 8, nic=(2e-6, inside), uplink=(10e-6, 50e9 / 8))
    part = cluster.Phantom(GRADIENT // buckets)
    return cluster.launch(lambda comm: comm.all_reduce(part, algorithm="hierarchical", per_group=8), (), p,
                          cluster.Simulation(trace="ledger"), net).seconds  # fmt: skip


def iteration(p, forward=0.06, buckets=4, inside=20e9, jitter=0.05):
    """Mean seconds over 200 draws; a bucket leaves when the slowest rank has it and the bucket before is through."""
    rng, each, ends = np.random.default_rng(0), bucket_seconds(p, buckets, inside), []
    for _ in range(200):
        work = np.array([[forward], *[[0.12 / buckets]] * buckets])
        work = work * rng.lognormal(-(jitter**2) / 2, jitter, (buckets + 1, p))
        end = 0.0
        for full in work.cumsum(axis=0)[1:].max(axis=1):
            end = max(end, full) + each
        ends.append(end)
    return np.mean(ends)


# %% source_hidden=true
OURS = {"forward": 0.06, "buckets": 4, "inside": 20e9, "jitter": 0.05}
NAMES = {"forward": "60 ms of forward", "buckets": "4 buckets", "inside": "20 GB/s within a server",
         "jitter": "jitter of 5 %"}  # fmt: skip


def efficiency(**changes):
    return iteration(8, **changes) / iteration(256, **changes)


found = {}
for name, value in bar(OURS.items(), "halving and doubling"):
    for factor in (0.5, 2):
        found[name, factor] = efficiency(**{name: type(value)(value * factor)})
table(["our number", "halved", "doubled"],
      [[NAMES[name], *(f"{found[name, factor]:.0%}" for factor in (0.5, 2))] for name in OURS],
      f"efficiency, 8 to 256 GPUs; all four as they are: {efficiency():.0%}; formula, simulated all-reduces",
)  # fmt: skip
say(f"One of our numbers moves the result between {min(found.values()):.0%} and {max(found.values()):.0%}: the paper's "
    f"90 % agrees with the model and does not test it. One bucket and no jitter, so no overlap: "
    f"{efficiency(buckets=1, jitter=0.0):.0%}; four and no jitter: {efficiency(jitter=0.0):.0%}.")  # fmt: skip

# %% [markdown]
# The paper also reports that an iteration takes 12 % longer while the minibatch grows 44 times (256 to 11,264, weak
# scaling): $1/1.12$ is the same 90 % once more. And it reports the other factor: with the linear scaling rule and
# warm-up, 8,192 samples a minibatch reached the validation error of 256 (23.74 % against 23.60 %). Without that, the
# 90 % would have been samples per second only. (That rule is for SGD; chapter 08 says what Adam needs.)

# %% [markdown]
# ## The result of Part II: a GPT, by your own all-reduce
#
# Two machines are enough to try it: the two cores of a laptop. `python3 -m course result 2` trains a GPT with
# 0.8 million weights on the source of Python's standard library, character by character, on two processes whose
# gradients are added up by *your* `ring_all_reduce` of chapter 04. It takes less than ten minutes. Here are its first
# steps, with minidl's ring:

# %% source_hidden=true
# measured: differs from run to run
settings = replace(python_gpt.Settings(), steps=64, evaluate_every=8)
done = iter(bar(range(settings.steps), "training on two processes"))
short = python_gpt.train(python_gpt.library_all_reduce, settings, lambda *step_and_row: next(done, None))
next(done, None)  # the bar is removed
full = recorded(2)
level = data.unigram_entropy(data.stdlib_text(settings.block_size, settings.n_chars).train.tokens)
runs = [(f"{settings.steps} steps", short.rows), ("recorded", full.rows)]
see(pictures.losses(runs, ("frequencies of characters alone", level)),
    "Soon the GPT beats a predictor that knows only how frequent each character is.")  # fmt: skip
say(f"Test loss after {settings.steps} steps {short.rows[-1]['test_loss']:.2f}, after {full.last['step']} steps "
    f"{full.last['test_loss']:.2f}, in {full.last['seconds'] / 60:.0f} minutes (measured).")  # fmt: skip

# %% source_hidden=true
print(python_gpt.written(short.model, 80), "\n\n----- and after the whole training:\n")
print(full.text[:300])

# %% [markdown]
# ## To the exercises
#
# The exercises of chapter 05 ask for this page twice: `efficiency`, and the expected time at a barrier.
#
# **Three questions to argue about**
#
# 1. Your minibatch may not grow, and Amdahl's limit is 8. What would you buy: a faster network, or faster machines?
# 2. One machine in 256 is always 20 % slower. Keep it, drop it, or give it fewer samples?
# 3. When is weak scaling the honest question, and when strong scaling?
#
# Chapter 06 asks what happens if nobody waits.
