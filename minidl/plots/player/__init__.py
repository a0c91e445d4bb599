"""The player of a run: one HTML page in which a timeline is played, zoomed and searched.

`page.py` makes the page from plain columns of events; `columns.py` packs them into bytes. `player.js` draws them, in the
reader's browser, and `player.css` and `player.html` are its style and its skeleton.
"""
