"""Handoffs, for any input: a reading or a refusal, always by the schema, and nothing is lost."""

from __future__ import annotations

import io
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from foveate.errors import InputError
from foveate.tasks.handoff import STATUSES, ParsedHandoff, json_schema, parse
from foveate.tasks.handoff.normalize import Normalizer
from foveate.tasks.handoff.notes import Notes
from foveate.tasks.handoff.repair import rewrite_yaml
from foveate.tasks.handoff.strict import Anchors, load_yaml
from property_settings import examples

FOLDER = Path(__file__).parents[1] / "handoffs"
CLEAN = [path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("clean-*"))]

# Pieces that meet the readers' branches more often than random characters do.
pieces = st.sampled_from(
    [
        "summary: ",
        "gotchas:\n",
        "- issue: ",
        "severity: high\n",
        "status",
        "extra: ",
        "path: a.py\n",
        "x",
        "é",
        "中",
        "\n",
        "  ",
        "\t",
        "---\n",
        "```yaml\n",
        "```\n",
        "~~~\n",
        "## Summary\n",
        "**Gotchas:**\n",
        "<!--",
        "-->",
        "| a | b |\n",
        "- ",
        "* ",
        "1. ",
        "{",
        "}",
        "[",
        "]",
        ",",
        ": ",
        " #",
        "#",
        "|\n",
        ">\n",
        "&a ",
        "*a",
        "!!python/x ",
        "<<: ",
        "?",
        "%YAML 1.1\n",
        "=",
        "~",
        "null",
        '"',
        "'",
        "“",
        "”",
        "\\",
        "\\u0000",
        "\u200b",
        "\ufeff",
        "\x00",
        "\x85",
        "\u2028",
        "\r",
        "1e999",
        "0x1F",
    ]
)
texts = (
    st.text() | st.lists(pieces, max_size=40).map("".join) | st.lists(pieces | st.text(max_size=5), max_size=25).map("".join)
)


@lru_cache(maxsize=1)
def validator() -> Draft202012Validator:
    Draft202012Validator.check_schema(json_schema())
    return Draft202012Validator(json_schema())


def read(source: Any) -> ParsedHandoff | None:
    """A reading that conforms to the schema, or None where it was refused."""
    try:
        parsed = parse(source)
    except InputError:
        return None
    validator().validate(parsed.handoff)
    assert json.loads(json.dumps(parsed.handoff, allow_nan=False)) == parsed.handoff
    assert parsed.clean is (not parsed.problems)
    json.dumps(parsed.handoff, ensure_ascii=False).encode("utf-8")
    return parsed


@examples(400)
@given(texts)
@example("summary: \\")
@example("- - : ")
@example("{:")
@example("summary: |\n\t\n x")
def test_every_text_is_read_or_refused(text: str) -> None:
    parsed = read(text)
    if parsed:
        assert parsed.raw == text.replace("\0", "")


@examples(150)
@given(st.binary() | texts.map(lambda text: text.encode("utf-16")) | texts.map(lambda text: text.encode()))
def test_all_bytes_are_read_or_refused(data: bytes) -> None:
    parsed = read(data)
    if parsed and data[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        assert parsed.raw == data.decode("utf-8", "replace").replace("\0", "")


keys = st.text(st.characters(exclude_characters="\xa0"), max_size=8)  # which is read as a blank where a line begins with it
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)
names = st.sampled_from([*json_schema()["properties"], "Files Created", "path", "handoff", "task", "rejected", "x"])


@examples(200)
@given(st.dictionaries(names, json_values, max_size=6))
def test_every_mapping_is_read_or_refused(data: dict[str, Any]) -> None:
    parsed = read(data)
    assert parsed is None or parsed.method == "structured"


# --- clean handoffs, damaged ---------------------------------------------------------------------------------------


@st.composite
def damaged(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from(CLEAN))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        end = min(len(text), at + draw(st.integers(1, 6)))
        how = draw(st.sampled_from(["delete", "repeat", "insert", "cut", "indent", "quotes", "tabs"]))
        text = {
            "delete": text[:at] + text[end:],
            "repeat": text[:end] + text[at:],
            "insert": text[:at] + draw(pieces) + text[at:],
            "cut": text[:at],
            "indent": _reindented(text, draw(st.integers(0, text.count("\n"))), draw(st.integers(0, 5))),
            "quotes": text.replace('"', draw(st.sampled_from(["'", "“", "”", "`", ""]))),
            "tabs": text.replace("  ", "\t"),
        }[how]
    return text


def _reindented(text: str, number: int, width: int) -> str:
    lines = text.split("\n")
    lines[number] = " " * width + lines[number].lstrip(" ")
    return "\n".join(lines)


