# %% [markdown]
# # 15c. What do 10,000 cores do with one minibatch?
#
# *Read [05c](05c_scaling.ipynb) first: speed-up and what limits it; and [06b](06b_servers.ipynb): shards of weights on
# servers. Reading time: about 22 minutes. Figures are* measured *on the computer that ran this page,* simulated, *or
# come from a* formula.
#
# ## The question
#
# In 2012 Dean et al. trained a speech model of 42 million weights on 1.1 billion examples, with thousands of cores. A
# gradient of it has 168 MB. Take cores of 10 GFLOP/s and Ethernet of 1 Gbit/s, and 6 floating-point operations for each
# weight and example: an example takes a core 25 ms.

# %%
from course.interaction import bar, explore, guess, warm_up

warm_up()

# %% source_hidden=true
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from course.figures.page import say, see, table
from minidl import cluster, data, nn, optim, parallel
from minidl.parallel import batch
from minidl.plots import lines, style

one_thread = threadpool_limits(1)  # matrices as small as ours are not worth a second thread

# %% [markdown]
# All cores share minibatches of 1,000 examples and all-reduce their gradients, as in chapter 05.

# %%
guess_speed = guess("How many times as fast as one core are 10,000 cores?")


# %% source_hidden=true
EXAMPLES, WEIGHTS, CORE = 1.1e9, 42e6, 1e10
GIGABIT = cluster.Network.preset("1gbe")


def speed_up(cores, examples):
    """Of cores that share each `examples` examples, with the best all-reduce."""
    reduce = cluster.cost.all_reduce("auto", int(cores), int(4 * WEIGHTS), GIGABIT.alpha, GIGABIT.beta)
    one = 6 * WEIGHTS / CORE
    return examples * one / (np.ceil(examples / cores) * one + reduce)


now = speed_up(10_000, 1000)
say(f"{now:.0f} times (formula; your guess: {guess_speed.against(round(now, 1))}). Nine tenths of the cores get no "
    "example at all, and the others wait for the sum of the gradients.")  # fmt: skip
cores = 2 ** np.arange(16)
see(
    lines.draw([lines.Panel([lines.Line(name, cores, [speed_up(p, n) for p in cores])
                             for name, n in (("all 1.1 billion", EXAMPLES), ("1,000,000", 1e6), ("30,000", 3e4),
                                             ("1,000", 1000))],
                            "cores", "times as fast as one core", "examples between two updates", "xy")],
               source="formula", title="42 million weights, 1 Gbit/s", height=3.6),
    "both axes are logarithmic. Small minibatches gain from few cores, the whole training set from every core that "
    "there is, since it waits for a sum once a pass.",
)  # fmt: skip

# %% [markdown]
# Methods that take the gradient of the *whole* training set for each update are called **batch methods**. They divide
# perfectly, but they make one update a pass. So the question becomes: can an update be made so good that a few dozen
# are enough?
#
# ## Two loops by hand
#
# Newton's method steps by $d = -H g$, where $g$ is the gradient and $H$ the inverse of the matrix of second
# derivatives. For 42 million weights nobody can store $H$. **L-BFGS** (Nocedal, 1980) never writes it down. It keeps
# the last $m$ steps $s_i = w_{i+1} - w_i$ and the changes of the gradient $y_i = g_{i+1} - g_i$ over them: along
# $s_i$, an inverse must turn $y_i$ back into $s_i$. Two loops over these pairs give $d$, from scalar products and sums
# of vectors alone:


# %%
def two_loops(g, pairs):
    """-H g, from the pairs (s, y), the oldest first."""
    d, alphas = -g, []
    for s, y in reversed(pairs):
        alphas.append(s @ d / (s @ y))
        d = d - alphas[-1] * y
    if pairs:
        s, y = pairs[-1]
        d = d * (s @ y) / (y @ y)
    for (s, y), alpha in zip(pairs, reversed(alphas), strict=True):
        d = d + (alpha - y @ d / (s @ y)) * s
    return d


