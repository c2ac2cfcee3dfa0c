"""Reads YAML and JSON that the strict readers refuse.

YAML is cut into sections at the keys that the schema knows, so that a broken section spoils no other. A broken section is
rewritten line by line (indentation by the schema, values in quotes) and parsed once more. If that fails, too, its text is
the value of its key. JSON goes to json-repair.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from foveate.tasks.handoff.blocks import indent_of, key_of
from foveate.tasks.handoff.notes import Notes, excerpt, merge, replace_surrogates
from foveate.tasks.handoff.schema import FIELDS, Field, find
from foveate.tasks.handoff.strict import Anchors, SyntaxProblem, load_yaml, parse_scalar

MAX_SECTIONS = 100
"""A handoff has fifteen fields. Each section starts a parser; the rest of the text is one section."""

MAX_JSON_CHARS = 16_384
"""json-repair takes quadratic time on hostile text: two seconds for this many characters, ten minutes for 256 KB."""

MAX_FLOW_CHARS = 1_000
"""The same for a value in brackets, of which a handoff can have hundreds."""

_DOCUMENT_START = re.compile(r"^---.*$", re.MULTILINE)


def repair_json(text: str) -> Any:
    """Return the value of broken JSON, or None if there is none or the text is too long."""
    if len(text) > MAX_JSON_CHARS:
        return None
    import json_repair  # slow to import; only broken JSON needs it

    try:
        value = json_repair.loads(text, skip_json_loads=True)
    except (ValueError, RecursionError):
        return None
    # A list: more brackets follow in the prose after the handoff.
    return next((part for part in value if isinstance(part, dict)), None) if isinstance(value, list) else value


# --- sections ------------------------------------------------------------------------------------------------------


def read_yaml(text: str, first_line: int, notes: Notes) -> tuple[dict[str, Any], bool]:
    """Return the fields of a YAML text and whether it was repaired; `first_line` lines precede it."""
    anchors, repairs = Anchors(), Notes()
    fields: dict[str, Any] = {}
    last = text.count("\n")
    for start, lines in _sections(text):
        for value in _read_section(first_line + start, lines, start + len(lines) > last, anchors, repairs):
            if isinstance(value, list) and all(isinstance(part, dict) for part in value):
                repairs.add("The fields stand in a list; they were read as one object.")
            else:
                value = [value]
            for key, entry in (pair for part in value if isinstance(part, dict) for pair in part.items()):
                merge(fields, key, entry, "", repairs)
    anchors.check()
    if sum(bool(document.strip()) for document in _DOCUMENT_START.split(text)) > 1:
        notes.add("The YAML has several documents; they were read as one.")
    for n, sentence in enumerate(repairs.sentences()):
        is_first = n == 0 and not sentence.startswith("Read with")
        notes.add(f"Read with repairs: {sentence[0].lower()}{sentence[1:]}" if is_first else sentence)
    return fields, len(repairs) > 0


def _sections(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield groups of lines with the number of their first; each begins with a known key at the left edge or `---`."""
    lines = text.split("\n")
    base = next((indent_of(line) for line in lines if key_of(line)), 0)
    start = count = 0
    for number, line in enumerate(lines):
        begins = line.startswith("---") or (indent_of(line) == base and not line.lstrip().startswith("-") and key_of(line))
        if begins and number > start and count < MAX_SECTIONS and any(map(str.strip, lines[start:number])):
            yield start, lines[start:number]
            start, count = number, count + 1
    yield start, lines[start:]


def _read_section(start: int, lines: list[str], is_last: bool, anchors: Anchors, repairs: Notes) -> list[Any]:
    notes = Notes()
    try:
        values = load_yaml("\n".join(lines), anchors, notes, start)
        if any(isinstance(value, str) for value in values) and any(map(key_of, lines)):
            raise SyntaxProblem(0, "a text stands where keys are expected")
    except SyntaxProblem as problem:
        repairs.add(f"Read with repairs: line {start + problem.line + 1}: {problem.reason}.")
        return _repair_section(lines, is_last, anchors, repairs)
    repairs.add(*notes.sentences())
    return values


