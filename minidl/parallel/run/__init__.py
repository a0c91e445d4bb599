"""One training run: what each rank does between minibatches, and what comes out.

session         one rank's side of the run; on a learner and its minibatches
learner         model, optimizer and schedule of one rank; updates
minibatches     the samples that a node reads
evaluation      loss and accuracy on the test set
divergence      stops a run whose loss is not finite
progress        messages to the caller during the run
checkpoint      the state from which a run goes on
rank_record     what a rank brings back, with its snapshots of weights
snapshots       evaluation after the run, by those snapshots
history         one row per epoch
report          what the user gets
"""
