"""Training on many nodes: a job says what, a strategy how, an engine where.

From top to bottom; a file imports only from lines below its own:

    comparison     runs a job by several strategies, on several networks, with several seeds
    folded         the time of a step on many ranks, of which those that behave alike are played once
    planner        the fastest way to divide a model over a cluster, in closed form
    memory         what fills a node's memory: predicted from shapes, or measured on a run
    train          runs a job by a strategy on an engine
    launches       launches a run's ranks, again when nodes have died
    data_parallel  replicas that apply the same update in every step: Serial, Synchronous, SufficientFactors
    sharded        replicas that share the state of training out among them: Sharded; Offload, to the host of a device
    tensor         layers that several nodes compute together, and the strategy for all axes: Hybrid
    pipeline       a model whose layers are split over nodes, and the order in which they compute
    batch          the whole training set in tiny tasks: SandblasterLBFGS
    averaging      weights of each node, averaged: LocalSGD, OneShotAveraging, ElasticAveraging, Gossip, Ensemble
    servers        shared weights, to which workers push gradients: ParameterServer, BackupWorkers, EagerSGD, Hogwild
    measures       gradient noise scale, learning speed, how often to save, spread over seeds, a report card
    products       a matrix product on a grid of ranks; the numbers that grids send
    convolution_grids  words and seconds of layers divided by samples, pixels, channels and filters; the fastest grids
    spatial        convolutions and pooling over images whose pixels several ranks divide
    experts        mixtures of experts, which several ranks divide: all-to-alls of tokens, there and back
    strategy       the base class of all strategies
    run            one rank's session and its minibatches, evaluation, progress, checkpoints, the report
    gradients      buckets and compression, concurrent with backward
    plan           which rank holds what of which replica
    memory_plan    what a strategy says of a rank's memory
    job            what to train
    mean_loss      what a mean loss counts: padding, class weights
"""

from typing import TYPE_CHECKING

from minidl.from_pytorch import explain_missing_names, imports_of
from minidl.parallel.data_parallel.serial import Serial
from minidl.parallel.job import Job
from minidl.parallel.plan import ParallelPlan
from minidl.parallel.run.checkpoint import Checkpoint, CheckpointError
from minidl.parallel.run.divergence import NonFiniteLoss
from minidl.parallel.run.elastic_restart import Elastic
from minidl.parallel.run.history import Progress
from minidl.parallel.run.minibatches import micro_batches
from minidl.parallel.run.report import Report
from minidl.parallel.run.saving import Saving
from minidl.parallel.run.session import Session
from minidl.parallel.strategy import Strategy
from minidl.parallel.train import train

if TYPE_CHECKING:
    from minidl.parallel import batch, convolution_grids, experts, memory, pipeline, planner, products, spatial, tensor
    from minidl.parallel.averaging import mixing
    from minidl.parallel.averaging.elastic_averaging import ElasticAveraging
    from minidl.parallel.averaging.ensemble import Ensemble
    from minidl.parallel.averaging.gossip import Gossip
    from minidl.parallel.averaging.local_sgd import DiLoCo, LocalSGD, PostLocalSGD, SlowMo
    from minidl.parallel.averaging.one_shot_averaging import OneShotAveraging
    from minidl.parallel.batch.sandblaster import SandblasterLBFGS
    from minidl.parallel.comparison.compare import compare
    from minidl.parallel.comparison.compared_run import ComparedRun
    from minidl.parallel.comparison.comparison import Comparison
    from minidl.parallel.data_parallel.sufficient_factors import SufficientFactors
    from minidl.parallel.data_parallel.synchronous import Synchronous
    from minidl.parallel.folded.simulated_step import SimulatedStep, simulated_step
    from minidl.parallel.measures import checkpoint_interval, learning_speed, noise_scale, report_card, spread
    from minidl.parallel.pipeline.pipeline import Pipeline
    from minidl.parallel.run.tensorboard import TensorBoard
    from minidl.parallel.servers.backup_workers import BackupWorkers
    from minidl.parallel.servers.eager_sgd import EagerSGD
    from minidl.parallel.servers.hogwild import Hogwild
    from minidl.parallel.servers.parameter_server import (
        Downpour,
        LockedParameterServer,
        ParameterServer,
        StalenessAwareSGD,
    )
    from minidl.parallel.servers.partial_all_reduce import PartialAllReduce
    from minidl.parallel.servers.store import Store
    from minidl.parallel.sharded.offload import Offload
    from minidl.parallel.sharded.sharded import Sharded
    from minidl.parallel.tensor.hybrid import Hybrid

__all__ = [
    "BackupWorkers",
    "Checkpoint",
    "CheckpointError",
    "ComparedRun",
    "Comparison",
    "DiLoCo",
    "Downpour",
    "EagerSGD",
    "Elastic",
    "ElasticAveraging",
    "Ensemble",
    "Gossip",
    "Hogwild",
    "Hybrid",
    "Job",
    "LocalSGD",
    "LockedParameterServer",
    "NonFiniteLoss",
    "Offload",
    "OneShotAveraging",
    "ParallelPlan",
    "ParameterServer",
    "PartialAllReduce",
    "Pipeline",
    "PostLocalSGD",
    "Progress",
    "Report",
    "SandblasterLBFGS",
    "Saving",
    "Serial",
    "Session",
    "Sharded",
    "SimulatedStep",
    "SlowMo",
    "StalenessAwareSGD",
    "Store",
    "Strategy",
    "SufficientFactors",
    "Synchronous",
    "TensorBoard",
    "batch",
    "checkpoint_interval",
    "compare",
    "convolution_grids",
    "experts",
    "learning_speed",
    "memory",
    "micro_batches",
    "mixing",
    "noise_scale",
    "pipeline",
    "planner",
    "products",
    "report_card",
    "simulated_step",
    "spatial",
    "spread",
    "tensor",
    "train",
]

explain_missing_names(__name__, __all__, on_demand=imports_of(__file__))
