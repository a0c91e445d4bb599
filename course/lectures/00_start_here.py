# %% [markdown]
# # Start here: four nodes train one network
#
# *What happens when four machines train one network together, and how can they agree?*
#
# This page takes two minutes. It trains a small convolutional network on 1,797 scanned digits, first on one node,
# then on four. The four nodes are processes of this computer that share nothing and talk only by messages, as
# machines in a rack do. Every figure below is *measured* on the computer that ran this page.

# %%
from minidl import Tensor, cluster, data, nn, optim, parallel

# %% [markdown]
# ## One neuron
#
# A `Tensor` is an array that remembers how it was made. `backward()` walks that memory from the result to its sources
# and leaves in each source's `.grad` how fast the result grows with it. Here the result is a squared error.

# %%
weight = Tensor(2.0, requires_grad=True)
error = (weight * 3.0 - 9.0) ** 2
error.backward()
print(f"error {error.item():.0f}, its slope {weight.grad:.0f}: a larger weight makes the error smaller")

# %% [markdown]
# ## Many nodes
#
# A node's program is a function. `cluster.launch` runs it once on every node; `comm` tells a node its number (its
# *rank*) and carries its messages. An *all-reduce* adds up what the nodes have and gives everyone the sum.


# %%
def program(comm):
    mine = comm.rank + 1.0
    total = comm.all_reduce(mine)
    print(f"I have {mine:.0f}, together we have {total:.0f}")
    return total


run = cluster.launch(program, nodes=4)
print("results of the four nodes:", run.results)

# %% [markdown]
# ## One network
#
# A job says *what* to train; a strategy says *how*. First on one node.

# %%
job = parallel.Job(
    model=lambda: nn.models.LeNet(size=8),
    data=data.digits,
    optimizer=lambda parameters: optim.SGD(parameters, lr=0.05, momentum=0.9),
    batch_size=64,
    epochs=10,
)
one = parallel.train(job)
print(f"one node: {one.accuracy:.1%} of the test digits are read correctly")

# %% [markdown]
# ## Four nodes
#
# **Predict.** Each node now sees a quarter of every minibatch. Will the accuracy be lower, equal, or higher?
#
# The strategy `Synchronous` lets every node compute the gradient of its quarter, adds the four up by an all-reduce,
# and lets all nodes make the same step.

# %%
four = parallel.train(job, parallel.Synchronous(), nodes=4)
print(f"four nodes: {four.accuracy:.1%}")
print("all four ended with the same weights, to the bit:", len(set(four.digests)) == 1)
gap = abs(four.history[-1]["loss"] - one.history[-1]["loss"])
print("their training loss is the one node's, to six decimals:", gap < 1e-6)

# %% [markdown]
# Equal: the sum of four quarters of a gradient *is* the gradient, up to rounding. Four nodes that agree after every
# minibatch train as one does. What differs is the time, and where it goes.

# %%
shares = four.trace.shares()
print(f"computing {shares.compute:.0%}, communicating {shares.communication:.0%}, waiting {shares.waiting:.0%}")
four.timeline()

# %% [markdown]
# The picture is a *Gantt chart* (*measured*): a row a node, time from left to right. The network is tiny, so the
# nodes spend much of their time not computing. The course is about that picture: what makes it so, and what can be
# done about it.

# %% [markdown]
# ## Three questions to argue about
#
# 1. If four nodes train exactly as one does, what have we gained, and when?
# 2. One of the four nodes is half as fast. What happens to the others?
# 3. Must the nodes agree after *every* minibatch?
