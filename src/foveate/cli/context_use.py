"""`compact`: better summaries from a language model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from foveate.cli.call import Call, Verb, pass_call, say, scoped
from foveate.errors import InputError

if TYPE_CHECKING:
    from foveate.memory.backfill import SummaryResult


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


VERBS = {"compact": compact}
