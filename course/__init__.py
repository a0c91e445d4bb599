"""The course: `python3 -m course` from the root of a clone, with nothing but Python installed."""

import sys

# nbformat asks jsonschema, which asks this package for a grammar of international links. That takes two seconds to
# compile at every start, and no notebook has such links. jsonschema does without it if the import fails.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
