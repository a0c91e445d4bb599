# %% [markdown]
# # 16a. When is faster really faster?
#
# *Read [05c](05c_scaling.ipynb) (speed-up, weak and strong scaling, learning per second) and
# [08f](08f_best_batch.ipynb) (the best minibatch) first. Reading time: about 24 minutes. Figures are*
# published, measured, simulated, *or come from a* formula.
#
# ## The question
#
# "Four nodes train three times as fast as one." Every number behind such a sentence can be right, and the sentence can
# still mislead. In 2018 T. Hoefler listed *twelve ways to fool the masses when reporting performance of deep learning
# workloads*, tongue in cheek. On this page we use all twelve, in our own words, on the same few runs: each is reported
# twice, once to impress and once to inform. Then a program looks for the tricks, and we ask how many seeds a winner
# needs.

# %%
from course.interaction import bar, explore, guess, warm_up

warm_up()

# %% source_hidden=true
import numpy as np
from threadpoolctl import threadpool_limits

from course.figures import scale
from course.figures.page import say, see, table
from minidl import cluster, data, kernels, manual_seed, nn, no_grad, optim, parallel
from minidl import functional as F
from minidl.parallel import spread
from minidl.parallel.planner.published import ROWS
from minidl.plots import style
from minidl.plots.style import time_text

one_thread = threadpool_limits(1)  # matrices as small as ours are not worth a second thread

# %% [markdown]
# The runs: an MLP on scanned digits, 8 epochs, 16 seeds for each method. The simulated nodes have 1 GFLOP/s each, their
# speed varies, and 1 Gbit/s Ethernet connects four of them.


# %%
def job(lr=0.4, batch_size=64, epochs=8):
    return parallel.Job(model=lambda: nn.models.MLP(64, 32, 10), data=data.digits, epochs=epochs, batch_size=batch_size,
                        optimizer=lambda weights: optim.SGD(weights, lr=lr))  # fmt: skip


METHODS = {"one node": (parallel.Serial(), job()), "synchronous": (parallel.Synchronous(), job()),
           "minibatch 512": (parallel.Synchronous(), job(batch_size=512)),
           "local SGD": (parallel.LocalSGD(period=23), job()),
           "local SGD, 4 epochs": (parallel.LocalSGD(period=23), job(epochs=4))}  # fmt: skip


def compared(methods, seeds, flops=1e9, target=0.95):
    node = cluster.Node(flops_per_s=flops, bytes_per_s=10 * flops, jitter=0.1)
    engine = cluster.Simulation(node=node, trace="ledger")
    return parallel.compare(job(), methods, 4, engine, ["1gbe"], seeds=seeds, target=target)


comparison = compared(METHODS, seeds=16)

# %% source_hidden=true
RUNS = {name: [run for run in comparison.runs if run.entrant.name == name] for name in METHODS}


def average(name, value):
    """The mean over the seeds of a method."""
    return np.mean([value(run) for run in RUNS[name]])


seconds = {name: average(name, lambda run: run.seconds) for name in METHODS}
accuracy = {name: average(name, lambda run: run.accuracy) for name in METHODS}
rate = {name: average(name, lambda run: run.history[-1]["samples"] / run.seconds) for name in METHODS}
speed_up = {name: seconds["one node"] / seconds[name] for name in METHODS}
HEAD = ["way", "to impress", "to inform"]

# %% [markdown]
# ## Which accuracy? Ways 1, 2, 8 and 10
#
# A speed without an accuracy is worth nothing: the fastest way to train is not to train. An accuracy counts if it is
# that of the runs whose speed is reported, on samples that they have not seen, at an epoch that was chosen beforehand.

