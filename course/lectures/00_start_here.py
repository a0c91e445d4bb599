# %% [markdown]
# # Start here: four nodes train one network
#
# In 2017 a network that recognises photographs was trained on 256 processors instead of 8. At each step every one of
# the 256 looked at 32 photographs of its own, and then told the others what it had learned from them. It took an hour,
# and what came out was as good as before: of the photographs that it was tested on it got 23.74 % wrong, against
# 23.60 % when trained on 8 (Goyal et al., arXiv:1706.02677, table 1).
#
# **Can four machines train one network together, is it then the same network, and is it faster?**
#
# This page takes a quarter of an hour to read and half a minute to run (menu *Run*, *Run All Cells*). It trains a small
# network on scanned digits: on one *node*, on four, which are processes of this computer that share nothing and talk
# only by messages, as machines in a rack do, and on a network of machines that you do not have. It ends with your own
# progress in the course.
#
# Under every figure stands where it comes from: *measured* on the computer that ran this page, *simulated* on a
# virtual cluster, or computed by a *formula*. Where a cell asks for your guess, type what you expect and press Enter:
# the cells below wait for it, and your guess then stands beside the result.

# %%
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

# %%
from course.interaction import guess, warm_up

warm_up()

# %% [markdown]
# ## The map
#
# Sixteen chapters in four parts. Each answers one question. Those with links are there today.

# %%
from course import overview

overview.show()

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
#
# A check says what was called, what was expected and what came; `check.hint("…")` helps in steps. Your code runs in a
# process of its own, so nothing that you write can hang the notebook. What is in `work/` is yours: nothing overwrites
# it. If something does not work: [`course/troubleshooting.md`](../course/troubleshooting.md).

# %% [markdown]
# ## One neuron
#
# The smallest network: one *neuron* multiplies its input by a number, its *weight*. For the input 3 it ought to say 9,
# and its error is the square of what it is off by. To *train* it is to change the weight so that the error gets
# smaller. Which way? The *slope* tells: how fast the error grows with the weight. First from scratch, by trying a
# weight that is a little larger.


# %%
def error(weight):
    off_by = weight * 3.0 - 9.0
    return off_by * off_by


step = 1e-6
slope = (error(2.0 + step) - error(2.0)) / step
print(f"weight 2: error {error(2.0):.0f}, slope {slope:.2f}, so a larger weight makes the error smaller")

# %% [markdown]
# A million weights would need a million such tries. A `Tensor` remembers how it was made; `backward()` walks that
# memory from the error back to its sources, once, and leaves the slope with each source in `.grad`. All these slopes
# together are the *gradient*. Chapter 01 builds it.
#
# This `Tensor` is from *the core*, [`minidl/mini`](../minidl/mini/tensor.py): the whole subject in at most 700 lines,
# which you can read in one sitting, in the order tensor, nn, cluster, collectives, data_parallel, model_parallel. The
# end of a file names its lectures and its place in *the workshop*, the rest of minidl, which trains the same weights.

# %%
import inspect
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from course.figures import core_timeline
from course.figures.page import say, see
from minidl import cluster, data, nn, optim, parallel
from minidl.mini.cluster import simulate
from minidl.mini.collectives import all_reduce, all_reduce_doubling
from minidl.mini.data_parallel import synchronous
from minidl.mini.model_parallel import one_f_one_b, picture
from minidl.mini.nn import SGD, mlp
from minidl.mini.tensor import Tensor
from minidl.plots import lines
from minidl.plots.lines import Line, Panel

threadpool_limits(1)  # one thread for matrices this small, as each of four nodes will have one
weight = Tensor(2.0)
error(weight).backward()
print(f"slope {weight.grad:.2f}; equal to the one by trying: {abs(weight.grad - slope) < 1e-4}")

