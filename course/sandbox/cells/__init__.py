"""A notebook's cells, run without a kernel.

shell          runs cells as IPython does
cell_cache     where numba keeps what it compiles
kept_kernels   the compiled kernels of this user, linked into an answer's folder
stand_in       in place of the chapters' checks, modules whose calls do nothing
"""
