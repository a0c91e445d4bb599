"""Published step times of large language models, and how far the planner's formula is from each.

Narayanan et al. (arXiv:2104.04473), table 1; Korthikanti et al. (arXiv:2205.05198), table 5; MT-NLG, in llm-analysis's
README, which quotes the paper; vTrain; Megatron-Core's README, weak scaling on H100.

Two constants are fitted, to five rows; the form of the formula was chosen with all rows in view, so that the errors of
the others are no blind test.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from minidl.parallel.planner.arrangement import Arrangement
from minidl.parallel.planner.machine import MACHINES, Machine
from minidl.parallel.planner.step_time import step_time
from minidl.parallel.planner.transformer import Transformer

__all__ = ["ANCHORS", "FITTED", "ROWS", "Row", "anchored", "constant", "error", "predicted", "spread"]

CHUNKS = "interleaving: chunks of at most 3 a stage"
MICRO_BATCH = "micro-batch, from a note"
APART = "gradients of weights added in a pass of their own, as before 2022"
ONE_CHUNK = "micro-batch 1, no interleaving"
RECOMPUTED = "recomputation, no interleaving"
SIZES = "width, layers, heads, batch, micro-batch, interleaving"


@dataclass(frozen=True)
class Row:
    """A published step: its source, the model, how it was divided, seconds, and what of that is assumed here."""

    source: str
    name: str
    model: Transformer
    arrangement: Arrangement
    seconds: float
    assumed: tuple[str, ...] = ()
    machine: str = "a100x8"

    @property
    def label(self) -> str:
        """Source and name."""
        return f"{self.source} {self.name}"


def error(row: Row, machine: Machine | None = None) -> float:
    """The formula's seconds by the published ones, minus 1."""
    return predicted(row, machine) / row.seconds - 1