# %% source_hidden=true
last = {name: RUNS[name][0].history[-1] for name in METHODS}
table(HEAD, [
    ["1. Ignore the accuracy when scaling", f"4 nodes, minibatch 512: {speed_up['minibatch 512']:.1f} times as fast",
     f"in as many epochs their accuracy is {accuracy['minibatch 512']:.0%}, not {accuracy['one node']:.0%}"],
    ["2. Report no test accuracy", f"local SGD: loss {average('local SGD', lambda run: run.history[-1]['loss']):.3f}",
     f"of training; the test loss is {average('local SGD', lambda run: run.history[-1]['test_loss']):.3f}"],
    ["8. Speed with option A, accuracy with option B",
     f"synchronous: {rate['minibatch 512']:,.0f} samples/s, accuracy {accuracy['synchronous']:.1%}",
     f"the speed is of minibatches of 512, the accuracy of 64, which have {rate['synchronous']:,.0f} samples/s"],
    ["10. Train for just the right time",
     f"one node: accuracy {max(run.best_accuracy for run in RUNS['one node']):.1%}",
     "of the luckiest seed at the epoch that its test set chose; mean after the last epoch: "
     f"{accuracy['one node']:.1%}"],
], f"simulated; means of {len(comparison.seeds)} seeds, unless the trick is another")  # fmt: skip

# %% [markdown]
# Way 8 is the hardest to see, since both numbers are there. It is caught by asking for *one* row that has both.
#
# ## Which time? Ways 3, 5, 6 and 7
#
# Now the accuracy is right, and the clock is stopped early. What belongs to the time: what was tried before the run,
# what happens between the kernels, what happens before the first sample, and what was achieved rather than what the
# data sheet promises. First, one node with six learning rates:

# %%
RATES = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2]
tuning = compared({f"{lr:g}": (parallel.Serial(), job(lr)) for lr in RATES}, seeds=8, target=0.94)
times = {float(each.name): each.time_to(0.94) for _, of_network in tuning.over_seeds() for each in of_network}
reached = {lr: time.value for lr, time in times.items() if time is not None}
best_rate = min(reached, key=reached.get)

# %% source_hidden=true
tuned = sum(run.seconds for run in tuning.runs)
busy = {name: average(name, lambda run: run.shares.compute * run.seconds) for name in METHODS}
DISK, epochs = 100e6, job().epochs  # bytes per second
train = data.digits().train
reading = epochs * train.x.nbytes / DISK
sustained = seconds["one node"] / seconds["synchronous"]  # in units of one node's speed
table(HEAD, [
    ["3. Leave out the runs for tuning", f"one node reaches 94 % in {time_text(reached[best_rate])}",
     f"with a learning rate of {best_rate:g}; to find it took {len(tuning.runs)} runs, {time_text(tuned)}"],
    ["5. Show a kernel, or a subset", f"4 nodes compute {seconds['one node'] / busy['synchronous']:.1f} times as fast",
     f"with the all-reduces the training is {speed_up['synchronous']:.1f} times as fast"],
    ["6. Ignore input and output", f"local SGD trains {epochs} epochs in {time_text(seconds['local SGD'])}",
     f"to read the samples in each epoch from a disk of 100 MB/s takes {time_text(reading)} more (formula)"],
    ["7. Report the peak", "the four nodes do 4 GFLOP/s",
     f"that is their peak; synchronous training sustains {sustained:.1f} GFLOP/s, counted by the time of one node"],
], f"simulated; means of {len(comparison.seeds)} seeds; way 3: medians of {len(tuning.seeds)}")  # fmt: skip

# %% [markdown]
# ## Compared with what? Ways 4, 9, 11 and 12
#
# A speed-up is a quotient, so there are two ways to make it large. The slower the baseline, the better the method.

# %%
guess_tuned = guess("Time to 94 %: how many times as fast are 4 nodes of local SGD as one node, if both are tuned?")

