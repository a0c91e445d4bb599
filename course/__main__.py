"""Start the course: refuse an unsupported Python with one sentence, else call the command line.

This file and `course/__init__.py` use only syntax that every Python reads, Python 2 included. Otherwise an unsupported
Python would print a SyntaxError instead of the sentence.
"""

import os
import sys

FIRST, LAST = (3, 11), (3, 14)

if not FIRST <= sys.version_info[:2] <= LAST:
    folders = os.environ.get("PATH", "").split(os.pathsep)
    names = ["python3.{}".format(minor) for minor in range(LAST[1], FIRST[1] - 1, -1)]
    there = [name for name in names if any(os.access(os.path.join(folder, name), os.X_OK) for folder in folders)]
    sys.stderr.write(
        "The course needs Python 3.11 to 3.14, and this is Python {} ({}): start it with one of those, "
        "for instance `{} -m course`.\n".format(sys.version.split()[0], sys.executable, (there or names)[0])
    )
    sys.exit(2)

from course.command_line import main  # noqa: E402 (only a right Python may go on)

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
