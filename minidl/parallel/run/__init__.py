"""One training run: what each rank does between minibatches, and what comes out.

session         one rank's side of the run: minibatches, and the end of an epoch
records         what a rank records on the way: clock, losses, snapshots of weights
forward         a learner's forward passes: random numbers and losses
learner         model, optimizer and schedule of one rank; updates
partition       what a rank holds of the model, and what the ranks of a replica do together
minibatches     the samples that a replica reads, and its micro-batches
evaluation      loss and accuracy on the test set
divergence      stops a run whose loss is not finite
progress        messages to the caller during the run
checkpoint      the state from which a run goes on
elastic_restart how a run goes on with other nodes when some have died
rank_record     what a rank brings back, with its snapshots of weights
snapshots       evaluation after the run, by those snapshots
history         one row per epoch
run_files       config.json and metrics.csv of a run's folder
tensorboard     the rows for TensorBoard
report          what the user gets
"""