# %% source_hidden=true
fast = compared({"local SGD": METHODS["local SGD"]}, seeds=8, flops=4e9)
fast_seconds = np.mean([run.seconds for run in fast.runs])
local = compared({f"{lr:g}": (parallel.LocalSGD(period=23), job(lr)) for lr in RATES[2:]}, seeds=8, target=0.94)
local_times = [each.time_to(0.94) for _, of_network in local.over_seeds() for each in of_network]
best_local = min(time.value for time in local_times if time is not None)
slowest = max(reached, key=lambda lr: reached[lr] if np.isfinite(reached[lr]) else 0)
steps = {name: last[name]["steps"] for name in METHODS}
step = busy["synchronous"] / steps["synchronous"]
waits = seconds["synchronous"] / steps["synchronous"] - step
PIXELS = 64  # times as many
table(HEAD, [
    ["4. Compare with other hardware", f"local SGD on 4 nodes: {seconds['one node'] / fast_seconds:.1f} times as fast",
     f"these nodes have 4 GFLOP/s, the one had 1; on nodes like the one: {speed_up['local SGD']:.1f} times"],
    ["9. Train on unreasonably large inputs",
     f"synchronous on convolutions: {PIXELS * step / (PIXELS * step + waits):.0%} of the time computing (formula)",
     f"with {PIXELS} times the pixels that the task needs; with its own {step / (step + waits):.0%}. A convolution's "
     "operations grow with the pixels, its gradient does not"],
    ["11. Show weak scaling as strong", f"4 nodes: {rate['minibatch 512'] / rate['one node']:.1f} times the samples/s",
     f"with eight times the minibatch; with the same one: {rate['synchronous'] / rate['one node']:.1f} times"],
    ["12. Choose the state of the art with care",
     f"94 %: local SGD is {reached[slowest] / best_local:.1f} times as fast as one node",
     f"that had a learning rate of {slowest:g}; with its best one, {best_rate:g}: "
     f"{reached[best_rate] / best_local:.1f} times"],
], f"simulated; means of {len(comparison.seeds)} seeds, of the faster nodes {len(fast.seeds)}; way 12: medians of "
    f"{len(local.seeds)}")  # fmt: skip
say(f"Your guess: {guess_tuned.against(round(reached[best_rate] / best_local, 1))}.")

# %% [markdown]
# In way 12 the baseline's learning rate is not even bad. It is a default that nobody tuned, while local SGD got the
# best of four. The quotients are rough: an accuracy is known after each epoch, and the tuned ones take two or three.
# Hoefler and Belli (SC'15) ask in their first rule for the baseline's absolute time, and whether it is
# the best one there is.
#
# ## A program that looks for tricks
#
# Many of the ways leave a trace in the table of the runs. `parallel.report_card.problems(rows)` looks for them, and so
# does the command `minidl report-card` with a CSV file or a folder of `minidl compare`. Here is our own table, with a
# speed-up for each row:

# %%
rows = [row | {"speedup": seconds["one node"] / seconds[row["strategy"]]} for row in comparison.rows()]
for problem in parallel.report_card.problems(rows):
    print(problem)

# %% [markdown]
# It found way 1: minibatches of 512, and the runs of 4 epochs, are faster at a lower accuracy. Without these two the
# table is clean. Now we plant other ways in the clean table, each by changing the rows of local SGD:

# %% source_hidden=true
clean = [row for row in rows if row["strategy"] in ("one node", "synchronous", "local SGD")]
assert parallel.report_card.problems(clean) == []


def planted(change):
    """The first problem, without the method's name, after a change of local SGD's rows."""
    changed = [row | (change(row) if row["strategy"] == "local SGD" else {}) for row in clean]
    return parallel.report_card.problems(changed)[0].partition(": ")[2]


CHANGES = {
    "2. No test accuracy": lambda row: dict.fromkeys(("accuracy", "test_loss")),
    "4. Other hardware": lambda row: {"device": "4 GFLOP/s"},
    "7. A peak": lambda row: {"samples_per_second": 3 * row["samples"] / row["seconds"]},
    "10. The best epoch": lambda row: {"last_accuracy": row["accuracy"] - 0.004},
    "11. Weak scaling": lambda row: {"scaling": "strong", "batch_size": 256},
    "12. A slower baseline": lambda row: {"speedup": 3 * row["speedup"]},
    "Mean and best": lambda row: {"statistic": "best of 16 seeds"},
    "Extrapolation": lambda row: {"note": "extrapolated from 2 nodes"},
}
clean = [row | {"device": "1 GFLOP/s"} for row in clean]
table(["what was planted", "what the report card says first"],
      [[name, planted(change)] for name, change in CHANGES.items()], "simulated; one change for each line")  # fmt: skip

