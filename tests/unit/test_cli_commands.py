"""The tree of commands: one table of names and summaries, groups with a default action, and hints for unknown names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from cli_kit import run
from foveate.cli import cli
from foveate.cli.call import Call, Verb, VerbGroup, pass_call
from foveate.cli.commands import COMMANDS, EXAMPLES, MODULES, OTHER_WORDS, SUMMARIES
from foveate.engine import Engine
from foveate.engine.inbox import Inbox
from foveate.options import ContextOptions, RecordFields, TaskFields


def leaves(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Yield every command that does something, with its path."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        where = (*path, name)
        if not isinstance(command, click.Group) or command.invoke_without_command:
            yield " ".join(where), command
        if isinstance(command, click.Group):
            yield from leaves(command, where)


def test_the_table_holds_every_command_with_the_summary_of_its_help() -> None:
    assert {path: command.get_short_help_str(1000) for path, command in leaves(cli)} == SUMMARIES


def test_every_command_takes_the_shared_options() -> None:
    shared = {"--store", "--project", "--user", "--json"}
    for path, command in leaves(cli):
        assert shared <= {flag for param in command.params for flag in param.opts}, path


def test_plain_foveate_prints_the_commands_of_every_day_with_an_example_each() -> None:
    result = run()
    assert result.exit_code == 0
    assert set(EXAMPLES) <= set(COMMANDS["Every day"])
    for path, example in EXAMPLES.items():
        assert example.startswith(f"foveate {path}")
        assert f"  {example}\n" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_help_lists_every_command() -> None:
    lines = {tuple(line.split()) for line in run("--help").stdout.splitlines()}
    for path in SUMMARIES:
        words = tuple(path.split())
        assert any(line[: len(words)] == words for line in lines), path


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (("contxt", "x"), " Did you mean 'context'?"),
        (("serach", "x"), " Did you mean 'search'?"),
        (("task", "lst"), " Did you mean 'task list'?"),
        (("recall", "x"), " Did you mean 'context' or 'search'?"),
        (("get", "x"), " Did you mean 'show' or 'context'?"),
        (("remembr", "x"), " Did you mean 'remember'?"),
        (("list",), " Did you mean 'search' or 'task list'?"),
        (("delete", "x"), " Did you mean 'forget'?"),
        (("frobnicate",), ""),
    ],
)
def test_unknown_command_names_what_was_meant_or_nothing(args: tuple[str, ...], hint: str) -> None:
    result = run(*args)
    assert result.exit_code == 2
    assert result.stdout == ""
    word = " ".join(args[:2]) if args[0] == "task" else args[0]
    assert result.stderr.startswith(f"foveate: There is no command {word!r}.{hint} See `foveate ")
    assert result.stderr.count("\n") == 1


def test_words_of_other_programs_lead_to_commands_that_exist() -> None:
    assert not set(OTHER_WORDS) & set(MODULES)
    assert {path for paths in OTHER_WORDS.values() for path in paths} <= set(SUMMARIES)


def flags(command: click.Command) -> dict[str, click.Option]:
    """Return the options of a command by flag."""
    return {flag: param for param in command.params if isinstance(param, click.Option) for flag in param.opts}


def test_a_dry_run_the_wish_not_to_be_asked_and_a_check_have_one_flag_each() -> None:
    """`--dry-run` only reports, `--yes` does not ask, `--check` exits with 1 if something is due. Nothing else says so."""
    help_of = {(flag, path): option.help or "" for path, command in leaves(cli) for flag, option in flags(command).items()}
    others = {"--apply", "--force", "--replace", "--no-input", "--confirm", "--preview", "--what-if"}
    assert not others & {flag for flag, _ in help_of}
    for (flag, path), text in help_of.items():
        if flag == "--dry-run":
            assert re.search(r"\b(Only|none|no|not)\b", text), path
        if flag == "--yes":
            assert re.search(r"Do not ask|without ask", text), path
        if flag == "--check":
            assert re.search(r"exit with 1", text), path


def test_an_option_has_the_name_of_the_librarys_field() -> None:
    """`acceptance_criteria` is `--acceptance-criteria`. An option that repeats has the singular of its field's name."""
    commands = dict(leaves(cli))
    plurals = {"--file": "files", "--step": "steps", "--tag": "tags", "--entity": "entities", "--path": "paths"}
    for path, fields, others in (
        ("context", ContextOptions, {"filters", "overrides", "now"}),
        ("task add", TaskFields, set()),
        ("task edit", TaskFields, set()),
        ("add", RecordFields, {"summary", "micro", "valid_from", "valid_to", "data", "pinned"}),
        ("edit", RecordFields, {"summary", "micro", "valid_from", "valid_to", "data", "pinned"}),
    ):
        names = {plurals.get(flag, flag.removeprefix("--").replace("-", "_")) for flag in flags(commands[path])}
        assert fields.__annotations__.keys() - others <= names, path


def test_the_scope_of_a_call_has_four_options_and_none_is_called_scope() -> None:
    """Whose records it is about; `install --global` and `token create --allow` have words of their own."""
    for path, command in leaves(cli):
        assert "--scope" not in flags(command), path
        if isinstance(command, Verb) and command.scoped:
            assert {"--user", "--agent", "--session", "--task"} <= flags(command).keys(), path


def test_a_verb_has_one_name_on_the_command_line_and_in_python() -> None:
    same = {"context", "remember", "add", "search", "edit", "forget", "why", "undo", "link", "check", "feedback"}
    assert same <= SUMMARIES.keys()
    assert same <= set(dir(Engine))
    assert {"accept", "reject", "answer"} <= set(dir(Inbox))
    assert {"compute", "recall", "why-not", "outcome", "compact", "handoff"} & SUMMARIES.keys() == set()


def sample() -> click.Group:
    """A group that lists by default, and has a command of its own."""

    @click.group(cls=VerbGroup, invoke_without_command=True, scoped=True)
    @click.option("--limit", type=int, default=3)
    @pass_call
    def boxes(call: Call, limit: int) -> None:
        click.echo(json.dumps(["list", limit, call.agent, call.as_json]))

    @boxes.command("open", cls=Verb, scoped=True)
    @click.argument("id")
    @pass_call
    def open_(call: Call, id: str) -> None:
        click.echo(json.dumps(["open", id, call.agent, call.as_json]))

    return boxes


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ([], ["list", 3, None, False]),
        (["--limit", "5", "--agent", "ada", "--json"], ["list", 5, "ada", True]),
        (["open", "x"], ["open", "x", None, False]),
        (["--json", "open", "x", "--agent", "ada"], ["open", "x", "ada", True]),
    ],
)
def test_group_runs_its_own_function_only_without_a_command(args: list[str], expected: list[object]) -> None:
    result = CliRunner().invoke(sample(), args, obj=Call(), catch_exceptions=False)
    assert [json.loads(line) for line in result.stdout.splitlines()] == [expected]
