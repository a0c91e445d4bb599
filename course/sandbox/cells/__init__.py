"""A notebook's cells, run without a kernel.

shell          runs cells as IPython does
cell_cache     where numba caches compiled functions
kept_kernels   the compiled kernels of this user, linked into an answer's folder
stand_in       modules that replace the chapters' checks; their calls do nothing
"""
