ANSWERS = r"""
=== parts
lost: no update is lost
held: the lock is held for one read and one write
=== base
def locked_step(shared, lock, gradient, lr):
    g = gradient(shared.read())
    with lock:
        w = shared.read()
        shared.write(w - lr * g)
=== wrong: no lock :: all :: Updates of others are lost
def locked_step(shared, lock, gradient, lr):
    w = shared.read()
    shared.write(w - lr * gradient(w))
=== wrong: the lock is never released :: held :: the lock was not released
def locked_step(shared, lock, gradient, lr):
    g = gradient(shared.read())
    lock.acquire()
    shared.write(shared.read() - lr * g)
=== wrong: two locked blocks, one for the read and one for the write :: all :: Updates of others are lost
         w = shared.read()
+    with lock:
=== wrong: up the slope :: lost :: The sign is wrong
-        w = shared.read()
-        shared.write(w - lr * g)
+        shared.write(shared.read() + lr * g)
=== wrong: the lock is asked for twice :: all :: this worker has the lock already :: raised
+        lock.acquire()
+        shared.write(shared.read() - lr * g)
=== wrong: without the learning rate :: lost :: The learning rate is missing
+        shared.write(shared.read() - g)
=== wrong: the gradient is computed again under the lock :: held
:: with the lock held, the workers compute one after the other
-        shared.write(w - lr * g)
+        shared.write(w - lr * gradient(w))
=== wrong: the copy is changed, and never written :: all :: The weights were not changed
+        w -= lr * g
=== wrong: the first read is under the lock, too :: held :: One block is enough
def locked_step(shared, lock, gradient, lr):
    with lock:
        w = shared.read()
    g = gradient(w)
    with lock:
        shared.write(shared.read() - lr * g)
=== wrong: the gradient at zero :: lost :: which shared.read() never returned
def locked_step(shared, lock, gradient, lr):
    g = gradient(0.0 * shared.read())
    with lock:
        shared.write(shared.read() - lr * g)
=== wrong: the weights in float32 :: lost :: the weights afterwards
-        w = shared.read()
+        w = shared.read().astype(np.float32)
=== right: acquire and release by hand, in try and finally
def locked_step(shared, lock, gradient, lr):
    stale = shared.read()
    change = lr * gradient(stale)
    lock.acquire()
    try:
        now = shared.read()
        now -= change
        shared.write(now)
    finally:
        lock.release()
=== right: two reads before: the gradient is of the later one
def locked_step(shared, lock, gradient, lr):
    shared.read()
    direction = np.multiply(-lr, gradient(shared.read()))
    with lock:
        weights = shared.read()
        shared.write(np.add(weights, direction))
"""
