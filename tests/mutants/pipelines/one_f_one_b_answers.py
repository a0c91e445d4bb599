ANSWERS = r"""
=== parts
actions: every action once, in order, the update last
time: a minibatch takes (M + K - 1) (t_F + t_B) seconds
memory: stage s keeps the activations of at most min(M, K - s) micro-batches
=== base
def one_f_one_b(K, M, s):
    warm_up = min(M, K - 1 - s)
    actions = [f"F{m}" for m in range(warm_up)]
    for m in range(M - warm_up):
        actions.append(f"F{warm_up + m}")
        actions.append(f"B{m}")
    for m in range(M - warm_up, M):
        actions.append(f"B{m}")
    return actions + ["U0"]
=== wrong: the warm-up is one short :: time :: one forward short
-    warm_up = min(M, K - 1 - s)
+    warm_up = max(0, min(M, K - 2 - s))
=== wrong: the warm-up is one long :: memory :: one forward too long
+    warm_up = min(M, K - s)
=== wrong: GPipe :: memory :: that is GPipe
+    warm_up = M
=== wrong: no warm-up :: time :: Without a warm-up
+    warm_up = 0
=== wrong: the warm-up grows with the stage :: time, memory :: waits for ever
+    warm_up = min(M, s)
=== wrong: the same warm-up on all stages :: time, memory :: all gradients come later
+    warm_up = min(M, K - 1)
=== wrong: the warm-up has more forwards than there are micro-batches :: all :: is less than K
+    warm_up = K - 1 - s
=== wrong: a warm-up of both ways :: memory :: too long
+    warm_up = min(M, 2 * (K - 1 - s))
=== wrong: more forwards than micro-batches :: all :: is of a micro-batch that there is not
+    warm_up = K - 1 - s
-    for m in range(M - warm_up, M):
+    for m in range(max(0, M - warm_up), M):
=== wrong: a backward before the forward in each pair :: actions, time :: comes before F0
     for m in range(M - warm_up):
+        actions.append(f"B{m}")
         actions.append(f"F{warm_up + m}")
-        actions.append(f"B{m}")
=== wrong: the backwards of the warm-up are missing :: all :: is there 0 times
-    for m in range(M - warm_up, M):
+    for m in range(M - warm_up, M - warm_up):
=== wrong: the remaining backwards in descending order :: actions, time :: in this order
+    for m in reversed(range(M - warm_up, M)):
=== wrong: the update before the remaining backwards :: actions :: it comes after the last backward
         actions.append(f"F{warm_up + m}")
         actions.append(f"B{m}")
+    actions.append("U0")
-    return actions + ["U0"]
+    return actions
=== wrong: updates as in PipeDream :: actions :: One minibatch is one update
         actions.append(f"F{warm_up + m}")
-        actions.append(f"B{m}")
+        actions += [f"B{m}", f"U{m}"]
-        actions.append(f"B{m}")
-    return actions + ["U0"]
+        actions += [f"B{m}", f"U{m}"]
+    return actions
=== right: a forward while there is room, else a backward
def one_f_one_b(K, M, s):
    actions, forwards, backwards = [], 0, 0
    while backwards < M:
        if forwards < M and forwards - backwards < K - s:
            actions.append("F" + str(forwards))
            forwards += 1
        else:
            actions.append("B" + str(backwards))
            backwards += 1
    actions.append("U0")
    return actions
=== right: sorted by the moment at which each action would begin in a pipeline of equal times
def one_f_one_b(K, M, s):
    room = min(M, K - s)
    place = {f"F{m}": (m if m < room else room + 2 * (m - room) + 1, 0) for m in range(M)}
    place |= {f"B{m}": (room + 2 * m, 1) for m in range(M)}
    return [*sorted(place, key=place.get), "U0"]
=== right: all stages are played, and a backward comes before a forward
def one_f_one_b(K, M, s):
    ends, lists, free = {}, [[] for _ in range(K)], [0] * K
    forwards, backwards, now = [0] * K, [0] * K, 0
    while min(backwards) < M:
        for j in (j for j in range(K) if free[j] <= now):
            f, b = forwards[j], backwards[j]
            if b < f and (j == K - 1 or ends.get((j + 1, "B", b), now + 1) <= now):
                lists[j].append(f"B{b}")
                ends[j, "B", b] = free[j] = now + 1
                backwards[j] += 1
            elif f < M and f - b < K - j and (j == 0 or ends.get((j - 1, "F", f), now + 1) <= now):
                lists[j].append(f"F{f}")
                ends[j, "F", f] = free[j] = now + 1
                forwards[j] += 1
        now += 1
    return lists[s] + ["U0"]
"""