# %% [markdown]
# ## Many nodes
#
# A node's program is a function. Its `comm` knows the node's number (its *rank*) and carries its messages. Here every
# node has a number and wants the sum of all, an *all-reduce*. One of the core's, in full: rank 0 swaps with 1 and 2
# with 3, then 0 with 2 and 1 with 3, and each adds what comes.
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
# core's loop of such steps:

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


print(inspect.getsource(synchronous))
one = simulate(program, 1, alpha=0, beta=0).results
print(f"{len(train.y):,} digits to train on, {len(test.y)} others for the test")
print(f"one node reads {accuracy(one[0]):.1%} of the test digits correctly (measured)")

# %% [markdown]
# ## The same on four nodes
#
# Now each node sees a quarter of every minibatch and computes the gradient of its quarter. The all-reduce adds them up,
# and all nodes make the same step. Will the four together read as many digits correctly?

# %%
guess_share = guess("The share of digits that four nodes read correctly will be…", ["lower", "equal", "higher"])

# %%
four = simulate(program, 4, alpha=0, beta=0).results
say(f"Your guess: {guess_share}. **Measured: {accuracy(one[0]):.1%} by one node, {accuracy(four[0]):.1%} by four.**")
print("all four nodes have the same weights, to the bit:", all(np.array_equal(each, four[0]) for each in four))
print("and the one node's, up to rounding:", abs(four[0] - one[0]).max() < 1e-6)

# %% [markdown]
# The sum of four quarters of a gradient *is* the gradient, up to rounding. Four nodes that agree after every minibatch
# train as one does. So the answer to the first two questions is yes and yes. And the third?
#
# The workshop trains the same network on real processes. A *job* says what to train, with the same first weights here;
# a *strategy* says how. The picture, a *Gantt chart*, has a row for each node and shows three steps.

# %%
model = nn.models.MLP(64, 256, 10)
for parameter, first in zip(model.parameters(), network().parameters(), strict=True):
    parameter.data[...] = first.data
job = parallel.Job(model, data.digits, partial(optim.SGD, lr=0.1, momentum=0.9), batch_size=64, epochs=2)
reports = {nodes: parallel.train(job, parallel.Synchronous(), nodes=nodes) for nodes in (1, 4)}
weights = np.concatenate([each.reshape(-1) for each in reports[4].checkpoint.model.values()])
print("the workshop's weights are the core's, to 1e-6:", abs(weights - four[0]).max() < 1e-6)

# %%
# measured: differs from run to run
shares = reports[4].trace.shares()
see(
    reports[4].timeline(),
    f"over the whole run a node spends {shares.compute:.0%} of its time computing, {shares.communication:.0%} "
    f"communicating and {shares.waiting:.0%} waiting for the others.",
)
seconds = {nodes: report.history[-1]["seconds"] for nodes, report in reports.items()}
print(f"two epochs took {seconds[1]:.2f} s on one node and {seconds[4]:.2f} s on four (measured)")

# %% [markdown]
# No cluster: four processes that take turns on the cores of one computer, and wait for each other meanwhile. What would
# four *computers* make of it?
#
# ## A cluster that you do not have
#
# The core's program, unchanged, on a *simulated* cluster: each node does a billion operations a second, and a message
# on an ordinary network (Ethernet, 1 Gbit/s) takes 50 µs to start and then 8 ns a byte. A better one (10 Gbit/s) takes
# 20 µs and 0.8 ns.
#
# Eight nodes halve the work of four. How much faster will they be?

# %%
guess_speed = guess("How many times as fast as one node are eight on the ordinary network?", [8, 5, 3])

