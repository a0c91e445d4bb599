# %% [markdown]
# # 07d. Ensembles: can networks that were trained apart be averaged?
#
# *Read [07a](07a_local_sgd.ipynb) first: local SGD, random and sorted shards. Reading time: about 9 minutes. Figures
# are* measured, simulated *or come from a* formula.
#
# ## The question
#
# Local SGD with a single round, at the very end, is the cheapest way to train on many machines: **ParallelSGD**, or
# one-shot averaging (Zinkevich et al., 2010). All machines begin with the same weights $w$, each reads its own shard,
# nothing is sent until the end, and then the weights are averaged. When is such a mean a good network?
#
# If the loss $L$ is *convex* in the weights, as that of a network without hidden layer (softmax regression), we know
# that (Jensen's inequality)
#
# $$L\Bigl(\frac1p \sum_i w_i\Bigr) \le \frac1p \sum_i L(w_i).$$
#
# The mean is at most as bad as the machines on average. That does not say that it is good.

# %% source_hidden=true
from functools import cache, partial

import numpy as np
from threadpoolctl import threadpool_limits

from course.figures.page import say, see, table
from course.interaction import bar, explore, guess, warm_up
from minidl import Tensor, cluster, data, nn, no_grad, optim, parallel
from minidl import functional as F
from minidl.parallel import Ensemble, OneShotAveraging, Serial, Synchronous
from minidl.plots import style

warm_up()
one_thread = threadpool_limits(1)  # matrices as small as ours are not worth a second thread
P, EPOCHS = 8, 15
images, tests = data.digits()
DIGITS = data.Splits(data.Dataset(*images[:1408]), tests)  # 22 minibatches of 8 samples for each of 8 machines
SOFTMAX, NETWORK = (64, 10), (64, 32, 32, 10)
KINDS = {"random": "fixed", "sorted": "by_label"}
SIMULATION = cluster.Simulation(trace="ledger")


def make_job(sizes=NETWORK, shards="fixed", batch_size=8, seed=0):
    model, sgd = partial(nn.models.MLP, *sizes), partial(optim.SGD, lr=0.5)
    return parallel.Job(model, DIGITS, sgd, batch_size=batch_size, epochs=EPOCHS, shards=shards, seed=seed)


@cache  # some runs are shown twice
def train(strategy, machines, **settings):
    return parallel.train(make_job(**settings), strategy, machines, SIMULATION)


def flat(model):
    """All weights as one vector."""
    return np.concatenate([w.numpy().ravel() for w in model.parameters()])


def outputs_of(weights, sizes=NETWORK):
    """The outputs, for the test set, of a network with these weights."""
    model = make_job(sizes).build_model()
    for w in model.parameters():
        w.copy_(weights[: w.size].reshape(w.shape))
        weights = weights[w.size :]
    with no_grad():
        return model(Tensor(DIGITS.test.x)).numpy().astype(np.float64)


def score(outputs):
    """Test loss, and test error in percent."""
    wrong = outputs.argmax(axis=1) != DIGITS.test.y
    return F.cross_entropy(Tensor(outputs), DIGITS.test.y).item(), 100 * wrong.mean()


def evaluate(weights, sizes=NETWORK):
    return score(outputs_of(weights, sizes))


def spread(values, form=".1f"):
    return f"{np.mean(values):{form}} ± {np.std(values, ddof=1):{form}}"


# %%
def alone(job, machines):
    """Train one network for each machine, from the same weights, on its shard; nothing is sent. One vector each."""
    found = []
    for machine in range(machines):
        model = job.build_model()
        optimizer = job.optimizer(model.parameters())
        for epoch in range(job.epochs):
            order = job.order(DIGITS.train, machines, 8 * machines)(epoch)
            for minibatch in order.reshape(-1, 8 * machines):
                x, y = DIGITS.train[minibatch[machine::machines]]
                optimizer.zero_grad()
                job.loss(model(Tensor(x)), y).backward()
                optimizer.step()
        found.append(flat(model))
    return np.array(found)


# %%
NAMES = {"softmax regression": SOFTMAX, "network": NETWORK}
CASES = [f"{name}, {kind} shards" for name in NAMES for kind in KINDS]

# %%
guess_once = guess("Which mean loses least, against a round after each step?", CASES)

