"""Parses the structured handoffs that agents write, in any form in which they arrive.

A handoff may be Markdown with front matter, a fenced block, bare YAML or JSON, headings, prose, or a mapping. The parser
trusts nothing: it executes no YAML tag and expands no alias. See docs/decisions/011.
"""

from __future__ import annotations

from foveate.tasks.handoff.notes import MAX_BYTES
from foveate.tasks.handoff.parse import ParsedHandoff, parse
from foveate.tasks.handoff.schema import SCHEMA, STATUSES, json_schema, template

__all__ = ["MAX_BYTES", "SCHEMA", "STATUSES", "ParsedHandoff", "json_schema", "parse", "template"]
