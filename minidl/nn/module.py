"""Module: a function with parameters, made of smaller modules.

A module is described by its attributes: those that are a Parameter are trained, those that are a Buffer are kept with
the model but not trained, and those that are a Module are its children. Everything below follows from that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

import numpy as np

from minidl import kernels
from minidl.from_pytorch import OF_LAYERS, OPTIONS, add_hints, unknown_option, without_missing
from minidl.kernels.sixteen_bit import bfloat16_from_void, is_floating_point, is_sixteen_bit
from minidl.nn.parameter import Buffer, Parameter, on_new
from minidl.tensor import as_array

if TYPE_CHECKING:
    from minidl.nn.stages import Stage

_T = TypeVar("_T")

_LATER = "num_batches_tracked"
"""Batch norm's buffer that states saved before PyTorch 0.4.1 lack; it then keeps its value, as in PyTorch."""

_DEVICES = ("cpu", "cuda", "gpu", "mps")
_NO_DEVICE = (
    "{call}: models are not moved to a device. Everything is computed on the processor; for an NVIDIA GPU call "
    "kernels.use('cupy') before the model is made"
)


class IncompatibleKeys(NamedTuple):
    """Names that `load_state_dict` did not find in the given state, and names there that the module lacks."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class Module:
    """Base class of layers and models: `__init__` makes parameters and submodules, `forward` computes with them.

    >>> from minidl import Tensor
    >>> class Scale(Module):
    ...     def __init__(self):
    ...         self.factor = Parameter([2.0])
    ...     def forward(self, x):
    ...         return self.factor * x
    >>> scale = Scale()
    >>> scale(Tensor([3.0])).item()
    6.0
    >>> [name for name, parameter in scale.named_parameters()]
    ['factor']

    A tensor or module with two names is tied: `parameters()` and `modules()` return it once, `state_dict()` under both
    names. Modules can be pickled and deep-copied; ties are kept.
    """

    training: bool = True
    stays_float32: tuple[str, ...] = ()
    """Buffers that are float32 where the model is float16 or bfloat16."""

    def __new__(cls, *args: Any, **options: Any) -> Self:
        if (args or options) and cls.__module__.startswith("minidl."):
            if cls.__init__ is object.__init__:
                reason = OPTIONS.get(next(iter(options), "inplace"), "leave it out")
                raise TypeError(f"{cls.__name__} takes no arguments: {reason}")
            unknown_option(cls.__init__, cls.__name__, options)
        elif (args or options) and cls.__init__ is object.__init__:
            raise TypeError(f"{cls.__name__}() takes no arguments")
        module = super().__new__(cls)
        if (notify := on_new.get()) is not None:
            notify(module)
        return module

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} needs a method forward(self, ...) that says what it computes")

    # ---- parameters, buffers and submodules ----

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """Yield every parameter once, with its first name: the module's own, then those of its children in order."""
        yield from _once((name, p) for name, p in self._named_tensors() if isinstance(p, Parameter))

    def parameters(self) -> Iterator[Parameter]:
        """Yield every parameter once."""
        return (parameter for _, parameter in self.named_parameters())

    def named_buffers(self) -> Iterator[tuple[str, Buffer]]:
        """Yield every buffer once, with its first name."""
        yield from _once((name, b) for name, b in self._named_tensors() if isinstance(b, Buffer))

    def buffers(self) -> Iterator[Buffer]:
        """Yield every buffer once."""
        return (buffer for _, buffer in self.named_buffers())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Yield the modules directly below this one, each once, with their names."""
        yield from _once(self._members(Module))

    def children(self) -> Iterator[Module]:
        """Yield the modules directly below this one, each once."""
        return (child for _, child in self.named_children())

    def named_modules(self) -> Iterator[tuple[str, Module]]:
        """Yield this module (named "") and all below it, each once, parents before children."""
        yield from _once(self._named_modules(""))

    def modules(self) -> Iterator[Module]:
        """Yield this module and all below it, each once, parents before children."""
        return (module for _, module in self.named_modules())

    def register_buffer(self, name: str, data: Any) -> None:
        """Make the attribute `name` a buffer: saved with the model but not trained."""
        setattr(self, name, Buffer(data))

    def register_parameter(self, name: str, parameter: Parameter | None) -> None:
        """Make `parameter` the attribute `name`."""
        setattr(self, name, parameter)

    def add_module(self, name: str, module: Module | None) -> None:
        """Make `module` the attribute `name`, a child of this module."""
        setattr(self, name, module)

    def apply(self, function: Callable[[Module], object]) -> Self:
        """Call `function` on every module, children first, then this one; for example to initialise weights.

        >>> from minidl import nn
        >>> def constant(module):
        ...     if isinstance(module, nn.Linear):
        ...         nn.init.constant_(module.weight, 0.5)
        >>> nn.Sequential(nn.Linear(2, 1), nn.ReLU()).apply(constant)[0].weight
        Tensor([[0.5, 0.5]], float32, requires_grad=True)
        """
        for child in self.children():
            child.apply(function)
        function(self)
        return self

    def ties(self) -> list[tuple[str, ...]]:
        """Return all names of each tensor that has more than one, such as GPT's embedding and head.

        Modules that share a tensor are tied; stages on different ranks that share one sum its gradients.

        >>> from minidl import nn
        >>> nn.models.GPT(vocab_size=5, block_size=4, n_layer=1, n_head=1, n_embd=2).ties()
        [('transformer.wte.weight', 'lm_head.weight')]
        """
        names: dict[Parameter | Buffer, list[str]] = {}
        for name, tensor in self._named_tensors():
            names.setdefault(tensor, []).append(name)
        return [tuple(several) for several in names.values() if len(several) > 1]

    # ---- the stages ----

    def stages(self) -> list[Stage]:
        """Return the stages of forward in order; the model can be cut between any two. See `nn.Stage`.

        Each stage takes the output of the one before; together they compute what forward does. Every parameter and
        buffer belongs to at least one. A subclass that changes forward must also redefine stages. Raises
        NotImplementedError if the class defines none.
        """
        raise NotImplementedError(
            f"{type(self).__name__} does not say where it can be cut: define stages(self), a list of nn.Stage in the "
            "order of its forward"
        )

    # ---- the state ----

    def state_dict(self) -> dict[str, np.ndarray]:
        """Return copies of all parameters and buffers as numpy arrays, under PyTorch's names and in its order.

        Later training does not change the copies. A tied tensor is copied once: its names share one array. For a model
        made in `nn.building`, only the tensors and shards of this rank.

        >>> from minidl import nn
        >>> {name: array.shape for name, array in nn.Linear(3, 2).state_dict().items()}
        {'weight': (2, 3), 'bias': (2,)}
        """
        copies: dict[Parameter | Buffer, np.ndarray] = {}
        state = {}
        for name, tensor in self._named_tensors():
            if not tensor._left_out:
                if tensor not in copies:
                    copies[tensor] = tensor.numpy().copy()
                state[name] = copies[tensor]
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> IncompatibleKeys:
        """Copy arrays into the parameters and buffers of the same names.

        Parameters
            state_dict    names and arrays: numpy's, or PyTorch's tensors on the CPU
            strict        refuse missing and unexpected names; False: ignore and return them

        Arrays are copied in place, so that ties and views see them; each tensor keeps its dtype. Tensors that this rank
        does not hold are skipped; a sharded parameter takes its shard of the whole array.

        Raises
            ValueError    lists all missing and unexpected names and wrong shapes; nothing is copied then
        """
        if not hasattr(state_dict, "keys"):
            given = type(state_dict).__name__
            raise TypeError(
                f"a dict of names and arrays is expected, such as state_dict() or, of a run, "
                f"parallel.Checkpoint.load(path).model, not a {given}"
            )
        tensors = dict(self._named_tensors())
        unexpected = [name for name in state_dict if name not in tensors]
        tensors = {name: tensor for name, tensor in tensors.items() if not tensor._left_out}
        missing = [name for name in tensors if name not in state_dict and not name.endswith(_LATER)]
        problems = []
        if strict and missing:
            problems.append(f"missing: {', '.join(missing)}")
        if strict and unexpected:
            problems.append(f"unexpected: {', '.join(map(str, unexpected))}")
        arrays = {name: state_dict[name] for name in tensors if name in state_dict}
        for name, value in arrays.items():
            try:
                arrays[name] = bfloat16_from_void(as_array(value))
            except TypeError as error:
                problems.append(f"{name}: {error}")
            else:
                if (shard := getattr(tensors[name], "shard", None)) is not None:
                    arrays[name] = shard.taken_from(arrays[name], tensors[name].shape)
                if arrays[name].shape != tensors[name].shape:
                    problems.append(f"{name}: has shape {arrays[name].shape}, the model needs {tensors[name].shape}")
        if problems:
            if advice := _behind_a_prefix(list(tensors), list(map(str, state_dict))):
                problems = [advice]
            raise ValueError(f"this state does not fit {type(self).__name__}:\n  " + "\n  ".join(problems))
        for name, array in arrays.items():
            tensors[name].copy_(array)
        return IncompatibleKeys(missing, unexpected)

    def to(self, dtype: Any = None, *, device: Any = None) -> Self:
        """Convert floating-point parameters, buffers and gradients in place to another floating-point type.

        In float16 and bfloat16 the running statistics of batch norm stay float32: each batch moves them a little, and
        16 bits would round most of these moves away.
        "cpu" changes nothing. Raises TypeError for other types and devices.

        >>> from minidl import nn
        >>> nn.Linear(3, 2).to("float64").weight.dtype
        dtype('float64')
        """
        if device is not None:
            self.to(str(device))
            return self if dtype is None else self.to(dtype)
        if isinstance(dtype, str) and dtype.partition(":")[0] in _DEVICES:
            if dtype == "cpu" and kernels.active() != "cupy":
                return self
            raise TypeError(_NO_DEVICE.format(call=f"to({dtype!r})"))
        try:
            is_floating = dtype is not None and is_floating_point(np.dtype(dtype))
        except TypeError:
            is_floating = False
        if not is_floating:
            raise TypeError(f"to() converts to a floating-point type such as 'float64', not to {dtype!r}")
        kept = {getattr(module, name, None) for module in self.modules() for name in module.stays_float32}
        is_narrow = is_sixteen_bit(np.dtype(dtype))
        for tensor in (*self.parameters(), *self.buffers()):
            if is_floating_point(tensor.dtype):
                tensor.data = tensor.data.astype(np.float32 if is_narrow and tensor in kept else dtype)
                tensor.grad = None if tensor.grad is None else tensor.grad.astype(dtype)
        return self

    def double(self) -> Self:
        """Convert to float64, in which the parallel strategies agree to ten digits."""
        return self.to(np.float64)

    def float(self) -> Self:
        """Convert to float32, the type of new models."""
        return self.to(np.float32)

    def half(self) -> Self:
        """Convert to float16, for half the memory.

        To train in it, scale the loss (`amp.GradScaler`, or `parallel.Job(precision="float16")`): most gradients of a
        deep network are too small for float16. The optimizer keeps float32 masters of the weights.
        """
        return self.to(np.float16)

    def cpu(self) -> Self:
        """Return the model, which is on the CPU; TypeError with the cupy kernels."""
        return self.to("cpu")

    def cuda(self, device: Any = None) -> Self:
        """Raise TypeError: models are not moved to a device, the kernels choose it."""
        raise TypeError(_NO_DEVICE.format(call="cuda()"))

    # ---- training ----

    def train(self, mode: bool = True) -> Self:
        """Switch this module and all below it to training: dropout drops, batch norm uses the batch."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        """Switch this module and all below it to evaluation."""
        return self.train(False)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients of all parameters to None; with set_to_none=False fill them with zeros in place."""
        for parameter in self.parameters():
            if set_to_none:
                parameter.grad = None
            elif parameter.grad is not None:
                parameter.grad[...] = 0

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Train all parameters (True) or freeze them (False)."""
        for parameter in self.parameters():
            parameter.requires_grad = requires_grad
        return self

    # ---- the tree, printed ----

    def __dir__(self) -> list[str]:
        return without_missing(super().__dir__(), type(self))

    def extra_repr(self) -> str:
        """Return the text in a layer's line of the printed tree: its sizes and options."""
        return ""

    def __repr__(self) -> str:
        lines = [f"  ({name}): " + text.replace("\n", "\n  ") for name, text in self._repr_children()]
        inside = "\n".join(["", *lines, ""]) if lines else self.extra_repr()
        return f"{type(self).__name__}({inside})"

    def _repr_children(self) -> list[tuple[str, str]]:
        return [(name, repr(child)) for name, child in self._members(Module)]

    # ---- walking the attributes ----

    def __setattr__(self, name: str, value: Any) -> None:
        present = self.__dict__.get(name)
        kind = Parameter if isinstance(present, Parameter) else Buffer if isinstance(present, Buffer) else None
        if kind is not None and not (value is None or isinstance(value, kind)):
            raise TypeError(
                f"{type(self).__name__}.{name} is a {kind.__name__} and cannot become a {type(value).__name__}: write "
                f"into it with .copy_() or .data, or assign a {kind.__name__}"
            )
        super().__setattr__(name, value)

    def _members(self, kind: type[_T]) -> Iterator[tuple[str, _T]]:
        return ((name, value) for name, value in self.__dict__.items() if isinstance(value, kind))

    def _named_tensors(self, prefix: str = "") -> Iterator[tuple[str, Parameter | Buffer]]:
        """Yield all parameters and buffers in state_dict order, tied ones under each of their names."""
        for name, parameter in self._members(Parameter):
            yield prefix + name, parameter
        for name, buffer in self._members(Buffer):
            yield prefix + name, buffer
        for name, child in self._members(Module):
            yield from child._named_tensors(f"{prefix}{name}.")

    def _named_modules(self, name: str) -> Iterator[tuple[str, Module]]:
        yield name, self
        for child_name, child in self._members(Module):
            yield from child._named_modules(f"{name}.{child_name}" if name else child_name)


def _once(named: Iterator[tuple[str, _T]]) -> Iterator[tuple[str, _T]]:
    """Yield each object once, with the first of its names."""
    seen = set()
    for name, value in named:
        if value not in seen:
            seen.add(value)
            yield name, value


def _behind_a_prefix(wanted: list[str], given: list[str]) -> str:
    """What to load instead, if names have a prefix: those of a run's checkpoint, or of PyTorch's wrappers; else ""."""
    if "tree" in given and any(name.startswith("model.") for name in given):
        return "it is the checkpoint of a run: load parallel.Checkpoint.load(path).model"
    for prefix in {name.removesuffix(wanted[0]) for name in given if wanted and name.endswith(f".{wanted[0]}")}:
        if {name.removeprefix(prefix) for name in given} >= {name for name in wanted if not name.endswith(_LATER)}:
            return (
                f"its names begin with {prefix}, as a wrapper writes them: load "
                f"{{name.removeprefix({prefix!r}): state[name] for name in state}}"
            )
    return ""


add_hints(Module, OF_LAYERS)
