# %% [markdown]
# # Start here: four nodes train one network
#
# In 2017 a network that recognises photographs was trained on 256 processors instead of 8, in one hour. At each step
# every processor looked at 32 photographs of its own and then sent the others what it had learned from them. The
# network got 23.74 % of the test photographs wrong, against 23.60 % when trained on 8 processors (Goyal et al.,
# arXiv:1706.02677, table 1).
#
# **Can four machines train one network together, is it then the same network, and is it faster?**
#
# *Reading time: about 18 minutes; half a minute to run (menu Run, Run All Cells).* This page trains a small network
# on scanned digits: on one *node*; on four, which are processes of this computer that share nothing and exchange
# messages, as machines in a rack do; and on a cluster that you do not have.
#
# Under every figure stands where it comes from: *measured* on the computer that ran this page, *simulated* on a virtual
# cluster, or computed by a *formula*. Some cells ask for your guess: the cells below wait for it, and the answer says
# how far off it was.

# %% source_hidden=true
# On Google Colab this brings the course there first. Anywhere else it does nothing.
import subprocess
import sys

if "google.colab" in sys.modules:
    address = input("Address of the course's repository, https://…: ")
    clone = "/content/minidl"
    subprocess.run(["git", "clone", "--depth=1", address, clone], check=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, "--editable", f"{clone}[course]"], check=True)
    sys.path.insert(0, clone)

# %% [markdown]
# minidl compiles its innermost loops, once per computer. The next cell does it now, so that no later one waits.

# %% source_hidden=true
import inspect
import os
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from course import chapters, overview, progress
from course.figures import core_timeline
from course.figures.page import say, see, table
from course.interaction import guess, warm_up
from course.results.history import recorded
from minidl import cluster, data, nn, optim, parallel
from minidl.mini.cluster import simulate
from minidl.mini.collectives import all_reduce, all_reduce_doubling
from minidl.mini.data_parallel import synchronous
from minidl.mini.nn import SGD, mlp
from minidl.mini.tensor import Tensor
from minidl.plots import lines
from minidl.plots.lines import Line, Panel

warm_up()
one_thread = threadpool_limits(1)  # one thread for matrices this small, as each of four nodes will have one

# %% [markdown]
# ## The map
#
# Sixteen chapters in four parts. Each answers one question. Those with links are there today.

# %%
overview.show()

# %% [markdown]
# **What you need**: Python and numpy arrays, derivatives with the chain rule, the product of two matrices. No knowledge
# of neural networks or clusters. **Where to go**: chapters 01, 02, 04 and 05 build on each other. After them 06 (then
# 07), 08, 09, 10 (then 11 and 12) and 13 can be read in any order.

# %% source_hidden=true
there = [path for chapter in chapters.CHAPTERS for path in chapter.lectures(overview.ROOT)]
TRUNK = ("01a", "02a", "04a", "04b", "05a")
paths = {
    "how machines train one network": TRUNK,
    "the same, and what happens if nobody waits": (*TRUNK, "06a", "06b", "06d", "07a"),
    "the same as the first, and large minibatches, small messages": (*TRUNK, "08a", "08b", "09a", "09g"),
    "the same as the first, and models too large for one machine": (*TRUNK, "10", "11", "13"),
    "all of it": ("",),
}
rows = []
for goal, names in paths.items():
    minutes = sum(chapters.reading_minutes(path) for path in there if path.name.startswith(names))
    rows.append([goal, ", ".join(names) or "all lectures", f"{round(minutes / 30) / 2:g} hours"])
table(
    ["to learn", "read", "reading time"], rows, "formula: words, lines of code and pictures; the exercises come on top"
)

# %% [markdown]
# **What it ends in**: at the end of Parts I and II you train a network with a function that you wrote.

# %% source_hidden=true
letters, text = recorded(1), recorded(2)
say(
    f"- `python3 -m course result 1`, after chapter 02: with your `adam_step` a network of {letters.settings['depth']} "
    f"layers learns to read letters. In fonts that it has never seen it reads {letters.last['test_accuracy']:.1%} "
    f"correctly (measured: {letters.last['seconds'] / 60:.0f} minutes on {letters.machine['cores']} cores).\n"
    f"- `python3 -m course result 2`, after chapter 04: with your `ring_all_reduce` {text.settings['nodes']} nodes "
    f"train a GPT to write Python (measured: {text.last['seconds'] / 60:.0f} minutes). It begins:\n\n"
    "```text\n" + "\n".join(text.text.splitlines()[:4]) + "\n```"
)

