"""One short generator for each schedule, and `schedule`, which makes one from its name.

gpipe          naive: one micro-batch after the other; gpipe: all forwards, then all backwards
one_f_one_b    1f1b: one forward, one backward in turn: keeps fewer micro-batches; pipedream: the same without a flush;
               interleaved: over several chunks per stage
zero_bubble    H1 and H2: gradients of weights fill the bubbles; V: two chunks per stage, placed as a V
"""

from __future__ import annotations

from minidl.arguments import one_of
from minidl.parallel.pipeline.schedule import Schedule
from minidl.parallel.pipeline.schedules.gpipe import GPipe, Naive
from minidl.parallel.pipeline.schedules.one_f_one_b import Interleaved, OneFOneB, PipeDream
from minidl.parallel.pipeline.schedules.zero_bubble import ZeroBubbleH1, ZeroBubbleH2, ZeroBubbleV

SCHEDULES: dict[str, type[Schedule]] = {
    kind.name: kind
    for kind in (Naive, GPipe, OneFOneB, PipeDream, Interleaved, ZeroBubbleH1, ZeroBubbleH2, ZeroBubbleV)
}
"""The kinds of schedules by name."""


def schedule(kind: str, stages: int, micro_batches: int, chunks_per_stage: int | None = None) -> Schedule:
    """Make a schedule from the name of its kind.

    Parameters
        kind              a name of `SCHEDULES`, such as "1f1b"
        stages            number of pipeline stages
        micro_batches     micro-batches per minibatch
        chunks_per_stage  model chunks per stage; None: the default of the kind

    Raises
        TypeError, ValueError for an unknown name or an invalid number

    >>> print(schedule("1f1b", stages=2, micro_batches=2))
    stage 0: F0 F1 B0 B1 U0
    stage 1: F0 B0 F1 B1 U0
    """
    made = SCHEDULES[one_of("schedule", kind, SCHEDULES)]
    return made(stages, micro_batches) if chunks_per_stage is None else made(stages, micro_batches, chunks_per_stage)
