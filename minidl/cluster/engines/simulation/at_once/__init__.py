"""Collectives of many simulated ranks, computed at once instead of message by message.

While all ranks of a group are in one collective and nothing else uses their ports, each message begins when its two
ranks are ready, so the clocks of all ranks follow from a recurrence over rounds of messages (numpy, one row a round).
Times, results, events and counts are those of the message-by-message simulation, to the last bit. Only if the run fails
while ranks are inside such a collective, they are reported as busy in it, not as waiting, and without its messages.

    meeting.py    ranks come together; the last one plays the collective, or they all go back and send messages
    plans.py      which collectives: their rounds and their results
    rounds.py     the messages and reductions of each collective, round by round
    clocks.py     the recurrence: clocks and records of all ranks
    values.py     what the reductions give, in the order in which the messages would do them
"""
