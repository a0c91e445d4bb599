ANSWERS = r"""
=== parts
gradients: loss and gradients are those without checkpoints, to the bit
memory: at most k + m inputs are alive
calls: in this memory, each input is computed at most twice
=== base
def recomputed_gradients(forward, backward, n, keep, x):
    kept, gradients = {}, [None] * n
    for i in range(n):
        if i in keep:
            kept[i] = x
        x = forward(i, x)
    loss, g = x, 1.0
    ends = [*keep[1:], n]
    for start, end in zip(reversed(keep), reversed(ends)):
        inputs = [kept[start]]
        for i in range(start, end - 1):
            inputs.append(forward(i, inputs[-1]))
        for i in range(end - 1, start - 1, -1):
            x = inputs.pop()
            g, gradients[i] = backward(i, x, g)
    return loss, gradients
=== wrong: everything is kept :: memory, calls :: The first forward keeps the inputs of the layers in `keep` alone
def recomputed_gradients(forward, backward, n, keep, x):
    inputs, gradients, g = [x], [None] * n, 1.0
    for i in range(n - 1):
        inputs.append(forward(i, inputs[-1]))
    loss = forward(n - 1, inputs[-1])
    for i in reversed(range(n)):
        g, gradients[i] = backward(i, inputs[i], g)
    return loss, gradients
=== wrong: everything is kept in a second dictionary, and recomputed all the same :: memory, calls
:: The first forward keeps the inputs of the layers in `keep` alone
         if i in keep:
             kept[i] = x
+        kept[-1 - i] = x
=== wrong: each input from the start of the model :: calls :: from its checkpoint on, not from the input of the model
def recomputed_gradients(forward, backward, n, keep, x):
    gradients, g = [None] * n, 1.0
    for i in reversed(range(n)):
        y = x
        for j in range(i):
            y = forward(j, y)
        if i == n - 1:
            loss = forward(i, y)
        g, gradients[i] = backward(i, y, g)
    return loss, gradients
=== wrong: each input from its checkpoint again :: calls :: Recompute the inputs of a segment once
-        for i in range(start, end - 1):
-            inputs.append(forward(i, inputs[-1]))
         for i in range(end - 1, start - 1, -1):
-            x = inputs.pop()
+            x = inputs[0]
+            for j in range(start, i):
+                x = forward(j, x)
=== wrong: a segment's output is computed again, too :: calls :: which is kept, need not be computed again
-        for i in range(start, end - 1):
-            inputs.append(forward(i, inputs[-1]))
+        for i in range(start, end):
+            inputs.append(forward(i, inputs[-1]))
+        inputs.pop()
=== wrong: the loss is computed at the end once more :: calls :: The loss need not be computed again
-    return loss, gradients
+    return forward(n - 1, last), gradients
-            x = inputs.pop()
+            x = inputs.pop()
+            last = x if i == n - 1 else last
=== wrong: gradients in the order of backward :: gradients, memory, calls :: in the order of backward
+    return loss, gradients[::-1]
=== wrong: no loss :: gradients, memory, calls :: expected a pair (loss, gradients)
+    return gradients
=== wrong: keep is emptied :: gradients :: it had 3 items, and has 0
+    keep.clear()
+    return loss, gradients
=== wrong: recomputed inputs stay until the end :: memory, calls :: Release the inputs of a segment
     loss, g = x, 1.0
+    everything = []
         inputs = [kept[start]]
+        everything.append(inputs)
-            x = inputs.pop()
+            x = inputs[i - start]
=== wrong: recomputed inputs are released one segment late :: memory, calls :: Release the inputs of a segment
+    old = None
     for start, end in zip(reversed(keep), reversed(ends)):
-        inputs = [kept[start]]
+        old, inputs = locals().get("inputs"), [kept[start]]
-            x = inputs.pop()
+            x = inputs[i - start]
=== wrong: copies of the inputs are kept :: memory, calls :: Release the inputs of a segment
-            x = inputs.pop()
+            x = kept[-1 - i] = inputs.pop().copy()
=== wrong: every backward has the kept input :: gradients, memory, calls :: each layer needs its own
+            x = kept[start]
=== wrong: inputs in the order of forward :: gradients, memory, calls :: expected
+            x = inputs.pop(0)
=== wrong: only gradients of the inputs :: gradients, memory, calls :: expected
-            g, gradients[i] = backward(i, x, g)
+            g, _ = backward(i, x, g)
+            gradients[i] = g
=== wrong: the pair is taken the other way round :: gradients, memory, calls :: g has shape :: raised
+            gradients[i], g = backward(i, x, g)
=== wrong: every layer begins with 1 :: gradients, memory, calls :: g has shape :: raised
+            _, gradients[i] = backward(i, x, 1.0)
+            g = _
=== wrong: backward twice :: calls :: backward of layer
+            gradients[i] = backward(i, x, g)[1]
+            g = backward(i, x, g)[0]
=== wrong: the loss itself as the gradient :: gradients, memory, calls :: gradients[0]: expected
-    loss, g = x, 1.0
+    loss, g = x, x
=== wrong: the last segment is forgotten :: all :: g has shape :: raised
-    ends = [*keep[1:], n]
+    ends = [*keep[1:], keep[-1] + 1]
=== wrong: the segment without its first layer :: gradients, memory, calls :: expected
-        for i in range(end - 1, start - 1, -1):
+        for i in range(end - 1, start, -1):
=== wrong: segments from the first on :: gradients, memory, calls :: g has shape :: raised
-    for start, end in zip(reversed(keep), reversed(ends)):
+    for start, end in zip(keep, ends):
=== wrong: numbers of layers within the segment :: gradients, memory, calls :: expected
-            inputs.append(forward(i, inputs[-1]))
+            inputs.append(forward(i - start, inputs[-1]))
=== wrong: rounded in between :: gradients, memory, calls :: gradients[0]: expected
+            inputs.append(forward(i, inputs[-1]).astype(np.float32).astype(float))
=== wrong: one forward more, for the loss alone :: calls :: was called
     kept, gradients = {}, [None] * n
+    y = x
+    for i in range(n):
+        y = forward(i, y)
=== wrong: everything is kept in one large array :: memory, calls :: in a larger array
def recomputed_gradients(forward, backward, n, keep, x):
    inputs, gradients, g = np.empty((n, *x.shape)), [None] * n, 1.0
    for i in range(n):
        inputs[i] = x
        x = forward(i, x)
    for i in reversed(range(n)):
        g, gradients[i] = backward(i, inputs[i], g)
    return x, gradients
=== wrong: everything is kept as bytes :: memory, calls :: as bytes or in a list
def recomputed_gradients(forward, backward, n, keep, x):
    inputs, gradients, g, shape = [], [None] * n, 1.0, x.shape
    for i in range(n):
        inputs.append(x.tobytes())
        x = forward(i, x)
    for i in reversed(range(n)):
        g, gradients[i] = backward(i, np.frombuffer(inputs[i]).reshape(shape), g)
    return x, gradients
=== wrong: a recursion, which keeps everything on the stack :: memory, calls
:: The first forward keeps the inputs of the layers in `keep` alone
def recomputed_gradients(forward, backward, n, keep, x):
    gradients = [None] * n
    def run(i, x):
        y = forward(i, x)
        if i == n - 1:
            loss, g = y, 1.0
        else:
            loss, g = run(i + 1, y)
        g, gradients[i] = backward(i, x, g)
        return loss, g
    return run(0, x)[0], gradients
=== right: the inputs of the last segment are those of the first forward; numpy's numbers
def recomputed_gradients(forward, backward, n, keep, x):
    bounds = np.append(keep, n)
    first, inputs, found = [], [], []
    for a, b in zip(bounds, bounds[1:]):
        first.append(x)
        inputs = []
        for i in np.arange(a, b):
            inputs.append(x)
            x = forward(i, x)
    loss, g, x = np.float64(x), 1.0, None
    for number in reversed(range(len(keep))):
        a, b = bounds[number : number + 2]
        if not inputs:
            inputs = [first[number]]
            inputs += [inputs[-1]][:0]
            for i in range(a, b - 1):
                inputs.append(forward(i, inputs[-1]))
        for i in range(b - 1, a - 1, -1):
            g, gw = backward(i, inputs.pop(), g)
            found.insert(0, gw)
        first.pop()
    return loss, found
=== right: recursion over segments and a generator
def recomputed_gradients(forward, backward, n, keep, x):
    ends = dict(zip(keep, [*keep[1:], n]))

    def layers(a, b, x):
        yield x
        for i in range(a, b):
            x = forward(i, x)
            yield x

    def segment(a, x):
        b = ends[a]
        y = x
        for i in range(a, b):
            y = forward(i, y)
        loss, g, later = (y, 1.0, []) if b == n else segment(b, y)
        del y
        inputs, own = list(layers(a, b - 1, x)), []
        for i in reversed(range(a, b)):
            g, gw = backward(i, inputs.pop(), g)
            own.append(gw)
        return loss, g, own[::-1] + later

    loss, _, gradients = segment(0, x)
    return loss, tuple(gradients)
"""