# %% source_hidden=true
SEEDS = range(4)
rows, lost, below = [], {}, True
for case in bar(CASES, "training without rounds"):
    name, kind = case.removesuffix(" shards").split(", ")
    machines, means, errors, often = [], [], [], []
    for seed in SEEDS:
        settings = {"shards": KINDS[kind], "sizes": NAMES[name], "seed": seed}
        ends = alone(make_job(**settings), P)
        machines.append(np.mean([evaluate(each, NAMES[name])[0] for each in ends]))
        loss, error = evaluate(ends.mean(axis=0), NAMES[name])
        means.append(loss)
        errors.append(error)
        often.append(100 * (1 - train(Synchronous(), P, **(settings | {"batch_size": 8 * P})).accuracy))
        below = below and loss < machines[-1]
        if seed == 0:
            assert np.allclose(flat(train(OneShotAveraging(), P, **settings).model()), ends.mean(axis=0), atol=1e-5)
    lost[case] = np.mean(errors) - np.mean(often)
    rows.append([case, spread(machines, ".2f"), spread(means, ".2f"), f"{spread(errors)} %", f"{spread(often)} %"])
table(["model and shards", "mean loss of the machines", "loss of the mean", "its error", "error, a round each step"],
      rows, f"simulated, {len(SEEDS)} seeds; the mean is that of minidl's `OneShotAveraging`; your guess: "
      f"{guess_once.against(min(lost, key=lost.get))}")  # fmt: skip
say(f"The loss of the mean is below the mean loss of the machines in {'all' if below else 'not all'} runs.")

# %% [markdown]
# For a network nothing guarantees that. And on sorted shards the mean is far behind a round after each step, convex or
# not: as with the parabolas of 07a, the minimum of the mean loss is not the mean of the minima.
#
# ## Hidden units have no order
#
# How bad can a mean of two *good* networks be? Number the hidden units differently: permute the rows of one layer's
# matrix, and the columns of the next one's in the same way. The network computes exactly the same function. But weight
# 1 of one copy now has nothing to do with weight 1 of the other.


# %%
def permuted(report, seed):
    """The weights of a network that computes the same, with the units of both hidden layers in another order."""
    state, rng = dict(report.checkpoint.model), np.random.default_rng(seed)
    for layer in (0, 1):
        order = rng.permutation(32)
        for name in (f"layers.{layer}.weight", f"layers.{layer}.bias"):
            state[name] = state[name][order]
        state[f"layers.{layer + 1}.weight"] = state[f"layers.{layer + 1}.weight"][:, order]
    return np.concatenate([w.ravel() for w in state.values()])


# %%
guess_permuted = guess("A network and a copy with its hidden units permuted: what is the test error of their mean?",
                       unit="%")  # fmt: skip

# %% source_hidden=true
members = [train(Serial(), 1, batch_size=16, seed=seed) for seed in bar(range(12), "training twelve networks")]
weights = [flat(report.model()) for report in members]
copies = [permuted(members[seed], seed) for seed in range(4)]
assert all(np.allclose(outputs_of(copies[seed]), outputs_of(weights[seed]), atol=1e-4) for seed in range(4))
own = [evaluate(weights[seed])[1] for seed in range(4)]
both = [evaluate((weights[seed] + copies[seed]) / 2)[1] for seed in range(4)]
eight = [evaluate(np.mean([permuted(members[seed], number) for number in range(8)], axis=0))[1] for seed in range(4)]
say(f"The networks err on {spread(own)} % of the test set, and so do their copies. The means err on **{spread(both)} "
    f"%** (from {min(both):.1f} to {max(both):.1f} %; your guess: {guess_permuted.against(np.mean(both))}), and the "
    f"means of eight such copies on {spread(eight)} % (simulated, 4 networks).")  # fmt: skip

# %% [markdown]
# Walk on a straight line from one network to the other; the mean is half-way:

# %% source_hidden=true
PAIRS = {
    "softmax regressions, two shards": [(*alone(make_job(SOFTMAX, seed=seed), 2), SOFTMAX) for seed in range(4)],
    "networks, two shards, same start": [(*alone(make_job(seed=seed), 2), NETWORK) for seed in range(4)],
    "networks, other starts": [(weights[seed], weights[seed + 4], NETWORK) for seed in range(4)],
    "a network and its permuted copy": [(weights[seed], copies[seed], NETWORK) for seed in range(4)],
}
WALK = np.linspace(0, 1, 17)
hills = {name: [[evaluate((1 - t) * a + t * b, sizes)[0] for t in WALK] for a, b, sizes in pairs]
         for name, pairs in PAIRS.items()}  # fmt: skip


def hill(axes, between):
    for number, losses in enumerate(hills[between]):
        axes.plot(WALK, losses, color=style.SERIES[number], linestyle=style.DASHES[number], label=f"seed {number}")
    axes.set(xlabel="share of the second network", ylabel="test loss", ylim=(0, 1.2))
    axes.legend(fontsize=7, loc="upper right")


explore(
    hill,
    "test loss on the line between two networks, for four seeds. The softmax regression has no hill: its loss is "
    "convex. Two machines that began with the same weights have none either. Between networks from different starts, "
    "and between a network and its own permuted copy, there is a hill, and the mean is near its top.",
    between=list(PAIRS), source="simulated", multiples=[{"between": name} for name in PAIRS], width=4.8, height=2.6,
)  # fmt: skip

