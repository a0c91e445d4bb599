"""What is made of a class's grades: statistics, a picture, similar answers, class.csv."""
