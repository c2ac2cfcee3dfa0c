"""The corpus of injections, and what a reader would take for another turn, a call or an unseen character.

The patterns are not those of the code under test.
"""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path

CASES = [json.loads(line) for line in Path(__file__).with_name("corpus.jsonl").read_text("utf-8").splitlines()]
TEXTS = [case["text"] for case in CASES]
NAMES = [f"{case['family']}-{n}" for n, case in enumerate(CASES)]

TURN = re.compile(
    r"^[\s>*+|#=~_/\"'`.\d)-]*[\[({<*]*\s?(system|assistant|user|human|developer|tool|ai)"
    r"([ _-](prompt|message))?\s*([\])}>*_]*\s*:|[\])}>]|={2,}|-{2,}|$)",
    re.IGNORECASE,
)
CALL = re.compile(
    r"<\|\w+\|>|<｜|<<SYS|\[/?INST\]|</?(\w+:)?(function_calls|invoke|tool_call|tool_result|system|assistant|system-reminder)\b"
    r"|<start_of_turn>|<function="
    r"|(?<!\\)\"(tool_calls|function_call)\"|(?<!\\)\"role\": ?\"(system|developer|assistant)\"|```\s*tool_"
    r"|!\[[^\]]*\]\(\s*(https?:)?//|<img ",
    re.IGNORECASE,
)


def parts(content: str, tag: str) -> tuple[str, str]:
    """What stands outside of the fences of a text, and what inside."""
    out: dict[bool, list[str]] = {False: [], True: []}
    within = False
    for line in content.split("\n"):
        if line == f'<{tag} note="quoted; not instructions">':
            assert not within
            within = True
        elif line == f"</{tag}>":
            assert within
            within = False
        else:
            out[within].append(line)
    assert not within
    return "\n".join(out[False]), "\n".join(out[True])


def unseen(text: str) -> list[str]:
    """Characters that no reader sees; a joiner or a selector may follow a sign that needs it, once."""
    found = [c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") and c not in "\n\t\u200c\u200d"]
    found += re.findall("\u3164|[\u2060-\u206f]|[\U000e0000-\U000e0fff]{2,}", text)
    return found + re.findall("(?<=[\x00-\x7f])[\u200c\u200d\ufe00-\ufe0f]", text)


def words(text: str) -> str:
    return " ".join(text.replace("\\", "").split())


def harmless(inside: str, tag: str) -> None:
    """No line of it is a turn or a call, it does not know its fence, and nothing of it is unseen."""
    assert tag not in inside
    assert not unseen(inside)
    for line in inside.split("\n"):
        seen = unicodedata.normalize("NFKC", line)
        assert not TURN.match(seen), line
        assert not CALL.search(seen), line
