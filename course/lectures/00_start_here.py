# %% [markdown]
# # Start here: four nodes train one network
#
# **Can four machines train one network together, and is it then the same network?**
#
# This page takes ten minutes to read and half a minute to run (menu *Run*, *Run All Cells*). It trains a small
# convolutional network on 1,797 scanned digits, first on one node, then on four. The four nodes are processes of this
# computer that share nothing and talk only by messages, as machines in a rack do. Then it asks what the same messages
# would cost on a network that you do not have. It ends with your own progress in the course.
#
# Under every figure stands where it comes from: *measured* on the computer that ran this page, *simulated* on a
# virtual cluster, or computed by a *formula*.

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
# ## The map
#
# Sixteen chapters in four parts. Each answers one question. Those that are links are there today.

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
# To *train* is to change numbers, the *weights*, so that an error gets smaller. Which way? The slope of the error
# tells: how fast the error grows with the weight. First from scratch, by trying a weight that is a little larger.


# %%
def error(weight):
    return (weight * 3.0 - 9.0) ** 2


step = 1e-6
slope = (error(2.0 + step) - error(2.0)) / step
print(f"error {error(2.0):.0f}, slope {slope:.2f}: a larger weight makes the error smaller")

# %% [markdown]
# A million weights would need a million such tries. A `Tensor` remembers how it was made; `backward()` walks that
# memory from the error back to its sources, once, and leaves the slope with each source in `.grad`. All these slopes
# together are the *gradient*. Chapter 01 builds it.

# %%
from minidl import Tensor, cluster, data, nn, optim, parallel

weight = Tensor(2.0, requires_grad=True)
error(weight).backward()
print(f"slope {weight.grad:.2f}; equal to the one by trying: {abs(weight.grad - slope) < 1e-4}")

# %% [markdown]
# ## Many nodes
#
# A node's program is a function. `cluster.launch` runs it once on every node; `comm` tells a node its number (its
# *rank*) and carries its messages. Here every node has a number and wants the sum of all. From scratch: everybody
# sends to rank 0, which adds up and sends the sum back.


# %%
def sum_at_rank_0(comm):
    mine = comm.rank + 1.0
    if comm.rank == 0:
        total = mine + sum(comm.recv(rank) for rank in range(1, comm.size))
        for rank in range(1, comm.size):
            comm.send(total, rank)
    else:
        comm.send(mine, 0)
        total = comm.recv(0)
    print(f"I had {mine:.0f}, together we have {total:.0f}")
    return total


by_hand = cluster.launch(sum_at_rank_0, nodes=4)

# %% [markdown]
# This is an *all-reduce*: all contribute, all get the result. It is so common that it has a name, and several clever
# algorithms (chapter 04). minidl's own:


# %%
def program(comm):
    return comm.all_reduce(comm.rank + 1.0)


print("the same sums:", cluster.launch(program, nodes=4).results == by_hand.results)

# %% [markdown]
# ## One network on one node
#
# A *job* says what to train; a *strategy* says how. Per step the network sees a *minibatch* of 64 digits and changes
# its weights against the mean gradient of these.

# %%
job = parallel.Job(
    model=lambda: nn.models.LeNet(size=8),
    data=data.digits,
    optimizer=lambda parameters: optim.SGD(parameters, lr=0.05, momentum=0.9),
    batch_size=64,
    epochs=4,
)
one = parallel.train(job)
print(f"one node reads {one.accuracy:.1%} of the test digits correctly (measured)")

# %% [markdown]
# ## The same on four nodes
#
# Now each node sees a quarter of every minibatch and computes the gradient of its quarter. An all-reduce adds the four
# up, and all nodes make the same step: the strategy `Synchronous`.
#
# **Predict.** Will the share of digits that four nodes read correctly be *lower*, *equal* or *higher*? Write your
# guess in the next cell before you run it.

# %%
guess = None  # "lower", "equal" or "higher"

four = parallel.train(job, parallel.Synchronous(), nodes=4)
difference = four.accuracy - one.accuracy
verdict = "equal" if abs(difference) < 0.005 else "higher" if difference > 0 else "lower"
print(f"your guess: {guess or 'none'}    measured: {verdict}")
print(f"one node {one.accuracy:.1%}, four nodes {four.accuracy:.1%}")
print("all four nodes ended with the same weights, to the bit:", len(set(four.digests)) == 1)
gap = abs(four.history[-1]["loss"] - one.history[-1]["loss"])
print("their training loss is the one node's, to six decimals:", gap < 1e-6)

