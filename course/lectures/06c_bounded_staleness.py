# %% [markdown]
# # 06c. Bounded staleness: how far ahead may a worker run?
#
# *Read [06a](06a_staleness.ipynb) and [06b](06b_servers.ipynb) first: staleness, and the server. Reading time: about 14
# minutes. Figures are* simulated, *or come from a* formula.
#
# ## The question
#
# A synchronous step waits for the slowest worker. Eight workers need one second for a gradient, but one gradient in ten
# takes four seconds. How often does a step take four seconds, too?

# %% source_hidden=true
from collections import Counter
from functools import partial

import numpy as np
from matplotlib.patches import Patch

from course.figures.page import say, see, table
from course.figures.waiting import Run, waiting
from course.interaction import bar, guess, step_through, warm_up
from minidl import cluster, data, nn, optim, parallel
from minidl.plots import style
from minidl.plots.style import time_text

warm_up()

# %%
guess_slow = guess("Which share of the synchronous steps of 8 workers takes 4 s?", unit="%")

# %% source_hidden=true
share = 100 * (1 - 0.9**8)
say(f"**{share:.0f} %** of the steps: some worker of eight is late with probability 1 - 0.9^8 (formula). Your guess: "
    f"{guess_slow.against(share)}.")  # fmt: skip

# %% [markdown]
# Each worker is late in 10 % of its steps, and all of them wait in most. But the worker that is late today is on time
# tomorrow. Must all workers wait each time?
#
# ## Build the gate
#
# Let the network be fast, so that the server has no queue, and look at the workers' clocks. A worker's **clock**
# is the number of gradients that it has pushed. In synchronous training no worker begins the next clock before all have
# finished the present one. In asynchronous training every worker runs on. **Bounded staleness** (stale synchronous
# parallel, SSP) is in between: *a worker may begin its next clock if it is at most $s$ clocks ahead of the slowest
# one.*
#
# The server becomes a gate. It applies each change at once, but answers only those workers that may go on:


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


# %% source_hidden=true
CLOCKS, WORKERS, BOUNDS, SEEDS = 200, 8, (0, 1, 3, 10, None), range(5)
KINDS = {"random": random_straggler, "persistent": persistent_straggler}


def name_of(bound):
    return "no bound" if bound is None else f"s = {bound}"


cases = [("random", bound, seed) for bound in BOUNDS for seed in SEEDS] + [("persistent", b, 0) for b in BOUNDS]
runs = {}
for kind, bound, seed in bar(cases, f"{len(cases)} clusters"):
    args = (bound, no_change, 0.0, WORKERS * CLOCKS, KINDS[kind])
    runs[kind, bound, seed] = cluster.launch(gated, args, WORKERS + 1, "simulation", timeout=1e6, seed=seed)


def draw_clocks(axes, pushes):
    seconds, _, clocks, held = runs["random", 3, 0].results[-1][2][pushes - 1]
    colours = [style.ACTIVITY["wait" if worker in held else "compute"] for worker in range(WORKERS)]
    axes.barh(range(WORKERS), clocks, color=colours, **style.BORDER)
    axes.axvline(min(clocks) + 3.5, color=style.SERIES[1], linestyle="--")
    axes.text(min(clocks) + 3.6, -0.75, "gate", color=style.SERIES[1], fontsize=8, va="center")
    axes.set(
        xlabel="clock (gradients pushed)",
        ylabel="worker",
        xlim=(0, 14),
        xticks=range(0, 15, 2),
        ylim=(WORKERS - 0.4, -1.2),
    )
    looks = {"computes": style.ACTIVITY["compute"], "held": style.ACTIVITY["wait"]}
    axes.legend(handles=[Patch(color=colour, label=words) for words, colour in looks.items()], loc="lower right")
    axes.set_yticks(range(WORKERS))
    axes.set_title(f"after {seconds:.0f} s")


held = [len(waiting) for *_, waiting in runs["random", 3, 0].results[-1][2]]
held_at = next(pushes for pushes in range(1, 80) if held[pushes - 1] > held[pushes])  # then the gate moves
step_through(
    draw_clocks,
    "the clocks of eight workers with random stragglers and s = 3. A worker beyond the gate, more than three "
    "clocks ahead of the slowest, is held (grey). When the slowest worker pushes, the gate moves and releases them.",
    frames=list(range(held_at - 8, 81)),
    multiples=[held_at - 8, held_at, held_at + 1],
    name="pushes",
    source="simulated",
)

# %% [markdown]
# In lockstep ($s = 0$) every clock costs as much as the slowest of eight: on average $1 + 3\,(1 - 0.9^8)$ s with random
# stragglers. Without a bound every worker goes at its own pace: 1.3 s on average for each.

# %%
guess_random = guess("A bound of s = 10: what does it save of the lockstep time with random stragglers?", unit="%")

# %%
guess_persistent = guess("And with a persistent one?", unit="%")

