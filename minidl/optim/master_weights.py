"""Master weights: each 16-bit parameter has a float32 copy, in which its updates add up.

    master = master - step            in float32, by the optimizer's rule
    weight = master, rounded to 16 bits

A weight w in bfloat16 is a multiple of about |w| / 128, in float16 of |w| / 1024. A step of less than half of that
changes nothing if it is added to w itself, however often it is repeated; in the master such steps add up.

The master of a weight that somebody else has written (an average with other nodes, weights that were loaded) is out of
date: rounded, it is not the weight. It begins anew with the weight.

References
    Micikevicius et al., Mixed precision training (arXiv:1710.03740), section 3.1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minidl.kernels import Array
from minidl.kernels.sixteen_bit import cast

MASTER = "master_param"
"""The master's name in the optimizer's state of its parameter, as in NVIDIA's Apex."""

FLOAT32 = np.dtype(np.float32)


def master_of(data: Array, state: dict[str, Any]) -> Array:
    """The master in the state of the parameter with these weights; it is made if there is none.

    Where the weight is not the master rounded, bit by bit, the master becomes the weight.
    """
    if MASTER not in state:
        state[MASTER] = data.astype(FLOAT32, order="C")
    master: Array = state[MASTER]
    written = cast(master, data.dtype).view(np.uint16) != data.view(np.uint16)
    master[written] = data[written]
    return master
