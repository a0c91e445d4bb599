"""Reference times from SimGrid: when transfers on racks and other topologies finish, for the tests of the simulation.

    python3 benchmarks/simgrid_times.py tests/cluster/engines/simulation/files/simgrid_times.json

Needs only an interpreter with SimGrid, such as /usr/bin/python3 with Debian's python3-simgrid 3.32. The
network is CM02 without corrections. CM02 divides a link in proportion to 1 / latency of the routes, which is max-min
fair only where all routes have the same latency. There the links have the latency ("links"); elsewhere the
sender sleeps for it before the flow begins, and the links have none ("slept").

The zones are SimGrid's own torus, fat tree and dragonfly; their routes are written, too. Links of a zone have a latency
only in cases whose routes all have the same number of links.

A transfer is [src, dst, bytes, start, [transfers that finish before it]]. SimGrid has one engine a process, so each
case has a process of its own: this program, started again with `--case`.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

SETTINGS = (
    "network/model:CM02",
    "network/latency-factor:1",
    "network/bandwidth-factor:1",
    "network/weight-S:0",
    "network/TCP-gamma:0",
    "network/crosstraffic:0",
    "maxmin/precision:1e-15",
    "surf/precision:1e-15",
)
SLOW, FAST = (50e-6, 125e6), (2e-6, 12.5e9)  # network cards: seconds, bytes per second
HOP = 10e-6  # the latency of an uplink
MARK = "RESULT "

Transfer = list  # [src, dst, bytes, start, [numbers of transfers]]


@dataclass
class Case:
    """Transfers on a tree: racks of hosts, a card for each host and an uplink for each rack, (latency, bandwidth)."""

    name: str
    latency: str
    racks: int
    per_rack: int
    nic: tuple[float, float]
    uplink: tuple[float, float]
    transfers: list[Transfer]


@dataclass
class ZoneCase:
    """Transfers on one of SimGrid's zones, typed as in minidl/cluster/cost/topologies/text.py, with all its lists."""

    name: str
    topology: str
    link: tuple[float, float]
    transfers: list[Transfer]
    latency: str = "links"


def zone_cases():
    """For each topology a message to the last rank, alone, and two random permutations at once."""
    for topology, ranks in (
        ("torus:5x3x2", 30),
        ("fat_tree:4x3:1x3:1x1", 12),
        ("fat_tree:3x2x3:1x2x2:1x1x2", 18),
        ("fat_tree:6:2:2", 6),
        ("dragonfly:4x1x4x2:1x1x1", 32),
        ("dragonfly:2x3x3x1:2x1x3", 18),
    ):
        rng = random.Random(topology)
        both = [(i, j) for _ in range(2) for i, j in enumerate(permutation(rng, ranks))]
        sent = [[i, j, rng.randrange(1, 4_000_000), 0.0, []] for i, j in both if not is_misrouted(topology, i, j)]
        yield ZoneCase(f"alone on {topology}", topology, SLOW, [[0, ranks - 1, 1_234_567, 0.0, []]])
        yield ZoneCase(f"two random permutations on {topology}", topology, (0.0, 125e6), sent)


