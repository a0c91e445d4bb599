"""The kernels, compiled by numba where that pays; all others are the reference's.

Read `activations.py` first: loops over the numbers of an array.

kernels, as in `reference/`    activations.py (and LSTM) arithmetic.py reductions.py softmax.py pooling.py
                               convolution.py batch_norm.py layer_norm.py group_norm.py products.py
                               updates.py (optimizers)
their loops                    elementary.py (exp, log) summation.py maxima.py softmax_columns.py xhat.py
                               convolution_by_product.py convolution_by_sliding.py
                               sliding.py rows.py (copied, split, merged)
                               vectors.py (numbers that stay in registers)
which arrays, in what order    eligible.py memory_order.py axes.py (of reductions) layout.py (of padded images)
float32 to 16 bits and back    conversions.py
compressors of gradients       few_entries.py few_bits.py
how they are compiled          compiled.py function_attributes.py
                               first_calls.py (warm-up) side_by_side.py (its processes)
"""

import ctypes  # noqa: I001  (the kernels of this folder replace some of the reference's)
import sys

from minidl.kernels.reference import *
from minidl.kernels.jit.activations import *
from minidl.kernels.jit.arithmetic import *
from minidl.kernels.jit.batch_norm import *
from minidl.kernels.jit.convolution import *
from minidl.kernels.jit.group_norm import *
from minidl.kernels.jit.layer_norm import *
from minidl.kernels.jit.pooling import *
from minidl.kernels.jit.products import *
from minidl.kernels.jit.reductions import *
from minidl.kernels.jit.softmax import *
from minidl.kernels.jit.updates import *


def _keep_freed_memory() -> None:
    """Tell the C library (glibc; elsewhere nothing happens) not to return freed arrays up to 32 MiB to the system.

    Every training step allocates and frees the same arrays. By default large ones are returned to the system, which
    then provides new, cleared pages, one interrupt each. Measured on ResNet-8, 64 images of 32x32: 15,300 such
    interrupts per step, 32 ms of 142; none after this call. In return, up to 1 GiB once used stays with the process.
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(-3, 32 << 20)  # M_MMAP_THRESHOLD of <malloc.h>: the largest value that glibc takes
        mallopt(-1, 1 << 30)  # M_TRIM_THRESHOLD


_keep_freed_memory()
