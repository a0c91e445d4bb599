"""Tiny tasks: many more than workers, each handed out to one that is free; the last ones a second time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from minidl.cluster.comm import Communicator
from minidl.parallel.servers.server_loop import ServerLoop, ask


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
        fresh, workers_of, results = deque(tasks), dict[int, list[int]](), dict[int, Any]()
        while True:
            for worker in list(self._loop.waiting):
                late = (task for task, workers in workers_of.items() if self._backups and len(workers) == 1)
                task = fresh.popleft() if fresh else next(late, None)
                if task is not None:
                    workers_of.setdefault(task, []).append(worker)
                    self._loop.answer(worker, (task,))
            if not fresh and not workers_of:
                return [results[task] for task in tasks]
            worker, request = next(iter(self._loop), (-1, None))
            if worker < 0:
                raise next(iter(self._loop.failed.values()))
            if request is None:  # the worker has failed
                for task, workers in list(workers_of.items()):
                    if worker in workers:
                        workers.remove(worker)
                    if not workers:
                        del workers_of[task]
                        fresh.append(task)
            elif workers_of.pop(request[0], None):  # the first result of this task
                results[request[0]] = request[1]

    def close(self) -> None:
        """Tell the workers that there are no more tasks; a busy one gets this answer when it has finished."""
        for worker in list(self._loop.waiting):
            self._loop.answer(worker, None, is_last=True)
        for worker, request in self._loop:
            if request is not None:
                self._loop.answer(worker, None, is_last=True)


def work(comm: Communicator, coordinator: int, do: Callable[[int], Any]) -> None:
    """Do the tasks that the coordinator hands out, until there are no more: `do(task)` returns a result."""
    result: tuple[int | None, Any] = (None, None)
    while (answer := ask(comm, [coordinator], [result])[0]) is not None:
        [task] = answer
        result = task, do(task)
