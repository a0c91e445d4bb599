"""Training on many nodes: a job says what, a strategy says how, an engine says where."""

from minidl.parallel.checkpoint import Checkpoint, CheckpointError
from minidl.parallel.divergence import NonFiniteLoss
from minidl.parallel.job import Job
from minidl.parallel.report import Report
from minidl.parallel.serial import Serial
from minidl.parallel.session import Progress
from minidl.parallel.synchronous import Synchronous
from minidl.parallel.train import train

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "Job",
    "NonFiniteLoss",
    "Progress",
    "Report",
    "Serial",
    "Synchronous",
    "train",
]
