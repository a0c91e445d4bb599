"""Collectives of simulated ranks, computed at once instead of message by message.

While all ranks of a group are in one collective and nothing else uses their ports, each message begins when its two
ranks are ready, so the clocks of all ranks follow from a recurrence over rounds of messages (numpy, one row per round).
The records follow from the clocks, for many rounds at once. Times, results, events and counts are those of the
message-by-message simulation, to the last bit. So is the report of a run that fails meanwhile: the recurrence runs
again, up to the failure. A collective of less than about 50 messages is sent message by message, because that takes no
longer; `Plan.least` says how many ranks this is.

    meeting.py       ranks come together; the last one plays the collective, or they all go back and send messages
    plans.py         which collectives: their rounds, as `cluster/collectives/rounds.py` has them, and their results
    blocks.py        the rounds as matrices
    clocks.py        the recurrence: clocks and records of all ranks, to the end or up to a failure
    values.py        what the reductions give, in the order in which the messages would do them
"""
