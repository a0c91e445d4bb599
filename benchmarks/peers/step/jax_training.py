"""JAX's side: a whole training step, optimizer included, is one function through jax.jit; old weights are donated."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.peers.step.jax_models import MODELS
from benchmarks.peers.step.workloads import (
    ADAM_RATE,
    BATCHES,
    LEARNING_RATE,
    MOMENTUM,
    Workload,
    minibatches,
    model_of,
)

BETA1, BETA2, EPS = 0.9, 0.999, 1e-8  # Adam's, as PyTorch's and minidl's by default


class Training:
    """JAX in training."""

    def __init__(self, name: str, workload: Workload) -> None:
        self.weights = {key: jnp.array(value.numpy()) for key, value in model_of(workload).named_parameters()}
        zeros = jax.tree.map(jnp.zeros_like, self.weights)
        self.state: Any = (zeros, jax.tree.map(jnp.zeros_like, zeros), 0.0) if workload.adam else zeros
        self.batches = [(jnp.array(x), jnp.array(y)) for x, y in minibatches(workload)]
        self.steps = 0
        update = adam if workload.adam else sgd
        self._step = jax.jit(partial(training_step, MODELS[name], update), donate_argnums=(0, 1))

    def step(self) -> float:
        """One call of the compiled step; it waits for the loss."""
        x, y = self.batches[self.steps % BATCHES]
        self.steps += 1
        self.weights, self.state, loss = self._step(self.weights, self.state, x, y)
        return float(loss)


def training_step(model: Any, update: Any, weights: Any, state: Any, x: Any, y: Any) -> tuple[Any, Any, Any]:
    """The new weights, the optimizer's new state, and the loss."""

    def loss_of(weights: Any) -> Any:
        log_probabilities = jax.nn.log_softmax(model(weights, x))
        return -jnp.take_along_axis(log_probabilities, y[..., None], axis=-1).mean()

    loss, gradients = jax.value_and_grad(loss_of)(weights)
    return *update(weights, gradients, state), loss


def sgd(weights: Any, gradients: Any, velocity: Any) -> tuple[Any, Any]:
    velocity = jax.tree.map(lambda v, g: MOMENTUM * v + g, velocity, gradients)
    return jax.tree.map(lambda w, v: w - LEARNING_RATE * v, weights, velocity), velocity


def adam(weights: Any, gradients: Any, state: Any) -> tuple[Any, Any]:
    means, squares, steps = state
    steps = steps + 1
    means = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, means, gradients)
    squares = jax.tree.map(lambda s, g: BETA2 * s + (1 - BETA2) * g * g, squares, gradients)
    of_means, of_squares = 1 - BETA1**steps, 1 - BETA2**steps
    weights = jax.tree.map(
        lambda w, m, s: w - ADAM_RATE * (m / of_means) / (jnp.sqrt(s / of_squares) + EPS), weights, means, squares
    )
    return weights, (means, squares, steps)
