"""What only the lectures draw and show.

page.py               texts, tables and pictures in a notebook
who_has_what.py       a collective, step by step
decision_map.py       what a classifier answers at every point of a plane
greedy_schedule.py    list scheduling of a graph on p machines
task_graph.py         the tasks of a step, laid out in time, with its critical path
live_memory.py        the bytes that a program holds
histograms.py         how often each number was counted, beside a formula
waiting.py            how long each worker computed and waited
"""
