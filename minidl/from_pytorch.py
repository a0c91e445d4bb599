"""Hints for names and options of PyTorch that minidl does not have: what to type instead.

`from_pytorch.md` lists the differences for readers. The tables are on top:

OPTIONS      keyword arguments
OF_TENSORS   attributes of a Tensor
OF_LAYERS    attributes of a Module
OF_MODULES   names of modules

Then `explain_missing_names`, `imports_of` and `callable_module` for modules, `add_hints` for classes, `unknown_option`
and `explains_options` for keyword arguments. What is said of torch.distributed is in `cluster/missing_attributes.py`.
"""

from __future__ import annotations

import ast
import difflib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import wraps
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, NoReturn, ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")

OPTIONS = {  # options that PyTorch has and nothing here
    "amsgrad": "leave it out, the plain rule is used",
    "device": "leave it out, kernels.use('cupy') puts all new tensors on the GPU",
    "dtype": "leave it out, x.to('float64') and model.to('float64') convert",
    "error_if_nonfinite": "leave it out, and see whether the norm that is returned is finite",
    "generator": "leave it out, manual_seed(...) starts the random numbers anew",
    "inplace": "leave it out, the result is always a new tensor",
    "learning_rate": "it is called lr",
    "lr_decay": "leave it out, a schedule such as optim.LambdaLR does it",
    "maximize": "leave it out, and give the loss a minus sign",
    "memory_format": "leave it out, images are (n, c, h, w)",
    "norm_type": "leave it out, the norm is the 2-norm",
    "out": "leave it out, and assign the result",
    "pin_memory": "leave it out, there is no other device to copy to",
    "preserve_rng_state": "leave it out, the second call draws the random numbers of the first",
    "use_reentrant": "leave it out, there is one implementation",
    **dict.fromkeys(("capturable", "differentiable", "foreach", "fused"), "leave it out, there is one implementation"),
    **dict.fromkeys(("layout", "sparse"), "leave it out, arrays and gradients are dense"),
    **dict.fromkeys(("reduce", "size_average"), "type reduction='mean', 'sum' or 'none'"),
}

_OF_TENSORS = {  # also of functions of the same names
    "grad_fn": "a tensor that an operation made has is_leaf == False",
    "retain_grad": "grad(loss, x) gives the gradient of a tensor that is not a leaf",
    "register_hook": "leaves have register_post_accumulate_grad_hook(hook), called with the tensor",
    "data_ptr": "x.data is the array",
    "stride": "x.data.strides are the array's strides, in bytes",
    "type": "x.dtype is the type, x.to(dtype) converts",
    "nonzero": "np.nonzero(x.detach().numpy()) gives the positions",
    "ndimension": "x.ndim is the number of axes",
    "zero_grad": "x.grad = None removes the gradient",
    "nelement": "x.size is the number of elements",
    "scatter": "F.where(mask, a, b) chooses, x.scatter_add(dim, index, source) adds",
    "scatter_": "F.where(mask, a, b) chooses, x.scatter_add(dim, index, source) adds",
    "unbind": "iteration, `for row in x`, walks along the first axis",
    "is_cuda": "x.device is 'cpu' or 'cuda:0'",
    "is_floating_point": "x.dtype is numpy's type",
    "element_size": "x.dtype.itemsize",
    "nbytes": "x.data.nbytes",
    "detach_": "x = x.detach()",
    "ravel": "x.flatten()",
    "copy": "x.clone()",
    "fill": "x.fill_(value)",
    "t": "x.T is the matrix transposed",
    "dot": "x @ y is the inner product of two vectors",
    "mv": "x @ y multiplies a matrix and a vector",
    "addmm": "a + x @ y",
    "expand_as": "x.expand(y.shape)",
    "view_as": "x.view(y.shape)",
    "reshape_as": "x.reshape(y.shape)",
    "type_as": "x.to(y.dtype)",
    "masked_select": "x[mask]",
    "clamp_min": "x.clamp(min=...)",
    "clamp_max": "x.clamp(max=...)",
    "clamp_": "x = x.clamp(...)",
    "relu_": "x = x.relu()",
    "exp_": "x = x.exp()",
    "masked_fill_": "x = x.masked_fill(mask, value)",
    "index_add_": "x = x.index_add(dim, index, source)",
    "scatter_add_": "x = x.scatter_add(dim, index, source)",
    "normal_": "x.copy_(randn(x.shape)), or nn.init.normal_(x)",
    "uniform_": "x.copy_(rand(x.shape)), or nn.init.uniform_(x)",
    "round": "np.round(x.detach().numpy()) is the array of rounded numbers, round(x.item(), 2) one number",
    "floor": "x // 1",
    "ceil": "-(-x // 1)",
    "rsqrt": "x ** -0.5",
    "reciprocal": "1 / x",
    "isinf": "x.abs() == float('inf')",
    "isfinite": "x.abs() < float('inf')",
    "median": "np.median(x.detach().numpy()) is the number",
    "bincount": "np.bincount(x.numpy()) counts",
    "unique": "np.unique(x.numpy()) is the array of distinct numbers",
    "diag": "F.where(eye(n) > 0, x, 0.0) puts a vector on the diagonal, x[range(n), range(n)] reads it",
    "diagonal": "x[range(n), range(n)]",
    "trace": "x[range(n), range(n)].sum()",
    "tile": "x.repeat(...)",
    "repeat_interleave": "x[np.repeat(np.arange(len(x)), n)]",
    "lerp": "x + share * (y - x)",
    "narrow": "x[start : start + length], or x[:, start : start + length]",
    "select": "x[i], or x[:, i]",
    "swapaxes": "x.transpose(0, 1)",
    "movedim": "x.permute(...)",
    "unflatten": "x.reshape(...)",
    "is_contiguous": "x.data.flags.c_contiguous",
    "new_zeros": "zeros(2, 3, dtype=x.dtype)",
    "new_ones": "ones(2, 3, dtype=x.dtype)",
    "equal": "(x == y).all()",
    "allclose": "x.isclose(y).all()",
    "map": "x is an array, not a list: write an expression of x, such as x * 2",
    "append": "F.cat([x, y]) joins tensors",
}
MISSPELLED = {  # attributes of a tensor, as they are often typed
    "backwards": "backward",
    "detatch": "detach",
    "grads": "grad",
    "items": "item",
    "require_grad": "requires_grad",
    "requires_gradient": "requires_grad",
    "reshap": "reshape",
    "shapes": "shape",
    "sofmax": "softmax",
    "squeez": "squeeze",
    "tranpose": "transpose",
    "transpos": "transpose",
    "types": "dtype",
    "unsqeeze": "unsqueeze",
    "unsqueez": "unsqueeze",
}
OF_TENSORS = {**_OF_TENSORS, **{name: f"did you mean {meant!r}?" for name, meant in MISSPELLED.items()}}