@examples(300)
@given(damaged())
def test_a_damaged_handoff_keeps_its_text(text: str) -> None:
    parsed = read(text)
    if parsed:
        assert parsed.raw == text.replace("\0", "")
        assert parsed.handoff["summary"] or parsed.raw


@given(st.sampled_from(CLEAN), st.integers(0, 400))
def test_a_handoff_may_be_cut_off_anywhere(text: str, at: int) -> None:
    cut = text[: min(at, len(text))]
    assert read(cut) or not cut.strip()


# --- round trip ----------------------------------------------------------------------------------------------------

words = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"], exclude_characters="\xa0"), max_size=30
) | st.sampled_from(
    [
        "NO",
        "on",
        "1.10",
        "2024-05-01",
        "a: b",
        "#1",
        "*.py",
        "&x",
        "true",
        "null",
        "- x",
        "multi\nline\n  text",
        "“q”",
        "%",
        "| x",
        "1e3",
    ]
)


def objects(*fields: str) -> st.SearchStrategy[list[dict[str, Any]]]:
    kinds: dict[str, st.SearchStrategy[Any]] = {
        "applies_to": st.lists(words, max_size=2),
        "alternatives": st.lists(words, max_size=2),
        "severity": st.sampled_from(["low", "medium", "high", "critical"]),
        "blocking": st.booleans(),
    }
    return st.lists(st.fixed_dictionaries({name: kinds.get(name, words) for name in fields}), max_size=2)


handoffs = st.fixed_dictionaries(
    {"summary": words, "status": st.sampled_from(STATUSES)},
    optional={
        "task_id": words,
        "files_created": objects("path", "lines", "purpose"),
        "patterns_discovered": objects("pattern", "location", "applies_to"),
        "gotchas": objects("issue", "severity"),
        "open_questions": objects("question", "context", "blocking"),
        "decisions": objects("decision", "rationale", "alternatives"),
        "evidence": st.lists(words, max_size=2),
        "confidence": st.floats(0, 1),
        "extra": st.dictionaries(words, json_values, max_size=2),
    },
)


def as_yaml(value: Any) -> str:
    dumper = YAML(typ="safe", pure=True)
    dumper.default_flow_style = False
    dumper.allow_unicode = True
    dumper.representer.ignore_aliases = lambda _: True
    stream = io.StringIO()
    dumper.dump(value, stream)
    return stream.getvalue()


@examples(300)
@given(handoffs)
def test_a_normalised_handoff_reads_back_as_itself(given_handoff: dict[str, Any]) -> None:
    first = parse(given_handoff).handoff
    again = parse(first)
    assert (again.handoff, again.problems) == (first, ())
    if not any(first[name] for name in first if name not in ("schema", "status", "extra")):
        return  # nothing but a status: `status` alone is a field, and the rest is covered above
    for text, method in (
        (json.dumps(first), "json"),
        (json.dumps(first, ensure_ascii=False, indent=2), "json"),
        (as_yaml(first), "yaml"),
    ):
        parsed = parse(text)
        assert (parsed.handoff, parsed.method, parsed.problems) == (first, method, ())


# --- the reader of broken YAML, on healthy YAML --------------------------------------------------------------------

phrases = st.lists(
    st.sampled_from(
        [
            "alpha",
            "beta: gamma",
            "don't",
            '"quoted"',
            "#3",
            "- dash",
            "src/a.py",
            "NO",
            "1.10",
            "x\ny: z\n  deep\n",
            "\n\npara",
            "@at",
            "*star",
            "[b]",
            "{c}",
            "%",
            "中文",
            "key:",
            "issue: x",
            "null",
            "it's: \"a\" 'b'",
            "C:\\x",
            "|",
            ">",
            "status: no",
        ]
    ),
    min_size=1,
    max_size=4,
).map(" ".join)
plain_handoffs = st.fixed_dictionaries(
    {
        "summary": phrases,
        "files_modified": st.lists(st.fixed_dictionaries({"path": phrases, "purpose": phrases}), max_size=2),
        "gotchas": st.lists(
            st.fixed_dictionaries({"issue": phrases, "severity": st.sampled_from(["low", "high"])}), max_size=3
        ),
        "decisions": st.lists(
            st.fixed_dictionaries(
                {"decision": phrases, "rationale": phrases, "alternatives": st.lists(phrases, max_size=2)}
            ),
            max_size=2,
        ),
        "evidence": st.lists(phrases, max_size=3),
    }
)


@examples(150)
@given(plain_handoffs)
def test_healthy_lines_are_read_as_yaml_reads_them(given_handoff: dict[str, Any]) -> None:
    text = as_yaml(parse(given_handoff).handoff)
    (fields,) = load_yaml(rewrite_yaml(text.split("\n"), Anchors(), Notes()), Anchors(), Notes())
    assert Normalizer(Notes()).handoff(fields) == parse(text).handoff
