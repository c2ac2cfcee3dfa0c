"""Everything that the command line does is reachable over HTTP, or there is a reason why it is not."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

import foveate
from foveate.cli import cli
from foveate.server.http import create_app

REACHED = {
    "context": "POST /v1/contexts",
    "why": "GET /v1/contexts/{id}/why/{item}",
    "why-not": "GET /v1/contexts/{id}/why-not/{item}",
    "diff": "GET /v1/contexts/diff",
    "replay": "POST /v1/contexts/{id}/replay",
    "expand": "POST /v1/expand/{id}",
    "feedback": "POST /v1/contexts/{id}/feedback",
    "add": "POST /v1/records",
    "edit": "PATCH /v1/records/{id}",
    "outcome": "POST /v1/records/{id}/outcome",
    "confirm": "POST /v1/records/{id}/confirm",
    "pin": "POST /v1/records/{id}/pin",
    "promote": "POST /v1/records/{id}/promote",
    "retire": "POST /v1/records/{id}/retire",
    "undo": "POST /v1/records/{id}/undo",
    "forget": "DELETE /v1/records/{id}",
    "show": "GET /v1/records/{id}",
    "search": "POST /v1/search",
    "relate": "POST /v1/entities/relations",
    "entities list": "GET /v1/entities",
    "entities propose": "POST /v1/entities/proposals",
    "check": "POST /v1/check",
    "false-alarm": "POST /v1/records/{id}/false-alarm",
    "index": "POST /v1/code/index",
    "map": "POST /v1/code/map",
    "docs": "GET /v1/code/docs",
    "task add": "POST /v1/tasks",
    "task list": "GET /v1/tasks",
    "task show": "GET /v1/tasks/{id}",
    "task start": "POST /v1/tasks/{id}/start",
    "task block": "POST /v1/tasks/{id}/block",
    "task fail": "POST /v1/tasks/{id}/fail",
    "task complete": "POST /v1/tasks/{id}/complete",
    "task depend": "POST /v1/tasks/{id}/depend",
    "task answer": "POST /v1/questions/{id}/answer",
    "handoff template": "GET /v1/handoffs/template",
    "handoff validate": "POST /v1/handoffs/validate",
    "handoff ingest": "POST /v1/handoffs",
    "handoff show": "GET /v1/handoffs/{id}",
    "schema": "GET /v1/schemas/{name}",
    "stack push": "POST /v1/stack",
    "stack pop": "POST /v1/stack/pop",
    "stack peek": "GET /v1/stack",
    "stack path": "GET /v1/stack",
    "agent compile": "POST /v1/agents/{name}/compile",
    "agent prepare": "POST /v1/agents/{name}/prepare",
    "agent complete": "POST /v1/agents/{name}/complete",
    "agent fail": "POST /v1/agents/{name}/fail",
    "agent list": "GET /v1/agents",
    "agent clear": "POST /v1/agents/clear",
    "agent stats": "GET /v1/agents/stats",
    "stats": "GET /v1/stats",
    "gc": "POST /v1/gc",
    "backup": "GET /v1/backup",
    "export": "GET /v1/export",
    "import": "POST /v1/import",
    "profile list": "GET /v1/profiles",
    "profile show": "GET /v1/profiles/{name}",
    "profile check": "GET /v1/profiles/{name}/check",
}

NOT_REACHED = {
    "init": "a service has its store",
    "restore": "it puts a file of this machine in the place of the store that the service serves",
    "copy": "it reaches files and databases with the rights of whoever runs it",
    "migrate": "opening does it, and a service has its store open",
    "doctor": "it mends files, which is for whoever has them; GET /v1/health says what is wrong",
    "embed": "a running service does it by itself, in the background",
    "compact": "it has a language model write, with the key of whoever runs it",
    "completion": "it is for a shell",
    "eval": "it measures for hours, with data of its own",
    "serve": "it is the service",
    "token": "whoever has a token must not make others",
    "role": "it changes what the service itself may see, which is for the owner of the store",
    "mcp": "it is a front end of its own, mounted at /mcp",
    "hook": "it is what calls POST /v1/hooks/{host}",
    "install": "it writes the settings of programs on this machine",
    "uninstall": "it writes the settings of programs on this machine",
    "ui": "it opens a browser on this machine",
}


def verbs(group: click.Group = cli, before: str = "") -> Iterator[str]:
    with click.Context(group) as context:
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            if isinstance(command, click.Group) and name not in NOT_REACHED:
                yield from verbs(command, f"{before}{name} ")
            else:
                yield f"{before}{name}"


def test_every_verb_has_an_endpoint_or_a_reason() -> None:
    assert [verb for verb in verbs() if verb not in REACHED and verb not in NOT_REACHED] == []


@pytest.mark.parametrize("endpoint", sorted(set(REACHED.values())))
def test_the_endpoint_of_a_verb_is_there(endpoint: str) -> None:
    method, path = endpoint.split()
    with foveate.open(":memory:") as engine:
        paths = create_app(engine).openapi()["paths"]
    assert method.lower() in paths[path]
