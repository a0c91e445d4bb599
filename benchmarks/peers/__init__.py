"""`python -m benchmarks`: minidl compared with other libraries, measured in turns in one run.

run.py            from what was typed to the table, the picture and the folder
step/ memory.py scaling.py collectives/ simulation/ launch.py    the benchmarks, which yield `Comparison`s
peer.py           processes of one library, which wait for requests while others are measured
comparisons.py    what is measured; report.py prints, writes and draws it; conditions.py says where
"""
