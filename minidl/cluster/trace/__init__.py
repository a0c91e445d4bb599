"""What happened in a run: events as the engines record them, and what is computed and drawn from them.

`event.py` and `recorder.py` make the record, `trace.py` is what a user holds; `critical_path.py` finds which rank
determined the time, `bars.py` draws the timeline, `chrome_trace.py` writes it for Perfetto.
"""
