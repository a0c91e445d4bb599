# %% [markdown]
# # Large minibatches: exercises
#
# The lectures: [08a](../../notebooks/08a_linear_scaling.ipynb), the linear scaling rule;
# [08b](../../notebooks/08b_warm_up.ipynb), warm-up; [08c](../../notebooks/08c_layer_rates.ipynb), LARS;
# [08d](../../notebooks/08d_steps_to_target.ipynb), noise scale and hyperbola; and
# [08f](../../notebooks/08f_best_batch.ipynb), the best minibatch for a network. In this notebook you write the learning
# rate of a large run, step by step. You measure how noisy a gradient is, at the price of one more number in an
# all-reduce. You write LARS, in place. And you find the minibatch that reaches the target first, on a cluster that you
# can only measure.
#
# **How it works.** Replace `raise NotImplementedError(...)` by your code. Run the cell, then the check below it, as
# often as you like. A check says what it called, what it expected and what it got, and gives points for parts.
# `check.hint("scheduled_rate")` prints a hint; the same call again prints the next one. Functions with an argument
# `comm` run on simulated ranks, in processes of their own. For grading, the same checks are made with other numbers.
# There are 20 points in all. The exercises can be done in any order.

# %% given="setup"
import numpy as np

from course.checks import large_minibatches as check

# %% [markdown]
# In this notebook B is the *minibatch*: the samples of one step, over all nodes together. p is the number of nodes, and
# n the number of weights. All arrays are float64. Your functions leave their arguments, and what they have returned
# before, unchanged, except in exercise 3.
#
# ## 1. The learning rate of a large run
# ### 1a. Scaled, warmed up, dropped (3 points)
# A small run has found a good rate for a small minibatch. A large run takes k times the minibatch, and by the *linear
# scaling rule* k times the rate. At the start that rate is too large. So a *warm-up* raises the rate step by step
# (Goyal et al., arXiv:1706.02677, section 2.2). Later the rate *drops*, at fixed epochs.


