"""`expand`, `feedback`, `compact`: what a context leaves out, what an answer used of it, and better short lengths."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from foveate.cli.call import STDIN, Call, Verb, decoded, pass_call, read_text, say, scoped
from foveate.errors import InputError
from foveate.operations import json
from foveate.operations.inputs import context_named

if TYPE_CHECKING:
    from foveate.memory.backfill import SummaryResult


@click.command(cls=Verb)
@click.argument("id")
@scoped
@pass_call
def expand(call: Call, id: str, **scope: Any) -> None:
    """Print a record in full, for the model to read.

    It goes into a user message, not into the system prompt, and counts as a use of the record.
    """
    with call.open(**scope) as engine:
        message = engine.expand(id)
    if call.as_json:
        call.print_json({"id": id, "message": message})
    else:
        click.echo(message["content"], nl=False)


@click.command(cls=Verb)
@click.argument("context")
@click.argument("answer", metavar="[ANSWER_FILE]", required=False)
@click.option("--useful", multiple=True, metavar="ID", help="This item helped. Repeatable.")
@click.option("--wrong", multiple=True, metavar="ID", help="This item is wrong: its outcome becomes failure. Repeatable.")
@click.option(
    "--outdated", multiple=True, metavar="ID", help="This item no longer holds; says how to retire it. Repeatable."
)
@scoped
@pass_call
def feedback(
    call: Call,
    context: str,
    answer: str | None,
    useful: tuple[str, ...],
    wrong: tuple[str, ...],
    outdated: tuple[str, ...],
    **scope: Any,
) -> None:
    """Say what came of a context: which items an answer used.

    CONTEXT is a context's id, or `last`. ANSWER_FILE holds what the model answered, `-` reads it from stdin: items that it
    refers to, quotes or takes its rare words from count as used. The receipt keeps ids, not the answer.
    """
    marks = [(id, mark) for mark, ids in (("useful", useful), ("wrong", wrong), ("outdated", outdated)) for id in ids]
    if answer is None and not marks:
        raise InputError("Name a file with the model's answer, or mark items with --useful, --wrong or --outdated.")
    with call.open(**scope) as engine:
        id = engine.receipts.get(context_named(context)).id
        found = None if answer is None else engine.feedback(id, answer=_text(answer))
        advice = engine.feedback(id, useful=useful, wrong=wrong, outdated=outdated).advice if marks else {}
    if call.as_json:
        call.print_json(json.feedback(id, found, dict(marks)))
        return
    if found is not None:
        for item, how in found.used.items():
            click.echo(f"{item}  used: {how}")
        click.echo(f"{len(found.used)} of {len(found.used) + len(found.unused)} items used")
    for item, mark in marks:
        click.echo(f"{item}  {mark}")
        if item in advice:
            say(advice[item])


def _text(answer: str) -> str:
    if answer == STDIN:
        return read_text(answer)
    if not os.path.isfile(answer):
        raise InputError(f"There is no file {answer!r}. Name the file that holds the answer, or `-` for stdin.")
    with open(answer, "rb") as file:
        return decoded(file.read(), repr(answer))


@click.command(cls=Verb)
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="At most this many records.")
@click.option("--dry-run", is_flag=True, help="Count them, and ask no model.")
@scoped
@pass_call
def compact(call: Call, limit: int, dry_run: bool, **scope: Any) -> None:
    """Have a language model write better summaries.

    Of records whose summary was extracted; one that its author wrote is left alone. Needs `summarizer` in config.toml and
    its key in FOVEATE_SUMMARIZE_KEY. Every call leaves a line in .foveate/costs.jsonl.
    """
    from foveate.memory.backfill import rewrite_summaries
    from foveate.text.summarize import ExtractiveSummarizer, Summarizer

    place = call.place()
    summarizer: Summarizer = ExtractiveSummarizer()
    if not dry_run:
        spec = place.settings.get("summarizer")
        if not spec:
            raise InputError('There is no summarizer. Set one in .foveate/config.toml: summarizer = "openai:MODEL@URL".')
        from foveate.text.llm_summarize import open_summarizer

        summarizer = open_summarizer(spec, place.folder / "costs.jsonl")
    with call.open(**scope) as engine:
        done = rewrite_summaries(engine.store.data, summarizer, limit=limit, dry_run=dry_run)
    _print_compacted(call, done, dry_run)
    if getattr(summarizer, "failed", ""):
        say(f"warning: {summarizer.failed}")  # type: ignore[attr-defined]


def _print_compacted(call: Call, done: SummaryResult, dry_run: bool) -> None:
    if call.as_json:
        call.print_json({"found": done.candidates, "rewritten": done.rewritten, "kept": done.unchanged, "dry_run": dry_run})
    elif dry_run:
        click.echo(f"{done.candidates} records have an extracted summary")
    else:
        click.echo(f"{done.rewritten} of {done.candidates} rewritten, {done.unchanged} left as they are")


VERBS = {"expand": expand, "feedback": feedback, "compact": compact}