# %% source_hidden=true
def named_arrays(pairs):
    return {name: x for i, (s, y) in enumerate(pairs) for name, x in ((f"s{i}", s), (f"y{i}", y))}


rng = np.random.default_rng(2)
size = 200
matrix = np.diag(np.geomspace(1, 30, size))
steps = rng.normal(size=(6, size))
pairs = [(s, matrix @ s) for s in steps]
g = rng.normal(size=size)
H = np.eye(size) * (pairs[-1][0] @ pairs[-1][1]) / (pairs[-1][1] @ pairs[-1][1])
for s, y in pairs:
    left = np.eye(size) - np.outer(s, y) / (s @ y)
    H = left @ H @ left.T + np.outer(s, s) / (s @ y)
vectors = batch.Vectors({"g": g} | named_arrays(pairs))
batch.direction(vectors, [batch.Pair(f"s{i}", f"y{i}", s @ y) for i, (s, y) in enumerate(pairs)])
off = max(np.abs(two_loops(g, pairs) - other).max() for other in (-H @ g, vectors.arrays["d"]))
say(f"With 6 pairs of {size} numbers this is -H g, with H written out as a matrix (BFGS updates), and what minidl's "
    f"`direction` gives, up to {off:.0e}. The matrix has {size**2:,} numbers, the pairs {2 * 6 * size:,}.")  # fmt: skip

# %% [markdown]
# How far to go along $d$? A **line search** tries $t = 1$, a Newton step, and halves or doubles $t$ until the loss has
# fallen enough and the slope along $d$ has become flatter (the Wolfe conditions). The second condition makes
# $s \cdot y$ positive, without which $H$ would point uphill. Each trial is a pass over the training set.
#
# Here are a network of 5,000 weights and the digits. Gradient descent may choose the best of three learning rates, and
# of momentum 0, 0.9 and 0.95. L-BFGS has nothing to choose.

# %%
guess_passes = guess("How many passes does the best of these nine need for the loss after 30 passes of L-BFGS?",
                     ["60", "150", "more than 200"])  # fmt: skip


# %% source_hidden=true
def job(lr=0.1, size=64, epochs=20, seed=0, momentum=0.0):
    return parallel.Job(partial(nn.models.MLP, 64, 64, 10), data.digits, partial(optim.SGD, lr=lr, momentum=momentum),
                        batch_size=size, epochs=epochs, seed=seed)  # fmt: skip


def losses(report):
    return [row["loss"] for row in report.history]


def descent(lr, momentum, seed=0):
    return losses(parallel.train(job(lr, N, 200, seed, momentum), on="simulation"))


N, SEEDS = len(data.digits().train), range(3)
newton = [parallel.train(job(size=N, epochs=30, seed=seed), parallel.SandblasterLBFGS(), on="simulation")
          for seed in SEEDS]  # fmt: skip
goals = [losses(report)[-1] for report in newton]
descents = {(lr, momentum): descent(lr, momentum)
            for momentum in bar((0.0, 0.9, 0.95), "gradient descent") for lr in (2.0, 4.0, 8.0)}  # fmt: skip
best = {momentum: min((way for way in descents if way[1] == momentum), key=lambda way: descents[way][-1])
        for momentum in (0.0, 0.9, 0.95)}  # fmt: skip
quickest_way = min(descents, key=lambda way: descents[way][-1])
again = [descents[quickest_way], *(descent(*quickest_way, seed) for seed in SEEDS[1:])]
reached = [next((number for number, loss in enumerate(each, 1) if loss <= goal), np.inf)
           for each, goal in zip(again, goals, strict=True)]  # fmt: skip
arrived = sum(each[-1] <= goals[0] for each in descents.values())
answer = "60" if np.median(reached) <= 100 else "150" if np.median(reached) <= 200 else "more than 200"
say(f"{reached[0]}; with two other seeds {reached[1]} and {reached[2]} (measured; your guess: "
    f"{guess_passes.against(answer)}). That is with momentum {quickest_way[1]} and the rate {quickest_way[0]:g}. Of "
    f"all nine, {arrived} get there within 200 passes.")  # fmt: skip
