"""Replaces secrets in text by `[REDACTED:kind:hash8]`, before anything is written.

Comes in: any text, or JSON-like data, and optionally a set of strings that are known not to be secrets. Goes out: the
same with every secret replaced, and the names of the rules that fired. Redacting twice changes nothing.

How: each rule has literal hints, and is only tried where one of them stands, with a pattern anchored there. Nearly
every text has no hint, and costs a few substring searches: the many token prefixes are looked for in long unbroken
words only, which prose has few of. (One alternation of all rules would try every branch at every character.) Every
pattern refuses to begin inside a run of its own characters, or is bounded, so that the work stays linear in the text.

What it does not do: it does not find passphrases with spaces in them, secrets without a known prefix or a telling key, or
personal data; and it does not look into encodings (base64 of a key is not decoded).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from math import log2
from pathlib import Path
from typing import Any, TypeAlias

Allow: TypeAlias = Set[str]
"""What is not a secret: exact strings, or the hash8 of a placeholder that should not have been one."""

MIN_CHARS = 9
"""Shorter texts are returned at once, because the shortest findings (`<private>`, `pwd=abc123`) do not fit."""

MIN_WORD_CHARS = 20
"""The shortest prefixed token, an AWS key; what is shorter is not searched for prefixes."""

MAX_ASSIGNED_CHARS = 512
"""A longer value after `token=` is a blob, not a secret, and is passed over whole: `token=token=...` stays linear."""

MIN_PASSWORD_CHARS = 6
"""Passwords are chosen by people, and can be short."""

MIN_TOKEN_CHARS = 12
"""Tokens are made by machines: shorter values after `token=` are names, states and numbers."""

MIN_ENTROPY = 2.75
"""Bits per character of a machine-made value: 12 random hex digits have about 3.0, words and runs of x far less."""

ENTROPY_CHARS = 64
"""Entropy is judged by a value's first characters, because the rest tells nothing new."""


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text without its secrets, and the rule behind each replacement in the order of the text."""

    text: str
    found: tuple[str, ...] = ()


Check: TypeAlias = Callable[[str, bool], bool]


@dataclass(frozen=True, slots=True)
class Rule:
    """A kind of secret: where to look (`hints`), what stands there, and a last check of the secret itself.

    The secret is the pattern's group `secret`, or all of the match; `check` hears whether it stands in quotes. A rule
    that is not `folded` stands with its hint in one run of MIN_WORD_CHARS or more `_TOKEN_BYTES`. A `folded` rule can
    stand anywhere and ignores case; its hints are in lower case.
    """

    kind: str
    hints: tuple[str, ...]
    source: str
    flags: int = 0
    folded: bool = False
    check: Check | None = None

    @property
    def pattern(self) -> re.Pattern[str]:
        """Compiled when a hint is first met: all of them at import would double the start-up of a command."""
        return _compiled(self.source, self.flags)


@lru_cache(maxsize=256)
def _compiled(source: str, flags: int) -> re.Pattern[str]:
    return re.compile(source, flags)


def redact(text: str, allow: Allow | None = None) -> Redacted:
    """The text with secrets and `<private>` spans replaced; the same object where there are none."""
    if len(text) < MIN_CHARS:
        return Redacted(text)
    found: list[str] = []
    if "<" in text:
        text = _without_private(text, found)
    while spans := _spans(text, allow or frozenset()):  # again, because a replacement can uncover a boundary
        text = _replaced(text, spans)
        found.extend(kind for _, _, kind in spans)
    return Redacted(text, tuple(found))


def redact_value(value: Any, allow: Allow | None = None) -> Any:
    """JSON-like data with every string redacted, keys included; `{"password": "..."}` counts as an assignment."""
    if isinstance(value, str):
        return redact(value, allow).text
    if isinstance(value, list):
        return [redact_value(item, allow) for item in value]
    if isinstance(value, tuple):
        return tuple(redact_value(item, allow) for item in value)
    if isinstance(value, dict):
        return {redact_value(key, allow): _redact_entry(key, item, allow) for key, item in value.items()}
    return value


def load_allow(path: str | Path) -> Allow:
    """The allow-list of a file: one string or hash8 a line; `#` begins a comment line."""
    lines = (line.strip() for line in Path(path).read_text(encoding="utf-8").splitlines())
    return frozenset(line for line in lines if line and not line.startswith("#"))


def _redact_entry(key: Any, value: Any, allow: Allow | None) -> Any:
    clean = redact_value(value, allow)
    if not isinstance(value, str) or not isinstance(key, str) or clean != value:
        return clean
    if _PASSWORD_NAME.search(key):
        kind, secret = "password", _is_password(value, quoted=True) or _is_word_password(value, quoted=True)
    else:
        kind, secret = "token", bool(_TOKEN_NAME.search(key)) and _is_token(value, quoted=True)
    return _placeholder(kind, value) if secret and not _allowed(value, allow or frozenset()) else value


# --- finding and replacing -----------------------------------------------------------------------------------------

Span: TypeAlias = tuple[int, int, str]
"""Start, end and kind of a secret."""


def _spans(text: str, allow: Allow) -> list[Span]:
    """The secrets of a text, in order; overlapping findings are one, named by the most specific rule."""
    lowered = text.replace("İ", "i").lower()  # the one character whose lower case is longer: offsets stay true
    ranks = {rank for hint, ranks in _FOLDED if hint in lowered for rank in ranks}
    if words := _long_words(text) - _plain:
        joined = " ".join(words)
        hinted = {rank for hint, ranks in _CASED if hint in joined for rank in ranks}
        ranks |= hinted
        if not hinted:
            _remember_plain(words)
    if not ranks:
        return []
    matches = [(start, end, rank) for rank in ranks for start, end in _matches(RULES[rank], text, lowered)]
    merged = _merged(sorted(matches))
    return [(start, end, RULES[rank].kind) for start, end, rank in merged if not _allowed(text[start:end], allow)]


def _long_words(text: str) -> set[str]:
    """The runs of MIN_WORD_CHARS or more of what prefixed tokens are made of; a pattern would take three times as long."""
    raw = text.encode("utf-8", "surrogatepass")
    runs = raw.translate(_RUNS)
    words: set[str] = set()
    start = runs.find(_LONG_RUN)
    while start >= 0:
        end = runs.find(b" ", start)
        words.add(raw[start : end if end >= 0 else None].decode("ascii"))
        start = runs.find(_LONG_RUN, end) if end >= 0 else -1
    return words


_plain: set[str] = set()
"""Long words without a hint: code repeats its identifiers from file to file."""
MAX_PLAIN, MAX_PLAIN_CHARS = 100_000, 80


def _remember_plain(words: set[str]) -> None:
    if len(_plain) > MAX_PLAIN:
        _plain.clear()
    _plain.update(word for word in words if len(word) <= MAX_PLAIN_CHARS)


def _matches(rule: Rule, text: str, lowered: str) -> Iterator[tuple[int, int]]:
    haystack = lowered if rule.folded else text
    pattern = rule.pattern
    group = "secret" if "secret" in pattern.groupindex else 0
    for hint in rule.hints:
        at = haystack.find(hint)
        while at >= 0:
            resume = at + 1
            if match := pattern.match(text, at):
                start, end = match.span(group)
                found = not _PLACEHOLDER.match(text, start) and _passes(rule, text, start, end)
                if found:
                    yield start, end
                if found or end - start > MAX_ASSIGNED_CHARS:
                    resume = end
            at = haystack.find(hint, resume)


def _passes(rule: Rule, text: str, start: int, end: int) -> bool:
    return rule.check is None or rule.check(text[start:end], text[start - 1 : start] in _QUOTES)


def _merged(matches: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    merged = matches[:1]
    for start, end, rank in matches[1:]:
        last_start, last_end, last_rank = merged[-1]
        if start < last_end:
            merged[-1] = (last_start, max(end, last_end), min(rank, last_rank))
        else:
            merged.append((start, end, rank))
    return merged


def _replaced(text: str, spans: list[Span]) -> str:
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


def _allowed(secret: str, allow: Allow) -> bool:
    return bool(allow) and (secret in allow or _hash8(secret) in allow)


_QUOTES = frozenset("\"'`")
_TOKEN_BYTES = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./+=%:,-")
_RUNS = bytes(ord("x") if byte in _TOKEN_BYTES else ord(" ") for byte in range(256))
_LONG_RUN = b"x" * MIN_WORD_CHARS
_PLACEHOLDER = re.compile(r"\[REDACTED:[a-z0-9_]+:[0-9a-f]{8}\]|\[PRIVATE\]")
_PRIVATE_TAG = re.compile(r"<(/?)private>", re.IGNORECASE)


def _without_private(text: str, found: list[str]) -> str:
    """Private spans become `[PRIVATE]`: the outermost where they are nested, to the end where one is not closed."""
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
                found.append("private")
                done = -1
            depth += 1
    if not parts:
        return text
    return "".join(parts if done < 0 else (*parts, text[done:]))


# --- what a value must be like ----------------------------------------------------------------------------------------

_NOT_A_SECRET = re.compile(
    r"<|&lt;|\[|\(|\{|\$[{(A-Za-z_]|%[({A-Z]|\*{3}|\.\.|https?:|data:|x{3}|"
    r"(?:your|my|some|any|the|new|old|example|sample|change|dummy|fake|test|mock|none|null|true|false|undefined|todo|"
    r"tbd|redacted|placeholder|insert|enter|replace|self|this|cls|os|process|env|settings|config|args|options|request|"
    r"string|bytes|optional|secret|token|passw|passphrase|pass|pwd|api_?key|key|user|admin|root|foo|bar|hash|sha|md5)"
    r"(?![a-z]*\d[a-z]*\d)",
    re.IGNORECASE,
)
"""How placeholders, references, types and names begin; a word with two digits in it may still be a secret."""

_CODE = re.compile(r"[()\[\]{}<>|]|\$\w|->|::|%s")
_WORDS = re.compile(
    r"[._/~@-]*+(?:(?:[A-Za-z]{2,}+(?:\d{1,2}[A-Za-z]{2,}+|\d{0,4}+)|\d{1,4}[A-Za-z]?|[A-Za-z]\d{0,2}+)(?:[._/:@=,+-]++|\Z))++\Z"
)
"""Words and small numbers joined by punctuation: `module.name_v2`, `gpt-4o-2024`, `1.2.3`, `some-file.txt`."""


def _is_password(value: str, quoted: bool) -> bool:
    """A value that a person could have chosen: no placeholder, path or expression, and more than a plain word."""
    if not MIN_PASSWORD_CHARS <= len(value) <= MAX_ASSIGNED_CHARS or _NOT_A_SECRET.match(value) or value[0] in "/~.":
        return False
    if not quoted and _CODE.search(value):
        return False
    has_digit = any(digit in value for digit in "0123456789")
    has_symbol = any(symbol in value for symbol in "!@#$%^&*?+=~")
    has_letter = any(map(str.isalpha, value))
    return (has_digit and (quoted or has_letter)) or (quoted and has_symbol and has_letter)


_LONG_WORD_CHARS = 16
"""A longer run of letters is a passphrase even where it begins like a placeholder (`thecorrecthorse...`)."""

_NAMES_A_SECRET = re.compile(
    r"passw|passphrase|pwd|secret|token|credential|your|example|change|placeholder|here\Z|(.)\1{3}", re.IGNORECASE
)
_CODE_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)++\Z|\W|.*[/:]")
_BARE_NAME = re.compile(
    r"\w*_\w*\Z|(?:[A-Z][a-z]+)*(?:Str|String|Bytes|Field|Type|Input|Value|Hash|Model|Schema|Column|Text|Data)\Z"
    r"|[A-Za-z-]{2,11}(?:ed|ing|tion|able|ible|ment|ness|ity|ly)\Z"
)
"""Names and types of code, and words that end like participles, nouns and adverbs of prose."""

_COMMON_WORDS = (
    "accepted access account active allowed always anything argument attribute bcrypt before boolean buffer button "
    "callback cannot changed characters cleartext client column common compat complete complex correct current "
    "database default deleted denied dialog different digits disabled during either element enabled encrypted "
    "environment errors existing expired external failed failure fields filled forbidden forgot function generated "
    "hashed hidden inactive incorrect initial integer interactive internal invalid keychain keyring length letters "
    "locked longer managed manager masked maximum method minimum mismatch missing module native nothing notice "
    "nullable number object omitted parameter pending permanent plaintext please policy previous private prompt "
    "prompted property protected provided public random removed required resets rotation screen scrypt sensitive "
    "server shared shorter should simple something specified stored strength string strings strong success supplied "
    "symbols systemd temporary textarea unchanged unique unknown unless unlocked updated username values varchar "
    "variable verified visible warning whatever window "
)
_COMMON = frozenset(_COMMON_WORDS.split())


def _is_word_password(value: str, quoted: bool) -> bool:
    """A value of letters after a password's name that is no placeholder, name of code or common word."""
    is_long_word = len(value) >= _LONG_WORD_CHARS and value.isalpha()
    if not MIN_PASSWORD_CHARS <= len(value) <= MAX_ASSIGNED_CHARS or any(map(str.isspace, value)):
        return False
    if (not is_long_word and _NOT_A_SECRET.match(value)) or _NAMES_A_SECRET.search(value) or _CODE_NAME.match(value):
        return False
    return any(map(str.isalpha, value)) and value.lower() not in _COMMON