# %% [markdown]
# Ways 3, 5, 6 and 9 leave no trace: no table shows what was tried before, or not timed. For those you have to read
# the text, and ask. And a clean report card is no proof: somebody who knows its rules gets round them.
#
# ## Break it: how many seeds until the winner is right?
#
# The commonest trick is one that we play on ourselves. Two methods, three seeds each, and the better mean is printed in
# bold. Suppose that the true accuracy of one is 0.2 percentage points below that of the other.

# %%
guess_wrong = guess("3 seeds each: how often does the less accurate method win?", unit="%")

# %% source_hidden=true
POOLS = {name: np.array([run.accuracy for run in RUNS[name]]) for name in ("one node", "local SGD")}
SPREAD = 100 * POOLS["one node"].std(ddof=1)  # percentage points
COUNTS, CASES = (1, 2, 3, 5, 8, 13, 20, 30), 4000


def drawn(seeds, place, difference=0.0):
    """Accuracies of many experiments, in points from the better method's mean, normal with the measured spread."""
    return np.random.default_rng((seeds, place)).normal(-difference, SPREAD, (CASES, seeds))


def wrong(statistic, seeds, difference, candidates=1):
    """How often one of the worse candidates has a better statistic than the better method, in percent."""
    tried = [statistic(drawn(seeds, place, difference), axis=1) for place in range(1, candidates + 1)]
    return 100 * np.mean(np.max(tried, axis=0) > statistic(drawn(seeds, 0), axis=1))


by_mean = wrong(np.mean, 3, 0.2)
say(f"In **{by_mean:.0f} %** of {CASES:,} experiments (your guess: {guess_wrong.against(round(by_mean))}). The seeds "
    f"of one node have a standard deviation of {SPREAD:.2f} points, measured on our {len(comparison.seeds)} seeds; the "
    "experiments draw normal numbers with this deviation.")  # fmt: skip

# %% [markdown]
# Three things can be turned: how far the two are apart, how many seeds each has, and how many worse candidates are
# tried before the luckiest is reported.


# %% source_hidden=true
def winners(axes, difference, candidates):
    """How often a worse method wins, against the number of seeds."""
    for tone, (name, statistic) in enumerate({"mean of the seeds": np.mean, "best of the seeds": np.max}.items()):
        axes.plot(COUNTS, [wrong(statistic, seeds, difference, candidates) for seeds in COUNTS], label=name,
                  color=style.SERIES[tone], linestyle=style.DASHES[tone], marker="os"[tone], markersize=4)  # fmt: skip
    axes.axhline(5, color="0.4", linewidth=0.8, linestyle=":")
    axes.set(xlabel="seeds of each method", ylabel="a worse one wins (%)", ylim=(0, 100))
    axes.legend(fontsize=7)


explore(winners,
        "blue, the mean goes wrong less often with more seeds; the smaller the true difference (points), the more it "
        "takes to come below 5 % (dotted). Vermilion, the best seed is the poorer judge, however many there "
        "are. With ten candidates, all of them worse, the luckiest of them wins far more often.",
        difference=[0.2, 0.1, 0.4, 0.8], candidates=[1, 3, 10],
        multiples=[{}, {"difference": 0.4}, {"difference": 0.4, "candidates": 10}],
        source=("measured", "formula"))  # fmt: skip

# %% [markdown]
# So a report needs the spread. A *confidence interval* says between which values the true mean lies. The *bootstrap*
# (Efron) needs no formula for it: draw as many seeds as there are, with replacement, take their mean, do so 2,000
# times; the middle 95 % of these means is the interval. `minidl compare` prints it. With several seeds it marks
# the first at a target only if the interval of its time overlaps with no other.

