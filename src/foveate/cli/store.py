"""`init`, `stats`, `backup`, `export`: the store as a whole."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foveate.cli.call import STDIN, Call, Verb, pass_call, say, scoped
from foveate.errors import InputError
from foveate.project.locate import CONFIG_FILE
from foveate.types import Scope

if TYPE_CHECKING:
    from foveate.project.project import Place
    from foveate.receipts.metrics import Metric

FILE = click.Path(dir_okay=False, allow_dash=True, path_type=str)
AGENTS_MD = "agents-md"
SQLITE = b"SQLite format 3"
"""How a database begins, a store or another program's."""
RECORD = '{"id":'
"""How an exported line begins that is a record, and neither history nor a link."""


@click.command(cls=Verb)
@click.option("--own", is_flag=True, help="Your own store, which follows you across projects, instead of the project's.")
@pass_call
def init(call: Call, own: bool) -> None:
    """Create a project's store, .foveate/.

    At the root of the repository, or in the current directory where there is none; prints where it is. With the URL of a
    PostgreSQL database, `--store URL --project NAME`, the state is there, and .foveate/config.toml says so from then on.
    """
    if not own and call.place().shared is not None:
        _share(call)
        return
    path, created = _create_own(call) if own else _create(call)
    if call.as_json:
        call.print_json({"path": str(path), "created": created})
        return
    click.echo(str(path))
    if not created:
        say("it exists already; nothing was changed.")


def _create(call: Call) -> tuple[Path, bool]:
    from foveate import factory

    place = call.place()
    created = not place.store.exists()
    factory.open(place.root, project=call.project).close()
    return place.folder, created


def _share(call: Call) -> None:
    """Put a project's state into a shared database: its tables where there are none yet, then a line in the settings."""
    from foveate import factory
    from foveate.project import project
    from foveate.store.database_url import mask_passwords

    place = call.place()
    if place.store.exists():
        raise InputError(
            f"{str(place.store)!r} holds this project's state. Take it along with `foveate copy`, or move it away."
        )
    name = call.project_name()
    text = _told_to_share(call, place, name)
    factory.open(place.root, store=call.url, project=name, code=False).close()
    project.create(place)
    if text is not None:
        (place.folder / CONFIG_FILE).write_text(text, "utf-8")
    where = mask_passwords(place.shared or "")
    if call.as_json:
        call.print_json({"path": str(place.folder), "store": where, "project": name, "configured": text is not None})
        return
    click.echo(f"{where}  project {name}")


def _told_to_share(call: Call, place: Place, name: str) -> str | None:
    """config.toml with the lines that say so; None where it does already, or the environment does."""
    from foveate.store.database_url import has_password

    held = place.settings.get("project", {})
    if call.url in (None, os.environ.get("FOVEATE_STORE")) or (place.settings.get("store"), held.get("name")) == (
        call.url,
        name,
    ):
        return None
    config = place.folder / CONFIG_FILE
    if "store" in place.settings or held:
        raise InputError(f"{str(config)!r} has `store` or [project] already. Write there yourself what you want to change.")
    if has_password(call.url or ""):
        raise InputError(
            f"The URL holds a password, and {str(config)!r} is no place for one. Write $FOVEATE_PASSWORD instead of it, in "
            "single quotes, and set that variable; or keep it in ~/.pgpass."
        )
    before = config.read_text("utf-8") if config.exists() else ""
    store, project = (json.dumps(text, ensure_ascii=False) for text in (call.url, name))
    return f"store = {store}\n{before}\n[project]\nname = {project}\n"


def _create_own(call: Call) -> tuple[Path, bool]:
    from foveate.errors import StoreError
    from foveate.project.project import own_store
    from foveate.store.sqlite.store import SQLiteStore

    path = own_store()
    created = not path.exists()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{str(path.parent)!r} cannot be created: {error.strerror}.") from None
    if created:
        SQLiteStore(path, counter=call.place().settings.get("counter", "o200k")).close()
    return path, created


@click.command(cls=Verb)
@pass_call
def stats(call: Call) -> None:
    """Count what the store holds, and measure how well contexts serve.

    Each metric stands with its target: relevance of what was shown, use of the budget, refreshes a turn, the share of shown
    items that answers used (`foveate feedback`), time to build a context, growth, confirmed facts.
    """
    with call.open() as engine:
        found = engine.store.stats()
    if call.as_json:
        from foveate.operations.json import stats as to_json

        call.print_json(to_json(found))
        return
    from foveate.cli.render import pairs, print_lines, table

    rows = []
    for kind, by_status in found.records.items():
        others = ", ".join(f"{number} {status}" for status, number in by_status.items() if status != "active")
        rows.append((kind, str(by_status.get("active", 0)), others))
    if rows:
        print_lines([*table(("kind", "active", "others"), rows), []])
    counts = ("project", "revision", "links", "history", "receipts", "receipt_bytes", "vectors")
    rest = [(name.replace("_", " "), str(getattr(found, name))) for name in counts]
    rest.append(("claims", f"{found.claims.active} active of {found.claims.claimed}"))
    print_lines([*pairs(rest), []])
    print_lines(table(("metric", "value", "target", ""), [_metric_row(*pair) for pair in found.metrics.items()], left=4))