def _is_bare_password(value: str, quoted: bool) -> bool:
    """The same where code and prose are likelier: `password=value`, `password: value`."""
    return _is_word_password(value, quoted) and not _BARE_NAME.match(value)


def _is_token(value: str, quoted: bool) -> bool:
    """A value that a machine made: long, digits among its letters, not built of words, high in entropy."""
    if not MIN_TOKEN_CHARS <= len(value) <= MAX_ASSIGNED_CHARS or _NOT_A_SECRET.match(value) or _WORDS.match(value):
        return False
    if not quoted and _CODE.search(value):
        return False
    return _is_random(value)


def _is_random(value: str, quoted: bool = True) -> bool:
    head = value[:ENTROPY_CHARS]
    digits = sum(map(head.count, "0123456789"))
    return 2 <= digits < len(head) and _entropy(head) >= MIN_ENTROPY


def _entropy(text: str) -> float:
    """Shannon entropy in bits per character."""
    counts = map(text.count, set(text))
    return log2(len(text)) - sum(count * log2(count) for count in counts) / len(text)


def _is_header(value: str, quoted: bool) -> bool:
    """Neither a placeholder nor a plain word."""
    return _is_given(value, quoted) and not (value.isalpha() and value[1:].islower())


def _is_given(value: str, quoted: bool) -> bool:
    return not _NOT_A_SECRET.match(value)


