"""What a person does in the inspector: try, compare, accept, edit, delete."""

from __future__ import annotations

import re

import pytest
from browser_kit import Site, Troubles, axe, opened
from playwright.sync_api import Browser, Page, expect

from foveate import NotFound
from inspector_store import Seeded


def test_changes_are_tried_as_they_are_typed_and_nothing_is_stored(own_page: Page, own_site: Site, seeded: Seeded) -> None:
    before = own_site.engine.store.stats().receipts
    own_page.goto(seeded.path("/ui/context?id={context}"))
    own_page.get_by_role("link", name="Try changes").click()
    result, budget = own_page.locator("#result"), own_page.get_by_label("Budget in tokens")
    expect(result.locator(".prompt")).to_be_visible()
    prompts = set()
    for number in ("3000", "900"):
        budget.fill(number)
        expect(result).to_contain_text(f"of {int(number):,} tokens")
        prompts.add(result.locator(".prompt").inner_text())
        assert f"budget={number}" in own_page.url, "the result can be linked to"
    assert len(prompts) == 2, "the prompt follows the budget"
    own_page.reload()
    expect(budget).to_have_value("900")
    budget.fill("20")
    expect(result).to_contain_text(re.compile("too (small|few)|short|at least", re.IGNORECASE))
    own_site.engine.receipts.flush()
    assert own_site.engine.store.stats().receipts == before


def test_another_context_is_chosen_and_compared(page: Page, seeded: Seeded) -> None:
    page.goto(seeded.path("/ui/compare?id={tight}"))
    page.get_by_role("combobox").select_option(seeded.names["context"])
    page.get_by_role("button", name="Compare").click()
    page.wait_for_url(re.compile(rf"from={seeded.names['context']}"))
    expect(page.get_by_role("region", name="Lines that differ")).to_be_visible()
    assert page.locator("#items tr[data-row]").count() > 3


def test_a_new_context_appears_in_the_list_by_itself(own_page: Page, own_site: Site) -> None:
    own_page.clock.install()
    own_page.goto("/ui/contexts")
    own_site.engine.context("Who ordered the anvil?")
    own_site.engine.receipts.flush()
    own_page.clock.run_for(6_000)
    expect(own_page.get_by_role("link", name="Who ordered the anvil?")).to_be_visible()


def test_a_proposed_rule_is_accepted(own_page: Page, own_site: Site) -> None:
    own_site.engine.inbox.propose("instruction", "Always answer in Celsius")
    own_page.goto("/ui/inbox")
    own_page.get_by_role("row", name=re.compile("Celsius")).get_by_role("button", name="Accept").click()
    expect(own_page.get_by_role("status").first).to_contain_text("Accepted")
    assert "Always answer in Celsius" in own_site.engine.context("How warm is it?", budget=6000).text


def test_a_record_is_edited_and_the_history_says_so(own_page: Page, own_site: Site, seeded: Seeded) -> None:
    id = seeded.names["port"]
    own_page.goto(seeded.path("/ui/record?id={port}"))
    own_page.get_by_text("Edit", exact=True).click()
    own_page.get_by_role("textbox", name="Text").fill("The checkout server uses port 9443 <b>now</b>")
    own_page.get_by_role("button", name="Save").click()
    expect(own_page.get_by_role("status").first).to_be_visible()
    assert own_site.engine.get(id).text == "The checkout server uses port 9443 <b>now</b>"
    expect(own_page.get_by_role("heading", level=1)).to_contain_text("<b>now</b>")
    own_page.get_by_role("link", name="History").click()
    expect(own_page.locator("main")).to_contain_text("The checkout server uses port 9000")
    axe(own_page)


def test_what_somebody_else_changed_meanwhile_is_not_overwritten(
    own_page: Page, own_site: Site, seeded: Seeded, troubles: Troubles
) -> None:
    own_page.goto(seeded.path("/ui/record?id={port}"))
    own_site.engine.edit(seeded.names["port"], text="Changed by somebody else")
    own_page.get_by_text("Edit", exact=True).click()
    own_page.get_by_role("textbox", name="Text").fill("Mine")
    own_page.get_by_role("button", name="Save").click()
    expect(own_page.get_by_role("heading", level=1)).to_contain_text("Conflict")
    assert own_site.engine.get(seeded.names["port"]).text == "Changed by somebody else"
    assert all("409" in trouble for trouble in troubles)
    troubles.clear()


@pytest.mark.parametrize("scripts", [True, False])
def test_forgetting_asks_first_and_then_it_is_gone(
    browser: Browser, own_site: Site, seeded: Seeded, troubles: Troubles, scripts: bool
) -> None:
    id = seeded.names["redis"]
    with opened(browser, own_site.url, troubles, java_script_enabled=scripts) as page:
        page.goto(seeded.path("/ui/record?id={redis}"))
        page.get_by_role("link", name=re.compile("^Forget")).click()
        page.get_by_label(re.compile("^Type")).fill("yes")
        page.get_by_role("button", name="Delete it for good").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("Unprocessable")
        assert own_site.engine.get(id), "the wrong word forgets nothing"
        troubles.clear()
        page.goto(seeded.path("/ui/forget?id={redis}"))
        page.get_by_label(re.compile("^Type")).fill("forget")
        page.get_by_role("button", name="Delete it for good").click()
        page.wait_for_url(re.compile("/ui/memory"))
    with pytest.raises(NotFound):
        own_site.engine.get(id)