def _repair_section(lines: list[str], is_last: bool, anchors: Anchors, repairs: Notes) -> list[Any]:
    rewritten = rewrite_yaml(lines, anchors, repairs, is_last=is_last)
    anchors.check()
    try:
        return load_yaml(rewritten, Anchors(), repairs)
    except SyntaxProblem:
        key, _, text = "\n".join(lines).strip().partition(":")
        return [{key: text.strip()}] if find(key) else []


# --- YAML, line by line --------------------------------------------------------------------------------------------

_TAB = "  "
_BULLET = re.compile(r"(?:[-*•+–—]|\d{1,3}[.)])(?:\s+|$)")
_KEY = re.compile(r"""["'“]?([^\s"'“”\[\]{}#&*!|>%@`,:-][^"“”:\n]{0,63}?)["'”]?\s*:(?:\s+|$)""")
_UNSPACED_KEY = re.compile(r"([a-z_]{3,40}):(?=\S)")
_NAME = re.compile(r"[A-Za-z_][\w.-]*")
_BLOCK_HEADER = re.compile(r"([|>])\d?([+-]?)\d?\s*(?:#.*)?")
_COMMENT = re.compile(r"(?:^|\s+)#(?:[\s!].*)?$")
_ANCHOR = re.compile(r"([&*])([\w-]+)(?:\s|$)")
_QUOTED_SCALAR = re.compile(
    r"""("(?:[^"\\]|\\(?:[0abtnvfre "/\\N_LP\n]|x[\da-fA-F]{2}|u[\da-fA-F]{4}|U[\da-fA-F]{8}))*"|'(?:[^']|'')*')(\s+#.*)?"""
)
_FLAT_LIST = re.compile(r"\[([^\[\]{}]*)\]?")
_LIST_ITEM = re.compile(r"""\s*("(?:[^"\\]|\\.)*"|'[^']*'|[^,]+)""")


@dataclass(slots=True)
class _Entry:
    """A key or list item as it is written out, and the lines of its value."""

    prefix: str
    indent: int
    parts: list[str]
    block_indent: int | None = None  # of the text below `|` or `>`; -1 before its first line
    quote: str = ""  # the quote that is still open
    brackets: int = 0  # how many are still open

    @property
    def is_open(self) -> bool:
        return bool(self.quote) or self.brackets > 0

    def begin(self, text: str) -> None:
        """Set the first line of the value."""
        self.parts = [text]
        if header := _BLOCK_HEADER.fullmatch(text):
            self.parts, self.block_indent = [header[1] + header[2]], -1
        elif text[:1] in ("'", '"'):
            self.quote = text[0]
            self._count(text[1:])
        elif text[:1] in ("[", "{"):
            self._count(text)

    def extend(self, text: str) -> None:
        """Add a line to the value."""
        if self.parts == [""]:
            self.begin(text)
        else:
            self.parts.append(text)
            self._count(text)

    def add_block_line(self, indent: int, line: str) -> None:
        """Add a line to a text below `|` or `>`, without its indentation."""
        if line and self.block_indent == -1:
            self.block_indent = indent
        width = max(self.block_indent or 0, 0)
        body = line.lstrip(" \t")
        self.parts.append(line[width:] if not line[:width].strip(" ") else " " * (indent - width) + body)

    def _count(self, text: str) -> None:
        if self.quote:
            self.quote = "" if self.quote in re.sub(r"''|\\.", "", text) else self.quote
        elif self.parts[0][:1] in ("[", "{"):
            self.brackets += sum(map(text.count, "[{")) - sum(map(text.count, "]}"))

    def render(self) -> str:
        """Return the entry as YAML."""
        margin = "\n" + " " * (len(self.prefix) - len(self.prefix.lstrip(" -")) + len(_TAB))
        if self.block_indent is not None:
            return self.prefix + "".join([self.parts[0], *(margin + part if part else "\n" for part in self.parts[1:])])
        text = "\n".join(self.parts).strip()
        if text[:1] in ("'", '"') and not _QUOTED_SCALAR.fullmatch(text):
            text = _dump(_unquote(" ".join(self.parts).strip()))
        elif text[:1] in ("[", "{"):
            text = _repair_brackets(text, self.brackets)
        elif text[:1] not in ("'", '"'):
            value = parse_scalar(re.sub(r"\n+", lambda match: match[0][1:] or " ", text))
            text = "" if value is None else _dump(value)
        return self.prefix + text.replace("\n", margin)


