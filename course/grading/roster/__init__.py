"""The class: who the students are, when they handed in, their rows in class.csv and in a gradebook's files."""
