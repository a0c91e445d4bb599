ANSWERS = r"""
=== parts
group 1: group 1
group 2: group 2
group 3: group 3
group 4: group 4
=== right: sets and a Counter
from collections import Counter
def is_ring(sends, p, nbytes):
    longest = -(-(nbytes // 8) // p) * 8
    count = Counter(source for source, _, _ in sends)
    arrows = {(source, destination) for source, destination, _ in sends}
    follow = dict(arrows)
    rank, seen = 0, set()
    for _ in range(p):
        rank = follow.get(rank, rank)
        seen.add(rank)
    messages_are_right = all(count[rank] == 2 * (p - 1) for rank in range(p))
    one_ring = len(arrows) == p and len(seen) == p and rank == 0
    chunks_only = all(size <= longest for _, _, size in sends)
    return messages_are_right and one_ring and chunks_only
=== wrong: everything is a ring :: all :: does not hold here
-    return messages_are_right and one_ring and chunks_only
+    return True
=== wrong: nothing is a ring :: all :: All three conditions hold here
+    return False
=== wrong: only the bytes of each rank are looked at :: all :: Condition 1 of the text does not hold here
+
+    sent = Counter()
+    for source, _, size in sends:
+        sent[source] += size
+    return max(sent.values()) <= 2 * (p - 1) * longest
=== wrong: only the way is looked at :: group 1, group 2, group 4 :: whole vectors
+    return one_ring
=== wrong: only the messages are counted :: all :: whole vectors
+    return messages_are_right
=== wrong: fewer messages will do, too :: group 1 :: Condition 1 of the text does not hold here
+    return max(count.values()) <= 2 * (p - 1) and len(count) == p and one_ring and chunks_only
=== wrong: only rings to the right :: group 3, group 4 :: expected True, got False
+    return messages_are_right and chunks_only and all(to == (rank + 1) % p for rank, to in arrows)
=== wrong: the ring is not closed :: all :: for a ring (sends
+    return messages_are_right and chunks_only and all(abs(to - rank) == 1 for rank, to in arrows)
=== wrong: messages are not counted :: group 1, group 4 :: every chunk goes in two messages
+    return one_ring and chunks_only
=== wrong: lengths are not looked at :: group 1, group 2 :: whole vectors
+    return messages_are_right and one_ring
=== wrong: whom they go to is not looked at :: group 3, group 4 :: Condition 2
+    return messages_are_right and chunks_only
=== wrong: neighbours, whichever :: group 3, group 4 :: to the left to be handed out
+    return messages_are_right and chunks_only and all((to - rank) % p in (1, p - 1) for rank, to in arrows)
=== wrong: chunks must be equal :: group 2 :: for a ring (sends
-    chunks_only = all(size <= longest for _, _, size in sends)
+    chunks_only = all(size == nbytes / p for _, _, size in sends)
=== wrong: anything shorter than the vector :: group 2 :: all that n // p leaves over
+    chunks_only = all(size < nbytes for _, _, size in sends)
=== wrong: only the lengths of rank 0's messages are looked at :: group 2 :: one message is too long
+    chunks_only = all(size <= longest for rank, _, size in sends if rank == 0)
=== wrong: only the first message's length is looked at :: group 2 :: Condition 3
+    chunks_only = sends[0][2] <= longest
=== wrong: the mean length of the messages is looked at :: group 2 :: all that n // p leaves over
+    chunks_only = np.mean([size for _, _, size in sends]) <= longest
=== wrong: bytes taken for elements :: all :: for a ring (sends
-    longest = -(-(nbytes // 8) // p) * 8
+    longest = -(-(nbytes // 8) // p)
=== wrong: a chunk is n // p elements :: group 2 :: for a ring (sends
+    longest = (nbytes // 8 // p) * 8
=== wrong: 2(p - 1) messages in all, not of each rank :: all :: for a ring (sends
-    messages_are_right = all(count[rank] == 2 * (p - 1) for rank in range(p))
+    messages_are_right = len(sends) == 2 * (p - 1)
=== wrong: at least so many messages :: group 1 :: every chunk goes in two messages
+    messages_are_right = all(count[rank] >= 2 * (p - 1) for rank in range(p))
=== wrong: only the messages of rank 0 are counted :: group 1, group 4 :: Condition 1 of the text does not hold here
+    messages_are_right = count[0] == 2 * (p - 1)
=== wrong: 2p(p - 1) messages in all, whoever sends them :: group 4
:: one rank sends a message more, and another one fewer
+    messages_are_right = len(sends) == 2 * p * (p - 1)
=== wrong: only rank 0's destinations are looked at :: group 3, group 4 :: Condition 2 of the text does not hold here
-    one_ring = len(arrows) == p and len(seen) == p and rank == 0
+    one_ring = len({to for rank, to in arrows if rank == 0}) == 1
=== wrong: one destination a rank, and no way followed :: group 4 :: two rings
+    one_ring = len(arrows) == p
=== wrong: everyone sends and everyone receives :: group 3, group 4 :: Condition 2 of the text does not hold here
+    one_ring = {rank for rank, _ in arrows} == {to for _, to in arrows} == set(range(p))
=== wrong: the way comes by all ranks, and need not come back :: group 4
:: a ring of all ranks but 0, which sends into it
+    one_ring = len(arrows) == p and len(seen | {0}) == p
=== wrong: one destination of each rank is looked at: the first :: group 3 :: Condition 2 of the text does not hold here
-    follow = dict(arrows)
+    follow = {source: to for source, to, _ in reversed(sends)}
-    one_ring = len(arrows) == p and len(seen) == p and rank == 0
+    one_ring = len(seen) == p and rank == 0
=== wrong: an empty message is none :: group 2 :: All three conditions hold here
-    count = Counter(source for source, _, _ in sends)
+    count = Counter(source for source, _, size in sends if size)
=== right: one destination a rank, each rank's own, and a way that is back after p steps only
def is_ring(sends, p, nbytes):
    targets = [[] for _ in range(p)]
    for source, to, size in sends:
        if size > 8 * math.ceil(nbytes // 8 / p):
            return False
        targets[source].append(to)
    if any(len(to) != 2 * p - 2 or len(set(to)) > 1 for to in targets):
        return False
    rank = targets[0][0]
    steps = 1
    while rank != 0 and steps <= p:
        rank = targets[rank][0]
        steps += 1
    return steps == p
=== right: a matrix of messages in numpy
def is_ring(sends, p, nbytes):
    if not sends:
        return False
    table = np.array(sends)
    messages = np.zeros((p, p), dtype=int)
    np.add.at(messages, (table[:, 0], table[:, 1]), 1)
    if np.any(np.sort(messages, axis=1)[:, :-1]) or np.any(messages.max(axis=1) != 2 * (p - 1)):
        return False
    rank, steps = 0, 0
    while steps == 0 or rank != 0:
        rank, steps = messages[rank].argmax(), steps + 1
        if steps > p:
            return False
    return steps == p and table[:, 2].max() <= 8 * np.ceil(nbytes / 8 / p)
"""
