"""Where a student's code runs: a process of its own that is watched, limited, and knows nothing of the checks."""

import minidl  # noqa: F401  (before numpy, whose instruction set it chooses; the files below import numpy)
