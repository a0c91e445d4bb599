"""An answer on several ranks: a simulation here, whose ranks' programs run in processes of the student.

rank_run              runs the answer on all ranks, and RankRun, what is seen of it
forked_ranks          the processes of the ranks
served_rank           one simulated rank, which serves the requests of one process
played_rank           one simulated rank that the check itself plays
rank_calls            makes the communicator calls that a process asks for
student_frames        frames with the student's names and lines, for the errors of the simulation
collectives           the collectives of a run, one by one
counted_all_reduces   how many all-reduces a rank made
carried               which ranks' values messages can have carried to a rank
"""
