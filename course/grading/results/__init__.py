"""The folder of results: grades that survive a killed run, points by hand, and the tables of them."""
