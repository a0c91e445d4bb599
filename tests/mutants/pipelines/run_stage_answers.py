"""Answers to `run_stage`."""

from __future__ import annotations

from course.judging import Status
from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

WEIGHTS = "the weights after the update are those of one node"
MESSAGES = "every message as soon as the schedule allows it, and no other"
LARGE = "large messages: no two neighbours wait for each other, and each message is received"
MEMORY = "the memory that the schedule promises"
ALL = (WEIGHTS, MESSAGES, LARGE, MEMORY)
NUMBERS = (WEIGHTS, LARGE, MEMORY)

RIGHT = """
def run_stage(comm, actions, M, inputs, w, lr, forward, backward):
    s, last = comm.rank, comm.size - 1
    kept, sent, gradient = {}, [], np.zeros_like(w)
    for action in actions:
        m = int(action[1:])
        if action[0] == "F":
            x = inputs[m] if s == 0 else comm.recv(s - 1)
            kept[m] = x
            y = forward(w, x)
            if s < last:
                sent.append(comm.isend(y, s + 1))
        elif action[0] == "B":
            g = 1 / M if s == last else comm.recv(s + 1)
            x = kept.pop(m)
            gx, gw = backward(w, x, g)
            gradient += gw
            if s > 0:
                sent.append(comm.isend(gx, s - 1))
        else:
            w = w - lr * gradient
    for work in sent:
        work.wait()
    return w
"""


def wrong(mistake: str, loses: tuple[str, ...], says: str, *replacements: str, status: Status = Status.WRONG) -> Mutant:
    return Mutant("run_stage", mistake, changed(RIGHT, *replacements), loses, says, status)


