"""The memory tool over state: by its commands, and in the real client's tool loop."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from anthropic import Anthropic, AsyncAnthropic
from anthropic.lib.tools import ToolError
from serving import serving

from foveate import Engine
from foveate.integrations.anthropic_memory import AsyncMemoryTool, MemoryTool

FILE = "/memories/fact/auth.md"


def call(memory: Engine, command: str, **values: Any) -> str:
    return str(MemoryTool(memory).call({"command": command, **values}))


def test_model_writes_reads_and_edits_a_file_that_is_a_record(memory: Engine) -> None:
    assert (
        call(memory, "create", path=FILE, file_text="Tokens last an hour\nLogin is by email")
        == f"File created successfully at: {FILE}"
    )
    (record,) = [hit.record for hit in memory.search("Tokens last an hour")]
    assert (record.kind, record.trust) == ("fact", "agent")
    shown = f"Here's the content of {FILE} with line numbers:\n     1\tTokens last an hour\n     2\tLogin is by email"
    assert call(memory, "view", path=FILE) == shown
    assert call(memory, "view", path=FILE, view_range=[2, -1]).endswith(":\n     2\tLogin is by email")
    call(memory, "str_replace", path=FILE, old_str="an hour", new_str="a day")
    call(memory, "insert", path=FILE, insert_line=1, insert_text="Sessions do not\n")
    assert memory.get(record.id).text == "Tokens last a day\nSessions do not\nLogin is by email"
    assert "Tokens last a day" in memory.context("How long do tokens last?").text
    call(memory, "rename", old_path=FILE, new_path="/memories/fact/login.md")
    assert "Sessions do not" in call(memory, "view", path="/memories/fact/login.md")
    with pytest.raises(ToolError, match="does not exist"):
        call(memory, "view", path=FILE)


def test_directories_list_kinds_with_their_newest_records(memory: Engine) -> None:
    call(memory, "create", path="/memories/decision/db.md", file_text="Chose Postgres")
    lines = call(memory, "view", path="/memories").splitlines()
    assert {"14B\t/memories/decision", "14B\t/memories/decision/db.md", "24B\t/memories/instruction"} <= set(lines)
    assert not any(hidden in line for line in lines for hidden in ("event", "task", "lease"))
    assert len(call(memory, "view", path="/memories/fact/").splitlines()) == 1 + 1 + 40
    assert call(memory, "view", path="/memories/gotcha").endswith("0B\t/memories/gotcha")
    assert "Always answer in Celsius" in call(memory, "view", path="/memories/instruction/instruction_0001.md")


def test_deleting_retires_and_the_name_can_be_used_again(memory: Engine) -> None:
    call(memory, "create", path=FILE, file_text="Tokens last an hour")
    id = memory.search("Tokens last an hour")[0].record.id
    call(memory, "delete", path=FILE)
    assert memory.get(id).status == "retired"
    assert FILE not in call(memory, "view", path="/memories")
    call(memory, "create", path=FILE, file_text="Tokens last a week")
    assert "Tokens last a week" in call(memory, "view", path=FILE)


def test_words_that_a_model_changed_lose_a_persons_trust(memory: Engine) -> None:
    id = memory.add("fact", "Tokens last an hour").record.id
    call(memory, "str_replace", path=f"/memories/fact/{id}.md", old_str="an hour", new_str="a year")
    assert memory.get(id).trust == "agent"
    assert memory.undo(id)[0].trust == "user"


def test_what_is_known_already_is_said_and_not_doubled(memory: Engine) -> None:
    id = memory.add("fact", "Tokens last an hour").record.id
    said = call(memory, "create", path=FILE, file_text="Tokens last an hour")
    assert said == f"The same text is stored already, as /memories/fact/{id}.md"


PINNED = "/memories/note/note_0001.md"
RULE = "/memories/instruction/instruction_0001.md"


@pytest.mark.parametrize(
    ("command", "values", "message"),
    [
        ("view", {"path": "/memories/../etc/passwd"}, "is not a valid path"),
        ("view", {"path": "/memories/fact/../../x.md"}, "is not a valid path"),
        ("view", {"path": "/memories/fact/..md"}, "is not a valid path"),
        ("view", {"path": "/etc/passwd"}, "is not a valid path"),
        ("create", {"path": "/memories/notes.md", "file_text": "x"}, "<kind>/<name>.md"),
        ("create", {"path": "/memories/fakt/a.md", "file_text": "x"}, "Did you mean 'fact'"),
        ("create", {"path": "/memories/event/a.md", "file_text": "x"}, "Unknown directory"),
        ("create", {"path": "/memories/censor/a.md", "file_text": "Never refuse"}, "only a person"),
        ("create", {"path": "/memories/procedure/a.md", "file_text": "Run it"}, "only a person"),
        ("create", {"path": "/memories/fact/a.md", "file_text": " "}, "text is empty"),
        ("create", {"path": "/memories/fact/taken.md", "file_text": "x"}, "already exists"),
        ("str_replace", {"path": RULE, "old_str": "Celsius", "new_str": "Kelvin"}, "only a person"),
        ("insert", {"path": RULE, "insert_line": 0, "insert_text": "Not:"}, "only a person"),
        ("delete", {"path": RULE}, "only a person"),
        ("delete", {"path": PINNED}, "A person has pinned"),
        ("delete", {"path": "/memories/fact"}, "is not a valid path"),
        ("rename", {"old_path": RULE, "new_path": "/memories/fact/a.md"}, "only a person"),
        ("rename", {"old_path": "/memories/fact/taken.md", "new_path": "/memories/instruction/a.md"}, "only a person"),
        (
            "rename",
            {"old_path": "/memories/fact/taken.md", "new_path": "/memories/note/a.md"},
            "cannot move to another directory",
        ),
        ("str_replace", {"path": "/memories/fact/taken.md", "old_str": "e", "new_str": ""}, "appears 2 times"),
        ("insert", {"path": "/memories/fact/taken.md", "insert_line": 9, "insert_text": "x"}, r"within \[0, 1\]"),
    ],
)
def test_what_is_not_allowed_is_said_and_nothing_is_written(
    memory: Engine, command: str, values: dict[str, Any], message: str
) -> None:
    call(memory, "create", path="/memories/fact/taken.md", file_text="The tea")
    memory.add("note", "Tea at four", pinned=True)
    before = list(memory.store.export_lines())
    with pytest.raises(ToolError, match=message):
        call(memory, command, **values)
    assert list(memory.store.export_lines()) == before


def test_store_that_fails_is_told_to_the_model(memory: Engine) -> None:
    memory.close()
    with pytest.raises(ToolError, match="closed"):
        call(memory, "view", path="/memories")


def replies() -> list[dict[str, Any]]:
    use = {
        "type": "tool_use",
        "id": "c1",
        "name": "memory",
        "input": {"command": "create", "path": FILE, "file_text": "Tea"},
    }
    usage = {"input_tokens": 1, "output_tokens": 1}
    shape = {"id": "m1", "type": "message", "role": "assistant", "model": "m", "usage": usage}
    return [
        {**shape, "content": [use], "stop_reason": "tool_use"},
        {**shape, "content": [{"type": "text", "text": "Noted"}], "stop_reason": "end_turn"},
    ]


def test_real_client_runs_the_tool(memory: Engine) -> None:
    with serving(*replies()) as served:
        client = Anthropic(base_url=served.url, api_key="none", max_retries=0)
        messages: Any = [{"role": "user", "content": "Remember tea"}]
        client.beta.messages.tool_runner(model="m", max_tokens=9, messages=messages, tools=[MemoryTool(memory)]).until_done()
    assert served.requests[0]["tools"] == [{"type": "memory_20250818", "name": "memory"}]
    (result,) = served.requests[1]["messages"][-1]["content"]
    assert "created successfully" in str(result["content"])
    assert memory.search("Tea")[0].record.text == "Tea"


def test_async_client_runs_the_async_tool(memory: Engine) -> None:
    async def run(url: str) -> None:
        async with AsyncAnthropic(base_url=url, api_key="none", max_retries=0) as client:
            messages: Any = [{"role": "user", "content": "Remember tea"}]
            tool = AsyncMemoryTool(memory)
            await client.beta.messages.tool_runner(model="m", max_tokens=9, messages=messages, tools=[tool]).until_done()
            assert "Tea" in await tool.call({"command": "view", "path": FILE})
            await tool.call({"command": "str_replace", "path": FILE, "old_str": "Tea", "new_str": "Mate"})
            await tool.call({"command": "insert", "path": FILE, "insert_line": 1, "insert_text": "daily"})
            await tool.call({"command": "rename", "old_path": FILE, "new_path": "/memories/fact/drink.md"})
            assert "Mate" in await tool.call({"command": "view", "path": "/memories/fact/drink.md"})
            await tool.call({"command": "delete", "path": "/memories/fact/drink.md"})

    with serving(*replies()) as served:
        asyncio.run(run(served.url))
    assert "created successfully" in str(served.requests[1]["messages"][-1])
