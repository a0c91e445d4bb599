# %% [markdown]
# # 06e. May several processes write without a lock?
#
# *Read [06a](06a_staleness.ipynb) first. Reading time: about 17 minutes. Figures are* measured, simulated *or come from
# a* formula.
#
# ## The question
#
# Two processes of one machine share an array. Each adds 1 to the same counter, again and again. No messages, no
# waiting, no lock.

# %% source_hidden=true
import fcntl
import tempfile
import time

import numpy as np

from course.figures.page import say, see, table
from course.interaction import bar, guess, step_through, warm_up
from minidl import cluster, data, kernels, nn, optim, parallel
from minidl.plots import lines, style

warm_up()

# %%
TIMES = 200_000  # additions of each process


def add_ones(comm, columns, times=TIMES):
    """Add 1 to randomly chosen counters in shared memory; return their final sum and the seconds of an addition."""
    counters = comm.shared_array(f"{columns} counters", columns, np.int64)
    places = comm.rng.integers(0, columns, times).tolist()
    comm.barrier()
    began = time.perf_counter()
    for place in places:
        counters[place] += 1
    seconds = (time.perf_counter() - began) / times
    comm.barrier()
    return int(counters.sum()), seconds


# %%
guess_sum = guess(f"Two processes add 1 to one counter {TIMES:,} times each. Where does it end?")

# %% source_hidden=true
# measured: differs from run to run
left, no_lock = cluster.launch(add_ones, (1,), nodes=2).results[0]
say(f"The counter ends at **{left:,}**, not {2 * TIMES:,} (measured; your guess: {guess_sum.against(left)}): "
    f"**{100 - 50 * left / TIMES:.0f} %** of the additions are lost.")  # fmt: skip

# %% [markdown]
# The sum differs from run to run. If other programs use the cores, the two processes take turns, and less is lost.
#
# With weights in place of counters, such a program is *Hogwild* (Niu et al. 2011): all processes step the same weights
# by `w -= lr * gradient`, without a lock. That it trains at all is the surprise of this page.
#
# ## How an addition is lost
#
# `counter += 1` is three steps: read, add, write. What one process writes between the reading and the writing of the
# other is overwritten.

# %% source_hidden=true
STEPS = (("A", "read 41", 41), ("B", "read 41", 41), ("A", "write 42", 42), ("B", "write 42", 42))


def a_lost_addition(axes, step):
    """The first `step` of the four steps: when, by whom, and the counter after each."""
    for moment, (who, text, counter) in enumerate(STEPS[:step]):
        height = {"A": 2, "B": 0}[who]
        colour = style.ACTIVITY["receive" if text.startswith("read") else "send"]
        axes.barh(height, 0.9, left=moment + 0.05, height=0.6, color=colour, **style.BORDER)
        axes.text(moment + 0.5, height, text, ha="center", va="center", fontsize=8,
                  color="black" if text.startswith("read") else "white")  # fmt: skip
        axes.text(moment + 0.5, 1, counter, ha="center", va="center")
    axes.set(xlim=(0, 4), ylim=(-0.6, 2.6), xlabel="time (steps)", xticks=range(5))
    axes.set_yticks([0, 1, 2], ["process B", "counter", "process A"])


step_through(a_lost_addition, "an example: both processes read 41 and both write 42. "
             "Two additions, and the counter is one larger.",
             frames=range(1, 5), multiples=[2, 3, 4], height=2.0)  # fmt: skip

# %% [markdown]
# The virtual cluster can lose additions too, if the program says how long lies between reading and writing. Here it is
# 1 µs of the 4 µs that an addition takes, on average, with random times:


# %%
def add_ones_slowly(comm, columns, times):
    counters = comm.shared_array("counters", columns, np.int64)
    for place in comm.rng.integers(0, columns, times).tolist():
        comm.compute(seconds=3e-6)
        read = counters[place]
        comm.compute(seconds=1e-6)
        counters[place] = read + 1
    comm.barrier()
    return int(counters.sum())


# %% [markdown]
# ## Sparse: many counters, few meetings
#
# Now there are $d$ counters, and each addition takes a random one.

