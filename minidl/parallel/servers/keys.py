"""Keys: the names under which the ranks of a worker push and fetch weights, and the server that holds each."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from minidl.cluster.collectives.partition import split
from minidl.nn import Module, Parameter, Shard
from minidl.nn.shard import FlatShard
from minidl.tensor import Tensor

Positions = slice | NDArray[np.int64]
"""Indices of elements in a vector; a slice if they are consecutive, which costs no copy."""


class Key(NamedTuple):
    """A parameter, or the shard of it that a rank holds: (name, tensor coordinate).

    name    name of the parameter in the whole model
    shard   the shard that the rank holds; its index is the tensor coordinate. None: the whole parameter
    """

    name: str
    shard: Shard | FlatShard | None = None


class Layout:
    """The weights of the whole model as one vector, parameter after parameter, cut into one slice for each server.

    All slices have the same number of exchanged elements, up to one; a parameter may lie on several servers. Each
    element is on one server, even if several ranks of a worker hold it.

    Parameters
        model         the model, or a rank's partition of it
        servers       number of servers
        only_trained  False: all parameters are exchanged. True: frozen ones stay on the servers and are not exchanged

    Attributes
        exchanged   number of elements that are exchanged
        borders     server s has the elements borders[s] to borders[s + 1] - 1

    >>> from minidl import nn
    >>> layout = Layout(nn.Linear(2, 4), servers=2)
    >>> layout.borders
    [0, 6, 12]
    >>> upper, bias = Key("weight", nn.Shard("tp", index=0, count=2)), Key("bias")
    >>> layout.on_server(0, [upper, bias])
    slice(0, 4, None)
    >>> layout.on_server(1, [upper, bias])
    slice(2, 6, None)
    >>> layout.on_rank(1, [upper, bias], {upper, bias})
    slice(4, 8, None)

    References
        Li et al., Scaling distributed machine learning with the parameter server (OSDI 2014), sections 3.2 and 4.3.
    """

    def __init__(self, model: Module, servers: int, only_trained: bool = False) -> None:
        self._begin: dict[str, int] = {}
        self._shape: dict[str, tuple[int, ...]] = {}
        self._frozen: set[str] = set()
        trained, end = [np.empty(0, np.int64)], 0
        for name, parameter in model.named_parameters():
            self._begin[name], self._shape[name] = end, whole_shape(parameter)
            size = int(np.prod(self._shape[name], dtype=np.int64))
            if only_trained and not parameter.requires_grad:
                self._frozen.add(name)
            else:
                trained.append(np.arange(end, end + size))
            end += size
        exchanged = np.concatenate(trained)
        self.exchanged = len(exchanged)
        firsts = [int(share[0]) if len(share) else end for share in split(exchanged, servers)]
        self.borders = [0, *firsts[1:], end]

    def is_cut(self, name: str) -> bool:
        """Whether the parameter lies on several servers."""
        begin = self._begin[name]
        return any(begin < border < begin + np.prod(self._shape[name]) for border in self.borders)

    def on_server(self, server: int, keys: Sequence[Key]) -> Positions:
        """Positions, in the server's slice, of the elements of these keys, key after key."""
        positions = self._positions(keys)
        start, stop = self.borders[server], self.borders[server + 1]
        return _as_slice(positions[(start <= positions) & (positions < stop)] - start)

    def on_rank(self, server: int, held: Sequence[Key], asked: Container[Key]) -> Positions:
        """Positions, in the rank's vector of the keys `held`, of the elements of the keys `asked` on that server."""
        positions = self._positions(held, asked)
        start, stop = self.borders[server], self.borders[server + 1]
        return _as_slice(np.flatnonzero((start <= positions) & (positions < stop)))

    def _positions(self, keys: Iterable[Key], asked: Container[Key] | None = None) -> NDArray[np.int64]:
        """Index in the whole vector of each element of the keys; -1 if it is not exchanged or not in `asked`."""
        found = [np.empty(0, np.int64)]
        for key in keys:
            begin, shape = self._begin[key.name], self._shape[key.name]
            whole = np.arange(begin, begin + int(np.prod(shape, dtype=np.int64))).reshape(shape)
            mine = whole if key.shard is None else key.shard.cut(whole)
            is_asked = key.name not in self._frozen and (asked is None or key in asked)
            found.append(mine.reshape(-1) if is_asked else np.full(mine.size, -1))
        return np.concatenate(found)


def keys_of(parameters: Iterable[Parameter], names: Mapping[Tensor, str]) -> list[Key]:
    """The keys of a rank's parameters."""
    return [Key(names[parameter], parameter.shard) for parameter in parameters]


def whole_shape(parameter: Parameter) -> tuple[int, ...]:
    """The shape of the whole parameter, of which a rank may hold a shard."""
    if parameter.shard is None or not parameter.held:
        return parameter.shape
    return parameter.shard.whole_shape(parameter.shape)


def is_any(positions: Positions) -> bool:
    """Whether there is an element at these positions."""
    return bool(positions.stop > positions.start if isinstance(positions, slice) else len(positions))


def _as_slice(positions: NDArray[np.int64]) -> Positions:
    if not len(positions):
        return slice(0, 0)
    if (np.diff(positions) == 1).all():
        return slice(int(positions[0]), int(positions[-1]) + 1)
    return positions
