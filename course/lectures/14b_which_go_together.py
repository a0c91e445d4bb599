# %% [markdown]
# # 14b. Which ways of sharing go together?
#
# *Read [06a](06a_staleness.ipynb) first: servers, staleness; [10b](10b_groups.ipynb): meshes; and
# [11a](11a_pipelines.ipynb): stages, micro-batches. Reading time: about 26 minutes. Figures are* measured *on the
# computer that ran this page,* simulated, *or come from a* formula.
#
# ## The question
#
# GPT-3 has 175 billion weights in 96 blocks of 96 heads. We have 1,024 graphics cards with 80 GB of memory each. How
# many of them can each way of sharing use by itself, and what does a card then keep of weights, gradients and
# optimizer's state?

# %%
from course.interaction import bar, explore, guess, warm_up

warm_up()

# %% source_hidden=true
import re
from collections import Counter, defaultdict
from functools import cache, partial
from itertools import permutations
from math import prod
from pathlib import Path

import numpy as np

import minidl
from course.figures.page import say, see, table
from minidl import cluster, data, nn, optim, parallel
from minidl.plots import style

LAYERS, WIDTH, HEADS, POSITIONS, WORDS, BATCH = 96, 12288, 96, 2048, 51200, 1536
CARDS, SERVER, CARD = 1024, 8, 80e9  # cards, cards of a server, bytes of a card
WEIGHTS = 12 * LAYERS * WIDTH**2 + WORDS * WIDTH
alone = {"data parallelism (dp)": (CARDS, 1, "cards that there are"), "a pipeline (pp)": (LAYERS, LAYERS, "blocks"),
         "tensor parallelism (tp)": (HEADS, HEADS, "heads")}  # fmt: skip
table(
    ["", "most cards", "limited by", "GB on a card"],
    [[way, f"{most:,}", why, f"{16 * WEIGHTS / parts / 1e9:,.0f}"] for way, (most, parts, why) in alone.items()],
    f"{CARDS:,} cards, 16 bytes for each of {WEIGHTS / 1e9:.0f} billion weights; formula",
)

# %% [markdown]
# The first way uses all cards, and does not fit by far. The others fit, and leave nine of ten cards idle. So ways have
# to be *combined*.
#
# ## Two ways, by hand
#
# *DistBelief* (Dean et al., 2012) trained networks that were too large for one machine. It divided the network over
# several machines. A group of machines that holds the network once is a *replica*. Several replicas worked around an
# asynchronous *server* of the weights ([06a](06a_staleness.ipynb)): each computed gradients at its own pace, and no
# replica waited for another.
#
# Here is a network of two layers, $\tanh(xA)\,B$, with two replicas of two cards. Each card has a layer. It pushes the
# gradient of its own layer and fetches its own weights:

# %% source_hidden=true
HIDDEN, LR, MS = 32, 0.5, 1e-3
pixels, labels = data.digits().train[np.arange(720)]
digits = data.Dataset(pixels.reshape(720, -1).astype(float), labels)
generator = np.random.default_rng(0)
FIRST = [generator.normal(size=shape) / shape[0] ** 0.5 for shape in ((64, HIDDEN), (HIDDEN, 10))]


def last_layer(h, y, b):
    """The gradients of the mean cross entropy with respect to b and to h."""
    scores = h @ b
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    p[np.arange(len(y)), y] -= 1
    p /= len(y)
    return h.T @ p, p @ b.T


def whole(comm, w, batches):
    """A replica on one card."""
    for x, y, seconds in batches:
        a, b = w[: 64 * HIDDEN].reshape(64, HIDDEN), w[64 * HIDDEN :].reshape(HIDDEN, 10)
        h = np.tanh(x @ a)
        of_b, dh = last_layer(h, y, b)
        comm.compute(seconds=2 * seconds, label="F")
        comm.compute(seconds=4 * seconds, label="B")
        comm.send(np.concatenate([(x.T @ (dh * (1 - h**2))).ravel(), of_b.ravel()]), comm.size - 1)
        w = comm.recv(comm.size - 1)


# %%
def split(comm, w, batches):
    """One card of a replica of two: cards 0 and 1 are the first replica, 2 and 3 the second; the server is last."""
    partner, server = comm.rank ^ 1, comm.size - 1
    for x, y, seconds in batches:
        if comm.rank % 2 == 0:  # the first layer
            comm.compute(seconds=seconds, label="F")
            h = np.tanh(x @ w.reshape(64, HIDDEN))
            comm.send(h, partner)
            dh = comm.recv(partner)
            comm.compute(seconds=2 * seconds, label="B")
            gradient = x.T @ (dh * (1 - h**2))
        else:  # the last layer
            h = comm.recv(partner)
            comm.compute(seconds=seconds, label="F")
            gradient, dh = last_layer(h, y, w.reshape(HIDDEN, 10))
            comm.compute(seconds=2 * seconds, label="B")
            comm.send(dh, partner)
        comm.send(gradient.ravel(), server)
        w = comm.recv(server)


