"""The pictures of ranks in a grid show every rank once, its group, and who sends to whom."""

from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Annotation

from course.figures.rank_grid import draw_broadcasts, draw_groups
from minidl.plots import style


def test_every_rank_stands_on_a_square_in_the_colour_of_its_group():
    axes = Figure().subplots()
    draw_groups(axes, (2, 2, 2), ("dp", "pp", "tp"), [[0, 4], [1, 5], [2, 6], [3, 7]])
    colours = {}
    for text in axes.texts:
        if text.get_text().isdigit():
            x, y = text.get_position()
            (square,) = [patch for patch in axes.patches if patch.contains_point(axes.transData.transform((x, y)))]
            colours[int(text.get_text())] = to_hex(square.get_facecolor()).upper()
    assert [colours[rank] for rank in range(8)] == [*style.SERIES[:4], *style.SERIES[:4]]


def test_one_column_sends_along_the_rows_and_one_row_along_the_columns():
    axes = Figure().subplots()
    draw_broadcasts(axes, (2, 4), column=1, row=0)
    arrows = [text for text in axes.texts if isinstance(text, Annotation)]
    along_rows = [each for each in arrows if each.xyann[1] == each.xy[1]]
    assert len(along_rows) == 2 * 3
    assert {each.xyann[0] for each in along_rows} == {1.5}
    assert len(arrows) - len(along_rows) == 4
