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
# network on scanned digits, first on one *node*, then on four. The four are processes of this computer that share
# nothing and talk only by messages, as machines in a rack do. Then it does the same on a network of machines that you
# do not have. It ends with your own progress in the course.
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
# minidl compiles its innermost loops, once per computer. The next cell does it now, so that no later one waits. On a
# computer that has them it takes no time.

# %%
from course.interaction import bar, guess, warm_up

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
    return (weight * 3.0 - 9.0) ** 2


step = 1e-6
slope = (error(2.0 + step) - error(2.0)) / step
print(f"weight 2: error {error(2.0):.0f}, slope {slope:.2f}, so a larger weight makes the error smaller")

# %% [markdown]
# A million weights would need a million such tries. A `Tensor` remembers how it was made; `backward()` walks that
# memory from the error back to its sources, once, and leaves the slope with each source in `.grad`. All these slopes
# together are the *gradient*. Chapter 01 builds it.

# %%
import numpy as np
from threadpoolctl import threadpool_limits

from course.figures.page import say, see
from minidl import Tensor, cluster, data, nn, optim, parallel
from minidl.plots import lines
from minidl.plots.lines import Line, Panel

threadpool_limits(1)  # one thread for matrices this small, as each of four nodes will have one
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
# A *job* says what to train; a *strategy* says how. Here: a small network for images (a *LeNet*), and scanned digits.
# At each step the network sees a *minibatch*, 64 of the digits, and moves its weights against the gradient of its mean
# error on them. Four *epochs* are four passes through the training images. (Chapter 02 explains the rest.)

# %%
job = parallel.Job(
    model=lambda: nn.models.LeNet(size=8),
    data=data.digits,
    optimizer=lambda parameters: optim.SGD(parameters, lr=0.05, momentum=0.9),
    batch_size=64,
    epochs=4,
)
one = parallel.train(job)
train, test = data.digits()
print(f"{len(train.y):,} digits to train on, {len(test.y)} others for the test")
print(f"one node reads {one.accuracy:.1%} of the test digits correctly (measured)")

# %% [markdown]
# ## The same on four nodes
#
# Now each node sees a quarter of every minibatch and computes the gradient of its quarter. An all-reduce adds the four
# up, and all nodes make the same step: the strategy `Synchronous`.
#
# Will the four together read as many digits correctly?

# %%
guess_share = guess("The share of digits that four nodes read correctly will be…", ["lower", "equal", "higher"])

# %%
four = parallel.train(job, parallel.Synchronous(), nodes=4)
difference = four.accuracy - one.accuracy
verdict = "equal" if abs(difference) < 0.005 else "higher" if difference > 0 else "lower"
say(
    f"Your guess: {guess_share}. **Measured: {verdict}**: {one.accuracy:.1%} with one node, "
    f"{four.accuracy:.1%} with four."
)
print("all four nodes ended with the same weights, to the bit:", len(set(four.digests)) == 1)
gap = abs(four.history[-1]["loss"] - one.history[-1]["loss"])
print("their mean error in training is the one node's, to six decimals:", gap < 1e-6)

# %% [markdown]
# The sum of four quarters of a gradient *is* the gradient, up to rounding. Four nodes that agree after every minibatch
# train as one does. So the answer to the first two questions is yes and yes. And the third? Below: a row a node, time
# from left to right, three steps. Such a picture is called a *Gantt chart*.

# %%
# measured: differs from run to run
shares = four.trace.shares()
see(
    four.timeline(),
    f"over the whole run a node spends {shares.compute:.0%} of its time computing, {shares.communication:.0%} "
    f"communicating and {shares.waiting:.0%} waiting for the others.",
)
seconds = {report.nodes: report.history[-1]["seconds"] for report in (one, four)}
print(f"four epochs took {seconds[1]:.2f} s on one node and {seconds[4]:.2f} s on four (measured)")

# %% [markdown]
# No cluster: four processes that take turns on the cores of one computer, and wait for each other meanwhile. With a
# network as tiny as this there is little to be won. What would four *computers* make of it?
#
# ## A cluster that you do not have
#
# The same training, unchanged, on a *simulated* cluster. The gradients are computed as before and the network learns as
# before, but time is that of a virtual clock: each node does 10 billion operations a second, and a message on an
# ordinary network (Ethernet, 1 Gbit/s) takes 50 µs to start and then 8 ns a byte. A better one (10 Gbit/s) takes 20 µs
# and 0.8 ns.
#
# Eight nodes halve the work of four. How much faster will they be?

# %%
guess_speed = guess("How many times as fast as one node are eight on the ordinary network?", [8, 4, 2])