def rewrite_yaml(lines: list[str], anchors: Anchors, notes: Notes, *, is_last: bool = False) -> str:
    """Return the lines of one section as YAML that the strict reader takes.

    `is_last` says that the handoff ends with these lines, so that the last one may be cut off.
    """
    rewriter = _Rewriter(anchors)
    for line in lines:
        rewriter.add(line)
    if is_last and (cut := rewriter.drop_truncated_key()):
        notes.add(f"The last line {excerpt(cut)} is cut off and was left out.")
    return "\n".join(entry.render() for entry in rewriter.entries)


class _Rewriter:
    """Decides for each line whether it is a key, a list item or more of the text before it, and how far it is indented.

    The names of the schema decide first: `severity:` belongs to a gotcha at any indentation.
    """

    def __init__(self, anchors: Anchors) -> None:
        self.anchors = anchors
        self.entries: list[_Entry] = []
        self.base = -1  # indentation of the keys at the top, -1 before the first
        self.field: Field | None = None  # the last key at the top, if the schema knows it
        self.items = self.keys = -1  # indentation of the items of its list, and of the keys in an item
        self.part: Field | None = None  # the last key in an item, if the schema knows it

    def add(self, line: str) -> None:
        """Add a line of the section."""
        text = line.strip(" \t")
        indent = len(line[: line.find(text)].replace("\t", _TAB)) if text else 0
        text = text.rstrip()
        bullet = _BULLET.match(text)
        key, value = self._split_key(text[bullet.end() :] if bullet else text)
        is_field = bool((bullet and indent <= self.items) or find(key) or self._item_field(key))
        last = self.entries[-1] if self.entries else None
        if last and last.block_indent is not None:
            ends_block = is_field or _NAME.fullmatch(key) or (text[:1] == "#" and indent < last.block_indent)
            if not text or indent > last.indent or not ends_block:
                last.add_block_line(indent, line if text else "")
                return
        if last and (not text or (last.is_open and (indent > last.indent or not is_field))):
            last.extend(text)
        elif text and not _COMMENT.match(text) and text not in ("---", "..."):
            if start := self._start(indent, text, bullet, key, value):
                self.entries.append(start)
            elif last:
                last.extend(self._strip_comment(text))

    def drop_truncated_key(self) -> str:
        """Remove and return a last line that is the beginning of a key."""
        parts = self.entries[-1].parts if self.entries else []
        while parts and not parts[-1]:
            parts.pop()
        fields = (*FIELDS, *(self.field.fields if self.field else ()))
        return parts.pop() if len(parts) > 1 and any(field.name.startswith(parts[-1]) for field in fields) else ""

    def _start(self, indent: int, text: str, bullet: re.Match[str] | None, key: str, value: str) -> _Entry | None:
        """Return the entry that a line starts, or None if it goes on with the text before it."""
        top, own = find(key), self._item_field(key)
        inner = indent + len(bullet[0]) if bullet else indent
        item = text[bullet.end() :] if bullet else text
        is_name = bool(_NAME.fullmatch(key))
        if self.base >= 0 and indent > self.base and (self.field is None or self.field.kind == "object"):
            # An unknown structure keeps its layout.
            margin = " " * (indent - self.base) + ("- " if bullet else "")
            return (
                self._entry(margin, inner, key, value)
                if is_name
                else self._entry(margin, indent, "", item)
                if bullet
                else None
            )
        if not bullet and (
            (top and not (own and indent > self.base)) or (is_name and not own and indent <= max(self.base, 0))
        ):
            self.field, self.part, self.items, self.keys = top, None, -1, -1
            self.base = indent if self.base < 0 else self.base
            return self._entry("", indent, key, value)
        if bullet and self.field and self.field.is_list:
            if self.part and self.part.is_list and indent > self.items:
                return self._entry("      - ", indent, "", item)
            if 0 <= self.keys < indent and self.entries[-1].parts[-1]:
                return None  # a dash in the middle of wrapped prose
            self.items, self.keys, self.part = indent, inner, own
            return self._entry("  - ", inner, key, value) if own else self._entry("  - ", indent, "", item)
        if own or (is_name and indent == self.keys):
            is_first = self.keys < 0  # a single object in place of a list
            self.items, self.keys, self.part = (indent, indent, own) if is_first else (self.items, self.keys, own)
            return self._entry("  - " if is_first else "    ", indent, key, value)
        return None

    def _entry(self, margin: str, indent: int, key: str, value: str) -> _Entry:
        name = key if _NAME.fullmatch(key) else _dump(key)
        value = self._strip_comment(value)
        prefix = f"{margin}{name}: " if key else margin
        entry = _Entry(prefix if value else prefix.rstrip(), indent, [])
        entry.begin(value)
        return entry

    def _split_key(self, text: str) -> tuple[str, str]:
        """Return the key at the start of a text, or nothing, and the text after its colon."""
        match = _KEY.match(text) or _UNSPACED_KEY.match(text)
        if not match or (match.re is _UNSPACED_KEY and not (find(match[1]) or self._item_field(match[1]))):
            return "", text
        return match[1].strip(), text[match.end() :]

    def _item_field(self, key: str) -> Field | None:
        """Return the field of an item that a key names."""
        return find(key, self.field.fields) if self.field and key else None

    def _strip_comment(self, text: str) -> str:
        if match := _ANCHOR.match(text):
            (self.anchors.defined if match[1] == "&" else self.anchors.used).add(match[2])
        return text if text[:1] in ("'", '"') else _COMMENT.sub("", text)