# %%
guess_lost = guess("With 16 counters in place of one, which part of the losses is left?",
                   ["all", "a quarter", "a sixteenth", "less than a hundredth"])  # fmt: skip

# %% source_hidden=true
# measured: differs from run to run
COLUMNS, REPEATS = (1, 2, 4, 16, 64, 256), 3
random_times = cluster.Simulation(node=cluster.Node(1.0, 1.0, jitter=1.0), trace="ledger")
lost = {"measured": [], "simulated": []}
for columns in bar(COLUMNS, "counting lost additions"):
    sums = [cluster.launch(add_ones, (columns,), nodes=2).results[0][0] for _ in range(REPEATS)]
    lost["measured"].append(1 - min(sums) / (2 * TIMES))  # the run in which both cores were free for longest
    few = cluster.launch(add_ones_slowly, (columns, 4000), 2, random_times).results[0]
    lost["simulated"].append(1 - few / 8000)


def against_columns():
    with style.applied():
        figure, [axes] = style.new_figure(6.5, 3.4)
        for number, (source, fractions) in enumerate(lost.items()):
            look = {"color": style.SERIES[number], "marker": "os"[number]}
            axes.plot(COLUMNS, fractions, linestyle="none", label=source, **look)
            axes.plot(COLUMNS, fractions[0] / np.array(COLUMNS), style.DASHES[number], color=look["color"],
                      linewidth=0.8, label=f"f/d, f as {source} (formula)")  # fmt: skip
        axes.set(xscale="log", yscale="log", xlabel="counters d", ylabel="fraction of additions lost")
        axes.set_xticks(COLUMNS, COLUMNS)
        axes.minorticks_off()
        axes.legend()
        style.label_source(figure, ["measured", "simulated", "formula"], f"2 processes; most of {REPEATS} runs")
    return figure


see(
    against_columns(),
    "the fraction of lost additions, on logarithmic axes. Each line is the formula f/d through the first of its "
    "points. Twice the counters lose about half as much.",
)
one, sixteen = (lost["measured"][COLUMNS.index(columns)] for columns in (1, 16))
PARTS = {"all": 1, "a quarter": 1 / 4, "a sixteenth": 1 / 16, "less than a hundredth": 1 / 256}
nearest = min(PARTS, key=lambda part: abs(np.log(max(sixteen, 1e-6) / one / PARTS[part])))
say(f"One counter loses {100 * one:.1f} %, 16 counters lose {100 * sixteen:.1f} % (measured); your guess: "
    f"{guess_lost.against(nearest)}.")  # fmt: skip

# %% [markdown]
# An addition is lost only if the other process writes *the same counter* in between. If one counter loses the fraction
# $f$, then $d$ counters lose about $f/d$. (A little more: on a single counter overwrites come in chains, and one
# write can restore what another one overwrote.)
#
# A training row touches not one weight but $k$ of $d$. If it has one weight in each of $k$ ranges of $d/k$ weights, two
# rows share at least one weight with probability $1 - (1 - k/d)^k$, for small $k/d$ about $k^2/d$. Counted over pairs
# of random rows:

# %% source_hidden=true
PROBLEMS = {"sparse": (2_000_000, 20), "less sparse": (2_000, 20), "dense": (50, 50)}  # columns d, nonzeros k of a row
SIZES = (200, 2_000, 20_000, 200_000, 2_000_000)  # columns, with 20 nonzeros each
training = {(d, k): data.sparse_rows(40_000 if d > k else 16_000, d, k)
            for d, k in dict.fromkeys([*PROBLEMS.values(), *((d, 20) for d in SIZES)])}  # fmt: skip
sharing = {}
for (d, k), rows in training.items():
    of = rows.columns.reshape(-1, k)
    sharing[d, k] = (of[::2] == of[1::2]).any(axis=1).mean()  # a range is the same place in both rows
table(["rows", "d", "k", "pairs that share a weight, counted", "1 - (1 - k/d)^k"],
      [[name, f"{d:,}", k, f"{sharing[d, k]:.4f}", f"{1 - (1 - k / d) ** k:.4f}"] for name, (d, k) in PROBLEMS.items()],
      "counted over 20,000 pairs (dense: 8,000), and formula")  # fmt: skip

