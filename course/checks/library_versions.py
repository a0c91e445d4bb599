"""What the answers of each chapter may not use of the library: its own version of what they build.

By chapter, then by exercise. Answers of chapters 01 and 03 may use nothing of it; `train` of chapter 02, which is not
listed, may use everything.
"""

from __future__ import annotations

from course.judging import Builds

WHOLE_RUNS = "minidl.parallel", "minidl.cluster.launch"
STRATEGIES_AND_FORMULAS = "minidl.parallel", "minidl.cluster"
SAMPLERS = "minidl.data.loader", "minidl.data.sampler"
BY_ALL_REDUCE = Builds(*WHOLE_RUNS, instead="numpy and comm.all_reduce")
BY_LISTS = Builds("minidl.parallel", instead="lists of actions that you make")
BY_MESSAGES = Builds(*WHOLE_RUNS, instead="comm.send and comm.recv")
BY_NUMPY = Builds(*STRATEGIES_AND_FORMULAS, instead="numpy")
COMPRESSORS = Builds("minidl.compress", "minidl.parallel", instead="numpy")
COLLECTIVES = Builds(
    "minidl.cluster.collectives", "minidl.cluster.launch", instead="comm.send, comm.recv and comm.sendrecv"
)
COSTS = Builds(
    *("minidl.cluster.cost.formulas", "minidl.cluster.cost.shared_links", "minidl.cluster.launch"),
    instead="the formula that you derive",
)
SERVERS = Builds(*WHOLE_RUNS, "minidl.cluster.collectives", instead="comm.send and comm.recv")
UPDATE_RULES = Builds("minidl.optim", "minidl.kernels", instead="numpy")

