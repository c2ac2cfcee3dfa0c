"""The inspector as a person uses it: with a mouse, with keys alone, and without scripts."""

from __future__ import annotations

import re

import pytest
from browser_kit import Site, Troubles, opened
from playwright.sync_api import Browser, Page, expect

from inspector_store import Seeded

LIT = re.compile(r"\blit\b")


# --- looking -----------------------------------------------------------------------------------------------------------


def test_text_shows_its_item_and_an_item_its_text(page: Page, seeded: Seeded) -> None:
    page.goto(seeded.path("/ui/context?id={context}"))
    text, item = page.locator("#text-2"), page.locator("#item-2")
    expect(item).not_to_have_class(LIT)
    text.hover()
    expect(item).to_have_class(LIT)
    expect(page.locator("#item-1")).not_to_have_class(LIT)
    page.locator("#item-1").hover()
    expect(page.locator("#text-1")).to_have_class(LIT)
    expect(text).not_to_have_class(LIT)
    item.get_by_role("link", name="Item 2 in the prompt").focus()
    expect(text).to_have_class(LIT)


def test_the_marks_lead_to_and_fro_without_scripts(browser: Browser, site: Site, seeded: Seeded, troubles: Troubles) -> None:
    with opened(browser, site.url, troubles, java_script_enabled=False) as page:
        page.goto(seeded.path("/ui/context?id={context}"))
        page.get_by_role("link", name="Item 3", exact=True).click()
        assert page.url.endswith("#item-3")
        expect(page.locator("#item-3:target")).to_be_visible()
        expect(page.locator(".for-script").first).to_be_hidden()


def test_the_prompt_is_copied_as_it_was_sent(page: Page, site: Site, seeded: Seeded) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(seeded.path("/ui/context?id={context}"))
    page.get_by_role("button", name="Copy the prompt").click()
    expect(page.locator("#status")).to_contain_text("Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == site.engine.receipts.replay(seeded.names["context"]).text


# --- keys --------------------------------------------------------------------------------------------------------------


def test_a_key_leads_to_the_search_of_any_page(page: Page, seeded: Seeded) -> None:
    page.goto("/ui/health")
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox", name="Search memory")).to_be_focused()
    page.keyboard.type(seeded.names["redis"])
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui/memory?*")
    href = page.locator("td.main a").first.get_attribute("href")
    assert href is not None
    assert href.endswith(seeded.names["redis"])


def test_rows_are_walked_by_keys(page: Page) -> None:
    page.goto("/ui/contexts")
    rows = page.locator("tr[data-row]")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(rows.nth(1)).to_have_class(re.compile(r"\bat\b"))
    page.keyboard.press("k")
    address = rows.nth(0).locator("td.main a").get_attribute("href")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{address}")


def test_light_or_dark_is_remembered_without_a_flash(page: Page) -> None:
    page.goto("/ui/contexts")
    assert page.locator("html").get_attribute("data-theme") is None
    page.keyboard.press("t")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()
    assert page.evaluate("fetch(location.href).then(a => a.text())").count('data-theme="dark"') == 1


# --- hostile content ---------------------------------------------------------------------------------------------------


HOSTILE = ("/ui/context?id={hostile_context}", "/ui/record?id={hostile_script}", "/ui/memory?q=script")


@pytest.mark.parametrize("address", HOSTILE)
def test_what_records_hold_is_never_run(page: Page, seeded: Seeded, address: str) -> None:
    page.add_init_script("window.alert = () => { window.ran = true; };")
    page.goto(seeded.path(address))
    page.wait_for_load_state("networkidle")
    assert page.evaluate("window.ran") is None
    assert page.locator("main script, main img, main iframe, main [onerror], main a[href^='javascript:']").count() == 0
    assert page.locator("main").get_by_text("<script>", exact=False).count() > 0