# %% [markdown]
# The sum of four quarters of a gradient *is* the gradient, up to rounding. Four nodes that agree after every minibatch
# train as one does. What differs is the time, and where it goes. Below: a row a node, time from left to right, three
# steps. Such a picture is called a *Gantt chart*.

# %%
# measured: differs from run to run
from IPython.display import display

display(four.timeline())
shares = four.trace.shares()
print("In words: a node's time is")
print(f"{shares.compute:.0%} computing, {shares.communication:.0%} communicating,")
print(f"{shares.waiting:.0%} waiting for others (mean over the nodes, measured)")

# %% [markdown]
# The network is tiny and four processes share the cores of one computer, so much of the time nobody computes. The
# course is about that picture: what makes it so, and what can be done about it.

# %% [markdown]
# ## A cluster that you do not have
#
# How long does an all-reduce take among many nodes? The same program runs on a *simulated* cluster with a virtual
# clock. The network: 10 Gbit/s Ethernet, where a message takes 20 µs to start, and then 0.8 ns a byte. The algorithm:
# a *ring*, where every node talks to its right neighbour only.
#
# **Predict.** 4 nodes sum up a gradient of a million numbers (4 MB). Now 64 nodes do, so 16 times as many gradients
# have to be added. How many times as long does it take: about 16, about 4, or less than 2?

# %%
import numpy as np

guess = None  # 16, 4 or 2


def ring(comm):
    comm.all_reduce(np.ones(1_000_000, np.float32), algorithm="ring")


network = cluster.Network.preset("10gbe")
virtual = {"on": "simulation", "network": network}
simulated = {p: cluster.launch(ring, nodes=p, **virtual).seconds for p in (4, 64)}
alpha, beta = network.alpha, network.beta  # seconds a message, seconds a byte
formula = {p: cluster.cost.all_reduce("ring", p, 4_000_000, alpha, beta) for p in (4, 64)}
print("nodes   simulated     formula")
for p in simulated:
    print(f"{p:5} {simulated[p] * 1e3:8.2f} ms {formula[p] * 1e3:8.2f} ms")
times = simulated[64] / simulated[4]
print(f"your guess: {guess or 'none'}    simulated: {times:.2f} times as long")

# %% [markdown]
# On a ring every node sends almost twice the gradient, however many nodes there are: chapter 04 shows how, and you
# write it. What does the same program take here? The messages of four processes on one computer go through memory, not
# through a cable; but the processes wait for their turn on its cores, and that is in the measured time.

# %%
# measured: differs from run to run
here = min(cluster.launch(ring, nodes=4).seconds for _ in range(3))
print(f"4 nodes: {here * 1e3:.2f} ms measured here,")
print(f"{simulated[4] * 1e3:.2f} ms simulated on 10 Gbit/s Ethernet")

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
    cluster.launch(one_forgets, nodes=4, **virtual)
except cluster.ClusterError as problem:
    print(type(problem).__name__)
    print(str(problem).split(", at ")[0])

# %% [markdown]
# ## What the papers report
#
# Goyal et al. (*Accurate, Large Minibatch SGD: Training ImageNet in 1 Hour*, arXiv:1706.02677) trained ResNet-50 with
# the strategy that you have just seen, on 256 GPUs instead of four processes. Its gradient has 25 million numbers, and
# backward takes them 120 ms (section 4). Could the network keep up? Multiply it out:

# %%
gradient = 25e6 * 4  # bytes, float32
sent = 2 * gradient  # what a node sends on a ring of very many
print(f"formula: {gradient / 1e6:.0f} MB of gradient, {sent / 1e6:.0f} MB sent by each node,")
print(f"within 0.125 s: {sent / 0.125 * 8 / 1e9:.1f} Gbit/s")

# %% [markdown]
# They say the same (section 4.3), and about 15 Gbit/s with overhead. From 8 to 256 GPUs they report about 90 % of the
# ideal speed. A minibatch so large needs care, or the network learns worse: chapter 08.

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
# Go on with chapter 01 (`python3 -m course lab 01`), or with any chapter whose question you like. Its exercises:
# `python3 -m course start 01`. Without an argument, `python3 -m course` always tells your next step.
#
# 1. If four nodes train exactly as one does, what have we gained, and when?
# 2. One of the four nodes is half as fast. What happens to the others?
# 3. Must the nodes agree after *every* minibatch?