see(
    lines.draw([lines.Panel([lines.Line("L-BFGS", range(1, 31), losses(newton[0])),
                             *(lines.Line(f"gradient descent, momentum {momentum:g}", range(1, 201), descents[way])
                               for momentum, way in best.items())],
                            "passes over the training set", "training loss", log="xy")], source="measured", height=3.4),
    "both axes are logarithmic; for each momentum the best of its rates. L-BFGS falls faster and faster. Its first "
    "passes are spent on the length of the first step, since it has no pairs yet.",
)  # fmt: skip

# %% [markdown]
# ## Vectors that never travel
#
# With $m = 10$ pairs L-BFGS keeps 20 vectors besides weights, gradients and $d$: 3.4 GB for the speech model, and
# 136 GB for the largest model of the paper, of 1.7 billion weights. No machine held that, and to send it around would
# undo what was gained. In **Sandblaster** (Dean et al., section 4.2) all of these vectors are cut into shards on
# servers. A **coordinator** holds none. It sends *commands*, and each server computes with its shards: scalar product,
# axpy ($y \leftarrow y + \alpha x$), scaling, copying. Look at `two_loops` again: it needs nothing else. minidl's
# `Store` does these, too:


# %%
def coordinate(comm, arrays, pairs):
    """Rank 0 commands, the other ranks hold the shards."""
    store = parallel.Store(comm, servers=comm.size - 1)
    if store.is_server:
        return store.serve(arrays)
    with store:
        batch.direction(store, pairs)  # d, on the servers
        return store.dot("d", "d")


# %% [markdown]
# We give it vectors of 100,000 numbers (800 kB) on 4 servers, and 10 pairs.

# %%
guess_bytes = guess("How many bytes does the coordinator send for one direction?", unit="kB")

# %% source_hidden=true
size = 100_000
pairs = [(s, s * rng.uniform(1, 5, size)) for s in rng.normal(size=(10, size))]
arrays = {"g": rng.normal(size=size)} | named_arrays(pairs)
named = [batch.Pair(f"s{i}", f"y{i}", s @ y) for i, (s, y) in enumerate(pairs)]
run = cluster.launch(coordinate, (arrays, named), 5, "simulation", "10gbe")
d = two_loops(arrays["g"], pairs)
assert abs(run.results[0] / (d @ d) - 1) < 1e-10
sent = [event for event in run.trace.events if event.kind == "send"]
of_coordinator = [event.nbytes for event in sent if event.rank == 0]
of_servers = [event.nbytes for event in sent if event.rank != 0]
total = sum(of_coordinator) / 1000
say(f"{total:.0f} kB (simulated; your guess: {guess_bytes.against(round(total))}). The vectors have "
    f"{21 * 8 * size / 1e6:.0f} MB. The direction has the squared length of that by hand, to 10 digits.")  # fmt: skip
table(["from", "messages", "bytes in all", "largest message", "numbers in it"],
      [["coordinator to 4 servers", len(of_coordinator), f"{sum(of_coordinator):,}", f"{max(of_coordinator)} bytes",
        "a factor, names of two vectors"],
       ["4 servers to coordinator", len(of_servers), f"{sum(of_servers):,}", f"{max(of_servers)} bytes",
        "a server's part of a scalar product"]],
      "simulated, from the run's ledger of messages")  # fmt: skip

# %% [markdown]
# The price is latency: the loops are one long chain, and each of these commands is a round trip. That is cheap as long
# as a pass takes much longer.
#
# ## Tiny tasks, and copies of the last
#
# The slowest worker ends a pass. A failing disk, or another program on the machine, makes one of a thousand workers
# slow almost every time. So Sandblaster does not deal out one share to each worker. It cuts the batch into
# **portions** much smaller than that, and hands out the next one to a worker when it is free. A fast worker then gets
# more of them. When all are handed out, the coordinator gives unfinished ones to free workers a second time: **backup
# tasks**, as in MapReduce. The result that comes first counts, the other one is ignored.
#
# Below are 8 workers and one second of work for each, which we cut into portions. Each portion costs 4 ms more, to
# push its gradient. The first worker is four times as slow as the others.

