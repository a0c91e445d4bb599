"""What is trained, and by which rule?

All weights of a model are one vector w, and training is one line, over and over: w = optimizer.step(w, gradient).
"""

import numpy as np

from minidl.mini.tensor import Tensor, normal_cdf, normalize, relu, softmax


class Layer:
    """A function with weights: the tensors and layers among its attributes (also in lists); functions have none."""

    def parameters(self):
        for value in vars(self).values():
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, Tensor):
                    yield each
                elif isinstance(each, Layer):
                    yield from each.parameters()

    def weights(self):
        return np.concatenate([parameter.data.reshape(-1) for parameter in self.parameters()])

    def set_weights(self, vector):
        ends = np.cumsum([parameter.data.size for parameter in self.parameters()])
        for parameter, values in zip(self.parameters(), np.split(vector, ends[:-1])):
            parameter.data, parameter.grad = values.reshape(parameter.data.shape), None  # backward adds up: start anew

    def gradient(self):
        return np.concatenate([parameter.grad.reshape(-1) for parameter in self.parameters()])


class Linear(Layer):
    def __init__(self, inputs, outputs, rng):
        bound = 1 / np.sqrt(inputs)  # y = x W^T + b; as in PyTorch: more inputs, smaller weights, y stays of order 1
        self.weight = Tensor(rng.uniform(-bound, bound, (outputs, inputs)).astype(np.float32))
        self.bias = Tensor(rng.uniform(-bound, bound, outputs).astype(np.float32))

    def __call__(self, x):
        return x @ self.weight.mT + self.bias


class Sequential(Layer):
    def __init__(self, layers):
        self.layers = layers

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def mlp(*sizes, rng):
    """Linear layers of these sizes, with ReLU between them."""
    linear = [Linear(sizes[i], sizes[i + 1], rng) for i in range(len(sizes) - 1)]
    return Sequential([layer for each in linear for layer in (each, relu)][:-1])


class Embedding(Layer):  # a vector for each token plus one for each position: tokens (n, t) -> (n, t, width)
    def __init__(self, vocabulary, context, width, rng):
        self.token = Tensor(rng.normal(0, 0.02, (vocabulary, width)).astype(np.float32))
        self.position = Tensor(rng.normal(0, 0.02, (context, width)).astype(np.float32))

    def __call__(self, tokens):
        return self.token[tokens.data] + self.position[: tokens.data.shape[1]]

    def logits(self, x):
        return x @ self.token.mT  # weight tying: a token's score is its vector times x; counted once, in Embedding


class LayerNorm(Layer):
    def __init__(self, width):
        self.weight, self.bias = Tensor(np.ones(width, np.float32)), Tensor(np.zeros(width, np.float32))

    def __call__(self, x):
        return normalize(x) * self.weight + self.bias


class Block(Layer):
    """Attention, then an MLP at every position; each adds to x: (n, t, width) -> (n, t, width)."""

    def __init__(self, width, heads, rng):
        self.heads = heads
        self.norm_1, self.to_qkv, self.out = LayerNorm(width), Linear(width, 3 * width, rng), Linear(width, width, rng)
        self.norm_2, self.up, self.down = LayerNorm(width), Linear(width, 4 * width, rng), Linear(4 * width, width, rng)

    def __call__(self, x):
        x = x + self.attention(self.norm_1(x))
        up = self.up(self.norm_2(x))
        return x + self.down(up * normal_cdf(up))  # GELU, a smooth ReLU

    def attention(self, x):
        """Each position gets a mean of the v of itself and those before, weighted by softmax(q . k)."""
        n, t, width = x.data.shape
        d = width // self.heads
        qkv = self.to_qkv(x).reshape(shape=(n, t, 3, self.heads, d))
        q, k, v = (qkv[:, :, i].swapaxes(axes=(1, 2)) for i in range(3))  # each (n, heads, t, d)
        future = np.triu(np.full((t, t), -np.inf), 1)  # softmax gives it the weight exp(-inf) = 0
        weights = softmax(q @ k.mT * d**-0.5 + future)  # (n, heads, t, t); sums of d products are of order d**0.5
        return self.out((weights @ v).swapaxes(axes=(1, 2)).reshape(shape=(n, t, width)))  # the heads side by side


def gpt(vocabulary, context, blocks, heads, width, rng):
    """Tokens (n, t) -> logits (n, t, vocabulary) of the next token at every position."""
    embed = Embedding(vocabulary, context, width, rng)
    return Sequential([embed, *[Block(width, heads, rng) for _ in range(blocks)], LayerNorm(width), embed.logits])


class SGD:  # v = momentum v + g, w = w - lr v
    def __init__(self, lr, momentum=0.0):
        self.lr, self.momentum, self.velocity = lr, momentum, 0.0

    def step(self, weights, gradient):
        self.velocity = self.momentum * self.velocity + gradient
        return weights - self.lr * self.velocity


class Adam:  # along the mean gradient m, divided by the root of the mean square v: a steady gradient moves w by lr
    def __init__(self, lr):
        self.lr, self.m, self.v, self.steps = lr, 0.0, 0.0, 0

    def step(self, weights, gradient):
        self.steps += 1
        self.m = 0.9 * self.m + 0.1 * gradient
        self.v = 0.999 * self.v + 0.001 * gradient**2
        m, v = self.m / (1 - 0.9**self.steps), self.v / (1 - 0.999**self.steps)  # they began at 0: too small
        return weights - self.lr * m / (np.sqrt(v) + 1e-8)


# The workshop: minidl/nn (convolutions to GPT-2, PyTorch's names), minidl/optim (nine rules). Lectures 02a to 02d.
