"""The class of the rehearsal. To grade it takes minutes: `python -m benchmarks.class_of_300 FOLDER`."""

from argparse import Namespace

from benchmarks.class_of_300 import SHARES, hand_in

LOST = {
    "empty": range(1, 10), "wrong": [1], "mixture": [1, 2, 3], "endless loop": [1], "endless forks": [1],
    "endless memory": [1],
}  # fmt: skip
"""How many exercises lose points; none in submissions of other kinds."""


def test_a_class_has_a_submission_of_each_kind_and_what_each_must_get_follows_from_its_answers(tmp_path):
    handed_in = hand_in(Namespace(folder=tmp_path, students=len(SHARES), assignments=1, seed=3))
    assert [kind for kind, _, _ in handed_in.values()] == [*SHARES]
    for path, (kind, content, expected) in handed_in.items():
        assert path.read_bytes() == content
        assert (expected == {}) == (kind in ("broken", "no notebook"))
        lost = [outcome for outcome, _ in expected.values() if outcome != "correct"]
        assert len(lost) in LOST.get(kind, [0])
        assert lost or not expected or sum(points for _, points in expected.values()) in (15.0, 18.0)
