"""Writes docs/reference/ from the code: the command line from click, settings, exit codes and profiles from their tables.

    python docs/generate.py            write the pages
    python docs/generate.py --check    exit 1 where a page is not what would be written

What code cannot say of itself (what a setting is for) stands here, in tables that must name exactly what the code names:
a new setting without a sentence is an error, not a gap.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import click

import foveate.pipeline.profiles
from foveate import errors, types
from foveate.cli import cli
from foveate.cli.call import Verb
from foveate.cli.commands import COMMANDS
from foveate.cli.failures import EXIT_INTERRUPTED
from foveate.pipeline import profiles
from foveate.pipeline.profiles import settings
from foveate.pipeline.profiles.files import frame_files
from foveate.pipeline.sources import BUILTIN_SOURCES
from foveate.project import project
from foveate.records.kinds import KINDS, Kind
from foveate.types import Frame, Profile, Slot

PAGES = Path(__file__).parent / "reference"
SOURCE = Path(foveate.__file__).parent
NOTE = "<!-- Written by docs/generate.py from the code. Change the code, then run it again. -->"

SETTINGS = {
    "store": "The URL of a PostgreSQL database that holds the state instead of a file: `postgresql://user@host/db`. `$NAME` "
    "and `${NAME}` are taken from the environment, so that no password needs to be here; names that begin with FOVEATE_ or "
    "PG, or one variable for the whole URL. Needs `project.name`. See [teams](../guides/teams.md).",
    "profile": "The profile of a context that names none; `default` if it is not set.",
    "budget": "The total of a context that names none, in tokens; else the profile's.",
    "counter": "What counts tokens: `o200k` (the default), `cl100k`, `anthropic`, `chars4` or `bytes`.",
    "embedder": "What turns text into vectors; none by default, and search is then by words alone.",
    "summarizer": "The model that `foveate store maintain` asks for summaries: `openai:MODEL@URL` or `anthropic:MODEL`.",
    "user": "Whose state it is where `--user` is not given.",
    "multi_valued": "Attributes (`attribute` or `subject.attribute`) that hold several values: none supersedes another.",
    "own_store": "Whether your own store is read with the project's; `true` where it is not set.",
    "lifecycle": "When records pass from one stage to the next: a table of thresholds, such as `lifecycle.core_at = 3`.",
    "retention": "How long receipts and events are kept: `receipt_days` (30), `receipt_mb` (64), `event_days` and `events` "
    "(how many; unless one is set, all are kept). What is pinned, linked or of a task that is not done stays.",
    "debug_context": "Whether every context is explained on stderr, as `--debug` does; `false` where it is not set.",
    "domains": 'A table of domains with their words, such as `domains.billing = ["invoice", "refund"]`. Words are added to '
    "those that ship; an empty list switches a domain off.",
    "code": "What is looked at of the project's files: `enabled` (unless set, where there is a repository, a manifest or an "
    "index), `include` and `exclude` (patterns as in .gitignore; `exclude` wins) and `max_files`.",
    "project": "What the project is, where its files do not say it or say it wrong: `name`, `language`, `framework`, "
    "`test_framework`. In a shared store, `name` is the project's name there.",
}
VARIABLES = {
    "FOVEATE_STORE": "What `--store` is where it is not given: a project's directory, or the URL of a shared store.",
    "FOVEATE_PROJECT": "The project's name in a shared store, where `--project` is not given.",
    "FOVEATE_AGENT": "The coding agent that runs the command line; what it adds has trust `agent`. "
    "`foveate install claude` sets it; agents set CLAUDECODE, CODEX_THREAD_ID, CURSOR_AGENT or GEMINI_CLI instead.",
    "FOVEATE_ACCEPTED": "Folders of projects, parted as in PATH, whose store is yours although git tracks it.",
    "FOVEATE_OWN_STORE": "The file of your own store, instead of the one in the user's data directory.",
    "FOVEATE_DEBUG_CONTEXT": "`true`: every computed context is explained on stderr.",
    "FOVEATE_EMBED_URL": "The address of an embedding server with OpenAI's interface.",
    "FOVEATE_EMBED_KEY": "The key for that server.",
    "CLAUDE_CONFIG_DIR": "Where Claude Code keeps your settings, for `foveate install claude --global`.",
    "CODEX_HOME": "Where Codex keeps your settings, for `foveate install codex --global`.",
    "FOVEATE_SUMMARIZE_KEY": "The key for the server that `summarizer` names.",
    "NO_COLOR": "Set to anything: no colours.",
    "FORCE_COLOR": "Set to anything but 0: colours even where stdout is no terminal. NO_COLOR beats it.",
    "TERM": "`dumb`: no colours.",
    "XDG_CONFIG_HOME": "Where git looks for your own rules of what to ignore, instead of `~/.config`.",
}
PROFILE = {
    "name": "What the profile is called; else its file's name.",
    "description": "One line for `foveate profile`, which lists the profiles.",
    "extends": 'The profile beneath; `default` if it is not set, nothing where it is `""`.',
    "total": "Tokens that the model may receive where the call names no budget.",
    "reserve": "Tokens of the total that stay free for the answer.",
    "weights": "How much each feature counts in a score; see below.",
    "max_file_chars": "Of a longer file, the parts that matter are shown even where there is room for all of it.",
    "slots": "The parts of the prompt; see below.",
    "complexity": "Tables by name that change the profile for an easy, normal or complex task.",
    "input": "Tables by name that change the profile for a `short` or a `complex` question.",
}
SLOT = {
    "source": f"Whom to ask: {', '.join(f'`{source.name}`' for source in BUILTIN_SOURCES)}, or a source of your own.",
    "kinds": "Which kinds of records; none means any.",
    "heading": "The line above the items.",
    "tokens": "A fixed room. Either this or `share`.",
    "times": "Multiplies the room, `tokens` or `share`, that a layer beneath gave.",
    "share": "A part of what fixed slots and the reserve leave, in proportion to the other shares.",
    "max_items": "At most this many items.",
    "min_score": "Nothing below this score, whatever room is left.",
    "keep": "Filled first and never evicted.",
    "stable": "Depends on scope and profile only, and stands before all that depends on the question.",
    "role": "Which message it is in: `system` (the default of a stable slot) or `user`.",
    "order": "Where it stands among its like; lower is earlier.",
    "optional": "Set only where a layer beneath has this slot.",
    "remove": "Takes out a slot that a layer beneath has.",
}


FRAME = {
    "title": "What it is called.",
    "description": "What the model reads about it.",
}


class Gap(Exception):
    """The tables above and the code do not name the same things."""


def told(what: str, named: Iterable[str], meanings: Mapping[str, str]) -> dict[str, str]:
    """The meaning of each name; every name must have one, and no other."""
    names = list(named)
    missing, stale = set(names) - set(meanings), set(meanings) - set(names)
    if missing or stale:
        raise Gap(f"docs/generate.py: {what}: without a meaning {sorted(missing)}, no longer in the code {sorted(stale)}")
    return {name: meanings[name] for name in names}


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def code(text: object) -> str:
    return f"`{text}`" if str(text) else ""


# --- command line --------------------------------------------------------------------------------------------------

SHARED = ("store", "user", "as_json")
SCOPE = ("agent", "session", "task")
"""Told once, for all commands."""


def cli_page() -> str:
    parts = [
        NOTE,
        "# Command line",
        "Data goes to stdout; hints, warnings and progress go to stderr. [Exit codes](config.md#exit-codes) are documented. "
        "A context is named by its id, or `last`.",
        "These options stand before or after any command:",
        options([param for param in cli.params if param.name in SHARED]),
        "Commands on records and contexts take a scope: whose records may be seen, and whose a new one is.",
        options([option for option in scope_options() if option.name in SCOPE]),
    ]
    context = click.Context(cli, info_name="foveate")
    for title, commands in COMMANDS.items():
        parts.append(f"## {title}")
        for path in commands:
            parts += list(command_parts(command_at(context, path), path))
    return "\n\n".join(parts) + "\n"


def command_at(context: click.Context, path: str) -> click.Command:
    """Return the command that `foveate PATH` runs."""
    command: click.Command = cli
    for word in path.split():
        assert isinstance(command, click.Group)
        found = command.get_command(context, word)
        assert found is not None
        command = found
    return command


def command_parts(command: click.Command, path: str) -> Iterator[str]:
    arguments = " ".join(argument(param) for param in command.params if isinstance(param, click.Argument))
    yield f"### foveate {path}"
    yield f"```text\nfoveate {path} {arguments}".rstrip() + "\n```"
    # click prints a paragraph after a backspace as it is; here it becomes a block
    yield re.sub(r"\x08\n(.+?)(?=\n\n|\Z)", r"```text\n\1\n```", inspect.cleandoc(command.help or ""), flags=re.DOTALL)
    own = [param for param in command.params if isinstance(param, click.Option) and param.expose_value]
    if isinstance(command, Verb) and command.scoped:
        yield "Takes a scope."
    if own:
        yield options(own)


def scope_options() -> list[click.Option]:
    """Return the options that a scoped command takes besides its own, in order."""
    return [param for param in Verb("example", scoped=True).params if isinstance(param, click.Option)]


def argument(param: click.Argument) -> str:
    choices = param.type.choices if isinstance(param.type, click.Choice) else ()
    name = param.metavar or "|".join(map(str, choices)) or (param.name or "").upper()
    return name if param.required or name.startswith("[") else f"[{name}]"


def options(params: Iterable[click.Parameter]) -> str:
    rows = []
    for param in params:
        assert isinstance(param, click.Option)
        shown = ", ".join(param.opts) + ("" if param.is_flag else f" {value_of(param)}")
        default = f" Default: {param.default}." if param.show_default else ""
        rows.append((code(shown), (param.help or "") + default))
    return table(("Option", "Meaning"), rows)


def value_of(option: click.Option) -> str:
    if isinstance(option.type, click.Choice):
        return "|".join(map(str, option.type.choices))
    named = {"integer": "N", "integer range": "N", "float": "X"}
    return option.metavar or named.get(option.type.name, (option.name or "").rstrip("s").upper())


# --- settings, variables, exit codes -------------------------------------------------------------------------------


def config_page() -> str:
    meanings = told("settings", project.SETTING_TYPES, SETTINGS)
    rows = [(code(name), sort.__name__, meanings[name]) for name, sort in project.SETTING_TYPES.items()]
    variables = told("variables", sorted(variables_read()), VARIABLES)
    return (
        "\n\n".join(
            [
                NOTE,
                "# Configuration",
                "Everything works without configuration. A project's settings are in `.foveate/config.toml`:",
                '```toml\nprofile = "coding"\nbudget = 4000\n```',
                table(("Setting", "Type", "Meaning"), rows),
                "Profiles of your own are files in `.foveate/profiles/` and in the `profiles` directory of the user's "
                "configuration; see [profiles](profiles.md). `.foveate/allow` lists, a line each, strings that look like "
                "secrets and are none.",
                "## Environment variables",
                table(("Variable", "Meaning"), [(code(name), meaning) for name, meaning in variables.items()]),
                "## Exit codes",
                "The code is the error's own. With `--json`, the error is a document on stdout too: `type`, `message` and, "
                "where they apply, `problems` (one sentence each) and `short` (tokens).",
                table(("Code", "Error", "Means"), exit_rows()),
            ]
        )
        + "\n"
    )


def variables_read() -> set[str]:
    """The environment variables that the source reads, by name or by a constant of the same module."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        text = path.read_text("utf-8")
        found |= set(re.findall(r"environ(?:\.get\(|\[)\s*[\"'](\w+)[\"']", text))
        for name in re.findall(r"environ(?:\.get\(|\[)\s*([A-Z_]+)", text):
            found |= set(re.findall(rf"^{name} = [\"'](\w+)[\"']", text, re.MULTILINE))
    return found