def _dump(value: Any) -> str:
    """Return a value as JSON, which is also YAML."""
    return replace_surrogates(json.dumps(value, ensure_ascii=False))


def _unquote(text: str) -> str:
    """Return the text inside quotes that are never closed, or that stand unescaped inside the text, too."""
    quote, end = text[0], text.find(text[0], 1)
    # Only the first words are quoted in `"Lax" cookies, not "Strict"`.
    is_prefix = quote == '"' and end > 0 and text[end - 1] not in " \\" and text[end + 1 : end + 2] == " "
    if is_prefix or (end > 0 and not text.endswith(quote)):
        return text
    inner = text[1:-1] if end > 0 else text[1:]
    if quote == "'":
        return inner.replace("''", "'")
    if re.search(r'\\(?![nt"\\])', inner):  # not escapes, but a path such as C:\src
        return inner.replace('\\"', '"')
    return re.sub(r"\\(.)", lambda match: {"n": "\n", "t": "\t"}.get(match[1], match[1]), inner)


def _repair_brackets(text: str, unclosed: int) -> str:
    """Return a value in brackets as YAML; as a text if it goes on after the last bracket."""
    if flat := _FLAT_LIST.fullmatch(text):
        items = [item.strip() for item in _LIST_ITEM.findall(flat[1])]
        return _dump([_unquote(item) if item[0] in "'\"" else parse_scalar(item) for item in items if item])
    if unclosed <= 0 and text[-1] in "]}":
        return text
    value = repair_json(text) if unclosed > 0 and len(text) <= MAX_FLOW_CHARS else None
    return _dump(text if value is None else value)