# %%
intervals = {name: spread.estimate(spread.mean, pool) for name, pool in POOLS.items()}
few = {name: spread.estimate(spread.mean, pool[:3]) for name, pool in POOLS.items()}

# %% source_hidden=true
table(["test accuracy", "first 3 seeds", f"{len(comparison.seeds)} seeds"],
      [[name, *(f"{one.value:.2%} ({one.low:.2%} to {one.high:.2%})" for one in (few[name], intervals[name]))]
       for name in POOLS], "measured; mean and 95 % bootstrap interval, by percentiles")  # fmt: skip

# %% [markdown]
# With three seeds it lies within the lowest and the highest one, so it cannot be wide enough: three normal numbers have
# the true mean between them in three cases of four (they miss it if all are above, or all below: $2/2^3$). With five
# seeds the bootstrap's interval has it in 85 % of experiments with such numbers. An interval says how little you know;
# with few seeds it says too little of that, too.
#
# ## The time to a target that not everybody reaches
#
# Time to a target is the honest measure of speed: it has the accuracy built in. But what if a seed does not arrive? The
# mean of those that do is a prize for failing often. To a method that arrives with one seed of 16, early, by luck, it
# gives the best time of all. The *median* counts all: a run that was stopped on the way needs longer than it was
# trained (Kaplan and Meier, 1958, estimate it from such data).

# %% source_hidden=true
TARGETS = (0.94, 0.95, 0.96)
rows = []
for _, of_network in comparison.over_seeds():
    for each in of_network:
        for target in TARGETS:
            arrived, median = each.seconds_to(target), each.time_to(target)
            if arrived and each.name in POOLS:
                texts = [time_text(time) if np.isfinite(time) else "never yet" for time in median]
                rows.append([each.name, f"{target:.0%}", f"{len(arrived)} of {len(each.runs)}",
                             time_text(np.mean(arrived)), f"{texts[0]} ({texts[1]} to {texts[2]})"])  # fmt: skip
table(["method", "target", "arrived", "mean of those that arrived", "median of all (95 % interval)"], rows,
      "simulated; *never yet*: longer than the 8 epochs")  # fmt: skip

# %% [markdown]
# At the highest target the mean is that of the few that arrived. It is only 15 to 20 % above that at 95 %, since the
# runs that would make it large have dropped out. The median says how it is: most runs do not get there in 8 epochs. A
# target, too, can be chosen to please; so choose it before the runs.
#
# If no single target is right, show the whole trade: a point for each run, speed against accuracy, and the *Pareto
# front*, the methods that no other beats in both. `minidl compare` draws it as `trade_off.png`.

# %% source_hidden=true
comparison.title = "4 nodes, 1 Gbit/s Ethernet, 8 epochs unless stated"
see(comparison.draw_trade_off(), "each point is a seed. The line is the front of the means. Local SGD is on it for 4 "
    "and for 8 epochs: the one is faster, the other better. Synchronous training is at its right end, by less than the "
    "spread of its seeds: whether it belongs there, nobody knows.")  # fmt: skip

# %% [markdown]
# ## Learning per second, to the end
#
# Since 05c this course has measured one product, after Gonzalez:
#
# $$\frac{\text{learning}}{\text{second}} = \frac{\text{learning}}{\text{sample}} \times
# \frac{\text{samples}}{\text{second}}.$$
#
# Most of the twelve ways report one factor alone, or one factor of one run and the other of another. Here are both for
# our runs. Learning is the fall of the test loss from the first epoch to the third, where all still learn:

# %%
speeds = {name: [parallel.learning_speed.learning_speed(run.history, 0, 2, "test_loss") for run in RUNS[name]]
          for name in METHODS}  # fmt: skip