def predicted(row: Row, machine: Machine | None = None) -> float:
    """The formula's seconds. machine: whose constants hold; by default that of the row."""
    own = MACHINES[row.machine]
    constants = machine or own
    own = replace(own, efficiency=constants.efficiency, half=constants.half, nodes=max(row.arrangement.world // 8, 1))
    return step_time(row.model, row.arrangement, own).total


def constant(row: Row) -> float:
    """The seconds of a baseline: every machine reaches the mean utilisation of the five fitted rows."""
    shares = [_hardware_flops(each) / (each.seconds * _peak(each)) for each in FITTED]
    return _hardware_flops(row) / (sum(shares) / len(shares) * _peak(row))


def _peak(row: Row) -> float:
    return row.arrangement.world * MACHINES[row.machine].flops_per_s


def _hardware_flops(row: Row) -> float:
    """Of a step, with those of a forward pass that are done again."""
    model, batch = row.model, row.arrangement.batch
    head = 6.0 * batch * model.context * model.width * model.vocabulary
    core = 4.0 * batch * model.layers * model.context**2 * model.width
    again = {"full": (model.flops(batch) - head) / 3, "selective": core, "none": 0.0}[row.arrangement.recompute]
    return model.flops(batch) + again


def spread() -> tuple[float, float]:
    """Least and most of published seconds by the formula's, over the A100 rows that were not fitted."""
    ratios = [row.seconds / predicted(row) for row in ROWS[len(FITTED) :] if row.machine == "a100x8"]
    return min(ratios), max(ratios)


def anchored(row: Row) -> float | None:
    """The error if one row of the same source sets the source's scale; None for that row, and for fitted ones."""
    anchor = next(each for each in ROWS if each.label == ANCHORS[row.source])
    return None if row is anchor or row in FITTED else (1 + error(row)) / (1 + error(anchor)) - 1


def _gpt(layers: int, width: int, heads: int, **others: object) -> Transformer:
    sizes = {"context": 2048, "dropout": True, "fused": False, **others}
    return Transformer(layers, width, heads, **sizes)  # type: ignore[arg-type]


def _most_chunks(layers: int, pp: int) -> int:
    """The largest divisor, at most 3, of the layers of a stage."""
    return max(chunks for chunks in (1, 2, 3) if layers // pp % chunks == 0) if pp > 1 else 1


def _arrangement(layers: int, gpus: int, batch: int, micro: int, tp: int, pp: int, **others: object) -> Arrangement:
    chunks = int(others.pop("chunks", 1))  # type: ignore[call-overload]
    kind = "interleaved" if chunks > 1 else "1f1b"
    settings = {"recompute": "full", "overlap": False, **others}
    return Arrangement(
        batch, gpus // (tp * pp), pp, tp, micro_batch=micro, schedule=kind, chunks=chunks, **settings  # type: ignore[arg-type]
    )  # fmt: skip


def _narayanan() -> list[Row]:
    rows = []
    for name, heads, width, layers, tp, pp, gpus, batch, rate, micro in (
        ("1.7B", 24, 2304, 24, 1, 1, 32, 512, 137, 16), ("3.6B", 32, 3072, 30, 2, 1, 64, 512, 138, 16),
        ("7.5B", 32, 4096, 36, 4, 1, 128, 512, 142, 16), ("18.4B", 48, 6144, 40, 8, 1, 256, 1024, 135, 8),
        ("39.1B", 64, 8192, 48, 8, 2, 512, 1536, 138, 4), ("76.1B", 80, 10240, 60, 8, 4, 1024, 1792, 140, 2),
        ("145.6B", 96, 12288, 80, 8, 8, 1536, 2304, 148, 2), ("310.1B", 128, 16384, 96, 8, 16, 1920, 2160, 155, 1),
        ("529.6B", 128, 20480, 105, 8, 35, 2520, 2520, 163, 1), ("1008B", 160, 25600, 128, 8, 64, 3072, 3072, 163, 1),
    ):  # fmt: skip
        chunks = _most_chunks(layers, pp)
        # Equation 3: 96 B s l h^2 (1 + s / 6 h + V / 16 l h) operations, recomputation included
        flops = 96 * batch * 2048 * layers * width**2 * (1 + 2048 / (6 * width) + 51200 / (16 * layers * width))
        seconds = flops / (gpus * rate * 1e12)
        assumed = (MICRO_BATCH, APART, *[CHUNKS] * (chunks > 1))
        arrangement = _arrangement(layers, gpus, batch, micro, tp, pp, chunks=chunks)
        rows.append(Row("Narayanan", name, _gpt(layers, width, heads, adds_apart=True), arrangement, seconds, assumed))
    return rows


def _korthikanti() -> list[Row]:
    rows = []
    for name, width, layers, heads, pp, chunks, gpus, batch, micro, full, selective in (
        ("22B", 6144, 48, 64, 1, 1, 8, 4, 4, 1.42, 1.10), ("175B", 12288, 96, 96, 8, 3, 64, 64, 1, 18.13, 13.75),
        ("530B", 20480, 105, 128, 35, 3, 280, 280, 1, 49.05, 37.83),
        ("1T", 25600, 128, 160, 64, 1, 512, 512, 1, 94.42, 71.49),
    ):  # fmt: skip
        for recompute, sequence, seconds in (("full", False, full), ("selective", True, selective)):
            arrangement = _arrangement(
                layers, gpus, batch, micro, 8, pp, chunks=chunks, recompute=recompute, sequence=sequence
            )
            rows.append(Row("Korthikanti", f"{name} {recompute[:6]}", _gpt(layers, width, heads), arrangement, seconds))
    return rows


def _mt_nlg() -> list[Row]:
    rows = []
    for gpus, seconds in ((2240, 60.1), (2800, 50.2), (3360, 44.4)):
        arrangement, model = _arrangement(105, gpus, 1920, 1, 8, 35), _gpt(105, 20480, 128, adds_apart=True)
        rows.append(Row("MT-NLG", f"530B {gpus}", model, arrangement, seconds, (ONE_CHUNK, APART)))
    return rows


def _vtrain() -> list[Row]:
    rows = []
    for tp, dp, pp, micro, seconds in (
        (4, 4, 32, 2, 53.91), (8, 8, 8, 2, 55.11), (8, 4, 16, 3, 55.68), (8, 2, 32, 6, 62.64),
    ):  # fmt: skip
        name, arrangement = f"175B t{tp} d{dp} p{pp}", _arrangement(96, 512, 1536, micro, tp, pp)
        rows.append(Row("vTrain", name, _gpt(96, 12288, 96), arrangement, seconds, (RECOMPUTED,)))
    return rows


def _megatron_core() -> list[Row]:
    rows = []
    for name, width, layers, heads, tp, pp, chunks, rate in (
        ("1.7B", 2048, 24, 16, 1, 1, 1, 408.8), ("7.1B", 4096, 30, 32, 2, 1, 1, 465.9),
        ("16B", 6144, 32, 48, 4, 1, 1, 489.1), ("32B", 8192, 36, 64, 8, 1, 1, 459.6),
        ("70B", 10240, 52, 80, 8, 2, 2, 419.7), ("119B", 12288, 64, 96, 8, 4, 4, 420.5),
        ("177B", 12288, 96, 96, 8, 6, 4, 432.8), ("314B", 16384, 96, 128, 8, 8, 4, 474.4),
        ("462B", 18432, 112, 144, 8, 16, 7, 459.9),
    ):  # fmt: skip
        model = _gpt(layers, width, heads, context=4096, vocabulary=131072, fused=True, dropout=False)
        gpus, batch = 48 * tp * pp, 1536 if pp == 16 else 1152  # a multiple of 48 replicas times the stages
        arrangement = _arrangement(
            layers, gpus, batch, 1, tp, pp, chunks=chunks, recompute="none", sequence=tp > 1, shard=1, overlap=True
        )
        seconds = model.flops(batch) / (gpus * rate * 1e12)
        rows.append(Row("Megatron-Core", name, model, arrangement, seconds, (SIZES,), "h100x8"))
    return rows


ROWS = (*_narayanan(), *_korthikanti(), *_mt_nlg(), *_vtrain(), *_megatron_core())
FITTED = ROWS[:5]
"""The rows of which the machine's two constants are made; all others are predicted."""

ANCHORS = {
    "Narayanan": "Narayanan 39.1B",
    "Korthikanti": "Korthikanti 22B full",
    "MT-NLG": "MT-NLG 530B 2240",
    "vTrain": "vTrain 175B t8 d8 p8",
    "Megatron-Core": "Megatron-Core 32B",
}
"""The row of each source that sets its scale."""