# %%
node = cluster.Node(flops_per_s=10e9, bytes_per_s=10e9)
epoch = parallel.Job(job.model, job.data, job.optimizer, batch_size=64, epochs=1)


def simulate(nodes, network):
    """One epoch on so many simulated nodes; the gradients are added up along a ring."""
    return parallel.train(epoch, parallel.Synchronous(algorithm="ring"), nodes, cluster.Simulation(node=node), network)


counts = (1, 2, 4, 8)
cases = bar([(network, p) for network in ("10gbe", "1gbe") for p in counts], "simulating clusters")
runs = {"10gbe": [], "1gbe": []}
for network, p in cases:
    runs[network].append(simulate(p, network))
speedup = {network: [reports[0].seconds / r.seconds for r in reports] for network, reports in runs.items()}
curves = [Line("ideal (formula)", counts, counts)]
curves += [Line("10 Gbit/s", counts, speedup["10gbe"], "both"), Line("1 Gbit/s", counts, speedup["1gbe"], "both")]
panel = Panel(curves, "nodes", "times as fast as one node")
see(
    lines.draw([panel], source=("simulated", "formula"), title="What nodes bring"),
    f"with 10 Gbit/s, 4 nodes are {speedup['10gbe'][2]:.1f} times as fast as one and 8 are {speedup['10gbe'][3]:.1f} "
    f"times; with 1 Gbit/s 4 are {speedup['1gbe'][2]:.1f} times and 8 only {speedup['1gbe'][3]:.1f} times as fast.",
)
say(f"Your guess: {guess_speed}. **Simulated: {speedup['1gbe'][3]:.1f} times.**")

# %% [markdown]
# Who stands in the way? The Gantt chart of four nodes on the ordinary network shows it:

# %%
shares = runs["1gbe"][2].trace.shares()
see(
    runs["1gbe"][2].timeline(steps=2),
    f"all nodes compute forward and backward side by side, and then exchange gradients along a ring, "
    f"{shares.communication:.0%} of the time: each sends to the next node only, in several rounds. (Upper halves: to "
    f"whom a node sends; lower ones: from whom it receives.)",
)

# %% [markdown]
# Twice as many nodes halve the computing, but not the sending: all of them need the sum of all gradients. Does the
# sending even grow with the number of nodes? Here is one all-reduce alone: a million numbers a node (4 MB), 10 Gbit/s,
# along the same *ring* as above, in which every node sends to its right neighbour only.
#
# 64 nodes instead of 4 add up 16 times as many gradients.

# %%
guess_time = guess("How many times as long do 64 nodes take as 4?", ["about 16", "about 4", "less than 2"])


# %%
def ring(comm):
    comm.all_reduce(np.ones(1_000_000, np.float32), algorithm="ring")


network = cluster.Network.preset("10gbe")
simulated = {p: cluster.launch(ring, nodes=p, on="simulation", network=network).seconds for p in (4, 64)}
formula = {p: cluster.cost.all_reduce("ring", p, 4_000_000, network.alpha, network.beta) for p in (4, 64)}
print("nodes   simulated     formula")
for p in simulated:
    print(f"{p:5} {simulated[p] * 1e3:8.2f} ms {formula[p] * 1e3:8.2f} ms")
say(f"Your guess: {guess_time}. **Simulated: {simulated[64] / simulated[4]:.2f} times as long.**")

# %% [markdown]
# On a ring every node sends less than twice the gradient, however many nodes there are: chapter 04 shows how, and you
# write it. And what does the same program take here? The messages of four processes on one computer go through memory,
# not through a cable; but the processes wait for their turn on its cores, and that is in the measured time.

# %%
# measured: differs from run to run
here = min(cluster.launch(ring, nodes=4).seconds for _ in range(3))
print(f"4 nodes: {here * 1e3:.2f} ms measured here,")
print(f"{simulated[4] * 1e3:.2f} ms simulated on 10 Gbit/s Ethernet")

# %% [markdown]
# So faster, yes: as long as there is more to compute than to send. When that is, and what to do when it is not, is what
# the chapters from 04 on are about.
#
# ## Break it
#
# The classic mistake: one node takes another way through the program and forgets to take part. On many systems all the
# others would now wait for ever. Here the run comes back and says who waits for whom.


# %%
def one_forgets(comm):
    if comm.rank != 2:
        comm.all_reduce(1.0, algorithm="ring")


try:
    cluster.launch(one_forgets, nodes=4, on="simulation", network=network)
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
# ideal speed-up from 8 to 256 GPUs, where our tiny network on an ordinary one was far below. And the network was as
# good only because they took care: the step had to grow with the minibatch, and to begin small.
# [Chapter 08](08a_linear_scaling.ipynb) tells why, and where it ends; [chapter 09](09a_top_k.ipynb) sends less instead.

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