# %%
guess_tail = guess("One portion for each worker takes 4 s. With 8 portions for each, and no backups?", unit="s")


# %%
def evaluate(comm, portions, backups):
    """The last rank coordinates; the others compute."""

    def compute(portion):
        comm.compute(seconds=8 / portions + 0.004, label=str(portion))

    if comm.rank < 8:
        return batch.work(comm, 8, compute)
    coordinator = batch.Coordinator(comm, range(8), backups)
    coordinator.run(range(portions))
    done = comm.now()
    coordinator.close()
    return done


# %% source_hidden=true
def simulated(per_worker, slower, backups):
    faults = cluster.FaultPlan().slow(0, slower)
    return cluster.launch(evaluate, (8 * per_worker, backups), 9, "simulation", faults=faults)


def computed(run):
    return sorted((event for event in run.trace.events if event.kind == "compute" and event.label),
                  key=lambda event: event.start)  # fmt: skip


eight = simulated(8, 4, False)
tail, of_slow = eight.results[-1], sum(event.rank == 0 for event in computed(eight))
say(f"{tail:.2f} s (simulated; your guess: {guess_tail.against(round(tail, 2))}). The slow worker computed {of_slow} "
    f"of the 64 portions. A perfect division would take {8 * 1.032 / 7.25:.2f} s.")  # fmt: skip


def timeline(axes, per_worker, slower, backups):
    run = simulated(per_worker, slower, backups == "yes")
    done, seen = run.results[-1], set()
    for event in computed(run):
        colour = style.ACTIVITY["receive" if event.label in seen else "compute"]
        look = {"height": 0.8, "color": colour, "edgecolor": "white", "linewidth": 0.6}
        axes.barh(event.rank, event.end - event.start, left=event.start, **look)
        seen.add(event.label)
    axes.axvline(done, color="black", linestyle="--")
    last = max(event.end for event in computed(run))
    axes.set(xlabel="time (s)", ylabel="worker", xlim=(0, max(4.5, 1.05 * last)), ylim=(7.6, -0.6))
    axes.set_title(f"all portions done after {done:.2f} s")


explore(
    timeline,
    "a bar is a portion, an orange bar a backup of one that another worker has; the dashed line is when all portions "
    "are done. With one portion for each worker (upper left) all wait for worker 0. Smaller portions let the others "
    "take over its work, and backups cut off its last one. Most backups are in vain, as nobody knows in advance which "
    "portions are late; a worker that is busy right of the line is late for the next pass.",
    per_worker=[8, 1, 2, 4, 16, 32],
    slower=[4, 1, 2, 8],
    backups=["no", "yes"],
    multiples=[{"per_worker": 1}, {"per_worker": 8}, {"per_worker": 1, "backups": "yes"},
               {"per_worker": 8, "backups": "yes"}],
    source="simulated",
)  # fmt: skip

# %% source_hidden=true
COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
ideal = [8 * (1 + 0.004 * n) / (7 + 1 / 4) for n in COUNTS]
panel = [
    lines.Line(name, COUNTS, [simulated(n, slower, backups).results[-1] for n in COUNTS], "both")
    for name, slower, backups in (
        ("one 4 times as slow, no backups", 4, False),
        ("one 4 times as slow, backups", 4, True),
        ("all alike, backups", 1, True),
    )
]
bounds = [i + 4 * (1 / n + 0.004) for i, n in zip(ideal, COUNTS, strict=True)]
panel.append(lines.Line("bound for no backups", COUNTS, bounds))
see(
    lines.draw([lines.Panel(panel, "portions for each worker", "seconds", log="x")], source=("simulated", "formula"),
               title="8 workers, 1 s of work each, 4 ms a portion", height=3.6),
    "without backups the time goes up and down with the moment when the slow worker begins its last portion. It is at "
    "most that of a perfect division plus one portion of the slow worker, since nobody begins a portion after the "
    "others have run out (Graham's bound). On the right the costs of the portions add up. With backups fewer portions "
    "are enough.",
)  # fmt: skip

