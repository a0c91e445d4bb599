"""Training on many nodes: a job says what, a strategy says how, an engine says where.

`job.py` says what; the strategies (`synchronous.py` and its siblings) say how, in the few lines of their pseudo-code;
`session.py` does what every strategy needs besides, `train.py` brings them together, `report.py` is what comes back.
"""

from minidl.parallel.backup_workers import BackupWorkers
from minidl.parallel.checkpoint import Checkpoint, CheckpointError
from minidl.parallel.divergence import NonFiniteLoss
from minidl.parallel.eager_sgd import EagerSGD
from minidl.parallel.elastic_averaging import ElasticAveraging
from minidl.parallel.ensemble import Ensemble
from minidl.parallel.gossip import Gossip
from minidl.parallel.hogwild import Hogwild
from minidl.parallel.job import Job
from minidl.parallel.local_sgd import LocalSGD
from minidl.parallel.one_shot_averaging import OneShotAveraging
from minidl.parallel.parameter_server import ParameterServer
from minidl.parallel.progress import Progress
from minidl.parallel.report import Report
from minidl.parallel.serial import Serial
from minidl.parallel.store import Store
from minidl.parallel.strategy import Strategy
from minidl.parallel.sufficient_factors import SufficientFactors
from minidl.parallel.synchronous import Synchronous
from minidl.parallel.train import train

__all__ = [
    "BackupWorkers",
    "Checkpoint",
    "CheckpointError",
    "EagerSGD",
    "ElasticAveraging",
    "Ensemble",
    "Gossip",
    "Hogwild",
    "Job",
    "LocalSGD",
    "NonFiniteLoss",
    "OneShotAveraging",
    "ParameterServer",
    "Progress",
    "Report",
    "Serial",
    "Store",
    "Strategy",
    "SufficientFactors",
    "Synchronous",
    "train",
]
