"""Pages of pictures (`whenabouts_cloud.svg`): as large as their content, and names only as text."""

import re
from xml.etree import ElementTree as ET

import pytest

from whenabouts_cloud.svg import COLOURS, DARK, GREY, LETTER, LIGHT, MARGIN, Page, short

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


@pytest.mark.parametrize("odd", ["\x00", "\x1b[2J", "\ud800", "\ufffe"], ids=ascii)
def test_characters_that_xml_does_not_allow_are_replaced(odd):
    """In titles, tooltips and texts: else nobody could read the picture."""
    page = Page(f"a{odd}", "")
    page.text(0, 0, f"b{odd}", "", page.group(odd))
    page.path("x", "M0 0", GREY, title=odd)
    texts = [x.text for x in ET.fromstring(page.finish().encode()).iter() if x.tag in (f"{SPACE}text", f"{SPACE}title")]
    assert "".join(texts).count("\ufffd") == 5
    assert texts[0].startswith("a\ufffd")


def luminance(colour):
    """Relative luminance of a colour, by WCAG 2."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * x for x in colour[1:])
    parts = (int(digits[n : n + 2], 16) / 255 for n in (0, 2, 4))
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    """Ratio of contrast, from 1 to 21."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("style", [LIGHT, DARK], ids=["light", "dark"])
def test_texts_can_be_read_on_a_light_and_on_a_dark_page(style):
    """WCAG asks for 4.5 for text, and 3 for lines."""
    fills = dict(re.findall(r"\.?(\w+)\{[^}]*fill:(#\w+)", style))
    assert contrast(fills["text"], fills["page"]) >= 7
    assert contrast(fills["end"], fills["page"]) >= 4.5
    assert contrast(GREY, fills["page"]) >= 3


def test_long_names_are_cut():
    """To the given number of letters."""
    assert (short("abc", 3), short("abcd", 3)) == ("abc", "ab…")
