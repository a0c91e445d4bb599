"""How do many copies of one program talk, and how long does it take?

A rank is one of the copies: it runs `program(comm)`; comm knows its number and carries its messages. `processes` runs
ranks as processes of this machine. `simulate` lets them take turns on a virtual clock: a message of n bytes takes
alpha + n beta seconds (latency, and time per byte) once both sides are ready, and a computation takes flops / speed.
"""

import collections
import heapq
import multiprocessing
import os
import threading
import traceback
import types
from pickle import dumps, loads

from greenlet import getcurrent, greenlet  # a greenlet is a function that can pause: switch goes into it, or back out

ANY = -1  # recv(ANY) takes, of the messages that may start, the one that was sent first
Run = collections.namedtuple("Run", "results seconds messages work")
Message = collections.namedtuple("Message", "src dst start end nbytes")
Work = collections.namedtuple("Work", "rank label start end")


class Comm:  # a rank's end of the network; a subclass has isend, recv and compute
    def __init__(self, rank, size):
        self.rank, self.size, self.last_source = rank, size, None

    def send(self, data, dst):
        """Return when `data` may be changed: perhaps at once, perhaps not before `dst` has received it."""
        self.isend(data, dst).wait()

    def sendrecv(self, data, dst, src):
        """Send to one rank while receiving from another. If all ranks sent first, all might wait for ever."""
        sending, received = self.isend(data, dst), self.recv(src)
        sending.wait()
        return received


class ProcessComm(Comm):
    def __init__(self, rank, inboxes):
        super().__init__(rank, len(inboxes))
        self.inboxes, self.unread = inboxes, []  # one inbox for each rank, a queue between processes

    def isend(self, data, dst):
        """Begin to send. The result's `wait` returns when `data` may be changed: here at once, since a copy is sent."""
        self.inboxes[dst].put((self.rank, dumps(data)))  # now: a thread of the queue reads its argument later
        return types.SimpleNamespace(wait=lambda: None)

    def recv(self, src):
        """Wait for the next message from `src`; what others send meanwhile is kept."""
        while True:
            for i, (source, _) in enumerate(self.unread):
                if src in (source, ANY):
                    self.last_source, data = self.unread.pop(i)
                    return loads(data)
            self.unread.append(self.inboxes[self.rank].get())

    def compute(self, flops, label=""):
        """Nothing to do: here computing takes its own time."""


def processes(program, nodes):
    """The results of all ranks. If one fails, or the caller ends, all are stopped; the error has the traceback."""
    context = multiprocessing.get_context("fork")  # a child inherits `program`, which need not be pickled
    inboxes, finished = [context.Queue() for _ in range(nodes)], context.SimpleQueue()

    def run(rank):
        threading.Thread(target=lambda: (multiprocessing.parent_process().join(), os._exit(1)), daemon=True).start()
        try:
            finished.put((rank, program(ProcessComm(rank, inboxes)), None))
        except BaseException:
            finished.put((rank, None, traceback.format_exc()))

    results, children = {}, [context.Process(target=run, args=(rank,), daemon=True) for rank in range(nodes)]
    try:
        for child in children:
            child.start()
        while len(results) < nodes:
            rank, result, error = finished.get()
            if error:
                raise RuntimeError(f"rank {rank} failed:\n{error}")
            results[rank] = result
    finally:
        for child in [child for child in children if child.pid]:  # those that have begun
            child.kill()
    return [results[rank] for rank in range(nodes)]


class SimulatedComm(Comm):
    def __init__(self, rank, clock):
        super().__init__(rank, len(clock.speeds))
        self.clock, self.wants, self.incoming = clock, None, None  # the rank that recv waits for; what it then gets

    def isend(self, data, dst):
        transfer = types.SimpleNamespace(src=self.rank, dst=dst, data=loads(dumps(data)), end=float("inf"))
        transfer.wait = lambda: self.sleep_until(lambda: self.clock.now >= transfer.end)
        self.clock.posted.append(transfer)
        self.clock.start_transfers()
        return transfer

    def recv(self, src):
        self.wants, self.incoming = src, None
        self.clock.start_transfers()
        self.sleep_until(lambda: self.incoming and self.clock.now >= self.incoming.end)
        self.last_source = self.incoming.src
        return self.incoming.data

    def compute(self, flops, label=""):
        """Let the time pass that this rank needs for these floating-point operations."""
        start, end = self.clock.now, self.clock.now + flops / self.clock.speeds[self.rank]
        self.clock.work.append(Work(self.rank, label, start, end))
        heapq.heappush(self.clock.alarms, (end, self.rank))
        self.sleep_until(lambda: self.clock.now >= end)

    def sleep_until(self, is_time):
        while not is_time():
            getcurrent().parent.switch()  # to the loop in simulate, which may switch back here


class Clock:  # the time of all ranks; it jumps to the next moment at which one of them may go on
    def __init__(self, alpha, beta, speeds):
        self.alpha, self.beta, self.speeds, self.now = alpha, beta, speeds, 0.0
        self.posted, self.sends_until = [], [0.0 for _ in speeds]  # waiting messages; each rank's end of its last send
        self.messages, self.work = [], []  # the record
        self.comms = [SimulatedComm(rank, self) for rank in range(len(speeds))]
        self.alarms = [(0.0, rank) for rank in range(len(speeds))]  # a heap: the earliest first, then the lowest rank

    def start_transfers(self):
        """A message starts when its receiver waits for it and its sender is not sending another one."""
        for transfer in self.posted:
            src, dst, receiver = transfer.src, transfer.dst, self.comms[transfer.dst]
            if receiver.wants in (src, ANY) and self.sends_until[src] <= self.now:
                nbytes = getattr(transfer.data, "nbytes", 0)  # None, for instance, counts 0
                transfer.end = self.sends_until[src] = self.now + (self.alpha + nbytes * self.beta)
                receiver.wants, receiver.incoming = None, transfer
                self.messages.append(Message(src, dst, self.now, transfer.end, nbytes))
                for rank in (src, dst):  # both look again then
                    heapq.heappush(self.alarms, (transfer.end, rank))
        self.posted = [transfer for transfer in self.posted if transfer.end == float("inf")]  # not yet started


def simulate(program, nodes, alpha, beta, speeds=None):
    """The results of all ranks, the seconds, and every message and computation. Rank i has speeds[i] flop/s."""
    clock = Clock(alpha, beta, speeds or [1e9] * nodes)
    ranks, results = [greenlet(program) for _ in range(nodes)], {}
    while clock.alarms:
        clock.now, rank = heapq.heappop(clock.alarms)
        clock.start_transfers()  # a send may have ended, so the next may start, even if its program has returned
        if not ranks[rank].dead:
            results[rank] = ranks[rank].switch(clock.comms[rank])  # start or wake; None: it sleeps again
    if not all(rank.dead for rank in ranks):
        raise RuntimeError(f"deadlock: ranks {[i for i in range(nodes) if not ranks[i].dead]} wait for ever")
    return Run([results[rank] for rank in range(nodes)], clock.now, clock.messages, clock.work)


# The workshop: minidl/cluster (MPI, switches, dead ranks, deadlocks of processes, a record of who waits). Lecture 04a.
