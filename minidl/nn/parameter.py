"""Parameter and Buffer: the tensors of a module."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Self

from minidl.nn.shard import FlatShard, Shard
from minidl.tensor import Tensor

on_new: ContextVar[Callable[[Any], None] | None] = ContextVar("minidl_on_new", default=None)
"""Called with every new Parameter and Module of this context, as soon as it exists; None: nothing is called."""


class ModelTensor(Tensor):
    """What Parameter and Buffer have in common: of a tensor of a module, a rank may hold a shard, or nothing.

    Attributes
        held     whether this rank has its values; False for what `nn.building` left out
        shard    the `Shard` or `FlatShard` that this rank holds; None: the whole
    """

    __slots__ = ("shard",)

    held = True
    _left_out = False  # not held, and no open block of `nn.building` will make it
    shard: Shard | FlatShard | None

    def __init__(self, data: Any, requires_grad: bool = False, **options: Any) -> None:
        super().__init__(data, requires_grad, **options)
        self.shard = None

    def cut(self, shard: Shard | FlatShard) -> Self:
        """Keep only this rank's shard of the values and the gradient, or a `FlatShard` of its shard; returns self.

        A parameter without values, within `nn.building`, keeps its whole shape until its shard is made at the end.
        Raises ValueError if it is a shard already, or if its size cannot be divided.

        >>> from minidl import nn
        >>> nn.Linear(4, 6).weight.cut(nn.Shard("tp", index=0, count=2)).shape
        (3, 4)
        """
        if self.shard is not None and self.shard != getattr(shard, "of", None):
            raise ValueError(f"cut: this {type(self).__name__.lower()} is {self.shard} already; cut the whole one")
        if self.held:
            self.data = shard.cut(self.data)
            self.grad = None if self.grad is None else shard.cut(self.grad)
        else:
            shard.check(self.shape)
        self.shard = shard
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        made = super().__reduce__()
        return made if self.shard is None else (*made, (None, {"shard": self.shard}))


class Parameter(ModelTensor):
    """A tensor that is trained; as an attribute of a module it is one of the module's parameters.

    >>> Parameter([1.0, 2.0]).requires_grad
    True
    """

    __slots__ = ()

    is_parameter = True

    def __init__(self, data: Any, requires_grad: bool = True, **options: Any) -> None:
        super().__init__(data, requires_grad, **options)
        if (notify := on_new.get()) is not None:
            notify(self)


class Buffer(ModelTensor):
    """A tensor that belongs to a module's state but is not trained, such as the running mean of batch norm."""

    __slots__ = ()
