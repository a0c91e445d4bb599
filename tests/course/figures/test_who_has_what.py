"""The pictures of collectives show what was really sent."""

import pytest

from course.figures.who_has_what import coded, decoded, step_by_step, table


def test_a_sum_of_coded_numbers_says_what_it_is_the_sum_of():
    everyone = sum(coded(rank, 8) for rank in range(8))
    assert [decoded(number) for number in everyone] == [(set(range(8)), chunk) for chunk in range(8)]
    assert decoded(coded(2, 4)[3] + coded(0, 4)[3]) == ({0, 2}, 3)


def test_a_table_writes_ranks_as_letters_and_the_chunk_as_a_number():
    panel = table("now", [[coded(0, 2)[0], None], [coded(1, 2)[0], coded(0, 2)[1] + coded(1, 2)[1]]])
    assert [[tuple(cell) for cell in row] for row in panel.cells] == [
        [("A0", 0.5), ("", 0.0)],
        [("B0", 0.5), ("AB1", 1.0)],
    ]


def test_the_ring_passes_one_chunk_a_step_to_the_next_rank_until_all_have_all():
    start, *steps = step_by_step("ring", 4)
    assert len(steps) == 6
    assert [[cell.text for cell in row] for row in start.cells] == [[letter] * 4 for letter in "ABCD"]
    for step in steps:
        assert sorted((arrow.src, arrow.dst) for arrow in step.arrows) == [(0, 1), (1, 2), (2, 3), (3, 0)]
    complete = [sum(cell.share == 1 for row in step.cells for cell in row) for step in steps]
    assert complete == [0, 0, 4, 8, 12, 16]


def test_doubling_and_halving_send_the_parts_that_the_titles_say():
    for algorithm, titles in {
        "recursive_doubling": ["step 1: n each", "step 2: n each", "step 3: n each"],
        "rabenseifner": [f"step {k + 1}: n/{part} each" for k, part in enumerate((2, 4, 8, 8, 4, 2))],
    }.items():
        _, *steps = step_by_step(algorithm, 8)
        assert [step.title for step in steps] == titles
        assert all(cell.share == 1 for row in steps[-1].cells for cell in row)


def test_what_cannot_be_drawn_step_by_step_is_refused():
    for algorithm, nodes in (("rabenseifner", 6), ("tree", 4), ("ring", 9)):
        with pytest.raises(ValueError, match="cannot be drawn"):
            step_by_step(algorithm, nodes)
