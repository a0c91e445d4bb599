"""What students handed in: the files in a folder, whose each is, and which files its code may read."""