def exit_rows() -> list[tuple[str, str, str]]:
    rows = [("0", "", "Done."), ("2", "`UsageError`", "The command line itself is not understood.")]
    rows += [(str(EXIT_INTERRUPTED), "", "Interrupted by Ctrl-C, or the answer to a question was no.")]
    todo: list[type[errors.FoveateError]] = [errors.FoveateError]
    while todo:
        error = todo.pop(0)
        rows.append((str(error.exit_code), code(error.__name__), (inspect.getdoc(error) or "").splitlines()[0]))
        todo += sorted(
            (sub for sub in error.__subclasses__() if sub.__module__ == errors.__name__), key=lambda e: e.__name__
        )
    return sorted(rows, key=lambda row: int(row[0]))


# --- profiles ------------------------------------------------------------------------------------------------------


def profiles_page() -> str:
    parts = [
        NOTE,
        "# Profiles",
        "A profile is a TOML file. It needs only what differs from the one that it extends. `foveate profile NAME` "
        "prints any of them in full, with the layer that set each value, or its problems; `foveate profile` lists them. "
        "[What profiles are for](../concepts/profiles.md) is another page.",
        "## Settings of a profile",
        settings_table(settings.PROFILE_SETTINGS, Profile, PROFILE),
        "## Settings of a slot",
        settings_table(settings.SLOT_SETTINGS, Slot, SLOT),
        "## Settings of a frame",
        "Under `[frames.NAME]` in `frames.toml`; see [frames](../concepts/frames.md).",
        settings_table(settings.FRAME_SETTINGS, Frame, FRAME),
        "## Features",
        "A score is the sum of features times `weights`. Each feature is from 0 to 1, higher is better.",
        table(("Feature", "Says"), [(code(name), f"{meaning[0].upper()}{meaning[1:]}.") for name, meaning in features()]),
        "`fields` gives weights to the parts of a record that lexical search tells apart: "
        + ", ".join(map(code, settings.FIELDS))
        + ".",
        "## Shipped profiles",
    ]
    for info in profiles.list_profiles():
        parts += list(profile_parts(info))
    parts += list(variant_parts())
    return "\n\n".join(parts) + "\n"


