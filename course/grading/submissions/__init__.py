"""What students handed in.

files.py          the files in a folder; links are not followed
submission.py     whose each notebook is, and which assignment it answers
own_folders.py    which files its code may read
fingerprint.py    what its grade depends on
"""
