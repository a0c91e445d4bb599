"""The trace of a run: what every rank did when.

`recorder.py` records one rank while it runs; `recording.py` is its finished record, and `event.py` one event of it.
`rows.py` keeps the events of collectives that a simulation played at once as columns until they are read.
`trace.py` puts the records of all ranks together for the user. `critical_path.py` finds what determined the time,
`bars.py` prepares the timeline for drawing, and `chrome_trace.py` writes it for Perfetto.
"""
