"""How the texts that people write become notebooks: `text.py` reads, `execution.py` runs, `release.py` clears."""