# --- the rules -----------------------------------------------------------------------------------------------------

_PASSWORD_KEY = r"(?:password|passwd|passphrase|passwort|pwd)"
_KEY_OF = ("api", "access", "secret", "auth", "private", "encryption", "signing", "account", "master")
_TOKEN_KEY = rf"(?:secret|token|(?:{'|'.join(f'(?<={of})|(?<={of}[ _-])' for of in _KEY_OF)})key)"
_SET = r"\\?[\"']?\s{0,3}(?:=>|:=|[=:])\s{0,3}\\?[\"']?"
_ASSIGNS = (
    r"\d{0,3}\\?[\"'`]?\]?"  # the end of the key, which can be quoted or subscripted
    r"(?:\s{0,3}(?::\s?str\s?)?(?::=|=>|[=:])\s{0,3}|>|(?<=--password) |(?<=--token) | is )"
)
_ENDS = r"\s\"'`\\<\u2000-\U0010ffff"


def _value(also_ends: str = "") -> str:
    """A value in quotes, or a bare one without the punctuation after it; not the end of a placeholder."""
    bare = rf"[^{_ENDS}{also_ends}]{{{MIN_PASSWORD_CHARS},}}(?<![,;.)\]}}])"
    quoted = rf"[^{_ENDS}]{{{MIN_PASSWORD_CHARS},}}"
    return rf"(?P<quote>\\?[\"'`])?(?![0-9a-f]{{8}}\])(?P<secret>(?(quote){quoted}|{bare}))"