def is_misrouted(topology, src, dst):
    """Whether SimGrid 3.32 sends it over links that do not meet.

    Within a group of a dragonfly, it puts a message that has changed its place in a chassis into the first chassis.
    """
    kind, sizes, *_ = topology.split(":")
    if kind != "dragonfly":
        return False
    _, chassis, routers, nodes = map(int, sizes.split("x"))
    (src, dst), group = (src // nodes, dst // nodes), chassis * routers
    return src // group == dst // group and src % group >= routers and src % routers != dst % routers


def cases():
    """All patterns: single messages, congestion, random traffic, collectives."""
    return [*one_to_one_and_all(), *shifts(), *mixtures(), *random_traffic(), *collectives()]


def one_to_one_and_all():
    to_one = [[i, 0, 100_000, 0.0, []] for i in range(1, 8)]
    to_all = [[0, i, 50_000 * i, 1e-4 * (i % 3), []] for i in range(1, 8)]
    over_racks = [[i, 0, 100_000 + 7 * i, 0.0, []] for i in range(1, 16)]
    yield Case("one message in a rack", "links", 1, 2, SLOW, FAST, [[0, 1, 1_000_000, 0.0, []]])
    yield Case("one message between racks", "links", 2, 1, SLOW, (HOP, 100e6), [[0, 1, 1_000_000, 0.0, []]])
    both = [[0, 1, 1_000_000, 0.0, []], [1, 0, 3_000_000, 0.0, []]]
    yield Case("both directions at once", "links", 1, 2, SLOW, FAST, both)
    yield Case("all to one in a rack", "links", 1, 8, SLOW, FAST, to_one)
    yield Case("one to all in a rack, uneven sizes and starts", "links", 1, 8, SLOW, FAST, to_all)
    yield Case("all to one over racks", "slept", 4, 4, SLOW, (HOP, 250e6), over_racks)


def shifts():
    """Every rank sends to the rank `shift` places to its right."""
    for name, latency, shift, nbytes, bandwidth in (
        ("shift by a rack, full bisection", "links", 4, 1_000_000, 500e6),
        ("shift by a rack, four to one oversubscribed", "links", 4, 1_000_000, 125e6),
        ("shift by 1, oversubscribed", "slept", 1, 300_000, 200e6),
        ("shift by 3, oversubscribed", "slept", 3, 300_000, 200e6),
        ("shift by 6, oversubscribed", "slept", 6, 300_000, 200e6),
    ):
        transfers = [[i, (i + shift) % 16, nbytes, 0.0, []] for i in range(16)]
        yield Case(name, latency, 4, 4, SLOW, (HOP, bandwidth), transfers)


def mixtures():
    overlapping = [
        [0, 4, 5_000_000, 0.0, []],
        [1, 5, 1_000_000, 5e-3, []],
        [2, 6, 2_500_000, 6e-3, []],
        [3, 7, 300_000, 6.5e-3, []],
        [4, 0, 777_777, 1e-3, []],
    ]
    tiny = [
        [0, 2, 0, 0.0, []],
        [1, 2, 1, 0.0, []],
        [0, 3, 10_000_000, 0.0, []],
        [1, 3, 10_000_000, 1e-6, []],
        [2, 0, 3, 1e-3, []],
        [2, 3, 0, 5e-4, []],
    ]
    yield Case("uneven overlap on one uplink", "links", 2, 4, SLOW, (HOP, 200e6), overlapping)
    yield Case("empty and tiny messages among large ones", "slept", 2, 2, FAST, (5e-6, 5e9), tiny)


def random_traffic():
    for racks, per_rack in ((2, 4), (4, 8), (8, 4)):
        rng = random.Random(f"{racks}x{per_rack}")
        transfers = []
        for _ in range(2):
            for i, j in enumerate(permutation(rng, racks * per_rack)):
                transfers.append([i, j, rng.randrange(1, 4_000_000), round(rng.random() * 0.02, 9), []])
        uplink = HOP, 125e6 * per_rack / 3
        yield Case(
            f"two random permutations on {racks} x {per_rack}", "slept", racks, per_rack, SLOW, uplink, transfers
        )
    rng = random.Random("many")
    transfers = []
    while len(transfers) < 120:
        i, j = rng.randrange(24), rng.randrange(24)
        if i // 6 != j // 6:
            transfers.append([i, j, rng.randrange(1, 1_000_000), round(rng.random() * 0.01, 9), []])
    yield Case("120 concurrent between 4 racks, random", "slept", 4, 6, SLOW, (HOP, 300e6), transfers)


def permutation(rng, size):
    """A random permutation without a fixed point."""
    order = list(range(size))
    while any(i == j for i, j in enumerate(order)):
        rng.shuffle(order)
    return order


def collectives():
    yield Case("ring all-reduce of 4 MB in a rack of 8", "links", 1, 8, SLOW, FAST, ring(8, 500_000, 14))
    yield Case(
        "ring all-reduce over 4 racks of 2, thin uplinks", "slept", 4, 2, SLOW, (HOP, 60e6), ring(8, 500_000, 14)
    )
    yield Case("butterfly over 4 racks of 4, thin uplinks", "slept", 4, 4, SLOW, (HOP, 150e6), butterfly(16, 400_000))


def ring(ranks, nbytes, steps):
    """Every rank sends to its right; a step begins when the rank and both neighbours have finished the previous one."""
    transfers = []
    for step in range(steps):
        for i in range(ranks):
            ended = {(i - 1) % ranks, i, (i + 1) % ranks} if step else ()
            before = sorted((step - 1) * ranks + rank for rank in ended)
            transfers.append([i, (i + 1) % ranks, nbytes, 0.0, before])
    return transfers


def butterfly(ranks, nbytes):
    """Exchanges with the rank 1, 2, 4, ... away; each begins when both ranks have finished the previous one."""
    transfers = []
    for step in range(ranks.bit_length() - 1):
        near, far = (1 << step) >> 1, 1 << step
        for i in range(ranks):
            ended = {i, i ^ far, i ^ near, i ^ far ^ near} if step else ()
            before = sorted((step - 1) * ranks + rank for rank in ended)
            transfers.append([i, i ^ far, nbytes, 0.0, before])
    return transfers


def finish_times(case):
    """When each transfer ends in SimGrid: one actor per transfer, which waits for its predecessors and its start."""
    from simgrid import Actor, Comm, Engine, Semaphore, this_actor

    engine = Engine(["times", "--log=root.thres:warning", *(f"--cfg={setting}" for setting in SETTINGS)])
    hosts = zone(case) if isinstance(case, ZoneCase) else tree(case)
    finished = [None] * len(case.transfers)
    done = [Semaphore(0) for _ in finished]
    followers = [sum(k in before for *_, before in case.transfers) for k in range(len(finished))]

    def transfer(k):
        src, dst, nbytes, start, before = case.transfers[k]
        for other in before:
            done[other].acquire()
        if start:
            this_actor.sleep_until(start)
        if case.latency == "slept":
            crosses = src // case.per_rack != dst // case.per_rack
            this_actor.sleep_for(2 * case.nic[0] + (2 * case.uplink[0] if crosses else 0.0))
        if nbytes or case.latency == "links":
            Comm.sendto(hosts[src], hosts[dst], nbytes)
        finished[k] = Engine.clock
        for _ in range(followers[k]):
            done[k].release()

    for k, (src, *_) in enumerate(case.transfers):
        Actor.create(f"transfer{k}", hosts[src], transfer, k)
    engine.run()
    if None in finished:
        raise RuntimeError(f"{case.name}: transfer {finished.index(None)} never finished")
    return {"finished": finished} | ({"routes": routes(case, hosts)} if case.name.startswith("alone on ") else {})


def routes(case, hosts):
    """The source, the destination and the links of each route; links are numbered as they appear."""
    numbers: dict = {}
    return [
        (i, j, [numbers.setdefault(link.name, len(numbers)) for link in src.route_to(dst)[0]])
        for i, src in enumerate(hosts)
        for j, dst in enumerate(hosts)
        if i != j and not is_misrouted(case.topology, i, j)
    ]


def zone(case):
    """The hosts of the case's zone, whose links are all like the case's."""
    from simgrid import ClusterCallbacks, DragonflyParams, FatTreeParams, Link, NetZone

    kind, *lists = case.topology.split(":")
    sizes = [[int(size) for size in one.split("x")] for one in lists]
    hosts = []

    def host(zone, _, number):
        hosts.append(zone.create_host(f"rank{number}", 1e9).seal())
        return hosts[-1].netpoint, None

    callbacks = ClusterCallbacks(host, None, None)
    link = case.link[1], case.link[0], Link.SharingPolicy.SPLITDUPLEX
    if kind == "torus":
        made = NetZone.create_torus_zone("zone", None, sizes[0], callbacks, *link)
    elif kind == "fat_tree":
        made = NetZone.create_fatTree_zone("zone", None, FatTreeParams(len(sizes[0]), *sizes), callbacks, *link)
    else:
        (groups, chassis, routers, nodes), (blue, black, green) = sizes
        params = DragonflyParams((groups, blue), (chassis, black), (routers, green), nodes)
        made = NetZone.create_dragonfly_zone("zone", None, params, callbacks, *link)
    made.seal()
    return hosts


def tree(case):
    """The hosts of the case's network, with a link out of and into each host, and up from and down to each rack."""
    from simgrid import LinkInRoute, NetZone

    zone = NetZone.create_full_zone("zone")
    ranks = range(case.racks * case.per_rack)
    hosts = [zone.create_host(f"rank{i}", 1e9) for i in ranks]

    def link(name, latency, bandwidth):
        made = zone.create_link(name, bandwidth).set_latency(latency if case.latency == "links" else 0.0)
        return LinkInRoute(made.seal())

    out, into = ([link(f"{way}{i}", *case.nic) for i in ranks] for way in ("out", "in"))
    up, down = ([link(f"{way}{i}", *case.uplink) for i in range(case.racks)] for way in ("up", "down"))
    for i in ranks:
        for j in ranks:
            if i != j:
                rack, other = i // case.per_rack, j // case.per_rack
                between = [up[rack], down[other]] if rack != other else []
                zone.add_route(hosts[i].netpoint, hosts[j].netpoint, None, None, [out[i], *between, into[j]], False)
    for host in hosts:
        host.seal()
    zone.seal()
    return hosts


def finish_times_in_a_process(case):
    """The same in a process of its own, because SimGrid has one engine a process."""
    command = [sys.executable, __file__, "--case"]
    ended = subprocess.run(command, input=json.dumps(asdict(case)), capture_output=True, text=True, timeout=300)
    for line in ended.stdout.splitlines():
        if line.startswith(MARK):
            return json.loads(line[len(MARK) :])
    sys.exit(f"{case.name}: SimGrid gave no result\n{ended.stdout[-800:]}{ended.stderr[-1500:]}")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if sys.argv[1] == "--case":
        given = json.loads(sys.stdin.read())
        print(MARK + json.dumps(finish_times((ZoneCase if "topology" in given else Case)(**given))))
        return
    import simgrid

    lines = []
    for case in (*cases(), *zone_cases()):
        found = finish_times_in_a_process(case)
        print(f"{max(found['finished']):.6f} s  {case.name}")
        lines.append(json.dumps({**asdict(case), **found}, separators=(",", ":")))
    version = simgrid.simgrid_version
    version = version if isinstance(version, str) else ".".join(map(str, version))
    about = json.dumps(f"SimGrid {version}, {' '.join(SETTINGS)}")
    Path(sys.argv[1]).write_text(f'{{"about": {about},\n"cases": [\n' + ",\n".join(lines) + "\n]}\n")


if __name__ == "__main__":
    main()