# %% source_hidden=true
table(["method", "learning/1,000 samples", "samples/s", "learning/s (95 % interval)"],
      [[name, f"{1000 * np.mean([one.learning_per_sample for one in of]):.3f}",
        f"{np.mean([one.samples_per_second for one in of]):,.0f}",
        "{:.1f} ({:.1f} to {:.1f})".format(*spread.estimate(spread.mean, [one.learning_per_second for one in of]))]
       for name, of in speeds.items()], f"simulated; means of {len(comparison.seeds)} seeds")  # fmt: skip

# %% [markdown]
# The two factors belong to two crafts. *Samples per second* was the business of chapters 03 to 05 and 09 to 14:
# kernels, collectives, overlap, compression, memory, pipelines. *Learning per sample* was that of 02 and 06 to 08:
# step sizes, stale gradients, averaging, large minibatches. Whoever reports one factor alone has done half of the work.

# %% [markdown]
# ## How large has it become?
#
# A speed means little without its scale. The slides of 2018 behind this course say: 150 GB of images with 1,000 labels,
# about 2 TB with 22,000; over 100 layers; 25 million to 10 billion parameters in 0.1 to 40 GiB; days to weeks. Some of
# these figures follow from others. A parameter takes 4 bytes. A training run takes $8\,T P/(n X)$ seconds for $T$
# tokens and $P$ parameters on $n$ processors of $X$ operations a second (Narayanan et al., 2021; with recomputation).

# %% source_hidden=true
rows = []
for year, name, P, processors, source in scale.models():
    size = f"{P / 1e6:,.1f} million" if P < 1e9 else f"{P / 1e9:,.1f} billion"
    processors = f"{processors:,}" if processors else ""
    rows.append([year, name, size, scale.memory(P), scale.memory(P, scale.STATE), processors, source])
table(["year", "model", "parameters", "4 bytes each", "16 bytes each", "processors", "source"], rows,
      "published or counted; memory: formula; 16 bytes: in training with Adam in mixed precision")  # fmt: skip
say(f"The slides' 10 billion parameters take {scale.memory(10e9)}. With {scale.TOKENS / 1e9:.0f} billion tokens and "
    f"{scale.RATE / 1e12:.0f} TFLOP/s a card, 175 billion parameters take **{scale.days(175e9, 1024):.0f} days** on "
    f"1,024 cards. With 450 billion tokens and 163 TFLOP/s, 1,008 billion take "
    f"**{scale.days(1008e9, 3072, 450e9, 163e12):.0f} days** on 3,072 (formula).")  # fmt: skip

# %%
guess_limit = guess("What sets the number of cards of most published runs?", ["memory", "time"])

# %% source_hidden=true
spare = sorted(row.arrangement.world * scale.CARD / (scale.STATE * row.model.parameters) for row in ROWS)
say(f"Time (your guess: {guess_limit.against('time')}). The published steps of 14c ran on {spare[0]:.1f} to "
    f"{spare[-1]:.0f} times the memory that 16 bytes a parameter need, half of them on over "
    f"{spare[len(spare) // 2]:.0f} times. A replica needs cards for its memory; a whole run needs many replicas to "
    "end within weeks.")  # fmt: skip
see(scale.picture(),
    "on the left, models by year: from AlexNet to a trillion parameters in nine years, a factor of over ten thousand. "
    "On the right, the published steps that 14c compares its planner with. On the solid line 16 bytes a parameter "
    "fill cards of 80 GB; only the squares, which are single replicas, are near it. Most whole runs lie around the "
    "dashed line, on which 300 billion tokens take 30 days.")  # fmt: skip

# %% [markdown]
# The same slides count 252 papers, from the survey of Ben-Nun and Hoefler (2019, *Demystifying parallel and distributed
# deep learning*): work moved from one machine to distributed memory, and to MPI. Their summary is that deep learning
# is high-performance computing, and that a view of performance alone can be harmful for accuracy.
#
# ## Faster by smaller images
#
# fast.ai (2018, blog) trained ResNet-50 on ImageNet to 93 % in 18 minutes for about 40 dollars, on 16 machines with 8
# GPUs each. One of their means needs no second machine: *progressive resizing*. The first epochs read small images,
# from `data.resized(splits, size)`. A network of convolutions that ends in the mean over all pixels takes any size.


