"""What every strategy runs in: a rank's session, and what comes of it.

`session.py` holds a rank's model, optimizer and samples (`minibatches.py`); `evaluation.py` measures the model,
`divergence.py` watches the loss, `progress.py` reports it while it runs. `checkpoint.py` and `snapshots.py` save the
state; `rank_record.py` is what a rank returns and `report.py` what the user gets.
"""
