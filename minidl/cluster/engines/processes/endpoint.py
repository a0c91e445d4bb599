"""The endpoint of a rank that is a process: a mailbox, with helper threads and operations in shared memory."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from minidl.cluster.call_site import Site
from minidl.cluster.diagnosis.fingerprints import Fingerprint
from minidl.cluster.engines.processes.mailbox import SocketMailbox
from minidl.cluster.engines.processes.shared_fingerprints import SharedFingerprints
from minidl.cluster.engines.processes.shared_page import Page
from minidl.cluster.engines.processes.shared_reduction import SharedReduction
from minidl.cluster.engines.processes.slots import Slots
from minidl.cluster.engines.protocol import Array, Pending
from minidl.cluster.engines.real_endpoint import HelperTask
from minidl.cluster.engines.shared_arrays import SharedArrays
from minidl.cluster.trace.recorder import Recorder


class ProcessEndpoint(SocketMailbox):
    """The endpoint of a rank that is a process.

    memory      descriptor of the file for arrays that all ranks share
    page        where all ranks publish what they wait for and which collectives they call
    tell        sends an object to the listener of `launch`
    last_words  called before a planned fault kills or stops this rank
    may_share   whether all-reduces may use shared memory
    """

    post_fingerprint: Callable[[int, tuple[int, ...], int, Fingerprint, Site], None]  # type: ignore[assignment]

    def __init__(
        self,
        *args: Any,
        memory: int,
        page: Page,
        tell: Callable[[Any], None],
        last_words: Callable[[], None],
        may_share: bool,
        **options: Any,
    ) -> None:
        super().__init__(*args, page=page, **options)
        self._tell = tell
        self.post_fingerprint = SharedFingerprints(page, self.rank).post
        self._last_words = last_words
        self._may_share = may_share
        self._shared_arrays = SharedArrays(memory, self.timeout)
        self._slots = Slots(self._shared_arrays, self.rank, self.size)
        self._reductions: dict[tuple[int, ...], SharedReduction] = {}  # by group

    # Helper threads

    def start(self, work: Callable[[], Any], lane: int) -> Pending:
        task = HelperTask("helper", self.rank, lane, self.now(), source=self.rank, work=work)
        with self._lock:
            self._raise_failure()
            self._links.share()
            self._at_work[lane] = self._at_work.get(lane, 0) + 1
        self._start(task, lane)
        return task

    def _join(self, task: HelperTask) -> None:
        thread = threading.get_ident()
        with self._lock:
            self.waits[thread] = task, self.now()
            while not task.done:
                self._publish_if_blocked()
                self._changed.wait()
            del self.waits[thread]

    def _finished(self, task: HelperTask) -> None:
        with self._lock:
            task.done = True
            task.blocked = self.failed_in.get(threading.get_ident())  # in this task, or in an earlier one
            self._at_work[task.tag] -= 1
            self._publish_if_blocked()
            self._changed.notify_all()

    def is_done(self, operation: Pending) -> bool:
        with self._lock:
            if not operation.done:
                self._raise_failure()
                if not self._links.is_polling:
                    self._progress(0.0)
        return operation.done

    def cannot_complete(self, operation: Pending) -> bool:
        with self._lock:
            return not operation.done and self._peers.cannot_complete(operation)

    def flush(self) -> None:
        """Wait for the tasks that the program has not waited for; then as the mailbox does."""
        self._finish_tasks()
        super().flush()

    # Shared memory

    def native_all_reduce(self, x: Array, op: str, ranks: tuple[int, ...], tag: int, recorder: Recorder) -> bool:
        """Reduce in shared memory, except on an emulated network or if planned faults drop or corrupt messages."""
        if self.network is not None or not self._may_share or not isinstance(x, np.ndarray) or x.dtype.hasobject:
            return False
        if len(ranks) > 1:
            group = self._reductions.get(ranks)
            if group is None:
                group = self._reductions[ranks] = SharedReduction(self, self._slots, ranks)
            group.run(x, op, tag, recorder)
        return True

    def shared_array(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        return self._shared_arrays.get(f"program/{name}", shape, dtype)
