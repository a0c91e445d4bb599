"""The messages of a ring all-reduce through SimGrid's Python API; run.py starts this with SimGrid's interpreter.

    python3 simgrid_ring.py RANKS STEPS BYTES ALPHA BETA        prints {"seconds": real, "simulated": virtual}

Every rank sends to its right and receives from its left neighbour, STEPS times. The network is CM02 without corrections
(a message takes latency + size / bandwidth), and only `Engine.run` is timed, not the making of hosts and links.
"""

import json
import sys
import time
from typing import Any

from simgrid import Actor, Comm, Engine, LinkInRoute, Mailbox, NetZone

SETTINGS = (
    "network/model:CM02",
    "network/latency-factor:1",
    "network/bandwidth-factor:1",
    "network/weight-S:0",
    "network/TCP-gamma:0",
    "network/crosstraffic:0",
)


def rank(inbox: Any, right: Any, steps: int, nbytes: int) -> None:
    for _ in range(steps):
        receive, _ = inbox.get_async()
        send = right.put_async(None, nbytes)
        Comm.wait_all([receive, send])


def main() -> None:
    ranks, steps, nbytes = map(int, sys.argv[1:4])
    alpha, beta = map(float, sys.argv[4:6])
    engine = Engine(["ring", "--log=root.thres:warning", *(f"--cfg={setting}" for setting in SETTINGS)])
    zone = NetZone.create_star_zone("cluster")
    hosts = [zone.create_host(f"rank{i}", 1e9) for i in range(ranks)]
    for i, host in enumerate(hosts):
        card = zone.create_split_duplex_link(f"card{i}", 1 / beta).set_latency(alpha / 2).seal()
        zone.add_route(host.netpoint, None, None, None, [LinkInRoute(card, LinkInRoute.UP)], True)
        host.seal()
    zone.seal()
    boxes = [Mailbox.by_name(f"rank{i}") for i in range(ranks)]
    for i, host in enumerate(hosts):
        Actor.create(f"rank{i}", host, rank, boxes[i], boxes[(i + 1) % ranks], steps, nbytes)
    began = time.perf_counter()
    engine.run()
    seconds = time.perf_counter() - began
    print(json.dumps({"seconds": seconds, "simulated": Engine.clock}))


if __name__ == "__main__":
    main()
