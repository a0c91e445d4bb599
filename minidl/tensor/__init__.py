"""The tensor: an array that remembers how it was made. Read `tensor.py` first, after `minidl/tape.py`.

tensor.py              Tensor, and `record`, with which every operation ends
methods.py             the operations that `functional/` binds to Tensor
conversion.py          the data that a Tensor accepts
gradients.py           `backward(tensors, gradients)`, which adds to the `.grad` of leaves, and `grad(outputs, inputs)`
dependency_graph.py    the tasks of a step: what each costs, and what it has to wait for; the depth of a graph
numpy_protocols.py     tensors as arguments of numpy's functions
"""

from importlib import import_module

from minidl.from_pytorch import callable_module
from minidl.tensor.conversion import as_array
from minidl.tensor.dependency_graph import dependency_graph, depth
from minidl.tensor.gradients import backward, grad
from minidl.tensor.tensor import RemovableHandle, Tensor, record

__all__ = ["RemovableHandle", "Tensor", "as_array", "backward", "dependency_graph", "depth", "grad", "record"]

callable_module(
    __name__,
    "minidl.tensor is a module: type Tensor(data), which makes numbers and lists float32; Tensor(np.array([1, 2])) "
    "holds integers",
)
import_module("minidl.functional")  # binds its operations to Tensor: no Tensor is without them, wherever it came from
