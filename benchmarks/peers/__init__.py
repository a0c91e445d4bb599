"""`python -m benchmarks`: minidl compared with other libraries, measured in turns in one run.

run.py            from what was typed to the table, the folder and the pages
step/ memory.py scaling.py collectives/ compressors.py simulation/ launch.py start.py
                  the benchmarks, which yield `Comparison`s
peer.py           processes of one library, which wait for requests while others are measured
comparisons.py    what is measured; goals.py says what should be reached; conditions.py where it was measured
report.py         prints and writes it; pages.py puts it into the pages
"""
