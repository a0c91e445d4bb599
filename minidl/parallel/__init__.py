"""Training on many nodes: a job says what, a strategy says how, an engine says where.

`train.py` brings the three together: `job.py` says what, a strategy says how, in the few lines of its pseudo-code, and
`report.py` is what comes back. The strategies, a file each:

    all agree on every gradient      serial, synchronous, sufficient_factors; backup_workers, eager_sgd (on quorum, or
                                     on partial_all_reduce)
    nobody waits                     parameter_server, hogwild
    models of their own              local_sgd and outer_momentum, one_shot_averaging, elastic_averaging, gossip,
                                     ensemble

What they stand on: `strategy.py` (their base), `session.py` and `minibatches.py` (a rank's model, samples and records),
`buckets.py`, `compressed.py` and `backward_order.py` (gradients that travel while backward goes on),
`synchronized_batch_norm.py`, `store.py`, `requests.py` and `clocks.py` (servers), `mixing.py` and
`pairwise_averaging.py` (neighbours), `vector.py`.
What is made of it: `evaluation.py`, `snapshots.py`, `rank_result.py`, `checkpoint.py`, `divergence.py`, `progress.py`.
To judge with: `noise_scale.py`, `learning_speed.py`, `report_card.py` (on `result_table.py`, `claimed_speedups.py`).
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
