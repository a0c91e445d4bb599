"""Published experiments of parallel deep learning, repeated at small scale; each file is a command.

    python -m benchmarks.reproductions.synchronous_equals_serial

prints a table of published, earlier and new values, writes table and picture into `results/`, and exits non-zero if an
effect that must show does not.
"""
