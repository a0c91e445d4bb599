"""The tensor: an array that remembers how it was made. `tensor.py` is the place to begin, after `minidl/tape.py`.

tensor.py              Tensor, and `record`, with which every operation ends
methods.py             what else a Tensor can do: operations, which `functional/` binds to it
conversion.py          what a Tensor can be made of
gradients.py           `grad(outputs, inputs)`, and the gradients that leaves keep
hooks.py               functions that are called with a leaf's gradient as soon as it is final
numpy_protocols.py     tensors as arguments of numpy's functions
element_count.py       `x.size`, which can be called as PyTorch's
missing_attributes.py  the message for an attribute of PyTorch's tensors that does not exist here
"""

from minidl.missing_names import callable_module
from minidl.tensor.conversion import as_array
from minidl.tensor.gradients import grad
from minidl.tensor.hooks import RemovableHandle
from minidl.tensor.tensor import Tensor, record

__all__ = ["RemovableHandle", "Tensor", "as_array", "grad", "record"]

callable_module(
    __name__,
    "minidl.tensor is a module: type Tensor(data), which makes numbers and lists float32; Tensor(np.array([1, 2])) "
    "holds integers",
)
