"""What students handed in.

files.py          the files in a folder; links are not followed
hand_ins.py       everything that was handed in, also what is no notebook
archives.py       zip archives, unpacked within bounds
platforms.py         how learning platforms name files
submission.py     whose each notebook is, and which assignment it answers
own_folders.py    which files its code may read
fingerprint.py    what its grade depends on
"""