# %% [markdown]
# That is why local SGD begins with the same weights on all machines, and why its rounds matter: they keep the machines
# on one side of the hill, where hidden unit 7 has the same part on all of them.
#
# ## Average the outputs
#
# Networks from different starts can be combined, too, but not by their weights: average their *outputs* $z_k$ for each
# sample. This is an **ensemble**. The cross entropy is convex in the outputs, for every network, so that, again by
# Jensen,
#
# $$L\Bigl(\frac1p \sum_k z_k\Bigr) \le \frac1p \sum_k L(z_k).$$
#
# The same holds for a mean of probabilities, since $-\log$ is convex. `Ensemble` trains four networks on four machines
# that send nothing at all. Here are three groups of four; each network reads all samples.

# %%
guess_ensemble = guess("In how many of the three groups does the mean of outputs err less than the best member?",
                       [0, 1, 2, 3])  # fmt: skip

# %% source_hidden=true
names = ("members, mean", "members, best", "mean of outputs", "mean of probabilities", "mean of weights")
found = {name: [] for name in names}
for first in (0, 4, 8):
    group = weights[first : first + 4]
    outputs = np.array([outputs_of(each) for each in group])
    powers = np.exp(outputs - outputs.max(axis=2, keepdims=True))
    probabilities = (powers / powers.sum(axis=2, keepdims=True)).mean(axis=0)
    scores = np.array([score(each) for each in outputs])
    means = score(outputs.mean(axis=0)), score(np.log(probabilities)), evaluate(np.mean(group, axis=0))
    for name, value in zip(names, (scores.mean(axis=0), scores.min(axis=0), *means), strict=True):
        found[name].append(value)
ensemble = train(Ensemble(), 4, batch_size=16)
assert np.isclose(ensemble.history[-1]["test_loss"], found["mean of outputs"][0][0], rtol=1e-3)
beaten = sum(one[1] < best[1] for one, best in zip(found["mean of outputs"], found["members, best"], strict=True))
table(["four networks", "test loss", "test error"],
      [[name, ", ".join(f"{loss:.3f}" for loss, _ in values), ", ".join(f"{wrong:.1f} %" for _, wrong in values)]
       for name, values in found.items()],
      f"simulated, three groups; {ensemble.history[-1]['bytes']} bytes sent by minidl's `Ensemble` in training; your "
      f"guess: {guess_ensemble.against(beaten)}")  # fmt: skip

# %% [markdown]
# The loss of the ensemble is below the mean loss of its members, as it must be. Nothing promises that its error is
# below that of the best member. The price: four networks have to be kept, and evaluated for every prediction, and each
# of them read all the samples.
#
# ## Break it: one file for four
#
# The last row of the table is the classic mistake. Four checkpoints are three too many for a telephone, so somebody
# saves their mean. Nothing complains: the shapes agree. Networks from *one* start may be averaged: the second picture
# of the line has no hill.
#
# ## What the papers report
#
# **Zinkevich, Weimer, Smola and Li (2010)**, *Parallelized stochastic gradient descent* (NIPS): algorithm 3 is our
# one-shot average, analysed for convex losses and for samples that are dealt at random.
#
# **Garipov et al. (2018)** (arXiv:1802.10026): two trained networks are joined by a *curved* path of nearly constant
# loss. The straight line has the hill.
#
# **Ainsworth, Hayase and Srinivasa (2022)**, Git Re-Basin (arXiv:2209.04836): permute the hidden units of one network
# so that they fit those of the other, and the hill on the line is lower; between wide ResNets on CIFAR-10 it vanishes.
#
# **Wortsman et al. (2022)**, model soups (arXiv:2203.05482): networks that were fine-tuned from one pretrained network
# are averaged, weight by weight, and the mean is often better than the best of them.
#
# ## The answer so far
#
# Weights may be averaged if the networks began together and saw similar samples. Networks from different starts number
# their hidden units differently, so the mean of their weights mixes unrelated units. Their outputs may always be
# averaged; that is an ensemble, and it costs all of its members at every prediction.
#
# ## To the exercises
#
# [Exercises of chapter 07](../exercises/07_averaging/07_averaging.ipynb): local SGD with its last round is among them.
#
# **Three questions to argue about**
#
# 1. Is the mean of the probabilities or the mean of the outputs the better ensemble? What would decide it?
# 2. You may sort the hidden units of each network by the norm of their weights before averaging. Does that undo the
#    permutation of a copy? Does it help with another start?
# 3. Eight machines, one shard each, sorted by label: would you rather have an ensemble of the eight, or their mean?
#
# Next: [08a](08a_linear_scaling.ipynb). All machines agree again, and their minibatch grows.
