ANSWERS = r"""
=== parts
results: without writes in place: the program's results
launches: without writes in place: the fewest launches
stored: no value is stored that nobody reads
writes: with writes in place: the program's results, the fewest launches
=== base
def fuse(program, results):
    n, last, read = len(program), {}, {}
    level, needs = [0] * n, [set() for _ in program]
    for i, (result, kind, operation, arguments) in enumerate(program):
        for name in arguments:
            if name in last:
                needs[i].add(last[name])
            read.setdefault(name, []).append(i)
        if kind == "in place":
            needs[i].update(read[result])
            needs[i].discard(i)
            read[result] = []
        last[result] = i
    for i in range(n):
        own = program[i][1] == "elementwise"
        level[i] = 1 if own else 0
        for j in needs[i]:
            level[i] = max(level[i], level[j] + (own and program[j][1] != "elementwise"))
    groups = {}
    for i in range(n):
        own = program[i][1] == "elementwise"
        groups.setdefault((level[i], 0, 0) if own else (level[i], 1, i), []).append(i)
    groups = [groups[key] for key in sorted(groups)]
    where = {i: g for g, group in enumerate(groups) for i in group}
    launches = []
    for g, group in enumerate(groups):
        stored = []
        for i in group:
            name = program[i][0]
            if name in results or any(name in program[j][3] and where[j] != g for j in range(n)):
                stored.append(name)
        launches.append((group, stored))
    return launches
=== wrong: no fusion :: launches, stored, writes :: No two instructions share a launch
def fuse(program, results):
    return [([i], [one[0]]) for i, one in enumerate(program)]
=== wrong: neighbours only :: launches, stored, writes :: Only neighbours in the program were fused
def fuse(program, results):
    groups = []
    for i, (_, kind, _, _) in enumerate(program):
        if groups and kind == "elementwise" and program[i - 1][1] == kind:
            groups[-1].append(i)
        else:
            groups.append([i])
    return [(group, [program[i][0] for i in group]) for group in groups]
=== wrong: one launch for everything elementwise :: all :: instruction
def fuse(program, results):
    fused = [i for i, one in enumerate(program) if one[1] == "elementwise"]
    launches = [(fused, [program[i][0] for i in fused])] if fused else []
    return launches + [([i], [one[0]]) for i, one in enumerate(program) if one[1] != "elementwise"]
=== wrong: chains only, along the first argument :: launches, stored, writes :: may share a launch, too
def fuse(program, results):
    groups, of = [], {}
    for i, (result, kind, _, arguments) in enumerate(program):
        fits = kind == "elementwise" and groups and program[groups[-1][-1]][1] == kind
        if fits and program[groups[-1][-1]][0] in arguments:
            groups[-1].append(i)
        else:
            groups.append([i])
    return [(group, [program[i][0] for i in group]) for group in groups]
=== wrong: fused over a sum :: all :: which is not in memory
-            level[i] = max(level[i], level[j] + (own and program[j][1] != "elementwise"))
+            level[i] = max(level[i], level[j])
=== wrong: another level after each instruction, not only after sums :: launches, stored, writes :: expected
+            level[i] = max(level[i], level[j] + own)
=== wrong: sums share launches with others :: all :: Only elementwise operations share a launch
-        groups.setdefault((level[i], 0, 0) if own else (level[i], 1, i), []).append(i)
+        groups.setdefault((level[i], 0, 0) if own else (level[i], 1, 0), []).append(i)
=== wrong: every sum begins a new level :: launches, stored, writes :: expected
-        level[i] = 1 if own else 0
+        level[i] = 1 + sum(one[1] != "elementwise" for one in program[:i]) if own else 0
=== wrong: readers before a write in place may come after it :: writes :: before it is overwritten in place stays before
-            needs[i].update(read[result])
=== wrong: only the last reader before a write in place counts :: writes :: before it is overwritten in place
+            needs[i].update([j for j in read[result] if j != i][-1:])
=== wrong: only elementwise readers must come before a write in place :: writes :: before it is overwritten in place
             needs[i].update(read[result])
             needs[i].discard(i)
+            needs[i] -= {j for j in read[result] if program[j][1] != "elementwise"} - {last.get(result)}
=== wrong: other operations that read an array may come after a write in place :: writes :: overwritten in place
+            needs[i] -= {j for j in read[result] if program[j][1] == "other"} - {last.get(result)}
=== wrong: other writes in place that read an array may come after a write in place :: writes :: overwritten in place
+            needs[i] -= {j for j in read[result] if program[j][1] == "in place"} - {last.get(result)}
=== wrong: readers after a write in place may come before it :: writes :: before it is overwritten in place
-        last[result] = i
+        if kind != "in place":
+            last[result] = i
=== wrong: writes in place share a launch as elementwise :: writes :: Only elementwise operations share a launch
-        own = program[i][1] == "elementwise"
-        level[i] = 1 if own else 0
+        own = program[i][1] != "other"
+        level[i] = 1 if own else 0
-            level[i] = max(level[i], level[j] + (own and program[j][1] != "elementwise"))
+            level[i] = max(level[i], level[j] + (own and program[j][1] == "other"))
-        own = program[i][1] == "elementwise"
-        groups.setdefault((level[i], 0, 0) if own else (level[i], 1, i), []).append(i)
+        own = program[i][1] != "other"
+        groups.setdefault((level[i], 0, 0) if own else (level[i], 1, i), []).append(i)
=== wrong: every write in place is a wall for all :: writes :: expected
-        if kind == "in place":
+        if any(one[1] == "in place" for one in program[:i]):
+            needs[i].add(max(j for j in range(i) if program[j][1] == "in place"))
+        if kind == "in place":
+            needs[i].update(range(i))
=== wrong: what readers before a write have read counts for ever :: writes :: expected
-            read[result] = []
+            for j in range(i):
+                needs[i].update([j] if program[j][1] == "elementwise" else [])
=== wrong: all is stored :: stored :: which nobody reads there
-            if name in results or any(name in program[j][3] and where[j] != g for j in range(n)):
-                stored.append(name)
+            stored.append(name)
=== wrong: what is read in the own launch is stored, too :: stored :: A value that is read in its own launch only
-            if name in results or any(name in program[j][3] and where[j] != g for j in range(n)):
+            if name in results or any(name in program[j][3] for j in range(n)):
=== wrong: a sum always stores its result :: stored :: which nobody reads there
+            kept = name in results or program[i][1] == "other"
+            if kept or any(name in program[j][3] and where[j] != g for j in range(n)):
=== wrong: only results are stored :: all :: which did not store it
+            if name in results:
=== wrong: the results are forgotten :: all :: It was not stored
+            if any(name in program[j][3] and where[j] != g for j in range(n)):
=== wrong: what another launch reads is stored only if its own does not :: all :: which did not store it
+            if name in results or {g} != {where[j] for j in range(n) if name in program[j][3]} | {g} and not any(
+                    name in program[j][3] and where[j] == g for j in range(n)):
=== wrong: what nobody reads is left out :: all :: Each instruction is executed once
-        launches.append((group, stored))
+        if stored:
+            launches.append((group, stored))
=== wrong: launches without what they store :: all :: A launch is a pair
+        launches.append(group)
=== wrong: instructions in place of positions :: all :: A launch is a pair
+        launches.append(([program[i] for i in group], stored))
=== wrong: names in place of positions :: all :: A launch is a pair
+        launches.append(([program[i][0] for i in group], stored))
=== wrong: recursion without end for long chains :: launches, writes :: RecursionError :: raised
def fuse(program, results):
    from functools import cache
    n = len(program)
    writer = {one[0]: i for i, one in enumerate(program)}
    if any(one[1] == "in place" for one in program):
        return [([i], [one[0]]) for i, one in enumerate(program)]
    @cache
    def level(i):
        own = program[i][1] == "elementwise"
        before = [writer[name] for name in program[i][3] if name in writer]
        return max([level(j) + (own and program[j][1] != "elementwise") for j in before] + [int(own)])
    launches = []
    for this in range(max(map(level, reversed(range(n))), default=0) + 1):
        fused = [i for i in range(n) if level(i) == this and program[i][1] == "elementwise"]
        of_this = ([fused] if fused else []) + [[i] for i in range(n) if level(i) == this and i not in fused]
        for group in of_this:
            names = [program[i][0] for i in group]
            others = [name for j in range(n) if j not in group for name in program[j][3]]
            launches.append((group, [name for name in names if name in results or name in others]))
    return launches
=== wrong: in the reverse order :: all :: instruction
-    return launches
+    return launches[::-1]
=== wrong: sorted by positions :: all :: in launch
+    return sorted(launches)
=== right: launch what is ready, elementwise only if nothing else is
def fuse(program, results):
    n = len(program)
    waits = [set() for _ in range(n)]
    for i, (result, kind, _, arguments) in enumerate(program):
        for j in range(max(0, i)):
            other, _, _, others = program[j]
            if other in arguments or other == result or (kind == "in place" and result in others):
                waits[i].add(j)
    done, groups = set(), []
    left = list(range(n))
    while left:
        ready = [i for i in left if program[i][1] != "elementwise" and waits[i] <= done]
        if ready:
            groups.append(ready[:1])
        else:
            group = set()
            for i in left:
                if program[i][1] == "elementwise" and waits[i] <= done | group:
                    group.add(i)
            groups.append(sorted(group))
        done |= set(groups[-1])
        left = [i for i in left if i not in done]
    readers = {}
    for g, group in enumerate(groups):
        for i in group:
            for name in program[i][3]:
                readers.setdefault(name, set()).add(g)
    wanted = set(results)
    return tuple(
        [tuple(group), tuple(program[i][0] for i in group
                             if program[i][1] != "in place"
                             and (program[i][0] in wanted or readers.get(program[i][0], {g}) != {g}))]
        for g, group in enumerate(groups)
    )
=== right: as late as possible, from the end
def fuse(program, results):
    n = len(program)
    users = [set() for _ in range(n)]
    writer, readers = {}, {}
    for i, (result, kind, _, arguments) in enumerate(program):
        for j in {writer[name] for name in (*arguments, result) if name in writer} | (readers.get(result) or set()):
            users[j].add(i)
        for name in arguments:
            readers.setdefault(name, set()).add(i)
        if kind == "in place":
            readers[result] = set()
        writer[result] = i
    height = [0] * n
    for i in reversed(range(n)):
        own = program[i][1] == "elementwise"
        height[i] = max([height[j] + (own and program[j][1] != "elementwise") for j in users[i] if j != i] + [int(own)])
    groups = []
    for this in range(max(height, default=0), -1, -1):
        groups += [[i] for i in range(n) if height[i] == this and program[i][1] != "elementwise"]
        fused = [i for i in range(n) if height[i] == this and program[i][1] == "elementwise"]
        groups += [fused] if fused else []
    where = {i: g for g, group in enumerate(groups) for i in group}
    read = {}
    for i in range(n):
        for name in program[i][3]:
            read.setdefault(name, set()).add(where[i])
    return [
        (group, [program[i][0] for i in group if program[i][0] in results or read.get(program[i][0], set()) - {g}])
        for g, group in enumerate(groups)
    ]
"""