# %% solution="scheduled_rate"
def scheduled_rate(step, base_lr, base_batch, batch, samples, warm_up, drops):
    """Return the learning rate of one step of a run with large minibatches.

    step: number of the step, from 0 on.
    base_lr: the rate that suits minibatches of base_batch samples.
    batch: B, the samples of a step over all nodes. It is k times base_batch; k is from 1 on, and may be
        a fraction.
    samples: samples of an epoch. An epoch has ceil(samples / B) steps; the last one may have fewer
        samples, and counts like the others.
    warm_up: the length of the warm-up, in epochs: a whole number, 0 for none.
    drops: epochs at which the rate falls to a tenth, a list of whole numbers in ascending order, perhaps
        empty. They are counted from the beginning of the run, and lie after the warm-up.
    Returns: the rate, a number:
        - base_lr in the first step of the warm-up, and from step to step more by always the same amount, so
          that the first step after the warm-up has exactly k * base_lr;
        - from then on k * base_lr, times 0.1 for each drop whose epoch has begun. Epoch e begins with step
          e * ceil(samples / B).

    Example: base_lr 0.1 for base_batch 32, B = 128, 512 samples: an epoch has 4 steps. With warm_up = 1
        and drops = [2], the rates are 0.1, 0.175, 0.25, 0.325; then four times 0.4; then 0.04.
    """
    ### BEGIN SOLUTION
    steps_an_epoch = -(-samples // batch)
    k, warm_steps = batch / base_batch, warm_up * steps_an_epoch
    if step < warm_steps:
        return base_lr * (1 + (k - 1) * step / warm_steps)
    begun = sum(step >= epoch * steps_an_epoch for epoch in drops)
    return base_lr * k * 0.1**begun
    ### END SOLUTION


# %% test="scheduled_rate" points=3
check.scheduled_rate(scheduled_rate)
### BEGIN HIDDEN TESTS
check.scheduled_rate(
    scheduled_rate,
    plain=[(0.2, 16, 96, 960, 0, ()), (0.05, 64, 64, 640, 0, ()), (0.3, 20, 50, 400, 0, ())],
    warmed=[
        (0.3, 16, 80, 960, 3, ()),
        (0.07, 32, 320, 3200, 2, ()),
        (0.2, 24, 60, 480, 1, ()),
        (0.1, 16, 36, 900_000, 4, ()),
    ],
    dropped=[
        (0.2, 16, 96, 1000, 2, (4, 7)),
        (0.04, 32, 128, 900, 1, (2, 3, 9)),
        (0.3, 8, 56, 300, 0, (1, 5)),
        (3e-4, 8, 24, 15, 0, (2, 3, 5, 7, 80)),
    ],
)
### END HIDDEN TESTS

# %% [markdown]
# ### 1b. Momentum along the schedule (2 points)
# With the rate inside the velocity, $v \leftarrow m v + \eta g$, $w \leftarrow w - v$ (08b), a step whose rate differs
# from the one before needs a correction. Along this schedule that is nearly every step. Write the whole run. It must
# follow the path of the form with the rate outside:
#
# $$u \leftarrow m u + g, \qquad w \leftarrow w - \eta u ,$$
#
# with the gradient $g$, the rate $\eta$ and the momentum $m$.


# %% solution="corrected_run"
def corrected_run(w, gradient, rates, momentum):
    """Run SGD with momentum along a schedule, with the rate inside the velocity; return w, v.

    w: the initial weights, an array of n numbers. The velocity starts at zero.
    gradient: gradient(w, step) is the gradient of step number `step` at the weights w.
    rates: the rate of each step, all above 0; rates[0] is that of step 0. At least one.
    momentum: m, from 0 to below 1.
    Returns: (w, v) after the last step. The weights before each step and after the last one are those of
        the form with u above, up to rounding. v is the velocity of the last step, in 08b's sign: w before
        this step minus w after it.
    Cost: one gradient for each step, at the weights of that step, in order: 0, 1, 2, ...

    Example: w = [1.], gradients 2. and 3., rates [0.1, 0.2], momentum 0.5: u is 2., then 4.; so w is
        0.8, then 0.; and v = [0.8].
    """
    ### BEGIN SOLUTION
    v, lr_before = np.zeros_like(w), rates[0]
    for step, lr in enumerate(rates):
        v = momentum * (lr / lr_before) * v + lr * gradient(w, step)
        w = w - v
        lr_before = lr
    return w, v
    ### END SOLUTION


# %% test="corrected_run" points=2
check.corrected_run(corrected_run)
### BEGIN HIDDEN TESTS
check.corrected_run(
    corrected_run,
    constant=[(3, 7, 0.8), (1, 1, 0.5), (1, 4, 0.0), (1200, 4, 0.8)],
    rising=[(4, 6, 0.9), (2, 9, 0.6), (2, 250, 0.8)],
    falling=[(3, 8, 0.8), (1, 10, 0.9)],
    seed=21,
)
### END HIDDEN TESTS

# %% [markdown]
# ## 2. The gradient noise scale
# Let G be the gradient over all samples, and Sigma the covariance of the gradient of one sample. The mean gradient over
# B samples, drawn with replacement (08d), has
#
# $$\mathrm{E}\,|G_B|^2 = |G|^2 + \mathrm{tr}(\Sigma) / B .$$
#
# The *noise scale* $B_{\text{simple}} = \mathrm{tr}(\Sigma) / |G|^2$ says how large a minibatch pays (McCandlish et
# al., arXiv:1812.06162). Nobody knows $G$ and $\Sigma$ in a large run. But mean gradients over minibatches of two sizes
# give two equations for the two unknowns.
#
# ### 2a. From minibatches of two sizes (2 points)


# %% solution="gradient_noise_scale"
def gradient_noise_scale(small, large, b_small, b_large):
    """Estimate B_simple from many mean gradients over minibatches of two sizes.

    small: an array (draws, n): in each row the mean gradient over a minibatch of b_small samples.
    large: the same for b_large samples; the number of draws may be another one. Both have at least one.
    b_small, b_large: the sizes, b_small below b_large.
    Returns: a number: the estimate of tr(Sigma) divided by the estimate of |G|². Both estimates are
        means over all draws, from the equation above. So they are unbiased if the samples of a minibatch are
        drawn with replacement: with all such minibatches as draws, the result is the exact
        tr(Sigma) / |G|². If the estimate of |G|² is 0 or below, the result is infinite, np.inf. If only the
        estimate of tr(Sigma) is below 0, so is the result.

    Example: small [[3., 0.], [5., 4.]], large [[2., 3.]], sizes 1 and 4: the mean squares are 25 and 13.
        So tr(Sigma) = (25 - 13) / (1/1 - 1/4) = 16 and |G|² = 13 - 16/4 = 9, and the noise scale is 16/9.
    """
    ### BEGIN SOLUTION
    of_small, of_large = ((gradients**2).sum(axis=1).mean() for gradients in (small, large))
    sigma = (of_small - of_large) / (1 / b_small - 1 / b_large)
    norm = of_large - sigma / b_large
    return sigma / norm if norm > 0 else np.inf
    ### END SOLUTION


# %% test="gradient_noise_scale" points=2
check.gradient_noise_scale(gradient_noise_scale)
### BEGIN HIDDEN TESTS
check.gradient_noise_scale(
    gradient_noise_scale,
    drawn=[(8, 5, 4, 2, 7), (1, 3, 2, 1, 5), (3, 12, 6, 40, 320)],
    populations=[(4, 3, 1, 3), (3, 2, 2, 3), (3, 4, 2, 4)],
    seed=22,
)
### END HIDDEN TESTS

# %% [markdown]
# ### 2b. From a data-parallel step (3 points)
# A data-parallel step computes gradients of two sizes anyway: that of each rank's own b samples, and the mean over all
# ranks, with B = p b. So the noise scale costs almost nothing. But then no rank may collect the gradients of the
# others: p gradients in place of one would cost more than the training.


# %% solution="noise_of_ranks"
def noise_of_ranks(comm, gradient, b):
    """All-reduce the gradients of all ranks, and estimate the noise on the way.

    gradient: this rank's mean gradient over its own b samples, an array of n numbers, n from 1 on. It
        stays as it is.
    b: samples of this rank, the same on all ranks. There are at least two ranks.
    Returns: (mean, squared_norm, trace), on all ranks the same to the bit:
        mean          the mean gradient over all p b samples, an array of n numbers
        squared_norm  the estimate of |G|² by the equation above, with small minibatches of b samples (the
                      mean over all ranks) and one large one of p b samples. It may be negative.
        trace         the estimate of tr(Sigma)
    Cost: one comm.all_reduce of n + 1 float64 numbers. No other communication.

    Example: two ranks, b = 1, gradients [3.] and [1.]: mean [2.]; the mean of the squares is 5, the square
        of the mean 4. So trace = (5 - 4) / (1/1 - 1/2) = 2, and squared_norm = 4 - 2/2 = 3.
    """
    ### BEGIN SOLUTION
    both = np.append(gradient, gradient @ gradient)
    comm.all_reduce(both)
    mean, of_small = both[:-1] / comm.size, both[-1] / comm.size
    of_large, large = mean @ mean, comm.size * b
    sigma = (of_small - of_large) / (1 / b - 1 / large)
    return mean, of_large - sigma / large, sigma
    ### END SOLUTION


# %% test="noise_of_ranks" points=3
check.noise_of_ranks(noise_of_ranks)
### BEGIN HIDDEN TESTS
check.noise_of_ranks(noise_of_ranks, cases=[(2, 7, 3), (4, 3, 5), (3, 1, 2), (6, 9, 1), (2, 1200, 250)], seed=23)
### END HIDDEN TESTS

# %% [markdown]
# ## 3. LARS (4 points)
# With very large minibatches one rate does not suit all layers. LARS (You et al., arXiv:1708.03888) gives each layer a
# *trust ratio*: its step is a fixed fraction of the norm of its weights. For the weights w of one layer, its gradient
# g and its velocity v, with momentum m and weight decay λ:
#
# $$\text{ratio} = \frac{\text{trust} \cdot |w|}{|g| + \lambda |w|}, \qquad
# v \leftarrow m v + \eta \cdot \text{ratio} \cdot (g + \lambda w), \qquad w \leftarrow w - v .$$
#
# Biases have the ratio 1 here; minidl's `LARS` does the same with `exclude_1d=True`. Large models leave no room for
# copies. So this function writes into the arrays that it is given.


# %% solution="lars_step"
def lars_step(weights, gradients, velocities, lr, momentum, weight_decay, trust):
    """Make one step of LARS, in place.

    weights, gradients, velocities: lists with one array for each layer, in the same order. Some have two
        axes (matrices), some have one (biases).
    lr, momentum, weight_decay, trust: numbers from 0 on; lr and trust are above 0.
    The formulas above hold for each layer, with its own norms, those of the whole array before the step.
    The ratio is 1 for arrays with one axis, and where |w| or |g| is 0. Weight decay is for all arrays.
    Returns: nothing. The new values are in the arrays of `weights` and `velocities`: the lists keep the
        same array objects. `gradients` and its arrays stay as they are.
    Memory: the arrays made on the way have at any time at most 4 times the bytes of the largest layer.

    Example: one layer w = [[3., 4.]], g = [[0., 10.]], v = 0, lr = 1, momentum = 0, weight_decay = 0,
        trust = 0.1: ratio = 0.1 * 5 / 10 = 0.05, so v becomes [[0., 0.5]] and w becomes [[3., 3.5]].
    """
    ### BEGIN SOLUTION
    for w, g, v in zip(weights, gradients, velocities, strict=True):
        ratio, w_norm, g_norm = 1.0, np.linalg.norm(w), np.linalg.norm(g)
        if w.ndim > 1 and w_norm > 0 and g_norm > 0:
            ratio = trust * w_norm / (g_norm + weight_decay * w_norm)
        v *= momentum
        v += lr * ratio * (g + weight_decay * w)
        w -= v
    ### END SOLUTION


# %% test="lars_step" points=4
check.lars_step(lars_step)
### BEGIN HIDDEN TESTS
check.lars_step(
    lars_step,
    networks=[((5, 3), (3,), (3, 4), (4,)), ((6, 1), (1, 6), (1,))],
    settings=(0.9, 0.05, 0.03),
    layers=14,
    width=90,
    seed=24,
)
### END HIDDEN TESTS

# %% [markdown]
# ## 4. The best minibatch
# With larger minibatches a run needs fewer steps, and each step takes longer. Where is the best trade? To reach a
# target, a run with minibatches of B samples needs
#
# $$S(B) = S_{\min} \left(1 + B_c / B\right)$$
#
# steps. Far below the critical minibatch $B_c$, twice the minibatch halves the steps. Far above it, it only costs
# samples. The time to the target is S(B) times the seconds of a step.
#
# ### 4a. By a formula (2 points)
# On this cluster the seconds of a step are known. Each of the p nodes computes the gradient of B / p samples. Then
# follows a ring all-reduce of 2 (p - 1) (alpha + nbytes / p · beta) seconds. They do not overlap.


# %% solution="best_batch"
def best_batch(cluster):
    """Return the minibatch B with which the cluster reaches the target first.

    cluster has these attributes:
        cluster.nodes               p, from 1 on
        cluster.seconds_per_sample  of one node, for one sample
        cluster.nbytes              bytes of the gradient
        cluster.alpha               seconds a message
        cluster.beta                seconds a byte
        cluster.s_min               S_min
        cluster.b_c                 B_c, in samples
        cluster.most_per_node       samples for which a node has memory, from 1 on
    Returns: B, a whole number: a multiple of p, from p to p * most_per_node. The time to the target is at
        most 2 % longer than with the best of all these multiples.

    Example: p = 4, seconds_per_sample = 0.001, b_c = 100, an all-reduce of 0.1 seconds, much memory: B = 200
        takes 1.5 S_min steps of 0.15 seconds each. No other minibatch reaches the target earlier.
    """
    ### BEGIN SOLUTION
    p, compute = cluster.nodes, cluster.seconds_per_sample
    ring = 2 * (p - 1) * (cluster.alpha + cluster.nbytes / p * cluster.beta)
    best = (cluster.b_c * p * ring / compute) ** 0.5  # where the derivative of the time is 0

    def seconds(batch):
        return (1 + cluster.b_c / batch) * (compute * batch / p + ring)

    below = min(max(int(best / p), 1), cluster.most_per_node)
    above = min(below + 1, cluster.most_per_node)
    return min(below * p, above * p, key=seconds)
    ### END SOLUTION


# %% test="best_batch" points=2
check.best_batch(best_batch)
### BEGIN HIDDEN TESTS
check.best_batch(best_batch, seed=25)
### END HIDDEN TESTS

# %% [markdown]
# ### 4b. By few measurements (2 points)
# No formula is known for the steps of a real cluster: small minibatches leave a GPU idle, and large ones may not fit
# into a cache. But each step can be measured, and a measurement takes minutes. So measure seldom.


# %% solution="best_measured_batch"
def best_measured_batch(seconds_per_step, b_c, p, most_per_node):
    """Return the minibatch B that reaches the target first, by few measurements.

    seconds_per_step: seconds_per_step(B) measures a step with minibatches of B samples. B must be allowed:
        a multiple of p, from p to p * most_per_node. The same B gives the same seconds.
    b_c: B_c, in samples. p: nodes. most_per_node: samples for which a node has memory, from 1 to 10**6.
    The time to the target, (1 + B_c / B) * seconds_per_step(B), falls up to the best minibatch and rises
    after it; one of the two may be missing.
    Returns: B, an allowed minibatch. The time to the target is at most 2 % longer than with the best of all
        of them.
    Cost: at most 50 calls of seconds_per_step. (No points for few calls if the minibatch takes more than
        1.5 times the best time.)

    Example: seconds_per_step(B) = 0.1 + B / 4000, b_c = 100, p = 4, most_per_node = 1000: 200 is best.
    """

    ### BEGIN SOLUTION
    def seconds(i):
        return (1 + b_c / (i * p)) * seconds_per_step(i * p)

    low, high = 1, most_per_node
    while low < high:  # the best number of samples a node is in low..high
        middle = (low + high) // 2
        if seconds(middle) < seconds(middle + 1):
            high = middle
        else:
            low = middle + 1
    return low * p
    ### END SOLUTION


# %% test="best_measured_batch" points=2
check.best_measured_batch(best_measured_batch)
### BEGIN HIDDEN TESTS
check.best_measured_batch(best_measured_batch, seed=26)
### END HIDDEN TESTS

# %% [markdown]
# ## 5. In a few sentences (2 points, graded by hand)
# A vendor trains with minibatches of $8 B_c$ samples on a cluster whose steps then take 97 % of their time for
# computing. With minibatches of $B_c$ it was 80 %. The vendor reports "1.2 times as many samples a second, so 1.2 times
# faster". Compute how the time to the target changes if the nodes stay the same. Say which number the vendor should
# have reported, and what a run with $8 B_c$ may need beyond this time to reach the target at all.

# %% [markdown] manual="vendor" points=2
# To the target a run needs $E = S B = S_{\min} (B + B_c)$ samples: with $B = B_c$ that is $2 S_{\min} B_c$, with
# $8 B_c$ it is $9 S_{\min} B_c$, 4.5 times as many. They are processed 0.97 / 0.80 = 1.21 times as fast, so the
# time to the target is 4.5 / 1.21 = 3.7 times as long (1 point). Seconds to the target, at a stated error, over several
# seeds, is the number to report; samples a second is only one of its two factors. The hyperbola holds for the best
# rate of each minibatch: a run with $8 B_c$ needs a rate of its own, warm-up, perhaps LARS, and without them it
# may miss the target altogether (1 point for the number and one of these).
#
# **The lectures' questions to argue about, for the teacher**
#
# *08a.* 1. Nothing: the sum of the nodes' means is p times the gradient of the whole minibatch, so the steps have grown
# already. With k times the rate as well they grow by k squared. 2. Neither alone. The training loss says whether the
# optimisation works, the test error what it is good for. Measure more seeds, and other rates for each minibatch.
# 3. Rates that were tuned for the large minibatch, with as many tries; warm-up; several seeds.
#
# *08b.* 1. Run the first hundred steps with rising rates and a few seeds; take half of the largest rate at which the
# loss never rises. 2. One that measures the largest curvature h every few dozen steps, by a few gradients at slightly
# moved weights, and keeps the rate below 2 (1 + m) / h. It costs a few gradients each time. 3. No: that is the mean of
# the runs that went well. Report how many failed, and all runs.
#
# *08c.* 1. Close to a minimum: there gradients become short, and LARS still moves each layer by the same share of its
# weights, so the rate has to fall. 2. They protect from different things: LARS from layers of different scale, warm-up
# from a large curvature at the start. Four runs, with and without each, show it; You et al. use both. 3. The squares of
# the norms of w and g of each half: two numbers a layer, which fit into one all-reduce for all layers.
#
# *08d.* 1. Electricity is paid by the sample, so to smaller minibatches: with $B_c/4$ the run needs $1.25 E_{\min}$ in
# place of $2 E_{\min}$, and $5 S_{\min}$ steps in place of $2 S_{\min}$. How far is a question of patience. 2. Late,
# where most of the steps are. A minibatch that is too large for the short start wastes few samples. 3. Tune the rate
# for each minibatch, and train to the same loss, counting steps: after the same number of epochs 8,192 has made a
# thirty-second of the steps.
#
# *08e.* 1. The spread of the weights grows with rate / (B (1 - m)), so momentum raises it like a larger rate. In place
# of decaying the rate one can grow the minibatch, or lower m. 2. When the minibatch is far above $B_c$, so that more
# samples save no steps, or when it does not fit. 3. For a rate tuned for each of them, the number of steps (8,192 makes
# a thirty-second of them), the training loss, and several seeds.
#
# *08f.* With t seconds of all-reduce and c seconds a sample: 1. If the all-reduce hides behind all of the computing, a
# step takes $\max(t, B c / p)$, and the best minibatch is $t p / c$, where it is just hidden. Without overlap it was
# the geometric mean of $t p / c$ and $B_c$. So it moves away from $B_c$. 2. It stays: t and c are both divided by four,
# and so is the time to the target. 3. One node with B = 1: it needs no all-reduce and wastes no sample. It takes
# $S_{\min} (1 + B_c)\, c$ seconds. Each further node saves less time than it costs.
