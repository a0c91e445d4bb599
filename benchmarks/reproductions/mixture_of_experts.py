"""Mixtures of experts: more weights at the same arithmetic learn more from the same text.

Fedus et al. (Switch Transformers, arXiv:2101.03961), table 1 and figure 4: with one expert for each token, a model of
many experts does the arithmetic of a dense one for a token, and needs fewer steps to the same loss; more experts are
better. Equation 4: a small loss on the gate keeps the experts' load even, so that few tokens are dropped.

Here: a GPT of 2 layers, width 32 and context 32, on the source of Python's standard library, one epoch, minibatches of
32, AdamW; its feed-forward networks dense, or 4 or 8 experts with top 1 and capacity factor 1, where the slots of all
experts are as many as the tokens; and 8 experts without the load-balancing loss. The experts are divided between two
simulated nodes (`Hybrid(ep=2)`), whose all-to-alls are counted. 2 seeds.

It must show: flops of a forward pass within 10 % of the dense model's; a lower test loss with experts, and a lower one
with 8 than with 4; fewer dropped tokens with the load-balancing loss; the bytes of all all-to-alls equal to the formula.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.reproductions.reproduction import Reproduction, main
from minidl import data, nn, optim, parallel
from minidl.parallel.experts import dispatched_bytes
from minidl.plots import style

TITLE = "More weights at the same flops (Switch Transformers)"

SEEDS = range(2)
LAYERS, WIDTH, CONTEXT, BATCH, NODES = 2, 32, 32, 32, 2
WAYS: dict[str, dict[str, Any]] = {
    "dense": {},
    "4 experts": {"experts": 4, "capacity_factor": 1.0},
    "8 experts": {"experts": 8, "capacity_factor": 1.0},
    "8 experts, no balance": {"experts": 8, "capacity_factor": 1.0, "balance": 0.0},
}
