"""GPT-2: blocks of attention and feed-forward networks that predict the next token at every position of a text."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import sqrt
from typing import Any

import numpy as np

from minidl import functional as F
from minidl import random
from minidl.arguments import whole_number
from minidl.functional.attention import keeps_matrix
from minidl.grad_mode import no_grad
from minidl.nn import init
from minidl.nn.attention import attention_weights
from minidl.nn.container import ModuleList
from minidl.nn.dropout import Dropout
from minidl.nn.experts import MixtureOfExperts
from minidl.nn.feed_forward import FeedForward
from minidl.nn.linear import Embedding, Linear
from minidl.nn.module import Module
from minidl.nn.normalization import LayerNorm
from minidl.nn.stages import Stage, run_stages
from minidl.recomputation import checkpoint
from minidl.tensor import Tensor


class CausalSelfAttention(Module):
    """Multi-head attention in which a position sees itself and the positions before it."""

    recomputes_selectively = False

    def __init__(self, n_embd: int, n_head: int, dropout: float, bias: bool) -> None:
        self.head_size = n_embd // n_head
        self.c_attn = Linear(n_embd, 3 * n_embd, bias)  # query, key and value of all heads in one product
        self.c_proj = Linear(n_embd, n_embd, bias)
        self.dropout = Dropout(dropout)

    def heads(self, x: Tensor) -> Tensor:
        """Query, key and value of every head: (3, n, heads, t, head_size)."""
        projected = self.c_attn(x)
        n, t, width = projected.shape
        count = width // (3 * self.head_size)  # of heads: this rank may have a share of them
        return projected.reshape(n, t, 3, count, self.head_size).transpose(2, 0, 3, 1, 4)

    def forward(self, x: Tensor) -> Tensor:
        heads = self.heads(x)
        recompute = self.recomputes_selectively and keeps_matrix(heads, heads)
        out = checkpoint(_attend, heads) if recompute else _attend(heads)  # (n, heads, t, head_size)
        n, count, t, size = out.shape
        return self.dropout(self.c_proj(out.transpose(1, 2).reshape(n, t, count * size)))


def _attend(heads: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(heads[0], heads[1], heads[2], is_causal=True)


class Block(Module):
    """x + attention(norm(x)), then x + mlp(norm(x)), a feed-forward network or a mixture of experts."""

    def __init__(self, n_embd: int, n_head: int, dropout: float, bias: bool, mlp: Callable[[], Module]) -> None:
        self.ln_1 = LayerNorm(n_embd, bias=bias)
        self.attn = CausalSelfAttention(n_embd, n_head, dropout, bias)
        self.ln_2 = LayerNorm(n_embd, bias=bias)
        self.mlp = mlp()

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Transformer(Module):
    """Compute features from tokens: embeddings of token and position, the blocks, a final norm."""

    def __init__(
        self,
        vocab_size: int,
        block_size: int,
        n_layer: int,
        n_head: int,
        n_embd: int,
        dropout: float,
        bias: bool,
        mlp: Callable[[], Module],
    ) -> None:
        self.wte = Embedding(vocab_size, n_embd)
        self.wpe = Embedding(block_size, n_embd)
        self.drop = Dropout(dropout)
        self.h = ModuleList(Block(n_embd, n_head, dropout, bias, mlp) for _ in range(n_layer))
        self.ln_f = LayerNorm(n_embd, bias=bias)

    def forward(self, tokens: Any) -> Tensor:
        return run_stages(self.stages(), tokens)

    def stages(self) -> list[Stage]:
        return [
            Stage(self._embed, self.wte, self.wpe, self.drop),
            *[Stage(block, block) for block in self.h],
            Stage(self.ln_f, self.ln_f),
        ]

    def _embed(self, tokens: Any) -> Tensor:
        return self.drop(self.wte(tokens) + self.wpe(np.arange(tokens.shape[1])))


class GPT(Module):
    """A language model with nanoGPT's layout, names and initialisation; the defaults are GPT-2's smallest.

    Parameters
        vocab_size    number of different tokens
        block_size    largest number of positions, the context
        n_layer       number of blocks
        n_head        attention heads per block
        n_embd        features per position, a multiple of n_head
        dropout       probability of dropping an element of the embeddings or of what a block adds; nanoGPT also drops
                      attention weights
        bias          whether linear layers and norms have a bias
        experts       feed-forward networks of each block, between which a gate chooses for every token
                      (`nn.MixtureOfExperts`); None: one, as in GPT-2
        top, capacity_factor, balance   of the mixtures of experts

    Shapes: tokens (n, t), integers, t <= block_size -> logits (n, t, vocab_size) of the next token at each position.
    lm_head.weight and transformer.wte.weight are one tensor, counted once: the defaults have 124,439,808 parameters.

    Raises
        ValueError    n_embd is not a multiple of n_head, more positions than block_size, settings of experts without
                      experts

    References
        Radford et al., Language Models are Unsupervised Multitask Learners (2019), section 2.3; Karpathy's nanoGPT.

    >>> model = GPT(vocab_size=65, block_size=32, n_layer=2, n_head=2, n_embd=16)
    >>> model(np.zeros((4, 8), np.int64)).shape
    (4, 8, 65)
    """

    def __init__(
        self,
        vocab_size: int = 50257,
        block_size: int = 1024,
        n_layer: int = 12,
        n_head: int = 12,
        n_embd: int = 768,
        dropout: float = 0.0,
        bias: bool = True,
        experts: int | None = None,
        top: int = 1,
        capacity_factor: float = 1.25,
        balance: float = 0.01,
    ) -> None:
        n_embd = whole_number("GPT: n_embd", n_embd, at_least=1)
        n_head = whole_number("GPT: n_head", n_head, at_least=1)
        if n_embd % n_head:
            raise ValueError(f"GPT: n_embd must be a multiple of n_head, got {n_embd} and {n_head}")
        self.block_size = whole_number("GPT: block_size", block_size, at_least=1)
        mlp: Callable[[], Module] = partial(FeedForward, n_embd, 4 * n_embd, dropout, bias)
        if experts is not None:
            settings = experts, top, capacity_factor, balance, dropout, bias
            mlp = partial(MixtureOfExperts, n_embd, 4 * n_embd, *settings)
        elif (top, capacity_factor, balance) != (1, 1.25, 0.01):
            raise ValueError(
                "GPT: top, capacity_factor and balance are settings of experts: give their number, experts=4"
            )
        self.transformer = Transformer(vocab_size, block_size, n_layer, n_head, n_embd, dropout, bias, mlp)
        self.lm_head = Linear(n_embd, vocab_size, bias=False)
        self.transformer.wte.weight = self.lm_head.weight
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                init.zeros_(parameter)
            elif name.endswith("c_proj.weight"):  # the residual stream sums 2 n_layer of them
                init.normal_(parameter, 0.0, 0.02 / sqrt(2 * n_layer))
            elif parameter.ndim == 2:
                init.normal_(parameter, 0.0, 0.02)

    def forward(self, tokens: Any) -> Tensor:
        return run_stages(self.stages(), tokens)

    def stages(self) -> list[Stage]:
        """The embedding, each block, and the head with the final norm; embedding and head share a weight."""
        embedding, *blocks, norm = self.transformer.stages()

        def embed(tokens: Any) -> Tensor:
            if tokens.ndim != 2 or tokens.shape[1] > self.block_size:
                raise ValueError(f"GPT: tokens (n, t) with t <= {self.block_size} expected, got shape {tokens.shape}")
            features: Tensor = embedding(tokens)
            return features

        def predict(features: Tensor) -> Tensor:
            logits: Tensor = self.lm_head(norm(features))
            return logits

        return [Stage(embed, *embedding.modules), *blocks, Stage(predict, *norm.modules, self.lm_head)]

    @no_grad()
    def attention(self, tokens: np.ndarray) -> np.ndarray:
        """How much each position of the texts attends to each: the weights that the forward pass sums values with.

        Returns (n_layer, n, n_head, t, t); row i of a matrix sums to one and is zero after i. Call `eval()` first to
        switch dropout off.

        >>> model = GPT(vocab_size=65, block_size=32, n_layer=2, n_head=2, n_embd=16)
        >>> model.attention(np.arange(3)[None]).shape
        (2, 1, 2, 3, 3)
        """
        embedding, *_ = self.stages()
        x = embedding(tokens)
        weights = []
        for block in self.transformer.h:
            q, k, _ = block.attn.heads(block.ln_1(x))  # type: ignore[attr-defined]
            weights.append(attention_weights(q, k, None, is_causal=True).numpy())
            x = block(x)
        return np.stack(weights)

    @no_grad()
    def generate(self, tokens: np.ndarray, max_new_tokens: int, temperature: float = 1.0) -> np.ndarray:
        """Continue the texts `tokens` token by token with samples of the model's predictions.

        Parameters
            tokens            (n, t); the last block_size tokens of each text are used
            max_new_tokens    number of tokens to add to each text
            temperature       1 samples the model's probabilities; lower values favour likely tokens, 0 takes the
                              likeliest

        Returns (n, t + max_new_tokens). Call `eval()` first to switch dropout off.
        """
        for _ in range(max_new_tokens):
            logits = self(tokens[:, -self.block_size :]).numpy()[:, -1]
            if temperature > 0:  # argmax of logits / temperature + Gumbel noise samples their softmax
                logits = logits / temperature + random.generator().gumbel(size=logits.shape)
            tokens = np.concatenate([tokens, logits.argmax(axis=1)[:, None]], axis=1)
        return tokens
