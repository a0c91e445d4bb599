"""What a check says of the mistakes that it knows is collected while it judges a right answer."""

from __future__ import annotations

import numpy as np

from course.building.named_mistakes import named, unnamed
from course.judging import expect


def test_a_mistake_is_named_unless_another_one_gives_the_same_wherever_it_is_wrong() -> None:
    with named() as said:
        for n in (2, 4):
            known = {"The square.": n**2, "Twice.": 2 * n, "Two were added.": n + 2}
            expect.number(n, n, "n", mistakes={**known, "It was added to itself.": n + n, f"It is {n}.": float(n)})
        expect.array(np.ones(2), np.ones(2), "ones", mistakes={"Zeros.": np.zeros(2)})
    assert unnamed(said) == ["It was added to itself."]
    assert said["Two were added."] == {"The square.", "Two were added."}
    assert said["It is #."] == set()
    assert said["Zeros."] == {"Zeros."}
