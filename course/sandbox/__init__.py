"""Where a student's code runs: a process that is limited, fenced in, and knows nothing of the checks.

    answer_process   the program of the process: answers the check's requests
    supervisor       its parent process, which ends everything that it started
    scratch          the folder in which it works
    terms            its settings, sent by the check at the start
    limits           bounds on seconds, memory, processes and files
    fence            refuses, with a PermissionError that says why, to touch files and processes of others
    landlock         the same by the Linux kernel
    system_calls     the system calls that the kernel refuses
    streams          keeps standard output and standard error open

`exchange/` is what travels between check and process, `cells/` runs the cells of a notebook, `refused/` is what the
student's code may not import, replace or call, `errors/` describes what went wrong, and `ranks/` runs one rank
of an answer.

Functions that checks need inside this process are in `course/probes/`.
"""

import minidl  # noqa: F401  (before numpy, whose instruction set it chooses; the files below import numpy)
