"""One rank of an answer, in a process of its own.

rank_process      the program of the process
communicator      `comm`: each call is a request to the check, whose simulation makes it
encoding          arguments and results of these calls as plain data
walls             separates the process from those of the other ranks
read_only_cache   numba's cache, read but never written
"""
