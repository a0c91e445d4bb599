"""`minidl simulate`: times that equal their formulas, in a table, as CSV and as pictures; bad input in one sentence."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from minidl.cli.quantities import parse_bytes, parse_rate, parse_seconds
from minidl.cli.simulate import cases, report
from minidl.cluster import cost
from minidl.cluster.cost.network import Network
from tests.cli.command import refuses, succeeds
from tests.plots.player.decoded import meta_of
from tests.tiers import all_but_first_exhaustive

pytestmark = pytest.mark.timeout(300)

ALPHA, BETA = 20e-6, 8e-10  # of 10gbe


def simulate(*arguments: object) -> tuple[list[dict[str, str]], str]:
    """The rows of the table that the command leaves in the folder `out`, and what it prints."""
    said = succeeds("simulate", "--out", "out", *arguments)
    with Path("out/times.csv").open(newline="") as file:
        return list(csv.DictReader(file)), said


def number(row: dict[str, str], name: str) -> float:
    return float(row[name])


def test_a_ring_takes_as_long_as_by_hand_and_sends_as_much():
    rows, _ = simulate("--algorithm", "ring", "--nodes", "2,4,10", "--bytes", "4MB")
    assert [row["nodes"] for row in rows] == ["2", "4", "10"]
    for row, p in zip(rows, (2, 4, 10), strict=True):
        seconds = 2 * (p - 1) * (ALPHA + 4_000_000 / p * BETA)
        assert number(row, "simulated_seconds") == pytest.approx(seconds, rel=1e-9)
        assert number(row, "formula_seconds") == pytest.approx(seconds, rel=1e-9)
        assert int(row["messages"]) == 2 * (p - 1)
        assert int(row["bytes_sent"]) == 2 * (p - 1) * 4_000_000 // p


def test_every_collective_and_algorithm_takes_as_long_as_its_formula_says():
    for collective in cases.PROGRAMS:
        sizes = () if collective == "barrier" else ("--bytes", "4000,1MB")
        rows, _ = simulate("--collective", collective, "--nodes", "2,3,8", *sizes, "--gamma", 1e-10)
        assert len(rows) == (2 if sizes else 1) * 3 * len(cases.ALGORITHMS[collective])
        for row in rows:
            assert number(row, "simulated_seconds") == pytest.approx(number(row, "formula_seconds"), rel=1e-9), row


def test_auto_says_what_it_picked_and_is_among_the_fastest():
    rows, said = simulate("--nodes", "2,6,32", "--bytes", "64,64KiB,100MB")
    assert {row["algorithm"] for row in rows} == set(cases.ALGORITHMS["all_reduce"])
    groups: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in rows:
        groups.setdefault((row["bytes"], row["nodes"]), []).append(row)
    for group in groups.values():
        (auto,) = (row for row in group if row["algorithm"] == "auto")
        (same,) = (row for row in group if row["algorithm"] == auto["chosen"])
        assert auto["simulated_seconds"] == same["simulated_seconds"]
        fastest = min(number(row, "simulated_seconds") for row in group)
        assert number(auto, "simulated_seconds") <= 1.1 * fastest
    assert len({row["chosen"] for row in rows if row["algorithm"] == "auto"}) > 1
    assert "auto: recursive_doubling" in said


@pytest.mark.usefixtures("pictures")
def test_simulate_writes_table_pictures_and_traces_into_a_new_folder_in_runs():
    said = succeeds("simulate", "--nodes", "2,4", "--bytes", "1MB")
    (folder,) = Path("runs").iterdir()
    assert folder.name.startswith("simulate-all_reduce-")
    traces = ["trace-parameter_server-4.json", "trace-rabenseifner-4.json"]
    files = ["run.html", "timeline.png", "times.csv", "times.png", *traces]
    assert sorted(path.name for path in folder.iterdir()) == files
    titles = [run["title"] for run in meta_of((folder / "run.html").read_text(encoding="utf-8"))["runs"]]
    assert [title.split(" of ")[0] for title in titles] == [
        "all_reduce (rabenseifner)",
        "all_reduce (parameter_server)",
    ]
    for name in ("times.png", "timeline.png"):
        assert (folder / name).read_bytes().startswith(b"\x89PNG")
    assert "simulated" in json.dumps(json.loads((folder / "trace-rabenseifner-4.json").read_text())).lower()
    assert "all_reduce of 1 MB, 10gbe: simulated, and by the formula" in said
    assert f"In {folder}: {', '.join(files)}" in said


def timelines(*arguments: object) -> list[str]:
    _, said = simulate(*arguments)
    return [line.removeprefix("Timeline: ") for line in said.splitlines() if line.startswith("Timeline: ")]


def test_timelines_show_the_runs_of_trace_of_or_the_fastest_and_slowest_on_few_nodes():
    named = ("--trace-of", "tree:4", "--trace-of", "2")
    assert timelines("--nodes", "2,4", "--algorithm", "ring,tree", *named) == [
        "all_reduce (tree) of 100 MB on 4 nodes, 10gbe",
        "all_reduce (ring) of 100 MB on 2 nodes, 10gbe",
    ]
    assert timelines("--nodes", "2,4,16", "--algorithm", "tree,ring,auto") == [
        "all_reduce (auto, rabenseifner) of 100 MB on 4 nodes, 10gbe",
        "all_reduce (tree) of 100 MB on 4 nodes, 10gbe",
    ]
    assert timelines("--collective", "broadcast", "--nodes", "2") == ["broadcast (tree) of 100 MB on 2 nodes, 10gbe"]


def test_thousands_of_nodes_are_simulated_and_their_timeline_is_not_drawn():
    (row,), said = simulate("--collective", "barrier", "--nodes", 2048, "--alpha", 1, "--beta", 0)
    assert number(row, "simulated_seconds") == 11
    assert (row["bytes"], row["bytes_sent"]) == ("0", "0")  # a barrier has none
    assert "No timeline of more than 64 nodes is drawn unless --trace-of names it" in said
    assert not Path("out/timeline.png").exists()


def test_networks_sizes_and_nodes_are_all_combined():
    rows, _ = simulate(
        "--network", "1gbe", "--network", "nvlink", "--bytes", "1MB,2MB", "--nodes", "2,3", "--algorithm", "ring"
    )
    assert [(row["network"], row["bytes"], row["nodes"]) for row in rows] == [
        (network, nbytes, nodes)
        for network in ("1gbe", "nvlink")
        for nbytes in ("1000000", "2000000")
        for nodes in ("2", "3")
    ]


def test_alpha_and_beta_take_the_place_of_the_presets():
    two = ("--algorithm", "tree", "--nodes", 2, "--bytes", 400)
    (row,), _ = simulate(*two, "--alpha", 1e-3)
    assert number(row, "simulated_seconds") == pytest.approx(2 * (1e-3 + 400 * BETA), rel=1e-9)
    (row,), _ = simulate(*two, "--alpha", 0, "--beta", 1, "--gamma", 2)
    assert number(row, "simulated_seconds") == pytest.approx(2 * 400 + 2 * 400, rel=1e-9)


RACKS = ("--network", "racks:4x4@1us/1200Gbit@5us/100Gbit")


def test_on_four_machines_of_four_gpus_groups_that_are_machines_win_as_the_formula_says():
    rows, said = simulate(*RACKS, "--per-group", 4, "--algorithm", "ring,hierarchical,ordered,auto")
    assert {row["nodes"] for row in rows} == {"16"}
    ring, hierarchical, ordered, auto = rows
    machines = Network.tree(4, 4, nic=(1e-6, 150e9), uplink=(5e-6, 12.5e9))
    for row, options in ((ring, {}), (hierarchical, {"per_group": 4})):
        seconds = cost.all_reduce_on(machines, row["algorithm"], 16, 10**8, **options)
        assert number(row, "simulated_seconds") == pytest.approx(seconds, rel=1e-3)
        assert number(row, "formula_seconds") == seconds
    assert number(hierarchical, "simulated_seconds") < number(ring, "simulated_seconds")
    assert (auto["chosen"], auto["per_group"], ring["per_group"]) == ("hierarchical", "4", "")
    assert ordered["formula_seconds"] == ""
    assert "hierarchical: 4 x 4 " in said
    assert "-: there is no formula for links that are shared" in said


def test_one_command_says_which_all_reduce_wins_on_which_topology():
    networks = ("torus:4x4@1us/100Gbit", "fat_tree:4x4", "dragonfly:2x2x2x2@10gbe", "infiniband")
    rows, said = simulate("--networks", *networks, "--nodes", 16, "--bytes", "1.2MB")
    lines = [" ".join(line.split()) for line in said.splitlines()]
    for name in networks:
        here = [row for row in rows if row["network"] == name and row["algorithm"] != "auto"]
        best = min(here, key=lambda row: number(row, "simulated_seconds"))
        line = next(line for line in lines if line.startswith(f"{name} 1.2 MB 16 "))
        assert best["algorithm"] in line
    assert "hierarchical: 4 x 4" in said  # by default neighbours
    _, alone = simulate("--network", "infiniband", "--nodes", 4, "--bytes", "1MB")
    assert "The fastest" in said
    assert "The fastest" not in alone


@pytest.mark.usefixtures("pictures")
@pytest.mark.parametrize(
    ("drawn", "own"), [(("ring:5", "pipelined_chain:5"), False), (("ring:5", "parameter_server:5"), True)]
)
def test_timelines_of_which_one_takes_over_twice_as_long_have_axes_of_their_own(drawn, own, monkeypatch):
    asked = []
    monkeypatch.setattr(report, "plot_traces", lambda *_, own_axes, **__: asked.append(own_axes))
    simulate("--nodes", 5, "--bytes", "1MB", "--trace-of", *drawn)
    assert asked == [own]


def test_the_network_file_written_for_racks_can_be_given_as_a_network():
    (row,), _ = simulate(*RACKS, "--algorithm", "ring")
    Path("out/network.json").rename("racks.json")
    (again,), _ = simulate("--networks", "racks.json", "--algorithm", "ring")
    assert again["simulated_seconds"] == row["simulated_seconds"]


def test_the_table_fits_a_terminal_and_says_the_groups_of_hierarchical():
    _, said = simulate("--algorithm", "hierarchical,tree,auto", "--nodes", "12,16")
    assert "hierarchical: 4 x 3 " in said
    assert "hierarchical: groups x nodes in each" in said
    lines = [" ".join(line.split()) for line in said.splitlines()]
    assert "auto: rabenseifner 150.2 ms 150.2 ms 1.00 8 188 MB" in lines
    assert "…" not in said
    assert max(len(line) for line in said.splitlines() if not line.startswith(("Timeline", "In "))) <= 80


def test_measured_runs_the_collectives_and_simulates_a_network_calibrated_on_this_machine():
    rows, said = simulate("--measured", "--nodes", 2, "--bytes", "4KiB,8KiB", "--algorithm", "ring,tree")
    for row in rows:
        least, median, most = (number(row, f"measured_seconds_{name}") for name in ("least", "median", "most"))
        assert 0 < least <= median <= most
        assert row["network"] == "processes, calibrated"
    assert Path("out/measured.png").exists()
    network = Network.load("out/network.json")
    assert len(network.measured) > 2
    assert number(rows[0], "simulated_seconds") == pytest.approx(
        cost.ring(2, 4096, network.alpha, network.beta, network.gamma, 4)
    )
    assert "ratio: measured / simulated" in said


@pytest.mark.parametrize(
    "collective", all_but_first_exhaustive([name for name in cases.ALGORITHMS if name != "all_reduce"])
)
def test_every_collective_can_be_measured(collective):
    size = () if collective == "barrier" else ("--bytes", 4096)
    (row,), _ = simulate("--measured", "--collective", collective, "--nodes", 2, *size, "--network", "10gbe")
    assert number(row, "measured_seconds_median") > 0


def outcomes(networks: tuple[str, ...], sizes: list[int], nodes: list[int]) -> list[cases.SimulatedCase]:
    named = [(name, Network.preset(name)) for name in networks]
    return [cases.simulated(case) for case in cases.combinations("all_reduce", ["ring", "auto"], named, sizes, nodes)]


OWN = """
import numpy as np

