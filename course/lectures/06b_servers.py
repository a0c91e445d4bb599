# %% [markdown]
# # 06b. Parameter servers: who waits at the server?
#
# *Read [06a](06a_staleness.ipynb) first: the server's requests, staleness. Reading time: about 35 minutes. Figures are*
# simulated, *or come from a* formula.
#
# ## The question
#
# In an asynchronous run nobody waits for another worker. Yet all of them talk to the same server. Take a gradient of
# 10 MB, which a worker computes in 40 ms, and 10 Gbit/s Ethernet. Each worker repeats: compute a gradient, send it to
#    the server, receive new weights of the same size. How many gradients a second does the server get?

# %%
import contextlib
from functools import partial

import numpy as np

from course.figures.page import say, see, table
from course.figures.waiting import Run, waiting
from course.interaction import bar, explore, guess, step_through, warm_up
from minidl import cluster, data, nn, optim, parallel
from minidl.plots import lines, style
from minidl.plots.style import bytes_text, time_text

warm_up()

MB = 1_000_000
TEN_GBIT = cluster.Network.preset("10gbe")


# %%
def serve(comm, workers, reply):
    """Answer every gradient with the weights, until all workers have left."""
    present = workers
    while present:
        request = comm.recv(cluster.ANY)
        if isinstance(request, str):
            present -= 1  # it said "leave"
        else:
            comm.isend(reply, comm.last_source)  # goes out while the next gradient comes in


