# %% [markdown]
# # 06f. Why does reinforcement learning still not wait?
#
# *Read [06d](06d_sync_or_async.ipynb) first. Reading time: about 12 minutes. Figures are* simulated *or come from a*
# formula.
#
# ## The question
#
# Large networks are trained in lockstep today. Reinforcement learning kept asynchrony: many *actors* play, and a
# *learner* applies each gradient when it comes. What is different there?
#
# A robot learns to walk from one corner of a 5 x 5 floor to the other. It knows nothing and walks at random; an
# *episode* ends at the goal, or after 100 steps. The fewest steps are 8. A step takes 10 ms.

# %% source_hidden=true
import numpy as np

from course.figures.page import say, see, table
from course.interaction import bar, explore, guess
from minidl import Tensor, cluster
from minidl import functional as F
from minidl.plots import style

SIDE, LIMIT, STEP_SECONDS, ACTORS = 5, 100, 0.01, 8
MOVES = ((0, 1), (1, 0), (0, -1), (-1, 0))
START = np.zeros((SIDE * SIDE, 5))  # for each square the scores of four moves, and the expected return


# %%
def walk(weights, rng):
    """An episode: a list of (square, move, probabilities of the moves)."""
    row, column, path = 0, 0, []
    while (row, column) != (SIDE - 1, SIDE - 1) and len(path) < LIMIT:
        square = SIDE * row + column
        chances = np.exp(weights[square, :4] - weights[square, :4].max())
        chances /= chances.sum()
        move = int((rng.random() > chances.cumsum()[:3]).sum())
        path.append((square, move, chances))
        row, column = (min(max(x + d, 0), SIDE - 1) for x, d in zip((row, column), MOVES[move], strict=True))
    return path


# %% source_hidden=true
lengths = np.array([len(walk(START, np.random.default_rng(seed))) for seed in range(1600)])
longest = lengths.reshape(-1, ACTORS).max(axis=1)
say(f"A random walk takes {lengths.mean():.0f} steps (standard deviation {lengths.std():.0f}), the longest of "
    f"{ACTORS} walks {longest.mean():.0f}. In lockstep the actors would play "
    f"**{100 * lengths.mean() / longest.mean():.0f} %** of the time, and wait for the rest.")  # fmt: skip

# %% [markdown]
# Minibatches take equally long; episodes do not. The straggler is in the data, and no better machine removes it.
#
# ## Build: a gradient from an episode
#
# A walk can be drawn, but not differentiated. *REINFORCE* (Williams 1992) needs no more: the gradient of the expected
# reward $\sum_a p(a) R(a)$ is $\sum_a p(a)\, R(a)\, \nabla \log p(a)$, the mean of $R(a)\, \nabla \log p(a)$
# over drawn actions $a$. So each drawn move becomes more likely by how much better it went than expected. With the
# *return* $-g$ for $g$ steps that remain to the goal, the expected return $v$ of the square, and the probability $p$ of
# the move, the loss of a step is $-(-g - v)\log p + \frac12 (v + g)^2$, where the first factor counts as a constant;
# the loss of an episode is the mean over its steps (REINFORCE has the sum; the mean keeps the updates of long episodes
# small). By hand, and by `minidl`:


# %%
def by_hand(weights, path):
    gradient = np.zeros_like(weights)
    for to_go, (square, move, chances) in enumerate(reversed(path), start=1):
        better = -to_go - weights[square, 4]  # than expected
        gradient[square, :4] += better * chances
        gradient[square, move] -= better
        gradient[square, 4] -= better
    return gradient / len(path)


def by_minidl(weights, path):
    squares, moves, _ = zip(*path, strict=True)
    w, steps = Tensor(weights.copy(), requires_grad=True), np.arange(len(path))
    returns = -np.arange(len(path), 0, -1.0)
    chosen, expected = w[list(squares)], weights[list(squares), 4]
    log_p = F.log_softmax(chosen[:, :4], -1)[steps, list(moves)]
    loss = (-log_p * Tensor(returns - expected)).mean() + ((chosen[:, 4] - Tensor(returns)) ** 2).mean() * 0.5
    loss.backward()
    return w.grad


# %% source_hidden=true
random = np.random.default_rng(1)
weights = random.normal(0, 0.3, START.shape)
path = walk(weights, random)
difference = np.abs(by_hand(weights, path) - by_minidl(weights, path)).max()
print(f"{len(path)} steps; largest difference of the two gradients: {difference:.0e}")

# %% [markdown]
# ## Lockstep, and actors with a learner