def through_rank_0(comm, x, op="sum"):
    if comm.rank == 0:
        for other in range(1, comm.size):
            comm.reduce_into(x, comm.recv(other, out=np.empty_like(x)), op)
        for other in range(1, comm.size):
            comm.send(x, other)
    else:
        comm.send(x, 0)
        comm.recv(0, out=x)
"""


@pytest.mark.parametrize("measured", [(), ("--measured",)])
def test_an_all_reduce_of_ones_own_takes_as_long_as_the_server_whose_messages_it_sends(measured):
    Path("my.py").write_text(OWN)
    words = ("--import", "my.py", "--nodes", 2 if measured else 4, "--bytes", "1MB", "--network", "10gbe")
    rows, said = simulate(*words, *measured, "--algorithm", "through_rank_0", "parameter_server")
    own, server = rows
    assert own["simulated_seconds"] == server["simulated_seconds"]
    assert (own["messages"], own["bytes_sent"]) == (server["messages"], server["bytes_sent"])
    assert (own["algorithm"], own["formula_seconds"]) == ("through_rank_0", "")
    assert "-: there is no formula for an algorithm of your own" in said


def test_an_all_reduce_of_ones_own_is_refused_in_one_sentence():
    Path("my.py").write_text(OWN)
    Path("ring.py").write_text("def ring(comm, x, op): ...\n")
    refuses(
        "simulate --import my.py --out out",
        {
            "--algorithm through_rank_1": "or 'through_rank_0', got 'through_rank_1': did you mean 'through_rank_0'?",
            "--algorithm through_rank_0 --nodes 2000": "--nodes 2000: at most 1,024 nodes by through_rank_0 are simul",
            "--algorithm through_rank_0 --alpha 0 --beta 0": "takes no time at all: give an --alpha above 0",
            "--import ring.py": "ring.py: ring would be typed as ring, a name that exists already: choose another",
        },
    )


def test_the_picture_is_against_nodes_or_bytes_and_says_simulated():
    for networks, sizes, nodes, xlabel, x in (
        (("10gbe",), [4000], [2, 4], "nodes", [2, 4]),
        (("10gbe",), [4000, 8000], [4], "bytes", [4000, 8000]),
        (("1gbe", "10gbe"), [4000, 8000], [2, 4, 8], "nodes", [2, 4, 8]),
    ):
        figure = report.picture(outcomes(networks, sizes, nodes))
        assert len(figure.axes) == (1 if xlabel == "bytes" else len(networks) * len(sizes))
        last = figure.axes[-1]
        assert last.get_xlabel() == xlabel
        assert [list(line.get_xdata()) for line in last.lines] == [x, x]
        assert (figure.get_suptitle(), figure.get_supxlabel()) == ("all_reduce", "simulated")
    (axes,) = report.picture(outcomes(("10gbe",), [4000], [4])).axes  # a single place: bars
    assert [label.get_text() for label in axes.get_yticklabels()] == ["ring", "auto"]
    assert len(axes.patches) == 2


def test_bad_input_is_refused_in_one_sentence_before_there_is_a_folder():
    racks = "--network racks:8x8@1us/1200Gbit"
    refuses(
        "simulate --out out",
        {
            "--collective allreduce": "or 'barrier', got 'allreduce': did you mean 'all_reduce'?",
            "--algorithm rign": "or 'auto', got 'rign': did you mean 'ring'?",
            "--collective broadcast --algorithm ring": "broadcast is always done by 'tree': leave out --algo",
            "--network none": "network must be '1gbe', '10gbe'",
            "--network racks:8": "racks:8: racks takes two numbers, as in racks:8x8: racks, nodes in each",
            f"{racks}@5us": "the link '5us' must be like 1us/100Gbit or like infiniband: '' is no speed: write it as",
            f"{racks}@5us/9": "the link '5us/9' must be like 1us/100Gbit or like infiniband: '9' is no speed: write",
            f"{racks}@5\N{LATIN SMALL LETTER LONG S}/1Gbit": "' is no time: write it as 5us, 1.5ms",
            f"{racks}@10gbe@10gbe": "racks takes at most two links after @, got 3",
            "--network racks:100000x100000": "has 10,000,000,000 nodes: at most 1,024 are simulated",
            "--network torus:8x8x17": "torus:8x8x17 has 1,088 nodes: at most 1,024 are simulated",
            "--network torus": "or 'nvlink', got 'torus': or give a file .json, or a topology such as torus:4x4x2",
            "--network tours:8x8": "the kind of a topology must be 'racks', 'torus', 'fat_tree' or 'dragonfly', got",
            "--network torus:8x8 --nodes 65": "65 nodes have no place in",
            f"{racks} --nodes 2,2000": "--nodes 2000: at most 1,024 nodes of a topology are simulated",
            f"{racks} --beta 0": "--alpha and --beta cannot replace the links of racks:8x8@1us/1200Gbit: write them as",
            "--per-group 3 --nodes 8": "per_group must divide the number of ranks, 8; got 3",
            "--per-group 2 --algorithm ring": "--per-group is for hierarchical: leave it out, or add",
            "--on mpi": "--on says where --measured makes the calls for real: give --measured too",
            "--measured --on simulation": "--on must be 'processes' or 'mpi', got 'simulation'",
            "--measured --networks 1gbe,10gbe": "--measured is set beside one network: give at most one",
            "--nodes 1": "--nodes must be from 2 to 16384, got 1",
            "--collective all_to_all --nodes 5000": "--nodes 5000: an all_to_all is simulated on at most 4,096",
            "--nodes -4": "--nodes takes whole numbers with commas between, such as 2,4,8, got '-4'",
            "--nodes ,": "--nodes was given without a value",
            "--bytes '100 apples'": "'100 apples' is not a number of bytes: write it as 4096, 64KiB or 100MB",
            "--bytes 6": "--bytes 6: a vector of float32 has a multiple of 4 bytes, above 0",
            "--bytes 1.23456KB": "'1.23456KB' is not a whole number of bytes",
            "--bytes 1e999": "'1e999' is not a whole number of bytes",
            "--alpha -1": "alpha (seconds per message) must be at least 0, got -1.0",
            "--beta 1e20": "s: give fewer bytes, a smaller --alpha or --beta",
            "--alpha 0 --beta 0": "alpha 0, beta 0, takes no time at all: give an --alpha above 0",
            "--collective barrier --bytes 1MB": "--bytes is the size of a vector, and a barrier sends none: leave it",
            "--network 1gbe,10gbe --alpha 1": "give at most one --network with them",
            "--trace-of ring:5": "--trace-of ring:5 is none of the runs: name one of them by ALGORITHM:NODES, such",
            f"--bytes {','.join(f'{n}MB' for n in range(1, 14))}": "are 13 panels of a picture, in which at most 12",
        },
    )


def test_amounts_are_read_as_people_write_them():
    sizes = {"4": 4, "4B": 4, "64kib": 65536, "1.5 MB": 1_500_000, "2g": 2 * 10**9, "1e6": 10**6}
    assert {text: parse_bytes(text) for text in sizes} == sizes
    bits = {f"100{unit}": 12.5e9 for unit in ("Gbit", "gbit", "Gb", "Gbps", "Gb/s", " Gbit/s")}
    rates = bits | {f"100{unit}": 100e9 for unit in ("GB", "gB", "GB/s", " GBps")}
    assert {text: parse_rate(text) for text in rates} == rates
    times = {f"5{unit}": 5e-6 for unit in ("us", "US", "\N{MICRO SIGN}s", "\N{GREEK SMALL LETTER MU}s")}
    assert {text: parse_seconds(text) for text in times} == times
