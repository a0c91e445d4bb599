"""One training run: what each rank does between minibatches, and the report at the end.

session         one rank's side of the run: model, minibatches, updates, records, and the end of an epoch
learner         the optimizer and the schedule of the weights that a rank updates
epoch_record    what a rank counts: losses, what an unfinished minibatch changes, seconds and bytes
partition       what a rank holds of the model, and what the ranks of a replica do together
minibatches     the samples that a replica reads, and its micro-batches
evaluation      loss and accuracy on the test set
divergence      stops a run whose loss is not finite
checkpoint      the state from which a run goes on
saving          how often that is saved, and whether training waits for it
elastic_restart continues a run with other nodes when some have died
fault_record    which nodes died, and for whom the others waited
rank_record     what a rank returns from the run, with its snapshots of weights
snapshots       evaluation after the run, by those snapshots
history         one row per epoch, and the messages to the caller during the run
run_files       the files of a run's folder: config.json, metrics.csv, the checkpoint
tensorboard     the rows for TensorBoard
report          the outcome that the user gets
"""
