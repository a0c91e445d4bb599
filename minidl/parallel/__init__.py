"""Training on many nodes: a job says what, a strategy says how, an engine says where.

`job.py` says what; the strategies (`synchronous.py` and its siblings) say how, in the few lines of their pseudo-code;
`session.py` does what every strategy needs besides, `train.py` brings them together, `report.py` is what comes back.
"""

from minidl.parallel.checkpoint import Checkpoint, CheckpointError
from minidl.parallel.divergence import NonFiniteLoss
from minidl.parallel.job import Job
from minidl.parallel.report import Report
from minidl.parallel.serial import Serial
from minidl.parallel.session import Progress
from minidl.parallel.strategy import Strategy
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
    "Strategy",
    "Synchronous",
    "train",
]