# %% source_hidden=true
exact = {
    ("random", 0): CLOCKS * (1 + 3 * (1 - 0.9**WORKERS)),
    ("random", None): CLOCKS * 1.3,
    ("persistent", 0): CLOCKS * 2.5,
    ("persistent", None): CLOCKS * WORKERS / (WORKERS - 1 + 1 / 2.5),
}
total, lead, pace = {}, {}, {}
for case, run in runs.items():
    _, lead[case], log = run.results[-1]
    assert case[1] is None or lead[case] == case[1]  # it holds, and it is attained
    total[case], half = log[-1][0], log[len(log) // 2 - 1][0]
    pace[case] = (total[case] - half) / (CLOCKS / 2)
times = {bound: [total["random", bound, seed] for seed in SEEDS] for bound in BOUNDS}


def formula(kind, bound):
    return f" ({exact[kind, bound]:.0f} s)" if (kind, bound) in exact else ""


rows = [
    [name_of(bound), f"{np.mean(of):.0f} s{formula('random', bound)}", f"{min(of):.0f} to {max(of):.0f} s",
     max(lead["random", bound, seed] for seed in SEEDS),
     f"{total['persistent', bound, 0]:.0f} s{formula('persistent', bound)}", f"{pace['persistent', bound, 0]:.2f} s"]
    for bound, of in times.items()
]  # fmt: skip
head = ["", "random stragglers: time (formula)", f"range of {len(SEEDS)} seeds", "largest lead",
        "persistent one: time (formula)", "a clock of it, second half"]  # fmt: skip
table(head, rows, "simulated, 8 workers x 200 gradients; lead: of a worker that is released, over the slowest one")
saved = {"random": 100 * (1 - np.mean(times[10]) / np.mean(times[0])),
         "persistent": 100 * (1 - total["persistent", 10, 0] / total["persistent", 0, 0])}  # fmt: skip
say(
    f"A bound of 10 saves {saved['random']:.0f} % of the lockstep time with random stragglers (your guess: "
    f"{guess_random.against(saved['random'])}) and {saved['persistent']:.0f} % with a persistent one (your guess: "
    f"{guess_persistent.against(saved['persistent'])})."
)

# %% source_hidden=true
pictures = []
for kind in KINDS:
    for bound in (0, 3, None):
        run = runs[kind, bound, 0]
        end = run.results[-1][2][-1][0]
        computing = [min(run.trace.shares(rank).compute * run.seconds, end) for rank in range(WORKERS)]
        pictures.append(Run(f"{kind} straggler, {name_of(bound)}", computing, end))
see(
    waiting(pictures, source="simulated", note="8 workers, the same number of gradients in all six, seed 0"),
    "one bar for each worker; blue computes, grey waits. Random stragglers, above: the bound of 3 removes most of the "
    "grey. A persistent one, below: worker 0 never waits and the seven others wait for it, with s = 3 nearly as long "
    "as in lockstep. Only without a bound does the grey go away.",
)

# %% [markdown]
# - The bound **holds** and it is **attained**: in every run the largest lead is exactly $s$.
# - **Random stragglers**: a worker that is late today is on time tomorrow. A lead of 3 saves most of the waiting.
# - **A persistent straggler**: the fast workers use up their lead once. Then all go at the pace of the slowest, 2.5 s a
#   clock (last column), for every finite $s$. The bound saves a constant time, nothing in the long run.
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


# %% source_hidden=true
def digits_job(lr=0.1, batch_size=16, seed=0):
    train, test = data.digits()
    return parallel.Job(
        model=partial(nn.models.MLP, 64, 64, 10),
        data=data.Splits(data.Dataset(*train[:1408]), test),
        optimizer=partial(optim.SGD, lr=lr),
        batch_size=batch_size,
        epochs=4,
        seed=seed,
    )


gate_run = parallel.train(digits_job(), parallel.ParameterServer(staleness=0), 8, "simulation")
together = parallel.train(digits_job(lr=0.8, batch_size=128), parallel.Synchronous(), 8, "simulation")
pairs = zip(gate_run.checkpoint.model.values(), together.checkpoint.model.values(), strict=True)
gap = max(float(np.abs(x - y).max()) for x, y in pairs)
print(f"minidl, ParameterServer(staleness=0) and Synchronous on a minibatch 8 times as large at 8 times the learning "
      f"rate: largest difference of a weight {gap:.0e} (float32, another order of addition)")  # fmt: skip

# %% [markdown]
# One knob leads from synchronous to asynchronous. Here is minidl's `ParameterServer` on digits, eight workers with some
# jitter in their times, on the same network:

# %% source_hidden=true
jittery = cluster.Simulation(node=cluster.Node(1e8, np.inf, jitter=0.5), trace="ledger")
strategies = {"s = 0": 0, "s = 1": 1, "s = 3": 3, "no bound": None}
reports = {(words, seed): parallel.train(digits_job(seed=seed), parallel.ParameterServer(staleness=bound), 8, jittery,
                                         "10gbe")
           for (words, bound), seed in bar([(case, seed) for case in strategies.items() for seed in range(3)],
                                           "training 12 times")}  # fmt: skip
rows = []
for words in strategies:
    of = [reports[words, seed] for seed in range(3)]
    ages = sum((report.staleness for report in of), Counter())
    mean = sum(age * count for age, count in ages.items()) / ages.total()
    seconds, losses = ([report.history[-1][name] for report in of] for name in ("seconds", "loss"))
    rows.append([words, time_text(np.mean(seconds)), f"{mean:.2f}", max(ages),
                 f"{np.mean(losses):.3f} ({min(losses):.3f} to {max(losses):.3f})"])  # fmt: skip
head = ["", "time, mean of 3 seeds", "mean staleness", "largest", "training loss, mean (range)"]
table(head, rows, "simulated: MLP 64-64-10 on digits, 4 epochs, 8 workers")

# %% [markdown]
# With $s = 0$ the eight gradients of a clock are computed at the same weights and applied one after the other: they are
# 0, 1, ..., 7 updates old, 3.5 on average. From row to row the time falls and the staleness rises towards $p - 1 = 7$:
# less waiting, older gradients. The mean loss rises a little; the seeds differ by more, at this learning rate. Whether
# the exchange is worth it is the question of [06d](06d_sync_or_async.ipynb).
#
# ### The same knob in Li's parameter server
#
# Li et al. (2014, sections 3.4 to 3.6) have this knob in a more general form. A **task** is anything that a node asks
# of another one: a push, a pull, a whole iteration. The caller goes on while the task runs. The program states which
# earlier tasks a new one must wait for, as a directed acyclic graph. Three graphs have names. *Sequential*: wait for
# the task before. *Eventual*: wait for none. *Bounded delay* $\tau$: wait until all tasks more than $\tau$ before this
# one are finished; $\tau = 0$ is sequential.
#
# With an iteration of all workers as the task, this is a relative of our gate. With a push as the task, the worker
# computes while its last $\tau$ pushes travel, so the bound hides the *network* as well. User-defined filters trade
# consistency for bytes in the same spirit: an entry is sent only once it has changed by more than a threshold since it
# was sent last.
#
# ## Break it: the gate that is a barrier
#
# A colleague writes another rule: "release all workers once all have arrived". The bound still holds: no worker is ever
# more than $s$ ahead. A test of the bound alone finds nothing.


# %%
def all_have_arrived(clocks, worker, bound):
    return clocks[worker] <= min(clocks)


# %% source_hidden=true
right_rule, may_begin = may_begin, all_have_arrived
leads = {}
for bound in (1, 3, 10):
    args = (bound, no_change, 0.0, WORKERS * CLOCKS, random_straggler)
    _, attained, log = cluster.launch(gated, args, WORKERS + 1, "simulation", timeout=1e6).results[-1]
    leads[bound] = [f"s = {bound}", attained, f"{log[-1][0]:.0f} s", f"{total['random', bound, 0]:.0f} s"]
may_begin = right_rule
head = ["bound", "largest lead", "time with this gate", "time with the right gate"]
table(head, leads.values(), f"simulated, random stragglers, seed 0; in lockstep: {total['random', 0, 0]:.0f} s")

# %% [markdown]
# You recognise it by the lead, which is 0 whatever the bound, and by the time, which is that of lockstep. A bound
# has two sides: it must hold, and it must be attained.
#
# ## What the papers report
#
# **Ho et al. (2013)**, *More effective distributed ML via a stale synchronous parallel parameter server* (NIPS): a
# bound on the staleness "significantly increases the proportion of time workers spend computing, as opposed to
# waiting", with a proof of convergence, and was faster than both the synchronous and the asynchronous runs on their
# problems. Our bars show the first for stragglers that change; their guarantee needs the bound, which the fully
# asynchronous run does not have.
#
# **Chen et al. (2016)**, *Revisiting distributed synchronous SGD* (arXiv:1604.00981), have another answer to
# stragglers: stay synchronous, add spare workers, and drop the last gradients of each step. The reproduction
# [`backup_workers.py`](../benchmarks/reproductions/backup_workers.py) computes how many spares pay;
# [`stale_synchronous.py`](../benchmarks/reproductions/stale_synchronous.py) trains under every bound of this page and
# compares the losses.
#
# ## To the exercises
#
# [Exercises of chapter 06](../exercises/06_asynchrony/06_asynchrony.ipynb): the gate, whose bound must hold *and* be
# attained, is from this page.
#
# **Three questions to argue about**
#
# 1. The bound limits the lead in clocks. Which limit in *seconds* would you rather have, and what would it cost?
# 2. Your cluster has one machine that is always half as fast. You may choose $s$, give it smaller minibatches, or
#    throw it out. What do you do, and what does each choice do to the gradients?
# 3. With $s = 10$ a worker may be ten clocks ahead. What bound on the *staleness* in updates follows for $p$ workers?
