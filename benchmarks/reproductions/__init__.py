"""Published experiments of parallel deep learning, done again small: each file one command.

    python -m benchmarks.reproductions.synchronous_equals_serial

prints a table with the published or formerly measured values beside its own, writes the picture and the table into
`results/`, and exits non-zero if what it must show does not show.
"""
