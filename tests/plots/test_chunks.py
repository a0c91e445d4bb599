"""The picture of who has what shows every cell, and an arrow for every chunk that was sent."""

from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle
from matplotlib.text import Annotation

from minidl.plots import chunks
from minidl.plots.chunks import Arrow, Cell, Panel

CELLS = [[Cell("A0", 0.25), Cell("A1", 0.25)], [Cell("AB0", 0.5), Cell("", 0.0)], [Cell("ABC0", 1.0), Cell("C1", 0.25)]]


def test_every_cell_is_written_where_it_belongs() -> None:
    axes = chunks.draw([Panel("now", CELLS)], columns=1, source="simulated").axes[0]
    written = {text.get_position(): text.get_text() for text in axes.texts}
    assert written == {(column, rank): CELLS[rank][column].text for rank in range(3) for column in range(2)}


def test_the_more_a_cell_holds_the_darker_it_is() -> None:
    axes = chunks.draw([Panel("now", CELLS)], columns=1, source="simulated").axes[0]
    boxes = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    lightness = [sum(to_rgb(box.get_facecolor())) for box in boxes]
    shares = [cell.share for row in CELLS for cell in row]
    darker = sorted(range(6), key=lambda index: -lightness[index])
    assert [shares[index] for index in darker] == sorted(shares)


def test_what_arrived_has_an_arrow_and_a_frame() -> None:
    panels = [Panel("before", CELLS), Panel("after", CELLS, [Arrow(0, 1, 0), Arrow(2, 0, 1)])]
    figure = chunks.draw([*panels, panels[0]], columns=2, source="formula")
    before, after, _, empty = figure.axes
    assert (empty.axison, figure.get_supxlabel()) == (False, "formula")
    assert [sum(isinstance(text, Annotation) for text in axes.texts) for axes in (before, after)] == [0, 2]
    frames = [[box.get_linewidth() for box in axes.patches if isinstance(box, Rectangle)] for axes in (before, after)]
    assert len(set(frames[0])) == 1
    assert [index for index, width in enumerate(frames[1]) if width > min(frames[1])] == [1, 2]