def _metric_row(name: str, metric: Metric) -> tuple[str, str, str, str]:
    value = "-" if metric.value is None else f"{metric.value:g}"
    few = f"{metric.measured} measured, too few" if metric.target != "monitored" and metric.measured else ""
    verdict = {True: "holds", False: "missed", None: few}[metric.holds]
    return (name.replace("_", " "), value, metric.target, verdict)


@click.command(cls=Verb)
@click.argument("target", type=click.Path(dir_okay=False, path_type=Path))
@pass_call
def backup(call: Call, target: Path) -> None:
    """Copy the store to a file, while others write."""
    from contextlib import closing

    from foveate.store.open import open_store

    with closing(open_store(call.existing(), create=False)) as store:
        store.backup(target)
    size = target.stat().st_size
    if call.as_json:
        call.print_json({"path": str(target), "bytes": size})
    else:
        click.echo(f"{target}  {size} bytes")


@click.command(cls=Verb)
@click.argument("file", type=FILE, default=STDIN)
@click.argument("target", type=FILE, required=False)
@click.option("--force", is_flag=True, help="Overwrite FILE where it exists; never a database.")
@click.option("--check", is_flag=True, help="With agents-md: write nothing, and exit with 1 where the block is stale.")
@scoped
@pass_call
def export(call: Call, file: str, target: str | None, force: bool, check: bool, **scope: Any) -> None:
    """Write records and links as lines of JSON.

    To FILE, or to stdout (`-`). What is exported is what the scope may see, and stderr says how much is not: name an --agent
    or a --user to export theirs.

    `foveate export agents-md [TARGET]` is another thing: rules, ways of doing things and gotchas of the project as a block
    of at most 60 lines in AGENTS.md, or in TARGET; the rest of that file stays as it is.
    """
    if file == AGENTS_MD:
        from foveate.cli import agents_md

        agents_md.export_agents_md(call, target or agents_md.FILE, check=check)
        return
    if target is not None or check:
        raise click.UsageError("TARGET and --check belong to `foveate export agents-md`.")
    if file != STDIN:
        _refuse_to_overwrite(file, call.place().store, force)
    from foveate.engine.engine import view_of

    with call.open(**scope) as engine:
        whole = view_of(engine, Scope(engine.scope.project)).store.stats()
        held = sum(number for by_status in whole.records.values() for number in by_status.values())
        with closing(_lines(engine.store.export_lines())) as lines:
            if call.as_json and file == STDIN:
                found = [json.loads(line) for line in lines]
                links = [entry["link"] for entry in found if "link" in entry]
                history = [entry["history"] for entry in found if "history" in entry]
                records = [entry for entry in found if "id" in entry]
                call.print_json({"records": records, "history": history, "links": links})
                written = len(records)
            else:
                number, written = _write(file, lines)
    if call.as_json and file != STDIN:
        call.print_json({"path": file, "lines": number})
    elif file != STDIN:
        say(f"{number} lines in {file}")
    if held > written:
        say(f"{held - written} records of other users, agents or sessions were not exported.")


def _refuse_to_overwrite(file: str, store: Path, force: bool) -> None:
    """An existing file only where that is wished, and never a store or another database."""
    from foveate.project.project import own_store

    target = os.path.realpath(file)
    for path in (store, own_store()):
        if target in {os.path.realpath(f"{path}{log}") for log in ("", "-wal", "-shm")}:
            raise InputError(f"{file!r} belongs to a store; export to another file. Nothing was written.")
    if not os.path.lexists(target) or _is_stream(target):
        return
    if os.path.isfile(target):
        with open(target, "rb") as existing:
            if existing.read(len(SQLITE)) == SQLITE:
                raise InputError(f"{file!r} is an SQLite database; export to another file. Nothing was written.")
    if not force:
        raise InputError(f"{file!r} exists already. Pass --force to overwrite it; nothing was written.")


def _is_stream(path: str) -> bool:
    """A pipe or a device: nothing in it is overwritten, and nothing can be put in its place."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)


def _lines(lines: Iterable[str]) -> Generator[str, None, None]:
    """A generator over lines, so that it can be closed before the engine is."""
    yield from lines


def _write(file: str, lines: Iterator[str]) -> tuple[int, int]:
    """How many lines, and how many of them records. UTF-8 whatever the terminal speaks; a file appears when it is whole."""
    if file == STDIN:
        with click.open_file(file, "wb") as out:
            return _copy(lines, out)
    target = os.path.realpath(file)
    part = target if _is_stream(target) else f"{target}.{os.getpid()}.part"
    try:
        with open(part, "wb") as out:
            done = _copy(lines, out)
        if part != target:
            if os.path.exists(target):
                os.chmod(part, stat.S_IMODE(os.stat(target).st_mode))
            os.replace(part, target)
    except BaseException as error:
        if part != target:
            with suppress(OSError):
                os.unlink(part)
        if isinstance(error, OSError) and error.errno is not None:
            raise OSError(error.errno, error.strerror, file) from None
        raise
    return done


def _copy(lines: Iterator[str], out: Any) -> tuple[int, int]:
    number = records = 0
    for number, line in enumerate(lines, 1):  # noqa: B007
        records += line.startswith(RECORD)
        out.write(line.encode() + b"\n")
    out.flush()
    return number, records


VERBS = {"init": init, "stats": stats, "backup": backup, "export": export}
