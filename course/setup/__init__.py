"""How the environment `.venv` is made and kept: read before it stands, so by the standard library alone."""
