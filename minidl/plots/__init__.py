"""Pictures of traces and curves: plain rows and lists in, a matplotlib figure out.

matplotlib is imported when the first picture is drawn. Figures need no display and no pyplot; a notebook shows them.
"""
