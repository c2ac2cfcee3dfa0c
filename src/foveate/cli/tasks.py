"""`foveate task`: plan tasks, claim them, and record how they ended."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import click

from foveate.cli.call import STDIN, Call, Function, Verb, VerbGroup, pass_call, read_text, say
from foveate.cli.options import collect, complete_tasks, flag_of
from foveate.cli.render import cut, pairs, print_lines, supports_utf8, table, text_line, width
from foveate.clock import iso
from foveate.errors import InputError, NotFound
from foveate.operations import documents
from foveate.options import ContextOptions, Outcome, TaskFields, TaskStatus

if TYPE_CHECKING:
    from foveate.engine import Engine
    from foveate.tasks.handoff import ParsedHandoff
    from foveate.tasks.learn import Learned
    from foveate.tasks.task import Task

# What a task is made of is imported in functions: it takes as long to import as the rest of `foveate task --help`.

CURRENT = "current"
"""Names the task of the scope, or else the goal on top of the stack of its agent and session."""

NAME_WIDTH = 40
"""Columns of a name in a list: the rest of the line is for ids."""

FILE = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=str)
"""A file that is read, or stdin."""

RAW = "raw"
"""How a handoff was read if no field of it could be read."""

EXIT_UNREADABLE = 2
EXIT_NO_TASK = 3

PUSHED_FIELDS = {"objective"}
"""Fields of a task that is pushed onto the stack."""


def task_values(fields: TaskFields) -> TaskFields:
    """Return the fields that were named. An empty text clears a list; `-` as the objective reads stdin."""
    values: dict[str, Any] = dict(fields)
    for name, value in fields.items():
        values[name] = tuple(filter(None, value)) if isinstance(value, tuple) else value
    if "objective" in values:
        values["objective"] = read_text(values["objective"])
    if values.get("parent") == "":
        values["parent"] = None
    return cast(TaskFields, values)


def task_argument(*, required: bool = True) -> Callable[[Function], Function]:
    """Return TASK as an argument: an id, a key or `current`. Its name differs from that of the option `--task`."""
    return click.argument("ref", metavar="TASK" if required else "[TASK]", required=required, shell_complete=complete_tasks)


@click.group(cls=VerbGroup)
def task() -> None:
    """Plan tasks, claim them, and record how they ended.

    A task is named by its id, its key, or `current`: the one of --task, or else the goal on top of the stack. Each agent and
    session has a stack of its own.
    """


# --- plan ----------------------------------------------------------------------------------------------------------


@task.command("add", cls=Verb, scoped=True, authored=True)
@click.argument("name")
@click.option("--key", help="Name of your own by which the task is found again; adding it again changes nothing.")
@collect("fields", TaskFields)
@click.option("--push", is_flag=True, help="Start it as a part of the current task, and make it the current one.")
@pass_call
def add(call: Call, name: str, key: str | None, push: bool, fields: TaskFields) -> None:
    """Add a task and print its id.

    `foveate task add "Add login" --acceptance-criteria "A wrong password gives 401" --depends-on user-model`. As the
    objective, `-` reads stdin. A task that is pushed has a name and an objective only.
    """
    given = task_values(fields)
    if push:
        _refuse_with_push([*given, *(["key"] if key else [])])
    with call.open() as engine:
        if push:
            objective = given.get("objective")
            added = engine.tasks.push(objective or name, name=name if objective else "")
        else:
            added = engine.tasks.add(name, key=key, **given)
    call.say_agent_trust()
    if call.as_json:
        call.print_json({"id": added.id, "action": added.action, "task": documents.task(added)})
        return
    click.echo(added.id)
    if added.action == "unchanged":
        say(f"the key {key!r} is in use already; nothing was changed.")


def _refuse_with_push(names: Iterable[str]) -> None:
    flags = [flag_of(name) for name in names if name not in PUSHED_FIELDS]
    if flags:
        raise click.UsageError(
            f"--push takes a name and an objective only. Leave out {', '.join(flags)}, or edit the task later"
        )


@task.command("list", cls=Verb, scoped=True)
@click.option("--status", metavar="STATUS", help="Only open, active, blocked, completed or failed tasks.")
@click.option("--ready", is_flag=True, help="Only open tasks that wait for no other.")
@click.option("--parent", metavar="TASK", shell_complete=complete_tasks, help="Only the parts of this task.")
@click.option("--claimed", is_flag=True, help="List the active claims, oldest first; --agent and --task select some.")
@pass_call
def list_(call: Call, status: TaskStatus | None, ready: bool, parent: str | None, claimed: bool) -> None:
    """List tasks in the order in which they were added.

    `foveate task list --ready` lists those that can be started now, `foveate task list --claimed` who works on what.
    """
    if claimed:
        if status or ready or parent:
            raise click.UsageError("--claimed takes none of --status, --ready and --parent.")
        _list_claims(call)
        return
    with call.open() as engine:
        found = engine.tasks.list(status=status, ready=ready, parent=parent)
        keys = _keys(engine, {id for each in found for id in each.depends_on})
    if call.as_json:
        call.print_json({"tasks": [documents.task(each) for each in found]})
        return
    if not found:
        say("no task matches." if status or ready or parent else "there are no tasks yet. `foveate task add NAME` adds one.")
        return

    def names(ids: Iterable[str]) -> str:
        return ", ".join(keys[id] for id in ids)

    heads = ("id", "key", "status", "name", "depends on", "waiting for")
    rows = [
        (
            each.id,
            each.record.key or "",
            each.status,
            cut(each.name, NAME_WIDTH),
            names(each.depends_on),
            names(each.waiting_for),
        )
        for each in found
    ]
    print_lines(table(heads, rows, left=len(heads), style="cyan"))


def _list_claims(call: Call) -> None:
    with call.open() as engine:
        claims = engine.tasks.claims(agent=call.agent, task=call.task)
    if call.as_json:
        call.print_json({"claims": [documents.claim(claim) for claim in claims]})
        return
    if not claims:
        say("no task is claimed.")
        return
    rows = [(claim.agent, claim.task.id, iso(claim.since), iso(claim.expires), str(claim.tokens)) for claim in claims]
    print_lines(table(("agent", "task", "since", "until", "tokens"), rows, left=4))


def _keys(engine: Engine, ids: Iterable[str]) -> dict[str, str]:
    """Return the key of each task, or its id if it has none."""
    wanted = list(ids)
    with engine.store.data.reader() as reader:
        found = reader.get(wanted)
    return {id: (found[id].key if id in found else None) or id for id in wanted}


@task.command("show", cls=Verb, scoped=True)
@task_argument(required=False)
@click.option("--handoff", is_flag=True, help="Print its latest handoff as it was written.")
@pass_call
def show(call: Call, ref: str | None, handoff: bool) -> None:
    """Show a task: its fields, the tasks around it and its result.

    Without TASK, lists the goals on the stack, from the first to the current one.
    """
    with call.open() as engine:
        if handoff:
            _print_handoff(call, engine, ref or CURRENT)
            return
        if ref is None:
            _print_path(call, engine.tasks.path())
            return
        found = engine.tasks.get(ref)
        if call.as_json:
            call.print_json(documents.whole_task(engine, found))
            return
        latest = documents.handoff_of(engine, found)
        around, learned = documents.around_task(engine, found)
    from foveate.cli.task_text import task_lines

    print_lines(task_lines(found, around, latest, learned))


def _print_path(call: Call, path: Sequence[Task]) -> None:
    if call.as_json:
        call.print_json({"path": [documents.task(each) for each in path]})
        return
    if not path:
        say("no task is current. `foveate task add NAME --push` starts one.")
    from foveate.cli.task_text import record_lines

    print_lines(record_lines(each.record for each in path))


def _print_handoff(call: Call, engine: Engine, ref: str) -> None:
    found = engine.tasks.get(ref)
    latest = documents.handoff_of(engine, found)
    if latest is None:
        raise NotFound(f"Task {ref!r} has no handoff. `foveate task handoff {ref} FILE` stores one.")
    if call.as_json:
        call.print_json({"task": found.id, "handoff": latest})
    else:
        click.echo(latest.text, nl=not latest.text.endswith("\n"))


@task.command("edit", cls=Verb, scoped=True, authored=True)
@task_argument()
@click.option("--name", metavar="TEXT", help="Name of the task.")
@click.option("--status", metavar="open|active|blocked", help="Status; `task done` and `task fail` set the others.")
@click.option("--reason", metavar="TEXT", default="", help="Why the task is blocked; `-` reads stdin.")
@collect("fields", TaskFields)
@pass_call
def edit(call: Call, ref: str, name: str | None, status: Any, reason: str, fields: TaskFields) -> None:
    """Change the fields or the status of a task.

    `foveate task edit login --status blocked --reason "There is no test account"`. Fields that are not named stay as they
    are. A list replaces the earlier one, and an empty text clears it: --depends-on "".
    """
    with call.open() as engine:
        changed = engine.tasks.edit(ref, name=name, status=status, reason=read_text(reason), **task_values(fields))
        waiting = _keys(engine, changed.waiting_for) if status == "active" else {}
    _print_changed(call, changed)
    if waiting:
        say(f"warning: it depends on tasks that are not completed: {', '.join(waiting.values())}.")


def _print_changed(call: Call, changed: Task) -> None:
    call.print({"task": documents.task(changed)}, f"{changed.id}  {changed.status}")


# --- claim ---------------------------------------------------------------------------------------------------------


@task.command("claim", cls=Verb, scoped=True)
@task_argument(required=False)
@collect("options", ContextOptions, "budget", "profile")
@click.option(
    "--seconds", type=float, default=3600, show_default=True, help="How long the claim lasts unless it is renewed."
)
@click.option("--no-exclusive", "shared", is_flag=True, help="Let other agents claim it too.")
@pass_call
def claim(call: Call, ref: str | None, options: ContextOptions, seconds: float, shared: bool) -> int:
    """Claim a task for --agent and print the context that the agent starts with.

    `foveate task claim login --agent coder --budget 4000`. Without TASK, claims the next ready one; the exit code is 3 if
    none is ready. The task becomes active, and no other agent gets it. Claiming it again renews the claim.
    """
    if call.agent is None:
        raise click.UsageError("Name the agent that claims the task: --agent NAME")
    with call.open() as engine:
        options["agent"] = call.agent
        claimed = engine.tasks.claim(ref or call.task, exclusive=not shared, seconds=seconds, **options)
    if claimed is None:
        if call.as_json:
            call.print_json({"claim": None, "context": None})
        say("no task is ready. `foveate task list` shows what each of them waits for.")
        return EXIT_NO_TASK
    if call.as_json:
        call.print_json(documents.claim_with_context(claimed))
        return 0
    click.echo(claimed.context.text, nl=False)
    say(f"{claimed.agent} has claimed {claimed.task.id} until {iso(claimed.expires)}: {claimed.task.name}")
    if claimed.others:
        say(f"warning: also at work on this task: {', '.join(claimed.others)}.")
    for warning in claimed.context.warnings:
        say(f"warning: {warning}")
    return 0


@task.command("release", cls=Verb, scoped=True)
@task_argument(required=False)
@pass_call
def release(call: Call, ref: str | None) -> None:
    """Release the claims on a task, of --agent, or both, and print their number.

    Use it for agents that will not come back: their tasks are open again.
    """
    with call.open() as engine:
        number = engine.tasks.release(agent=call.agent, task=ref or call.task)
    call.print({"released": number}, f"{number} released")


# --- end -----------------------------------------------------------------------------------------------------------


@task.command("done", cls=Verb, scoped=True)
@task_argument(required=False)
@click.argument("result", default="")
@click.option("--outcome", metavar="OUTCOME", default="success", help="success (the default), partial or failure.")
@pass_call
def done(call: Call, ref: str | None, result: str, outcome: Outcome) -> None:
    """Complete a task, which ends every claim on it.

    `foveate task done login "POST /login answers with a token"`. RESULT is what the tasks that depend on it should know; `-`
    reads stdin. Without TASK, or with `current`, completes the current goal and goes back to the one below it on the stack.
    With --agent, it is refused if only another agent has claimed the task.
    """
    with call.open() as engine:
        if ref in (None, CURRENT) and call.task is None:
            ended = engine.tasks.pop(read_text(result), outcome=outcome)
        else:
            ended = engine.tasks.complete(ref or CURRENT, read_text(result), outcome=outcome, agent=call.agent)
    _print_changed(call, ended)


@task.command("fail", cls=Verb, scoped=True)
@task_argument()
@click.argument("reason")
@pass_call
def fail(call: Call, ref: str, reason: str) -> None:
    """Mark a task as failed, which ends every claim on it.

    `foveate task fail login "The provider has no API for it"`. REASON `-` reads stdin. The task can be claimed again.
    """
    with call.open() as engine:
        _print_changed(call, engine.tasks.fail(ref, read_text(reason), agent=call.agent))


# --- handoffs ------------------------------------------------------------------------------------------------------


@task.command("handoff", cls=Verb, scoped=True)
@task_argument(required=False)
@click.argument("file", required=False)
@click.option("--again", is_flag=True, help="Learn from it even if the task is completed and has another handoff.")
@click.option("--strict", is_flag=True, help="Refuse a handoff with any problem, also one that can be repaired.")
@click.option("--dry-run", is_flag=True, help="Only report what would be learned.")
@click.option("--template", is_flag=True, help="Print a handoff to fill in, for TASK if it is named.")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of a handoff.")
@pass_call
def handoff(
    call: Call, ref: str | None, file: str | None, again: bool, strict: bool, dry_run: bool, template: bool, schema: bool
) -> int:
    """Learn from the handoff in FILE and end its task.

    `foveate task handoff login handoff.md`; FILE `-` reads stdin. With one argument, it is the FILE, and the task is the
    current one. Prints what was learned, by kind; stderr tells how the handoff was read. The same handoff twice changes
    nothing.

    --template, --schema and, without TASK, --dry-run need no store. A dry run exits with 2 if no field could be read.
    """
    if schema or template:
        if file is not None or (schema and ref is not None) or (schema and template):
            raise click.UsageError("--template takes at most a TASK, and --schema takes no argument.")
        _print_schema(call) if schema else _print_template(call, ref)
        return 0
    if file is None:
        ref, file = None, ref
    if file is None:
        raise click.UsageError("Missing argument 'FILE'.")
    raw = _read_handoff(file)
    if dry_run and ref is None and call.task is None:
        return _print_parsed(call, raw, strict)
    with call.open() as engine:
        learned = engine.tasks.handoff(
            ref or CURRENT, raw, agent=call.agent, again=again, strict=strict and not dry_run, dry_run=dry_run
        )
    ok = learned.method != RAW and not (strict and learned.problems)
    _print_learned(call, learned, {"ok": ok} if dry_run else {})
    return EXIT_UNREADABLE if dry_run and not ok else 0


def _read_handoff(file: str) -> bytes:
    """Return a handoff as it was written. Stop reading, and raise an error, once it is too long."""
    from foveate.tasks.handoff import MAX_BYTES

    FILE.convert(file, None, click.get_current_context())
    if file == STDIN:
        name, raw = "standard input", sys.stdin.buffer.read(MAX_BYTES + 1)
    else:
        with open(file, "rb") as source:
            name, raw = repr(file), source.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise InputError(
            f"{name} has more than {MAX_BYTES:,} bytes, which is too long for a handoff. Write what the next task needs to "
            f"know, and leave logs and code in files."
        )
    return raw


def _print_learned(call: Call, learned: Learned, more: Mapping[str, Any]) -> None:
    if call.as_json:
        call.print_json({**documents.plain(learned), **more})
        return
    rows = [(kind, ", ".join(f"{n} {action}" for action, n in counts.items())) for kind, counts in learned.counts.items()]
    print_lines(pairs([("handoff", learned.handoff), ("task", f"{learned.task}  {learned.status}"), *rows]))
    if learned.action == "unchanged":
        say("this handoff was read before; nothing was changed.")
    elif learned.action == "dry run":
        say("this is a dry run; nothing was changed.")
    say(f"read as {learned.method}" if learned.problems else f"read as {learned.method}, without a problem")
    for problem in learned.problems:
        say(f"problem: {problem}")


def _print_parsed(call: Call, raw: bytes, strict: bool) -> int:
    from foveate.tasks.handoff import parse

    parsed = parse(raw)
    ok = parsed.method != RAW and not (strict and parsed.problems)
    if call.as_json:
        read_as = {"method": parsed.method, "form": parsed.form, "problems": parsed.problems}
        call.print_json({"ok": ok, **read_as, "counts": _entry_counts(parsed), "handoff": parsed.handoff})
    else:
        _print_parsed_lines(parsed)
    if parsed.method == RAW:
        say("no field of a handoff could be read; only its text would be kept.")
    elif parsed.problems and not strict:
        say("it can be read; the problems would be repaired.")
    return 0 if ok else EXIT_UNREADABLE


def _entry_counts(parsed: ParsedHandoff) -> dict[str, int]:
    """Return the number of entries in each list of a handoff."""
    return {name: len(value) for name, value in parsed.handoff.items() if isinstance(value, list | tuple)}


def _print_parsed_lines(parsed: ParsedHandoff) -> None:
    fields = [(name, parsed.handoff.get(name)) for name in ("task_id", "status", "summary", "confidence")]
    texts = [(name, cut(str(value), width() - 24)) for name, value in fields if value not in (None, "")]
    counts = [(name, str(number)) for name, number in _entry_counts(parsed).items() if number]
    rows = [("method", parsed.method), ("form", parsed.form), *texts, *counts]
    print_lines([*pairs(rows), *(text_line(f"problem: {problem}") for problem in parsed.problems)])


def _print_template(call: Call, ref: str | None) -> None:
    from foveate.tasks.handoff import template

    if ref is None:
        text = template()
    else:
        with call.open() as engine:
            found = engine.tasks.get(ref)
        text = template(found.id, name=found.name)
    call.print({"template": text}, text.rstrip("\n"))


def _print_schema(call: Call) -> None:
    from foveate.tasks.handoff import json_schema

    schema = json_schema()
    call.print({"name": "handoff", "schema": schema}, json.dumps(schema, ensure_ascii=not supports_utf8(), indent=2))


VERBS: dict[str, Any] = {"task": task}
