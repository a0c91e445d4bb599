"""Measures of runs and of published results.

noise_scale       the gradient noise scale: how large a minibatch still pays
learning_speed    how fast a model learns, per sample and per second
report_card       what is wrong with a table of results
result_table      finds which columns of a table are configuration; for the report card
claimed_speedups  checks a claimed speedup against the table; for the report card
selected_results  finds what a table left out, or states in place of what was measured; for the report card
result_files      reads the rows of a file, of a comparison or of run folders
spread            bootstrap intervals over seeds, time to a target that some runs miss, Pareto fronts
"""
