"""Slides: a lecture as one page to show in a room; `deck.py` chooses what is shown, `page.py` writes the HTML."""
