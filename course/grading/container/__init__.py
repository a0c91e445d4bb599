"""Grading in a container without a network.

outside.py    builds the image, runs the container, and ends it
inside.py     the program that runs in it
"""
