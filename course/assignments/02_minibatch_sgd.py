# %% [markdown]
# # Minibatch SGD: exercises
#
# The lectures: [02a](../../notebooks/02a_noisy_gradients.ipynb), noisy gradients (exercises 1 and 2);
# [02b](../../notebooks/02b_starting_points.ipynb), starting points; [02c](../../notebooks/02c_step_sizes.ipynb), step
# sizes (exercises 3 and 4); and [02d](../../notebooks/02d_update_rules.ipynb), update rules (exercises 5 and 6). At the
# end of this notebook you will have written all that stands between a gradient and a trained network: a sampler,
# momentum in its two forms, Adam, and a training loop that chooses without fooling itself; and you will be able to say
# how noisy a minibatch gradient is.
#
# **How it works.** Replace `raise NotImplementedError(...)` by your code, run the cell, then the check below it, as
# often as you like. A check says what it called, what it expected and what came, and gives points for parts;
# `check.hint("minibatches")` tells a hint, the same call again the next one. When the work is graded, the same checks
# are made with other sizes and seeds. There are 20 points in all.
#
# A function leaves its arguments, and what it has returned before, as they were, bit by bit, unless its text says what
# it may change: the caller may still need them. The check compares after every call; a change costs the first part in
# which it shows.

# %% given="setup"
import numpy as np

from course.checks import minibatch_sgd as check
from minidl import data, optim
from minidl import functional as F

# %% [markdown]
# ## 1. Minibatches (3 points)
#
# Minibatch SGD visits the samples in *epochs*: in an epoch every sample is used once, in an order of its own. The order
# is fixed by a seed and the number of the epoch, so that a run can be repeated, and taken up again in its fifth epoch.
# If batch_size does not divide n, the last batch has the samples that are left.


# %% solution="minibatches"
def minibatches(n, batch_size, seed, epoch):
    """The minibatches of one epoch, as a list of arrays of indices (or as a generator of them).

    n: the number of samples, 0 or more; batch_size: 1 or more; seed, epoch: whole numbers from 0 to 2**32 - 1.
    Every one of the indices 0 … n - 1 is in one batch. All batches have batch_size indices, the last one has the rest,
    and none is empty. The same seed and epoch give the same batches, whatever was called in between, in another process
    and tomorrow, too. Every epoch of every seed has a shuffle of its own, in which any order is possible: epoch 1 of
    seed 0 is not epoch 0 of seed 1. The global generators, np.random and random, are neither drawn from nor seeded.

    >>> [len(batch) for batch in minibatches(10, 4, seed=0, epoch=0)]
    [4, 4, 2]
    >>> sorted(int(i) for batch in minibatches(5, 2, seed=0, epoch=3) for i in batch)
    [0, 1, 2, 3, 4]
    """
    ### BEGIN SOLUTION
    order = np.random.default_rng((seed, epoch)).permutation(n)
    return [order[start : start + batch_size] for start in range(0, n, batch_size)]
    ### END SOLUTION


# %% test="minibatches" points=3
check.minibatches(minibatches)
### BEGIN HIDDEN TESTS
check.minibatches(minibatches, sizes=[(17, 5), (16, 8), (7, 7), (2, 5), (0, 1), (9, 1), (70_000, 999)], seed=7)
### END HIDDEN TESTS

# %% [markdown]
# ## 2. How noisy is a minibatch gradient? (3 points)
#
# Let $g_1, \dots, g_n$ be the gradients of the $n$ samples at the present weights, and $g$ their mean, the gradient of
# the whole training set. A minibatch of $B$ samples gives the mean $g_B$ of $B$ of them. Its *variance* is the expected
# squared distance
#
# $$\operatorname{E} \lVert g_B - g \rVert^2 ,$$
#
# a sum over the coordinates, so it is the trace of the covariance matrix of $g_B$. The batch may be drawn *with
# replacement* (each sample anew from all $n$) or *without* (any $B$ different samples, as a batch of exercise 1 is).
# The noise of the steps is what a learning rate has to cope with; that it falls as the batch grows is why larger
# batches allow larger steps.


