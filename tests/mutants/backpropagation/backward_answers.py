"""Answers to `backward`."""

from __future__ import annotations

from course.judging import Status
from tests.mutants import Alternative, Mutant

PATH, SUM, WHOLE, ONCE, DEEP = (
    "the chain rule along one path",
    "what was used several times gets the sum",
    "a node hands on when its gradient is whole",
    "each node's vjp is called once, whatever was called before",
    "10,000 nodes deep",
)


def walk(mistake: str, code: str, loses: tuple[str, ...], says: str, status: Status = Status.WRONG) -> Mutant:
    return Mutant("backward", mistake, code, loses, says, status)


ORDER = """
    order, seen, stack = [], set(), [(root, False)]
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack += [(p, False) for p in node.parents]
"""

MUTANTS = [
    walk(
        "every vjp is called with 1",
        f"def backward(root):{ORDER}    root.grad = 1.0\n    for node in order[::-1]:\n        if node.parents:\n"
        "            for p, g in zip(node.parents, node.vjp(1.0)):\n                p.grad += g\n",
        (PATH, SUM, WHOLE),
        "Every vjp was called with 1",
    ),
    walk(
        "only the leaves keep their gradients",
        f"def backward(root):{ORDER}    root.grad = 1.0\n    for node in order[::-1]:\n        if node.parents:\n"
        "            for p, g in zip(node.parents, node.vjp(node.grad)):\n                p.grad += g\n"
        "            node.grad = 0.0\n",
        (PATH, SUM, WHOLE, DEEP),
        "has to be set, and to stay",
    ),
    walk(
        "a call of vjp for each parent",
        f"def backward(root):{ORDER}    root.grad = 1.0\n    for node in order[::-1]:\n"
        "        for i, p in enumerate(node.parents):\n            p.grad += node.vjp(node.grad)[i]\n",
        (ONCE,),
        "call it once a node, and go through the list",
    ),
    walk(
        "waits for as many uses as there are paths",
        """
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
""",
        (WHOLE, ONCE),
        "random graph",
    ),
    walk(
        "overwritten instead of accumulated",
        f"def backward(root):{ORDER}    root.grad = 1.0\n    for node in order[::-1]:\n        if node.parents:\n"
        "            for p, g in zip(node.parents, node.vjp(node.grad)):\n                p.grad = g\n",
        (SUM, WHOLE, DEEP),
        "`+=`, not `=`",
    ),
    walk(
        "the root's gradient is not set",
        f"def backward(root):{ORDER}    for node in order[::-1]:\n        if node.parents:\n"
        "            for p, g in zip(node.parents, node.vjp(node.grad)):\n                p.grad += g\n",
        (PATH, SUM, WHOLE, DEEP),
        "does the walk begin with root.grad = 1.0",
    ),
    walk(
        "passed on before it is whole (the naive recursion)",
        """
def backward(root):
    def visit(node):
        if node.parents:
            for p, g in zip(node.parents, node.vjp(node.grad)):
                p.grad += g
                visit(p)
    root.grad = 1.0
    visit(root)
""",
        (WHOLE, ONCE, DEEP),
        "it passed its gradient on before",
    ),
    walk(
        "along every path",
        """
def backward(root):
    stack = [(root, 1.0)]
    while stack:
        node, share = stack.pop()
        node.grad += share
        if node.parents:
            stack += zip(node.parents, node.vjp(share))
""",
        (WHOLE, ONCE),
        "along every path",
    ),
    walk(
        "in the order in which nodes are met",
        """
def backward(root):
    root.grad, stack, seen = 1.0, [root], {root}
    while stack:
        node = stack.pop()
        if node.parents:
            for p, g in zip(node.parents, node.vjp(node.grad)):
                p.grad += g
                if p not in seen:
                    seen.add(p)
                    stack.append(p)
""",
        (WHOLE,),
        "it passed its gradient on before",
    ),
    walk(
        "breadth first",
        """
def backward(root):
    root.grad, queue, seen = 1.0, [root], {root}
    for node in queue:
        if node.parents:
            for p, g in zip(node.parents, node.vjp(node.grad)):
                p.grad += g
                if p not in seen:
                    seen.add(p)
                    queue.append(p)
""",
        (WHOLE,),
        "it passed its gradient on before",
    ),
    walk(
        "an order found by recursion",
        """
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
""",
        (DEEP,),
        "RecursionError",
        Status.RAISED,
    ),
    walk(
        "recursion under a raised limit",
        """
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
""",
        (DEEP,),
        "raised limit",
    ),
    walk(
        "the order is not reversed",
        f"def backward(root):{ORDER}    root.grad = 1.0\n    for node in order:\n        if node.parents:\n"
        "            for p, g in zip(node.parents, node.vjp(node.grad)):\n                p.grad += g\n",
        (PATH, SUM, WHOLE, DEEP),
        "backward(f)",
    ),
    walk(
        "a parent that stands there twice is taken once",
        f"def backward(root):{ORDER}    root.grad = 1.0\n    for node in order[::-1]:\n        if node.parents:\n"
        "            for p, g in dict(zip(node.parents, node.vjp(node.grad))).items():\n                p.grad += g\n",
        (SUM, WHOLE),
        "b = a * a",
    ),
    walk(
        "nodes are known by their values",
        """
def backward(root):
    order, seen, stack = [], set(), [(root, False)]
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
        elif node.value not in seen:
            seen.add(node.value)
            stack.append((node, True))
            stack += [(p, False) for p in node.parents]
    root.grad = 1.0
    for node in order[::-1]:
        if node.parents:
            for p, g in zip(node.parents, node.vjp(node.grad)):
                p.grad += g
""",
        (WHOLE,),
        "Nodes with equal values are different nodes",
    ),
    walk(
        "gradients in a dict by value",
        f"def backward(root):{ORDER}    grads = {{root.value: 1.0}}\n    for node in order[::-1]:\n"
        "        node.grad = grads[node.value]\n        if node.parents:\n"
        "            for p, g in zip(node.parents, node.vjp(node.grad)):\n"
        "                grads[p.value] = grads.get(p.value, 0.0) + g\n",
        (WHOLE,),
        "Nodes with equal values are different nodes",
    ),
    walk(
        "by the distance from the root",
        """
def backward(root):
    distance, queue = {root: 0}, [root]
    for node in queue:
        for p in node.parents:
            if p not in distance:
                distance[p] = distance[node] + 1
                queue.append(p)
    root.grad = 1.0
    for node in sorted(distance, key=distance.get):
        if node.parents:
            for p, g in zip(node.parents, node.vjp(node.grad)):
                p.grad += g
""",
        (WHOLE,),
        "it passed its gradient on before",
    ),
    walk(
        "marks are left on the nodes",
        """
def backward(root):
    order, stack = [], [(root, False)]
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
        elif not hasattr(node, "visited"):
            node.visited = True
            stack.append((node, True))
            stack += [(p, False) for p in node.parents]
    root.grad = 1.0
    for node in order[::-1]:
        if node.parents:
            for p, g in zip(node.parents, node.vjp(node.grad)):
                p.grad += g
""",
        (ONCE,),
        "left something behind",
    ),
    walk(
        "the seen nodes live on as a default",
        f"def backward(root, seen=set()):{ORDER.replace('order, seen, stack = [], set(), ', 'order, stack = [], ')}"
        "    root.grad = 1.0\n    for node in order[::-1]:\n        if node.parents:\n"
        "            for p, g in zip(node.parents, node.vjp(node.grad)):\n                p.grad += g\n",
        (ONCE,),
        "left something behind",
    ),
    walk(
        "relaxed until nothing changes",
        """
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
""",
        (WHOLE, ONCE, DEEP),
        "expected one call, with its whole gradient",
    ),
    walk(
        "vjp is asked three times",
        f"def backward(root):{ORDER}    root.grad = 1.0\n    for node in order[::-1]:\n"
        "        if node.parents and len(node.vjp(node.grad)) == len(node.parents) and node.vjp(node.grad) != []:\n"
        "            for p, g in zip(node.parents, node.vjp(node.grad)):\n                p.grad += g\n",
        (ONCE,),
        "Every node's vjp was called 3 times",
    ),
    walk(
        "a node without a gradient does not take its turn",
        """
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
""",
        (WHOLE,),
        "0 is a gradient like any other",
    ),
    walk(
        "only the root's parents",
        "def backward(root):\n    root.grad = 1.0\n    if root.parents:\n"
        "        for p, g in zip(root.parents, root.vjp(1.0)):\n            p.grad += g\n",
        (PATH, SUM, WHOLE, ONCE, DEEP),
        "backward(f)",
    ),
]