MUTANTS = [
    wrong(
        "the loss is not divided by the number of micro-batches",
        NUMBERS,
        "on the last stage g is 1 / M",
        "1 / M if",
        "1.0 if",
    ),
    wrong(
        "the mean is taken on every stage again", NUMBERS, "divided by M twice", "lr * gradient", "lr * gradient / M"
    ),
    wrong("only the last gradient", NUMBERS, "add up all of them", "gradient += gw", "gradient = gw"),
    wrong(
        "the update before the last backward",
        NUMBERS,
        "The backward of the last micro-batch is not in it",
        "            gradient += gw",
        "            if 'B' not in ''.join(actions[actions.index(action) + 1:]):\n"
        "                w = w - lr * gradient\n            gradient += gw",
        "            w = w - lr * gradient\n    for",
        "            pass\n    for",
    ),
    wrong(
        "an update after each backward",
        NUMBERS,
        "expected",
        "            gradient += gw",
        "            w = w - lr * gw",
        "            w = w - lr * gradient\n    for",
        "            pass\n    for",
    ),
    wrong(
        "every backward has the newest input",
        NUMBERS,
        "keep the input of each micro-batch",
        "x = kept.pop(m)",
        "x = kept[max(kept)]",
    ),
    wrong("the gradient is added to the weights", NUMBERS, "it is subtracted", "w - lr", "w + lr"),
    wrong("the learning rate is missing", NUMBERS, "The learning rate is missing", "lr * gradient", "gradient"),
    wrong(
        "the actions are popped from the caller's list",
        (WEIGHTS,),
        "changed its argument actions: it had",
        "    for action in actions:\n",
        "    while actions:\n        action = actions.pop(0)\n",
    ),
    wrong(
        "the caller's inputs are cleared",
        (WEIGHTS,),
        "changed its argument inputs[0]",
        "            x = kept.pop(m)\n",
        "            x = kept.pop(m)\n            if s == 0:\n                inputs[m] = None\n",
    ),
    wrong("w itself is changed", (WEIGHTS,), "changed its argument w", "w = w - lr * gradient", "w -= lr * gradient"),
    wrong(
        "blocking sends",
        (LARGE,),
        "send",
        "comm.isend(y, s + 1)",
        "comm.send(y, s + 1)",
        "comm.isend(gx, s - 1)",
        "comm.send(gx, s - 1)",
        "    for work in sent:\n        work.wait()\n",
        "",
        status=Status.STUCK,
    ),
    wrong(
        "waits for each send at once",
        (LARGE,),
        "",
        "sent.append(comm.isend(y, s + 1))",
        "comm.isend(y, s + 1).wait()",
        "sent.append(comm.isend(gx, s - 1))",
        "comm.isend(gx, s - 1).wait()",
        status=Status.STUCK,
    ),
    wrong(
        "receive before send",
        ALL,
        "",
        "            y = forward(w, x)\n            if s < last:\n                sent.append(comm.isend(y, s + 1))",
        "            y = forward(w, x)\n            if s < last:\n                later = comm.recv(s + 1)\n"
        "                sent.append(comm.isend(y, s + 1))",
        "1 / M if s == last else comm.recv(s + 1)",
        "1 / M if s == last else later",
        status=Status.STUCK,
    ),
    wrong(
        "results are sent one action later",
        ALL,
        "",
        "                sent.append(comm.isend(y, s + 1))",
        "                unsent.append((y, s + 1))",
        "                sent.append(comm.isend(gx, s - 1))",
        "                unsent.append((gx, s - 1))",
        "    for action in actions:\n",
        "    unsent = []\n    for action in actions:\n",
        "comm.recv(s - 1)\n",
        "comm.recv(s - 1)\n            for y, to in unsent: sent.append(comm.isend(y, to))\n"
        "            unsent.clear()\n",
        "comm.recv(s + 1)\n",
        "comm.recv(s + 1)\n            for y, to in unsent: sent.append(comm.isend(y, to))\n"
        "            unsent.clear()\n",
        status=Status.STUCK,
    ),
    wrong("inputs are never released", (MEMORY,), "MemoryError", "kept.pop(m)", "kept[m]", status=Status.RAISED),
    wrong(
        "all forwards first, whatever the schedule",
        (MESSAGES, MEMORY),
        "another order",
        "for action in actions:",
        "for action in sorted(actions, key=lambda action: 'FBU'.index(action[0])):",
    ),
    wrong(
        "forward once more before backward",
        (MESSAGES,),
        "expected",
        "gx, gw = backward",
        "forward(w, x); gx, gw = backward",
    ),
    wrong("all stages send to stage 0", ALL, "", "comm.isend(gx, s - 1)", "comm.isend(gx, 0)", status=Status.STUCK),
    wrong("nobody waits for the messages", (LARGE,), "isend or irecv", "        work.wait()", "        pass"),
    wrong(
        "copies of inputs are never released",
        (MEMORY,),
        "MemoryError",
        "kept[m] = x",
        "kept[m] = x.copy()",
        "kept.pop(m)",
        "kept[m]",
        status=Status.RAISED,
    ),
    wrong(
        "the first digit of a number", (WEIGHTS,), "micro-batches: the weights", "inputs[m]", "inputs[int(action[1])]"
    ),
    wrong(
        "every backward has the newest input that is left",
        NUMBERS,
        "the newest input that is left",
        "kept.pop(m)",
        "kept.pop(max(kept))",
    ),
    wrong(
        "all wait for each other before each action",
        (MESSAGES,),
        "nothing else",
        "        m = int(action[1:])",
        "        m = int(action[1:])\n        comm.barrier()",
    ),
    wrong(
        "the number of the micro-batch goes along",
        ALL,
        "got a tuple",
        "comm.isend(y, s + 1)",
        "comm.isend((m, y), s + 1)",
        status=Status.RAISED,
    ),
    wrong(
        "half the bytes",
        (WEIGHTS, MESSAGES, MEMORY),
        "expected",
        "comm.isend(y, s + 1)",
        "comm.isend(y.astype(np.float32), s + 1)",
        "comm.isend(gx, s - 1)",
        "comm.isend(gx.astype(np.float32), s - 1)",
    ),
    wrong(
        "the gradient of w is sent",
        ALL,
        "g has shape",
        "comm.isend(gx, s - 1)",
        "comm.isend(gw, s - 1)",
        status=Status.RAISED,
    ),
    wrong("the weights from before the update", NUMBERS, "from before the update", "w = w - lr", "new = w - lr"),
    wrong("the gradient is returned", NUMBERS, "This is the gradient", "    return w", "    return gradient"),
]

