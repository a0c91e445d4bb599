ANSWERS = r"""
=== parts
weights: the weights after the update are those of one node
messages: every message as soon as the schedule allows it, and no other
large: large messages: no two neighbours wait for each other, and each message is received
memory: the memory that the schedule promises
=== base
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
=== wrong: numbers of two digits :: weights :: the weights: expected
-        m = int(action[1:])
+        m = int(action[1:3])
=== wrong: a gradient waits for the end of the message before :: large ::  :: stuck
-                sent.append(comm.isend(gx, s - 1))
+                if sent:
+                    sent.pop().wait()
+                sent.append(comm.isend(gx, s - 1))
=== wrong: the gradient of w is sent :: all :: g has shape :: raised
+                sent.append(comm.isend(gw, s - 1))
=== wrong: the loss is not divided by the number of micro-batches :: weights, large, memory
:: on the last stage g is 1 / M
-            g = 1 / M if s == last else comm.recv(s + 1)
+            g = 1.0 if s == last else comm.recv(s + 1)
=== wrong: only the last gradient :: weights, large, memory :: add up all of them
-            gradient += gw
+            gradient = gw
=== wrong: an update after each backward :: weights, large, memory :: expected
+            w = w - lr * gw
-            w = w - lr * gradient
+            pass
=== wrong: the update before the last backward :: weights, large, memory
:: The backward of the last micro-batch is not in it
             gx, gw = backward(w, x, g)
+            if 'B' not in ''.join(actions[actions.index(action) + 1:]):
+                w = w - lr * gradient
-            w = w - lr * gradient
+            pass
=== wrong: the caller's inputs are cleared :: weights :: changed its argument inputs[0]
             x = kept.pop(m)
+            if s == 0:
+                inputs[m] = None
=== wrong: w itself is changed :: weights :: changed its argument w
-            w = w - lr * gradient
+            w -= lr * gradient
=== wrong: waits for each send at once :: large ::  :: stuck
-                sent.append(comm.isend(y, s + 1))
+                comm.isend(y, s + 1).wait()
-                sent.append(comm.isend(gx, s - 1))
+                comm.isend(gx, s - 1).wait()
=== wrong: the number of the micro-batch goes along :: all :: got a tuple :: raised
+                sent.append(comm.isend((m, y), s + 1))
=== wrong: half the bytes :: weights, messages, memory :: expected
+                sent.append(comm.isend(y.astype(np.float32), s + 1))
-                sent.append(comm.isend(gx, s - 1))
+                sent.append(comm.isend(gx.astype(np.float32), s - 1))
=== wrong: receive before send :: all ::  :: stuck
             if s < last:
+                later = comm.recv(s + 1)
-            g = 1 / M if s == last else comm.recv(s + 1)
+            g = 1 / M if s == last else later
=== wrong: results are sent one action later :: all ::  :: stuck
     kept, sent, gradient = {}, [], np.zeros_like(w)
+    unsent = []
             x = inputs[m] if s == 0 else comm.recv(s - 1)
+            for y, to in unsent: sent.append(comm.isend(y, to))
+            unsent.clear()
-                sent.append(comm.isend(y, s + 1))
+                unsent.append((y, s + 1))
             g = 1 / M if s == last else comm.recv(s + 1)
+            for y, to in unsent: sent.append(comm.isend(y, to))
+            unsent.clear()
-                sent.append(comm.isend(gx, s - 1))
+                unsent.append((gx, s - 1))
=== wrong: all forwards first, whatever the schedule :: messages, memory :: another order
-    for action in actions:
+    for action in sorted(actions, key=lambda action: 'FBU'.index(action[0])):
=== wrong: forward once more before backward :: messages :: expected
-            gx, gw = backward(w, x, g)
+            forward(w, x); gx, gw = backward(w, x, g)
=== wrong: nobody waits for the messages :: large :: isend or irecv
-        work.wait()
+        pass
=== wrong: copies of inputs are never released :: memory :: MemoryError :: raised
-            kept[m] = x
+            kept[m] = x.copy()
-            x = kept.pop(m)
+            x = kept[m]
=== wrong: the first digit of a number :: weights :: micro-batches: the weights
-            x = inputs[m] if s == 0 else comm.recv(s - 1)
+            x = inputs[int(action[1])] if s == 0 else comm.recv(s - 1)
=== wrong: every backward has the newest input that is left :: weights, large, memory :: the newest input that is left
-            x = kept.pop(m)
+            x = kept.pop(max(kept))
=== wrong: all wait for each other before each action :: messages :: nothing else
         m = int(action[1:])
+        comm.barrier()
=== right: activations by blocking sends, and the loss divided at the update
-                sent.append(comm.isend(y, s + 1))
+                comm.send(y, s + 1)
-            g = 1 / M if s == last else comm.recv(s + 1)
+            g = 1.0 if s == last else comm.recv(s + 1)
-            w = w - lr * gradient
+            w = w - lr * gradient / M
=== right: a function for each kind of action, and lists by micro-batch
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
=== right: receives are posted in advance
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
"""
