"""What went wrong in a student's process, in words, and at which of the student's lines.

student_error   an exception as plain data
wait_table      the ranks of a deadlock and what each of them waited for
sources         names the lines of the student's cells and files
ending          how a process ended
"""
