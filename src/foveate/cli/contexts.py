"""`context`, `why`, `feedback` and `log`: computing contexts, and questions about past ones."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import click

from foveate.cli import receipt_text
from foveate.cli.call import STDIN, Call, Verb, decode_text, pass_call, read_text, record_id, say
from foveate.cli.options import collect, extra_option, extra_texts
from foveate.cli.render import cut, print_lines, supports_utf8, table
from foveate.clock import iso
from foveate.errors import BudgetError, InputError
from foveate.operations import documents
from foveate.options import ContextOptions, FilterFields
from foveate.types import CONTEXT_PREFIX, LAST, Filters

if TYPE_CHECKING:
    from foveate.receipts.context import Context
    from foveate.receipts.summary import ReceiptSummary

CONTEXT_OPTIONS = ("budget", "profile", "complexity", "frame", "without", "code_query", "counter")

QUERY_CHARS = 40
"""Characters of a query in a list."""


# --- context -------------------------------------------------------------------------------------------------------


@click.command(cls=Verb, scoped=True)
@click.argument("query", required=False)
@collect("options", ContextOptions, *CONTEXT_OPTIONS)
@extra_option
@collect("filters", FilterFields)
@click.option("--no-code", is_flag=True, help="Do not read the project's files.")
@click.option("--explain", is_flag=True, help="After the text, print the budget and why each item is in it or not.")
@click.option("--messages", type=click.Choice(["openai", "anthropic"]), help="Print the messages as JSON, in this form.")
@click.option("--computed", is_flag=True, help="Print the items as JSON by their use in a task: patterns, prior work, ...")
@click.option("--dry-run", is_flag=True, help="Store no receipt: `why` and `log` will not know this context.")
@click.option("--debug", is_flag=True, help="Print on stderr what the context was computed from.")
@pass_call
def context(
    call: Call,
    query: str | None,
    options: ContextOptions,
    filters: FilterFields,
    extra: tuple[str, ...],
    no_code: bool,
    explain: bool,
    messages: str | None,
    computed: bool,
    dry_run: bool,
    debug: bool,
) -> None:
    """Compute a context and print what the model should see.

    QUERY says what the context is for; `-` reads it from stdin. It may be left out with a --task (an id or a key), or if a
    task is current: then the task is the question. In a repository, its files are searched too. Without --json, --messages,
    --computed or --explain, stdout holds the text and nothing else.
    """
    if messages and computed:
        raise InputError("--messages and --computed print different documents. Pass one of them.")
    text = None if query is None else read_text(query)
    options = {**options, "extra": extra_texts(extra), "filters": Filters(**filters)}
    if debug:
        from foveate.engine.engine import DEBUG_VARIABLE

        os.environ[DEBUG_VARIABLE] = "true"
    with call.open(code=False if no_code else None, create=True) as engine:
        if call.agent is not None:
            options["agent"] = call.agent
        found = engine.context(text, dry_run=dry_run, **options)
        _print_context(call, found, messages, computed)
        if explain and not (call.as_json or messages or computed):
            not_considered = engine.receipts.count_not_considered(found)
            print_lines([[], *receipt_text.explain(engine.receipts.get(found), found.counter, not_considered)])
    if call.as_json:
        return
    if not found.text.strip():
        _say_empty(found)
    for warning in found.warnings:
        say(f"warning: {warning}")


def _print_context(call: Call, found: Context, messages: str | None, computed: bool) -> None:
    """Print a context in the form that was asked for. `--json` beats the others, and contains what `--computed` prints."""
    if call.as_json:
        from foveate.receipts.codec import context_to_json

        call.print_json({**context_to_json(found), **({"computed": found.computed()} if computed else {})})
    elif messages or computed:
        document: Any = found.computed() if computed else found.messages()
        if messages == "anthropic":
            document = found.anthropic()
        click.echo(json.dumps(document, ensure_ascii=not supports_utf8(), indent=2))
    else:
        click.echo(found.text, nl=False)


def _say_empty(found: Context) -> None:
    """Report that nothing is known, or raise if it is the budget that leaves everything out."""
    needed = [left.needs_tokens for left in found.left_out if left.reason == "budget"]
    if needed:
        raise BudgetError(
            f"{found.budget.total} tokens are too few: {len(needed)} candidates, and the smallest needs {min(needed)} more.",
            short=min(needed),
        )
    say("nothing is known about this; the context is empty.")


# --- past contexts -------------------------------------------------------------------------------------------------


@click.command(cls=Verb, scoped=True)
@click.argument("item")
@click.option("--context", default=LAST, show_default=True, metavar="CONTEXT", help="Id of the context.")
@pass_call
def why(call: Call, item: str, context: str) -> None:
    """Explain why an item is in a context or not.

    ITEM is the id or the key of a record, or the id of code, such as `code:PATH::NAME`. Prints its place and the parts of
    its score, and what it lacked if it was left out. It need not have been a candidate: then the reason is a filter, no
    shared word, a rank beyond the limit, or no section for its kind.
    """
    with call.open() as engine:
        receipt = engine.receipts.get(context)
        found = engine.why(record_id(engine, item), receipt)
    call.print(documents.why(found), receipt_text.why(found, receipt))


@click.command(cls=Verb, scoped=True)
@click.option("--limit", type=click.IntRange(1, 1000), default=10, show_default=True, help="How many.")
@pass_call
def log(call: Call, limit: int) -> None:
    """List past contexts, newest first.

    `foveate show ID` shows one of them. With a scope, only its contexts are listed.
    """
    with call.open() as engine:
        lines = engine.receipts.list(session=call.session, limit=limit)
    if call.as_json:
        call.print_json({"contexts": [documents.context_summary(line) for line in lines]})
        return
    if not lines:
        say("no context was computed yet in this scope, or the receipts have expired. `foveate context QUERY` computes one.")
        return
    print_lines(table(("id", "time", "profile", "query", "tokens", "items"), [_row(line) for line in lines], left=4))


def _row(line: ReceiptSummary) -> tuple[str, ...]:
    tokens = f"{line.tokens:,} of {line.total:,}"
    return line.id, iso(line.created), line.profile, cut(line.query, QUERY_CHARS), tokens, str(line.items)


# --- feedback ------------------------------------------------------------------------------------------------------


@click.command(cls=Verb, scoped=True, authored=True)
@click.argument("context", required=False)
@click.argument("answer", metavar="[ANSWER_FILE]", required=False)
@click.option("--useful", multiple=True, metavar="ID", help="Item that helped. Repeatable.")
@click.option("--wrong", multiple=True, metavar="ID", help="Item that is wrong, or a censor's false alarm. Repeatable.")
@click.option("--outdated", multiple=True, metavar="ID", help="Item that no longer holds. Repeatable.")
@click.option("--confirmed", multiple=True, metavar="ID", help="Record that still holds. Repeatable.")
@pass_call
def feedback(
    call: Call,
    context: str | None,
    answer: str | None,
    useful: tuple[str, ...],
    wrong: tuple[str, ...],
    outdated: tuple[str, ...],
    confirmed: tuple[str, ...],
) -> None:
    """Report how useful a context or single records were.

    CONTEXT is a context's id, or `last`. ANSWER_FILE holds what the model answered, `-` reads it from stdin: items that it
    refers to, quotes or takes its rare words from count as used. Only ids are stored, not the answer. Without a CONTEXT, the
    options are about the records themselves.
    """
    if answer is None and context is not None and context != LAST and not context.startswith(CONTEXT_PREFIX):
        context, answer = LAST, context
    groups = {"useful": useful, "wrong": wrong, "outdated": outdated, "confirmed": confirmed}
    marks = {id: mark for mark, ids in groups.items() for id in ids}
    if answer is None and not marks:
        raise InputError("Name a file with the model's answer, or pass --useful, --wrong, --outdated or --confirmed.")
    text = "" if answer is None else _answer_text(answer)
    with call.open() as engine:
        id = "" if context is None else engine.receipts.get(context).id
        call.refuse_agent(engine, [*wrong, *outdated])
        done = engine.feedback(id or None, answer=text, useful=useful, wrong=wrong, outdated=outdated, confirmed=confirmed)
    if call.as_json:
        call.print_json({**documents.feedback(done), "marks": marks})
        return
    for item, how in done.used.items():
        click.echo(f"{item}  used: {how}")
    if text:
        click.echo(f"{len(done.used)} of {len(done.used) + len(done.unused)} items used")
    for item, mark in marks.items():
        click.echo(f"{item}  {mark}")
    for advice in done.advice.values():
        say(advice)


def _answer_text(answer: str) -> str:
    if answer == STDIN:
        text = read_text(answer)
    elif os.path.isfile(answer):
        with open(answer, "rb") as file:
            text = decode_text(file.read(), repr(answer))
    else:
        raise InputError(f"{answer!r} is neither a context nor a file. Name a file with the answer, or `-` for stdin.")
    if not text.strip():
        raise InputError(f"{'Standard input' if answer == STDIN else repr(answer)} is empty. Pass what the model answered.")
    return text


VERBS = {"context": context, "why": why, "log": log, "feedback": feedback}
