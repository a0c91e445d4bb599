"""What runs beside an answer, in the student's process: a file a chapter, named as its folder in `course/checks/`.

A probe is a function `probe(function, *arguments)`, for what cannot be seen from the check's side: how often something
was visited, what was left in an object, how much memory a call took. `answer.run(probe, *arguments)` has it called. The
other things here are what an assignment gives out, such as a training set.

The student's code shares a process with these files, and may read them. So nothing here knows a right value, a known
mistake or a hidden case: these stand in `course/checks/`, which that process can neither import nor read. A file here
imports from `minidl`, numpy and other probes alone.
"""