# %% [markdown]
# Does it matter which copy comes first, or in what order the gradients are pushed? In floating-point numbers a sum
# depends on the order of its terms. minidl's shards therefore add portions in the order of their numbers, each once; an
# early one waits. Here is a run of `SandblasterLBFGS` on 2 and on 7 workers, the first of them 30 times as slow:

# %% source_hidden=true
runs = [parallel.train(job(size=40, epochs=8), parallel.SandblasterLBFGS(shards=2), p, "simulation",
                       faults=cluster.FaultPlan().slow(0, slower)) for p, slower in ((2, 1), (7, 30))]  # fmt: skip
weights = [np.concatenate([x.reshape(-1) for x in run.checkpoint.model.values()]) for run in runs]
say(f"{np.sum(weights[0] != weights[1])} of {len(weights[0]):,} weights differ, to the bit.")

# %% [markdown]
# ## Break it: two batches in one pair
#
# Why the whole training set, and not 256 examples? A tempting mistake: take each gradient from the next minibatch. Then
# $y = g_{i+1} - g_i$ is the change along the step *plus the difference of two minibatches*. Here $s$ is a step of
# gradient descent on the digits network, after five epochs; $y$ comes from one minibatch or from two.


# %% source_hidden=true
def gradient(model, x, y):
    model.zero_grad()
    nn.CrossEntropyLoss()(model(x), y).backward()
    return np.concatenate([parameter.grad.reshape(-1) for parameter in model.parameters()])


trained = parallel.train(job(0.2, 64, 5), on="simulation").model().train()
x, labels = data.digits().train[:]
rng, rows = np.random.default_rng(0), []
whole = gradient(trained, x, labels)
parameters, s = list(trained.parameters()), -0.1 * whole
before = [parameter.numpy().copy() for parameter in parameters]


def at(moved, rows):
    start = 0
    for parameter, values in zip(parameters, before, strict=True):
        step = s[start : start + values.size].reshape(values.shape) if moved else 0
        parameter.copy_(values + step)
        start += values.size
    return gradient(trained, x[rows], labels[rows])


exact = s @ (at(True, np.arange(N)) - at(False, np.arange(N)))
for n in (32, 128, 512):
    found = {True: [], False: []}
    for _ in range(200):
        one, other = rng.choice(N, n, replace=False), rng.choice(N, n, replace=False)
        at_first = at(False, one)
        for is_same in found:
            found[is_same].append(s @ (at(True, one if is_same else other) - at_first) / exact)
    rows.append([n, *(f"{np.mean(found[k]):.2f} ± {np.std(found[k]):.2f}" for k in (True, False)),
                 *(f"{np.mean(np.array(found[k]) <= 0):.0%}" for k in (True, False))])  # fmt: skip
table(["samples", "s·y, one minibatch", "s·y, two minibatches", "not positive, one", "not positive, two"], rows,
      f"measured: mean ± deviation of 200 draws; s·y of the whole training set is 1 ({N:,} samples)")  # fmt: skip

# %% [markdown]
# With two minibatches $s \cdot y$ is mostly noise, often negative, and $H$ is built from it. With one minibatch for
# both gradients it is right on average. So batch methods need one fixed function, or at least batches so large that
# their difference is smaller than the change along a step.
#
# ## Does it pay?
#
# The same network and digits, on clusters of 4 and 32 simulated workers of 1 GFLOP/s with 10 Gbit/s Ethernet. The goal
# is 95 % of the test digits. Three methods: *synchronous SGD* with minibatches of 64 and 256; *Downpour*, which is
# asynchronous, with 16 samples a gradient; and *L-BFGS* in portions of 45. Weights lie on two shards. SGD has the best
# rate of a grid, found on one seed; L-BFGS has none.

# %%
guess_race = guess("Which is first on 32 workers?",
                   ["synchronous SGD", "Downpour", "L-BFGS"])  # fmt: skip


# %% source_hidden=true
GOAL = 0.95


