"""Memory barriers for ranks that share memory: in which order one processor sees what another has written.

A rank writes data and then a flag; another sees the flag and then reads the data. On x86, writes are seen, and reads
are made, in the order of the program. ARM keeps neither order unless both sides put a barrier between their two
accesses: `if not IN_ORDER: barrier()`. Only a write that must be seen before a later read, of other memory, needs the
barrier on x86 too.

Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 3A, section 8.2; Arm Architecture Reference
Manual for A-profile, section B2.3. The barriers of ARM have not been tried on such a processor.
"""

from __future__ import annotations

import platform
import threading

IN_ORDER = platform.machine().lower() in ("x86_64", "amd64", "i686", "i386")

_lock = threading.Lock()


def barrier() -> None:
    """Make all processors see this thread's earlier writes before its later reads and writes.

    Taking a lock is an atomic instruction. It is taken twice because, on processors with weak ordering, the barrier
    needs the end of one critical section and the beginning of the next.
    """
    with _lock:
        pass
    with _lock:
        pass