# %% solution="gradient_variance"
def gradient_variance(gradients, batch_size, replacement):
    """The variance of the mean of `batch_size` rows of `gradients`, drawn at random: a number.

    gradients: (n, d), the gradient of each of n samples, n at least 1; batch_size: from 1 to n with or without
    replacement (True or False); with replacement it may also be above n. The n samples are all there are. There may be
    thousands, so the batches cannot be tried one by one; the exact value is wanted, not an estimate from some draws, to
    six digits also where the mean gradient is 1e8 times as large as the differences from it.

    >>> gradients = np.array([[0.0], [2.0], [4.0]])  # their mean is 2; the squared distances are 4, 0 and 4
    >>> round(float(gradient_variance(gradients, 1, replacement=True)), 4)
    2.6667
    >>> round(float(gradient_variance(gradients, 2, replacement=True)), 4)
    1.3333
    >>> round(float(gradient_variance(gradients, 2, replacement=False)), 4)  # the means are 1, 2 and 3
    0.6667
    """
    ### BEGIN SOLUTION
    n = len(gradients)
    variance = gradients.var(axis=0).sum() / batch_size
    if replacement:
        return variance
    return variance * (n - batch_size) / (n - 1) if n > 1 else 0.0
    ### END SOLUTION


# %% test="gradient_variance" points=3
check.gradient_variance(gradient_variance)
### BEGIN HIDDEN TESTS
check.gradient_variance(
    gradient_variance,
    sizes=[(7, 4, 3), (3, 1, 3), (1, 1, 1), (2, 3, 1), (2, 5, 7), (7000, 3, 2500), (3, 1200, 2)],
    seed=5,
)
### END HIDDEN TESTS

# %% [markdown]
# ## 3. Momentum in two forms (2 points)
#
# Textbooks write momentum with the learning rate *inside* a velocity, PyTorch (and `minidl.optim.SGD`) *outside* a sum
# of gradients:
#
# | form | state | weights |
# |---|---|---|
# | `"velocity"` | $v \leftarrow \mu v - \eta g$ | $w \leftarrow w + v$ |
# | `"pytorch"` | $u \leftarrow \mu u + g$ | $w \leftarrow w - \eta u$ |
#
# As long as the rate $\eta$ is constant, $v = -\eta u$ and both walk the same path.


# %% solution="momentum_step"
def momentum_step(w, state, gradient, lr, mu, form):
    """One step with momentum: the new weights and the new state, `return w, state`.

    w, state, gradient: arrays of one shape; state is v or u before the step; lr: the rate eta; mu: the momentum, from 0
    to below 1; form: "velocity" or "pytorch". w and state may be changed in place, or new arrays returned.

    >>> w, v, g = np.array([1.0]), np.array([-1.0]), np.array([2.0])
    >>> [x.round(3).tolist() for x in momentum_step(w, v, g, lr=0.1, mu=0.5, form="velocity")]
    [[0.3], [-0.7]]
    >>> w, u = np.array([1.0]), np.array([10.0])  # u = -v / lr
    >>> [x.round(3).tolist() for x in momentum_step(w, u, g, lr=0.1, mu=0.5, form="pytorch")]
    [[0.3], [7.0]]
    """
    ### BEGIN SOLUTION
    if form == "velocity":
        state = mu * state - lr * gradient
        return w + state, state
    state = mu * state + gradient
    return w - lr * state, state
    ### END SOLUTION


# %% test="momentum_step" points=2
check.momentum_step(momentum_step)
### BEGIN HIDDEN TESTS
check.momentum_step(momentum_step, sizes=[3, 1, 0, 10, 1200], mus=[0.95, 0.0], seed=3)
### END HIDDEN TESTS