BUILDS: dict[str, dict[str, Builds]] = {
    "01_backpropagation": dict.fromkeys(
        ("vjp_mul", "vjp_max", "vjp_matmul", "vjp_broadcast_add", "backward", "check_gradient", "live_bytes"),
        Builds("minidl", instead="numpy"),
    ),
    "02_minibatch_sgd": {
        "minibatches": Builds(*SAMPLERS, instead="numpy"),
        **dict.fromkeys(("momentum_step", "corrected_step", "adam_step"), UPDATE_RULES),
    },
    "03_operators": {
        "im2col": Builds("minidl", instead="numpy and product"),
        "winograd": Builds("minidl", instead="+, - and * of numbers"),
        "micro_batches": Builds("minidl", instead="a table that you fill"),
        "fuse": Builds("minidl", instead="lists and sets"),
    },
    "04_messages_and_collectives": {
        **dict.fromkeys(
            ("broadcast_tree", "ring_reduce_scatter", "ring_all_gather", "ring_all_reduce", "recursive_doubling"),
            COLLECTIVES,
        ),
        **dict.fromkeys(("ring_seconds", "recursive_doubling_seconds", "crossover"), COSTS),
    },
    "05_synchronous_data_parallelism": {
        "sharded_sampler": Builds(*SAMPLERS, instead="epoch_order and numpy"),
        "data_parallel_step": Builds(*WHOLE_RUNS, "minidl.optim", instead="mean_gradient and comm.all_reduce"),
        "bucketed_all_reduce": Builds(*WHOLE_RUNS, instead="backward and comm.all_reduce"),
        "efficiency": Builds(*WHOLE_RUNS, instead="a formula"),
    },
    "06_asynchrony": {
        **dict.fromkeys(("serve", "push_pull", "downpour_worker", "ssp_gate"), SERVERS),
        "choose": Builds("minidl.parallel", instead="the formulas that you derive"),
    },
    "07_averaging": {
        **dict.fromkeys(("elastic", "local_sgd"), BY_ALL_REDUCE),
        **dict.fromkeys(("elastic_limit", "rounds_and_words", "mixing_matrix", "consensus_factor"), BY_NUMPY),
        **dict.fromkeys(("gossip", "majority"), BY_MESSAGES),
    },
    "08_large_minibatches": {
        "scheduled_rate": Builds("minidl.optim", instead="the rule in the docstring"),
        "corrected_run": Builds("minidl.optim", "minidl.parallel", instead="numpy"),
        "gradient_noise_scale": Builds("minidl.parallel", instead="numpy"),
        "noise_of_ranks": BY_ALL_REDUCE,
        "lars_step": UPDATE_RULES,
        "best_batch": Builds(*WHOLE_RUNS, instead="a formula"),
        "best_measured_batch": Builds(*WHOLE_RUNS, instead="seconds_per_step"),
    },
    "09_gradient_compression": {
        **dict.fromkeys(("sparsify", "corrected_entries", "qsgd"), COMPRESSORS),
        "top_k_step": Builds(*WHOLE_RUNS, "minidl.compress", instead="numpy and comm.all_gather"),
        "sparse_sum": Builds(*WHOLE_RUNS, "minidl.compress", "minidl.cluster.collectives", instead="comm.sendrecv"),
    },
    "10_tensor_parallelism": {
        **dict.fromkeys(
            ("column_linear", "row_linear", "mlp", "attention", "embedding", "cross_entropy"), BY_ALL_REDUCE
        ),
        "summa": Builds(*WHOLE_RUNS, instead="row.broadcast and column.broadcast"),
        "mesh_groups": Builds(*STRATEGIES_AND_FORMULAS, instead="arithmetic with ranks"),
        "best_grid": Builds(*STRATEGIES_AND_FORMULAS, instead="the formula that you derive"),
    },
    "11_pipelines": {
        **dict.fromkeys(("gpipe", "one_f_one_b", "weights_to_stash"), BY_LISTS),
        "run_stage": Builds(*WHOLE_RUNS, instead="comm.isend and comm.recv"),
        "cut": Builds("minidl.parallel", instead="a table that you fill"),
        "deadlock": Builds("minidl.parallel", instead="lists and sets"),
        "bubble": Builds("minidl.parallel", instead="formulas"),
    },
    "12_parallel_convolution": {
        "bytes_of_a_cut": Builds(*STRATEGIES_AND_FORMULAS, instead="span and output_size"),
        "halo_exchange": Builds(*WHOLE_RUNS, instead="messages between neighbours"),
        "weight_gradient": Builds(*WHOLE_RUNS, instead="the given gradients, and messages"),
        "stationary_x": Builds(*WHOLE_RUNS, instead="convolve and comm.reduce_scatter"),
    },
    "13_memory": {
        "memory_and_traffic": Builds("minidl.parallel", "minidl.cluster.cost", instead="formulas"),
        "shard_optimizer": Builds(*WHOLE_RUNS, "minidl.optim", instead="update, comm.reduce_scatter, comm.all_gather"),
        "checkpoints": Builds("minidl.nn", instead="a table that you fill"),
        "recomputed_gradients": Builds("minidl.nn", "minidl.recomputation", instead="forward and backward"),
        "fetch_schedule": Builds("minidl.parallel", instead="a list of actions that you make"),
    },
    "14_putting_it_together": {
        "route": Builds("minidl.nn", "minidl.parallel", instead="numpy"),
        "moe_step": Builds(*WHOLE_RUNS, "minidl.nn", instead="comm.all_to_all, expert and expert_gradients"),
        "step_time": Builds(*STRATEGIES_AND_FORMULAS, instead="formulas"),
        "best_plan": Builds(*STRATEGIES_AND_FORMULAS, instead="seconds"),
    },
    "15_faults_and_batch_methods": {
        "lbfgs_direction": Builds("minidl.parallel", "minidl.optim", instead="the commands of the shards"),
        "run_portions": Builds(*STRATEGIES_AND_FORMULAS, instead="give and wait"),
        "best_interval": Builds(*STRATEGIES_AND_FORMULAS, instead="formulas"),
        "train_with_checkpoints": Builds("minidl.parallel", instead="step and storage"),
    },
    "16_not_fooling_the_masses": {"find_trick": Builds("minidl.parallel", instead="claim and rows")},
}
