"""A notebook's cells, run without a kernel.

shell        runs cells as IPython does
cell_cache   where numba keeps what it compiles in cells
stand_in     in place of the chapters' checks, modules whose calls do nothing
"""
