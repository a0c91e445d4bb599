"""What an answer must do, a folder a chapter: `from course.checks import messages_and_collectives as check`.

A folder's `__init__.py` has the chapter's exercises, in their order; the files beside it have the cases, right values,
known mistakes, and (`library_versions.py`) what of the library an answer may not use. No answer can import or read
these files: what runs beside it is in `course/probes/`. Where a notebook is judged, `check` is a quiet stand-in.
"""