def serve(comm, w, cards, pushes):
    """The server; w: all weights as one vector; cards: of a replica. Returns w, and by update the replica and age."""
    asked, fetched, log = defaultdict(dict), Counter(), []
    while len(log) < pushes:
        gradient = comm.recv(cluster.ANY)
        replica = comm.last_source // cards
        asked[replica][comm.last_source] = gradient
        if len(asked[replica]) == cards:  # all cards of the replica have pushed
            parts = dict(sorted(asked.pop(replica).items()))
            log.append((replica, len(log) - fetched[replica]))
            w = w - LR * np.concatenate([*parts.values()])
            fetched[replica] = len(log)
            ends = np.cumsum([len(part) for part in parts.values()])
            for card, mine in zip(parts, np.split(w, ends[:-1]), strict=True):
                comm.send(mine, card)
    return w, log


# %% [markdown]
# The server waits until *all* cards of a replica have pushed. Then it makes one update and answers them, so that both
# get weights of the same version. The *staleness* of a gradient is the number of updates between its replica's fetch
# and its push.
#
# Four cards could also be four whole replicas, if the network fits on a card.

# %%
guess_age = guess("Four cards as two replicas of two: what is the staleness, once the run is going?", [0, 1, 2, 3])


# %% source_hidden=true
def job(epochs=2, seed=0):
    return parallel.Job(built, data.Splits(digits, digits), partial(optim.SGD, lr=LR), batch_size=24, epochs=epochs,
                        seed=seed)  # fmt: skip


def built():
    """minidl's network with the same weights."""
    model = nn.Sequential(nn.Linear(64, HIDDEN, bias=False), nn.Tanh(), nn.Linear(HIDDEN, 10, bias=False)).double()
    for parameter, values in zip(model.parameters(), FIRST, strict=True):
        parameter.copy_(values.T)
    return model


def minibatches(replica, replicas, epochs=2, seed=0, jitter=0.0):
    """The replica's minibatches as minidl deals them, and the seconds that a layer's forward takes."""
    times = np.random.default_rng((seed, replica))
    for epoch in range(epochs):
        mine = job(epochs, seed).order(digits, replicas, len(digits))(epoch)[replica::replicas]
        for at in range(0, len(mine), 24):
            chosen = mine[at : at + 24]
            yield digits.x[chosen], digits.y[chosen], MS * times.uniform(1 - jitter, 1 + jitter)