# %% [markdown]
# ## How a chapter goes
#
# | | in a terminal, in the course's folder | what it does |
# |---|---|---|
# | **read** | `python3 -m course lab 04` | opens the lecture: run it, change it, guess before you look |
# | **start** | `python3 -m course start 04` | gives you your own copy of the exercises, in `work/` |
# | **write** | `python3 -m course lab work/04` | functions, small to large; a check stands below each |
# | **check** | `python3 -m course check 04` | the same checks on the whole notebook; keeps your points |
# | **progress** | `python3 -m course progress` | all chapters; also at the end of this page |
# | **look up** | `python3 -m course book` | all lectures, guides, classes and functions, as web pages in `book/` |
#
# A check reports the call, the expected and the actual result; `check.hint("…")` helps in steps. Your code runs in a
# process of its own, so it cannot hang the notebook. Nothing overwrites what is in `work/`. If something does not work:
# [`course/troubleshooting.md`](../course/troubleshooting.md).

# %% [markdown]
# ## One neuron
#
# The smallest network: one *neuron* multiplies its input by a number, its *weight*. For the input 3 its output should
# be 9, and its error is the square of the difference. To *train* it is to change the weight so that the error gets
# smaller. In which direction? The *slope* says how fast the error grows with the weight. First from scratch, by trying
# a weight that is a little larger.


# %%
def error(weight):
    off_by = weight * 3.0 - 9.0
    return off_by * off_by


step = 1e-6
slope = (error(2.0 + step) - error(2.0)) / step
print(f"weight 2: error {error(2.0):.0f}, slope {slope:.2f}, so a larger weight makes the error smaller")

# %% [markdown]
# A million weights would need a million such tries. A `Tensor` remembers how it was made; `backward()` goes once from
# the error back to all its sources, and leaves the slope of each in `.grad`. These slopes are the *gradient*. Chapter
# 01 builds it.
#
# This `Tensor` is from *the core*, [`minidl/mini`](../minidl/mini/tensor.py): the whole subject in at most 700 lines,
# which you can read in one sitting, in the order tensor, nn, cluster, collectives, data_parallel, model_parallel. The
# end of a file names its lectures and its counterpart in *the workshop*, the rest of minidl.

# %%
weight = Tensor(2.0)
error(weight).backward()
print(f"slope {weight.grad:.2f}; equal to the one by trying: {abs(weight.grad - slope) < 1e-4}")

# %% [markdown]
# ## Many nodes
#
# A node's program is a function. Its `comm` knows the node's number (its *rank*) and carries its messages. Here every
# node has a number and needs the sum of all, an *all-reduce*. One of the core's, in full: rank 0 swaps with 1 and 2
# with 3, then 0 with 2 and 1 with 3, and each adds what it receives.
#
# `cluster.launch` runs a program as processes. `simulate` lets the ranks take turns on a virtual clock, where a message
# takes alpha seconds and beta more for each byte: with 1 and 0 the clock counts rounds.


# %%
def total(comm):
    return all_reduce_doubling(comm, comm.rank + 1.0)


print(inspect.getsource(all_reduce_doubling))
print("four processes:", cluster.launch(total, nodes=4).results)
run = simulate(total, 4, alpha=1, beta=0)
print(f"simulated:      {run.results} after {run.seconds:g} rounds")

# %% [markdown]
# ## One network on one node
#
# A network of 256 neurons, each of which sees all 64 pixels of a scanned digit, and 10 more, one for each answer. At
# each step the network sees a *minibatch*, 64 of the digits, and moves its weights against the gradient of its mean
# error on them. Two *epochs* are two passes through the training images. (Chapter 02 explains the rest.) This is the
# core's loop:

# %%
train, test = (data.Dataset(part.x.reshape(-1, 64), part.y) for part in data.digits())


def network():
    return mlp(64, 256, 10, rng=np.random.default_rng(0))


def program(comm):
    loader = data.DataLoader(train, batch_size=64, shuffle=True)
    return synchronous(comm, network(), SGD(lr=0.1, momentum=0.9), [*loader, *loader])


def accuracy(weights):
    trained = network()
    trained.set_weights(weights)
    return np.mean(trained(Tensor(test.x)).data.argmax(axis=1) == test.y)


# %% source_hidden=true
print(inspect.getsource(synchronous))
one = simulate(program, 1, alpha=0, beta=0).results
print(f"{len(train.y):,} digits to train on, {len(test.y)} others for the test")
print(f"one node reads {accuracy(one[0]):.1%} of the test digits correctly (measured)")

