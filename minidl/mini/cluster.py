"""How do many copies of one program talk, and how long does it take?

Every rank runs `program(comm)`. Its `comm` knows the rank's number and carries its messages; nothing else is shared.
`processes` runs the ranks as processes of this machine. `simulate` lets them take turns on a virtual clock, where a
message of n bytes takes alpha + n beta seconds once both sides are ready, and computing takes flops / speed seconds.
"""

import collections
import copy
import heapq
import multiprocessing
import types

from greenlet import getcurrent, greenlet

ANY = -1  # recv(ANY) takes the message that came first, from any rank
Run = collections.namedtuple("Run", "results seconds messages work")
Message = collections.namedtuple("Message", "src dst start end nbytes")
Work = collections.namedtuple("Work", "rank label start end")


class Comm:
    """A rank's end of the network. A subclass has isend, recv and compute."""

    def __init__(self, rank, size):
        self.rank, self.size, self.last_source = rank, size, None

    def send(self, data, dst):
        """Return when `data` may be changed. This may be only when `dst` has received it."""
        self.isend(data, dst).wait()

    def sendrecv(self, data, dst, src):
        """Send to one rank while receiving from another. If all ranks sent first, all might wait for ever."""
        sending = self.isend(data, dst)
        received = self.recv(src)
        sending.wait()
        return received


class ProcessComm(Comm):
    def __init__(self, rank, inboxes):
        super().__init__(rank, len(inboxes))
        self.inboxes, self.unread = inboxes, []  # one inbox for each rank, a queue between processes

    def isend(self, data, dst):
        """Begin to send. The result's `wait` returns when `data` may be changed: here at once, since a copy is sent."""
        self.inboxes[dst].put((self.rank, copy.deepcopy(data)))
        return types.SimpleNamespace(wait=lambda: None)

    def recv(self, src):
        """Wait for the next message from `src`; what others send meanwhile is kept."""
        while not (found := [message for message in self.unread if src in (message[0], ANY)]):
            self.unread.append(self.inboxes[self.rank].get())
        self.unread = [message for message in self.unread if message is not found[0]]
        self.last_source, data = found[0]
        return data

    def compute(self, flops, label=""):
        """Nothing to do: here computing takes its own time."""


def processes(program, nodes):
    """The results of all ranks."""
    context = multiprocessing.get_context("fork")
    inboxes, finished = [context.Queue() for _ in range(nodes)], context.Queue()

    def run(rank):
        try:
            finished.put((rank, program(ProcessComm(rank, inboxes))))
        except Exception as error:
            finished.put((rank, error))
            raise

    ranks = [context.Process(target=run, args=(rank,), daemon=True) for rank in range(nodes)]
    results = [None] * nodes
    try:
        for rank in ranks:
            rank.start()
        for _ in ranks:
            rank, results[rank] = finished.get()
            if isinstance(results[rank], Exception):
                raise RuntimeError(f"rank {rank} failed") from results[rank]
    finally:
        for rank in ranks:
            rank.terminate()
    return results


class SimulatedComm(Comm):
    def __init__(self, rank, clock):
        super().__init__(rank, len(clock.speeds))
        self.clock, self.wants, self.incoming = clock, None, None

    def isend(self, data, dst):
        transfer = types.SimpleNamespace(src=self.rank, dst=dst, data=copy.deepcopy(data), end=float("inf"))
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
            getcurrent().parent.switch()  # to the loop in simulate


class Clock:
    """The time of all ranks. It jumps to the next moment at which one of them may go on."""

    def __init__(self, alpha, beta, speeds):
        self.alpha, self.beta, self.speeds, self.now = alpha, beta, speeds, 0.0
        self.posted, self.messages, self.work, self.sends_until = [], [], [], [0.0 for _ in speeds]
        self.comms = [SimulatedComm(rank, self) for rank in range(len(speeds))]
        self.alarms = [(0.0, rank) for rank in range(len(speeds))]  # a heap: the earliest first, then the lowest rank

    def start_transfers(self):
        """A message starts when its receiver waits for it and its sender is not sending another one."""
        for each in self.posted:
            receiver, nbytes = self.comms[each.dst], getattr(each.data, "nbytes", 0)  # None, for instance, counts 0
            if receiver.wants in (each.src, ANY) and self.sends_until[each.src] <= self.now:
                self.posted = [other for other in self.posted if other is not each]
                receiver.wants, receiver.incoming = None, each
                each.end = self.sends_until[each.src] = self.now + (self.alpha + nbytes * self.beta)
                self.messages.append(Message(each.src, each.dst, self.now, each.end, nbytes))
                for rank in (each.src, each.dst):
                    heapq.heappush(self.alarms, (each.end, rank))


def simulate(program, nodes, alpha, beta, speeds=None):
    """The results of all ranks, the seconds, and every message and computation. speeds: flops a second; or all 1e9."""
    clock, ranks, results = Clock(alpha, beta, speeds or [1e9] * nodes), [greenlet(program) for _ in range(nodes)], {}
    while clock.alarms:
        clock.now, rank = heapq.heappop(clock.alarms)
        clock.start_transfers()
        if not ranks[rank].dead:
            results[rank] = ranks[rank].switch(clock.comms[rank])  # in the end what the program returns
    if not all(rank.dead for rank in ranks):
        raise RuntimeError(f"deadlock: ranks {[i for i in range(nodes) if not ranks[i].dead]} wait for ever")
    return Run([results[rank] for rank in range(nodes)], clock.now, clock.messages, clock.work)


# The workshop: minidl/cluster (MPI, switches, dead ranks, deadlocks of processes, a record of who waits). Lecture 04a.
