"""The picture of a lattice: every state and step once, marks where they belong, nothing over anything else."""

from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings

from property.strategies_latwin_frames import consistent, windows
from support.search import examples
from whenabouts_cloud.latwin.model.frame import frame
from whenabouts_cloud.latwin.picture.hasse import NODES_MAX, crossings, hasse
from whenabouts_cloud.latwin.picture.hasse_svg import MAX_ROWS, svg
from whenabouts_cloud.latwin.windows import walk

SVG = "{http://www.w3.org/2000/svg}"


def unrelated(first, counts):
    return frame(first, [[[0] * len(first)] * count for count in counts])


def drawn(text):
    """The root, the boxes (x, y, width, height, class) with their texts, the lines of steps."""
    root = ET.fromstring(text)
    boxes = []
    for group in root.iter(f"{SVG}g"):
        rect = group.find(f"{SVG}rect")
        sizes = tuple(int(rect.get(name)) for name in ("x", "y", "width", "height"))
        boxes.append((*sizes, rect.get("class"), [t.text for t in group.iter(f"{SVG}text")]))
    lines = [path.get("d") for path in root.iter(f"{SVG}path") if "L" in path.get("d")]
    return root, boxes, lines


def texts(root):
    return [text.text for text in root.iter(f"{SVG}text")]


@settings(max_examples=examples(150), deadline=None)
@given(windows(events=10))
def test_the_diagram_has_every_state_and_every_single_step(seen):
    """Steps are the pairs that differ by one state of one process; each goes up one level; the order only helps."""
    expected = consistent(seen)
    if len(expected) > NODES_MAX:
        with pytest.raises(ValueError, match=f"found {len(expected)} global states, expected at most {NODES_MAX}"):
            hasse(seen.frame, walk.each(seen.frame, lambda g: True))
        return
    diagram = hasse(seen.frame, walk.each(seen.frame, lambda g: g[0] % 2 == 0))
    assert [tuple(g) for g in diagram.states.tolist()] == expected
    assert diagram.holds.tolist() == [g[0] % 2 == 0 for g in expected]
    steps = {(expected.index(g), expected.index(h)) for g in expected for h in expected
             if sum(h) - sum(g) == 1 and all(b - a in (0, 1) for a, b in zip(g, h, strict=True))}  # fmt: skip
    assert {(low, high) for low, high, _ in diagram.steps} == steps
    assert all(expected[low][j] + 1 == expected[high][j] for low, high, j in diagram.steps)
    assert sorted(node for level in diagram.levels for node in level) == list(range(len(expected)))
    assert crossings(diagram.levels, diagram.steps) <= crossings([sorted(x) for x in diagram.levels], diagram.steps)


@pytest.mark.parametrize(
    ("first", "counts", "names"),
    [([0, 0], [1, 1], ()), ([1021, 998, 120], [4, 5, 3], ()), ([7] * 9, [2, 2, 2, 2, 2, 1, 1, 1, 1], ()),
     ([10**6] * 4, [3, 3, 3, 2], ()), ([0, 0], [30, 2], ("a <b> & \"c\"", "x" * 70))],
)  # fmt: skip
def test_boxes_are_apart_inside_the_picture_and_hold_their_text(first, counts, names):
    """One box a state, one line a step between the edges of two boxes; names of any kind are only text."""
    window = unrelated(first, counts)
    diagram = hasse(window, lambda rows: rows[:, 0] == 0)
    root, boxes, lines = drawn(svg(window, lambda rows: rows[:, 0] == 0, "title <&>", names, ["a note"]))
    width, height = int(root.get("width")), int(root.get("height"))
    assert (len(boxes), len(lines)) == (len(diagram.states), len(diagram.steps))
    for place, (x, y, w, h, kind, [label]) in enumerate(boxes):
        assert 0 < x < x + w < width
        assert 0 < y < y + h < height
        assert len(label) * 8 < w
        assert kind in ("state", "holds")
        for x2, y2, w2, h2, *_ in boxes[:place]:
            assert x + w < x2 or x2 + w2 < x or y + h < y2 or y2 + h2 < y
    assert sum(kind == "holds" for *_, kind, _ in boxes) == diagram.holds.sum()
    bottoms, tops = {(x + w // 2, y + h) for x, y, w, h, *_ in boxes}, {(x + w // 2, y) for x, y, w, h, *_ in boxes}
    for line in lines:
        start, end = (tuple(map(int, part.split())) for part in line[1:].split("L"))
        assert start in tops
        assert end in bottoms
        assert start[1] > end[1]
    heights = {t.text: int(t.get("y")) for t in root.findall(f"{SVG}text[@class='end']")}
    assert set(heights) == ({"C_min, C_max"} if len(boxes) == 1 else {"C_min", "C_max"})
    assert heights.get("C_min", 1) > heights.get("C_max", 0)
    assert "title <&>" in texts(root)
    assert "a note" in texts(root)


def test_long_numbers_are_counted_from_the_least_state():
    """The note names that state; the tooltip of a box has the whole state."""
    window = unrelated([123456] * 5, [2] * 5)
    root, boxes, _ = drawn(svg(window, lambda rows: rows.sum(axis=1) == 1, "t"))
    assert {label for *_, [label] in boxes} == {f"{i:05b}" for i in range(32)}
    assert "C_min = 123456 123456 123456 123456 123456" in texts(root)
    titles = [title.text for group in root.iter(f"{SVG}g") for title in group.iter(f"{SVG}title")]
    assert "P0 123456, P1 123456, P2 123456, P3 123456, P4 123457: holds" in titles


def test_more_states_than_can_be_followed_are_shown_by_level():
    """61 states and more: a bar for each level, with how many hold; levels share bars when they are many."""
    root, bars, _ = drawn(svg(unrelated([5, 5, 5], [4, 4, 4]), lambda rows: rows[:, 2] == 3, "t"))
    emitted = [(texts[0], texts[1]) for *_, texts in bars]
    assert emitted == [("9", "1, 1 hold"), ("8", "3, 2 hold"), ("7", "6, 3 hold"), ("6", "10, 4 hold"), ("5", "12, 3 hold"),
                    ("4", "12, 2 hold"), ("3", "10, 1 hold"), ("2", "6"), ("1", "3"), ("0", "1")]  # fmt: skip
    assert {"C_max 8 8 8", "C_min 5 5 5"} <= set(texts(root))
    root, bars, _ = drawn(svg(unrelated([0, 0], [100, 100]), lambda rows: rows[:, 0] < 0, "t"))
    assert 1 < len(bars) <= MAX_ROWS
    assert [texts for *_, texts in bars][-1] == ["0-3", "10"]


def test_an_empty_window_is_reported():
    """No boxes, no bars."""
    root, boxes, lines = drawn(svg(frame([0, 1], [[[0, 0]], [[1, 1]]]), lambda rows: rows[:, 0] == 0, "t"))
    assert (boxes, lines) == ([], [])
    assert "no consistent global state in this window" in texts(root)
