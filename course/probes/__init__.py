"""Functions of checks that run in the student's process: one file for each chapter, named as in `course/checks/`.

A probe is a function `probe(function, *arguments)` for what cannot be seen from the check's side: the number of visits,
what was left in an object, the memory of a call. `answer.run(probe, *arguments)` calls it. The other names here are
given to students by an assignment, such as a training set.

The student's code runs in the same process and may read these files. So they contain no right value, known mistake or
hidden case: these are in `course/checks/`, which that process can neither import nor read. A file here imports only
`minidl`, numpy and other probes.
"""