# %% [markdown]
# ## The same on four nodes
#
# Now each node sees a quarter of every minibatch and computes the gradient of its quarter. The all-reduce adds them up.

# %%
guess_weights = guess(
    "After two epochs, how far are the weights of the four nodes from those of the one?",
    GAPS := ["equal to the bit", "less than 1e-6", "more than 1e-6"],
)

# %%
four = simulate(program, 4, alpha=0, beta=0).results
gap = abs(four[0] - one[0]).max()

# %% source_hidden=true
say(
    f"Your guess: {guess_weights.against(GAPS[int(gap > 0) + int(gap > 1e-6)])}. **Measured: at most {gap:.0e}.** "
    f"One node reads {accuracy(one[0]):.1%} of the test digits correctly, four read {accuracy(four[0]):.1%}."
)
print("all four nodes have the same weights, to the bit:", all(np.array_equal(each, four[0]) for each in four))

# %% [markdown]
# The sum of four quarters of a gradient *is* the gradient, up to rounding. Four nodes that agree after every minibatch
# train as one does. So the answer to the first two questions is yes and yes. And the third?
#
# The workshop trains the same network on real processes. A *job* says what to train, with the same first weights here;
# a *strategy* says how.

# %%
model = nn.models.MLP(64, 256, 10)
for parameter, first in zip(model.parameters(), network().parameters(), strict=True):
    parameter.data[...] = first.data
job = parallel.Job(model, data.digits, partial(optim.SGD, lr=0.1, momentum=0.9), batch_size=64, epochs=2)
report = parallel.train(job, parallel.Synchronous(), nodes=4)
weights = np.concatenate([each.reshape(-1) for each in report.checkpoint.model.values()])
print("the workshop's weights are the core's, to 1e-6:", abs(weights - four[0]).max() < 1e-6)

# %% [markdown]
# A *Gantt chart* has a row for each node and shows who does what when. This one has a node for each core of this
# computer, four at most, since more would take turns. Other programs disturb a measurement, so it is the fastest of
# five runs.


# %% source_hidden=true
# measured: differs from run to run
def fastest(nodes):
    """The fastest of five runs, and its seconds."""
    runs = [parallel.train(job, parallel.Synchronous(), nodes=nodes) for _ in range(5)]
    return min(((run.history[-1]["seconds"], run) for run in runs), key=lambda pair: pair[0])


cores = max(2, min(4, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()))
(alone, _), (together, run) = fastest(1), fastest(cores)
shares = run.trace.shares()
see(
    run.timeline(),
    f"three steps. Over the whole run a node spends {shares.compute:.0%} of its time computing, "
    f"{shares.communication:.0%} communicating and {shares.waiting:.0%} waiting for the others.",
)
print(f"two epochs took {alone * 1e3:.0f} ms on one node and {together * 1e3:.0f} ms on {cores} (measured)")

# %% [markdown]
# These nodes are processes of one computer. What would four *computers* make of it?
#
# ## A cluster that you do not have
#
# The core's program, unchanged, on a *simulated* cluster: each node does a billion operations a second, and a message
# on an ordinary network (Ethernet, 1 Gbit/s) takes 50 µs to start and then 8 ns a byte. A better one (10 Gbit/s) takes
# 20 µs and 0.8 ns.
#
# Eight nodes halve the work of four. How much faster will they be?

# %%
guess_speed = guess("How many times as fast as one node are eight on the ordinary network?", unit="times")

# %%
networks = {"10 Gbit/s": {"alpha": 20e-6, "beta": 0.8e-9}, "1 Gbit/s": {"alpha": 50e-6, "beta": 8e-9}}
counts = (1, 2, 4, 8)
runs = {name: [simulate(program, p, **network) for p in counts] for name, network in networks.items()}
speedup = {name: [some[0].seconds / run.seconds for run in some] for name, some in runs.items()}

# %% source_hidden=true
fast, slow = speedup.values()
curves = [Line("ideal (formula)", counts, counts), *(Line(name, counts, speedup[name], "both") for name in networks)]
panel = Panel(curves, "nodes", "times as fast as one node")
see(
    lines.draw([panel], source=("simulated", "formula"), title="What nodes bring"),
    f"with 10 Gbit/s, 4 nodes are {fast[2]:.1f} times as fast as one and 8 are {fast[3]:.1f} times; "
    f"with 1 Gbit/s 4 are {slow[2]:.1f} times and 8 only {slow[3]:.1f} times as fast.",
)
say(f"Your guess: {guess_speed.against(slow[3])}. **Simulated: {slow[3]:.1f} times.**")

