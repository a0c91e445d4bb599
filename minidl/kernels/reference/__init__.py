"""The kernels in readable numpy; the same code runs on CuPy arrays, through each array's own module."""

from minidl.kernels.reference.activations import *
from minidl.kernels.reference.arithmetic import *
from minidl.kernels.reference.convolution import *
from minidl.kernels.reference.normalization import *
from minidl.kernels.reference.pooling import *
from minidl.kernels.reference.products import *
from minidl.kernels.reference.reductions import *
from minidl.kernels.reference.softmax import *
from minidl.kernels.reference.updates import *
from minidl.kernels.sixteen_bit import widening as _widening

globals().update(
    {name: _widening(kernel) for name, kernel in list(globals().items()) if callable(kernel) and name[0] != "_"}
)
