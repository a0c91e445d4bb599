"""Runs an answer on several ranks: the simulation is here, the ranks' programs are in the student's processes.

rank_run              runs the answer on all ranks; RankRun holds what the check sees of the run
forked_ranks          the processes of the ranks
served_rank           one simulated rank, which serves the requests of one process
played_rank           one simulated rank that the check itself plays
rank_calls            makes the communicator calls that a process requests
student_frames        frames with the student's names and lines, for the errors of the simulation
collectives           the collectives of a run, one by one
counted_all_reduces   how many all-reduces a rank made
carried               which ranks' values messages can have carried to a rank
"""
