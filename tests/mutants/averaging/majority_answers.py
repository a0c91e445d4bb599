"""Answers to `majority`."""

from __future__ import annotations

from course.judging import Status
from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

RIGHT = """
def majority(comm, p, n, drawn):
    training = p + comm.rank
    sums, waiting, is_done = [], [], False
    for root in drawn:
        parent, children = tree(p, root, comm.rank)
        is_active = parent is None and len(waiting) > 0
        while not is_active:
            came = comm.recv({training} if parent is None else {training, parent})
            if comm.last_source == parent:
                is_active = True
            elif len(came) == 0:
                is_done = True
            else:
                waiting.append(came)
                is_active = parent is None
        for child in children:
            comm.send(np.zeros(0), child)
        total = np.zeros(n)
        for gradient in waiting:
            total += gradient
        waiting = []
        machines(comm, p).all_reduce(total)
        sums.append(total)
    left = sum(waiting, np.zeros(n))
    while not is_done:
        came = comm.recv(training)
        if len(came) == 0:
            is_done = True
        else:
            left = left + came
    return sums, left
"""
SUMS = "the sum of each round: all gradients that are ready"
ONCE = "each gradient counts once, late ones too: in a round, or in what is left"
TIMES = "a round begins when the drawn machine is ready, and waits for nobody else"
MESSAGES = "one all-reduce of n words in a round, and ceil(lg p) empty messages at most"
ALL = (SUMS, ONCE, TIMES, MESSAGES)


def wrong(mistake: str, loses: tuple[str, ...], says: str, *replacements: str, status: Status = Status.WRONG) -> Mutant:
    """A mistake in a line or two."""
    return Mutant("majority", mistake, changed(RIGHT, *replacements), loses, says, status)


MUTANTS = [
    wrong(
        "one array for all sums, and for what is left",
        (SUMS, ONCE, MESSAGES),
        "used again in each round",
        "        total = np.zeros(n)",
        "        total[:] = 0.0",
        "[], [], False",
        "[], [], False\n    total = np.zeros(n)",
        "    left = sum(waiting, np.zeros(n))",
        "    total[:] = sum(waiting, np.zeros(n))\n    left = total",
        "left = left + came",
        "left += came",
    ),
    wrong(
        "gradients count again in later rounds",
        (SUMS, ONCE, MESSAGES),
        "begin anew with zeros",
        "        waiting = []\n",
        "",
        "is_active = parent is None and len(waiting) > 0",
        "is_active = False",
        "left = sum(waiting, np.zeros(n))",
        "left = np.zeros(n)",
    ),
    wrong(
        "the newest gradient replaces those that wait",
        (SUMS, ONCE, MESSAGES),
        "only the newest one",
        "waiting.append(came)",
        "waiting = [came]",
    ),
    wrong(
        "a gradient that comes while another one waits is dropped",
        (SUMS, ONCE, MESSAGES),
        "only the oldest one",
        "waiting.append(came)",
        "waiting = waiting or [came]",
    ),
    wrong(
        "late gradients are dropped: only those of the drawn machine count",
        (SUMS, ONCE, MESSAGES),
        "Only the drawn machine's",
        "        for gradient in waiting:\n",
        "        for gradient in waiting if parent is None else []:\n",
    ),
    Mutant(
        "majority",
        "an ordinary all-reduce, which waits for all machines",
        """
def majority(comm, p, n, drawn):
    sums, left = [], np.zeros(n)
    for root in drawn:
        total = comm.recv(p + comm.rank).copy()
        machines(comm, p).all_reduce(total)
        sums.append(total)
    while (came := comm.recv(p + comm.rank)).size:
        left += came
    return sums, left
""",
        ALL,
        "ordinary all-reduce",
    ),
    wrong(
        "machines that are not ready wait for their own gradient",
        ALL,
        "expected",
        "                is_active = True\n            elif",
        "                is_active = True\n                if not waiting and not is_done:\n"
        "                    waiting.append(comm.recv(training))\n            elif",
    ),
    wrong(
        "one array for all rounds",
        (SUMS, ONCE, MESSAGES),
        "changes in the list",
        "sums, waiting, is_done = [], [], False\n",
        "sums, waiting, is_done, total = [], [], False, np.zeros(n)\n",
        "        total = np.zeros(n)\n",
        "        total[:] = 0\n",
    ),
    wrong(
        "the number of gradients goes along in the sum",
        (MESSAGES,),
        "n words",
        "        machines(comm, p).all_reduce(total)\n",
        "        total = machines(comm, p).all_reduce(np.append(total, len(waiting)))[:n]\n",
    ),
    wrong(
        "sums in float32",
        (SUMS, ONCE, MESSAGES),
        "expected",
        "        machines(comm, p).all_reduce(total)\n",
        "        total = machines(comm, p).all_reduce(total.astype(np.float32)).astype(float)\n",
    ),
    wrong(
        "the gradients are gathered",
        (MESSAGES,),
        "no comm.all_gather",
        "        machines(comm, p).all_reduce(total)\n",
        "        total = sum(machines(comm, p).all_gather(total))\n",
    ),
    wrong(
        "the drawn machine begins without a gradient",
        ALL,
        "These are zeros",
        "is_active = parent is None and len(waiting) > 0",
        "is_active = parent is None",
    ),
    wrong(
        "training is in the all-reduce",
        ALL,
        "can never complete",
        "machines(comm, p).all_reduce",
        "comm.all_reduce",
        status=Status.STUCK,
    ),
    wrong("the mean", (SUMS, ONCE, MESSAGES), "mean over the machines", "sums.append(total)", "sums.append(total / p)"),
    wrong("what is left is not received", (ONCE,), "until the empty", "    while not is_done:", "    while False:"),
    wrong(
        "the gradients of the last round are left, too",
        (ONCE,),
        "expected",
        "    left = sum(waiting, np.zeros(n))",
        "    left = total.copy() * 0 + sum(last, np.zeros(n))",
        "        waiting = []\n",
        "        last, waiting = waiting, []\n",
    ),
    wrong(
        "the drawn machine activates all others itself",
        (MESSAGES,),
        "along the tree",
        "parent, children = tree(p, root, comm.rank)",
        "parent, children = root, []\n        if comm.rank == root:\n"
        "            parent, children = None, [r for r in range(p) if r != root]",
    ),
    wrong(
        "the gradient goes along with the activation",
        (MESSAGES,),
        "expected empty arrays",
        "comm.send(np.zeros(0), child)",
        "comm.send(sum(waiting, np.zeros(n)), child)",
    ),
    wrong(
        "a second all-reduce, of the number of gradients",
        (TIMES, MESSAGES),
        "one in each round",
        "        sums.append(total)",
        "        machines(comm, p).all_reduce(np.ones(1))\n        sums.append(total)",
    ),
    wrong(
        "a machine that is drawn waits for a new gradient, whatever it has",
        ALL,
        "",
        "            if comm.last_source == parent:",
        "            if comm.last_source == parent and waiting:\n                is_active = True\n"
        "            elif comm.last_source == parent:",
        "                is_active = True\n            elif len",
        "                waiting.append(comm.recv(training))\n                is_active = True\n            elif len",
    ),
    wrong(
        "whoever is ready begins (solo)",
        ALL,
        "rank",
        "                is_active = parent is None\n",
        "                is_active = True\n",
        status=Status.WRONG,
    ),
    wrong(
        "the children are not activated",
        ALL,
        "rank",
        "            comm.send(np.zeros(0), child)\n",
        "            pass\n",
        status=Status.STUCK,
    ),
    wrong("always the tree of machine 0", ALL, "", "tree(p, root, comm.rank)", "tree(p, 0, comm.rank)"),
    wrong(
        "the end of training is forgotten",
        ALL,
        "can never complete",
        "                is_done = True\n            else:\n                waiting",
        "                pass\n            else:\n                waiting",
        status=Status.STUCK,
    ),
    wrong(
        "the empty array is taken for a gradient",
        ALL,
        "can never complete",
        "            elif len(came) == 0:\n                is_done = True\n",
        "",
        "waiting.append(came)",
        "waiting.append(np.resize(came, n) if len(came) else np.zeros(n))",
        status=Status.STUCK,
    ),
]