_WORD_CHARS = rf"\d{_ENDS}>()\[\]{{}},;&|="  # what a word ends at; a value with a digit is for `_is_password`
_QUOTED_WORD = (
    r"\d{0,3}\\?[\"'`]?\]?\s{0,3}(?::\s?str\s?)?(?::=|=>|[=:])\s{0,3}(?P<quote>\\?[\"'`])"
    rf"(?P<secret>[^{_ENDS}]{{{MIN_PASSWORD_CHARS},{MAX_ASSIGNED_CHARS}}})(?P=quote)"
)
_ENV_WORD = (
    r"(?-i:(?<=PASSWORD)|(?<=PASSWD)|(?<=PASSPHRASE)|(?<=PWD))\d{0,3}="
    rf"(?P<secret>[^{_WORD_CHARS}]{{{MIN_PASSWORD_CHARS},{MAX_ASSIGNED_CHARS}}}+)(?=[\s\"'`;&]|\Z)"
)
_BARE_WORD = (
    rf"\d{{0,3}}(?:=|:[ \t]{{0,3}})(?P<secret>[^{_WORD_CHARS}.?:]++(?:[.?]++[^{_WORD_CHARS}.?:]++)*+)[.?]?"
    r"(?=[;&\"'`]|\Z|[ \t]*+(?:[\r\n]|\Z)|,?[ \t][\w.-]{1,40}[:=]|,[ \t][\w.-]{1,40} )"
)
"""Up to the end of the line or the next name: more words after it are prose, a comma or bracket is code."""

