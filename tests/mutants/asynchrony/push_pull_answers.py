ANSWERS = r"""
=== parts
weights: delta is added once, and the weights after that are returned
traffic: two messages to each server, with its own part only
time: all servers work at the same time
=== base
def push_pull(comm, delta, servers):
    parts = np.array_split(delta, len(servers))
    for server, part in zip(servers, parts):
        comm.send(request(ADD, part), server)
        comm.send(request(GET), server)
    return np.concatenate([comm.recv(server) for server in servers])
=== wrong: the whole vector to every server :: all :: is the part of servers[k]
-        comm.send(request(ADD, part), server)
+        comm.send(request(ADD, delta), server)
=== wrong: the requests without a kind :: all :: which is no request
+        comm.send(part, server)
=== wrong: pushes the negative :: weights :: That is the negative
+        comm.send(request(ADD, -part), server)
=== wrong: sends Python objects :: all :: got another Python object
+        comm.send(('add', part), server)
=== wrong: whole numbers are sent :: weights :: expected
+        comm.send(request(ADD, part.astype(int)), server)
=== wrong: GET before ADD :: weights :: The weights that come back are to contain delta
     for server, part in zip(servers, parts):
+        comm.send(request(GET), server)
         comm.send(request(ADD, part), server)
-        comm.send(request(GET), server)
=== wrong: get then put instead of add :: weights, time :: ADD keeps both
def push_pull(comm, delta, servers):
    weights = []
    for server, part in zip(servers, np.array_split(delta, len(servers))):
        comm.send(request(GET), server)
        weights.append(comm.recv(server) + part)
        comm.send(request(PUT, weights[-1]), server)
    return np.concatenate(weights)
=== wrong: one server after the other :: time :: Send all requests before you wait for the first reply
     parts = np.array_split(delta, len(servers))
+    replies = []
-    return np.concatenate([comm.recv(server) for server in servers])
+        replies.append(comm.recv(server))
+    return np.concatenate(replies)
=== wrong: the replies in order of arrival :: weights :: in the order in which the replies came
-    return np.concatenate([comm.recv(server) for server in servers])
+    return np.concatenate([comm.recv(ANY) for server in servers])
=== wrong: delta is added once more to what came :: weights :: delta was added once more here
+    return np.concatenate([comm.recv(server) for server in servers]) + delta
=== wrong: a list of parts is returned :: weights :: got shape
+    return [comm.recv(server) for server in servers]
=== wrong: parts of n // S elements, the rest to the last server :: all :: is the part of servers[k]
-    parts = np.array_split(delta, len(servers))
+    each, last = len(delta) // len(servers), len(servers) - 1
+    parts = [delta[k * each : (k + 1) * each] for k in range(last)] + [delta[last * each :]]
=== wrong: never asks :: all :: recv :: stuck
-        comm.send(request(GET), server)
=== wrong: sends DONE, too :: traffic :: 3 messages, 2 needed
         comm.send(request(GET), server)
+        comm.send(request(DONE), server)
=== wrong: clears delta when it is sent :: weights :: changed its argument delta
+    delta[:] = 0
=== wrong: counts the servers from the lowest rank :: all :: is the part of servers[k]
 def push_pull(comm, delta, servers):
+    servers = sorted(servers)
=== wrong: two servers at a time :: time :: expected 1 s
def push_pull(comm, delta, servers):
    parts, replies = np.array_split(delta, len(servers)), []
    for k in range(0, len(servers), 2):
        for server, part in zip(servers[k : k + 2], parts[k : k + 2]):
            comm.send(request(ADD, part), server)
            comm.send(request(GET), server)
        replies += [comm.recv(server) for server in servers[k : k + 2]]
    return np.concatenate(replies)
=== right: all ADDs, then all GETs; the replies are put where they belong
def push_pull(comm, delta, servers):
    parts = dict(zip(servers, np.array_split(delta, len(servers))))
    for server in servers:
        comm.send(request(ADD, parts[server]), server)
    for server in servers:
        comm.send(request(GET), server)
    for _ in servers:
        reply = comm.recv(ANY)
        parts[comm.last_source] = reply
    return np.concatenate(list(parts.values()))
=== right: isend and irecv, into one array
def push_pull(comm, delta, servers):
    weights = np.empty(len(delta))
    begun = []
    for server, indices in zip(servers, np.array_split(np.arange(len(delta)), len(servers))):
        adding, getting = comm.isend(request(ADD, delta[indices]), server), comm.isend(request(GET), server)
        begun.append((indices, comm.irecv(server), adding, getting))
    for indices, coming, *going in begun:
        weights[indices] = coming.wait()
        for work in going:
            work.wait()
    return weights
=== right: the replies are received in reverse
def push_pull(comm, delta, servers):
    for server, part in zip(servers, np.array_split(delta, len(servers))):
        comm.send(request(ADD, part), server)
        comm.send(request(GET), server)
    replies = [comm.recv(server) for server in servers[::-1]]
    return np.concatenate(replies[::-1])
"""