def settings_table(named: Mapping[str, settings.Setting], owner: type, meanings: Mapping[str, str]) -> str:
    known = dict(meanings) | {name: text for name, text in field_docs(owner).items() if name in named}
    all_told = told(owner.__name__.lower(), named, known)
    defaults = {name: value.default for name, value in owner.__dataclass_fields__.items()}
    rows = [
        (code(name), setting.description, default_of(defaults.get(name)), all_told[name]) for name, setting in named.items()
    ]
    return table(("Setting", "Holds", "Default", "Meaning"), rows)


def default_of(value: object) -> str:
    if value in (None, "", ()) or not isinstance(value, str | int | float):
        return ""
    return code(str(value).lower() if isinstance(value, bool) else value)


def field_docs(owner: type) -> dict[str, str]:
    """The sentence under a dataclass field, where there is one."""
    tree = ast.parse(inspect.getsource(types))
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == owner.__name__)
    docs = {}
    for field, text in pairwise(body):
        is_text = isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and is_text:
            docs[field.target.id] = _without_reference(str(text.value.value))  # type: ignore[attr-defined]
    return docs


def _without_reference(text: str) -> str:
    """A sentence on one line, without the name of the document that asked for it."""
    return re.sub(r" \(\d{3}: [^)]*\)", "", " ".join(text.split()))


