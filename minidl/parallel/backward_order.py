"""In the order of backward: groups of gradients are handed on as soon as they are final, everywhere in one order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from minidl.tensor import Tensor


class InBackwardOrder:
    """Calls `hand_on(i)` for each group of parameters: in order, as soon as backward has completed its gradients.

    Collectives must be called in the same order on every rank, but backward may run differently there: a rank may not
    use some parameter, or have no samples at all. Hence strictly from the first group to the last; those that backward
    does not complete are handed on by `rest()`. `groups`: the last layer's parameters first.
    """

    def __init__(self, groups: Sequence[Sequence[Tensor]], hand_on: Callable[[int], None]) -> None:
        self._groups, self._hand_on = groups, hand_on
        self._group_of = {parameter: i for i, group in enumerate(groups) for parameter in group}
        self._missing: list[int] = []
        self._next = 0
        self._is_watching = False
        for parameter in self._group_of:
            parameter.register_post_accumulate_grad_hook(self._is_final)

    def watch(self) -> None:
        """What the next backward completes is final: until then gradients are still added to."""
        self._missing = [len(group) for group in self._groups]
        self._is_watching = True

    def rest(self) -> None:
        """Hand on the groups that backward has not completed."""
        self._is_watching = False
        for i in range(self._next, len(self._groups)):
            self._hand_on(i)
        self._next = 0

    def _is_final(self, parameter: Tensor) -> None:
        if not self._is_watching:
            return
        self._missing[self._group_of[parameter]] -= 1
        while self._next < len(self._groups) and self._missing[self._next] == 0:
            self._next += 1
            self._hand_on(self._next - 1)