def on(strategy, workers, **terms):
    engine = cluster.Simulation("10gbe", cluster.Node(1e9, 1e10), trace="ledger")
    return parallel.train(job(**terms), strategy, workers, engine)


def passes(report):
    return next((row["epoch"] for row in report.history if row["accuracy"] >= GOAL), np.inf)


def seconds_a_pass(strategy, workers, size, epochs):
    report = on(strategy, workers, size=size, epochs=epochs)
    return report.history[-1]["seconds"] / epochs


def quickest(strategy, workers, size, rates, epochs):
    """The reports of all seeds at the rate that has the goal first on seed 0, or else the highest accuracy."""
    tried = {rate: on(strategy, workers, lr=rate, size=size, epochs=epochs) for rate in rates}
    rate = min(tried, key=lambda one: (passes(tried[one]), -tried[one].accuracy))
    return [tried[rate], *(on(strategy, workers, lr=rate, size=size, epochs=epochs, seed=seed) for seed in SEEDS[1:])]


found = {}  # by way and workers: passes of each seed, seconds a pass
serial = {size: quickest(parallel.Serial(), 1, size, (0.4, 0.8, 1.6, 3.2), 12) for size in (64, 256)}
for p, epochs in bar(((4, 5), (32, 10)), "two clusters"):
    for size, reports in serial.items():
        found[f"synchronous SGD, {size}", p] = (list(map(passes, reports)),
                                                seconds_a_pass(parallel.Synchronous(), p, size, 1))  # fmt: skip
    reports = quickest(parallel.Downpour(servers=2), p, 16, (0.1, 0.2, 0.4), epochs)
    found["Downpour", p] = list(map(passes, reports)), reports[0].history[-1]["seconds"] / epochs
    found["L-BFGS", p] = list(map(passes, newton)), seconds_a_pass(parallel.SandblasterLBFGS(2), p, 45, 3)
rows, times = [], {}
for (way, p), (counts, seconds) in found.items():
    times[way, p] = 1e3 * seconds * np.mean(counts)
    rows.append([p, way, ", ".join(f"{count:.0f}" for count in counts), f"{1e3 * seconds:.1f}", f"{times[way, p]:.0f}"])
rate = serial[64][0].job.optimizer.keywords["lr"]
longer = on(parallel.Serial(), 1, lr=rate, size=64, epochs=30)
first = min((way for way, p in times if p == 32), key=lambda way: times[way, 32])
say(f"First on 32 workers: {first} (simulated; your guess: {guess_race.against(first.split(',')[0])}).")
table(["workers", "method", "passes to 95 %, three seeds", "ms a pass", "ms to 95 %, mean"], rows, "simulated")
see(
    lines.draw([lines.Panel([lines.Line(name, range(1, len(each) + 1), each)
                             for name, each in (("synchronous SGD, 64", losses(longer)),
                                                ("L-BFGS", losses(newton[0])))],
                            "passes over the training set", "training loss", log="y")], source="measured", height=3.0),
    "SGD is far ahead in the first passes, since it makes many updates in each; L-BFGS falls faster and faster.",
)  # fmt: skip

# %% source_hidden=true
ratio = np.mean(found["L-BFGS", 32][0]) / np.mean(found["synchronous SGD, 64", 32][0])
gains = {way: times[way, 4] / times[way, 32] for way, p in times if p == 4}
say(f"Not here. From 8 times the workers L-BFGS gains more ({gains['L-BFGS']:.1f} times as fast) than Downpour "
    f"({gains['Downpour']:.1f}) or synchronous SGD with minibatches of 64 ({gains['synchronous SGD, 64']:.1f}), but "
    f"less than with 256 ({gains['synchronous SGD, 256']:.1f}). And it needs {ratio:.1f} times as many passes as SGD "
    "with 64. After 30 passes its *training* loss is the smaller one, but SGD has reached the test accuracy long "
    "before.")  # fmt: skip


def crossing(examples):
    """The least number of cores on which passes that divide perfectly win, although there are `ratio` times as many."""
    return next(p for p in range(1, 30_000) if speed_up(p, EXAMPLES) > ratio * speed_up(p, examples))