# %%
networks = {"10 Gbit/s": {"alpha": 20e-6, "beta": 0.8e-9}, "1 Gbit/s": {"alpha": 50e-6, "beta": 8e-9}}
counts = (1, 2, 4, 8)
runs = {name: [simulate(program, p, **network) for p in counts] for name, network in networks.items()}
speedup = {name: [some[0].seconds / run.seconds for run in some] for name, some in runs.items()}
fast, slow = speedup.values()
curves = [Line("ideal (formula)", counts, counts), *(Line(name, counts, speedup[name], "both") for name in networks)]
panel = Panel(curves, "nodes", "times as fast as one node")
see(
    lines.draw([panel], source=("simulated", "formula"), title="What nodes bring"),
    f"with 10 Gbit/s, 4 nodes are {fast[2]:.1f} times as fast as one and 8 are {fast[3]:.1f} times; "
    f"with 1 Gbit/s 4 are {slow[2]:.1f} times and 8 only {slow[3]:.1f} times as fast.",
)
say(f"Your guess: {guess_speed}. **Simulated: {slow[3]:.1f} times.**")

# %% [markdown]
# Who stands in the way? The Gantt chart of the first steps shows it:

# %%
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
guess_time = guess("How many times as long do 64 nodes take as 4?", ["about 16", "about 4", "less than 2"])


# %%
def ring(comm):
    all_reduce(comm, np.ones(1_000_000, np.float32))


network = networks["10 Gbit/s"]
simulated = {p: simulate(ring, p, **network).seconds for p in (4, 64)}
formula = {p: 2 * (p - 1) * (network["alpha"] + 4_000_000 / p * network["beta"]) for p in (4, 64)}
print("nodes   simulated     formula")
for p in simulated:
    print(f"{p:5} {simulated[p] * 1e3:8.2f} ms {formula[p] * 1e3:8.2f} ms")
say(f"Your guess: {guess_time}. **Simulated: {simulated[64] / simulated[4]:.2f} times as long.**")

# %% [markdown]
# On a ring every node sends less than twice the gradient, however many nodes there are: chapter 04 shows how, and you
# write it. So faster, yes: as long as there is more to compute than to send. When that is, and what to do when it is
# not, is what the chapters from 04 on are about.
#
# And if the network is too large for one node? Then each has some of its layers, as a *stage* of a *pipeline*, and a
# minibatch is cut into *micro-batches*. F2 is the forward pass of micro-batch 2, B2 its backward pass, which takes
# twice as long (chapter 10).

# %%
print(picture(one_f_one_b, stages=4, micro_batches=4), "(simulated)", sep="\n")

# %% [markdown]
# ## Break it
#
# The classic mistake: one node takes another way through the program and forgets to take part. On many systems all the
# others would now wait for ever. Here the run comes back and says who waits for whom.


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
# backward takes it 120 ms (section 4), which they round to an eighth of a second. Could the network of cables keep up?
# Multiply it out:

# %%
gradient = 25e6 * 4  # bytes, float32
sent = 2 * gradient  # what a node sends on a ring of very many
print(f"formula: {gradient / 1e6:.0f} MB of gradient, {sent / 1e6:.0f} MB sent by each node,")
print(f"within 1/8 s: {sent / 0.125 * 8 / 1e9:.1f} Gbit/s")

# %% [markdown]
# They say the same (section 4.3), and about 15 Gbit/s with overhead: with such a network they report about 90 % of the
# ideal speed-up from 8 to 256 GPUs. And the network was as good only because they took care: the step had to grow with
# the minibatch, and to begin small. [Chapter 08](08a_linear_scaling.ipynb) tells why, and where it ends;
# [chapter 09](09a_top_k.ipynb) sends less instead.

# %% [markdown]
# ## Your progress
#
# The points of the checks that you have run, chapter by chapter. Run this cell again whenever you like.

# %%
from course import progress

progress.show()

# %% [markdown]
# ## To the exercises, and three questions to argue about
#
# Go on with chapter 01 ([01a](01a_backpropagation.ipynb), or `python3 -m course lab 01`), or with any chapter whose
# question you like. Its exercises: `python3 -m course start 01`. Without an argument, `python3 -m course` always tells
# your next step.
#
# 1. If four nodes train exactly as one does, what have we gained, and when?
# 2. One of the four nodes is half as fast. What happens to the others?
# 3. Must the nodes agree after *every* minibatch?
