"""CSV tables.

lines.py              the cells of a CSV file in any encoding and with any separator
grade_tables.py       tables of grades: written for spreadsheets, and read after a spreadsheet has changed them
teachers_tables.py    tables from teachers, as Canvas, Moodle, nbgrader, Excel and LibreOffice write them
"""
