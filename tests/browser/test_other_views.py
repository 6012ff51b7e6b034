"""Gateways, rules, why-not and health in a browser, on a run whose truth is known; and the pictures of the documents."""

import os
from pathlib import Path

import pytest

from browser.test_timeline_view import settled
from support.browser import known_run
from support.browser.known_run import BEGIN_US, KEYS, SECOND_US
from support.browser.look import LIMIT_MS, opened, picture, rows_of
from support.paths import REPOSITORY

PICTURES = REPOSITORY / "docs" / "pictures" / "dashboard"
VIEWS = {
    "timeline": f"timeline?from={BEGIN_US - SECOND_US}&to={BEGIN_US + 42 * SECOND_US}",
    "gateways": "gateways?gateway=hall%2Fgw-1",
    "rules": "rules",
    "why-not": f"why-not?rule=handover&key={KEYS[3].replace(':', '%3A')}&at={known_run.true_us(known_run.DOCK, 3)}",
    "health": "health",
}


def test_gateways_are_listed_with_what_they_reported(page, known):
    """Those in trouble first."""
    section = opened(page, known.url, "gateways")
    section.get_by_text("hall/gw-1").first.wait_for(timeout=LIMIT_MS)
    rows = rows_of(section.locator("table").first)
    assert [(row[0], row[1]) for row in rows] == [("hall/gw-1", "silent"), ("hall/gw-2", "stopped")]
    assert rows[0][3:8] == ["10 ms", "bounded, chrony", "5", "0", "3"]


def test_a_gateway_is_chosen_by_keyboard_while_the_list_is_renewed(page, known):
    """The list tells ages, so it is written anew each second; the focus stays where it was."""
    section = opened(page, known.url, "gateways")
    button = section.get_by_role("button", name="hall/gw-2")
    button.focus(timeout=LIMIT_MS)
    page.evaluate("() => { window.seen = document.activeElement; }")
    page.wait_for_function("() => !window.seen.isConnected", timeout=LIMIT_MS)
    assert page.evaluate("() => document.activeElement.textContent") == "hall/gw-2"
    page.keyboard.press("Enter")
    section.get_by_role("heading", name="hall/gw-2").wait_for(timeout=LIMIT_MS)


def test_a_chosen_gateway_shows_its_clock_over_time(page, known):
    """The table behind the chart has each heartbeat; the readers have the parts of their stamps."""
    section = opened(page, known.url, VIEWS["gateways"])
    chart = section.locator("figure", has_text="Clock bound")
    chart.locator("canvas").wait_for(timeout=LIMIT_MS)
    assert [row[1] for row in rows_of(chart.locator(".behind table"))] == [f"{5 + n} ms" for n in range(6)]
    readers = rows_of(section.locator("table[data-readers]"))
    assert [(row[0], row[3], row[6]) for row in readers] == [("dock/tags", "20", "12 ms")]


def test_rules_show_their_explanation_and_their_figures(page, known):
    """Results a minute and the histogram of their probability add up to all results."""
    section = opened(page, known.url, "rules")
    card = section.locator("article[data-rule=handover]")
    card.get_by_text("15 results").wait_for(timeout=LIMIT_MS)
    image = card.locator("img.drawing")
    image.wait_for(timeout=LIMIT_MS)
    page.wait_for_function(
        "() => [...document.querySelectorAll('img.drawing')].every(x => x.naturalWidth > 0)", timeout=LIMIT_MS
    )
    for title in ("Results a minute", "Probability"):
        rows = rows_of(card.locator("figure", has_text=title).first.locator(".behind table"))
        assert sum(int(row[1]) for row in rows) == 15
    assert ["late b", "1"] in rows_of(card.locator("table").last)


def test_a_mistake_in_an_edited_rule_is_shown_at_its_place_and_a_right_one_is_tried(page, known):
    """The trial finds what the job has found."""
    section = opened(page, known.url, "rules")
    text = section.locator("textarea")
    page.wait_for_function("() => document.querySelector('textarea').value.includes('handover')", timeout=LIMIT_MS)
    text.fill(known_run.RULES.replace("CORRELATE", "CORELATE"))
    section.locator(".mistakes li", has_text="line 6").first.wait_for(timeout=LIMIT_MS)
    assert section.get_by_role("button", name="Try it on what landed last").is_disabled()
    text.fill(known_run.RULES)
    section.locator(".mistakes .good").wait_for(timeout=LIMIT_MS)
    section.get_by_label("Rule to try").select_option("handover")
    section.get_by_role("button", name="Try it on what landed last").click()
    section.get_by_text("15 results of 35 readings").wait_for(timeout=LIMIT_MS)
    assert page.get_by_text("Publish…").is_hidden()


def test_why_not_tells_the_lines_of_the_command_and_draws_the_probability(page, known):
    """For the pair of a key at a time; the form asks the same as the link."""
    section = opened(page, known.url, VIEWS["why-not"])
    section.locator("svg.pair-picture").first.wait_for(timeout=LIMIT_MS)
    assert "a pair" in section.locator("pre").first.inner_text()
    assert section.locator("svg.pair-picture polygon.filled").first.get_attribute("points")
    section.get_by_label("Key").fill("urn:epc:99")
    section.get_by_role("button", name="Why not?").click()
    section.get_by_role("button", name=f"Ask about {KEYS[0]}").wait_for(timeout=LIMIT_MS)


def test_health_tells_ingest_landing_and_dead_letters(page, known):
    """As the ingest counted them."""
    section = opened(page, known.url, "health")
    section.get_by_text("landed 40").wait_for(timeout=LIMIT_MS)
    assert rows_of(section.locator("table[data-table=reasons]")) == [["undecodable", "2"]]
    assert rows_of(section.locator("table[data-table=landing]"))[0][:2] == ["40", "3"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("view", sorted(VIEWS))
def test_each_view_fits_its_screen(browser, known, view, width, scheme):
    """No page scrolls sideways, and something is drawn. WHENABOUTS_PICTURES=1 renews the documents' pictures."""
    context = browser.new_context(viewport={"width": width, "height": 760}, color_scheme=scheme)
    page = context.new_page()
    section = opened(page, known.url, VIEWS[view])
    page.wait_for_load_state("networkidle") if view != "timeline" else settled(section)
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    shot = picture(page.locator("main"))
    assert len(shot.getcolors(1 << 24)) > 20
    if os.environ.get("WHENABOUTS_PICTURES") and (width, scheme) == (1280, "light"):
        PICTURES.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=PICTURES / f"{view}.png")
    context.close()


def test_the_documents_have_a_picture_of_each_view():
    """Of a width that a page of the manual shows."""
    assert {file.stem for file in Path(PICTURES).glob("*.png")} == set(VIEWS)


def test_the_theme_follows_the_system_until_one_is_chosen(page, known):
    """The choice outlives the page; the canvas is painted in the same colours."""
    light, dark = "rgb(246, 247, 249)", "rgb(16, 19, 24)"
    ground = "() => getComputedStyle(document.documentElement).backgroundColor"
    button = page.locator("#theme")
    opened(page, known.url, "timeline")
    for scheme, colour in (("dark", dark), ("light", light)):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(f"colour => ({ground})() === colour", arg=colour)
    button.click()
    button.click()
    assert button.text_content() == "Theme: dark"
    assert page.evaluate(ground) == dark
    page.reload()
    assert page.evaluate(ground) == dark
    settled(page.locator("section[data-view=timeline]"))
    assert picture(page.locator("section[data-view=timeline] canvas").first).getpixel((2, 2)) == (23, 27, 34)