ALTERNATIVES = [
    Alternative(
        "majority",
        "any message; running totals in one array",
        """
def majority(comm, p, n, drawn):
    from minidl.cluster import ANY
    group, running, counted, sums, at_work = machines(comm, p), np.zeros(n), np.zeros(n), [], True
    fresh = False
    for root in drawn:
        parent, children = tree(p, root, comm.rank)
        while not (fresh and parent is None):
            came = comm.recv(ANY)
            if comm.last_source < p:
                break
            at_work = at_work and came.size > 0
            fresh = fresh or came.size > 0
            running = running + came if came.size else running
        for child in children:
            comm.isend(np.zeros(0), child)
        sums.append(group.all_reduce(running - counted))
        counted, fresh = running, False
    while at_work:
        came = comm.recv(p + comm.rank)
        at_work = came.size > 0
        running = running + came if at_work else running
    return tuple(sums), running - counted
""",
    ),
    Alternative(
        "majority",
        "the activation spreads along a hypercube, as in minidl",
        """
def majority(comm, p, n, drawn):
    me, training = comm.rank, p + comm.rank
    near = {me ^ 1 << bit for bit in range((p - 1).bit_length())} & set(range(p))
    pending, ready, done, sums = np.zeros(n), False, False, []

    def take():
        nonlocal pending, ready, done
        if came.size:
            pending, ready = pending + came, True
        else:
            done = True

    for root in drawn:
        silent, active = set(near), False
        while silent or not active:
            if not active and me == root and ready:
                source = None
            else:
                came = comm.recv(silent | ({training} if not active else set()))
                source = comm.last_source
            if source == training:
                take()
                continue
            silent.discard(source)
            if not active:
                active = True
                for other in near:
                    comm.send(np.zeros(0), other)
        total = pending.copy()
        machines(comm, p).all_reduce(total)
        sums.append(total)
        pending, ready = np.zeros(n), False
    while not done:
        came = comm.recv(training)
        take()
    return sums, pending
""",
    ),
]
