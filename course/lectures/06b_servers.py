# %% [markdown]
# # 06b. Parameter servers: who waits at the server?
#
# *Read [06a](06a_staleness.ipynb) first: the server's requests, staleness. Reading time: about 19 minutes. Figures are*
# simulated, *or come from a* formula.
#
# ## The question
#
# In an asynchronous run no worker waits for another worker. Yet all of them talk to the same server. Take a gradient of
# 10 MB, which a worker computes in 40 ms, and 10 Gbit/s Ethernet. Each worker repeats: compute a gradient, **push** it
# to the server, **pull** new weights of the same size. Several servers can share the work: the vector of all weights is
# cut into slices, the **shards**, and each server keeps one.

# %% source_hidden=true
import contextlib
from functools import partial

import numpy as np

from course.figures import parameter_server
from course.figures.page import say, see, table
from course.interaction import bar, explore, guess, warm_up
from minidl import cluster, data, nn, optim, parallel
from minidl.plots import lines, style
from minidl.plots.style import bytes_text, time_text

warm_up()

MB = 1_000_000
TEN_GBIT = cluster.Network.preset("10gbe")


def at_one_moment(axes, servers):
    parameter_server.draw(axes, ["computes", "pushes", "computes", "pulls"], servers, bytes_text(10 * MB / servers))


explore(
    at_one_moment,
    "workers below, servers above, at one moment of an asynchronous run. A colour is a shard. Every worker has all "
    "weights, every server its shard only. A push sends each slice of the gradient to the server of its shard; a pull "
    "brings new weights back. More servers carry smaller shards, but a worker sends and receives 10 MB in any case.",
    servers=[2, 1, 4],
    multiples=[{"servers": 1}, {"servers": 4}],
    height=3.0,
)