# %% [markdown]
# What takes the time? The Gantt chart of the first steps on four nodes:

# %% source_hidden=true
run = runs["1 Gbit/s"][2]
computing = sum(work.end - work.start for work in run.work) / 4 / run.seconds
see(
    core_timeline.draw({"four nodes, 1 Gbit/s": run}, end=run.seconds / 15),
    f"all nodes get rank 0's weights. In each step they compute gradients (numbered) side by side and exchange them "
    f"along a ring: each sends to the next node only, in rounds. Messages take {1 - computing:.0%} of the time.",
)

# %% [markdown]
# Twice as many nodes halve the computing, but not the sending: all of them need the sum of all gradients. Does the
# sending even grow with the number of nodes? Here is one all-reduce alone: a million numbers a node (4 MB), 10 Gbit/s,
# along the same *ring*. 64 nodes instead of 4 add up 16 times as many gradients.

# %%
guess_time = guess("How many times as long do 64 nodes take as 4?", unit="times")


# %%
def ring(comm):
    all_reduce(comm, np.ones(1_000_000, np.float32))


network = networks["10 Gbit/s"]
simulated = {p: simulate(ring, p, **network).seconds for p in (4, 64)}
formula = {p: 2 * (p - 1) * (network["alpha"] + 4_000_000 / p * network["beta"]) for p in (4, 64)}

# %% source_hidden=true
print("nodes   simulated     formula")
for p in simulated:
    print(f"{p:5} {simulated[p] * 1e3:8.2f} ms {formula[p] * 1e3:8.2f} ms")
longer = simulated[64] / simulated[4]
say(f"Your guess: {guess_time.against(longer)}. **Simulated: {longer:.2f} times as long.**")

# %% [markdown]
# On a ring every node sends less than twice the gradient, however many nodes there are: chapter 04 shows how, and you
# write it. (64 nodes also start 126 messages each, 4 nodes start 6.) So four machines are faster as long as sending
# takes less time than three quarters of one machine's computing, which is what they save. When that is so, and what to
# do when it is not, is the subject of the chapters from 04 on. Chapters 10 to 13 divide a network, or an image,
# that is too large for one node.
#
# ## Break it
#
# The classic mistake: one node takes another branch of the program and does not join. On many systems all the others
# would now wait for ever. Here the run ends and says who waits for whom.


# %%
def one_forgets(comm):
    if comm.rank != 2:
        comm.all_reduce(1.0, algorithm="ring")


try:
    cluster.launch(one_forgets, nodes=4, on="simulation")
except cluster.Deadlock as deadlock:
    print(str(deadlock).split("\n\n")[0])  # what follows is the traceback

# %% [markdown]
# ## What the papers report
#
# Goyal et al. (*Accurate, Large Minibatch SGD: Training ImageNet in 1 Hour*, arXiv:1706.02677), the 256 processors of
# the beginning, used the strategy that you have just seen. Their network, ResNet-50, has 25 million weights, and
# backward takes 120 ms (section 4), which they round to an eighth of a second. What must the network of cables carry?

# %%
gradient = 25e6 * 4  # bytes, float32
sent = 2 * gradient  # what a node sends on a ring of very many
print(f"formula: {gradient / 1e6:.0f} MB of gradient, {sent / 1e6:.0f} MB sent by each node,")
print(f"within 1/8 s: {sent / 0.125 * 8 / 1e9:.1f} Gbit/s")

# %% [markdown]
# They say the same (section 4.3), and about 15 Gbit/s with overhead. With such a network they report about 90 % of the
# ideal speed-up from 8 to 256 GPUs. The trained network was as good because the step grew with the minibatch and began
# small. [Chapter 08](08a_linear_scaling.ipynb) says why, and where it ends; [chapter 09](09a_top_k.ipynb) sends less.

# %% [markdown]
# ## Your progress
#
# The points of the checks that you have run, chapter by chapter. Run this cell again whenever you like.

# %%
progress.show()

# %% [markdown]
# ## To the exercises, and three questions to argue about
#
# Go on with chapter 01 ([01a](01a_backpropagation.ipynb), or `python3 -m course lab 01`). Its exercises:
# `python3 -m course start 01`. Without an argument, `python3 -m course` says what to do next.
#
# 1. If four nodes train exactly as one does, what have we gained, and when?
# 2. One of the four nodes is half as fast. What happens to the others?
# 3. Must the nodes agree after *every* minibatch?
