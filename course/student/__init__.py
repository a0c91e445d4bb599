"""One student's lectures and work on the exercises.

own_copy.py           the copy in `work/`, made by `start`
lecture_copies.py     the copies of the lectures in `work/`, without outputs, made by `lab`
merged_exercises.py   the student's answers in a newer version of the exercises
check_request.py      what `check` was asked for, and the hints
check_report.py       what `check` prints
standing.py           the points so far, by chapter
"""
