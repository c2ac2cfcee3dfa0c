"""Replaces secrets in text with `[REDACTED:kind:hash8]` before anything is stored. Redacting twice changes nothing.

The rules are in `redact_rules.toml`. Each rule has literal hints and is only tried where one of them is found, with a
pattern anchored there. Nearly every text has no hint and costs a few substring searches. The many token prefixes are
searched for in long unbroken words only, which prose has few of: one alternation of all rules would try every branch at
every character.

It does not find passphrases with spaces, secrets without a known prefix or key name, or personal data. It does not look into
encodings: the base64 of a key is not decoded.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import blake2b
from importlib.resources import files
from math import log2
from pathlib import Path
from typing import Any, TypeAlias

AllowList: TypeAlias = Set[str]
"""Strings that are no secrets, or the hash8 of placeholders that should not have been made."""

MIN_CHARS = 9
"""Shorter texts are returned at once: the shortest findings (`<private>`, `pwd=abc123`) do not fit into them."""

MIN_TOKEN_RUN_CHARS = 20
"""The shortest token with a prefix, an AWS key. Shorter words are not searched for prefixes."""

MAX_VALUE_CHARS = 512
"""A longer value after `token=` is a blob and is skipped whole, so that `token=token=...` stays linear."""

MIN_PASSWORD_CHARS = 6
"""Passwords are chosen by people and can be short."""

MIN_TOKEN_CHARS = 12
"""Tokens are made by machines. Shorter values after `token=` are names, states and numbers."""

MIN_ENTROPY_BITS = 2.75
"""Per character of a machine-made value: 12 random hex digits have about 3.0, words and runs of x far less."""

MAX_ENTROPY_CHARS = 64
"""Entropy is judged by this many characters, because more of them change nothing."""

MIN_PASSPHRASE_CHARS = 16
"""A run of letters this long is a passphrase even if it begins like a placeholder (`thecorrecthorse...`)."""

MAX_SAFE_WORDS, MAX_SAFE_WORD_CHARS = 100_000, 80
"""Long words without a hint are cached, because code repeats its identifiers from file to file."""


@dataclass(frozen=True, slots=True)
class RedactionResult:
    """A text without its secrets, and the kind of each replacement in the order of the text."""

    text: str
    kinds: tuple[str, ...] = ()


def redact(text: str, allow_list: AllowList | None = None) -> RedactionResult:
    """Replace secrets and `<private>` spans. A text without any is returned as the same object."""
    if len(text) < MIN_CHARS:
        return RedactionResult(text)
    kinds: list[str] = []
    if "<" in text:
        text = _replace_private_spans(text, kinds)
    while spans := _find_secrets(text, allow_list or frozenset()):  # again, because a replacement can uncover a boundary
        text = _replace_spans(text, spans)
        kinds.extend(kind for _, _, kind in spans)
    return RedactionResult(text, tuple(kinds))


def redact_value(value: Any, allow_list: AllowList | None = None) -> Any:
    """Redact every string of JSON-like data, keys included. `{"password": "..."}` counts as an assignment."""
    if isinstance(value, str):
        return redact(value, allow_list).text
    if isinstance(value, list):
        return [redact_value(item, allow_list) for item in value]
    if isinstance(value, tuple):
        return tuple(redact_value(item, allow_list) for item in value)
    if isinstance(value, dict):
        return {redact_value(key, allow_list): _redact_entry(key, item, allow_list) for key, item in value.items()}
    return value


def load_allow_list(path: str | Path) -> AllowList:
    """Read an allow-list from a file: one string or hash8 per line, comments after `#`."""
    lines = (line.strip() for line in Path(path).read_text(encoding="utf-8").splitlines())
    return frozenset(line for line in lines if line and not line.startswith("#"))


def _redact_entry(key: Any, value: Any, allow_list: AllowList | None) -> Any:
    redacted = redact_value(value, allow_list)
    if not isinstance(value, str) or not isinstance(key, str) or redacted != value:
        return redacted
    rules = load_rules()
    if rules.password_name.search(key):
        kind, is_secret = "password", _is_password(value, quoted=True) or _is_word_password(value, quoted=True)
    else:
        kind, is_secret = "token", bool(rules.token_name.search(key)) and _is_token(value, quoted=True)
    return _placeholder(kind, value) if is_secret and not _is_allowed(value, allow_list or frozenset()) else value


# --- rules -----------------------------------------------------------------------------------------------------------

Check: TypeAlias = Callable[[str, bool], bool]


@dataclass(frozen=True, slots=True)
class SecretRule:
    """A kind of secret: where to look, its pattern, and a last test of the secret. See `redact_rules.toml`."""

    kind: str
    hints: tuple[str, ...]
    source: str
    ignore_case: bool
    multiline: bool
    check: Check | None

    @property
    def pattern(self) -> re.Pattern[str]:
        # Compiled when a hint is first found: all patterns at once would double the start-up of a command.
        return _compile(self.source, re.ASCII | (re.IGNORECASE if self.ignore_case else 0))


@lru_cache(maxsize=256)
def _compile(source: str, flags: int) -> re.Pattern[str]:
    return re.compile(source, flags)


@dataclass(frozen=True, slots=True)
class RuleSet:
    """All rules, most specific first, with the numbers of the rules of each hint and the words that are no secrets."""

    rules: tuple[SecretRule, ...]
    case_sensitive_hints: Sequence[tuple[str, list[int]]]
    ignore_case_hints: Sequence[tuple[str, list[int]]]
    password_name: re.Pattern[str]
    token_name: re.Pattern[str]
    not_a_secret: re.Pattern[str]
    common_words: frozenset[str]


@cache
def load_rules() -> RuleSet:
    """Return the rules of `redact_rules.toml`."""
    data = tomllib.loads((files("foveate.text") / "redact_rules.toml").read_text("utf-8"))
    fragments: dict[str, str] = {}
    for name, text in data["fragments"].items():
        fragments[name] = _expand(text, fragments)
    rules = tuple(_rule(row, fragments) for row in data["rules"])
    placeholders = "|".join(data["words"]["placeholder"].split())
    return RuleSet(
        rules,
        case_sensitive_hints=_rules_by_hint(rules, ignore_case=False),
        ignore_case_hints=_rules_by_hint(rules, ignore_case=True),
        password_name=re.compile(rf"(?i){fragments['password_key']}\d{{0,3}}\Z"),
        token_name=re.compile(rf"(?i){fragments['token_key']}\d{{0,3}}\Z"),
        # A placeholder with two digits in it may still be a secret.
        not_a_secret=re.compile(rf"{_REFERENCE}|(?:{placeholders})(?![a-z]*\d[a-z]*\d)", re.IGNORECASE),
        common_words=frozenset(data["words"]["common"].split()),
    )


def _rule(row: Mapping[str, Any], fragments: Mapping[str, str]) -> SecretRule:
    if "prefixes" in row:
        hints, body = row["prefixes"], _expand(row["body"], fragments)
        before = r"(?<![\w-])" if "-" in body else r"(?<![A-Za-z0-9])"
        source = f"{before}(?:{'|'.join(map(re.escape, hints))})(?:{body})"
    else:
        hints, source = row["hints"], _expand(row["pattern"], fragments)
    check = _CHECKS[row["check"]] if "check" in row else None
    return SecretRule(row["kind"], tuple(hints), source, row.get("ignore_case", False), row.get("multiline", False), check)


def _expand(text: str, fragments: Mapping[str, str]) -> str:
    return re.sub(r"\{\{(\w+)\}\}", lambda name: fragments[name[1]], text)


def _rules_by_hint(rules: Sequence[SecretRule], ignore_case: bool) -> list[tuple[str, list[int]]]:
    numbers: dict[str, list[int]] = {}
    for number, rule in enumerate(rules):
        for hint in rule.hints if rule.ignore_case == ignore_case else ():
            numbers.setdefault(hint, []).append(number)
    return list(numbers.items())


# --- finding and replacing -------------------------------------------------------------------------------------------

Span: TypeAlias = tuple[int, int, str]
"""Start, end and kind of a secret."""

_QUOTES = frozenset("\"'`")
_TOKEN_BYTES = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./+=%:,-")
_TOKEN_BYTE_MAP = bytes(ord("x") if byte in _TOKEN_BYTES else ord(" ") for byte in range(256))
_LONG_RUN = b"x" * MIN_TOKEN_RUN_CHARS
_PLACEHOLDER = re.compile(r"\[REDACTED:[a-z0-9_]+:[0-9a-f]{8}\]|\[PRIVATE\]")
_PRIVATE_TAG = re.compile(r"<(/?)private>", re.IGNORECASE)

_known_safe_words: set[str] = set()


def _find_secrets(text: str, allow_list: AllowList) -> list[Span]:
    """Return the secrets of a text in order. Overlapping findings are one, named by the most specific rule."""
    rule_set = load_rules()
    lowered = text.replace("İ", "i").lower()  # the one character whose lower case is longer; offsets must stay
    numbers = {number for hint, rules in rule_set.ignore_case_hints if hint in lowered for number in rules}
    if words := _long_words(text) - _known_safe_words:
        joined = " ".join(words)
        hinted = {number for hint, rules in rule_set.case_sensitive_hints if hint in joined for number in rules}
        numbers |= hinted
        if not hinted:
            _remember_safe(words)
    if not numbers:
        return []
    rules = rule_set.rules
    matches = [(start, end, number) for number in numbers for start, end in _matches(rules[number], text, lowered)]
    spans = _merge_spans(sorted(matches))
    return [(start, end, rules[number].kind) for start, end, number in spans if not _is_allowed(text[start:end], allow_list)]


def _long_words(text: str) -> set[str]:
    """Return the long runs of the characters of tokens. A pattern would take three times as long."""
    raw = text.encode("utf-8", "surrogatepass")
    runs = raw.translate(_TOKEN_BYTE_MAP)
    words: set[str] = set()
    start = runs.find(_LONG_RUN)
    while start >= 0:
        end = runs.find(b" ", start)
        words.add(raw[start : end if end >= 0 else None].decode("ascii"))
        start = runs.find(_LONG_RUN, end) if end >= 0 else -1
    return words


def _remember_safe(words: set[str]) -> None:
    if len(_known_safe_words) > MAX_SAFE_WORDS:
        _known_safe_words.clear()
    _known_safe_words.update(word for word in words if len(word) <= MAX_SAFE_WORD_CHARS)


def _matches(rule: SecretRule, text: str, lowered: str) -> Iterator[tuple[int, int]]:
    haystack = lowered if rule.ignore_case else text
    pattern = rule.pattern
    group = "secret" if "secret" in pattern.groupindex else 0
    for hint in rule.hints:
        at = haystack.find(hint)
        while at >= 0:
            resume = at + 1
            if match := pattern.match(text, at):
                start, end = match.span(group)
                is_secret = not _PLACEHOLDER.match(text, start) and _passes_check(rule, text, start, end)
                if is_secret:
                    yield start, end
                if is_secret or end - start > MAX_VALUE_CHARS:
                    resume = end
            at = haystack.find(hint, resume)


def _passes_check(rule: SecretRule, text: str, start: int, end: int) -> bool:
    return rule.check is None or rule.check(text[start:end], text[start - 1 : start] in _QUOTES)


def _merge_spans(matches: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    merged = matches[:1]
    for start, end, number in matches[1:]:
        last_start, last_end, last_number = merged[-1]
        if start < last_end:
            merged[-1] = (last_start, max(end, last_end), min(number, last_number))
        else:
            merged.append((start, end, number))
    return merged


def _replace_spans(text: str, spans: list[Span]) -> str:
    parts: list[str] = []
    done = 0
    for start, end, kind in spans:
        parts += (text[done:start], _placeholder(kind, text[start:end]))
        done = end
    return "".join((*parts, text[done:]))


def _placeholder(kind: str, secret: str) -> str:
    return f"[REDACTED:{kind}:{_hash8(secret)}]"


def _hash8(secret: str) -> str:
    # Not keyed, so that one secret reads the same in every store and allow-list; too short to give the secret back.
    return blake2b(secret.encode("utf-8", "surrogatepass"), digest_size=4, person=b"foveate.redact").hexdigest()


def _is_allowed(secret: str, allow_list: AllowList) -> bool:
    return bool(allow_list) and (secret in allow_list or _hash8(secret) in allow_list)


def _replace_private_spans(text: str, kinds: list[str]) -> str:
    """Replace private spans by `[PRIVATE]`: the outermost of nested ones, and up to the end if one is not closed."""
    parts: list[str] = []
    done = depth = 0
    for tag in _PRIVATE_TAG.finditer(text):
        if tag[1]:
            depth -= depth > 0
            if depth == 0 and done < 0:
                done = tag.end()
        else:
            if depth == 0:
                parts += (text[done : tag.start()], "[PRIVATE]")
                kinds.append("private")
                done = -1
            depth += 1
    if not parts:
        return text
    return "".join(parts if done < 0 else (*parts, text[done:]))


# --- checks of a value -----------------------------------------------------------------------------------------------

_REFERENCE = r"<|&lt;|\[|\(|\{|\$[{(A-Za-z_]|%[({A-Z]|\*{3}|\.\.|https?:|data:|x{3}"
_CODE = re.compile(r"[()\[\]{}<>|]|\$\w|->|::|%s")
_WORDS = re.compile(
    r"[._/~@-]*+(?:(?:[A-Za-z]{2,}+(?:\d{1,2}[A-Za-z]{2,}+|\d{0,4}+)|\d{1,4}[A-Za-z]?|[A-Za-z]\d{0,2}+)(?:[._/:@=,+-]++|\Z))++\Z"
)
"""Words and small numbers joined by punctuation: `module.name_v2`, `gpt-4o-2024`, `1.2.3`, `some-file.txt`."""

_NAMES_A_SECRET = re.compile(
    r"passw|passphrase|pwd|secret|token|credential|your|example|change|placeholder|here\Z|(.)\1{3}", re.IGNORECASE
)
_CODE_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)++\Z|\W|.*[/:]")
_BARE_NAME = re.compile(
    r"\w*_\w*\Z|(?:[A-Z][a-z]+)*(?:Str|String|Bytes|Field|Type|Input|Value|Hash|Model|Schema|Column|Text|Data)\Z"
    r"|[A-Za-z-]{2,11}(?:ed|ing|tion|able|ible|ment|ness|ity|ly)\Z"
)
"""Names and types of code, and words that end like participles, nouns and adverbs of prose."""


def _is_literal(value: str, quoted: bool = True) -> bool:
    """Return whether a value is no placeholder, reference, type or name."""
    return not load_rules().not_a_secret.match(value)


def _is_header(value: str, quoted: bool) -> bool:
    return _is_literal(value) and not (value.isalpha() and value[1:].islower())


def _is_password(value: str, quoted: bool) -> bool:
    """Return whether a person could have chosen the value: no path or expression, and more than a plain word."""
    if not MIN_PASSWORD_CHARS <= len(value) <= MAX_VALUE_CHARS or not _is_literal(value) or value[0] in "/~.":
        return False
    if not quoted and _CODE.search(value):
        return False
    has_digit = any(digit in value for digit in "0123456789")
    has_symbol = any(symbol in value for symbol in "!@#$%^&*?+=~")
    has_letter = any(map(str.isalpha, value))
    return (has_digit and (quoted or has_letter)) or (quoted and has_symbol and has_letter)


def _is_word_password(value: str, quoted: bool) -> bool:
    """Return whether a value of letters is no placeholder, name of code or common word."""
    is_passphrase = len(value) >= MIN_PASSPHRASE_CHARS and value.isalpha()
    if not MIN_PASSWORD_CHARS <= len(value) <= MAX_VALUE_CHARS or any(map(str.isspace, value)):
        return False
    if (not is_passphrase and not _is_literal(value)) or _NAMES_A_SECRET.search(value) or _CODE_NAME.match(value):
        return False
    return any(map(str.isalpha, value)) and value.lower() not in load_rules().common_words


def _is_bare_password(value: str, quoted: bool) -> bool:
    """Return the same where code and prose are likelier: `password=value`, `password: value`."""
    return _is_word_password(value, quoted) and not _BARE_NAME.match(value)


def _is_token(value: str, quoted: bool) -> bool:
    """Return whether a machine made the value: long, digits among its letters, not built of words, high in entropy."""
    if not MIN_TOKEN_CHARS <= len(value) <= MAX_VALUE_CHARS or not _is_literal(value) or _WORDS.match(value):
        return False
    if not quoted and _CODE.search(value):
        return False
    return _is_random(value)


def _is_random(value: str, quoted: bool = True) -> bool:
    head = value[:MAX_ENTROPY_CHARS]
    digits = sum(map(head.count, "0123456789"))
    return 2 <= digits < len(head) and _entropy(head) >= MIN_ENTROPY_BITS


def _entropy(text: str) -> float:
    """Return Shannon's entropy in bits per character."""
    counts = map(text.count, set(text))
    return log2(len(text)) - sum(count * log2(count) for count in counts) / len(text)


_CHECKS: Mapping[str, Check] = {
    "random": _is_random,
    "literal": _is_literal,
    "header": _is_header,
    "password": _is_password,
    "word": _is_word_password,
    "bare_word": _is_bare_password,
    "token": _is_token,
}
