"""Tiny tasks: many more than workers, each handed out to one that is free; the last ones a second time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from minidl.cluster.comm import Communicator
from minidl.parallel.servers.server_loop import ServerLoop, ask


class Pool:
    """Which task a free worker gets next: fresh ones first, then with `backups` unfinished ones that one worker has."""

    def __init__(self, tasks: Iterable[int], backups: bool) -> None:
        self._fresh, self._backups = deque(tasks), backups
        self._on: dict[int, list[int]] = {}  # the workers of each unfinished task, in the order of handing out

    @property
    def is_done(self) -> bool:
        """Whether every task is finished."""
        return not self._fresh and not self._on

    def next(self, worker: int) -> int | None:
        """The task that this free worker gets; None: none for now."""
        if self._fresh:
            task = self._fresh.popleft()
            self._on[task] = [worker]
            return task
        for task, workers in self._on.items() if self._backups else ():
            if len(workers) == 1:
                workers.append(worker)
                return task
        return None

    def finish(self, task: int) -> bool:
        """Whether this is the first result of the task."""
        return self._on.pop(task, None) is not None

    def lose(self, worker: int) -> None:
        """The worker has failed."""
        for task, workers in list(self._on.items()):
            self._on[task] = [other for other in workers if other != worker]
            if not self._on[task]:
                del self._on[task]
                self._fresh.appendleft(task)


class Coordinator:
    """Has workers do numbered tasks: a free one gets the next task, and the first result of a task counts.

    Parameters
        comm      of the rank that coordinates
        workers   the ranks that call `work`
        backups   True: default; when all tasks are handed out, free workers get unfinished ones a second time
                  False: a free worker waits

    With P equal workers and no backups, all tasks are done after at most (sum of their times) / P + the longest time,
    since no worker begins a task after the others have run out of them (Graham's bound for list scheduling). With
    backups a slow worker's last task is done by the next free one, too. The price: a worker may still be busy with a
    task that is no longer needed when `run` is called again.
    With `on_failure="continue"`, the tasks of a worker that fails are done by the others.

    >>> from minidl import cluster
    >>> def program(comm):
    ...     if comm.rank < 2:
    ...         return work(comm, 2, lambda task: task * task)
    ...     coordinator = Coordinator(comm, workers=range(2))
    ...     squares = coordinator.run(range(5))
    ...     coordinator.close()
    ...     return squares
    >>> cluster.launch(program, nodes=3, on="simulation").results[2]
    [0, 1, 4, 9, 16]

    References
        Dean and Ghemawat, MapReduce (OSDI 2004), sections 3.5 and 3.6; Dean et al., Large scale distributed deep
        networks (NIPS 2012), section 4.2; Graham, Bounds on multiprocessing timing anomalies (1969).
    """

    def __init__(self, comm: Communicator, workers: Sequence[int], backups: bool = True) -> None:
        self._loop, self._backups = ServerLoop(comm, workers), backups

    def run(self, tasks: Sequence[int]) -> list[Any]:
        """The results of the tasks, in their order. A number that was used before must not be used again."""
        pool, results = Pool(tasks, self._backups), dict[int, Any]()
        self._hand_out(pool)
        while not pool.is_done:
            worker, request = next(iter(self._loop), (None, None))
            if worker is None:
                raise next(iter(self._loop.failed.values()))
            if request is None:
                pool.lose(worker)
            elif pool.finish(request[0]):
                results[request[0]] = request[1]
            self._hand_out(pool)
        return [results[task] for task in tasks]

    def close(self) -> None:
        """Tell the workers that there are no more tasks; a busy one gets this answer when it has finished."""
        for worker in list(self._loop.waiting):
            self._loop.answer(worker, None, is_last=True)
        for worker, request in self._loop:
            if request is not None:
                self._loop.answer(worker, None, is_last=True)

    def _hand_out(self, pool: Pool) -> None:
        for worker in list(self._loop.waiting):
            if (task := pool.next(worker)) is not None:
                self._loop.answer(worker, (task,))


def work(comm: Communicator, coordinator: int, do: Callable[[int], Any]) -> None:
    """Do the tasks that the coordinator hands out, until there are no more: `do(task)` returns a result."""
    result: tuple[int | None, Any] = (None, None)
    while (answer := ask(comm, [coordinator], [result])[0]) is not None:
        [task] = answer
        result = task, do(task)