# %%
letters = data.glyphs(1500, 1000)  # 28 x 28 pixels; the test set has fonts of its own


def block(inputs, outputs, stride):
    return nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()


def train(phases, seed=0):
    """Counted operations and test error; phases: a first size with its epochs, and a last one whose rate falls to 0."""
    manual_seed(seed)
    model = nn.Sequential(*block(1, 16, 2), *block(16, 32, 2), *block(32, 48, 1), nn.AdaptiveAvgPool2d(1),
                          nn.Flatten(), nn.Linear(48, 26))  # fmt: skip
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    with kernels.counted() as work:
        for is_last, (size, epochs) in enumerate(phases):
            loader = data.DataLoader(data.resized(letters, size).train, batch_size=32, seed=seed)
            for epoch in range(epochs):
                optimizer.param_groups[0]["lr"] = 0.05 * (1 - is_last * epoch / epochs)
                for x, y in loader:
                    optimizer.zero_grad()
                    F.cross_entropy(model(x), y).backward()
                    optimizer.step()
    model.eval()
    with no_grad():
        return work.flops, np.mean(model(letters.test.x).numpy().argmax(axis=1) != letters.test.y)


# %%
guess_small = guess("Twelve epochs; the first six at half the width. The operations, as a share?", unit="%")

# %% source_hidden=true
SIZES = {"28 x 28, 12 epochs": [(28, 6), (28, 6)], "6 epochs at 14 x 14, then 6 at 28 x 28": [(14, 6), (28, 6)],
         "28 x 28, 8 epochs": [(28, 2), (28, 6)]}  # fmt: skip
found = {name: train(phases) for name, phases in bar(SIZES.items(), "training on letters")}
(whole, _), (growing, _), _ = found.values()
table(["images", "operations / 10⁹", "of the first", "test error"],
      [[name, f"{flops / 1e9:.1f}", f"{flops / whole:.0%}", f"{error:.1%}"] for name, (flops, error) in found.items()],
      "measured; one seed; operations counted by minidl's kernels")  # fmt: skip
say(f"**{growing / whole:.0%}** (your guess: {guess_small.against(round(100 * growing / whole))}). The maps behind the "
    "second convolution have 4 x 4 pixels instead of 7 x 7, so a small image takes a third of the operations. The last "
    "row spends as many operations as the second, all on large images, and reads more letters wrongly.")  # fmt: skip

# %% [markdown]
# With three seeds: [`progressive_resizing.py`](../benchmarks/reproductions/progressive_resizing.py). What would way 8
# make of it? The speed of the second row, with the accuracy of the first.
#
# ## What the papers report
#
# - **Hoefler and Belli (SC'15)**, *Scientific benchmarking of parallel computing systems*: twelve rules for honest
#   reports; among them, state the baseline of a speed-up, and report whether and how results vary.
# - **Coleman et al. (2018)** (arXiv:1806.01427) look at DAWNBench, a competition in time to accuracy: the best entries
#   became about a hundred times as fast as the first ones, and the time to accuracy varied little between runs.
# - **Efron and Tibshirani (1993)**, *An introduction to the bootstrap*, chapter 13: intervals by percentiles, and why
#   better ones exist.
#
# ## To the exercises
#
# [Exercises of chapter 16](../exercises/16_not_fooling_the_masses/16_not_fooling_the_masses.ipynb): you write a report
# card, and judge twenty small reports with it. Half of them are clean.
#
# **Three questions to argue about**
#
# 1. A colleague tuned the new method for a week and the baseline for an hour. Which number would you ask for?
# 2. A method is 2 % faster, with p = 0.04, and twenty methods were tried. What do you believe?
# 3. Which of the twelve ways did this course use? (Begin with the networks: simulated.)
