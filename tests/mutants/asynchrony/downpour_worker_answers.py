ANSWERS = r"""
=== parts
serial: one worker, n_fetch = n_push = 1: SGD
requests: a GET every n_fetch steps, an ADD every n_push, the remainder, DONE
pushes: every step is pushed exactly once, and made locally too
=== base
def downpour_worker(comm, gradient, steps, lr, n_fetch, n_push, server):
    accumulated = 0.0
    for step in range(steps):
        if step % n_fetch == 0:
            comm.send(request(GET), server)
            weights = comm.recv(server)
        change = -lr * gradient(weights, step)
        accumulated = accumulated + change
        weights = weights + change
        if (step + 1) % n_push == 0:
            comm.send(request(ADD, accumulated), server)
            accumulated = 0.0
    if steps % n_push:
        comm.send(request(ADD, accumulated), server)
    comm.send(request(DONE), server)
    return weights
=== wrong: the gradient is not cleared after a push :: serial, pushes :: after an ADD, accumulate anew from zero
-            accumulated = 0.0
=== wrong: the remainder is not pushed :: requests, pushes :: What remains goes at the end
-    if steps % n_push:
-        comm.send(request(ADD, accumulated), server)
=== wrong: a remainder of zeros is not pushed :: requests, pushes :: What remains goes at the end :: hidden only
-    if steps % n_push:
+    if steps % n_push and np.any(accumulated):
=== wrong: an ADD at the end in any case :: requests :: There is no remainder here
+    accumulated = accumulated + np.zeros_like(weights)
+    if True:
=== wrong: pushes after steps 0, n_push, … :: requests, pushes :: and not after step 0
-        if (step + 1) % n_push == 0:
+        if step % n_push == 0:
-    if steps % n_push:
+    if (steps - 1) % n_push:
=== wrong: pushes in every step :: requests, pushes :: One in each step; expected one in
+        if True:
-    if steps % n_push:
+    if False:
=== wrong: fetches after the step instead of before it :: requests, pushes :: expected
     accumulated = 0.0
+    comm.send(request(GET), server)
+    weights = comm.recv(server)
-        if step % n_fetch == 0:
-            comm.send(request(GET), server)
-            weights = comm.recv(server)

             accumulated = 0.0
+        if (step + 1) % n_fetch == 0:
+            comm.send(request(GET), server)
+            weights = comm.recv(server)
=== wrong: no local steps between two fetches :: pushes :: between two GETs it makes its own steps
-        weights = weights + change
=== wrong: computes every gradient twice :: all :: one gradient a step :: raised
+        weights = weights - lr * gradient(weights, step)
=== wrong: pushes the gradient, not -lr times it :: serial, pushes :: added without -lr
-            comm.send(request(ADD, accumulated), server)
+            comm.send(request(ADD, accumulated / -lr), server)
-        comm.send(request(ADD, accumulated), server)
+        comm.send(request(ADD, accumulated / -lr), server)
=== wrong: the mean instead of the sum :: pushes :: The mean over the steps is pushed
+            comm.send(request(ADD, accumulated / n_push), server)
-        comm.send(request(ADD, accumulated), server)
+        comm.send(request(ADD, accumulated / n_push), server)
=== wrong: puts its weights :: requests, pushes :: PUT replaces what the others have added
+            comm.send(request(PUT, weights), server)
-        comm.send(request(ADD, accumulated), server)
+        comm.send(request(PUT, weights), server)
=== wrong: up the slope :: serial, pushes :: up the slope
-        change = -lr * gradient(weights, step)
+        change = lr * gradient(weights, step)
=== wrong: steps numbered from 1 :: serial, pushes :: expected
+        change = -lr * gradient(weights, (step + 1) % steps)
=== wrong: fetches in every step :: requests, pushes :: One in each step; expected one in
-        if step % n_fetch == 0:
+        if True:
=== wrong: pushes only the last gradient :: pushes :: Only the last step is in it
-        accumulated = accumulated + change
+        accumulated = change
=== wrong: never says DONE :: all :: waits for :: stuck
-    comm.send(request(DONE), server)
=== wrong: a push discards what the fetch should keep: accumulated is cleared by each GET :: pushes :: expected
             weights = comm.recv(server)
+            accumulated = 0.0
=== wrong: adds its unpushed changes to the weights that it fetches :: pushes :: expected
-            weights = comm.recv(server)
+            weights = comm.recv(server) + accumulated
=== wrong: the server is the last rank :: all :: waits for :: stuck
 def downpour_worker(comm, gradient, steps, lr, n_fetch, n_push, server):
+    server = comm.size - 1
=== right: gradients are kept in a list, and the request is made by hand
def downpour_worker(comm, gradient, steps, lr, n_fetch, n_push, server):
    kept = []
    def push():
        comm.send(np.append(ADD, -lr * np.sum(kept, axis=0)), server)
        kept.clear()
    w = None
    for t in range(steps):
        if not t % n_fetch:
            comm.send(np.array([GET]), server)
            w = np.array(comm.recv(server))
        kept.append(gradient(w, t))
        w -= lr * kept[-1]
        if len(kept) == n_push:
            push()
    if kept:
        push()
    comm.isend(np.array([DONE]), server).wait()
    return w
=== right: counters that run down
def downpour_worker(comm, gradient, steps, lr, n_fetch, n_push, server):
    until_fetch, until_push, update = 0, n_push, None
    for step in range(steps):
        if until_fetch == 0:
            comm.send(request(GET), server)
            local, until_fetch = comm.recv(server), n_fetch
        g = gradient(local, step)
        update = -lr * g if update is None else update - lr * g
        local = local - lr * g
        until_fetch, until_push = until_fetch - 1, until_push - 1
        if until_push == 0:
            comm.send(request(ADD, update), server)
            update, until_push = None, n_push
    if update is not None:
        comm.send(request(ADD, update), server)
    comm.send(request(DONE), server)
    return local
"""
