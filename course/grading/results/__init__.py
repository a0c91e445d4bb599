"""The folder of results.

results.py           grades.csv, exercises.csv and the pages; a row as soon as a submission is graded
state.py             what has been graded, in a file that survives a killed run
points_by_hand.py    the points that a teacher wrote into exercises.csv
leftovers.py         removes what a killed run left
notices.py           what the teacher should know, in sentences
"""
