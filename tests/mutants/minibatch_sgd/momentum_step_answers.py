ANSWERS = r"""
=== parts
velocity: velocity form: the rate inside
pytorch: PyTorch's: the rate outside
=== base
def momentum_step(w, state, gradient, lr, mu, form):
    if form == "velocity":
        state = mu * state - lr * gradient; w = w + state
    else:
        state = mu * state + gradient; w = w - lr * state
    return w, state
=== wrong: the forms are exchanged :: all :: This is PyTorch's form
     if form == "velocity":
+        state = mu * state + gradient; w = w - lr * state
+    else:
-    else:
-        state = mu * state + gradient; w = w - lr * state
=== wrong: one form for both :: velocity :: This is PyTorch's form
-        state = mu * state - lr * gradient; w = w + state
+        state = mu * state + gradient; w = w - lr * state
=== wrong: the rate twice :: velocity :: the rate is inside the velocity already
+        state = mu * state - lr * gradient; w = w + lr * state
=== wrong: against the velocity :: velocity :: w moved against the velocity
+        state = mu * state - lr * gradient; w = w - state
=== wrong: the rate on all of the velocity :: velocity :: multiplied by the rate
+        state = lr * (mu * state - gradient); w = w + state
=== wrong: the gradient is used up :: velocity :: momentum_step changed its argument gradient at [0]
+        gradient *= lr; state = mu * state - gradient; w = w + state
=== wrong: in place, moved twice by one array :: velocity :: w after momentum_step(
+        state *= mu; state -= lr * gradient; w += state; w = w + state
=== wrong: up the gradient :: all :: the velocity points down, against the gradient
+        state = mu * state + lr * gradient; w = w + state
-        state = mu * state + gradient; w = w - lr * state
+        state = mu * state + gradient; w = w + lr * state
=== wrong: moves by the old state :: all :: first the velocity, then w
+        w = w + state; state = mu * state - lr * gradient
-        state = mu * state + gradient; w = w - lr * state
+        w = w - lr * state; state = mu * state + gradient
=== wrong: nothing is forgotten :: all :: The old velocity was not multiplied by mu
+        state = state - lr * gradient; w = w + state
-        state = mu * state + gradient; w = w - lr * state
+        state = state + gradient; w = w - lr * state
=== wrong: 1 - mu is kept :: all :: what is kept of the old state
+        state = (1 - mu) * state - lr * gradient; w = w + state
-        state = mu * state + gradient; w = w - lr * state
+        state = (1 - mu) * state + gradient; w = w - lr * state
=== wrong: the old state comes back :: all :: the state that came back is the old one
+        w = w + mu * state - lr * gradient
-        state = mu * state + gradient; w = w - lr * state
+        w = w - lr * (mu * state + gradient)
=== wrong: w does not move :: all :: w has not moved
+        state = mu * state - lr * gradient; w + state
-        state = mu * state + gradient; w = w - lr * state
+        state = mu * state + gradient; w - lr * state
=== wrong: an average of gradients :: pytorch :: that is an average of gradients, momentum is a sum
-        state = mu * state + gradient; w = w - lr * state
+        state = mu * state + (1 - mu) * gradient; w = w - lr * state
=== wrong: Nesterov's step :: pytorch :: This is Nesterov's step
+        state = mu * state + gradient; w = w - lr * (gradient + mu * state)
=== wrong: the rate twice in PyTorch's form :: pytorch :: The rate stands in both lines
+        state = mu * state + lr * gradient; w = w - lr * state
=== wrong: the other order :: all :: They came in the other order: return w, state.
def momentum_step(w, state, gradient, lr, mu, form):
    if form == "velocity":
        state = mu * state - lr * gradient
        return state, w + state
    state = mu * state + gradient
    return state, w - lr * state
=== wrong: only w comes back :: all :: expected 2 arrays
def momentum_step(w, state, gradient, lr, mu, form):
    return w + mu * state - lr * gradient
=== right: in place, a list comes back
def momentum_step(w, state, gradient, lr, mu, form):
    state *= mu
    if form == "velocity":
        state -= lr * gradient
        w += state
    elif form == "pytorch":
        state += gradient
        w -= lr * state
    return [w, state]
=== right: through the other form
def momentum_step(w, state, gradient, lr, mu, form):
    scale = -lr if form == "velocity" else 1.0
    total = mu * (state / scale) + gradient
    return w - lr * total, scale * total
"""