# %% [markdown]
# ## What would a lock cost?
#
# A lock lets one process at a time pass. We try two kinds. The first is the operating system's file lock. The second is
# a message that goes round: the process that has it may write (round robin, Langford et al. 2009,
# `Hogwild(locked=True)`).

# %%
guess_cost = guess("How many times as long does an addition take with the operating system's lock?")


# %%
def with_file_lock(comm, times, path):
    counter = comm.shared_array("counter", 1, np.int64)
    with open(path) as file:
        comm.barrier()
        began = time.perf_counter()
        for _ in range(times):
            fcntl.flock(file, fcntl.LOCK_EX)
            counter[0] += 1
            fcntl.flock(file, fcntl.LOCK_UN)
        seconds = (time.perf_counter() - began) / times
    comm.barrier()
    return int(counter[0]), seconds


def with_message(comm, times):
    counter = comm.shared_array("counter", 1, np.int64)
    comm.barrier()
    began, other = time.perf_counter(), 1 - comm.rank
    for step in range(times):
        if comm.rank == 1 or step > 0:
            comm.recv(other)
        counter[0] += 1
        if comm.rank == 0 or step < times - 1:
            comm.send(None, other)
    seconds = (time.perf_counter() - began) / times
    comm.barrier()
    return int(counter[0]), seconds


