"""The kernels compiled by numba where that pays; the reference's for all others."""

from minidl.kernels.reference import *  # noqa: I001  (what follows replaces some of these)
from minidl.kernels.jit.activations import *
from minidl.kernels.jit.batch_norm import *
from minidl.kernels.jit.convolution import *
from minidl.kernels.jit.group_norm import *
from minidl.kernels.jit.layer_norm import *
from minidl.kernels.jit.pooling import *
from minidl.kernels.jit.powers import *
from minidl.kernels.jit.recurrent import *
from minidl.kernels.jit.reductions import *
from minidl.kernels.jit.remainders import *
from minidl.kernels.jit.softmax import *
from minidl.kernels.jit.sparse import *
from minidl.kernels.jit.updates import *
from minidl.kernels.jit import memory
from minidl.kernels.jit.first_calls import warm_up as warm_up

memory.keep_freed_memory()