def features() -> list[tuple[str, str]]:
    """The features and the comment beside each."""
    source = inspect.getsource(settings)
    found = dict(re.findall(r'^    "(\w+)",  # (.+)$', source, re.MULTILINE))
    return list(told("features", profiles.FEATURES, {name: found[name] for name in profiles.FEATURES}).items())


def profile_parts(info: profiles.ProfileInfo) -> Iterator[str]:
    yield f"### {info.name}"
    found = profiles.resolve(info.name)
    about = f"{info.description}." + (f" Extends `{info.extends}`." if info.extends else "")
    yield f"{about} Written for {found.total} tokens, {found.reserve} of them in reserve."
    yield table(("Slot", "Heading", "Asks", "Kinds", "Room", "Length", "Limits", "Marks"), map(slot_row, found.slots))


def slot_table(rows: Iterable[tuple[str, str]]) -> str:
    return table(("Slot", "Sets"), rows)


def variant_parts() -> Iterator[str]:
    """Show the tables that change a profile: complexities, frames and inputs."""
    default, assistant = profiles.load(profiles.DEFAULT), profiles.load("assistant")
    yield "## Complexities, frames and inputs"
    yield "They change slots that the profile has. A complexity applies to every profile, an input to `assistant`."
    frames = {name: table for _, tables in frame_files(()) for name, table in tables.items()}
    for title, tables in (("complexity", default["complexity"]), ("frames", frames), ("input", assistant["input"])):
        for name, table in tables.items():
            yield f"### {title}.{name}"
            for trigger, texts in table.get("triggers", {}).items():
                yield f"`{trigger}`: {', '.join(texts)}."
            rows = [
                (code(slot), ", ".join(f"{k} = {v}" for k, v in own.items())) for slot, own in table.get("slots", {}).items()
            ]
            rows += [("", f"flexible_share = {table['flexible_share']}")] if "flexible_share" in table else []
            yield slot_table(rows)