# %% [markdown]
# How many gradients a second does the cluster apply? A server and a worker, whose gradients have a size but no
# contents:


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
    part = cluster.Phantom(nbytes // servers)
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


# %% source_hidden=true
few = {p: updates_per_second(run_workers(p), p) for p in (1, 2, 4, 8)}
rows = [[p, f"{rate:.1f}", f"{rate / few[1]:.1f}"] for p, rate in few.items()]
table(["workers", "gradients a second", "times one worker"], rows, "simulated: 10 MB, 40 ms a gradient, 10 GbE")

# %% [markdown]
# The team orders 24 more workers.

# %%
guess_rate = guess("How many gradients a second with 32 workers?")

# %% source_hidden=true
many = updates_per_second(run_workers(32), 32)
print(f"32 workers: {many:.1f} gradients a second, {many / few[8]:.2f} times as many as 8 workers (simulated)")
say(f"Your guess: {guess_rate.against(many)}")

# %% [markdown]
# Twenty-four machines, and nothing gained. No worker waits for another *worker*; all of them wait for the *server*.
#
# ## See the queue

# %% source_hidden=true
calm, crowded = run_workers(4, steps=4), run_workers(10, steps=4)
picture = cluster.plot_traces(
    [calm.trace, crowded.trace], titles=["4 workers, rank 4 serves", "10 workers, rank 10 serves"], row_height=0.24
)
see(
    picture,
    "time runs to the right. Above, four workers compute most of the time, and the server (lowest row) has pauses. "
    "Below, the server is busy without a pause, one message after the other: it receives one while it sends another. "
    "From the second round on every worker stands in grey before its turn.",
)

# %% [markdown]
# **Play it**: the triangle starts, + and - zoom, and a message under the pointer says which one it waited for.

# %% source_hidden=true
cluster.play_traces(
    [calm.trace, crowded.trace],
    titles=["4 workers, rank 4 serves", "10 workers, rank 10 serves"],
    title="One parameter server: 4 steps of 4 workers, and of 10",
)

# %% source_hidden=true
rows = []
for p in (1, 4, 8, 16, 32):
    run = run_workers(p)
    shares = [run.trace.shares(rank) for rank in range(p)]
    rows.append([p, *(f"{np.mean([getattr(share, name) for share in shares]):.0%}" for name in shares[0]._fields)])
table(["workers", "computing", "communicating", "waiting"], rows, "simulated: the mean over the workers")

# %% [markdown]
# ## The formula
#
# Let a message of $n$ bytes take $\alpha + n\beta$ seconds (chapter 04), with $S$ servers. Two times matter:
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
# They meet at $p^* = \frac{g}{t_S} + 2S$ workers, the bend of the curve. Beyond it each further worker only makes the
# queue longer: every worker waits, and the servers are busy all the time.

# %%
guess_servers = guess("Two servers instead of one: at how many workers is the bend?")


# %%
def service(servers, network=TEN_GBIT):
    return network.time(10 * MB / servers)


def formula(p, servers, network=TEN_GBIT):
    once = service(servers, network)
    return min(p / (0.04 + 2 * servers * once), 1 / once)


# %% source_hidden=true
counts, shards = range(1, 33), (1, 2, 4)
cases = [(servers, p) for servers in shards for p in counts]
simulated = {case: updates_per_second(run_workers(case[1], case[0]), case[1]) for case in bar(cases, "96 clusters")}
worst = max(abs(rate / formula(p, servers) - 1) for (servers, p), rate in simulated.items())
assert worst < 1e-3
say(
    f"Largest difference between simulation and formula over all {len(cases)} clusters: **{100 * worst:.2f} %**. "
    + "; ".join(f"bend with {S} server{'s' * (S > 1)}: {0.04 / service(S) + 2 * S:.1f} workers" for S in shards)
    + f" (formula). Your guess for two: {guess_servers.against(0.04 / service(2) + 4)}."
)
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


# %% source_hidden=true
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
    "gradients a second against the number of workers; the point is one simulated cluster. Left of the bend the "
    "workers are the limit, right of it the servers. Faster networks and more servers move the bend to the right.",
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
# 19 KB, so we give it a slow network, on which 16 workers keep the server busy:


# %% source_hidden=true
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
    rows.append([servers, f"{rates[1]:.0f}", f"{rates[16]:.0f}", f"{limit:.0f}"])
head = ["servers", "1 worker", "16 workers", "1 / service time (formula)"]
table(head, rows, "gradients a second, simulated by minidl, after the first epoch; a request has about 150 bytes more")

# %% [markdown]
# ### A push names a range of keys
#
# Li et al. (2014, sections 3.1, 3.2 and 4.2) do not send vectors. Their weights are pairs of a **key** and a value,
# sorted by key, and each server owns ranges of keys. *Range push* and *range pull* name a range: all entries in it
# travel, and those that a worker does not have count as zero. A dense gradient needs no keys at all. A sparse one, such
# as that of a language model's rare words, sends only what it touches, with the keys. Often the next push has the same
# keys; then the receiver has them cached, and a hash in their place is enough. What that does to the bend, with one
# server:

# %% source_hidden=true
touched = 10 * MB // 4 // 100
rows = []
for words, nbytes in {
    "all 2.5 million weights, 4 bytes each": 10 * MB,
    f"1 % of them ({touched:,}), with keys of 8 bytes": touched * (4 + 8),
    "the same keys again: values, and a hash of 8 bytes": touched * 4 + 8,
}.items():
    once = TEN_GBIT.time(nbytes)
    rows.append([words, bytes_text(nbytes), time_text(once), f"{0.04 / once + 2:.0f}"])
table(
    ["a push (and a pull) carries", "bytes", "service time", "bend at workers"],
    rows,
    "formula, 10 GbE, 40 ms a gradient",
)

# %% [markdown]
# ## The price of shards
#
# One server handles one request at a time, so a reader never sees half of an update. Additions also **commute**: in
# any order the sum is the same. Both hold for each shard. But requests to *different* shards have no common order: a
# reader may find one shard before an update and the next one after it. That is a **torn read**. Here a client adds 1 to
# all weights, 200 times, shard after shard. Another one reads shard after shard, and checks whether all weights are
# equal. minidl's `Store` has `get`, `put`, `add`, and a lock:


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

# %% source_hidden=true
SEEDS = range(5)
rows, torn = [], {}
for held, use_lock in ((1, False), (2, False), (4, False), (4, True)):
    runs = [cluster.launch(add_and_read, (held, use_lock), 3, "simulation", "10gbe", seed=seed) for seed in SEEDS]
    torn[held, use_lock] = [run.results[1][0] for run in runs]
    [final] = set.union(*(run.results[1][1] for run in runs))
    found = torn[held, use_lock]
    rows.append([held, "yes" if use_lock else "no", f"{np.mean(found):.0f}", f"{min(found)} to {max(found)}", final,
                 time_text(np.mean([run.seconds for run in runs]))])  # fmt: skip
head = ["shards", "lock", "torn reads of 200, mean", f"range of {len(SEEDS)} seeds", "every weight at the end", "time"]
table(head, rows, "simulated")
say(f"Your guess for two shards: {guess_torn.against(np.mean(torn[2, False]))}.")

# %% [markdown]
# Nothing is lost: in the end every weight has been increased 200 times. But some reads mix two versions. Asynchronous
# training usually tolerates that; its gradients are stale anyway. A **lock** around the whole request makes it exact
# again: every read then sees the state between two whole updates. The lock costs three more messages (a request, its
# answer, and the release), and the time in the last column.
#
# ## Break it: get, then put
#
# A colleague finds `add` superfluous: "I get the weights, add my gradient, and put the result back." Four workers add
# 1 to a counter, 100 times each.


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

# %% source_hidden=true
rows, counted = [], {}
for how in ("add", "get, then put", "get, then put, with the lock"):
    runs = [cluster.launch(count_up, (how,), 5, "simulation", "10gbe", seed=seed) for seed in SEEDS]
    counted[how] = [run.results[0] for run in runs]
    rows.append([how, f"{np.mean(counted[how]):.0f}", f"{min(counted[how])} to {max(counted[how])}",
                 time_text(np.mean([run.seconds for run in runs]))])  # fmt: skip
head = ["", "the counter, mean", f"range of {len(SEEDS)} seeds", "time"]
table(head, rows, "simulated, 4 workers x 100 additions: no update is lost at 400")
say(f"Your guess for get, then put: {guess_count.against(np.mean(counted['get, then put']))}.")

# %% [markdown]
# Two workers get the same number, both add 1, both put the same result: one update is **lost**. Nothing crashes; the
# cluster learns as if it were smaller than it is. The lock repairs it, and makes the workers go one at a time. `add`
# needs no lock: send the *change*, not the result.
#
# ## What the papers report
#
# **Li et al. (2014)**, *Scaling distributed machine learning with the parameter server* (OSDI), shard the weights
# over many servers, as above, and let the user choose the consistency; [06c](06c_bounded_staleness.ipynb) turns that
# knob.
#
# ## To the exercises
#
# [Exercises of chapter 06](../exercises/06_asynchrony/06_asynchrony.ipynb): the sharded server and the lost updates are
# from this page, the gate is from [06c](06c_bounded_staleness.ipynb).
#
# **Three questions to argue about**
#
# 1. Sharding moves the bend to more workers. In 04b the ring all-reduce had no bend at all: each rank sends
#    $2\frac{p-1}{p}n$ bytes however many there are. When would you still take parameter servers?
# 2. The torn reads did no harm in the sum. For which method would a mixture of two versions of the weights be wrong?
# 3. Half of the weights are in one layer. How would you cut the vector into shards, and which server
#    is then the busiest?
#
# Next: [06c](06c_bounded_staleness.ipynb) lets workers run ahead of each other, but not too far. Then
# [06d](06d_sync_or_async.ipynb) puts the time and the old gradients on one scale: the loss against the time.
