"""Training on many nodes: a job says what, a strategy says how, an engine says where.

`job.py` says what to train, a `strategy.py` how, and `train.py` brings the two together on an engine. The rooms:

    data_parallel    replicas that apply the same update in every step: Serial, Synchronous, SufficientFactors
    servers          weights on servers, pushed to and fetched: ParameterServer, BackupWorkers, EagerSGD, Hogwild
    averaging        models of their own, averaged: LocalSGD, OneShotAveraging, ElasticAveraging, Gossip, Ensemble
    run              a rank's session, evaluation, progress, checkpoints, the report
    gradients        buckets and compression, while backward goes on
    measures         to judge with: gradient noise scale, learning speed, a report card of published claims
"""

from minidl.parallel.averaging.elastic_averaging import ElasticAveraging
from minidl.parallel.averaging.ensemble import Ensemble
from minidl.parallel.averaging.gossip import Gossip
from minidl.parallel.averaging.local_sgd import LocalSGD
from minidl.parallel.averaging.one_shot_averaging import OneShotAveraging
from minidl.parallel.data_parallel.serial import Serial
from minidl.parallel.data_parallel.sufficient_factors import SufficientFactors
from minidl.parallel.data_parallel.synchronous import Synchronous
from minidl.parallel.job import Job
from minidl.parallel.measures import learning_speed, noise_scale, report_card
from minidl.parallel.run.checkpoint import Checkpoint, CheckpointError
from minidl.parallel.run.divergence import NonFiniteLoss
from minidl.parallel.run.progress import Progress
from minidl.parallel.run.report import Report
from minidl.parallel.run.session import Session
from minidl.parallel.servers.backup_workers import BackupWorkers
from minidl.parallel.servers.eager_sgd import EagerSGD
from minidl.parallel.servers.hogwild import Hogwild
from minidl.parallel.servers.parameter_server import ParameterServer
from minidl.parallel.servers.store import Store
from minidl.parallel.strategy import Strategy
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
    "Session",
    "Store",
    "Strategy",
    "SufficientFactors",
    "Synchronous",
    "learning_speed",
    "noise_scale",
    "report_card",
    "train",
]
