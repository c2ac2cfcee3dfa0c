"""`init`, `stats`, `backup`, `export`, `import`: the store as a whole."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from foveate.front.cli.calling import STDIN, Call, Verb, decoded, pass_call, say, scoped

FILE = click.Path(dir_okay=False, allow_dash=True, path_type=str)


@click.command(cls=Verb)
@click.option("--own", is_flag=True, help="Your own store, which follows you across projects, instead of the project's.")
@pass_call
def init(call: Call, own: bool) -> None:
    """Create a project's store, .foveate/.

    At the root of the repository, or in the current directory where there is none; prints where it is.
    """
    path, created = _create_own(call) if own else _create(call)
    if call.as_json:
        call.print_json({"path": str(path), "created": created})
        return
    click.echo(str(path))
    if not created:
        say("it exists already; nothing was changed.")


def _create(call: Call) -> tuple[Path, bool]:
    from foveate.opening import open_engine

    place = call.place()
    created = not place.store.exists()
    open_engine(place.root).close()
    return place.folder, created


def _create_own(call: Call) -> tuple[Path, bool]:
    from foveate.errors import StoreError
    from foveate.project import own_store
    from foveate.state.sqlite import SQLiteStore

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
    """Count what the store holds."""
    with call.open() as engine:
        found = engine.stats()
    if call.as_json:
        call.print_json(found)
        return
    from foveate.front.cli.show import pairs, print_lines, table

    rows = []
    for kind, by_status in found["records"].items():
        others = ", ".join(f"{number} {status}" for status, number in by_status.items() if status != "active")
        rows.append((kind, str(by_status.get("active", 0)), others))
    if rows:
        print_lines([*table(("kind", "active", "others"), rows), []])
    rest = [(name.replace("_", " "), str(value)) for name, value in found.items() if name != "records"]
    print_lines(pairs(rest))


@click.command(cls=Verb)
@click.argument("target", type=click.Path(dir_okay=False, path_type=Path))
@pass_call
def backup(call: Call, target: Path) -> None:
    """Copy the store to a file, while others write."""
    with call.open() as engine:
        engine.backup(target)
    size = target.stat().st_size
    if call.as_json:
        call.print_json({"path": str(target), "bytes": size})
    else:
        click.echo(f"{target}  {size} bytes")


@click.command(cls=Verb)
@click.argument("file", type=FILE, default=STDIN)
@scoped
@pass_call
def export(call: Call, file: str, **scope: Any) -> None:
    """Write records and links as lines of JSON.

    To FILE, or to stdout (`-`). What is exported is what the scope may see: name an --agent or a --user to export theirs.
    """
    with call.open(**scope) as engine, closing(_lines(engine.export())) as lines:
        if call.as_json and file == STDIN:
            import json

            found = [json.loads(line) for line in lines]
            records, links = ([e for e in found if "link" not in e], [e["link"] for e in found if "link" in e])
            call.print_json({"records": records, "links": links})
            return
        number = _write(file, lines)
    if call.as_json:
        call.print_json({"path": file, "lines": number})
    elif file != STDIN:
        say(f"{number} lines in {file}")


def _lines(lines: Iterable[str]) -> Generator[str, None, None]:
    """A generator over lines, so that it can be closed before the engine is."""
    yield from lines


def _write(file: str, lines: Iterator[str]) -> int:
    """UTF-8 whatever the terminal speaks; a file appears when it is whole."""
    number = 0
    with click.open_file(file, "wb", atomic=file != STDIN) as out:
        for number, line in enumerate(lines, 1):  # noqa: B007
            out.write(line.encode() + b"\n")
        out.flush()
    return number


@click.command("import", cls=Verb)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=str))
@scoped
@pass_call
def import_(call: Call, file: str, **scope: Any) -> None:
    """Read what `export` wrote.

    From FILE, or from stdin (`-`). Records that are here already are left as they are. A line that cannot be read stops the
    import; batches of a thousand lines before it are kept.
    """
    with call.open(**scope) as engine, click.open_file(file, "rb") as source:
        done = engine.import_(_progress(source, file))
    if call.as_json:
        call.print_json({"added": done.added, "known": done.known, "links": done.links})
    else:
        click.echo(f"{done.added} added, {done.known} known already, {done.links} links")


def _progress(source: Any, file: str) -> Iterator[str]:
    """The file's lines, with a bar on a terminal."""
    numbered = enumerate(source, 1)
    if file == STDIN or not sys.stderr.isatty():
        for number, raw in numbered:
            yield decoded(raw, f"line {number}")
        return
    with click.progressbar(length=os.path.getsize(file), label="import", file=sys.stderr) as bar:
        for number, raw in numbered:
            bar.update(len(raw))
            yield decoded(raw, f"line {number}")


VERBS = {"init": init, "stats": stats, "backup": backup, "export": export, "import": import_}
