"""`foveate doctor` and `foveate stats`: what is wrong with a store, and how well it serves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foveate.cli.call import Call, Verb, pass_call, say
from foveate.cli.render import Line, pairs, print_lines, table, text_line, title
from foveate.errors import Damaged, InputError, StoreError
from foveate.operations.documents import plain
from foveate.project.tracked_by_git import ACCEPTED_ENV_VAR
from foveate.text.sanitize import strip_invisible

if TYPE_CHECKING:
    from foveate.code.model import Exclusion
    from foveate.engine import Engine
    from foveate.receipts.metrics import Metric
    from foveate.store.sql.queries import SchemaStatus
    from foveate.tasks.claims import ClaimStats

MAX_SKIPPED = 20
"""Skipped files that are printed; `--json` lists all."""


@click.command(cls=Verb, authored=True)
@click.option("--fix", is_flag=True, help="Migrate the store, rebuild its indexes, save what a damaged file still holds.")
@click.option(
    "--accept",
    "accepted",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Obey a file in .foveate/ that git tracks, as it is now. Repeatable.",
)
@click.option("--yes", is_flag=True, help="Accept without asking.")
@pass_call
def doctor(call: Call, fix: bool, accepted: Sequence[Path], yes: bool) -> None:
    """Check the store, indexes, settings, profiles, database roles and hooks.

    Files in .foveate/ that came with the repository are ignored until a person accepts them: --accept shows a file and asks.
    When it changes, it must be accepted again.

    Also lists the files that the code index skips. The exit code is 1 if something is wrong; each problem says what to do.
    """
    if accepted:
        _accept(call, accepted, yes)
        return
    schema = _schema_status(call)
    if schema is not None and not fix and not schema.is_current and 0 < schema.version <= schema.latest_version:
        _print_result(call, {"path": schema.label, "schema": schema.version}, [], [_migration_warning(schema)])
        return
    from foveate.server.doctor import check_environment

    engine, lost = _open(call, fix)
    with engine:
        facts, problems = _check_store(engine.store.data.store, fix)
        if fix and engine.store.data.embedder is not None:
            for step in engine.store.maintain(only=["vectors"]):
                say(step.error or f"{step.number:,} records given a vector.")
        readable = not problems
        if engine.store.data.personal is not None:
            personal_facts, personal_problems = _check_store(engine.store.data.personal, fix)
            problems += [f"Your personal store: {problem}" for problem in personal_problems]
            facts["personal store"] = personal_facts.get("path", "")
        found = check_environment(engine, call.place(), call.store or Path(), readable=readable)
        skipped = _skipped_files(engine)
    facts |= found.facts
    problems += [*lost, *found.problems]
    _print_result(call, facts, problems, found.warnings, skipped)
    if problems:
        raise click.exceptions.Exit(1)


def _accept(call: Call, files: Sequence[Path], yes: bool) -> None:
    """Show files in `.foveate/` and obey them from now on, as they are."""
    from foveate.project.trusted_files import accept, is_database

    if call.is_agent():
        raise InputError(f"Only a person can accept a file that came with a repository, and {call.agent_reason()}.")
    folder = call.place().folder
    for file in files:
        if folder.absolute() not in file.absolute().parents:
            raise InputError(f"{str(file)!r} is not in {str(folder)!r}. Only files there need to be accepted.")
        if is_database(str(file)):
            raise InputError(
                f"{str(file)!r} is a database, which changes with each write. To trust it, set {ACCEPTED_ENV_VAR} to "
                f"{str(folder.parent)!r}."
            )
        try:
            content = file.read_bytes()
        except OSError as error:
            raise InputError(f"{str(file)!r} cannot be read: {error.strerror}.") from None
        click.echo(strip_invisible(content.decode("utf-8", "replace")), err=True)
        if yes or click.confirm(f"Obey {str(file)!r} as it is now?", err=True):
            accept(str(file.absolute()), content)
            say(f"{str(file)!r} is accepted.")


def _schema_status(call: Call) -> SchemaStatus | None:
    """Return the schema status of the store, or None if it cannot be read: opening the store then tells why."""
    from foveate.store.open import read_schema_status

    where = call.existing()
    with suppress(StoreError, OSError):
        return read_schema_status(where)
    return None


def _migration_warning(schema: SchemaStatus) -> str:
    """Tell what opening the store would do. It is not opened, because a check should change nothing."""
    if not schema.pending_migrations:
        return "The index was made by another version. The next command that opens the store indexes all records again."
    return (
        f"The store has schema {schema.version}, and this foveate {schema.latest_version}. The next command that opens the "
        f"store migrates it ({', '.join(schema.pending_migrations)}), `foveate doctor --fix` does it now. Programs of an "
        "older foveate that have it open then stop: restart them."
    )


def _skipped_files(engine: Engine) -> list[Exclusion]:
    if not engine.code.available or not engine.code.workspace.is_indexed:
        return []
    with engine.code.workspace.index.open_reader() as reader:
        return list(reader.exclusions())


def _open(call: Call, fix: bool) -> tuple[Engine, list[str]]:
    """Return the engine, and what was lost. With `fix`, a file that is too damaged to be opened is salvaged first."""
    salvaged: dict[str, list[str]] = {}
    while True:
        try:
            return call.open(), [problem for problems in salvaged.values() for problem in problems]
        except Damaged as error:
            path = str(getattr(error, "path", None) or call.place().store_file)
            if not fix or path in salvaged:
                raise
            from foveate.store.sqlite.store import SQLiteStore

            salvaged[path] = _report_salvage(path, SQLiteStore.salvage_file(path))


def _report_salvage(path: str, number: int) -> list[str]:
    """Tell how many records were saved, and return a problem if there were none."""
    say(
        f"{number} records of {path!r} were copied into a new file. The damaged one is kept as {path + '.damaged'!r}, where "
        "forgotten words may still be readable: delete it when you have all that you need."
    )
    return [] if number else [f"Nothing of {path!r} could be read, and the new file is empty. Restore a backup."]


def _check_store(store: Any, fix: bool) -> tuple[dict[str, Any], list[str]]:
    """Return the facts and problems of a store, after it was repaired if `fix` says so."""
    facts, problems, damaged = _health(store)
    lost: list[str] = []
    if fix and problems:
        if damaged:
            lost = _report_salvage(store.path, store.salvage())
        else:
            say(f"{store.rebuild()} records indexed again.")
        facts, problems, _ = _health(store)
    return facts, [*problems, *lost]


def _health(store: Any) -> tuple[dict[str, Any], list[str], bool]:
    try:
        found = store.health()
    except Damaged as error:
        return {"path": store.path}, [str(error)], True
    return dict(found.facts), list(found.problems), found.is_damaged


def _print_result(
    call: Call,
    facts: Mapping[str, Any],
    problems: Iterable[str],
    warnings: Iterable[str],
    skipped: Iterable[Exclusion] = (),
) -> None:
    problems, warnings, skipped = list(problems), list(warnings), list(skipped)
    if call.as_json:
        files = [{"path": file.path, "reason": file.reason} for file in skipped]
        call.print_json({"ok": not problems, "facts": facts, "problems": problems, "warnings": warnings, "skipped": files})
        return
    lines: list[Line] = pairs((name.replace("_", " "), value) for name, value in facts.items())
    if skipped:
        lines += [[], title("skipped files")]
        lines += [[(file.path, "cyan"), (f"  {file.reason}", "")] for file in skipped[:MAX_SKIPPED]]
        if len(skipped) > MAX_SKIPPED:
            lines.append(text_line(f"and {len(skipped) - MAX_SKIPPED:,} more; --json lists all"))
        lines.append([])
    lines += [[("problem  ", "red"), (problem, "")] for problem in problems]
    lines += [[("warning  ", "yellow"), (warning, "")] for warning in warnings]
    if not problems:
        lines.append([("ok", "green")])
    print_lines(lines)


# --- stats ---------------------------------------------------------------------------------------------------------


@click.command(cls=Verb)
@pass_call
def stats(call: Call) -> None:
    """Count records and claims, and measure how well contexts serve.

    Each metric is printed with its target: relevance of what was shown, use of the budget, refreshes per turn, the share of
    shown items that answers used (`foveate feedback`), time to build a context, growth, confirmed facts.
    """
    with call.open() as engine:
        found = engine.store.stats()
    if call.as_json:
        call.print_json(plain(found))
        return
    rows = [_kind_row(kind, by_status) for kind, by_status in found.records.items()]
    if rows:
        print_lines([*table(("kind", "active", "others"), rows), []])
    counts = ("project", "revision", "links", "history", "receipts", "receipt_bytes", "vectors")
    figures = [(name.replace("_", " "), getattr(found, name)) for name in counts]
    print_lines([*pairs([*figures, ("claims", _claims(found.claims))]), []])
    print_lines(table(("metric", "value", "target", ""), [_metric_row(*pair) for pair in found.metrics.items()], left=4))


def _kind_row(kind: str, by_status: Mapping[str, int]) -> tuple[str, str, str]:
    others = ", ".join(f"{number} {status}" for status, number in by_status.items() if status != "active")
    return kind, str(by_status.get("active", 0)), others


def _claims(found: ClaimStats) -> str:
    """Return `2 active (coder 1, critic 1), 3 completed, 1 expired`; empty if there were none."""
    agents = ", ".join(f"{name} {number}" for name, number in found.by_agent.items())
    counts = [(f"active ({agents})" if agents else "active", found.active)]
    counts += [(name, getattr(found, name)) for name in ("completed", "failed", "blocked", "released", "expired")]
    return ", ".join(f"{number} {name}" for name, number in counts if number)


def _metric_row(name: str, metric: Metric) -> tuple[str, str, str, str]:
    value = "-" if metric.value is None else f"{metric.value:g}"
    few = f"{metric.measured} measured, too few" if metric.target != "monitored" and metric.measured else ""
    verdict = {True: "holds", False: "missed", None: few}[metric.holds]
    return (name.replace("_", " "), value, metric.target, verdict)


VERBS = {"doctor": doctor, "stats": stats}
