"""CSV tables.

grade_tables.py       the grader's own: written for spreadsheets, and read after a spreadsheet has changed them
teachers_tables.py    those that teachers bring, as Canvas, Moodle, Excel and LibreOffice write them
"""
