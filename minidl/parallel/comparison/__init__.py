"""Comparisons: the same job by several strategies, on several networks, with several seeds.

compare        trains them all and returns the Comparison
comparison     the Comparison: tables, CSV files and the picture
over_seeds     means and standard deviations over the seeds of one strategy on one network
compared_run   the result of one run
entrant        a strategy with the job that it trains, which is made fair and checked before the first run
"""