# %%
def lockstep(comm, lr, episodes):
    """All play one episode, average, step; (time, steps of the episode, staleness) for each episode."""
    weights, log = START.copy(), []
    for _ in range(episodes // comm.size):
        path = walk(weights, comm.rng)
        comm.compute(seconds=STEP_SECONDS * len(path), label="play")
        weights -= lr / comm.size * comm.all_reduce(by_hand(weights, path))
        log += [(comm.now(), steps, 0) for steps in comm.all_gather(len(path))]
    return log


def actors_and_learner(comm, lr, episodes):
    """The last rank learns from each episode as it comes."""
    learner = comm.size - 1
    if comm.rank != learner:
        weights = comm.sendrecv(None, learner, learner)
        while weights is not None:
            path = walk(weights, comm.rng)
            comm.compute(seconds=STEP_SECONDS * len(path), label="play")
            weights = comm.sendrecv((by_hand(weights, path), len(path)), learner, learner)
        return []
    weights, log, fetched, playing = START.copy(), [], {}, learner
    while playing:
        played, actor = comm.recv(cluster.ANY), comm.last_source
        if played is not None and len(log) < episodes:
            weights -= lr * played[0]
            log.append((comm.now(), played[1], len(log) - fetched[actor]))
        fetched[actor] = len(log)
        is_over = len(log) == episodes
        comm.send(None if is_over else weights, actor)
        playing -= is_over
    return log


def play(program, lr, actors=ACTORS, episodes=480, seed=0, trace="ledger"):
    ranks = actors + (program is actors_and_learner)
    return cluster.launch(program, (lr, episodes), ranks, cluster.Simulation("10gbe", trace=trace), seed=seed)


# %% source_hidden=true
def two_timelines():
    programs = {"lockstep": lockstep, "actors and learner": actors_and_learner}
    with style.applied():
        figure, places = style.new_figure(9, 4.2, heights=(1, 1), sharex=True)
        for axes, (name, program) in zip(places, programs.items(), strict=True):
            axes.barh(range(ACTORS), 3, height=0.7, color=style.ACTIVITY["wait"], **style.BORDER)
            for event in play(program, 0.4, episodes=64, trace="full").trace.events:
                if event.kind == "compute" and event.rank < ACTORS:
                    axes.barh(event.rank, event.end - event.start, left=event.start, height=0.7,
                              color=style.ACTIVITY["compute"], edgecolor="white", linewidth=1.0)  # fmt: skip
            axes.set(title=name, ylabel="actor", xlim=(0, 3), ylim=(ACTORS - 0.5, -0.5), yticks=range(ACTORS))
        places[1].set_xlabel("virtual time (s)")
        style.label_source(figure, "simulated", "learning rate 0.4; blue: an episode; grey: waiting")
    return figure


see(two_timelines(), "above, all actors wait for the longest episode of each round; below, none waits, and an actor "
    "with short episodes gives more gradients in the same time.")  # fmt: skip

# %% [markdown]
# ## Does staleness harm?
#
# One actor alone is never stale. Eight actors at the same learning rate $r$ make such updates about 7 updates late. The
# lockstep averages 8 gradients, so its fair learning rate is $8r$. Solved: the last 40 episodes took at most 10 steps
# on average. Five seeds of 480 episodes each.

# %%
guess_harm = guess("At r = 0.4, eight stale actors need how many times as many episodes as one actor?")

# %%
RATES, SEEDS, MANY = (0.2, 0.28, 0.4, 0.57, 0.8, 1.1, 1.6), range(5), 40
WAYS = {"one actor": (lockstep, 1, 1), "8 actors and learner": (actors_and_learner, ACTORS, 1),
        "lockstep of 8 at 8r": (lockstep, ACTORS, ACTORS)}  # fmt: skip


def solved(log):
    """Episodes and seconds until the task is solved."""
    means = np.convolve([steps for _, steps, _ in log], np.full(MANY, 1 / MANY), "valid")
    good = np.flatnonzero(means <= 10)
    return (good[0] + MANY, log[good[0] + MANY - 1][0]) if len(good) else (np.inf, np.inf)


# %% source_hidden=true
logs = {}
for way, lr in bar([(way, lr) for way in WAYS for lr in RATES], "playing"):
    program, actors, factor = WAYS[way]
    with np.errstate(all="ignore"):  # at the highest learning rate weights overflow: the table shows "not solved"
        logs[way, lr] = [next(filter(None, play(program, factor * lr, actors, seed=seed).results)) for seed in SEEDS]
outcome = {case: np.array([solved(log) for log in of]) for case, of in logs.items()}  # by seed: episodes, seconds


def cell(way, lr):
    episodes, seconds = outcome[way, lr].T
    if not np.isfinite(episodes).all():
        return f"not solved: {np.isinf(episodes).sum()} of {len(SEEDS)}"
    return f"{episodes.mean():.0f} ± {episodes.std(ddof=1):.0f}; {seconds.mean():.1f} s"


table(["r", *WAYS], [[lr, *(cell(way, lr) for way in WAYS)] for lr in RATES],
      f"simulated; episodes until solved, mean ± standard deviation over {len(SEEDS)} seeds; mean seconds")  # fmt: skip
stale = [age for log in logs["8 actors and learner", 0.4] for _, _, age in log]
alone, many = (outcome[way, 0.4][:, 0].mean() for way in list(WAYS)[:2])
say(f"At r = 0.4: {many / alone:.2f} times the episodes (your guess: {guess_harm.against(many / alone)}), with "
    f"gradients that are {np.mean(stale):.1f} updates old on average and {max(stale)} at most.")  # fmt: skip
learner, together = list(WAYS)[1:]
both = [lr for lr in RATES if np.isfinite(outcome[learner, lr]).all() and np.isfinite(outcome[together, lr]).all()]
ahead = [(outcome[learner, lr][:, 1] < outcome[together, lr][:, 1]).sum() for lr in both]
own = {way: min(both, key=lambda lr: outcome[way, lr][:, 1].mean()) for way in (learner, together)}
least = {way: outcome[way, lr][:, 1] for way, lr in own.items()}
say(f"In seconds the learner is ahead of the lockstep in {sum(ahead)} of {len(both) * len(SEEDS)} pairs of runs with "
    "the same seed and r (where both solve it). Each at its best r of the table: "
    + ", ".join(f"{way} {of.mean():.1f} s ({of.min():.1f} to {of.max():.1f})" for way, of in least.items())
    + ".")  # fmt: skip

# %% [markdown]
# Up to $r = 0.4$ staleness does no harm that five seeds can show. The gradient of a single episode is noisy; seven
# other updates probably change less. At $r = 0.8$ stale actors need more episodes than one actor, and at $r = 1.6$
# most of their runs fail, more than of the lockstep's: 06a's limit leads one to expect that. Between these, one run in
# five fails with eight actors, stale or not; five seeds do not say why.
#
# In seconds the learner gains because no actor waits for the longest walk. With equal $r$ it is ahead in most pairs of
# runs. With each at its best $r$ the gain is smaller and the ranges overlap: the faster all walks become short, the
# less there is to wait for.


# %% source_hidden=true
def reward(axes, r, against):
    for number, way in enumerate(WAYS):
        log = np.array(logs[way, r][0])
        x = log[:, 0] if against == "seconds" else np.arange(1, len(log) + 1)
        mean = np.convolve(log[:, 1], np.full(MANY, 1 / MANY), "valid")
        axes.plot(x[MANY - 1 :], -mean, style.DASHES[number], color=style.SERIES[number], label=way)
    axes.axhline(-8, color="0.4", linewidth=0.8, linestyle=(0, (1, 2)))
    axes.set(xlabel={"seconds": "virtual time (s)", "episodes": "episodes"}[against], ylim=(-80, 0),
             xlim=(0, {"seconds": 40, "episodes": 480}[against]),
             ylabel=f"reward (-steps),\nmean of {MANY} episodes")  # fmt: skip
    axes.legend(fontsize=7, loc="lower right")


explore(reward, "the mean reward of the last 40 episodes, seed 0; dotted: the best possible. Up to r = 0.4 the three "
        "curves are close against episodes, and against seconds eight actors rise long before one.",
        r=[0.4, 0.2, 0.28, 0.57, 0.8, 1.1, 1.6], against=["seconds", "episodes"],
        multiples=[{"against": "episodes"}, {"against": "seconds"}], shared=False, source="simulated")  # fmt: skip

# %% [markdown]
# ## Break it: look at what arrives first
#
# A colleague judges a policy by the first episodes that the actors return. Nothing is learned here (learning rate 0);
# the policy is the random walk of the beginning.

# %%
guess_first = guess(f"How long are the first {ACTORS} episodes that arrive, on average?", unit="steps")

# %% source_hidden=true
runs = [play(actors_and_learner, 0.0, episodes=ACTORS, seed=seed) for seed in range(40)]
first = [np.mean([steps for _, steps, _ in log]) for run in runs for log in run.results if log]
error = np.std(first, ddof=1) / np.sqrt(len(first))
say(f"Mean length of the first {ACTORS} arrivals: **{np.mean(first):.0f} ± {error:.0f}** steps; of the policy's "
    f"episodes: **{lengths.mean():.0f}** (simulated, {len(first)} runs, ± standard error). Your guess: "
    f"{guess_first.against(np.mean(first))}.")  # fmt: skip

# %% [markdown]
# Without a barrier short episodes arrive first, so the first arrivals look better than the policy is. A learner that
# drops gradients for being old drops the long episodes, and learns from a world that has none.
#
# ## What the papers report
#
# **Mnih et al. (2016)**, *Asynchronous methods for deep reinforcement learning* (arXiv:1602.01783), train with actors
# that update shared weights asynchronously, on one multi-core CPU. They report half the training time of the best
# results before, which needed a GPU. One of their reasons is not speed: actors in different places of the world make
# successive updates less alike. Our floor is too small to show that.
#
# ## To the exercises
#
# [Exercises of chapter 06](../exercises/06_asynchrony/06_asynchrony.ipynb): `choose(cluster)` decides by the spread of
# the computing times, as you would here.
#
# **Three questions to argue about**
#
# 1. Language models now learn from their own long answers, of very different lengths. Lockstep or learner?
# 2. The learner could weight each gradient by how likely today's policy finds the old moves. What would that mend?
# 3. Cut all episodes after 20 steps: the lockstep waits less. What is lost?
