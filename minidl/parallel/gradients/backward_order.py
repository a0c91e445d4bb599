"""Releases groups of gradients in one fixed order, each as soon as its gradients are final."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from minidl.tensor import Tensor


class InBackwardOrder:
    """Calls `release(i)` for each group of parameters: in order, as soon as backward has completed its gradients.

    Collectives must be called in the same order on every rank, but backward may run differently there: a rank may not
    use some parameter, or have no samples at all. Hence groups are released strictly from the first to the last;
    `release_rest()` releases those that backward did not complete, and `restart()` begins again with the first.

    Parameters
        groups   parameters whose gradients are sent together, the last layer's first
        release  called with the number of a group
    """

    def __init__(self, groups: Sequence[Sequence[Tensor]], release: Callable[[int], None]) -> None:
        self._groups, self._release = groups, release
        self._group_of = {parameter: i for i, group in enumerate(groups) for parameter in group}
        self._missing: list[int] = []
        self._next = 0
        self._is_watching = False
        for parameter in self._group_of:
            parameter.register_post_accumulate_grad_hook(self._is_final)

    def watch(self) -> None:
        """Call before backward of the last micro-batch: the gradients that it completes are final."""
        self._missing = [len(group) for group in self._groups]
        self._is_watching = True

    def release_rest(self) -> None:
        """Release the groups that backward has not completed; none if all have been released."""
        self._is_watching = False
        self.release_until(len(self._groups))

    def release_until(self, end: int) -> None:
        """Release those of the groups before number `end` that have not been released."""
        while self._next < end:
            self._next += 1
            self._release(self._next - 1)

    def restart(self) -> None:
        """Begin a new minibatch with the first group."""
        self._next = 0

    def _is_final(self, parameter: Tensor) -> None:
        if not self._is_watching:
            return
        self._missing[self._group_of[parameter]] -= 1
        while self._next < len(self._groups) and self._missing[self._next] == 0:
            self._next += 1
            self._release(self._next - 1)
