"""Reads the structured handoffs that agents write, whatever shape they arrive in.

Comes in: Markdown with front matter, a fenced block, bare YAML or JSON, headings, prose, or a mapping. Goes out: one
`Parsed`: the normalised handoff, the rung of the ladder that read it, and a sentence for each thing that was not as the
schema has it. It writes nothing and trusts nothing: no tag is executed, no alias expanded. (docs/decisions/011)
"""

from __future__ import annotations

from foveate.tasks.handoff.parse import MAX_BYTES, Parsed, parse
from foveate.tasks.handoff.schema import SCHEMA, STATUSES, json_schema, template

__all__ = ["MAX_BYTES", "SCHEMA", "STATUSES", "Parsed", "json_schema", "parse", "template"]
