"""The checks, one folder for each chapter: `from course.checks import messages_and_collectives as check`.

The `__init__.py` of a folder has the chapter's exercises in order. The other files have test cases, right values and
known mistakes. `library_versions.py` names, for all chapters, what an answer may not use of the library. No answer can
import or read these files: functions that run in its process are in `course/probes/`. While a notebook is judged,
`check` is a stand-in whose calls do nothing.
"""
