"""Measure the table by which `F.conv2d(algorithm="auto")` chooses: `python -m benchmarks.convolutions`.

It writes `minidl/functional/convolution_times.csv`. Takes a minute on an idle core; leave the machine alone meanwhile.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

from benchmarks.peers.conditions import conditions
from minidl.functional import convolution_table
from minidl.functional.convolution_table import TIMED
from minidl.functional.micro_batches import measured

FEW = [(64, 1, 28, 6), (64, 6, 14, 16), (32, 16, 32, 16), (4, 16, 56, 16), (8, 64, 16, 64)]
MANY = [(4, 256, 14, 256), (4, 512, 7, 512)]
SIZES = [(*of_images, window) for of_images, window in [*product(FEW, (1, 3, 5, 9, 15)), *product(MANY, (1, 3, 5))]]


def main() -> None:
    lines = ["# seconds of processor time, convolution and both gradients, float32, one thread"]
    lines += [f"# {name}: {value}" for name, value in conditions()]
    lines.append(",".join(["n", "channels", "size", "filters", "window", *TIMED]))
    for n, channels, size, filters, window in SIZES:
        shape, weight = (n, channels, size, size), (filters, channels, window, window)
        row = [n, channels, size, filters, window]
        cells = []
        for name in TIMED:
            able = name != "winograd" or window in (1, 3)
            algorithm = None if name == "none" else name
            seconds = measured(shape, weight, padding=window // 2, algorithm=algorithm).seconds if able else None
            cells.append("" if seconds is None else f"{seconds:.3e}")
        lines.append(",".join([*map(str, row), *cells]))
        print(lines[-1], flush=True)
    path = Path(convolution_table.__file__).with_name("convolution_times.csv")
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
