"""The process in which a student's code runs: it is limited, cannot reach other files, and has loaded no check.

    answer_process   the program of the process: answers the check's requests
    supervisor       its parent process, which ends everything that it started
    warm_parent      the program from which both are forked (Linux)
    forked           gives a forked process an environment and random numbers of its own
    confinement      restricts it by the Linux kernel: its view of files, its rights, landlock, system_calls
    landlock         files, connections and signals
    system_calls     system calls that reach other processes
    scratch          the folder in which it works
    terms            its settings, sent by the check at the start
    limits           bounds on seconds, memory, processes and files
    fence            refuses access to other files and processes, with a PermissionError that says why
    streams          keeps standard output and standard error open

`exchange/` defines the messages between check and process, `cells/` runs the cells of a notebook, `refused/` is what
the student's code may not import, replace or call, `errors/` describes what went wrong, and `ranks/` runs one rank of
an answer.

Functions that checks need inside this process are in `course/probes/`.
"""

import minidl  # noqa: F401  (before numpy, whose instruction set it chooses; the files below import numpy)