# %% [markdown]
# ## 4. When the rate changes (2 points)
#
# When the rate changes from $\eta$ to $\eta'$, the two forms part: the velocity still holds past gradients times the
# old rate. Goyal et al. (arXiv:1706.02677, section 3, remark 2) therefore ask for a *momentum correction* in the
# velocity form. Write its step so that the weights are those of PyTorch's form after every step, whatever the rates.


# %% solution="corrected_step"
def corrected_step(w, v, gradient, lr, lr_before, mu):
    """One step of the velocity form with momentum correction: the new weights and velocity, `return w, v`.

    w, v, gradient: arrays of one shape; lr: the rate of this step, lr_before: that of the step before, both above 0.
    v is the velocity after the step before; the one returned will be given to the next step. Returns new arrays.

    >>> w, v, g = np.array([1.0]), np.array([-1.0]), np.array([2.0])
    >>> [x.round(3).tolist() for x in corrected_step(w, v, g, lr=0.1, lr_before=0.1, mu=0.5)]
    [[0.3], [-0.7]]
    >>> w, u = np.array([1.0]), np.array([10.0])  # the same past in PyTorch's form, and the rate is raised to 0.2:
    >>> [x.round(3).tolist() for x in momentum_step(w, u, g, lr=0.2, mu=0.5, form="pytorch")]
    [[-0.4], [7.0]]
    >>> w = np.array([1.0])
    >>> corrected_step(w, v, g, lr=0.2, lr_before=0.1, mu=0.5)[0].round(3).tolist()
    [-0.4]
    """
    ### BEGIN SOLUTION
    v = mu * (lr / lr_before) * v - lr * gradient
    return w + v, v
    ### END SOLUTION


# %% test="corrected_step" points=2
check.corrected_step(corrected_step)
### BEGIN HIDDEN TESTS
check.corrected_step(
    corrected_step, rates=[0.05, 0.05, 0.3, 0.03, 0.0301, 0.03011, 0.00001], mu=0.8, sizes=[1, 9, 1200], seed=2
)
### END HIDDEN TESTS

# %% [markdown]
# ## 5. Adam (3 points)
#
# Adam (Kingma and Ba, arXiv:1412.6980, algorithm 1) divides a decayed mean of the gradients by the root of a decayed
# mean of their squares. Both means start at zero, so both are too small at first; the divisions by $1 - \beta^t$
# correct that. Some texts put $\varepsilon$ inside the root, where $10^{-8}$ shortens the steps of weights whose
# gradients are $10^{-4}$ or smaller; the check uses $\varepsilon = 0.1$ and more. Once your function has all points,
# `python3 -m course result 1` trains a ResNet that reads letters with it, in at most ten minutes.
#
# $$m \leftarrow \beta_1 m + (1 - \beta_1) g, \qquad v \leftarrow \beta_2 v + (1 - \beta_2) g^2,$$
#
# $$w \leftarrow w - \eta \, \frac{\hat m}{\sqrt{\hat v} + \varepsilon}, \qquad
# \hat m = \frac{m}{1 - \beta_1^t}, \quad \hat v = \frac{v}{1 - \beta_2^t} .$$


# %% solution="adam_step"
def adam_step(w, m, v, t, gradient, lr, beta1, beta2, eps):
    """Step t of Adam: the new weights and means, `return w, m, v`.

    w, m, v, gradient: arrays of one shape; m and v are the means before the step, zero before the first; t: the
    number of this step, 1 for the first; beta1, beta2: from 0 to below 1. Returns new arrays.

    >>> zero = np.zeros(2)
    >>> w, m, v = adam_step(np.ones(2), zero, zero, 1, np.array([3.0, -0.2]), lr=0.5, beta1=0.9, beta2=0.999, eps=0.0)
    >>> w.round(3).tolist(), m.round(3).tolist(), v.round(6).tolist()
    ([0.5, 1.5], [0.3, -0.02], [0.009, 4e-05])
    """
    ### BEGIN SOLUTION
    m = beta1 * m + (1 - beta1) * gradient
    v = beta2 * v + (1 - beta2) * gradient**2
    m_hat = m / (1 - beta1**t)
    v_hat = v / (1 - beta2**t)
    return w - lr * m_hat / (np.sqrt(v_hat) + eps), m, v
    ### END SOLUTION


