"""Slides: what is on them, and what the page is made of."""