MUTANTS += [
    walk(
        "counts users once, and uses down one by one",
        """
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
""",
        (WHOLE,),
        "before every node that was made from it had done so",
    ),
    walk(
        "from the largest value to the smallest",
        """
def backward(root):
    seen, stack = {root}, [root]
    while stack:
        for parent in stack.pop().parents:
            if parent not in seen:
                seen.add(parent)
                stack.append(parent)
    root.grad = 1.0
    for node in sorted(seen, key=lambda node: -node.value):
        if node.parents:
            for parent, g in zip(node.parents, node.vjp(node.grad)):
                parent.grad += g
""",
        (WHOLE,),
        "before every node that was made from it had done so",
    ),
    walk(
        "vjp(1), multiplied by the gradient afterwards",
        f"def backward(root):{ORDER}    root.grad = 1.0\n    for node in order[::-1]:\n        if node.parents:\n"
        "            for p, g in zip(node.parents, node.vjp(1.0)):\n                p.grad += g * node.grad\n",
        (WHOLE,),
        "Every vjp was called with 1",
    ),
    walk(
        "1 is added to the root's gradient once more",
        f"def backward(root):{ORDER}    root.grad = 1.0\n    for node in order[::-1]:\n        if node.parents:\n"
        "            for p, g in zip(node.parents, node.vjp(node.grad)):\n                p.grad += g\n"
        "    root.grad += 1.0\n",
        (PATH, SUM, WHOLE, DEEP),
        "the root: expected 1, got 2",
    ),
    walk(
        "the gradients are returned, and not set",
        f"def backward(root):{ORDER}    grads = dict.fromkeys(order, 0.0)\n    grads[root] = 1.0\n"
        "    for node in order[::-1]:\n        if node.parents:\n"
        "            for p, g in zip(node.parents, node.vjp(grads[node])):\n                grads[p] += g\n"
        "    return grads\n",
        (PATH, SUM, WHOLE, DEEP),
        "the root: expected 1, got 0",
    ),
]

