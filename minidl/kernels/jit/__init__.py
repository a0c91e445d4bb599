"""The kernels, compiled by numba where that pays; all others are the reference's.

Read `powers.py` first: a function that prepares arrays, and the compiled loop that it calls.

kernels, as in `reference/`    activations.py powers.py remainders.py reductions.py softmax.py pooling.py convolution.py
                               recurrent.py batch_norm.py layer_norm.py group_norm.py products.py (linear) sparse.py
                               updates.py (optimizers)
their loops                    elementary.py (exp, log) summation.py maxima.py running.py (sums) softmax_columns.py
                               batch_norm_rows.py layer_norm_short.py xhat.py
                               convolution_of_pixels.py convolution_by_product.py convolution_by_sliding.py
                               sliding.py rows.py (copied, split, merged)
                               vectors.py (numbers that stay in registers)
which arrays, in what order    eligible.py memory_order.py axes.py (of reductions) layout.py (of padded images)
float32 to 16 bits and back    float16.py bfloat16.py
how they are compiled          compiled.py function_attributes.py never_inlined.py
                               first_calls.py (warm-up) side_by_side.py (its processes)
the memory of their results    memory.py
"""

from minidl.kernels.reference import *  # noqa: I001  (what follows replaces some of these)
from minidl.kernels.jit.activations import *
from minidl.kernels.jit.batch_norm import *
from minidl.kernels.jit.convolution import *
from minidl.kernels.jit.group_norm import *
from minidl.kernels.jit.layer_norm import *
from minidl.kernels.jit.pooling import *
from minidl.kernels.jit.arithmetic import *
from minidl.kernels.jit.products import *
from minidl.kernels.jit.activations import *
from minidl.kernels.jit.reductions import *
from minidl.kernels.jit.arithmetic import *
from minidl.kernels.jit.softmax import *
from minidl.kernels.jit.updates import *
from minidl.kernels.jit.updates import *
from minidl.kernels.jit import memory

memory.keep_freed_memory()