_PASSWORD_NAME = re.compile(rf"(?i){_PASSWORD_KEY}\d{{0,3}}\Z")
_TOKEN_NAME = re.compile(rf"(?i){_TOKEN_KEY}\d{{0,3}}\Z")


def _prefixed(kind: str, body: str, *prefixes: str, check: Check | None = None) -> Rule:
    """A token that begins with one of the prefixes, outside of any longer word."""
    start = r"(?<![\w-])" if "-" in body else r"(?<![A-Za-z0-9])"
    pattern = f"{start}(?:{'|'.join(map(re.escape, prefixes))})(?:{body})"
    return _rule(kind, pattern, *prefixes, check=check)


def _rule(kind: str, pattern: str, *hints: str, folded: bool = False, check: Check | None = None) -> Rule:
    flags = re.ASCII | (re.IGNORECASE if folded else 0)
    return Rule(kind, hints, pattern, flags, folded, check)


_ALNUM = "[A-Za-z0-9]"
_HEX = "[0-9a-f]"
_URLSAFE = r"[\w-]"
_PEM_TEXT = r"[^-]*+(?:-(?!----)[^-]*+)*+"
_PEM_LINE = r"(?:\s|\\[nr])*+(?:[A-Za-z0-9+/=]{16,}+|[A-Z][\w-]++: [^\n\\]*+|[A-Za-z0-9+/]{1,15}={1,2})"

