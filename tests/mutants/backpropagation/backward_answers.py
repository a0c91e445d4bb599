ANSWERS = r"""
=== parts
path: the chain rule along one path
sum: what was used several times gets the sum
whole: a node hands on when its gradient is whole
once: each node's vjp is called once, whatever was called before
deep: 10,000 nodes deep
=== base
def backward(root):
    order, seen, stack = [], set(), [(root, False)]
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack += [(p, False) for p in node.parents]
    root.grad = 1.0
    for node in order[::-1]:
        if node.parents:
            for p, g in zip(node.parents, node.vjp(node.grad)):
                p.grad += g
=== wrong: of three parents the third is dropped :: sum, whole :: any number of parents
-            for p, g in zip(node.parents, node.vjp(node.grad)):
+            for p, g in zip(node.parents[:2], node.vjp(node.grad)):
=== wrong: a parent that stands there twice is taken once :: sum, whole :: b = a * a
+            for p, g in dict(zip(node.parents, node.vjp(node.grad))).items():
=== wrong: a gradient of 0 is not handed on :: whole :: 0 is a gradient like any other
-        if node.parents:
+        if node.parents and node.grad:
=== wrong: vjp is asked three times :: once :: Every node's vjp was called 3 times
+        if node.parents and len(node.vjp(node.grad)) == len(node.parents) and node.vjp(node.grad) != []:
=== wrong: only the leaves keep their gradients :: path, sum, whole, deep :: has to be set, and to stay
                 p.grad += g
+            node.grad = 0.0
=== wrong: 1 is added to the root's gradient once more :: path, sum, whole, deep :: the root: expected 1, got 2
+    root.grad += 1.0
=== wrong: a call of vjp for each parent :: once :: call it once a node, and go through the list
-        if node.parents:
-            for p, g in zip(node.parents, node.vjp(node.grad)):
-                p.grad += g
+        for i, p in enumerate(node.parents):
+            p.grad += node.vjp(node.grad)[i]
=== wrong: waits for as many uses as there are paths :: whole, once :: random graph
def backward(root):
    uses, stack = {}, [root]
    while stack:
        for p in stack.pop().parents:
            uses[p] = uses.get(p, 0) + 1
            stack.append(p)
    root.grad, ready = 1.0, [root]
    while ready:
        node = ready.pop()
        if node.parents:
            for p, g in zip(node.parents, node.vjp(node.grad)):
                p.grad += g
                uses[p] -= 1
                if uses[p] == 0:
                    ready.append(p)
=== wrong: overwritten instead of accumulated :: sum, whole, deep :: `+=`, not `=`
-                p.grad += g
+                p.grad = g
=== wrong: the root's gradient is not set :: path, sum, whole, deep :: does the walk begin with root.grad = 1.0
-    root.grad = 1.0
=== wrong: the gradients are returned, and not set :: path, sum, whole, deep :: the root: expected 1, got 0
+    grads = dict.fromkeys(order, 0.0)
+    grads[root] = 1.0
-            for p, g in zip(node.parents, node.vjp(node.grad)):
-                p.grad += g
+            for p, g in zip(node.parents, node.vjp(grads[node])):
+                grads[p] += g
+    return grads
=== wrong: passed on before it is whole (the naive recursion) :: whole, once, deep :: it passed its gradient on before
def backward(root):
    def visit(node):
        if node.parents:
            for p, g in zip(node.parents, node.vjp(node.grad)):
                p.grad += g
                visit(p)
    root.grad = 1.0
    visit(root)
=== wrong: along every path :: whole, once :: along every path
def backward(root):
    stack = [(root, 1.0)]
    while stack:
        node, share = stack.pop()
        node.grad += share
        if node.parents:
            stack += zip(node.parents, node.vjp(share))
=== wrong: breadth first :: whole :: it passed its gradient on before
def backward(root):
    root.grad, queue, seen = 1.0, [root], {root}
    for node in queue:
        if node.parents:
            for p, g in zip(node.parents, node.vjp(node.grad)):
                p.grad += g
                if p not in seen:
                    seen.add(p)
                    queue.append(p)
=== wrong: an order found by recursion :: deep :: RecursionError :: raised
def backward(root):
    order, seen = [], set()
    def visit(node):
        if node not in seen:
            seen.add(node)
            for p in node.parents:
                visit(p)
            order.append(node)
    visit(root)
    root.grad = 1.0
    for node in order[::-1]:
        if node.parents:
            for p, g in zip(node.parents, node.vjp(node.grad)):
                p.grad += g
=== wrong: recursion under a raised limit :: deep :: raised limit
import sys

def backward(root):
    sys.setrecursionlimit(100_000)
    order, seen = [], set()
    def visit(node):
        if node not in seen:
            seen.add(node)
            for p in node.parents:
                visit(p)
            order.append(node)
    visit(root)
    root.grad = 1.0
    for node in order[::-1]:
        if node.parents:
            for p, g in zip(node.parents, node.vjp(node.grad)):
                p.grad += g
=== wrong: the order is not reversed :: path, sum, whole, deep :: backward(f)
-    for node in order[::-1]:
+    for node in order:
=== wrong: nodes are known by their values :: whole :: Nodes with equal values are different nodes
-        elif node not in seen:
-            seen.add(node)
+        elif node.value not in seen:
+            seen.add(node.value)
=== wrong: marks are left on the nodes :: once :: left something behind
-    order, seen, stack = [], set(), [(root, False)]
+    order, stack = [], [(root, False)]
-        elif node not in seen:
-            seen.add(node)
+        elif not hasattr(node, "visited"):
+            node.visited = True
=== wrong: the seen nodes live on as a default :: once :: left something behind
-def backward(root):
-    order, seen, stack = [], set(), [(root, False)]
+def backward(root, seen=set()):
+    order, stack = [], [(root, False)]
=== wrong: relaxed until nothing changes :: whole, once, deep :: expected one call, with its whole gradient
def backward(root):
    nodes, stack = {root}, [root]
    while stack:
        stack += [p for p in stack.pop().parents if p not in nodes and not nodes.add(p)]
    for _ in range(20):
        grads = dict.fromkeys(nodes, 0.0)
        grads[root] = 1.0
        for node in nodes:
            for p, g in zip(node.parents, node.vjp(node.grad) if node.parents else []):
                grads[p] += g
        for node in nodes:
            node.grad = grads[node]
=== wrong: a node without a gradient does not take its turn :: whole :: 0 is a gradient like any other
def backward(root):
    uses, stack, seen = {}, [root], {root}
    while stack:
        for p in stack.pop().parents:
            uses[p] = uses.get(p, 0) + 1
            if p not in seen:
                seen.add(p)
                stack.append(p)
    root.grad, ready = 1.0, [root]
    while ready:
        node = ready.pop()
        if node.grad and node.parents:
            for p, g in zip(node.parents, node.vjp(node.grad)):
                p.grad += g
                uses[p] -= 1
                if uses[p] == 0:
                    ready.append(p)
=== wrong: counts users once, and uses down one by one :: whole :: before every node that was made from it had done so
def backward(root):
    users, stack, seen = {}, [root], {root}
    while stack:
        node = stack.pop()
        for parent in set(node.parents):
            users[parent] = users.get(parent, 0) + 1
            if parent not in seen:
                seen.add(parent)
                stack.append(parent)
    root.grad, ready = 1.0, [root]
    while ready:
        node = ready.pop()
        if node.parents:
            for parent, g in zip(node.parents, node.vjp(node.grad)):
                parent.grad += g
                users[parent] -= 1
                if users[parent] == 0:
                    ready.append(parent)
=== wrong: vjp(1), multiplied by the gradient afterwards :: whole :: Every vjp was called with 1
-            for p, g in zip(node.parents, node.vjp(node.grad)):
-                p.grad += g
+            for p, g in zip(node.parents, node.vjp(1.0)):
+                p.grad += g * node.grad
=== right: marks on the nodes, which are taken off again
def backward(root):
    order, stack = [], [root]
    while stack:
        node = stack[-1]
        if getattr(node, "mark", 0) == 0:
            node.mark = 1
            stack += [p for p in node.parents if not getattr(p, "mark", 0)]
        else:
            stack.pop()
            if node.mark == 1:
                node.mark = 2
                order.append(node)
    root.grad = 1.0
    for node in reversed(order):
        del node.mark
        if node.parents:
            for p, g in zip(node.parents, node.vjp(node.grad)):
                p.grad += g
=== right: by counting uses
from collections import deque

def backward(root):
    uses, stack, seen = {}, [root], {id(root)}
    while stack:
        node = stack.pop()
        for p in node.parents:
            uses[id(p)] = uses.get(id(p), 0) + 1
            if id(p) not in seen:
                seen.add(id(p))
                stack.append(p)
    root.grad = 1
    ready = deque([root])
    while ready:
        node = ready.popleft()
        if node.vjp is None:
            continue
        for p, g in zip(node.parents, node.vjp(node.grad)):
            p.grad = p.grad + g
            uses[id(p)] -= 1
            if uses[id(p)] == 0:
                ready.append(p)
=== right: the order of the standard library
from graphlib import TopologicalSorter

def backward(root):
    seen, stack, sorter = {root}, [root], TopologicalSorter()
    while stack:
        node = stack.pop()
        sorter.add(node, *node.parents)
        for parent in node.parents:
            if parent not in seen:
                seen.add(parent)
                stack.append(parent)
    root.grad = 1.0
    for node in reversed(list(sorter.static_order())):
        if node.parents:
            for parent, g in zip(node.parents, node.vjp(node.grad)):
                parent.grad = parent.grad + g
"""
