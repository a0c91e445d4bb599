"""The class: who handed in what, and when.

headers.py        what the columns of a roster mean, in four languages
roster.py         the students, from Canvas, Moodle, nbgrader or any CSV
matching.py       which student a submission is of
lateness.py       deadlines, and what lateness costs
class_table.py    class.csv: a row for each student and assignment
gradebooks.py     files that Canvas and Moodle import
"""