ALTERNATIVES = [
    Alternative(
        "backward",
        "by the longest way from the root, numpy's numbers, the root comes back",
        """
def backward(root):
    stack, uses = [root], {root: 0}
    while stack:
        for p in stack.pop().parents:
            if p not in uses:
                uses[p] = 0
                stack.append(p)
            uses[p] += 1
    level, front = {root: 0}, [root]
    while front:
        node = front.pop()
        for p in node.parents:
            uses[p] -= 1
            level[p] = max(level.get(p, 0), level[node] + 1)
            if uses[p] == 0:
                front.append(p)
    root.grad = np.float64(1.0)
    for node in sorted(level, key=level.get):
        if node.vjp:
            for p, g in zip(node.parents, node.vjp(node.grad)):
                p.grad = np.add(p.grad, g)
    return root
""",
    ),
    Alternative(
        "backward",
        "marks on the nodes, which are taken off again",
        """
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
""",
    ),
    Alternative(
        "backward",
        "by counting uses",
        """
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
""",
    ),
    Alternative(
        "backward",
        "by height, an iterator a node",
        """
def backward(root):
    order, seen, stack = [], {root}, [(root, iter(root.parents))]
    while stack:
        node, rest = stack[-1]
        for p in rest:
            if p not in seen:
                seen.add(p)
                stack.append((p, iter(p.parents)))
                break
        else:
            order.insert(0, node)
            stack.pop()
    grads = {node: 0.0 for node in order}
    grads[root] = 1.0
    for node in order:
        node.grad = grads[node]
        if node.parents:
            for p, g in zip(node.parents, node.vjp(grads[node])):
                grads[p] += g
""",
    ),
    Alternative(
        "backward",
        "the order of the standard library",
        """
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
""",
    ),
]