OF_LAYERS = {
    "register_forward_hook": "replace the submodule by your own Module that calls it",
    "register_forward_pre_hook": "replace the submodule by your own Module that calls it",
    "register_full_backward_hook": "parameters have register_post_accumulate_grad_hook(hook)",
    "get_parameter": "dict(model.named_parameters())[name]",
    "get_submodule": "dict(model.named_modules())[name]",
    "compile": "kernels.use('numba') runs the compiled kernels",
    "share_memory": "minidl.parallel trains on many nodes",
    "bfloat16": "amp.autocast(dtype='bfloat16') computes in it",
    "type": "model.to(dtype) converts",
}

_HUBER = "type d = (x - y).abs(); m = d.clamp(max=delta); (m * (d - m / 2)).mean()"
_KL_DIV = "type (y * (y.log() - x)).sum() / len(x), for probabilities y and log-probabilities x"
_OF_FUNCTIONS = {
    **_OF_TENSORS,
    "binary_cross_entropy": "type F.binary_cross_entropy_with_logits(scores, targets), without the sigmoid",
    "concat": "type F.cat([x, y], dim)",
    "concatenate": "type F.cat([x, y], dim)",
    "vstack": "type F.cat([x, y], 0)",
    "hstack": "type F.cat([x, y], 1)",
    "mm": "type x @ y",
    "bmm": "type x @ y",
    "baddbmm": "type a + x @ y",
    "huber_loss": _HUBER,
    "kl_div": _KL_DIV,
    "smooth_l1_loss": _HUBER,
    "leaky_relu": "type nn.LeakyReLU(0.01)(x)",
    "silu": "type nn.SiLU()(x), or x * F.sigmoid(x)",
    "swish": "type nn.SiLU()(x), or x * F.sigmoid(x)",
    "elu": "type F.where(x > 0, x, F.exp(F.minimum(x, 0.0)) - 1)",
    "relu6": "type x.clamp(0, 6)",
    "hardtanh": "type x.clamp(-1, 1)",
    "log1p": "type F.log(1 + x)",
    "expm1": "type F.exp(x) - 1",
    "log2": "type F.log(x) / np.log(2)",
    "log10": "type F.log(x) / np.log(10)",
    "tan": "type F.sin(x) / F.cos(x)",
    "normalize": "type x / x.norm(dim=1, keepdim=True)",
    "cosine_similarity": "type (x * y).sum(dim=1) / (x.norm(dim=1) * y.norm(dim=1))",
    "pairwise_distance": "type (x - y).norm(dim=1)",
    "cdist": "type (x[:, None] - y[None]).norm(dim=2)",
    "linalg": "x.norm(), x @ y and F.einsum are there, np.linalg for arrays",
    "interpolate": "x.reshape(n, c, h, 1, w, 1).expand(n, c, h, 2, w, 2).reshape(n, c, 2 * h, 2 * w) doubles images",
    "ones": "type minidl.ones",
    "zeros": "type minidl.zeros",
    "take_along_dim": "type x.gather(dim, index)",
    "numel": "type x.numel()",
    "is_tensor": "type isinstance(x, Tensor)",
}

