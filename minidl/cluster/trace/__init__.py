"""The trace of a run: what every rank did when.

`recorder.py` records one rank while it runs; `recording.py` is its finished record, and an event of it.
`rows.py`: a simulation that plays a collective at once keeps its events as numpy columns until the trace is read.
`trace.py` puts the records of all ranks together for the user. `critical_path.py` finds what determined the time, and
`waited_for.py` the ranks that held the others up. `bars.py` prepares the timeline for drawing, `played.py` for
the player in a browser, and `chrome_trace.py` writes it for Perfetto.
"""