def program(comm, cards, server, settings):
    replicas = (comm.size - 1) // cards
    if comm.rank == comm.size - 1:
        pushes = sum(len([*minibatches(each, replicas, **settings)]) for each in range(replicas))
        return server(comm, np.concatenate([w.ravel() for w in FIRST]), cards, pushes)
    w = FIRST[comm.rank % 2] if cards == 2 else np.concatenate([w.ravel() for w in FIRST])
    (split if cards == 2 else whole)(comm, w.ravel(), minibatches(comm.rank // cards, replicas, **settings))
    return comm.bytes_sent


def by_hand(cards, replicas, on="simulation", server=serve, **settings):
    return cluster.launch(program, (cards, server, settings), cards * replicas + 1, on)


# %%
four, two = by_hand(cards=1, replicas=4), by_hand(cards=2, replicas=2)
same = by_hand(cards=1, replicas=2)  # as many replicas, on one card each

# %% source_hidden=true
ages = {name: Counter(age for _, age in run.results[-1][1]) for name, run in (("four", four), ("two", two))}
age = max(ages["two"], key=ages["two"].get)
total = FIRST[0].size + FIRST[1].size
table(
    ["four cards are", "staleness, mostly", "updates in 100 ms", "most weights on a card"],
    [[name, max(ages[key], key=ages[key].get), f"{100 * MS * len(run.results[-1][1]) / run.seconds:.0f}", f"{held:,}"]
     for name, key, run, held in (("four replicas", "four", four, total),
                                  ("two replicas of two", "two", two, FIRST[0].size))],
    f"simulated, messages take no time; a layer takes 1 ms forward and 2 ms backward; your guess: "
    f"{guess_age.against(age)}",
)  # fmt: skip
see(
    cluster.plot_traces([same.trace, two.trace], titles=["two replicas on one card each; rank 2 serves",
                        "two replicas on two cards each; rank 4 serves"], end=20 * MS, row_height=0.24),
    "three minibatches. Above, a card computes both layers, forward and backward. Below, the cards of a replica "
    "take turns, and each waits for its partner half of the time. In both pictures a replica pushes at the same "
    "moments.",
)  # fmt: skip
logs_agree = same.results[-1][1] == two.results[-1][1]
apart = np.abs(same.results[-1][0] - two.results[-1][0]).max()
reports = [parallel.train(job(), parallel.ParameterServer(replica=replica), cards, "simulation")
           for replica, cards in ((None, 2), (parallel.Hybrid(pp=2, micro_batches=1), 4))]  # fmt: skip
vectors = [np.concatenate([w.T.ravel() for w in report.checkpoint.model.values()]) for report in reports]
ages_agree = [age for _, age in two.results[-1][1]] == reports[1].recorded["staleness"][4]
say(f"The two replicas of two cards push in the same order, and with the same staleness, as two whole ones: "
    f"**{'yes' if logs_agree else 'no'}**, in all {len(two.results[-1][1])} updates. The weights that they end with "
    f"are {'the same to the bit' if apart == 0 else f'{apart:.0e} apart'}.")  # fmt: skip

# %% [markdown]
# With the same number of cards, two replicas of two are half as many that work at the same time. So their gradients
# are younger, and they make fewer updates. What splitting buys is *room*: a card keeps one layer.
#
# A run of split replicas is a run of whole ones, *event for event*, provided that gradients come in the same order.
# They do here, since messages take no time and a replica's layers take as long on two cards as on one. With slower
# messages the order may differ. The run is then another asynchronous run, as valid as the first.
#
# In minidl it is `ParameterServer(replica=Hybrid(pp=2))`.

# %% source_hidden=true
assert np.abs(vectors[1] - two.results[-1][0]).max() < 1e-12
say(f"minidl's run from the same weights with the same minibatches has the same staleness in each update: "
    f"**{'yes' if ages_agree else 'no'}**. Its weights are ours, but for rounding, and those of its own whole replicas"
    f"{' to the bit' if (vectors[1] == vectors[0]).all() else ', but for rounding'}.")  # fmt: skip

# %% [markdown]
# What does a card send in a step? A card of a split replica pushes the gradient of its own layer only. To its partner
# it sends activations, or their gradient: $24 \times 32$ numbers for 24 samples.

# %% source_hidden=true
runs = {on: {cards: by_hand(cards, 2, on, epochs=1) for cards in (1, 2)} for on in ("processes", "simulation")}
steps = [len(y) for _, y, _ in minibatches(0, 2, epochs=1)]
expected = {(1, 0): total * len(steps), (2, 0): sum(n * HIDDEN + FIRST[0].size for n in steps),
            (2, 1): sum(n * HIDDEN + FIRST[1].size for n in steps)}  # fmt: skip
table(
    ["", "measured", "simulated", "formula"],
    [[name, *(f"{runs[on][key[0]].results[key[1]]:,}" for on in ("processes", "simulation")), f"{8 * expected[key]:,}"]
     for name, key in (("a whole replica", (1, 0)), ("the card of the first layer", (2, 0)),
                       ("the card of the last layer", (2, 1)))],
    f"bytes that the first replica sends in {len(steps)} minibatches, 8 for each number; measured: on processes",
)  # fmt: skip

# %% [markdown]
# ## Break it
#
# Waiting for all cards of a replica looks unnecessary. Let the server answer each card as soon as it has pushed:


# %%
def serve_at_once(comm, w, cards, pushes):
    """The same for replicas of two cards, each answered at once; returns w, and the versions each card has fetched."""
    layers, versions, fetched = np.split(w, [FIRST[0].size]), [0, 0], defaultdict(list)
    for _ in range(2 * pushes):
        gradient, card = comm.recv(cluster.ANY), comm.last_source
        layers[card % 2] = layers[card % 2] - LR * gradient
        versions[card % 2] += 1
        fetched[card].append(versions[card % 2])
        comm.send(layers[card % 2], card)
    return np.concatenate(layers), fetched


# %% [markdown]
# From now on the time that a layer takes varies at random, by up to half, from minibatch to minibatch.

# %%
guess_clue = guess("What gives the change away, after five epochs with ten seeds?",
                   CLUES := ["the loss", "an error or a deadlock", "the versions of the two layers"])  # fmt: skip

# %%
SEEDS = range(10)
varied = {(server, seed): by_hand(2, 2, server=server, epochs=5, seed=seed, jitter=0.5)
          for server in (serve, serve_at_once) for seed in SEEDS}  # fmt: skip


# %% source_hidden=true
def loss_of(w):
    scores = np.tanh(digits.x @ w[: 64 * HIDDEN].reshape(64, HIDDEN)) @ w[64 * HIDDEN :].reshape(HIDDEN, 10)
    return np.mean(np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(len(digits.y)), digits.y])


losses = {server: np.array([loss_of(varied[server, seed].results[-1][0]) for seed in SEEDS])
          for server in (serve, serve_at_once)}  # fmt: skip
mixed = [np.mean([one != other for replica in (0, 2) for one, other in zip(
    *(varied[serve_at_once, seed].results[-1][1][replica + layer][:-1] for layer in (0, 1)), strict=True)])
    for seed in SEEDS]  # fmt: skip
more = losses[serve_at_once] - losses[serve]
is_seen = abs(more.mean()) > 2 * more.std(ddof=1) / len(SEEDS) ** 0.5
assert not is_seen  # as the text below says
clue = CLUES[2]
table(
    ["the server answers", "training loss", "minibatches with layers of two versions"],
    [["when the replica has pushed", f"{losses[serve].mean():.5f} ± {losses[serve].std(ddof=1):.5f}", "none"],
     ["each card at once", f"{losses[serve_at_once].mean():.5f} ± {losses[serve_at_once].std(ddof=1):.5f}",
      f"{np.mean(mixed):.0%} ({min(mixed):.0%} to {max(mixed):.0%})"]],
    f"simulated; mean and standard deviation of {len(SEEDS)} seeds; your guess: {guess_clue.against(clue)}",
)  # fmt: skip
say(f"With the same seed the loss differs by {more.mean():+.5f} ± {more.std(ddof=1) / len(SEEDS) ** 0.5:.5f} (mean and "
    "its standard error).")  # fmt: skip

# %% [markdown]
# Nothing fails, and the loss does not tell. A replica computes with a mixture of two versions that the network as a
# whole never had. No run of whole replicas is equal to that, so no test against one can pass. That is the price: you
# can no longer tell a mistake from the method. DistBelief itself pays it, since its server consists of many independent
# shards. Its authors write that they have little theory for it, and that it works well in practice.
#
# ## All pairs
#
# [minidl's page of pairs](../minidl/which_go_together.md) shows for every pair of minidl's ways to share work whether a
# tiny job can use both: kinds of pipelines, of tensor parallelism, of servers, ZeRO, 16 bits, compression, and more.

# %% source_hidden=true
PAGE = (Path(minidl.__file__).parent / "which_go_together.md").read_text(encoding="utf-8")
WAYS = re.findall(r"^\| \d+ \| `(.+?)` \|", PAGE, re.MULTILINE)
CELLS = {
    (row, column): cell.strip()
    for row, line in enumerate(re.findall(r"^\| \d+ \| `.+?` \|(.*)\|$", PAGE, re.MULTILINE))
    for column, cell in enumerate(line.split("|"))
    if cell.strip()
}
SAID = dict(re.findall(r"^- \*\*(\w+)\*\* (.+)$", PAGE, re.MULTILINE))
say(f"It has {len(WAYS)} ways, and {len(CELLS)} pairs that are not two values of one setting.")

# %%
guess_share = guess("Which share of the pairs go together?", unit="%")

# %% source_hidden=true
yes = sum(cell == "yes" for cell in CELLS.values())


def matrix(axes):
    from matplotlib.patches import Rectangle

    for (row, column), cell in CELLS.items():
        colour = style.SERIES[5] if cell == "yes" else style.SERIES[1]
        axes.add_patch(Rectangle((column, row), 1, 1, facecolor=colour, edgecolor="white"))
        axes.text(column + 0.5, row + 0.53, "" if cell == "yes" else cell, ha="center", va="center", fontsize=8)
    axes.set(xlim=(0, len(WAYS) - 1), ylim=(len(WAYS), 1), yticks=np.arange(1, len(WAYS)) + 0.5,
             xticks=np.arange(len(WAYS) - 1) + 0.5)  # fmt: skip
    names = [way.replace("synchronous:compressor=ef(top_k(0.1))", "compressor=top_k") for way in WAYS]
    names = [way.replace("sharded:stage=2,offload=offload(optimizer)", "shard=2,offload") for way in names]
    axes.set_yticklabels([f"{name}  {row}" for row, name in enumerate(names[1:], start=2)], fontsize=8)
    axes.set_xticklabels(range(1, len(WAYS)), fontsize=8)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


with style.applied():
    figure, [axes] = style.new_figure(7.5, 5.2)
    matrix(axes)
    axes.set_xlabel(f"1 is {WAYS[0]}; the others are the numbers of the rows")
    style.label_source(figure, "simulated", "a tiny job for each pair")
see(figure, "light blue: the two ways go together. Vermilion: they are refused, and the letter is the reason on "
            "minidl's page. White: two values of one setting.")  # fmt: skip
say(f"{yes} of {len(CELLS)} pairs go together, **{yes / len(CELLS):.0%}** (your guess: "
    f"{guess_share.against(round(100 * yes / len(CELLS)))}).")  # fmt: skip

# %% [markdown]
# Why not the others?


# %%
def refusal(make, **settings):
    """The sentence that refuses the strategy which `make` makes, on four cards."""
    small = parallel.Job(nn.models.LeNet, data.digits, optim.Adam, epochs=1, **settings)
    try:
        parallel.train(small, make(), 4, "simulation")
    except ValueError as error:
        return str(error)
    return "goes together"


asked = [refusal(lambda: parallel.Hybrid(pp=2, schedule="pipedream"), precision="float16"),
         refusal(lambda: parallel.ParameterServer(replica=parallel.Hybrid(pp=2, shard=1))),
         refusal(lambda: parallel.Hybrid(tp=2, sequence=True, sample_slices=True))]  # fmt: skip

# %% source_hidden=true
say("\n".join(f"{number}. *{sentence}*" for number, sentence in enumerate(asked, start=1)))

# %% [markdown]
# Each is a contradiction:
#
# 1. float16 scales the loss, and if a gradient overflows, *all* stages skip the update together. In PipeDream
#    each stage updates at a moment of its own. There is no moment at which all could decide.
# 2. Stage 1 of ZeRO gives each replica a range of the optimizer's state. A server has all of that state itself. Only
#    one of them can own it.
# 3. Both settings say what tp divides between the sharded layers: the positions of a text, or the samples. An axis
#    divides one thing.
#
# So a way of sharing is an answer to one or two questions. Ways contradict each other if they answer the same one:
#
# | question | answers |
# |---|---|
# | Who computes which samples? | data parallelism |
# | Who computes which layers? | pipelines |
# | Who computes which part of a layer? | tensor parallelism |
# | What is divided between the divided layers? | positions, samples or pixels |
# | Who keeps the optimizer's state? | ZeRO, offload; servers, averaging |
# | When does a weight change? | servers, averaging, PipeDream; float16, which skips updates |
# | Which numbers are kept, and which sent? | 16 bits, compression |
#
# Recomputation, experts and elastic runs each have a question of their own. How well does this rule describe the table?

# %% source_hidden=true
QUESTIONS = {
    "dp=": "samples", "schedule=pipedream": "layers when", "pp=": "layers", "schedule=": "layers", "tp=": "part",
    "sequence=": "between", "sample_slices=": "between", "spatial=": "between", "ep=": "experts", "shard=": "state",
    "sharded:": "state", "recompute=": "activations", "bfloat16": "numbers", "float16": "numbers when",
    "synchronous:compressor": "numbers", "--elastic": "nodes",
}  # fmt: skip
answered = [next((asks for start, asks in QUESTIONS.items() if way.startswith(start)), "state when") for way in WAYS]
shares_one = {pair: bool({*answered[pair[0]].split()} & {*answered[pair[1]].split()}) for pair in CELLS}
together = {is_shared: [CELLS[pair] == "yes" for pair in CELLS if shares_one[pair] is is_shared]
            for is_shared in (False, True)}  # fmt: skip
table(
    ["the two ways answer", "pairs", "go together"],
    [[name, len(found), f"**{np.mean(found):.0%}**"]
     for name, found in (("different questions", together[False]), ("a common question", together[True]))],
    "our reading of the settings, made with the table at hand: a description, no test",
)  # fmt: skip
unexplained = Counter(cell for pair, cell in CELLS.items() if cell != "yes" and not shares_one[pair])
[(letter, often)] = unexplained.most_common(1)
say(f"{sum(unexplained.values())} pairs are refused although their questions differ. The most common reason, in "
    f"{often} of them, is **{letter}**: *{SAID[letter].split(': give')[0]}*.")  # fmt: skip

# %% [markdown]
# That reason is no contradiction. The gradients of a pipeline's replicas could be compressed, too. In minidl,
# `Synchronous` and `Hybrid` are two programs, and only one of them compresses. When a system refuses something, ask
# which it is: a contradiction, or a program that is not written.
#
# ## A whole step on 1,024 cards
#
# dp, pp and tp answer three questions, and together they can use all cards: as a mesh ([10b](10b_groups.ipynb)). A
# server has 8 cards, each with a fast link to the others. To other servers it has one slower link, which its cards
# share. Ranks are numbered along the *innermost* axis first, so that neighbours along it are in one server. Thus the
# *order* of the axes decides which of them have the fast links.
# `parallel.simulated_step` simulates a whole step from shapes alone. It plays one rank for all ranks that do the same.

# %% source_hidden=true
SPEED, LINK, UPLINK, START = 1.9e14, 3e11, 2e11, 5e-6
NAMES = ("dp", "pp", "tp")
ORDERS = list(permutations(NAMES))
say(f"We assume that a card computes {SPEED / 1e12:.0f} TFLOP/s, sends {LINK / 1e9:.0f} GB/s to cards of its server, "
    f"that a server sends {UPLINK / 1e9:.0f} GB/s to others, and that a message has a latency of {START * 1e6:g} µs. "
    f"All blocks are computed again in backward. A step has {BATCH:,} texts of {POSITIONS:,} positions.")  # fmt: skip


def gpt(layers, width, heads, samples):
    tokens = np.broadcast_to(np.zeros((1, POSITIONS), np.int64), (samples, POSITIONS))
    texts = data.Dataset(tokens, tokens)
    shape = {"vocab_size": WORDS, "block_size": POSITIONS, "n_layer": layers, "n_head": heads, "n_embd": width}
    return parallel.Job(partial(nn.models.GPT, **shape), data.Splits(texts, texts), optim.AdamW, batch_size=samples,
                        precision="bfloat16")  # fmt: skip


# %%
@cache
def simulated(dp, pp, tp, order=NAMES, samples=8, gpt_of=(LAYERS, WIDTH, HEADS, BATCH)):
    """A step; samples: of a micro-batch."""
    cards = dp * pp * tp
    servers = cluster.Network.tree(cards // SERVER, SERVER, nic=(START, LINK), uplink=(0, UPLINK))
    plan = parallel.Hybrid(dp=dp, pp=pp, tp=tp, axes=order, micro_batches=max(gpt_of[-1] // dp // samples, 1),
                           recompute="full", overlap=False, bucket_mb=1e4)  # fmt: skip
    return parallel.simulated_step(gpt(*gpt_of), plan, cards, cluster.Simulation(servers, cluster.Node(SPEED, np.inf)))


# %%
guess_slower = guess("8 x 16 x 8 (dp, pp, tp), all six orders: how many times as long as in the fastest order does a "
                     "step take in the slowest?", unit="times")  # fmt: skip

# %%
MESH = (8, 16, 8)
steps = {order: simulated(*MESH, order) for order in bar(ORDERS, "simulating")}


# %% [markdown]
# Can we compute it? Assume that all sums run as rings, and that a ring is as fast as its slowest link. Cards of a
# server share its link to others if they send at the same time. Cards of one stage do. Cards of different stages do
# only if both happen to send. Along tp each block sums six times: twice in forward, twice when it is computed again,
# and twice in backward ([10a](10a_dividing_a_layer.ipynb)). minidl adds 16-bit numbers in 4 bytes there.


# %%
def rate(axis, sizes, order, busy=1.0, uplink=UPLINK):
    """Bytes a second of a card along an axis; busy: share of its time in which another stage sends, too."""
    inside = order[order.index(axis) + 1 :]
    if prod(sizes[other] for other in inside) * sizes[axis] <= SERVER:
        return LINK
    room, sharing, stages = SERVER, 1, 1
    for other in reversed(inside):
        here = min(sizes[other], room)  # cards of a server along this axis
        room //= here
        sharing, stages = (sharing, here) if other == "pp" else (sharing * here, stages)
    return min(LINK, uplink / sharing / (1 + (stages - 1) * busy))


def parts(dp, pp, tp, order=NAMES, samples=8, uplink=UPLINK):
    """The seconds of a step, by what they are for."""
    sizes, count = {"dp": dp, "pp": pp, "tp": tp}, BATCH // dp // samples
    block = 24 * WIDTH**2 + 4 * POSITIONS * WIDTH  # operations of forward for each position
    once = samples * POSITIONS / tp / SPEED  # forward; backward takes twice as long, and blocks go forward once more
    compute, head, busy = 4 * once * block * LAYERS / pp, 3 * once * 2 * WIDTH * WORDS, 1.0

    def ring(nbytes, axis, busy=1.0):
        return 2 * (sizes[axis] - 1) * (START + nbytes / sizes[axis] / rate(axis, sizes, order, busy, uplink))

    for _ in range(50):  # the sums along tp take longer if other stages are busy with theirs
        sums = 6 * LAYERS / pp * ring(4 * samples * POSITIONS * WIDTH, "tp", busy)
        busy = sums / (sums + compute) * count / (count + pp - 1)
    hand_over = START + 2 * samples * POSITIONS * WIDTH / rate("pp", sizes, order, uplink=uplink)
    return {"compute": count * (compute + head / pp), "tp": count * sums, "pp": 2 * (pp - 1) * hand_over,
            "dp": ring(2 * WEIGHTS / pp / tp, "dp"),
            "bubble": (pp - 1) * (compute + sums) + count * head * (1 - 1 / pp)}  # fmt: skip


# %% source_hidden=true
computed = {order: parts(*MESH, order) for order in ORDERS}
rows = []
for order in sorted(ORDERS, key=lambda order: steps[order].seconds):
    done, formula = steps[order].activities, computed[order]
    rows.append([", ".join(order), *(f"{done[axis]:.1f} ({formula[axis]:.1f})" for axis in ("tp", "pp", "dp")),
                 f"{done['bubble']:.1f} ({formula['bubble']:.1f})",
                 f"**{steps[order].seconds:.1f}** ({sum(formula.values()):.1f})"])  # fmt: skip
times = [step.seconds for step in steps.values()]
table(
    ["order, the innermost last", "tp", "pp", "dp", "bubble", "a step"],
    rows,
    f"seconds, the mean of all cards, simulated (formula); computing takes "
    f"{steps[NAMES].activities['forward'] + steps[NAMES].activities['backward']:.1f} s in every order; your guess: "
    f"{guess_slower.against(max(times) / min(times))}",
)
off = {order: sum(computed[order].values()) / steps[order].seconds - 1 for order in ORDERS}
worst = max(abs(computed[order]["tp"] / steps[order].activities["tp"] - 1) for order in ORDERS if order[-1] == "pp")
say(f"The slowest order takes **{max(times) / min(times):.1f}** times as long as the fastest, with the same bytes and "
    f"the same weights. The formula is off by at most {max(map(abs, off.values())):.0%}, and by at most "
    f"{max(abs(off[order]) for order in ORDERS if order[-1] != 'pp'):.1%} in the orders whose innermost axis is "
    f"not pp. With pp innermost it is off by {worst:.0%} for tp alone: how often stages send at the same time is an "
    f"estimate.")  # fmt: skip

# %% [markdown]
# The innermost axis decides: it has the fast links. tp sends most by far, and nothing can be computed meanwhile. If it
# crosses servers, it slows down every stage, and the bubble, in which the other stages wait, grows with it. If pp is
# innermost, the cards of a server are of different stages and seldom send at the same time. (To a card that
# waits, messages between other stages are a bubble in the simulation; the formula calls them pp.)
#
# ### Which mesh, in which order?

# %% source_hidden=true
EXTENTS = [2**e for e in range(11)]
SIZES = [(dp, pp, CARDS // dp // pp) for dp in EXTENTS for pp in EXTENTS if CARDS % (dp * pp) == 0]
SIZES = [(dp, pp, tp) for dp, pp, tp in SIZES if LAYERS % pp == 0 and HEADS % tp == 0]


def gigabytes(dp, pp, tp, samples):
    """On the first stage: state, inputs of blocks for all micro-batches in flight, inside of one (arXiv:2205.05198)."""
    position = samples * POSITIONS * WIDTH
    in_flight = min(pp, BATCH // dp // samples)
    inside = position * (10 + (24 + 5 * HEADS * POSITIONS / WIDTH) / tp)
    return (16 * WEIGHTS / pp / tp + 2 * position * LAYERS / pp * in_flight + inside) / 1e9


candidates = [(*size, order, samples) for size in SIZES for order in ORDERS for samples in (1, 2, 4, 8, 16)
              if BATCH % (size[0] * samples) == 0]  # fmt: skip
fitting = [plan for plan in candidates if gigabytes(*plan[:3], plan[4]) <= CARD / 1e9]
distinct = {}  # orders that give the same time are shown once
for plan in sorted(fitting, key=lambda plan: (round(sum(parts(*plan).values()), 6), ORDERS.index(plan[3]))):
    distinct.setdefault((*plan[:3], plan[4], round(sum(parts(*plan).values()), 6)), plan)
ranked = list(distinct.values())
best = ranked[0]
seconds = {plan: sum(parts(*plan).values()) for plan in ranked}
table(
    ["place", "dp x pp x tp", "order", "micro-batch", "GB", "a step"],
    [[place + 1 if place >= 0 else "last", " x ".join(map(str, ranked[place][:3])), ", ".join(ranked[place][3]),
      ranked[place][4], f"{gigabytes(*ranked[place][:3], ranked[place][4]):.0f}", f"{seconds[ranked[place]]:.1f} s"]
     for place in (*range(6), -1)],
    f"formula: {len(candidates):,} plans for {CARDS:,} cards (powers of two that divide blocks and heads, all "
    f"orders, micro-batches of 1 to 16 texts), of which {len(fitting):,} fit; orders with the same time are one row",
)  # fmt: skip
confirmed = simulated(*best).seconds
margin = max(map(abs, off.values()))
near = sum(second <= (1 + margin) * seconds[best] for second in seconds.values())
say(f"The first {near} rows lie within {margin:.0%}, by which the formula was off above: we cannot tell which of them "
    f"is fastest. tp is innermost in {sum(plan[3][-1] == 'tp' for plan in ranked[:near])} of them. Simulated, the "
    f"first plan takes {confirmed:.1f} s (formula: {seconds[best]:.1f} s). GPT-3 reads 300 billion tokens in "
    f"training: this takes {300e9 / BATCH / POSITIONS * seconds[best] / 86400:.0f} days, at "
    f"{SPEED / 1e12 * parts(*best)['compute'] / seconds[best]:.0f} TFLOP/s a card, waiting included.")  # fmt: skip

# %% [markdown]
# The ranking covers all these meshes and orders, but one model, one kind of server, the schedule 1F1B
# and cards that compute small products as fast as large ones. Therefore the smallest micro-batches win here. Try other
# clusters:


# %% source_hidden=true
def by_part(axes, cards, pp_x_tp, uplink_GB_a_second):
    pp, tp = map(int, pp_x_tp.split(" x "))
    colours = {**style.axis_colours(NAMES), "bubble": style.ACTIVITY["wait"]}
    rows = [", ".join(order) for order in ORDERS]
    found, left = (
        [parts(cards // pp // tp, pp, tp, order, 4, 1e9 * uplink_GB_a_second) for order in ORDERS],
        np.zeros(6),
    )
    for part in ("compute", "tp", "pp", "dp", "bubble"):
        widths = np.array([each[part] for each in found])
        axes.barh(rows, widths, left=left, color=colours[part], label=part, **style.BORDER)
        left += widths
    for row, total in enumerate(left):
        axes.text(total * 1.02, row, f"{total:.0f}", va="center", fontsize=8)
    axes.set(xlabel="seconds of a step", xlim=(0, 1.6 * left.max()), ylim=(5.5, -0.5))
    axes.legend(fontsize=7, loc="upper right")


explore(
    by_part,
    "a bar for each order of the axes, the innermost last, with the parts of a step of GPT-3 in micro-batches of four "
    "texts. If tp is not innermost, vermilion and the grey bubble grow. With a slower uplink they grow even more, but "
    "the orders with tp innermost hardly change. If tp is larger than a server, no order keeps it inside.",
    cards=[1024, 128, 256, 512],
    pp_x_tp=["8 x 8", "16 x 8", "16 x 4", "4 x 16", "2 x 32"],
    uplink_GB_a_second=[200, 25, 50, 100, 400],
    multiples=[{}, {"uplink_GB_a_second": 25}, {"pp_x_tp": "4 x 16"}, {"cards": 128}],
    height=2.6,
    shared=False,
    source="formula",
)

# %% [markdown]
# ## What the papers report
#
# **Narayanan et al. (2021)** (arXiv:2104.04473, table 1) let the model grow with the cards, *weak scaling*. Cards are
# A100 in servers of eight, and tp is innermost. We simulate their rows of up to 1,024 cards:

# %% source_hidden=true
ROWS = [(1.7, 2304, 24, 24, 1, 1, 32, 512, 16, 3.53), (3.6, 3072, 30, 32, 2, 1, 64, 512, 16, 3.70),
        (7.5, 4096, 36, 32, 4, 1, 128, 512, 16, 3.70), (18.4, 6144, 40, 48, 8, 1, 256, 1024, 8, 9.40),
        (39.1, 8192, 48, 64, 8, 2, 512, 1536, 4, 14.45), (76.1, 10240, 60, 80, 8, 4, 1024, 1792, 2, 16.06)]  # fmt: skip
rows, rates = [], []
for billions, width, layers, heads, tp, pp, cards, samples, micro, published in bar(ROWS, "simulating"):
    dp = cards // tp // pp
    step = simulated(dp, pp, tp, NAMES, micro, (layers, width, heads, samples))
    sending = sum(step.activities[axis] for axis in NAMES)
    rates.append(SPEED * (step.seconds - sending) / (published - sending) / 1e12)
    rows.append([f"{billions:g}", cards, f"{dp} x {pp} x {tp}", f"{published:.2f}", f"{step.seconds:.2f}",
                 f"{step.seconds / published - 1:+.0%}", f"{rates[-1]:.0f}"])  # fmt: skip
table(
    ["billion weights", "cards", "dp x pp x tp", "published, s", "simulated, s", "difference", "TFLOP/s needed"],
    rows,
    "seconds of a step; published: computed from the published TFLOP/s; micro-batches as a public note gives them; "
    "the last column: how fast a card would have to compute for the published time",
)

# %% [markdown]
# The simulation is too fast for small models. Its cards compute all products equally fast. The last column says how
# fast real ones must have been, if the messages are right: the wider the model, the faster. (minidl sends 4 bytes for a
# number along tp, their program 2, so the messages are not quite right either.) We took our assumption of 190 TFLOP/s
# from the wide models in this column. So the last rows *confirm* nothing, they only fit. What the table does show is
# that one number cannot fit all rows. For GPT-3 on 1,024 cards they estimate 34 days, at 140 TFLOP/s a card, waiting
# included.
#
# **Dean et al. (2012)** report for splitting one replica that a fully connected network of 42 million weights becomes
# 2.2 times as fast on 8 machines, and slower on more. A locally connected one of 1.7 billion becomes more than 12 times
# as fast on 81 machines. With few messages between its parts, a network can be split further.
#
# ## The answer
#
# Ways go together if they answer different questions: which samples, which layers, which part of a layer, who keeps the
# state, when weights change. Two ways that answer the same question contradict each other. Other refusals often say
# that a program is not written.
#
# Replicas of stages around a server train as whole replicas do, if a server makes one update of a replica's pushes.
# Meshes reach 1,024 cards. There the order of axes decides: tp, which sends most, belongs within a server.
#
# ## To the exercises
#
# [Exercises of chapter 14](../exercises/14_putting_it_together/14_putting_it_together.ipynb): after this page you can
# write `step_time`, whose links are simpler than ours.
#
# **Three questions to argue about**
#
# 1. Local SGD averages weights every few steps. Could each of its nodes be a pipeline of stages? Which question would
#    then have two answers?
# 2. Your servers have 4 cards instead of 8, and the uplink is as fast as the links inside. What changes in the ranking?
# 3. PipeDream goes together with tensor parallelism, but not with a server. PipeDream and a server both change weights
#    at several moments. Why is that one too many?
#
# Next: [14c. Which plan is best for my model on my cluster?](14c_the_planner.ipynb)
