"""The student's process as the check sees it: started, sent requests, watched, and ended with all that it started.

student_session   sends requests, each with a deadline; starts a new process if one dies
student_process   one process, from its start under the supervisor to its end
supervision       its supervisor
warm_parent       the process from which both are forked (Linux)
captured_output   the text that it prints
stack_file        the line that it executes
reply             reads its replies, which the student's code may have forged
deadline          a time limit that does not count the time in which the process had no core
strays            finds, measures and ends every process that it started
caches            caches of numba and matplotlib, linked into its folder
hidden            the files that it may not read
"""
