"""minidl: parallel deep learning from scratch.

The learning side: `tensor` (the autograd engine), `functional` (differentiable operations), `nn` (layers and models),
`optim` (update rules and schedules), `data`, `amp` (activations in 16 bits); below it `kernels`, the arithmetic on
arrays. The cluster side: `cluster`, nodes that talk, and `compress`, smaller gradients. On both: `parallel`, training
on many nodes. On its own: `mini`, the core, the whole subject in at most 700 lines, to be read in full.

>>> from minidl import Tensor
>>> x = Tensor([1.0, 2.0, 3.0], requires_grad=True)
>>> (x**2).sum().backward()
>>> x.grad
array([2., 4., 6.], dtype=float32)
"""

from minidl.instruction_set import use_avx512

use_avx512()  # before anything loads numpy

from minidl import functional, kernels, nn  # noqa: E402
from minidl.creation import (  # noqa: E402
    arange,
    eye,
    full,
    ones,
    ones_like,
    rand,
    randint,
    randn,
    randn_like,
    zeros,
    zeros_like,
)
from minidl.functional.operation import operation  # noqa: E402
from minidl.grad_mode import enable_grad, is_grad_enabled, no_grad  # noqa: E402
from minidl.gradcheck import gradcheck  # noqa: E402
from minidl.missing_names import explain_missing_names  # noqa: E402
from minidl.random import manual_seed  # noqa: E402
from minidl.recomputation import checkpoint  # noqa: E402
from minidl.tensor import Tensor, backward, dependency_graph, grad  # noqa: E402

__version__ = "0.1.0"  # read by pyproject.toml, too

__all__ = [
    "Tensor",
    "__version__",
    "arange",
    "backward",
    "checkpoint",
    "dependency_graph",
    "enable_grad",
    "eye",
    "full",
    "functional",
    "grad",
    "gradcheck",
    "is_grad_enabled",
    "kernels",
    "manual_seed",
    "nn",
    "no_grad",
    "ones",
    "ones_like",
    "operation",
    "rand",
    "randint",
    "randn",
    "randn_like",
    "zeros",
    "zeros_like",
]

explain_missing_names(
    __name__,
    __all__,
    {
        **functional.missing_functions.INSTEAD,
        **{name: f"type functional.{name}" for name in functional.__all__},
        "autograd": "minidl.grad gives gradients, @operation makes an operation with its own gradient",
        "as_tensor": "type Tensor(data)",
        "from_numpy": "type Tensor(array), which shares the array's memory",
        "FloatTensor": "type Tensor(data)",
        "LongTensor": "type Tensor(np.array(data)), which keeps the integers",
        "backends": "minidl.kernels chooses how things are computed",
        "bernoulli": "type rand(2, 3) < p",
        "compile": "kernels.use('numba') runs the compiled kernels",
        "cuda": "kernels.use('cupy') puts all new tensors on the GPU",
        "device": "tensors are not moved: leave it out, or call kernels.use('cupy') for the GPU",
        "empty": "type zeros(2, 3)",
        "full_like": "type full(x.shape, value)",
        "inf": "type float('inf')",
        "inference_mode": "type no_grad",
        "linspace": "type Tensor(np.linspace(0, 1, 5, dtype=np.float32))",
        "load": "type model.load_state_dict(np.load('model.npz'))",
        "multinomial": "minidl.random.generator().choice(len(p), p=p) draws",
        "normal": "type mean + std * randn(2, 3)",
        "pi": "type np.pi",
        "randperm": "type minidl.random.generator().permutation(n)",
        "save": "type np.savez('model.npz', **model.state_dict())",
        "set_grad_enabled": "type no_grad() or enable_grad()",
        "utils": "the DataLoader is minidl.data.DataLoader, gradients are clipped by nn.clip_grad_norm_",
        **dict.fromkeys(("Size", "finfo", "iinfo"), "shapes and types are Python's and numpy's: tuple, np.finfo"),
        **{
            name: f"types are numpy's: type np.{kind}"
            for name, kind in {
                **{
                    kind: kind for kind in ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8")
                },
                "double": "float64",
                "float": "float32",
                "half": "float16",
                "long": "int64",
                "int": "int32",
                "bool": "bool_",
            }.items()
        },
        "bfloat16": "type 'bfloat16', or ml_dtypes.bfloat16",
    },
    subpackages=("amp", "cluster", "compress", "data", "optim", "parallel", "plots"),
)
