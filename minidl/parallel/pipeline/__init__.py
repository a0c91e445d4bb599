"""Pipelines: a model whose layers are split over nodes, and the order in which they compute.

From top to bottom; a file imports only from lines below its own:

    executed         when each stage did what in a run, from its trace
    pipeline         the strategy
    cuts             where to cut a model
    costs            what each unit of a model costs
    stage_execution  a stage over real tensors
    handover         what passes from one chunk of a model to the next
    weight_versions  what an asynchronous stage keeps of its weights
    formulas         bubble and memory by the papers' closed forms
    files            schedules as CSV files
    named_schedules  makes a schedule by its name
    schedules        naive, GPipe, 1F1B, PipeDream, interleaved, zero bubble
    clock            plays a schedule with given times
    timeline         when each stage does what, as text and as a picture
    memory           what each stage keeps for backward
    validation       whether a schedule can be executed
    interpreter      one stage as a coroutine
    messages         sends and receives, derived from the actions
    listed           a schedule that was written down
    schedule         for each stage, the list of its actions
    action           what a stage does next
"""

from minidl.parallel.pipeline import formulas
from minidl.parallel.pipeline.action import KINDS, Action
from minidl.parallel.pipeline.clock import Times, simulate
from minidl.parallel.pipeline.costs import Costs, UnitCost, costs_of
from minidl.parallel.pipeline.cuts import balanced_cuts, bottleneck
from minidl.parallel.pipeline.executed import executed
from minidl.parallel.pipeline.files import read_csv, write_csv
from minidl.parallel.pipeline.listed import Listed
from minidl.parallel.pipeline.memory import peak_memory
from minidl.parallel.pipeline.named_schedules import SCHEDULES, schedule
from minidl.parallel.pipeline.schedule import Schedule, ScheduleError
from minidl.parallel.pipeline.schedules.gpipe import GPipe
from minidl.parallel.pipeline.schedules.interleaved import Interleaved
from minidl.parallel.pipeline.schedules.naive import Naive
from minidl.parallel.pipeline.schedules.one_f_one_b import OneFOneB
from minidl.parallel.pipeline.schedules.pipedream import PipeDream
from minidl.parallel.pipeline.schedules.zero_bubble import ZeroBubbleH1, ZeroBubbleH2
from minidl.parallel.pipeline.schedules.zero_bubble_v import ZeroBubbleV
from minidl.parallel.pipeline.timeline import Bar, Timeline, plot_timelines
from minidl.parallel.pipeline.validation import validate

__all__ = [
    "KINDS",
    "SCHEDULES",
    "Action",
    "Bar",
    "Costs",
    "GPipe",
    "Interleaved",
    "Listed",
    "Naive",
    "OneFOneB",
    "PipeDream",
    "Schedule",
    "ScheduleError",
    "Timeline",
    "Times",
    "UnitCost",
    "ZeroBubbleH1",
    "ZeroBubbleH2",
    "ZeroBubbleV",
    "balanced_cuts",
    "bottleneck",
    "costs_of",
    "executed",
    "formulas",
    "peak_memory",
    "plot_timelines",
    "read_csv",
    "schedule",
    "simulate",
    "validate",
    "write_csv",
]
