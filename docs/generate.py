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
    "profile": "Profile of a context that names none. Defaults to `default`.",
    "budget": "Budget in tokens of a context that names none. Defaults to the total of its profile.",
    "counter": "Token counter: `o200k` (the default), `cl100k`, `anthropic`, `chars4` or `bytes`.",
    "embedder": "Model of vectors: `builtin`, or `PROVIDER:MODEL`. Without one, the default, search works by words alone.",
    "summarizer": "Model that `foveate store maintain` asks for summaries: `openai:MODEL@URL` or `anthropic:MODEL`.",
    "user": "User if `--user` is not given.",
    "multi_valued": "Attributes (`attribute` or `subject.attribute`) with several values that do not supersede each other.",
    "personal_store": "Whether your personal store is read together with the project's. Defaults to `true`.",
    "lifecycle": "Thresholds at which records pass from one stage to the next, such as `lifecycle.core_at = 3`.",
    "retention": "How long receipts and events are kept: `receipt_days` (30), `receipt_mb` (64), `event_days` and `events` "
    "(a number). All events are kept unless one of the last two is set. Events that are pinned, linked or belong to an "
    "unfinished task are always kept.",
    "debug_context": "Whether every context is explained on stderr. Defaults to `false`.",
    "domains": 'A table of domains with their words, such as `domains.billing = ["invoice", "refund"]`. They are added to '
    "the built-in words; an empty list switches a domain off.",
    "code": "Which of the project's files are indexed: `enabled` (defaults to true if there is a repository, a manifest or "
    "an index), `include` and `exclude` (patterns as in .gitignore; `exclude` wins) and `max_files`.",
    "project": "Overrides what the project's files say: `name`, `language`, `framework`, "
    "`test_framework`. In a shared store, `name` is the project's name there.",
}
VARIABLES = {
    "FOVEATE_STORE": "Default of `--store`: a project's directory, or the URL of a shared store.",
    "FOVEATE_PROJECT": "Default of `--project`: the project's name in a shared store.",
    "FOVEATE_AGENT": "The coding agent that runs the command line; what it adds has trust `agent`. "
    "`foveate install claude` sets it; agents set CLAUDECODE, CODEX_THREAD_ID, CURSOR_AGENT or GEMINI_CLI instead. "
    "Without a terminal, `--trust user` says that a person's script runs it.",
    "FOVEATE_ACCEPTED": "Folders of projects, separated as in PATH, whose store is yours although git tracks it or another "
    "user owns it.",
    "FOVEATE_PERSONAL_STORE": "File of your personal store, instead of the one in the user's data directory.",
    "FOVEATE_DEBUG_CONTEXT": "`true` explains every computed context on stderr.",
    "FOVEATE_EMBED_URL": "Address of an embedding server with OpenAI's interface.",
    "FOVEATE_EMBED_KEY": "Key for that server.",
    "CLAUDE_CONFIG_DIR": "Folder of Claude Code's settings, for `foveate install claude --global`.",
    "CODEX_HOME": "Folder of Codex's settings, for `foveate install codex --global`.",
    "FOVEATE_SUMMARIZE_KEY": "Key for the server that `summarizer` names.",
    "NO_COLOR": "Any value switches colours off.",
    "FORCE_COLOR": "Any value except 0 switches colours on, even if stdout is no terminal. NO_COLOR wins.",
    "SUDO_UID": "Under sudo, the user whose projects root may open.",
    "TERM": "`dumb` switches colours off.",
    "XDG_CONFIG_HOME": "Folder with your own ignore rules for git, instead of `~/.config`.",
}
PROFILE = {
    "name": "Name of the profile. Defaults to the name of its file.",
    "description": "One line for the list that `foveate profile` prints.",
    "extends": 'Profile that this one changes. Defaults to `default`; `""` means none.',
    "total": "Tokens that the model may receive if the call names no budget.",
    "reserve": "Tokens of the total that are left free for the answer.",
    "weights": "Weight of each feature in a score; see below.",
    "max_file_chars": "Longest file that is shown as a whole. Of a longer one, the relevant parts are shown.",
    "slots": "Parts of the prompt; see below.",
    "complexity": "Tables by name that change the profile for an easy, normal or complex task.",
    "input": "Tables by name that change the profile for a `short` or a `complex` question.",
}
SLOT = {
    "source": f"Source of its candidates: {', '.join(f'`{source.name}`' for source in BUILTIN_SOURCES)}, or one of yours.",
    "kinds": "Kinds of records. An empty list means any kind.",
    "heading": "Line above the items.",
    "tokens": "Fixed number of tokens. Set either this or `share`.",
    "times": "Multiplies the `tokens` or `share` that a lower layer set.",
    "share": "Part of the tokens that fixed slots and the reserve leave, in proportion to the other shares.",
    "max_items": "Maximum number of items.",
    "keep": "Filled first and never evicted.",
    "stable": "Depends on scope and profile only, and comes before everything that depends on the question.",
    "role": "Message that contains it: `system` (the default of a stable slot) or `user`.",
    "order": "Place among the slots; lower is earlier.",
    "optional": "Applies only if a lower layer has this slot.",
    "remove": "Removes a slot of a lower layer.",
}


FRAME = {
    "title": "Name of the frame.",
    "description": "Text about it that the model reads.",
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
"""Options that are documented once, for all commands."""


def cli_page() -> str:
    parts = [
        NOTE,
        "# Command line",
        "Data goes to stdout; hints, warnings and progress go to stderr; see also the [exit codes](config.md#exit-codes). "
        "A context is named by its id, or `last`.",
        "These options may precede or follow any command:",
        options([param for param in cli.params if param.name in SHARED]),
        "Commands on records and contexts take a scope. It decides which records are visible and to whom a new one belongs.",
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
                "configuration; see [profiles](profiles.md). `.foveate/allow` lists strings that look like secrets "
                "and are none, one a line.",
                "## Environment variables",
                table(("Variable", "Meaning"), [(code(name), meaning) for name, meaning in variables.items()]),
                "## Exit codes",
                "Each error has its own code. With `--json`, the error is also a document on stdout: `type`, `message` "
                "and, if they apply, `problems` (one sentence each) and `short` (tokens).",
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
    rows = [("0", "", "Success."), ("2", "`UsageError`", "The command line is invalid.")]
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
    limits += [f"relevance {slot.min_relevance:g}"] if slot.min_relevance else []
    limits += [f"fill {slot.fill}"] if slot.fill != "none" else []
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
