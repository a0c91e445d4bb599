"""How the texts that people write become notebooks.

`sources.py` finds them, `text.py` reads one, `execution.py` runs it, `release.py` clears it for students, `making.py`
does all that for several; `staleness.py` sees what is not up to date, `assignment_rules.py` what an assignment lacks,
`progress.py` shows how it goes.
"""

import sys

# nbformat asks jsonschema, which asks this package for a grammar of international links. That takes over two seconds
# to compile, and no notebook has such links. jsonschema does without if the import fails.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
