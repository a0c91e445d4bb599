"""Weight versions: the older weights that a stage of an asynchronous pipeline keeps for minibatches in flight."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

from minidl.kernels import Array
from minidl.nn import Module, using
from minidl.parallel.pipeline.schedule import Schedule
from minidl.tape import allow_overwritten

Weights = Mapping[str, Array]


class WeightVersions:
    """The versions of a stage's weights: version v is the weights after v updates.

    In an asynchronous pipeline a stage updates its weights while other minibatches are in flight: after their forward
    pass, before their backward pass.

        stashing       forward with the latest version, backward with that same one: a version is kept until the
                       minibatches that computed with it have returned; K - s versions on stage s of K
        vertical sync  forward and backward with the version that minibatch had on stage 0: K versions on every stage
        no stashing    forward and backward each with the version that is the latest then: 1 version, but the result is
                       not a gradient of the loss

    Parameters
        model     the parameters that this rank holds and trains have versions
        stashing  False: no stashing
        at_entry  for vertical sync: each minibatch's version on stage 0, from `versions_at_entry`; None: no sync

    Attributes
        latest      number of the latest version: the updates so far
        used        for each minibatch in flight, the version of its forward pass
        most        peak number of versions kept at the same time
        most_bytes  peak number of their bytes

    The latest version is the model's own arrays. An update copies them only if the version is still in use; the last
    stage never copies. Optimizer state and buffers have one version.

    Harlap et al., PipeDream (arXiv:1806.03377), section 3.4; Narayanan et al. (SOSP 2019), section 3.3.

    >>> from minidl import Tensor, nn
    >>> model = nn.Linear(1, 1, bias=False)
    >>> _ = model.weight.copy_(2.0)
    >>> versions = WeightVersions(model)
    >>> with versions.forward(0):
    ...     y = model(Tensor([[1.0]], requires_grad=True))
    >>> with versions.update():
    ...     _ = model.weight.copy_(3.0)
    >>> versions.kept, versions.nbytes
    ([0, 1], 8)
    >>> with versions.backward(0):
    ...     y.sum().backward()
    >>> versions.kept, versions.nbytes
    ([1], 4)
    """

    def __init__(self, model: Module, stashing: bool = True, at_entry: Sequence[int] | None = None) -> None:
        if at_entry is not None and not stashing:
            raise ValueError("WeightVersions: vertical sync computes with former versions, so it needs stashing=True")
        self._model, self._stashing, self._at_entry = model, stashing, at_entry
        self._parameters = {name: p for name, p in model.named_parameters() if p.held and p.requires_grad}
        self._former: dict[int, Weights] = {}
        self._begun = 0  # minibatches whose forward pass has begun
        self.latest = 0
        self.used: dict[int, int] = {}
        self.most, self.most_bytes = 1, self.nbytes

    @contextmanager
    def forward(self, minibatch: int) -> Iterator[None]:
        """Within the block, the model computes with the version of this minibatch."""
        version = self.latest if self._at_entry is None else self._at_entry[minibatch]
        self.used[minibatch], self._begun = version, minibatch + 1
        with self._computing_with(version) if self._stashing else nullcontext():
            yield

    @contextmanager
    def backward(self, minibatch: int) -> Iterator[None]:
        """Within the block, backward reads the weights of this minibatch; afterwards they are no longer kept.

        A checkpointed stage recomputes its activations with this version, too.
        """
        with self._computing_with(self.used[minibatch]) if self._stashing else allow_overwritten():
            yield
        del self.used[minibatch]
        self._drop()

    @contextmanager
    def update(self) -> Iterator[None]:
        """Within the block, the optimizer writes the next version into the model."""
        if self._is_needed(self.latest):
            self._former[self.latest] = self.weights(self.latest)
            for parameter in self._parameters.values():
                parameter.data = parameter.data.copy()
        yield
        self.latest += 1
        self._drop()
        self.most, self.most_bytes = max(self.most, len(self.kept)), max(self.most_bytes, self.nbytes)

    def weights(self, version: int) -> Weights:
        """The arrays of a version that is kept, by parameter name. Do not write into them.

        Raises KeyError for a version that is not kept.
        """
        if version == self.latest:
            return {name: parameter.data for name, parameter in self._parameters.items()}
        return self._former[version]

    @property
    def kept(self) -> list[int]:
        """The versions that are kept, the latest included."""
        return [*sorted(self._former), self.latest]

    @property
    def nbytes(self) -> int:
        """Bytes of all versions that are kept."""
        arrays = {id(array): array for version in self.kept for array in self.weights(version).values()}
        return sum(array.nbytes for array in arrays.values())

    def _computing_with(self, version: int) -> AbstractContextManager[None]:
        return using(self._model, self.weights(version))

    def _is_needed(self, version: int) -> bool:
        """Whether a minibatch in flight, or one still to come, computes with the version."""
        to_come = [] if self._at_entry is None else self._at_entry[self._begun :]
        return self._stashing and (version in self.used.values() or version in to_come)

    def _drop(self) -> None:
        for version in [version for version in self._former if not self._is_needed(version)]:
            del self._former[version]


def versions_at_entry(schedule: Schedule) -> list[int]:
    """For each minibatch, how many updates stage 0 makes before its forward pass.

    >>> from minidl.parallel.pipeline import Listed
    >>> versions_at_entry(Listed.read(["F0 F1 B0 U0 F2 B1 U1 B2 U2", "F0 B0 U0 F1 B1 U1 F2 B2 U2"]))
    [0, 0, 1]
    """
    versions, updates = [], 0
    for action in schedule.actions(schedule.place(0)):
        updates += action.kind == "U"
        if action.kind == "F" and action.chunk == 0:
            versions.append(updates)
    return versions
