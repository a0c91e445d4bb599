ANSWERS = r"""
=== parts
actions: every action once, the forwards first, the update last
time: a minibatch takes (M + K - 1) (t_F + t_B) seconds
=== base
def gpipe(K, M, s):
    forwards = [f"F{m}" for m in range(M)]
    backwards = [f"B{m}" for m in range(M)]
    return forwards + backwards + ["U0"]
=== wrong: one micro-batch after the other :: all :: all forwards before the first backward
-    return forwards + backwards + ["U0"]
+    return [action for pair in zip(forwards, backwards) for action in pair] + ["U0"]
=== wrong: an update for each micro-batch :: actions :: One minibatch is one update
+    return forwards + backwards + ["U0"] * M
=== wrong: the update before the last backward :: actions :: it comes after the last backward
+    return forwards + backwards[:-1] + ["U0"] + backwards[-1:]
=== wrong: no update :: actions :: The minibatch ends with an update
+    return forwards + backwards
=== wrong: the backwards in another order on every other stage :: time :: not in the same order on all stages
+    return forwards + backwards[:: 1 if s % 2 else -1] + ["U0"]
=== wrong: waiting is in the list :: all :: waiting is no action
+    return [""] * s + forwards + backwards + ["U0"]
=== wrong: the lists of all stages :: all :: expected actions such as 'F0'
+    return [forwards + backwards + ["U0"] for _ in range(K)]
=== wrong: the forwards in descending order :: actions :: The micro-batches come in the order of their numbers
+    return forwards[::-1] + backwards + ["U0"]
=== wrong: sorted as texts :: actions :: in this order
+    return sorted(forwards) + backwards + ["U0"]
=== wrong: the update has the number of the stage :: actions :: U0 on every stage
+    return forwards + backwards + [f"U{s}"]
=== wrong: the last micro-batch is missing :: all :: is there 0 times
def gpipe(K, M, s):
    forwards = [f"F{m}" for m in range(M - 1)]
    backwards = [f"B{m}" for m in range(M - 1)]
    return forwards + backwards + ["U0"]
=== wrong: as many micro-batches as stages :: all :: K is the number of stages, M that of micro-batches
def gpipe(K, M, s):
    forwards = [f"F{m}" for m in range(K)]
    backwards = [f"B{m}" for m in range(K)]
    return forwards + backwards + ["U0"]
=== wrong: micro-batches from 1 :: all :: numbered from 0
def gpipe(K, M, s):
    forwards = [f"F{m}" for m in range(1, M + 1)]
    backwards = [f"B{m}" for m in range(1, M + 1)]
    return forwards + backwards + ["U0"]
=== wrong: a space before the number :: all :: directly behind it
-    forwards = [f"F{m}" for m in range(M)]
+    forwards = [f"F {m}" for m in range(M)]
=== wrong: each stage begins with another micro-batch :: all :: The micro-batches come in the order of their numbers
+    forwards = [f"F{(m + s) % M}" for m in range(M)]
=== wrong: one list for all calls :: all :: made outside of the function
actions = []
def gpipe(K, M, s):
    actions.extend([f"{kind}{m}" for kind in "FB" for m in range(M)] + ["U0"])
    return actions
=== wrong: actions are yielded :: all :: returns a generator
def gpipe(K, M, s):
    for kind in "FB":
        for m in range(M):
            yield f"{kind}{m}"
    yield "U0"
=== right: the backwards in descending order, as the paper draws them
def gpipe(K, M, s):
    order = tuple(range(M))
    return tuple("F%d" % m for m in order) + tuple("B%d" % m for m in order[::-1]) + ("U0",)
=== right: a generator
def gpipe(K, M, s):
    def actions():
        for kind in "FB":
            for m in range(M):
                yield kind + str(m)
        yield "U0"
    return list(actions())
=== right: an array of strings
def gpipe(K, M, s):
    numbers = np.arange(M).astype(str)
    return np.concatenate([np.char.add("F", numbers), np.char.add("B", numbers), ["U0"]])
"""