_LAMBDA = "type optim.LambdaLR(optimizer, lambda epoch: ...), the factor of the initial rate"
OF_MODULES: dict[str, dict[str, str]] = {
    "minidl": {
        **_OF_FUNCTIONS,
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
        "load": "type model.load_state_dict(np.load('model.npz')); parallel.Checkpoint.load(path) reads that of a run",
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
    "minidl.data": {
        "TensorDataset": "type data.Dataset(x, y)",
        "Subset": "type data.Dataset(x[indices], y[indices])",
        "random_split": "type data.Dataset(x[indices], y[indices]) for each slice of a permutation",
        "RandomSampler": "type DataLoader(..., shuffle=True)",
        "SubsetRandomSampler": "type data.Dataset(x[indices], y[indices]) and shuffle=True",
        "WeightedRandomSampler": "DataLoader(order=...) says which samples an epoch visits",
        "IterableDataset": "a DataLoader needs __len__ and __getitem__",
        "default_collate": "a DataLoader stacks the pairs by itself",
    },
    "minidl.nn": {
        "BCELoss": "type nn.BCEWithLogitsLoss(), and leave out the sigmoid before it",
        "BatchNorm3d": "nn.BatchNorm1d and nn.BatchNorm2d are there",
        "Conv3d": "nn.Conv2d is there",
        "ConvTranspose2d": "enlarge the image (see nn.Upsample), then nn.Conv2d",
        "DataParallel": "minidl.parallel trains on many nodes",
        "ELU": "nn.GELU, nn.SiLU and nn.LeakyReLU are there",
        "GRU": "type nn.LSTM",
        "HuberLoss": _HUBER,
        "KLDivLoss": _KL_DIV,
        "SmoothL1Loss": _HUBER,
        "GRUCell": "type nn.LSTMCell",
        "InstanceNorm2d": "type nn.GroupNorm(c, c)",
        "MaxPool1d": "type nn.MaxPool2d((1, k)) on images of height 1",
        "Mish": "nn.SiLU and nn.GELU are there",
        "ModuleDict": "type nn.ModuleList, or assign each module to an attribute",
        "PReLU": "type nn.LeakyReLU",
        "ParameterList": "assign each nn.Parameter to an attribute: setattr(self, f'weight{i}', nn.Parameter(...))",
        "ReLU6": "x.clamp(0, 6) in a forward does it",
        "Softplus": "F.softplus(x) in a forward does it",
        "TransformerEncoderLayer": "nn.models has a GPT, nn.MultiheadAttention the attention",
        "Unflatten": "x.reshape(...) in a forward does it",
        "Upsample": "x.reshape(n, c, h, 1, w, 1).expand(n, c, h, 2, w, 2).reshape(n, c, 2 * h, 2 * w) does it",
        "functional": "type from minidl import functional as F",
        "parallel": "minidl.parallel trains on many nodes",
        "utils": "type nn.clip_grad_norm_",
    },
    "minidl.nn.init": {
        "orthogonal_": "type nn.init.xavier_uniform_",
        "trunc_normal_": "type nn.init.normal_",
        "eye_": "type weight.copy_(np.eye(*weight.shape))",
    },
    "minidl.optim": {
        "lr_scheduler": "the schedules are in optim itself: type optim.StepLR",
        "LBFGS": "parallel.SandblasterLBFGS trains by it; type optim.Adam for an optimizer",
        "NAdam": "type optim.Adam",
        "RAdam": "type optim.Adam",
        "Adamax": "type optim.Adam",
        "Adadelta": "type optim.RMSprop",
        "ExponentialLR": "type optim.StepLR(optimizer, step_size=1, gamma=gamma)",
        "ConstantLR": "type optim.MultiStepLR, or optim.LambdaLR",
        "ReduceLROnPlateau": "change group['lr'] of optimizer.param_groups where the validation loss stays",
        "SequentialLR": "schedules on one optimizer multiply: a LinearLR and a StepLR warm up and drop",
        **dict.fromkeys(("OneCycleLR", "CyclicLR", "PolynomialLR", "CosineAnnealingWarmRestarts"), _LAMBDA),
    },
    "minidl.functional": _OF_FUNCTIONS,
}


class Missing:
    """An attribute that is not there, and says what to type."""

    def __init__(self, name: str, hint: str) -> None:
        self._name, self._hint = name, hint

    def __get__(self, instance: Any, owner: type) -> NoReturn:
        raise AttributeError(
            f"{owner.__name__!r} object has no attribute {self._name!r}: {self._hint}", name=self._name
        )


def add_hints(kind: type, hints: Mapping[str, str]) -> None:
    """Set a hint for each attribute that the class does not have.

    The hints are descriptors, one for each name. A single `__getattr__` would be shorter, but Python reads every
    attribute of a class with `__getattr__` more slowly.
    """
    for name, hint in hints.items():
        setattr(kind, name, Missing(name, hint))


def without_missing(names: Iterable[str], kind: type) -> list[str]:
    """The names for `dir()`: those of attributes that are missing are left out."""
    missing = {name for each in kind.__mro__ for name, value in vars(each).items() if isinstance(value, Missing)}
    return [name for name in names if name not in missing]


def explain_missing_names(
    module: str,
    there: Iterable[str],
    hints: Mapping[str, str] = MappingProxyType({}),
    elsewhere: str | None = None,
    subpackages: Collection[str] = (),
    on_demand: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Let a wrong name of a module raise an error with a hint, by giving the module a `__getattr__`.

    The hint is of `OF_MODULES`, `hints` or `elsewhere`, else the most similar name in `there`. The `__getattr__` is
    set at run time, because a type checker that sees one accepts every name.

    Parameters
        module       its name
        there        the names that it has
        hints        more hints, by name
        elsewhere    a subpackage; for a name that this has instead, the hint says so
        subpackages  modules below this one that `dir` lists; any is imported when it is first named
        on_demand    names that are imported when they are first named, and the modules that have them

    >>> layers = sys.modules["layers"] = ModuleType("layers")
    >>> explain_missing_names("layers", ["Linear"])
    >>> layers.linaer
    Traceback (most recent call last):
    AttributeError: module 'layers' has no attribute 'linaer': did you mean 'Linear'?
    """
    own, instead = vars(sys.modules[module]), {**hints, **OF_MODULES.get(module, {})}
    lower = {name.lower(): name for name in (*there, *subpackages)}

    def find(name: str) -> Any:
        if on_demand.get(name, module) != module:
            value = own[name] = getattr(__import__(on_demand[name], fromlist=[name]), name)  # from ... import name
            return value
        if "__path__" in own and name[0] != "_" and importlib.util.find_spec(f"{module}.{name}"):
            return importlib.import_module(f"{module}.{name}")
        message = f"module {module!r} has no attribute {name!r}"
        if name in instead:
            message += f": {instead[name]}"
        elif elsewhere and name in importlib.import_module(f"{module}.{elsewhere}").__all__:
            message += f": type {elsewhere}.{name}"
        elif not name.startswith("_"):
            nearest = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.8)
            message += f": did you mean {lower[nearest[0]]!r}?" if nearest else ""
        raise AttributeError(message, name=name)

    own["__getattr__"] = find
    if subpackages or on_demand:
        own["__dir__"] = lambda: sorted({*own, *there, *subpackages})


def imports_of(file: str) -> dict[str, str]:
    """The names that a package's `__init__.py` imports, and from where; also below `if TYPE_CHECKING:`.

    So a name that is imported on demand is written once, where type checkers find it.
    """
    nodes = ast.walk(ast.parse(Path(file).read_text(encoding="utf-8")))
    return {one.name: node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) for one in node.names}


def callable_module(module: str, message: str) -> None:
    """Let a call of the module `module` raise TypeError with `message`."""

    class CalledModule(ModuleType):
        def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
            raise TypeError(message)

        def __reduce__(self) -> tuple[Any, ...]:
            return importlib.import_module, (module,)  # by its name, as cloudpickle does with modules

    sys.modules[module].__class__ = CalledModule


def unknown_option(function: Callable[..., Any], name: str, options: Iterable[str]) -> None:
    """Raise TypeError for the first of `options` that `function`, called `name`, does not take."""
    parameters = inspect.signature(function).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    for option in options:
        if option not in parameters:
            own = ", ".join(parameter for parameter in parameters if parameter != "self")
            reason = OPTIONS.get(option, f"its arguments are {own}" if own else "it takes no arguments")
            raise TypeError(f"{name} has no option {option!r}: {reason}")


def explains_options(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The function; a keyword argument that it does not take is answered with what to type instead."""

    @wraps(function)
    def explained(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        if kwargs:
            unknown_option(function, f"{function.__name__}()", kwargs)
        return function(*args, **kwargs)

    return explained