# %% source_hidden=true
# measured: differs from run to run
with tempfile.NamedTemporaryFile() as file:
    locked = {"none": (TIMES, (left, no_lock)),
              "file lock": (TIMES // 5, cluster.launch(with_file_lock, (TIMES // 5, file.name), nodes=2).results[0]),
              "message that goes round": (1000, cluster.launch(with_message, (1000,), nodes=2).results[0])}  # fmt: skip
rows = [[name, f"{2 * times - total:,} of {2 * times:,}", f"{1e6 * seconds:.2f} µs", f"{seconds / no_lock:.3g}"]
        for name, (times, (total, seconds)) in locked.items()]  # fmt: skip
table(["lock", "additions lost", "time of an addition", "times as long"], rows,
      "2 processes, 1 counter, measured")  # fmt: skip
say(f"Your guess for the file lock: {guess_cost.against(locked['file lock'][1][1] / no_lock)}.")

# %% [markdown]
# A lock loses nothing, and costs more than the update of one number that it guards. With the message everyone also
# waits for the slowest. On the virtual cluster 8 nodes train the digits, and node 0 may be slow:

# %% source_hidden=true
job = parallel.Job(lambda: nn.models.MLP(64, 32, 10), data.digits, lambda w: optim.SGD(w, 0.1), batch_size=16, epochs=3)
rows = []
for nodes, speeds in {"equal": {}, "one slow (2.5 times)": {0: 0.4}}.items():
    for is_locked in (False, True):
        simulation = cluster.Simulation(node=cluster.Node(1e8, 1e10, speeds=speeds), trace="ledger")
        run = parallel.train(job, parallel.Hogwild(locked=is_locked), 8, simulation)
        age = sum(old * many for old, many in run.staleness.items()) / run.staleness.total()
        rows.append([nodes, "round robin" if is_locked else "none", f"{1e3 * run.history[-1]['seconds']:.0f} ms",
                     f"{age:.1f} ({max(run.staleness)})"])  # fmt: skip
table(["nodes", "lock", "time", "staleness, mean (largest)"], rows,
      f"{job.epochs} epochs, 8 nodes, simulated (a simulation interleaves whole updates: it loses none)")  # fmt: skip

# %% [markdown]
# Without a lock, equal nodes write at nearly the same time, and read again when several have written. That is why the
# mean is below 06a's $p - 1 = 7$: it holds for workers that fetch in the moment in which they push.
#
# ## Does learning notice?
#
# Logistic regression by SGD, one row a step, on one process and on two that share the weights and read half of the
# rows each. There is no lock anywhere. Two processes that share *nothing* do the same work for comparison.


# %%
def learn(comm, rows, lr, passes=6, repeats=3):
    """By setting: the shortest time of some passes over the rows, and the final loss of each repetition."""
    epoch, half = kernels.current().sparse_logistic_epoch, len(rows) // 2
    mine = slice(comm.rank * half, (comm.rank + 1) * half)
    whole = (rows.values, rows.columns, rows.starts, rows.labels)
    part = (rows.values, rows.columns, rows.starts[mine.start : mine.stop + 1], rows.labels[mine])
    shared, own, results = comm.shared_array("weights", rows.features), np.zeros(rows.features, np.float32), {}
    for setting in ("one process", "two, nothing shared", "two, shared weights"):
        weights = shared if setting == "two, shared weights" else own
        times, losses = [], []
        for _ in range(repeats):
            comm.barrier()
            weights[:] = 0
            epoch(weights, *whole, 0.0)  # compiled, and all in memory
            comm.barrier()
            began = comm.now()
            if setting != "one process" or comm.rank == 0:
                for _ in range(passes):
                    epoch(weights, *(whole if setting == "one process" else part), lr)
            comm.barrier()
            times.append(comm.now() - began)
            losses.append(epoch(weights, *whole, 0.0) / len(rows))
            comm.barrier()
        results[setting] = min(times), losses
    return results


# %%
guess_least = guess("With which rows do two processes gain the least from sharing the weights?", list(PROBLEMS))

# %% source_hidden=true
# measured: differs from run to run
learned = {case: cluster.launch(learn, (of, 0.005 if case == (50, 50) else 0.1), nodes=2).results[0]
           for case, of in bar(training.items(), "learning")}  # fmt: skip
gain = {
    case: [alone / seconds for seconds, _ in others]
    for case, ((alone, _), *others) in ((case, result.values()) for case, result in learned.items())
}
rows = []
for name, case in PROBLEMS.items():
    loss = learned[case]["one process"][1][0]
    differences = [100 * (together / loss - 1) for together in learned[case]["two, shared weights"][1]]
    rows.append([name, f"{loss:.4f}", f"{min(differences):+.2f} to {max(differences):+.2f} %",
                 *(f"{times:.2f}" for times in gain[case])])  # fmt: skip
table(["rows", "loss, one process", "difference of two without a lock, 3 runs", "speed-up, nothing shared",
       "speed-up, shared weights"], rows, "6 passes, measured; speed-ups of the fastest of 3 runs")  # fmt: skip
least = min(PROBLEMS, key=lambda name: gain[PROBLEMS[name]][1])
say(f"Least gain: {least}; your guess: {guess_least.against(least)}.")

# %% [markdown]
# A lost update of a weight is one of hundreds of thousands, so the loss notices little. The clock notices more, and it
# does not follow the collisions: where two cores are idle, the less sparse rows gain least, though only one pair in
# five shares a weight.
#
# ### What travels
#
# A core writes into its own cache, in **lines** of 64 bytes (16 weights). A line that the other core has written since
# must be fetched from there. So two rows meet not only in equal weights, but in equal *lines*. The next function counts
# the lines that travel when two cores take turns, row by row. We take a cache of 16,384 lines (1 MB); a line that a
# core has not used for longer would have to be fetched in any case, so it does not count.


# %%
def lines_that_travel(columns, steps=5_000, cache=16_384):
    """Cache lines fetched from the other core, per 100 weights; columns[i]: the columns of row i."""
    first_half, second_half = np.split(columns // 16, 2)
    used = np.full((2, columns.max() // 16 + 1), -np.inf)  # when each core used each line last
    kept, travelled = cache / len(np.unique(columns[0] // 16)), 0
    for step in range(steps):
        for core, rows in enumerate((first_half, second_half)):
            touched = np.unique(rows[step])
            own, other, now = used[core, touched], used[1 - core, touched], step + core / 2
            travelled += np.count_nonzero((other > own) & (now - own < kept))
            used[core, touched] = now
    return 100 * travelled / (2 * steps * columns.shape[1])


# %% source_hidden=true
# measured: differs from run to run
travels = {case: lines_that_travel(of.columns.reshape(-1, case[1])) for case, of in bar(training.items(), "counting")}
sparse = [(d, 20) for d in SIZES]
alone, together = ([gain[case][which] for case in sparse] for which in (0, 1))
speeds = [lines.Line("20 of d weights, nothing shared", SIZES, alone, look="both", tone=0),
          lines.Line("20 of d weights, shared", SIZES, together, look="both", tone=1),
          lines.Line("all of 50 weights, nothing shared", [50], gain[50, 50][:1], look="points", tone=2),
          lines.Line("all of 50 weights, shared", [50], gain[50, 50][1:], look="points", tone=3)]  # fmt: skip
counts = [lines.Line("lines that travel", SIZES, [travels[case] for case in sparse], look="both", tone=1),
          lines.Line("pairs of rows that share a weight", SIZES, [100 * sharing[case] for case in sparse],
                     look="both", tone=4),
          lines.Line("lines, all of 50 weights", [50], [travels[50, 50]], look="points", tone=3)]  # fmt: skip
top = 1.6 * max(max(pair) for pair in gain.values())
see(
    lines.draw([lines.Panel(speeds, "weights d", "speed-up by the second process", log="x", ylim=(0, top)),
                lines.Panel(counts, "weights d", "per 100 weights; per 100 pairs", log="x", ylim=(0, 109))],
               source=("measured", "simulated"), height=3.4),
    "left, the measured speed-up; if two cores are idle, it suffers where lines travel (right, counted), also where "
    "few pairs of rows share a weight. Dense rows share all weights, but their 50 weights lie in 4 lines.",
)  # fmt: skip
say("Lines that travel per 100 weights: "
    + "; ".join(f"{name} {travels[case]:.2g}" for name, case in PROBLEMS.items()) + " (simulated).")  # fmt: skip

# %% [markdown]
# In the less sparse rows nearly every weight lies in a line of its own, and about every second time the other core has
# written that line last. Dense rows pay for a line once for 16 weights. Sparse rows pay seldom: by the time the line is
# needed again, it has left the cache anyway. So sparse rows save not only collisions, but also lines that travel.
#
# ## Break it: what must not be lost
#
# A program stops when a *shared count of samples* reaches its goal. Nobody locks it: "Hogwild does not mind".


# %%
def until(comm, goal, is_one_counter):
    """Count samples in shared memory until all processes together have the goal; the samples really read."""
    counts = comm.shared_array("counts", 1 if is_one_counter else comm.size, np.int64)
    mine, done = 0 if is_one_counter else comm.rank, 0
    comm.barrier()
    while sum(counts) < goal:
        counts[mine] += 1
        done += 1
    return done


# %% source_hidden=true
# measured: differs from run to run
rows = []
for is_one_counter in (True, False):
    read = sum(cluster.launch(until, (TIMES, is_one_counter), nodes=2).results)
    name = "one counter for all" if is_one_counter else "a counter for each process, summed by the reader"
    rows.append([name, f"{read:,}", f"{100 * (read / TIMES - 1):+.1f} %"])
table(["", "samples read", "too many"], rows, f"goal: {TIMES:,} samples; 2 processes, measured")

# %% [markdown]
# **May they?** Weights, yes: a lost update is noise, and the next gradient corrects it. A lost count is an error that
# nothing corrects: the run is too long, and a schedule that reads the count is late. The cure needs no lock: *each
# number has one writer*. minidl's Hogwild counts its samples in this way.
#
# ## What the papers report
#
# **Niu, Recht, Ré and Wright (2011)**, *Hogwild!* (arXiv:1106.5730): with sparse updates SGD without locks has a
# nearly optimal rate of convergence, and is an order of magnitude faster than schemes with locks. Our counted
# losses and the price of our locks say why. `benchmarks/reproductions/hogwild.py` repeats it
# with 400,000 rows, in minutes on idle cores; its results are beside it.
#
# ## To the exercises
#
# [Exercises of chapter 06](../exercises/06_asynchrony/06_asynchrony.ipynb): count lost updates with and without a lock.
#
# **Three questions to argue about**
#
# 1. Momentum keeps a velocity for every weight. Sparse gradients, dense velocity: what happens to Hogwild?
# 2. Would you keep the *bias* of a sparse model in the shared weights like all others?
# 3. A lost update is noise, a torn one (half of a number's bytes old, half new) is not. Why did we see none?
#
# [06f](06f_actors_and_learners.ipynb): asynchrony in reinforcement learning, where it stayed.
