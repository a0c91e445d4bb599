"""What only the lectures draw and show.

page.py               texts, tables and pictures in a notebook
who_has_what.py       a collective, step by step
rank_grid.py          ranks in a grid: groups, and broadcasts along rows and columns
neighbours.py         machines that average with their neighbours: messages of a step, numbers after it
decision_map.py       what a classifier answers at every point of a plane
greedy_schedule.py    list scheduling of a graph on p machines
task_graph.py         the tasks of a step, laid out in time, with its critical path
buckets.py            gradients that fill buckets, and the all-reduces of these
live_memory.py        the bytes that a program holds
histograms.py         how often each number was counted, beside a formula
parameter_server.py   workers, servers and what travels between them at one moment
machine_traffic.py    machines in racks, and what each pair sends
memory_bars.py        what fills the memory of a machine
divided_layers.py     two layers that several machines divide, and their messages
divided_convolution.py  a convolution divided by channels and filters; grids of the layers of a network
image_tiles.py        an image that a grid of ranks divides, and the halo of one of them
gathered_units.py     a step of ZeRO's stage 3: computation, gathering, sending, and whose weights a node has
two_tiers.py          a device and its host: computation, transfers over their link, and updates
core_timeline.py      timelines of the core's simulated runs
ways_to_train.py      the core trains by three strategies: the picture at the top of README
waiting.py            how long each worker computed and waited
time_shares.py        where the time of a worker goes, program by program
scale.py              how large published models are, and on how many processors they were trained
"""
