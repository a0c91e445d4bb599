"""GPT-2: blocks of attention and a small network, which read a text and say for each position what comes next."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from minidl import functional as F
from minidl import random
from minidl.nn import init
from minidl.nn.container import ModuleList
from minidl.nn.dropout import Dropout
from minidl.nn.embedding import Embedding
from minidl.nn.linear import Linear
from minidl.nn.module import Module
from minidl.nn.normalization import LayerNorm
from minidl.tape import no_grad
from minidl.tensor import Tensor


class CausalSelfAttention(Module):
    """Every position takes what it wants from the positions before it (and itself), in n_head ways at once."""

    def __init__(self, n_embd: int, n_head: int, dropout: float, bias: bool) -> None:
        self.n_head = n_head
        self.c_attn = Linear(n_embd, 3 * n_embd, bias)  # query, key and value of all heads in one product
        self.c_proj = Linear(n_embd, n_embd, bias)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        n, t, n_embd = x.shape
        heads = self.c_attn(x).reshape(n, t, 3, self.n_head, n_embd // self.n_head).transpose(2, 0, 3, 1, 4)
        out = F.scaled_dot_product_attention(heads[0], heads[1], heads[2], is_causal=True)  # (n, n_head, t, features)
        return self.dropout(self.c_proj(out.transpose(1, 2).reshape(n, t, n_embd)))


class FeedForward(Module):
    """Two linear layers with GELU between them, at every position by itself."""

    def __init__(self, n_embd: int, dropout: float, bias: bool) -> None:
        self.c_fc = Linear(n_embd, 4 * n_embd, bias)
        self.c_proj = Linear(4 * n_embd, n_embd, bias)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.c_proj(F.gelu(self.c_fc(x))))


class Block(Module):
    """x + attention(norm(x)), then x + feed_forward(norm(x))."""

    def __init__(self, n_embd: int, n_head: int, dropout: float, bias: bool) -> None:
        self.ln_1 = LayerNorm(n_embd, bias=bias)
        self.attn = CausalSelfAttention(n_embd, n_head, dropout, bias)
        self.ln_2 = LayerNorm(n_embd, bias=bias)
        self.mlp = FeedForward(n_embd, dropout, bias)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Transformer(Module):
    """Tokens to features: embeddings of token and position, the blocks, a last norm."""

    def __init__(
        self, vocab_size: int, block_size: int, n_layer: int, n_head: int, n_embd: int, dropout: float, bias: bool
    ) -> None:
        self.wte = Embedding(vocab_size, n_embd)
        self.wpe = Embedding(block_size, n_embd)
        self.drop = Dropout(dropout)
        self.h = ModuleList(Block(n_embd, n_head, dropout, bias) for _ in range(n_layer))
        self.ln_f = LayerNorm(n_embd, bias=bias)

    def forward(self, tokens: Any) -> Tensor:
        x = self.drop(self.wte(tokens) + self.wpe(np.arange(tokens.shape[1])))
        for block in self.h:
            x = block(x)
        return self.ln_f(x)


class GPT(Module):
    """A language model with nanoGPT's layout, names and initialisation; the defaults are GPT-2's smallest.

    tokens: integers (n, t), t <= block_size -> logits (n, t, vocab_size): for every position, of the token after it.
    lm_head.weight is transformer.wte.weight: one tensor, counted once (GPT-2's 124M: 124,439,808 parameters).
    dropout: on the embeddings and on what each block adds (nanoGPT's is also on the attention's weights).
    Errors: ValueError for n_embd that is no multiple of n_head, and for more positions than block_size.
    Source: Radford et al., Language Models are Unsupervised Multitask Learners (2019), section 2.3; Karpathy's nanoGPT.

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
    ) -> None:
        if n_head < 1 or n_embd % n_head:
            raise ValueError(f"GPT: n_embd must be a multiple of n_head, got {n_embd} and {n_head}")
        self.block_size = block_size
        self.transformer = Transformer(vocab_size, block_size, n_layer, n_head, n_embd, dropout, bias)
        self.lm_head = Linear(n_embd, vocab_size, bias=False)
        self.transformer.wte.weight = self.lm_head.weight
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                init.zeros_(parameter)
            elif name.endswith("c_proj.weight"):  # 2 n_layer of them are added up along the residual stream
                init.normal_(parameter, 0.0, 0.02 / sqrt(2 * n_layer))
            elif parameter.ndim == 2:
                init.normal_(parameter, 0.0, 0.02)

    def forward(self, tokens: Any) -> Tensor:
        if tokens.ndim != 2 or tokens.shape[1] > self.block_size:
            raise ValueError(f"GPT: tokens (n, t) with t <= {self.block_size} expected, got shape {tokens.shape}")
        return self.lm_head(self.transformer(tokens))

    @no_grad()
    def generate(self, tokens: np.ndarray, max_new_tokens: int, temperature: float = 1.0) -> np.ndarray:
        """Continue the texts `tokens` (n, t), token after token, drawn from the model's own predictions.

        Each position sees the last block_size tokens. temperature: below 1 likely tokens become likelier still; 0 takes
        the likeliest. Returns (n, t + max_new_tokens). Call `eval()` before, so that dropout is off.
        """
        for _ in range(max_new_tokens):
            logits = self(tokens[:, -self.block_size :]).numpy()[:, -1]
            if temperature > 0:  # the largest of logits / temperature + Gumbel noise is a draw from their softmax
                logits = logits / temperature + random.generator().gumbel(size=logits.shape)
            tokens = np.concatenate([tokens, logits.argmax(axis=1)[:, None]], axis=1)
        return tokens
