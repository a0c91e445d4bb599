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

import numpy as np

from minidl.kernels import Array
from minidl.kernels.sixteen_bit import cast

MASTER = "master_param"
"""The master's name in the optimizer's state of its parameter, as in NVIDIA's Apex."""

FLOAT32 = np.dtype(np.float32)


def new_master(data: Array) -> Array:
    """The weights in float32."""
    return data.astype(FLOAT32, order="C")


def brought_up_to_date(master: Array, data: Array) -> Array:
    """The master, changed to the weight wherever that is not the master rounded, bit by bit."""
    written = cast(master, data.dtype).view(np.uint16) != data.view(np.uint16)
    master[written] = data[written]
    return master
