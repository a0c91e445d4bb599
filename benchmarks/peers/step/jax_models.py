"""The models of `nn.models` as functions of their weights, for jax.jit; the weights have minidl's names and layouts.

Each function takes (weights by name, x) and returns the logits. Batch norm's running statistics, which only evaluation
reads, are left out: JAX does slightly less work than the others.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

Weights = dict[str, Any]
HEADS = 4
EPS = 1e-5


def linear(w: Weights, name: str, x: Any) -> Any:
    return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]


def conv(x: Any, weight: Any, stride: int = 1, padding: int = 0) -> Any:
    return jax.lax.conv_general_dilated(
        x, weight, (stride, stride), [(padding, padding)] * 2, dimension_numbers=("NCHW", "OIHW", "NCHW")
    )


def mlp(w: Weights, x: Any) -> Any:
    layers = len(w) // 2
    for layer in range(layers):
        x = linear(w, f"layers.{layer}", x)
        x = jax.nn.relu(x) if layer < layers - 1 else x
    return x


def halved(x: Any) -> Any:
    """The averages of squares of 2 x 2 pixels."""
    n, c, height, width = x.shape
    return x.reshape(n, c, height // 2, 2, width // 2, 2).mean(axis=(3, 5))


def lenet(w: Weights, x: Any) -> Any:
    for name, padding in (("conv1", 2), ("conv2", 0)):
        x = conv(x, w[f"{name}.weight"], padding=padding) + w[f"{name}.bias"][:, None, None]
        x = halved(jnp.tanh(x))
    x = x.reshape(len(x), -1)
    x = jnp.tanh(linear(w, "fc1", x))
    return linear(w, "fc3", jnp.tanh(linear(w, "fc2", x)))


def batch_norm(w: Weights, name: str, x: Any) -> Any:
    mean, var = x.mean(axis=(0, 2, 3), keepdims=True), x.var(axis=(0, 2, 3), keepdims=True)
    scale, shift = (w[f"{name}.{which}"][:, None, None] for which in ("weight", "bias"))
    return (x - mean) * jax.lax.rsqrt(var + EPS) * scale + shift


def resnet8(w: Weights, x: Any) -> Any:
    x = jax.nn.relu(batch_norm(w, "bn1", conv(x, w["conv1.weight"], padding=1)))
    for layer, stride in ((1, 1), (2, 2), (3, 2)):
        name = f"layer{layer}.0"
        out = jax.nn.relu(batch_norm(w, f"{name}.bn1", conv(x, w[f"{name}.conv1.weight"], stride, 1)))
        out = batch_norm(w, f"{name}.bn2", conv(out, w[f"{name}.conv2.weight"], padding=1))
        if stride > 1:
            x = batch_norm(w, f"{name}.downsample.1", conv(x, w[f"{name}.downsample.0.weight"], stride))
        x = jax.nn.relu(out + x)
    return linear(w, "fc", x.mean(axis=(2, 3)))


def layer_norm(w: Weights, name: str, x: Any) -> Any:
    mean, var = x.mean(axis=-1, keepdims=True), x.var(axis=-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(var + EPS) * w[f"{name}.weight"] + w[f"{name}.bias"]


def gpt(w: Weights, tokens: Any) -> Any:
    n, t = tokens.shape
    x = w["transformer.wte.weight"][tokens] + w["transformer.wpe.weight"][:t]
    layers = sum(name.endswith("ln_1.weight") for name in w)
    for layer in range(layers):
        name = f"transformer.h.{layer}"
        qkv = linear(w, f"{name}.attn.c_attn", layer_norm(w, f"{name}.ln_1", x))
        q, k, v = (part.reshape(n, t, HEADS, -1) for part in jnp.split(qkv, 3, axis=-1))
        y = jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(n, t, -1)
        x = x + linear(w, f"{name}.attn.c_proj", y)
        hidden = jax.nn.gelu(linear(w, f"{name}.mlp.c_fc", layer_norm(w, f"{name}.ln_2", x)), approximate=False)
        x = x + linear(w, f"{name}.mlp.c_proj", hidden)
    return layer_norm(w, "transformer.ln_f", x) @ w["transformer.wte.weight"].T


MODELS = {"mlp-small": mlp, "mlp-large": mlp, "lenet": lenet, "resnet-8": resnet8, "gpt": gpt}
