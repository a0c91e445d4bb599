# %% [markdown]
# # Not fooling the masses: exercises
#
# The lecture is [16a](../../notebooks/16a_twelve_ways.ipynb): twelve ways to fool the masses. In this notebook you
# judge reports: first by a program, then by reading.
#
# **How it works.** Replace `raise NotImplementedError(...)` by your code. Run the cell, then the check below it, as
# often as you like. A check says what it called, what it expected and what it got, and gives points for parts.
# `check.hint("find_trick")` prints a hint; the same call again prints the next one. Lists and dictionaries that a
# function is given stay as they are. For grading, the same checks are made with other numbers. There are 20 points in
# all.

# %% given="setup"
from math import isclose, sqrt
from statistics import mean, variance

from course.checks import not_fooling_the_masses as check

# %% [markdown]
# ## 1. Twenty reports (15 points)
# A report says that a method, "ours", is faster than another one, "baseline". It has a *claim*, as it stands in the
# abstract, and the *rows* of the table in the appendix: one for each run. Half of the reports are clean. In each of the
# others one trick is planted.
#
# You write the referee. A trick that is missed costs points, and a false alarm costs as many: for each of the ten
# tricks there is a report with it and a clean one that looks much like it, and you get 1.5 points if both are judged
# right.
#
# This is the shape of a report (here without any trick):

# %% given="report"
CLAIM = {"nodes": 4, "speedup": 1.5, "accuracy": 0.92, "scaling": "strong"}
COMMON = {"nodes": 4, "hardware": "A100", "precision": "float32", "batch_size": 96, "samples": 6000}
ROWS = [
    {**COMMON, "method": method, "seed": seed, "seconds": seconds, "samples_per_second": 6000 / seconds,
     "accuracy": accuracy, "training_accuracy": accuracy + 0.03}
    for method, seconds in (("baseline", 60.0), ("ours", 40.0))
    for seed, accuracy in ((0, 0.915), (2, 0.924), (5, 0.921))
]  # fmt: skip


# %% solution="find_trick"
def find_trick(claim, rows):
    """Return the name of the trick in a report, or "clean".

    claim: a dictionary. "nodes": the number of nodes that the claim is about. "speedup": the mean seconds of baseline
        divided by those of ours. "accuracy": of ours on these nodes. "scaling": "strong" or "weak".
    rows: a list of dictionaries, in any order, with the keys of ROWS above. "method" is "ours" or "baseline". Both may
        have rows on several numbers of nodes, with 2 seeds or more on each. "accuracy" is that on the test set.
        Seconds and accuracy of a run may be in two rows: then one has None for "accuracy" and "training_accuracy", the
        other one for "seconds" and "samples_per_second".

    The tricks, of which there is one at most:
        "hardware"      the hardware of ours is not that of baseline
        "options"       the precision of ours where it has seconds is not that where it has accuracies
        "training"      the claimed accuracy is the mean training accuracy of ours on the claimed nodes
        "best"          it is the highest test accuracy of ours on these nodes, where it should be the mean
        "left out"      ours has fewer seeds than baseline
        "worse"         on the claimed nodes the mean accuracy of ours is below that of baseline, by more than two
                        standard errors, sqrt(v / n + w / m) with variances v, w (n - 1) of n and m accuracies
        "minibatch"     the scaling is "strong", but on the claimed nodes ours has another minibatch than baseline
        "peak"          samples_per_second of a row of ours is more than 1.05 times samples / seconds
        "sizes"         baseline has numbers of nodes that ours has not
        "extrapolated"  ours has no rows on the claimed nodes

    Example: find_trick(CLAIM, ROWS) is "clean". With "accuracy": 0.924 in the claim it is "best", and with 0.95
        "training". Seeds 1, 3 and 4 are missing for both methods, so none was left out.
    """
    ### BEGIN SOLUTION
    ours, baseline = ([row for row in rows if row["method"] == name] for name in ("ours", "baseline"))

    def values(some, key):
        return {row[key] for row in some}

    if claim["nodes"] not in values(ours, "nodes"):
        return "extrapolated"
    if values(ours, "hardware") != values(baseline, "hardware"):
        return "hardware"
    fast, good = ([row for row in ours if row[key] is not None] for key in ("seconds", "accuracy"))
    if values(fast, "precision") != values(good, "precision"):
        return "options"
    if len(values(ours, "seed")) < len(values(baseline, "seed")):
        return "left out"
    if values(baseline, "nodes") - values(ours, "nodes"):
        return "sizes"
    if any(row["samples_per_second"] > 1.05 * row["samples"] / row["seconds"] for row in fast):
        return "peak"
    here, there = ([row for row in some if row["nodes"] == claim["nodes"]] for some in (good, baseline))
    if claim["scaling"] == "strong" and values(here, "batch_size") != values(there, "batch_size"):
        return "minibatch"
    mine, theirs = ([row["accuracy"] for row in some] for some in (here, there))
    if not isclose(claim["accuracy"], mean(mine), rel_tol=1e-6):
        return "best" if isclose(claim["accuracy"], max(mine), rel_tol=1e-6) else "training"
    error = sqrt(variance(mine) / len(mine) + variance(theirs) / len(theirs))
    return "worse" if mean(theirs) - mean(mine) > 2 * error else "clean"
    ### END SOLUTION


# %% test="find_trick" points=15
check.find_trick(find_trick)
### BEGIN HIDDEN TESTS
check.find_trick(find_trick, seeds=[71, 72, 73])
### END HIDDEN TESTS

# %% [markdown]
# ## 2. What no table shows (5 points)
# An abstract: "FastSum trains ResNet-50 on 64 GPUs. Its all-reduce is 3.1 times as fast as the vendor's. Training
# sustains 1.2 PFLOP/s, 94 % of it in convolutions on images of 1024 x 1024. With our schedule it reaches 76 % after 84
# minutes, where the baseline of 2016 took 29 hours." Name four ways in which this may fool its readers though each
# number is right, and for each the question that you would ask the authors. Which of your questions would be answered
# by a table with a row for each run, and which would not?

# %% [markdown] manual="referee" points=5
# Four of these, one point each with its question. Way 5: an all-reduce that is 3.1 times as fast is a kernel; how much
# faster is a training step? Way 9: the task has images of 224 x 224; what is the speed with these, and what do the
# large ones do for the accuracy? Way 7: is 1.2 PFLOP/s sustained over the whole training, input included, and how is
# an operation counted? Way 12 and way 4: the baseline is from 2016, on which hardware, how many GPUs; how fast is
# today's best one on these GPUs? Way 3: how many runs did it take to find the schedule, and was the baseline's tuned as
# long? Way 10: was 76 % the target beforehand; on the test set, after the last epoch? Seeds: how many of how many runs
# reached it, and with which spread?
#
# A table with a row for each run would show seeds, spread, hardware, accuracy and speed of one configuration, and the
# baseline's time. It would not show the tuning, what was not timed, and whether the inputs make sense (1 point).