say(f"Now back to the first picture. Suppose that the speech model, too, needs {ratio:.1f} times as many passes by "
    f"L-BFGS as by synchronous SGD. Against minibatches of 1,000, L-BFGS is faster from **{crossing(1000):,} cores** "
    f"on, against minibatches of 30,000 from **{crossing(30_000):,}** (formula). This is the case for batch methods: "
    "not fewer gradients, but gradients that thousands of slow cores can share over a slow network.")  # fmt: skip

# %% [markdown]
# ## What history decided
#
# Dean et al. (2012, section 5) compare Downpour and Sandblaster on the speech model, both after a warm start of about
# ten hours. First at 16 % test accuracy was Downpour with Adagrad on 200 replicas, ahead of L-BFGS on 2,000. They
# expect L-BFGS to win only with far more cores, about 30,000. It did not come to that:

# %% source_hidden=true
say(f"- **Cores.** A card of 100 TFLOP/s computes as much as 10,000 of our cores, and sums no gradients over a "
    f"network: a pass in {EXAMPLES * 6 * WEIGHTS / 1e14 / 60:.0f} minutes (formula).\n"
    "- **Large minibatches.** From 2017 on, the linear scaling rule and warm-up train ResNet-50 with minibatches of "
    "8,192 in as many passes as with 256 ([08a](08a_linear_scaling.ipynb), [08b](08b_warm_up.ipynb)): between 1,000 "
    "examples and all of them there is enough to share.\n"
    "- **No fixed function.** Dropout and random distortions of images change the loss from pass to pass, and L-BFGS "
    "needs one function.\n"
    "- **Adagrad, then Adam** give each weight a rate of its own from a *noisy* gradient, with one or two vectors "
    "instead of twenty.")  # fmt: skip

# %% [markdown]
# What stayed are the parts. Backup tasks came back as backup workers of synchronous SGD (Chen et al., 2016;
# [06d](06d_sync_or_async.ipynb)). Arithmetic where the shards lie is what a sharded optimizer does
# ([13a](13a_shared_state.ipynb)). L-BFGS itself is alive where the function is fixed and precision counts, as in
# physics, with data that fit a machine.

# %% [markdown]
# ## What was learned on 16,000 cores
#
# Downpour's most famous run had no labels at all. Le et al. (2012) showed ten million frames of videos to an
# *autoencoder*, a network that learns to rebuild its input. It had a billion weights. Each replica was split over 169
# machines; all replicas together kept 1,000 machines with 16,000 cores busy for three days. In the end one unit
# responded to faces, and another to cats.
#
# It had three stages, each with an autoencoder. In a stage every window $w$ of the image has filters $E$ and $D$ *of
# its own*, not shared as in a convolution:
#
# $$h = E w, \qquad p = \sqrt{\textstyle\sum_{\text{neighbours}} h^2}, \qquad
# \text{cost} = |D h - w|^2 + 0.1 \textstyle\sum p .$$
#
# The stage passes $p$ on, after *local contrast normalization*: less the mean around each place, divided by the
# deviation there. The costs of all stages are minimized together.
#
# Here is a [small one](../benchmarks/reproductions/unsupervised_features.py). It has two stages, and each replica is a
# pipeline of two ranks. The images are letters, white on black or black on white; the network never gets their names.

# %%
from benchmarks.reproductions import unsupervised_features as features

replicas = parallel.Downpour(servers=2, replica=parallel.Hybrid(pp=2, micro_batches=1, cuts=(1,)))
autoencoder = parallel.train(features.job(seed=0), replicas, nodes=8, on="simulation").model()

# %% [markdown]
# As in the paper, a threshold on a unit's response sorts new images into one letter and all others. The letter weighs
# 35.2 % and the others 64.8 %, as faces did in the paper's test: always saying "no" is right in 64.8 % of cases. Unit
# and threshold are chosen on one half of the images, and judged on the other. All images are of fonts that training
# lacks.

# %%
guess_unit = guess("How many % does the most selective unit sort rightly?", unit="%")

