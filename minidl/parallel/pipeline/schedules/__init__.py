"""One short generator for each schedule.

naive          one micro-batch after the other: one stage works at a time
gpipe          all forwards, then all backwards
one_f_one_b    one forward, one backward in turn: keeps fewer micro-batches
pipedream      1F1B without a flush: every stage updates after each backward
interleaved    1F1B over several chunks per stage
zero_bubble    H1 and H2: gradients of weights fill the bubbles
zero_bubble_v  two chunks per stage, placed as a V
"""
