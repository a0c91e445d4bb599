"""The examples below the options of each command's --help, as they are typed; a test runs them."""

from __future__ import annotations

EXAMPLES = {
    "train": r"""
minidl train --nodes 4
minidl train --model gpt --data stdlib_text --epochs 1
minidl train --nodes 8 --strategy local_sgd:period=8 \
    --on simulation --network 10gbe
minidl train --plan dp=2,pp=2
minidl train --model mlp --optimizer adam:lr=0.003 --epochs 2 --json
""",
    "compare": r"""
minidl compare --strategies synchronous local_sgd:period=8 --networks 1gbe
minidl compare --seeds 3 --strategies synchronous \
    'synchronous:compressor=ef(top_k(0.01))'
minidl compare --strategies synchronous gossip --seeds 5 --format pdf
minidl compare --list
""",
    "simulate": r"""
minidl simulate --nodes 2,8,64 --bytes 100MB --network 10gbe
minidl simulate --racks 8x8 --nic 1us,1200Gbit --uplink 5us,100Gbit \
    --per-group 8
minidl simulate --measured --nodes 2
""",
    "calibrate": r"""
minidl calibrate -o net.json --picture fit.png
mpiexec -f hosts -n 2 minidl calibrate --on mpi -o net.json
""",
    "schedule": r"""
minidl schedule --kind 1f1b --stages 4 --micro-batches 8
minidl schedule --kind zb-h1 --message 0.1
""",
}


def epilog(command: str) -> str:
    """The examples, indented, after the character by which click knows lines that it must not join."""
    return "\b\n" + "\n".join(["Examples:", *(f"  {line}" for line in EXAMPLES[command].strip().splitlines())])
