"""Instructions and planned actions: what violates which, and what does not."""

from __future__ import annotations

import time

import pytest

from foveate.records.instructions import violated_words
from worlds import open_engine

VIOLATED = [
    ("Deploys only Tuesday to Thursday", "Deploy on Friday"),
    ("Deploys only Tuesday to Thursday", "deploy the shop on Friday afternoon"),
    ("Deploys only Tuesday to Thursday.", "Deploying 2.4 to production on Monday morning"),
    ("Deploys only Tuesday to Thursday", "deploy on 2026-11-20"),
    ("Deploy only on weekdays", "We deploy on Saturday"),
    ("Only deploy on Tuesdays and Thursdays", "Deploy on Wednesday"),
    ("Deployments happen only Mon-Thu", "deploy on Friday"),
    ("We release only between 9:00 and 16:00", "Release at 17:30"),
    ("We release only between 9 am and 4 pm", "Release at 6pm"),
    ("We release only between 9 and 16:00", "Release at 8:15"),
    ("Never deploy on Fridays", "Deploy the API on Friday"),
    ("No deploys on Fridays", "deploy friday night"),
    ("Do not deploy after 16:00", "deploy at 16:30"),
    ("No meetings before 10 am", "Meeting at 9:30"),
    ("No deploys from Friday to Sunday", "deploy on Saturday"),
    ("Deploys must not happen on weekends", "deploy on Sunday"),
    ("Deploys only Tuesday to Thursday, and never after 16:00", "Deploy on Wednesday at 18:00"),
    ("Deploys only Tuesday to Thursday, never on Friday", "Deploy on Friday"),
    ("Deploys on Tuesdays only", "Deploy on Wednesday"),
    ("Deploy only Tuesday to Thursday between 10:00 and 15:00", "Deploy Tuesday at 17:00"),
    ("Never push to main", "push the branch to main"),
    ("Do not email customers", "email all customers about the outage"),
    ("No force pushes", "force push the branch"),
    ("Please never use tabs", "use tabs for indentation"),
    ("Always run the tests before a release", "release without running the tests"),
    ("Always run the migrations", "Skip running the migrations this time"),
    ("Answer in English, never in German", "Answer the ticket in German"),
    ("Deploy on weekdays only", "Deploy on Sunday"),
]
ALLOWED = [
    ("Deploys only Tuesday to Thursday", "Deploy on Wednesday"),
    ("Deploys only Tuesday to Thursday", "Deploy now"),
    ("Deploys only Tuesday to Thursday", "Lunch on Friday"),
    ("Deploys only Tuesday to Thursday", "Move the Friday deploy to Tuesday"),
    ("Deploys only Tuesday to Thursday", "Deploy on Tuesday, not on Friday"),
    ("Deploys only Tuesday to Thursday", "Write the deploy guide"),
    ("Deploys only Tuesday to Thursday", "deploy on 2026-11-19"),
    ("Only admins deploy on Fridays", "An admin deploys on Monday"),
    ("Deploy only on weekdays", "deploy on Friday"),
    ("We release only between 9:00 and 16:00", "Release at 9:00"),
    ("We release only between 9:00 and 16:00", "Release version 17"),
    ("We release only between 9:00 and 16:00", "Release 2 artifacts"),
    ("Never deploy on Fridays", "Deploy on Thursday"),
    ("Never deploy on Fridays", "Deploy"),
    ("Never deploy on Fridays without approval", "Deploy on Friday with approval"),
    ("Do not deploy after 16:00", "deploy at 15:00"),
    ("No deploys from Friday to Sunday", "deploy on Monday"),
    ("Never push to main", "Do not push to main"),
    ("Never push to main", "open a pull request against main"),
    ("Never push to main without review", "push to main after review"),
    ("Always run the tests before a release", "Run the tests, then release"),
    ("Always run the tests before a release", "Release notes without typos"),
    ("Always answer in British English", "Answer in German"),
    ("Answer in English, not in German", "Answer in German and English"),
    ("Prices are always shown with tax", "Show prices"),
    ("No more than three retries", "use retries"),
    ("The standup is on Monday", "Hold the standup on Friday"),
    ("Invoices are sent on Fridays", "Send invoices on Monday"),
    ("Use only PostgreSQL", "Use SQLite"),
    ("Never promise a date for area 3, name the ticket instead", "Name the ticket for area 3"),
    ("Deploys never on Friday", "The deploy failed on Thursday"),
    ("Nobody likes it if we deploy on Friday", "Deploy on Friday"),
    ("If the sun shines, deploys are not an issue", "Deploy on Sunday"),
    ("Deploys only Tuesday to Thursday", "Deploys between Tuesday and Thursday were fine, says the report"),
    ("Deploys only Tuesday to Thursday", "Deploy by Friday"),
    ("Deploys only Tuesday to Thursday", "Explain the deploy of last Friday"),
    ("Deploys only Tuesday to Thursday", "Review Friday's deploy"),
    ("Deploys only Tuesday to Thursday", "Fix the Friday deploy"),
]


@pytest.mark.parametrize(("instruction", "action"), VIOLATED)
def test_an_action_that_an_instruction_rules_out_is_found(instruction: str, action: str) -> None:
    words = violated_words(instruction, action)
    assert words
    assert words in action


@pytest.mark.parametrize(("instruction", "action"), ALLOWED)
def test_nothing_else_is_called_a_violation(instruction: str, action: str) -> None:
    assert violated_words(instruction, action) == ""


@pytest.mark.parametrize("part", ["on the ", "friday and ", "12:30 ", "not ", "monday to ", "9 to ", " "])
def test_a_long_text_takes_time_in_proportion_to_its_length(part: str) -> None:
    def cpu_seconds(times: int) -> float:
        began = time.process_time()
        violated_words("Deploys only Tuesday to Thursday", part * times)
        return time.process_time() - began

    assert cpu_seconds(8_000) < 40 * max(cpu_seconds(1_000), 0.002)


def test_check_names_the_instruction_as_a_warning_and_does_not_count_it() -> None:
    with open_engine() as engine:
        rule = engine.add("instruction", "Deploys only Tuesday to Thursday").record
        block = engine.add("censor", "Deploying on Fridays", data={"action": "block"}).record
        found = engine.check("Deploy the shop on Friday")
        assert [(match.censor.id, match.action) for match in found] == [(block.id, "block"), (rule.id, "warn")]
        assert found[1].censor.text == "Deploys only Tuesday to Thursday"
        assert engine.get(rule.id).uses == 0
        assert engine.check("Deploy the shop on Tuesday") == []
        engine.edit(rule.id, status="retired")
        assert [match.censor.id for match in engine.check("Deploy the shop on Friday")] == [block.id]


def test_check_sees_the_instructions_of_its_scope_only() -> None:
    with open_engine() as engine:
        engine.add("instruction", "Never push to main", user="ana")
        assert engine.check("push to main") == []
        assert len(engine.scoped(user="ana").check("push to main")) == 1