# %% source_hidden=true
unit = features.favourite(autoencoder, seed=0)
say(f"It prefers **{unit.letter}**, and sorts **{unit.accuracy:.1%}** rightly (your guess: "
    f"{guess_unit.against(round(100 * unit.accuracy, 1))}; simulated). The paper's unit for faces: 81.7 %, on a harder "
    "task, and not the best of 26. With other seeds the best letter has less, on average (table below).")  # fmt: skip
see(
    unit.picture,
    f"after the first tile, the 19 new images that excite the unit most, with their letters: mostly {unit.letter}, in "
    "both colours. The first tile is the image that excites it most of all, found by gradient ascent.",
)

# %% [markdown]
# The paper's best stimulus looks like a face. Ours looks like no letter, and excites the unit more than any letter.
#
# Did learning do this, or would any network have such a unit? The paper's controls, over all letters:

# %% source_hidden=true
import csv
from pathlib import Path

with open(Path(features.__file__).parent / "results" / "unsupervised_features.csv", newline="") as file:
    controls = [[name, published or "-", f"{float(mean):.1f} ± {float(spread):.1f}", f"{float(best):.1f}"]
                for name, published, mean, spread, best in list(csv.reader(file))[1:]]  # fmt: skip
table(["detector", "faces, paper", "mean over 26 letters", "best letter"], controls,
      "% sorted rightly; published (all but 81.7 from memory); simulated, three seeds, ± half the range")  # fmt: skip

# %% [markdown]
# Learning counts, and so does the form of the network. Without contrast normalization the trained network is worse than
# random weights with it. The second stage is hardly better than the first, unlike in the paper. And if all letters are
# white on black ("one colour"), training images as linear filters are best: they need not ignore the colour. The stages
# ignore it by their form, since $h^2$ loses the sign.
#
# Why did the filters see only small windows? Because of the machines, too. Dean et al. (2012, figure 3) timed a
# minibatch of one replica on more and more machines. Here are their speech network of full layers, and networks for
# images with windows of 10 × 10.

# %% source_hidden=true
from benchmarks.reproductions import distbelief_speedups as distbelief

found = distbelief.speed_ups()
_, peak = distbelief.fastest("speech", found)
see(
    distbelief.picture(found),
    f"the speech network is fastest on {peak} machines, then slower. The networks for images go on gaining, the larger "
    "the more. Triangles: the paper's best for speech (8 machines) and for 36 maps (81 machines, more than 12 times; "
    f"here {found[distbelief.LARGEST][-1]:.0f}, and 12 for 8 maps by chance). The paper does not state minibatch, line "
    "and machines: those assumed here give its shape, not its numbers.",
)

# %% [markdown]
# On $M$ machines a full layer takes $1/M$ of the time to compute. But each machine needs the activations of *all*
# units: nearly the same bytes however many machines there are, in $M - 1$ messages. Computing falls with $M$, messages
# grow in number, so there is a best $M$. A machine that has a tile of the image needs only a rim around it, from its
# neighbours: the halos of [12a](12a_halos.ipynb), where the filters are shared besides.
#
# A year later Coates et al. (2013) trained a billion such weights on three machines with GPUs, in a couple of days.
#
# ## The answer
#
# Little, if it is small: most cores get no example, and all wait for the sum. Batch methods give every core work, and
# second-order steps make up for some of the updates that are lost. With few workers SGD is faster all the same. With
# thousands of slow cores over a slow network it need not be; large minibatches and fast cards made that case rare.
#
# ## To the exercises
#
# [Exercises of chapter 15](../exercises/15_faults_and_batch_methods/15_faults_and_batch_methods.ipynb): after this page
# you can write `lbfgs_direction` and `run_portions`.
#
# **Three questions to argue about**
#
# 1. The coordinator of Sandblaster does little work. What happens if it dies? What would you save, and how often?
# 2. Your portions take between 1 and 60 seconds. In which order would you hand them out, and would you need backups?
# 3. A worker returns wrong numbers once a day. Backup tasks compute some portions twice. Could they find it?
