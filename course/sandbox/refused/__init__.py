"""What a student's code may not import, replace or call.

builds         what an exercise has students build, by the names of the library's versions
refusals       makes these raise while the check calls the answer
importing      refuses imports of the checks, and second copies of the library's modules
originals      restores what the student's code replaced in minidl, the course and Python
library_code   recognises the library's own code, whose calls are not refused
"""