def slot_row(slot: Slot) -> tuple[str, ...]:
    room = f"{slot.tokens} tokens" if slot.tokens is not None else f"share {slot.share:g}"
    length = slot.level if slot.level == slot.max_level else f"{slot.level} to {slot.max_level}"
    limits = [f"{slot.max_items} items"] if slot.max_items is not None else []
    limits += [f"score {slot.min_score:g}"] if slot.min_score else []
    marks = [name for name in ("keep", "stable", "pinned_only") if getattr(slot, name)]
    asks = ", ".join(map(code, slot.sources))
    cells = (slot.heading, asks, ", ".join(slot.kinds), room, length, ", ".join(limits), ", ".join(marks))
    return (code(slot.name), *cells)


# --- writing -------------------------------------------------------------------------------------------------------


ARCHITECTURE = Path(__file__).parents[1] / "ARCHITECTURE.md"
STATE = Path(__file__).parent / "concepts" / "state.md"
SOURCE = Path(__file__).parents[1] / "src" / "foveate"


def architecture_page() -> str:
    """Return ARCHITECTURE.md with the picture of the imports between folders as they are."""
    edges = "\n".join(f"    {source} --> {target}" for source, target in folder_imports())
    return _between(ARCHITECTURE, "imports", f"```mermaid\nflowchart TD\n{edges}\n```")


def state_page() -> str:
    """Return the page about records with a table of the kinds that people and programs can add."""
    kinds = [kind for kind in KINDS.values() if not (kind.is_internal or kind.is_derived)]
    rows = [(f"`{kind.name}`", _fields(kind), kind.description + ("; a rule" if kind.is_rule else "")) for kind in kinds]
    return _between(STATE, "kinds", table(("Kind", "Fields of `data`", "Its records"), rows))


def _fields(kind: Kind) -> str:
    names = [f"`{name}`" + (f" ({', '.join(rule.choices)})" if rule.choices else "") for name, rule in kind.fields.items()]
    return ", ".join(names + ["any other"] * kind.allow_extra) or "–"


def _between(page: Path, mark: str, text: str) -> str:
    """Return a page with another text between the marks `<!-- mark -->` and `<!-- /mark -->`."""
    before, _, rest = page.read_text("utf-8").partition(f"<!-- {mark} -->")
    _, _, after = rest.partition(f"<!-- /{mark} -->")
    return f"{before}<!-- {mark} -->\n{text}\n<!-- /{mark} -->{after}"


def folder_imports() -> list[tuple[str, str]]:
    """Return which folder imports which, without those that an import over another folder implies."""
    folders = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").is_file()}
    direct: dict[str, set[str]] = {folder: set() for folder in sorted(folders)}
    for path in SOURCE.rglob("*.py"):
        folder = path.relative_to(SOURCE).parts[0]
        if folder in folders:
            found = re.findall(r"(?:from|import) foveate\.(\w+)", path.read_text("utf-8"))
            direct[folder] |= {target for target in found if target in folders and target != folder}

    def reached(folder: str) -> set[str]:
        return direct[folder].union(*(reached(target) for target in direct[folder]))

    return [
        (folder, target)
        for folder, targets in direct.items()
        for target in sorted(targets)
        if not any(target in reached(other) for other in targets - {target})
    ]


def pages() -> dict[Path, str]:
    """Every page and what it should say."""
    return {
        PAGES / "cli.md": cli_page(),
        PAGES / "config.md": config_page(),
        PAGES / "profiles.md": profiles_page(),
        ARCHITECTURE: architecture_page(),
        STATE: state_page(),
    }


def stale() -> list[str]:
    """The pages that are not what would be written."""
    return [p.name for p, text in pages().items() if not p.is_file() or p.read_text("utf-8") != text]


def main(args: Sequence[str]) -> int:
    if "--check" in args:
        found = stale()
        for name in found:
            print(f"docs/reference/{name} is stale: run python docs/generate.py", file=sys.stderr)
        return 1 if found else 0
    PAGES.mkdir(exist_ok=True)
    for path, text in pages().items():
        path.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
