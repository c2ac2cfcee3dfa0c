"""What a person does in the inspector: try, compare, edit, forget, keep."""

from __future__ import annotations

import json
import re
import tomllib

import pytest
from browser_kit import Site, Troubles, axe, opened
from playwright.sync_api import Browser, Page, expect

from foveate import NotFound
from inspector_store import Seeded


def test_what_if_follows_as_it_is_changed_and_nothing_is_kept(own_page: Page, own_site: Site, seeded: Seeded) -> None:
    before = own_site.engine.stats()["receipts"]
    own_page.goto(seeded.path("/ui/what-if?context={context}"))
    result, budget = own_page.locator("#result"), own_page.get_by_label("budget, tokens")
    expect(result.locator(".prompt")).to_be_visible()
    tokens = set()
    for number in ("3000", "900"):
        budget.fill(number)
        expect(result).to_contain_text(f"of {int(number):,} tokens")
        tokens.add(result.locator(".prompt").inner_text())
        assert f"budget={number}" in own_page.url, "what is shown can be linked to"
    assert len(tokens) == 2, "the prompt follows the budget"
    own_page.get_by_text("Weights", exact=True).click()
    own_page.get_by_label("recency").first.press("End")
    own_page.wait_for_url(re.compile("weight.recency="))
    axe(own_page)
    own_page.reload()
    expect(own_page.get_by_label("budget, tokens")).to_have_value("900")
    budget.fill("20")
    expect(result).to_contain_text(re.compile("too (small|few)|short|at least", re.IGNORECASE))
    own_site.engine.save()
    assert own_site.engine.stats()["receipts"] == before


def test_what_was_tried_is_kept_as_a_profile_and_as_a_case(own_page: Page, own_site: Site, seeded: Seeded) -> None:
    own_page.goto(seeded.path("/ui/what-if?context={context}&budget=1500&weight.recency=0.4"))
    form = own_page.get_by_role("form", name="Keep as a profile")
    form.get_by_role("textbox", name="name").fill("leaner")
    form.get_by_role("button", name="Keep the profile").click()
    own_page.wait_for_url(re.compile("profile=leaner"))
    root = own_site.engine.root
    assert root is not None
    kept = tomllib.loads((root / ".foveate" / "profiles" / "leaner.toml").read_text("utf-8"))
    assert kept["weights"] == {"recency": 0.4}
    case = own_page.get_by_role("form", name="Keep as a case")
    case.get_by_role("checkbox", name=re.compile("^Wanted")).first.check()
    case.get_by_role("button").click()
    expect(own_page.get_by_role("status").first).to_contain_text("case")
    (line,) = (root / ".foveate" / "cases.jsonl").read_text("utf-8").splitlines()
    assert len(json.loads(line)["wanted"]) == 1


def test_two_contexts_are_chosen_and_compared(page: Page, seeded: Seeded) -> None:
    page.goto("/ui/contexts")
    rows = page.locator("tr[data-row]")
    rows.nth(3).get_by_role("radio").first.check()
    page.get_by_role("button", name="Compare the two chosen").click()
    page.wait_for_url(re.compile(r"/ui/diff\?(?=.*from=ctx_\w+)(?=.*to=ctx_\w+)"))
    expect(page.get_by_role("heading", name="Shared beginning")).to_be_visible()
    document = page.evaluate("fetch(location.href.replace('/diff?', '/diff.json?')).then(a => a.json())")
    for group in ("added", "withdrawn"):
        heading = page.get_by_role("heading", name=re.compile(rf"^{group}", re.IGNORECASE))
        expect(heading).to_contain_text(str(len(document["compared"][group])))


def test_a_record_is_edited_and_the_history_says_so(own_page: Page, own_site: Site, seeded: Seeded) -> None:
    id = seeded.names["port"]
    own_page.goto(seeded.path("/ui/record?id={port}"))
    own_page.get_by_text("Edit", exact=True).click()
    own_page.get_by_role("textbox", name="Text").fill("The checkout server uses port 9443 <b>now</b>")
    own_page.get_by_role("button", name="Save").click()
    expect(own_page.get_by_role("status").first).to_be_visible()
    assert own_site.engine.get(id).text == "The checkout server uses port 9443 <b>now</b>"
    expect(own_page.get_by_role("heading", level=1)).to_contain_text("<b>now</b>")
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
        page.get_by_role("button", name="Forget it for good").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("Unprocessable")
        assert own_site.engine.get(id), "the wrong word forgets nothing"
        troubles.clear()
        page.goto(seeded.path("/ui/forget?id={redis}"))
        page.get_by_label(re.compile("^Type")).fill("forget")
        page.get_by_role("button", name="Forget it for good").click()
        page.wait_for_url(re.compile("/ui/records"))
    with pytest.raises(NotFound):
        own_site.engine.get(id)
