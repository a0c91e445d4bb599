"""What an answer must do, a folder a chapter: `from course.checks import messages_and_collectives as check`.

A folder's `__init__.py` has the chapter's exercises, in their order; the files beside it have the cases, the known
mistakes, and the probes that run beside an answer.
"""