# %% test="adam_step" points=3
check.adam_step(adam_step)
### BEGIN HIDDEN TESTS
check.adam_step(adam_step, sizes=[1, 3, 8, 1200], betas=(0.8, 0.998), steps=5, seed=4)
### END HIDDEN TESTS

# %% [markdown]
# ## 6. A training loop (5 points)
#
# Now all of it: train a small network on 300 digits. They lie sorted by class, and one label in five is wrong, so a
# network that trains too long learns wrong labels by heart. That is what the *validation set* is for: after each
# epoch it says how many digits are read wrongly, and you keep the weights of the best epoch. What these weights are
# worth on new digits, only the *test set* can say, and only if nothing was chosen by it: it is opened once, at the
# very end.


# %% solution="train"
def train(model, train_set, validation_set, test_set, lr, epochs, batch_size, seed):
    """Train by minibatch SGD, leave the model with the weights of its best epoch, and return its test error.

    model: a network of minidl with cross entropy as its loss; `model(x)` is (n, 10) for x of shape (n, 64).
    train_set: a minidl.data.Dataset; `x, y = train_set[indices]` for an array or a list of indices.
    validation_set, test_set: `validation_set.error(model)` is the share of its samples that the model reads wrongly,
    from 0 to 1. Ask the validation set after every epoch, and the test set once, last of all.
    lr, epochs, batch_size, seed: plain SGD on the mean loss of each minibatch, w - lr gradient, over `epochs` epochs,
    each with a shuffle of its own; the same seed gives the same shuffles again, another seed others. Also the smaller
    last batch of an epoch makes a step.

    >>> model, train_set, validation_set, test_set = check.digits_with_noise(seed=0)
    >>> test_error = train(model, train_set, validation_set, test_set, lr=0.4, epochs=2, batch_size=5, seed=0)
    >>> len(validation_set.errors), len(test_set.errors), test_error == test_set.errors[0]
    (2, 1, True)
    """
    ### BEGIN SOLUTION
    optimizer = optim.SGD(model.parameters(), lr=lr)
    lowest, best = np.inf, None
    for epoch in range(epochs):
        for batch in minibatches(len(train_set), batch_size, seed, epoch):
            x, y = train_set[batch]
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        error = validation_set.error(model)
        if error < lowest:
            lowest, best = error, model.state_dict()
    model.load_state_dict(best)
    return test_set.error(model)
    ### END SOLUTION


# %% test="train" points=5
check.train(train)
### BEGIN HIDDEN TESTS
check.train(train, seeds=[3, 8])
### END HIDDEN TESTS

# %% [markdown]
# Once it works, look at it: what is read wrongly after each epoch, and which epoch you kept.

# %%
check.draw_training(train)

# %% [markdown]
# ## 7. In a few sentences (2 points)
#
# A colleague says: "A minibatch gradient is a wrong gradient. I have the time, so I take all n samples for every step,
# and the noise is gone." By exercise 2, what does he gain with a batch that is 100 times as large: how far does
# the typical error of the gradient (not its square) fall? What does he pay for each step, and what does this
# mean for the progress per sample that is read?

# %% [markdown] manual="why_noisy" points=2
# The variance falls as 1/B, so the typical error, its root, falls by a factor of 10 only (with all n samples, drawn
# without replacement, it is 0). A step costs 100 times as much. In the time of one exact step he could have made 100
# noisy ones; far from the minimum, where every one of these points roughly downhill, they lead much further. Progress
# per sample is lower, so accuracy pays only near the end, or where the 100 samples can be computed at once.
