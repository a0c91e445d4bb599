"""The student's process as the check sees it: started, sent requests, watched, and ended with all that it started.

student_session   requests, each with a deadline; starts a new process after one died
student_process   one process, from its start under the supervisor to its end
supervision       its supervisor
warm_parent       the process from which both are forked (Linux)
captured_output   what it prints
stack_file        the line in which it is
reply             reads what it sends; the student's code may have forged it
deadline          a time limit that does not count the time in which the process had no core
strays            finds, measures and ends every process that it started
caches            what numba and matplotlib have cached, linked into its folder
hidden            the files that it may not read
"""
