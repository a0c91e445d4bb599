"""Pipelines: a model whose layers are split over nodes, and the order in which they compute.

From top to bottom; a file imports only from lines below its own:

    pipeline         the strategy
    cuts             where to cut a model
    costs            what each unit of a model costs
    stage_execution  a stage over real tensors
    chunks           forward and backward of a stage's chunks
    handover         what passes from one chunk of a model to the next
    weight_versions  what an asynchronous stage keeps of its weights
    formulas         bubble and memory by the papers' closed forms
    schedules        naive, GPipe, 1F1B, PipeDream, interleaved, zero bubble; makes one by its name
    listed           a schedule that was written down, as text or in a CSV file
    validation       whether a schedule can be executed
    clock            plays a schedule with given times
    timeline         when each stage does what, planned or in a run, as text and as a picture
    interpreter      one stage as a coroutine, with sends and receives derived from the actions
    schedule         for each stage, the list of its actions; what it keeps for backward
    action           what a stage does next
"""

from minidl.parallel.pipeline import formulas
from minidl.parallel.pipeline.action import KINDS, Action
from minidl.parallel.pipeline.clock import Times, simulate
from minidl.parallel.pipeline.costs import Costs, UnitCost, costs_of
from minidl.parallel.pipeline.cuts import balanced_cuts, bottleneck
from minidl.parallel.pipeline.listed import Listed, read_csv, write_csv
from minidl.parallel.pipeline.schedule import Schedule, ScheduleError, peak_memory
from minidl.parallel.pipeline.schedules import SCHEDULES, schedule
from minidl.parallel.pipeline.schedules.gpipe import GPipe, Naive
from minidl.parallel.pipeline.schedules.one_f_one_b import Interleaved, OneFOneB, PipeDream
from minidl.parallel.pipeline.schedules.zero_bubble import ZeroBubbleH1, ZeroBubbleH2, ZeroBubbleV
from minidl.parallel.pipeline.timeline import Bar, Timeline, executed, play_timelines, plot_timelines
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
    "play_timelines",
    "plot_timelines",
    "read_csv",
    "schedule",
    "simulate",
    "validate",
    "write_csv",
]