def work(comm, servers, nbytes, steps, seconds):
    """Push each gradient, a slice to each server, and pull the weights; return when each round was done."""
    workers, rounds = comm.size - servers, []
    part = cluster.Phantom(nbytes // servers)  # a size without contents
    if comm.rank >= workers:
        return serve(comm, workers, part)
    for _ in range(steps):
        comm.compute(seconds=seconds, label="gradient")
        for server in range(workers, comm.size):
            comm.send(part, server)
        for server in range(workers, comm.size):
            comm.recv(server)
        rounds.append(comm.now())
    for server in range(workers, comm.size):
        comm.send("leave", server)
    return rounds


def run_workers(workers, servers=1, network=TEN_GBIT, steps=24):
    args = (servers, 10 * MB, steps, 0.04)
    return cluster.launch(work, args, workers + servers, "simulation", network)


def updates_per_second(run, workers):
    """Gradients per second of all workers together, over the last 12 rounds of each."""
    return sum(12 / (rounds[-1] - rounds[-13]) for rounds in run.results[:workers])


# %%
few = {p: updates_per_second(run_workers(p), p) for p in (1, 2, 4, 8)}
rows = [[p, f"{rate:.1f}", f"{rate / few[1]:.1f}"] for p, rate in few.items()]
table(["workers", "gradients a second", "times one worker"], rows, "simulated: 10 MB, 40 ms a gradient, 10 GbE")

# %% [markdown]
# Eight workers are nearly as fast as one could hope. The team orders 24 more.

# %%
guess_rate = guess("How many gradients a second with 32 workers?")

# %%
many = updates_per_second(run_workers(32), 32)
print(f"32 workers: {many:.1f} gradients a second, {many / few[8]:.2f} times as many as 8 workers (simulated)")
print(f"your guess: {guess_rate}")

# %% [markdown]
# Twenty-four machines, and nothing gained. Nobody waits for another *worker*; everybody waits for the *server*.
#
# ## See the queue

# %%
calm, crowded = run_workers(4, steps=4), run_workers(10, steps=4)
picture = cluster.plot_traces(
    [calm.trace, crowded.trace], titles=["4 workers, rank 4 serves", "10 workers, rank 10 serves"], row_height=0.24
)
see(
    picture,
    "time runs to the right. Above, four workers compute most of the time, and the server (lowest row) "
    "has pauses. Below, "
    "the server is busy without a pause, one message after the other (orange: in; vermilion: out, at the "
    "same time), and "
    "the workers stand in grey for most of the time: each waits for its turn.",
)

# %%
rows = []
for p in (1, 4, 8, 16, 32):
    run = run_workers(p)
    shares = [run.trace.shares(rank) for rank in range(p)]
    rows.append([p, *(f"{np.mean([getattr(share, name) for share in shares]):.0%}" for name in shares[0]._fields)])
table(["workers", "computing", "communicating", "waiting"], rows, "simulated: the mean over the workers")

# %% [markdown]
# ## The formula
#
# Let a message of $n$ bytes take $\alpha + n\beta$ seconds (chapter 04), and cut the vector of all weights into $S$
# slices, each on a **server** of its own: the server is **sharded**, and each slice is a **shard**. Two times matter:
#
# - The **service time** is how long one gradient occupies a server: $t_S = \alpha + \frac nS \beta$. Its answer goes
#   out at the same time on the other half of the wire. A server cannot take more than $1/t_S$ gradients a second.
# - The **round** of a worker that never queues: it computes for $g$ seconds, pushes $S$ slices one after the other, and
#   pulls $S$ slices: $g + 2 S\, t_S$. So $p$ workers make at most $p / (g + 2 S\,t_S)$ gradients a second.
#
# The slower of the two decides:
#
# $$\text{gradients a second} = \min\Bigl(\frac{p}{g + 2 S\,t_S},\; \frac{1}{t_S}\Bigr)$$
#
# They meet at $p^* = \frac{g}{t_S} + 2S$ workers. Beyond the bend each further worker only makes the queue longer.

# %%
guess_servers = guess("Two servers instead of one: at how many workers is the bend?")


# %%
def service(servers, network=TEN_GBIT):
    return network.time(10 * MB / servers)


def formula(p, servers, network=TEN_GBIT):
    once = service(servers, network)
    return min(p / (0.04 + 2 * servers * once), 1 / once)


counts, shards = range(1, 33), (1, 2, 4)
cases = [(servers, p) for servers in shards for p in counts]
simulated = {case: updates_per_second(run_workers(case[1], case[0]), case[1]) for case in bar(cases, "96 clusters")}
worst = max(abs(rate / formula(p, servers) - 1) for (servers, p), rate in simulated.items())
assert worst < 1e-3
say(
    f"Largest difference between simulation and formula over all {len(cases)} clusters: **{100 * worst:.2f} %**. "
    + "; ".join(f"bend with {S} server{'s' * (S > 1)}: {0.04 / service(S) + 2 * S:.1f} workers" for S in shards)
    + f" (formula). Your guess for two: {guess_servers}."
)

# %%
series = []
for tone, servers in enumerate(shards):
    name = f"{servers} server{'s' * (servers > 1)}"
    series.append(lines.Line(f"{name}, formula", counts, [formula(p, servers) for p in counts], tone=tone))
    points = [simulated[servers, p] for p in counts]
    series.append(lines.Line(f"{name}, simulated", counts, points, look="points", tone=tone))
panel = lines.Panel(series, "workers", "gradients a second")
see(
    lines.draw([panel], source=("simulated", "formula"), title="10 MB, 40 ms a gradient, 10 GbE", height=3.8),
    "each curve rises with the number of workers and then has a sharp bend. Two servers move the bend to the right and "
    "double the height of the plateau, four double it again. The simulated points, one for every number "
    "of workers, lie "
    "on the formula.",
)

# %% [markdown]
# What does a server carry?

# %%
rows = []
for servers in shards:
    ledger = run_workers(8, servers, steps=24).trace.ledger()
    carried = sum(traffic.nbytes_received for traffic in ledger[-1].values()) / (8 * 24)
    rows.append([servers, bytes_text(carried), bytes_text(10 * MB / servers)])
table(
    ["servers", "a server receives for each gradient, simulated", "n / S, formula"],
    rows,
    "8 workers; the workers' own traffic does not change",
)


# %%
def throughput(axes, workers, servers, network):
    wires = cluster.Network.preset(network)
    axes.plot(counts, [formula(p, 1, wires) for p in counts], color="0.6", linestyle="--", label="1 server, formula")
    axes.plot(
        counts, [formula(p, servers, wires) for p in counts], color=style.SERIES[0], label="these servers, formula"
    )
    rate = updates_per_second(run_workers(workers, servers, wires), workers)
    axes.plot(workers, rate, "o", color=style.SERIES[1], markersize=8, label=f"simulated: {rate:.3g} a second")
    axes.set(xlabel="workers", ylabel="gradients a second", yscale="log", xlim=(0, 33), ylim=(5, 5000))
    axes.set_yticks([10, 100, 1000], [10, 100, 1000])
    axes.set_title(f"bend at {0.04 / service(servers, wires) + 2 * servers:.3g} workers")
    axes.legend(fontsize=8, loc="upper left")


explore(
    throughput,
    "gradients a second against the number of workers, and one simulated cluster. On 1 Gbit/s Ethernet one server is "
    "full with three workers, and eight servers feed about twenty. On InfiniBand a single server is "
    "enough for all of them.",
    workers=[16, 1, 2, 4, 8, 32],
    servers=[1, 2, 4, 8],
    network=["1gbe", "10gbe", "100gbe", "infiniband"],
    multiples=[
        {"network": "1gbe"},
        {"network": "1gbe", "servers": 8},
        {"network": "10gbe", "servers": 4},
        {"network": "infiniband"},
    ],
    source=("simulated", "formula"),
)

# %% [markdown]
# The same from minidl: `ParameterServer(servers=S)` trains a real network on digits. Its gradient has only
# 19 KB, so we give it a slow network, on which the server is just as crowded.


# %%
def digits_job(lr=0.1, epochs=4, batch_size=16, samples=1408):
    train, test = data.digits()
    return parallel.Job(
        model=partial(nn.models.MLP, 64, 64, 10),
        data=data.Splits(data.Dataset(*train[:samples]), test),
        optimizer=partial(optim.SGD, lr=lr),
        batch_size=batch_size,
        epochs=epochs,
    )


slow = cluster.Network(alpha=0.0, beta=1e-7)  # 10 MB/s
size = 4 * sum(parameter.size for parameter in digits_job().build_model().parameters())
rows = []
for servers in (1, 2, 4):
    rates = {}
    for p in (1, 16):
        fast_servers = dict.fromkeys(range(p, p + servers), 1000.0)  # their arithmetic takes no time
        engine = cluster.Simulation(node=cluster.Node(1e8, np.inf, speeds=fast_servers), trace="ledger")
        report = parallel.train(digits_job(), parallel.ParameterServer(servers=servers), p, engine, slow)
        first, *_, last = report.history
        rates[p] = (last["steps"] - first["steps"]) / (last["seconds"] - first["seconds"])
    limit = 1 / slow.time(size / servers)
    rows.append([servers, f"{rates[1]:.0f}", f"{rates[16]:.0f}", f"{limit:.0f}", f"{rates[16] / limit:.2f}"])
head = ["servers", "1 worker", "16 workers", "1 / service time (formula)", "16 workers / limit"]
table(head, rows, "gradients a second, simulated by minidl, after the first epoch; a request has about 150 bytes more")

# %% [markdown]
# ## The price of shards
#
# One server handles one request at a time, so a reader never sees half of an update. Additions also **commute**: in
# whatever order they come, the sum is the same. Each shard still works so. But nobody orders the requests to
# *different* shards: a reader may find one shard before an update and the next one after it. That is a **torn read**.
# Here a client adds 1 to all weights, 200 times, shard after shard; another one reads shard after shard, and checks
# whether all weights are equal. minidl's `Store` has `get`, `put`, `add`, and a lock:


# %%
def read(comm, store, shards):
    """The different numbers found in the shards, one shard after the other."""
    found = set()
    for shard in range(shards):
        found.add(int(store.get(f"shard {shard}")[0]))
        comm.compute(seconds=1e-4)  # the reader works on what it got
    return found


def add_and_read(comm, shards, use_lock):
    store = parallel.Store(comm)
    if store.is_server:
        return store.serve()
    other, torn = 1 - comm.rank, 0
    with store:
        if comm.rank == 0:
            for shard in range(shards):
                store.put(f"shard {shard}", np.zeros(1, np.int64))
        comm.sendrecv("begin", other, other)
        for _ in range(200):
            comm.compute(seconds=comm.rng.exponential(1e-3))
            with store.lock() if use_lock else contextlib.nullcontext():
                if comm.rank == 0:
                    for shard in range(shards):
                        store.add(f"shard {shard}", np.ones(1, np.int64))
                else:
                    torn += len(read(comm, store, shards)) > 1
        comm.sendrecv("done", other, other)
        return torn, read(comm, store, shards)


# %%
guess_torn = guess("Of 200 reads of two shards, how many are torn?")

# %%
rows = []
for held, use_lock in ((1, False), (2, False), (4, False), (4, True)):
    run = cluster.launch(add_and_read, (held, use_lock), 3, "simulation", "10gbe")
    torn, final = run.results[1]
    rows.append([held, "yes" if use_lock else "no", f"{torn} of 200", *final, time_text(run.seconds)])
table(["shards", "lock", "torn reads", "every weight at the end", "time"], rows, f"simulated; your guess: {guess_torn}")

# %% [markdown]
# Nothing is lost: in the end every weight has been increased 200 times. But some reads mix two versions. Asynchronous
# training tolerates that; its gradients are stale anyway. A **lock** around the whole request makes it exact again:
# then some serial order of whole requests explains everything that anybody saw. The lock costs two more messages, and
# the time in the last column.
#
# ## Waiting on purpose: the gate
#
# Now let the network be fast, so that the server has no queue, and look at the workers' clocks. A worker's **clock**
# is the number of gradients that it has pushed. Synchronous training lets nobody begin the next clock before all have
# finished the present one. Asynchronous training lets everybody run. **Bounded staleness** (stale synchronous
# parallel, SSP) is in between: *a worker may begin its next clock if it is at most $s$ clocks ahead of the slowest
# one.*
#
# The server becomes a gate. It applies each change at once, but answers only those who may go on:


# %%
def may_begin(clocks, worker, bound):
    return bound is None or clocks[worker] - min(clocks) <= bound


def gate(comm, bound, weights, total):
    """Serve until `total` changes are applied; return the weights, the largest lead and the log of all pushes."""
    workers = comm.size - 1
    clocks, waiting, leads, log = [0] * workers, set(), [], []
    while len(log) < total:
        weights = weights + comm.recv(set(range(workers)) - waiting)
        worker = comm.last_source
        clocks[worker] += 1
        waiting.add(worker)
        for other in sorted(waiting):
            if may_begin(clocks, other, bound) and len(log) < total - 1:
                leads.append(clocks[other] - min(clocks))
                waiting.remove(other)
                comm.send(weights, other)
        log.append((comm.now(), worker, list(clocks), sorted(waiting)))
    for worker in range(workers):
        if worker not in waiting:
            comm.recv(worker)  # a gradient that comes too late
        comm.send(None, worker)
    return weights, max(leads), log


def gated(comm, bound, change, weights, total, seconds):
    """A worker: compute a change, push it, wait until the gate answers; the last rank is the gate."""
    server, step = comm.size - 1, 0
    if comm.rank == server:
        return gate(comm, bound, weights, total)
    while weights is not None:
        comm.compute(seconds=seconds(comm), label="gradient")
        comm.send(change(weights, comm.rank, step), server)
        weights, step = comm.recv(server), step + 1
    return None


# %% [markdown]
# Two kinds of **stragglers**. *Random*: every gradient takes one second, but one in ten takes four; any worker can be
# hit. *Persistent*: worker 0 always takes 2.5 seconds.


# %%
def random_straggler(comm):
    return 4.0 if comm.rng.random() < 0.1 else 1.0


def persistent_straggler(comm):
    return 2.5 if comm.rank == 0 else 1.0


def no_change(weights, worker, step):
    return 0.0


# %%
CLOCKS, WORKERS, BOUNDS = 200, 8, (0, 1, 3, 10, None)
KINDS = {"random": random_straggler, "persistent": persistent_straggler}


def name_of(bound):
    return "no bound" if bound is None else f"s = {bound}"


runs = {}
for kind, bound in bar([(kind, bound) for kind in KINDS for bound in BOUNDS], "10 clusters"):
    args = (bound, no_change, 0.0, WORKERS * CLOCKS, KINDS[kind])
    runs[kind, bound] = cluster.launch(gated, args, WORKERS + 1, "simulation", timeout=1e6)


def draw_clocks(axes, pushes):
    seconds, _, clocks, held = runs["random", 3].results[-1][2][pushes - 1]
    colours = [style.ACTIVITY["wait" if worker in held else "compute"] for worker in range(WORKERS)]
    axes.barh(range(WORKERS), clocks, color=colours, **style.BORDER)
    axes.axvline(min(clocks) + 3.5, color=style.SERIES[1], linestyle="--")
    axes.text(min(clocks) + 3.6, -0.75, "gate", color=style.SERIES[1], fontsize=8, va="center")
    axes.set(xlabel="clock (gradients pushed)", ylabel="worker", xlim=(0, 16), ylim=(WORKERS - 0.4, -1.2))
    axes.set_yticks(range(WORKERS))
    axes.set_title(f"after {seconds:.0f} s")


held = [len(waiting) for *_, waiting in runs["random", 3].results[-1][2]]
held_at = next(pushes for pushes in range(1, 80) if held[pushes - 1] > held[pushes])  # then the gate moves
step_through(
    draw_clocks,
    "the clocks of eight workers with random stragglers and s = 3. A worker beyond the gate, more than three "
    "clocks ahead of the slowest, is held (grey). When the slowest worker pushes, the gate moves and releases them.",
    frames=list(range(1, 81)),
    multiples=[held_at - 8, held_at, held_at + 1],
    name="pushes",
    source="simulated",
)

# %% [markdown]
# In lockstep ($s = 0$) every clock costs as much as the slowest of eight: on average $1 + 3\,(1 - 0.9^8)$ s with random
# stragglers. Without a bound every worker goes at its own pace: 1.3 s on average for each.

# %%
guess_random = guess("A bound of s = 10: what does it save of the lockstep time with random stragglers?", unit="%")
guess_persistent = guess("And with a persistent one?", unit="%")

# %%
exact = {
    ("random", 0): CLOCKS * (1 + 3 * (1 - 0.9**WORKERS)),
    ("random", None): CLOCKS * 1.3,
    ("persistent", 0): CLOCKS * 2.5,
    ("persistent", None): CLOCKS * WORKERS / (WORKERS - 1 + 1 / 2.5),
}
rows, total = [], {}
for (kind, bound), run in runs.items():
    _, lead, log = run.results[-1]
    assert bound is None or lead == bound  # it holds, and it is attained
    total[kind, bound], half = log[-1][0], log[len(log) // 2 - 1][0]
    pace = (total[kind, bound] - half) / (CLOCKS / 2)
    formula_text = f"{exact[kind, bound]:.0f} s" if (kind, bound) in exact else ""
    rows.append([f"{kind}, {name_of(bound)}", f"{total[kind, bound]:.0f} s", formula_text, lead, f"{pace:.2f} s"])
head = ["stragglers", "time for 8 x 200 gradients", "formula", "largest lead", "8 gradients, second half"]
table(head, rows, "simulated, 8 workers; lead: of a worker that is released, over the slowest one")
saved = {kind: f"{100 * (1 - total[kind, 10] / total[kind, 0]):.0f} %" for kind in KINDS}
say(
    f"A bound of 10 saves {saved['random']} of the lockstep time with random stragglers (your guess: "
    f"{guess_random}) and "
    f"{saved['persistent']} with a persistent one (your guess: {guess_persistent})."
)

# %%
pictures = []
for kind in KINDS:
    for bound in (0, 3, None):
        run = runs[kind, bound]
        end = run.results[-1][2][-1][0]
        computing = [min(run.trace.shares(rank).compute * run.seconds, end) for rank in range(WORKERS)]
        pictures.append(Run(f"{kind} straggler, {name_of(bound)}", computing, end))
see(
    waiting(pictures, source="simulated", note="8 workers, the same number of gradients in all six"),
    "one bar for each worker; blue computes, grey waits. Random stragglers, above: the bound of 3 removes "
    "most of the grey. "
    "A persistent one, below: worker 0 never waits and the seven others wait for it, with s = 3 as much "
    "as in lockstep. "
    "Only without a bound does the grey go away.",
)

# %% [markdown]
# - The bound **holds** and it is **attained**: the largest lead is exactly $s$. (A gate that never lets anybody get
#   that far is a barrier in disguise.)
# - **Random stragglers**: a worker that is late today is early tomorrow. A small lead is enough to even that out.
# - **A persistent straggler**: the fast workers use up their lead once. Then all go at the pace of the slowest, for
#   every finite $s$; the last column says so. The bound buys a constant, nothing in the long run.
#
# ### s = 0 is synchronous, to the bit
#
# With $s = 0$ all workers begin a clock with the same weights, and all their changes are in before the next clock
# begins. So a loop without any server must give the same weights, if it adds in the same order:


# %%
rng = np.random.default_rng(0)
points, targets = rng.standard_normal((200, 5)), rng.standard_normal(200)


def sgd_change(weights, worker, step):
    chosen = np.random.default_rng((worker, step)).choice(200, 10, replace=False)
    return -0.02 * points[chosen].T @ (points[chosen] @ weights - targets[chosen]) / 10


args = (0, sgd_change, np.zeros(5), WORKERS * 50, random_straggler)
served, _, log = cluster.launch(gated, args, WORKERS + 1, "simulation", timeout=1e6).results[-1]
order = [worker for _, worker, _, _ in log]  # in which the changes arrived
weights = np.zeros(5)
for step in range(50):
    begin = weights
    for worker in order[WORKERS * step : WORKERS * (step + 1)]:
        weights = weights + sgd_change(begin, worker, step)
assert np.array_equal(served, weights)
print(f"the gate with s = 0 and the synchronous loop are equal to the bit: {np.array_equal(served, weights)}")

gate_run = parallel.train(digits_job(), parallel.ParameterServer(staleness=0), 8, "simulation")
together = parallel.train(digits_job(lr=0.8, batch_size=128), parallel.Synchronous(), 8, "simulation")
pairs = zip(gate_run.checkpoint.model.values(), together.checkpoint.model.values(), strict=True)
gap = max(float(np.abs(x - y).max()) for x, y in pairs)
print(f"minidl, ParameterServer(staleness=0) and Synchronous on a minibatch 8 times as large at 8 times the rate: "
      f"largest difference of a weight {gap:.0e} (float32, another order of addition)")  # fmt: skip

# %% [markdown]
# One knob leads from synchronous to asynchronous. Here is minidl's `ParameterServer` on digits, eight workers with some
# jitter in their times, on the same network:

# %%
jittery = cluster.Simulation(node=cluster.Node(1e8, np.inf, jitter=0.5), trace="ledger")
rows = []
for words, strategy in bar(
    [
        ("synchronous: s = 0", parallel.ParameterServer(staleness=0)),
        ("bounded: s = 1", parallel.ParameterServer(staleness=1)),
        ("bounded: s = 3", parallel.ParameterServer(staleness=3)),
        ("asynchronous", parallel.ParameterServer()),
        ("asynchronous, locked", parallel.ParameterServer(locked=True)),
    ],
    "training five times",
):
    report = parallel.train(digits_job(), strategy, 8, jittery, "10gbe")
    mean = sum(age * count for age, count in report.staleness.items()) / report.staleness.total()
    loss, seconds = (report.history[-1][name] for name in ("loss", "seconds"))
    lead = max(report.recorded["lead"][8])
    rows.append([words, time_text(seconds), f"{mean:.2f}", max(report.staleness), lead, f"{loss:.3f}"])
head = ["", "time", "mean staleness", "largest", "largest lead", "training loss"]
table(head, rows, "simulated: MLP 64-64-10 on digits, 4 epochs, 8 workers")

# %% [markdown]
# With $s = 0$ the eight gradients of a clock are computed at the same weights and applied one after the other: they are
# 0, 1, ..., 7 updates old, 3.5 on average. Down to the asynchronous row the time falls and the staleness rises towards
# $p - 1 = 7$: less waiting, older gradients. (The last row serves one worker at a time on all servers together, as
# the lock above does.) Whether the exchange is worth it is the question of [06c](06c_sync_or_async.ipynb).
#
# ## A queue of its own: the next minibatch
#
# There is one more thing that a worker waits for: its data. A minibatch of 50 MB takes 40 ms to copy, and 50 ms to
# compute. A worker that first copies and then computes pays the sum. A worker that copies the *next* minibatch while
# the present one is computed pays the larger of the two. Rank 0 has the data, rank 1 computes:


# %%
def copy_and_compute(comm, batches, prefetch):
    batch = cluster.Phantom(50 * MB)
    if comm.rank == 0:
        for _ in range(batches):
            comm.send(batch, 1)
        return
    incoming = comm.irecv(0) if prefetch else None
    for i in range(batches):
        if prefetch:
            incoming.wait()
            incoming = comm.irecv(0) if i + 1 < batches else None
        else:
            comm.recv(0)
        comm.compute(seconds=0.05, label=f"batch {i}")


both = [cluster.launch(copy_and_compute, (5, prefetch), 2, "simulation", TEN_GBIT) for prefetch in (False, True)]
see(
    cluster.plot_traces(
        [run.trace for run in both], titles=["one after the other", "the next minibatch is prefetched"]
    ),
    "above, rank 1 alternates between receiving (orange) and computing (blue). Below, rank 0 sends the "
    "next minibatch while "
    "rank 1 computes the present one; rank 1 waits for the first copy only, and rank 0 has the pauses.",
)
copy = TEN_GBIT.time(50 * MB)
slow_formula, fast_formula = 5 * (copy + 0.05), copy + 4 * max(copy, 0.05) + 0.05
rows = [["one after the other", time_text(both[0].seconds), time_text(slow_formula), "5 (copy + compute)"]]
rows += [["prefetched", time_text(both[1].seconds), time_text(fast_formula), "copy + 4 max(copy, compute) + compute"]]
table(["", "simulated", "formula", ""], rows, f"5 minibatches; {both[0].seconds / both[1].seconds:.2f} times as fast")

# %% [markdown]
# ## Break it: get, then put
#
# A colleague finds `add` superfluous: "I get the weights, add my gradient, and put the result back." Four workers add
# 1 to a counter, 100 times each. It should end at 400.


# %%
def count_up(comm, how):
    store = parallel.Store(comm)
    if store.is_server:
        return store.serve()
    others = range(1, comm.size - 1)
    with store:
        if comm.rank == 0:
            store.put("w", np.zeros(1, np.int64))
            for other in others:
                comm.send("begin", other)
        else:
            comm.recv(0)
        for _ in range(100):
            comm.compute(seconds=comm.rng.exponential(1e-3))
            if how == "add":
                store.add("w", np.ones(1, np.int64))
                continue
            with store.lock() if how == "get, then put, with the lock" else contextlib.nullcontext():
                weights = store.get("w")
                comm.compute(seconds=1e-3)  # the gradient
                store.put("w", weights + 1)
        if comm.rank > 0:
            comm.send("finished", 0)
        else:
            for other in others:
                comm.recv(other)
        return int(store.get("w")[0])


# %%
guess_count = guess("At what number does it end with get, then put?")

# %%
rows = []
for how in ("add", "get, then put", "get, then put, with the lock"):
    run = cluster.launch(count_up, (how,), 5, "simulation", "10gbe")
    count = run.results[0]
    rows.append([how, count, 400 - count, time_text(run.seconds)])
table(["", "the counter", "lost updates", "time"], rows, f"simulated, 4 workers; your guess: {guess_count}")

# %% [markdown]
# Two workers get the same number, both add 1, both put the same result: one update is **lost**. Nothing crashes and the
# loss still falls, only more slowly, as if the cluster were smaller than it is. The lock repairs it, and makes the
# workers go one at a time. `add` needs neither: send the *change*, not the result.
#
# ## What the papers report
#
# **Ho et al. (2013)**, *More effective distributed ML via a stale synchronous parallel parameter server* (NIPS): a
# bound on the staleness "significantly increases the proportion of time workers spend computing, as opposed to
# waiting", with a proof of convergence, and was faster than both the synchronous and the asynchronous runs on their
# problems. Our bars show the first for stragglers that change; their guarantee needs the bound, which the fully
# asynchronous run does not have.
#
# **Li et al. (2014)**, *Scaling distributed machine learning with the parameter server* (OSDI), shard the weights
# over many servers and let the user choose the consistency, from sequential to bounded delay to eventual: our knob
# $s$.
#
# **Chen et al. (2016)**, *Revisiting distributed synchronous SGD* (arXiv:1604.00981), have another answer to
# stragglers: stay synchronous, add spare workers, and drop the last gradients of each step. The reproduction
# [`backup_workers.py`](../benchmarks/reproductions/backup_workers.py) computes how many spares pay;
# [`stale_synchronous.py`](../benchmarks/reproductions/stale_synchronous.py) trains under every bound of this page and
# compares the losses, which hardly differ.
#
# ## To the exercises
#
# [Exercises of chapter 06](../exercises/06_asynchrony/06_asynchrony.ipynb): the sharded server, the gate (whose bound
# must hold *and* be attained), and the lost updates are from this page.
#
# **Three questions to argue about**
#
# 1. Sharding moves the bend to more workers. In 04b the ring all-reduce had no bend at all: each rank sends
#    $2\frac{p-1}{p}n$ bytes however many there are. When would you still take parameter servers?
# 2. Your cluster has one machine that is always half as fast. You may choose $s$, give it smaller minibatches, or
#    throw it out. What do you do, and what does each choice do to the gradients?
# 3. With $s = 10$ a worker may be ten clocks ahead. What bound on the *staleness* in updates follows for $p$ workers?
#
# Next: [06c](06c_sync_or_async.ipynb) puts the time and the old gradients on one scale, the loss against the clock on
# the wall.
