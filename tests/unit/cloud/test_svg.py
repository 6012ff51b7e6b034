"""Pages of pictures (`whenabouts_cloud.svg`): as large as their content, and names only as text."""

from xml.etree import ElementTree as ET

from whenabouts_cloud.svg import COLOURS, LETTER, MARGIN, Page, short

SPACE = "{http://www.w3.org/2000/svg}"


def test_a_page_is_as_wide_as_its_longest_text_and_as_high_as_its_lines():
    """With its border; what is drawn can widen it."""
    page = Page("t", "")
    page.line("x" * 100)
    root = ET.fromstring(page.finish())
    assert (root.get("width"), root.get("height")) == (str(2 * MARGIN + 100 * LETTER), str(page.bottom + MARGIN))
    page.reach(2000)
    assert ET.fromstring(page.finish()).get("width") == str(2000 + MARGIN)


def test_things_beyond_the_colours_differ_by_their_dashes():
    """Colours come again, with other dashes."""
    page = Page("t", "")
    for number in range(len(COLOURS) + 1):
        page.numbered("step", "M0 0h1", number)
    paths = ET.fromstring(page.finish()).findall(f"{SPACE}path")
    first, last = paths[0].attrib, paths[-1].attrib
    assert first["stroke"] == last["stroke"]
    assert first.get("stroke-dasharray") != last.get("stroke-dasharray")


def test_names_cannot_become_markup():
    """Names come from rules, which anybody may write."""
    page = Page("<script>", "")
    page.text(0, 0, "</text><script>", "", page.group("&"))
    assert "<script>" not in page.finish()
    assert ET.fromstring(page.finish()).find(f"{SPACE}g/{SPACE}title").text == "&"


def test_long_names_are_cut():
    """To the given number of letters."""
    assert (short("abc", 3), short("abcd", 3)) == ("abc", "ab…")
