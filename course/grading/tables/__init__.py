"""CSV tables.

grade_tables.py       tables of grades: written for spreadsheets, and read after a spreadsheet has changed them
teachers_tables.py    tables from teachers, as Canvas, Moodle, Excel and LibreOffice write them
"""
