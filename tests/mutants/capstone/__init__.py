"""Known answers to the exercises of the capstone."""

from tests.mutants import of_chapter

MUTANTS, ALTERNATIVES = of_chapter(__name__, __path__)