RULES: tuple[Rule, ...] = (
    # Most specific first: where findings overlap, the earlier names the whole.
    _rule("gcp_key", r"\"private_key\"\s{0,4}:\s{0,4}\"(?P<secret>-----BEGIN[^\"]++)", '"private_key"', folded=True),
    _rule(
        "private_key",
        r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
        rf"(?:{_PEM_TEXT}-----END [A-Z0-9 ]{{0,40}}-----|(?:{_PEM_LINE})*+)",
        "-----begin ",
        folded=True,
    ),
    _prefixed("age_key", "[0-9A-Z]{50,}", "AGE-SECRET-KEY-1"),
    _prefixed("anthropic", rf"{_URLSAFE}{{20,}}", "sk-ant-"),
    _prefixed("openai", rf"{_URLSAFE}{{20,}}", "sk-proj-", "sk-svcacct-", "sk-admin-"),
    _prefixed("openai", rf"{_URLSAFE}{{20,}}", "sk-", check=_is_random),
    _prefixed("aws_key", "[A-Z0-9]{16}(?![A-Za-z0-9])", "AKIA", "ASIA"),
    _rule(
        "aws_secret",
        rf"secret_?(?:access_?)?key{_SET}(?P<secret>[A-Za-z0-9/+]{{40}})(?![A-Za-z0-9/+=])",
        "secret",
        folded=True,
        check=_is_random,
    ),
    _prefixed("github", rf"{_ALNUM}{{36,}}", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    _prefixed("github", r"\w{22,}", "github_pat_"),
    _prefixed("gitlab", rf"{_URLSAFE}{{20,}}", "glpat-", "gldt-", "glrt-"),
    _prefixed("google", rf"{_URLSAFE}{{35}}(?![\w-])", "AIza"),
    _prefixed("google", rf"{_URLSAFE}{{20,}}", "GOCSPX-", "ya29."),
    _prefixed("slack", r"[abeoprs]-[A-Za-z0-9-]{15,}", "xox"),
    _prefixed("slack", r"\d-[A-Za-z0-9-]{20,}", "xapp-"),
    _rule("slack_webhook", r"hooks\.slack\.com/(?P<secret>\w{3,20}/[\w/]{20,})", "hooks.slack.com/"),
    _prefixed("stripe", rf"{_ALNUM}{{16,}}", "sk_live_", "rk_live_", "sk_test_", "rk_test_"),
    _prefixed("stripe", r"[A-Za-z0-9+/]{24,}", "whsec_"),
    _prefixed("twilio", rf"{_HEX}{{32}}(?![A-Za-z0-9])", "SK"),
    _rule(
        "twilio",
        rf"twilio[\w .-]{{0,30}}{_SET}(?P<secret>(?:AC)?{_HEX}{{32}})(?!\w)",
        "twilio",
        folded=True,
    ),
    _prefixed("sendgrid", rf"{_URLSAFE}{{16,32}}\.{_URLSAFE}{{32,}}", "SG."),
    _prefixed("mailgun", rf"{_HEX}{{32}}(?![\w-])", "key-"),
    _prefixed("npm", rf"{_ALNUM}{{36,}}", "npm_"),
    _prefixed("pypi", rf"{_URLSAFE}{{50,}}", "pypi-AgE"),
    _prefixed("rubygems", rf"{_HEX}{{48}}(?!\w)", "rubygems_"),
    _prefixed("docker", rf"{_URLSAFE}{{20,}}", "dckr_pat_"),
    _prefixed("huggingface", rf"{_ALNUM}{{30,}}", "hf_"),
    _prefixed("replicate", rf"{_ALNUM}{{37,}}", "r8_"),
    _prefixed("groq", rf"{_ALNUM}{{40,}}", "gsk_"),
    _prefixed("xai", rf"{_ALNUM}{{40,}}", "xai-"),
    _prefixed("perplexity", rf"{_ALNUM}{{40,}}", "pplx-"),
    _prefixed("langsmith", rf"(?:pt|sk)_{_HEX}{{32}}_{_HEX}{{8,}}", "lsv2_"),
    _prefixed("digitalocean", rf"{_HEX}{{64}}", "dop_v1_", "doo_v1_", "dor_v1_"),
    _prefixed("doppler", rf"(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{{1,40}}\.)?{_ALNUM}{{40,}}", "dp."),
    _prefixed("linear", rf"{_ALNUM}{{32,}}", "lin_api_", "lin_oauth_"),
    _prefixed("notion", rf"{_ALNUM}{{40,}}", "secret_", "ntn_"),
    _prefixed("shopify", "(?:at|ca|pa|ss)_[0-9a-fA-F]{32,}", "shp"),
    _prefixed("square", rf"[a-z]{{3}}-{_URLSAFE}{{22,}}", "sq0"),
    _rule("telegram", r"(?<=\d{8}):(?P<secret>AA[\w-]{32,33})(?![\w-])", ":AA"),
    _prefixed(
        "discord",
        rf"{_URLSAFE}{{21,26}}\.{_URLSAFE}{{6,7}}\.{_URLSAFE}{{27,}}",
        *("MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT"),
    ),
    _rule("discord_webhook", r"/api/webhooks/\d{8,20}/(?P<secret>[\w-]{40,})", "/api/webhooks/"),
    _rule("azure_key", r"A(?:ccount|ccess)Key=(?P<secret>[A-Za-z0-9+/]{40,}={0,2})", "AccountKey=", "AccessKey="),
    _rule("azure_sas", r"(?<=[?&;])sig=(?P<secret>[A-Za-z0-9%+/]{40,}={0,2})", "sig="),
    _prefixed("databricks", rf"{_HEX}{{32,}}(?:-\d)?", "dapi"),
    _prefixed("vault", rf"{_URLSAFE}{{24,}}", "hvs.", "hvb.", "hvr."),
    _prefixed("postman", rf"{_HEX}{{24}}-{_HEX}{{34}}", "PMAK-"),
    _prefixed("grafana", rf"{_ALNUM}{{32}}_[0-9a-fA-F]{{8}}", "glsa_"),
    _prefixed("grafana", r"eyJ[A-Za-z0-9+/]{40,}={0,2}", "glc_"),
    _prefixed("new_relic", "[A-Z0-9]{27}", "NRAK-"),
    _prefixed("sentry", r"[A-Za-z0-9+/=_-]{40,}", "sntrys_", "sntryu_"),
    _prefixed("cloudflare", rf"{_HEX}{{24}}-{_HEX}{{100,}}", "v1.0-"),
    _rule(
        "cloudflare",
        rf"cloudflare[\w .-]{{0,30}}{_SET}(?P<secret>[\w-]{{37,40}})(?![\w-])",
        "cloudflare",
        folded=True,
        check=_is_random,
    ),
    _prefixed("heroku", rf"{_URLSAFE}{{58,}}", "HRKU-AA"),
    _rule(
        "heroku",
        rf"heroku[\w .-]{{0,30}}{_SET}(?P<secret>{_HEX}{{8}}-(?:{_HEX}{{4}}-){{3}}{_HEX}{{12}})",
        "heroku",
        folded=True,
    ),
    _prefixed("atlassian", r"[\w=-]{60,}", "ATATT3", "ATCTT3"),
    _prefixed("dropbox", rf"(?:u\.)?{_URLSAFE}{{130,}}", "sl."),
    _prefixed("fly", r"[A-Za-z0-9+/=_,-]{60,}", "fm1r_", "fm2_"),
    _prefixed("tailscale", r"(?:[a-z]{2,10}-)?[A-Za-z0-9]{8,20}-[A-Za-z0-9]{20,}", "tskey-"),
    _prefixed("supabase", rf"{_HEX}{{40}}", "sbp_"),
    _prefixed("planetscale", r"(?:tkn|pw|oauth)_[\w.-]{32,}", "pscale_"),
    _prefixed("figma", rf"{_URLSAFE}{{36,}}", "figd_"),
    _prefixed("jwt", rf"{_URLSAFE}{{8,}}\.eyJ{_URLSAFE}{{8,}}\.{_URLSAFE}{{8,}}", "eyJ"),
    _rule(
        "authorization",
        r"authorization\\?[\"']?\s{0,4}[:=,]\s{0,4}\\?[\"']?(?:bearer|basic|token|apikey|bot)\s{1,4}"
        r"(?P<secret>[\w.~+/=|-]{8,})",
        "authorization",
        folded=True,
        check=_is_header,
    ),
    _rule("bearer", r"bearer (?P<secret>[\w.~+/=|-]{20,})", "bearer ", folded=True, check=_is_random),
    _rule("url", r"://[^\s:/@\"'<>]*+:(?P<secret>[^\s/@\"'<>]++)@", "://", folded=True, check=_is_given),
    _rule(
        "password",
        _PASSWORD_KEY + _ASSIGNS + _value(),
        *("passw", "passphrase", "pwd"),
        folded=True,
        check=_is_password,
    ),
    _rule(
        "password",
        _PASSWORD_KEY + _QUOTED_WORD,
        *("passw", "passphrase", "pwd"),
        folded=True,
        check=_is_word_password,
    ),
    _rule(
        "password",
        _PASSWORD_KEY + _ENV_WORD,
        *("passw", "passphrase", "pwd"),
        folded=True,
        check=_is_word_password,
    ),
    _rule(
        "password",
        _PASSWORD_KEY + _BARE_WORD,
        *("passw", "passphrase", "pwd"),
        folded=True,
        check=_is_bare_password,
    ),
    _rule(
        "password",
        # Up to 40 arguments of the same command before the option; those of another begin after `|`, `;` or `&&`.
        r"curl(?:\s++(?!(?:curl|\||;|&&)\s)\S++){0,40}?\s++(?:-[a-z]{0,6}u|--(?:proxy-)?user)(?:\s{1,3}|=)?[\"']?"
        r"[^\s:\"'\[]{1,100}:(?!x-oauth-basic)(?P<secret>[^\s\"'`\\|;]{3,512})",
        "curl ",
        folded=True,
        check=_is_given,
    ),
    _rule("token", _TOKEN_KEY + _ASSIGNS + _value(",;&"), "secret", "token", "key", folded=True, check=_is_token),
)


def _by_hint(folded: bool) -> list[tuple[str, list[int]]]:
    """Each hint with the ranks of its rules."""
    ranks: dict[str, list[int]] = {}
    for rank, rule in enumerate(RULES):
        for hint in rule.hints if rule.folded == folded else ():
            ranks.setdefault(hint, []).append(rank)
    return list(ranks.items())


_CASED = _by_hint(folded=False)
_FOLDED = _by_hint(folded=True)
