"""What is made of the grades of a class.

class_reports.py      the options of the command, and the files that follow from them
statistics.py         how many got each part of an exercise
picture.py            the same as a picture
similarity.py         similar answers
similarity_page.py    the same as a page
"""