ALTERNATIVES = [
    Alternative(
        "run_stage",
        "a function for each kind of action, and lists by micro-batch",
        """
def run_stage(comm, actions, M, inputs, w, lr, forward, backward):
    before, after = comm.rank - 1, comm.rank + 1
    x, parts, works = [None] * M, [None] * M, []

    def F(m):
        x[m] = comm.recv(before) if before >= 0 else np.array(inputs[m])
        y = forward(w, x[m])
        if after < comm.size:
            works.append(comm.isend(y, after))

    def B(m):
        g = comm.recv(after) if after < comm.size else np.float64(1) / M
        gx, parts[m] = backward(w, x[m], g)
        x[m] = None
        if before >= 0:
            works.append(comm.isend(gx, before))

    for action in actions[:-1]:
        {"F": F, "B": B}[action[0]](int(action[1:]))
    [work.wait() for work in works]
    return w - lr * sum(parts)
""",
    ),
    Alternative(
        "run_stage",
        "receives are posted in advance",
        """
def run_stage(comm, actions, M, inputs, w, lr, forward, backward):
    first, last = comm.rank == 0, comm.rank == comm.size - 1
    coming = {"F": [] if first else [comm.irecv(comm.rank - 1) for _ in range(M)],
              "B": [] if last else [comm.irecv(comm.rank + 1) for _ in range(M)]}
    kept, sends, total = {}, [], 0.0
    for action in actions:
        kind, m = action[0], action[1:]
        if kind == "F":
            x = kept[m] = inputs[int(m)] if first else coming["F"].pop(0).wait()
            y = forward(w, x)
            del x
            if not last:
                sends.append(comm.isend(y, comm.rank + 1))
        if kind == "B":
            g = 1.0 / M if last else coming["B"].pop(0).wait()
            gx, gw = backward(w, kept[m], g)
            del kept[m]
            total = total + gw
            if not first:
                sends.append(comm.isend(gx, comm.rank - 1))
    for send in sends:
        send.wait()
    return w - lr * total
""",
    ),
    Alternative(
        "run_stage",
        "activations by blocking sends, and the loss divided at the update",
        changed(
            RIGHT,
            *("sent.append(comm.isend(y, s + 1))", "comm.send(y, s + 1)"),
            *("1 / M if", "1.0 if", "lr * gradient", "lr * gradient / M"),
        ),
    ),
    Alternative(
        "run_stage",
        "a class, and one receive posted ahead",
        """
class Stage:
    def __init__(self, comm, count):
        self.comm, self.left = comm, {src: count for src in (comm.rank - 1, comm.rank + 1)}
        self.next, self.sent = {}, []
        for src in self.left:
            self.post(src)

    def post(self, src):
        if 0 <= src < self.comm.size and self.left[src]:
            self.left[src] -= 1
            self.next[src] = self.comm.irecv(src)

    def take(self, src):
        x = self.next.pop(src).wait()
        self.post(src)
        return x

    def pass_on(self, x, dst):
        if 0 <= dst < self.comm.size:
            self.sent.append(self.comm.isend(x, dst))

def run_stage(comm, actions, M, inputs, w, lr, forward, backward):
    s, stage, kept, new = comm.rank, Stage(comm, M), {}, w.copy()
    for kind, m in ((action[0], int(action[1:])) for action in actions):
        if kind == "F":
            kept[m] = stage.take(s - 1) if s else inputs[m]
            stage.pass_on(forward(w, kept[m]), s + 1)
        elif kind == "B":
            gx, gw = backward(w, kept.pop(m), stage.take(s + 1) if s + 1 < comm.size else 1 / M)
            new -= lr * gw
            stage.pass_on(gx, s - 1)
    while stage.sent:
        stage.sent.pop().wait()
    return new
""",
    ),
]
