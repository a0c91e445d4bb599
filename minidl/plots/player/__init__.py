"""The player of a run: one HTML page in which a timeline is played, zoomed and searched.

`columns.py` packs events into bytes, and `page.py` makes the page of them. `player.js` draws them in the reader's
browser; `player.css` and `player.html` are its style and its skeleton.
"""
