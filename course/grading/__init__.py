"""Grade a folder of submissions: `python3 -m course grade`, and nbgrader's autograde.

submissions/         the files in a folder, whose each is, and what its code may read
grade.py             one grade: by the checks, and by the teacher
feedback/            a student's page
tables/              CSV, as spreadsheets write it
results/             the folder of results: grades that survive a killed run, points by hand
roster/              the students, deadlines, class.csv, a gradebook's files
reports/             statistics of the class, similar answers
grader.py            grades submissions, a few at a time
container/           the same in a container
nbgrader_check.py    the same as a step of nbgrader
"""
