"""Generates the tasks and handoffs of an invented software project, from a seed.

No public data set has thousands of finished tasks with handoffs. The words repeat as they do in one code base: forty
components with ten nouns each, common verbs and problems, and a long tail of symbols. Planted sentences use words of another
trade, so that they share no word with any task.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

COMPONENTS = {
    "payments": "invoice refund charge ledger currency payout discount receipt chargeback mandate",
    "checkout": "basket coupon address voucher total surcharge gift stock reservation order",
    "login": "password token session captcha lockout passkey challenge device cookie logout",
    "accounts": "profile avatar email consent nickname birthday merge deletion preference handle",
    "permissions": "role grant policy group membership audit delegation owner scope denial",
    "search": "query index synonym facet ranking suggestion stemmer snippet typo relevance",
    "catalog": "product variant category price image brand attribute bundle listing supplier",
    "inventory": "warehouse shelf pallet barcode shortage transfer recount batch expiry shipment",
    "notifications": "message template channel digest subscriber bounce reminder quiet-hours badge unsubscribe",
    "mailer": "smtp envelope attachment header sender blocklist newsletter domain-key spool footer",
    "webhooks": "delivery signature endpoint payload subscription replay secret timeout callback retry",
    "gateway": "route upstream certificate proxy throttle quota hostname rewrite handshake balancer",
    "graphql": "resolver schema mutation fragment dataloader directive union cursor introspection depth",
    "rest-api": "resource status pagination version etag filter request response media-type link",
    "database": "migration table column constraint transaction replica vacuum deadlock partition view",
    "cache": "entry eviction key shard invalidation stampede lifetime warmup namespace hit-rate",
    "queue": "worker job backlog acknowledgement dead-letter priority consumer lease redelivery broker",
    "scheduler": "cron calendar trigger holiday drift interval deadline run timezone misfire",
    "storage": "bucket object upload chunk checksum thumbnail lifecycle presigned-url blob mirror",
    "exports": "spreadsheet csv report archive delimiter encoding download column-order locale worksheet",
    "imports": "parser row mapping duplicate preview rollback validator staging sample charset",
    "billing": "plan seat invoice-run proration trial tax dunning credit usage meter",
    "analytics": "event funnel cohort dashboard metric dimension sampling rollup session-replay attribution",
    "logging": "logger field level rotation redaction correlation sink format stack-trace sampling-rate",
    "metrics": "counter gauge histogram label exporter scrape alert percentile dashboard-panel cardinality",
    "tracing": "span trace baggage collector propagation sampler context-header latency exporter-queue annotation",
    "config": "setting override default environment flag reload secret-ref override-file toggle validation",
    "feature-flags": "rollout segment experiment variant-key exposure kill-switch targeting evaluation stale-flag hash",
    "editor": "paragraph selection caret undo paste heading table-cell toolbar shortcut placeholder",
    "forms": "field label checkbox dropdown error-text submit wizard mask autosave fieldset",
    "navigation": "menu breadcrumb sidebar tab anchor history-entry drawer focus landmark scroll",
    "charts": "axis legend series tooltip bar pie-slice gridline zoom tick palette",
    "mobile": "gesture viewport push-token deep-link offline-copy splash keyboard orientation permission-prompt keychain",
    "sync": "conflict cursor-token tombstone merge-base outbox clock peer snapshot patch resume",
    "localization": "translation plural locale-file fallback direction number-format glossary string-key collation date",
    "maps": "tile marker route-line geocode polygon cluster layer zoom-level bounds projection",
    "video": "stream codec subtitle playlist bitrate thumbnail-strip segment buffer player watermark",
    "chat": "thread mention reaction presence typing-sign moderation emoji unread room pin",
    "build": "bundle compiler artifact pipeline lockfile cache-key linter release tag changelog",
    "testing": "fixture mock assertion coverage snapshot-test factory flake harness seed-data teardown",
}
_DOMAIN = dict.fromkeys(("gateway", "graphql", "rest-api", "webhooks"), "api") | dict.fromkeys(
    ("login", "accounts", "permissions"), "auth"
)
_DOMAIN |= dict.fromkeys(("database", "storage", "sync"), "database") | {"testing": "testing"}
_DOMAIN |= dict.fromkeys(("editor", "forms", "navigation", "charts", "mobile"), "ui")

VERBS = """add added|remove removed|rename renamed|split split|merge merged|cache cached|validate validated|batch batched
retry retried|throttle throttled|encrypt encrypted|compress compressed|document documented|deprecate deprecated
refactor refactored|rewrite rewrote|extend extended|simplify simplified|harden hardened|speed-up sped-up|migrate migrated
expose exposed|hide hid|paginate paginated|sort sorted|archive archived|restore restored|log logged|measure measured
isolate isolated|unify unified|backfill backfilled|prefetch prefetched|debounce debounced|normalize normalized|index indexed
audit audited|localize localized|mock mocked|port ported|pin pinned|localise localised|stream streamed|guard guarded
reject rejected|accept accepted|preview previewed|export exported|import imported|schedule scheduled|cancel cancelled"""
_VERBS = [tuple(pair.split()) for pair in VERBS.replace("\n", "|").split("|")]

QUALITIES = """slow stale missing empty partial nested shared legacy public private large concurrent expired invalid optional
default temporary external internal duplicated unordered remote local custom archived manual automatic silent noisy
bulk incremental""".split()  # noqa: SIM905
EFFECTS = (
    "stays within {number} ms under load",
    "survives a restart of the service",
    "is written once and read many times",
    "no longer blocks the main thread",
    "keeps its order across retries",
    "can be undone by an administrator",
    "reports its progress to the caller",
    "falls back to the previous {noun}",
    "works without a network",
    "is visible in the {noun} page",
    "fails early with a clear error",
    "handles {number} items in one request",
    "is covered by an integration test",
    "respects the limits of the tenant",
)
TROUBLES = (
    "returns an empty list instead of raising",
    "holds its lock until the process ends",
    "silently drops everything after the first {number} rows",
    "is called twice by the framework",
    "mixes seconds and milliseconds",
    "leaks a connection on every error",
    "keeps a copy of the old {noun}",
    "ignores the encoding that the caller asked for",
    "compares with `is` and not with equality",
    "swallows the exception of the {noun}",
    "depends on the order of a dictionary",
    "writes outside the transaction",
    "rounds down where finance rounds up",
    "needs {number} MB of memory for one {noun}",
)
REMEDIES = (
    "close it in a finally block",
    "pass the clock in as an argument",
    "check the length before and after",
    "call it once at start-up and keep the result",
    "wrap it with {symbol}",
    "run it in a separate process",
    "set the limit in the settings file",
    "take the lock of the {noun} first",
    "use the helper in {path}",
)
REASONS = (
    "it needs no second service to operate",
    "the team knows it from {component}",
    "it was {number} times faster on our data",
    "the licence of the other does not allow resale",
    "it keeps the {noun} readable for people",
    "one writer is enough for years to come",
    "it can be replaced without touching the {noun}",
)
CHOICES = """a unique index|an append-only table|a background worker|optimistic locking|a content hash|server-side rendering
a nightly job|a plain text format|two-phase commit|a bounded queue|a read replica|signed links|a state machine|soft deletion
an allow list|a circuit breaker|cursor pagination|a single binary|feature detection|an event log"""
_CHOICES = CHOICES.replace("\n", "|").split("|")
ROLES = "handler store client parser guard mapper loader writer view model job policy helper factory".split()  # noqa: SIM905
TYPES = ("feature", "bugfix", "refactor", "chore", "test")
SEVERITIES = ("low", "medium", "medium", "high", "critical")

_TRADE = """barnacle bilge bosun bowsprit brine bulwark buoy capstan cleat clipper cod coral cutlass deckhand dinghy
dolphin driftwood estuary fathom flotsam foghorn forecastle frigate galleon galley gannet gull halyard harpoon hawser
herring hull jetsam jib keel kelp lagoon lantern lighthouse limpet lobster mackerel mast mizzen mooring mussel oakum oar
oyster parrot pelican pirate plankton porpoise puffin quay rigging rudder rum sail salt sardine schooner scurvy seagull
seaweed sextant shanty shark shoal shrimp skipper sloop squall squid starboard stern storm swell tar tavern tempest tide
tiller trawler trident tuna turtle typhoon urchin walrus wharf whale whirlpool winch yardarm""".split()  # noqa: SIM905
_DEEDS = "capsizes corrodes drowns founders frays splinters drags floods tangles bursts swells".split()  # noqa: SIM905


@dataclass(frozen=True, slots=True)
class Work:
    """A task of the project, with its handoff if it is finished."""

    name: str
    values: dict[str, Any]
    handoff: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plants:
    """Sentences planted in one handoff that a later context must contain, by their marker."""

    gotchas: dict[str, str]
    """Gotchas above low severity."""
    questions: dict[str, str]
    """Blocking questions."""
    low_gotchas: dict[str, str]
    """Gotchas of low severity. No other task may inherit them."""


class Writer:
    """Writes tasks. The same seed writes the same tasks."""

    def __init__(self, seed: str) -> None:
        self.chance = random.Random(seed)
        self._paths: dict[str, list[str]] = {name: [] for name in COMPONENTS}

    def task(self, *, done: bool) -> Work:
        """Write a task of a random component. Two in three of its words belong to that component."""
        component = self._component()
        verb, past = self._pick(_VERBS)
        noun, other = self.chance.sample(COMPONENTS[component].split(), 2)
        quality = self._pick(QUALITIES)
        name = f"{verb.capitalize()} the {quality} {noun} in {component}"
        effect = self._fill(EFFECTS, component)
        objective = f"{verb.capitalize()} the {quality} {noun} of {component} so that the {other} {effect}."
        criteria = [
            f"The {self._noun(component)} {self._fill(EFFECTS, component)}" for _ in range(self.chance.randint(2, 3))
        ]
        path = self._path(component)
        values = {
            "objective": objective,
            "acceptance_criteria": criteria,
            "files": [path],
            "type": self._pick(TYPES),
            "tags": [component],
        }
        if not done:
            return Work(name, values)
        summary = (
            f"{past.capitalize()} the {quality} {noun} of {component}: the {other} {self._fill(EFFECTS, component)}. "
            f"The {self._noun(component)} in `{path}` {self._fill(EFFECTS, component)}, and {self._symbol(component)} "
            f"is what other code calls."
        )
        return Work(name, values, {"status": "completed", "summary": summary, **self._learned(component, path)})

    def plants(self, first: int, gotchas: list[str], *, question: bool) -> tuple[dict[str, Any], Plants]:
        """Return lists to add to a handoff, and the planted sentences in them. Markers are numbered from `first`."""
        numbers = iter(range(first, first + len(gotchas) + 1))
        marked = [(severity, *self._plant(next(numbers))) for severity in gotchas]
        questions = [self._plant(next(numbers))] if question else []
        lists = {
            "gotchas": [{"issue": text, "severity": severity} for severity, _, text in marked],
            "open_questions": [{"question": f"{text}?", "context": self._sea(6), "blocking": True} for _, text in questions],
        }
        return lists, Plants(
            {marker: text for severity, marker, text in marked if severity != "low"},
            {marker: f"{text}?" for marker, text in questions},
            {marker: text for severity, marker, text in marked if severity == "low"},
        )

    # --- words -------------------------------------------------------------------------------------------------

    def _learned(self, component: str, path: str) -> dict[str, Any]:
        """Write the lists of a handoff: a file, a pattern, a gotcha, and a decision or a question."""
        tags = [component, *([_DOMAIN[component]] if component in _DOMAIN else [])]
        verb, _ = self._pick(_VERBS)
        pattern = {
            "pattern": f"{verb.capitalize()} every {self._noun(component)} through {self._symbol(component)} before the "
            f"{self._noun(component)} {self._fill(EFFECTS, component)}",
            "location": f"{path}:{self.chance.randint(1, 400)}",
            "applies_to": tags,
        }
        gotcha = {
            "issue": f"{self._symbol(component)} {self._fill(TROUBLES, component)} when the {self._noun(component)} is "
            f"{self._pick(QUALITIES)}; {self._fill(REMEDIES, component)}.",
            "severity": self._pick(SEVERITIES),
        }
        quality, noun, other = self._pick(QUALITIES), self._noun(component), self._noun(component)
        purpose = f"{quality.capitalize()} {noun} for the {other} of {component}"
        lines = self.chance.randint(1, 300)
        out: dict[str, Any] = {
            "files_created": [{"path": path, "lines": f"{lines}-{lines + 80}", "purpose": purpose}],
            "patterns_discovered": [pattern],
            "gotchas": [gotcha],
            "dependencies_for_next": [{"file": path, "reason": f"{self._noun(component)} of {component}"}],
        }
        if self.chance.random() < 0.5:
            chosen, *rejected = self.chance.sample(_CHOICES, 3)
            decision = f"Use {chosen} for the {self._pick(QUALITIES)} {self._noun(component)} of {component}"
            reason = self._fill(REASONS, component)
            return {**out, "decisions": [{"decision": decision, "rationale": reason, "alternatives": rejected}]}
        question = {
            "question": f"Should the {quality} {noun} keep its {other} when it {self._fill(TROUBLES, component)}?",
            "context": f"{self._effect(component)}.",
            "recommendation": self._fill(REMEDIES, component),
            "blocking": self.chance.random() < 0.25,
        }
        return {**out, "open_questions": [question]}

    def _component(self) -> str:
        """Pick a component. Some are picked more often than others, as in real projects."""
        names = list(COMPONENTS)
        return names[min(int(self.chance.random() ** 1.5 * len(names)), len(names) - 1)]

    def _noun(self, component: str) -> str:
        """Pick a noun, mostly of the component and sometimes of another one."""
        return self._pick(COMPONENTS[component if self.chance.random() < 0.8 else self._component()].split())

    def _effect(self, component: str) -> str:
        return f"The {self._noun(component)} {self._fill(EFFECTS, component)}"

    def _symbol(self, component: str) -> str:
        one, two = (self._noun(component).replace("-", "_") for _ in range(2))
        return f"`{one}_{two}_{self._pick(ROLES)}()`"

    def _path(self, component: str) -> str:
        known = self._paths[component]
        if known and self.chance.random() < 0.1:
            return self._pick(known)
        noun, other = self.chance.sample(COMPONENTS[component].split(), 2)
        path = f"src/{component}/{noun}/{other}_{self._pick(ROLES)}.py".replace("-", "_")
        known.append(path)
        return path

    def _fill(self, templates: tuple[str, ...], component: str) -> str:
        return self._pick(templates).format(
            number=self.chance.choice((5, 10, 20, 50, 100, 200, 500, 1000)),
            noun=self._noun(component),
            symbol=self._symbol(component),
            path=self._pick(self._paths[component] or [self._path(component)]),
            component=self._component(),
        )

    def _plant(self, number: int) -> tuple[str, str]:
        """Return a unique marker, and a sentence of 10 to 18 words that begins with it."""
        marker = "Wreck" + "".join(
            "bdfgklmnprstvz"[number // 14**place % 14] for place in range(4)
        )  # no digits: they would be words of their own
        return marker, f"{marker} {self._pick(_DEEDS)} {self._sea(self.chance.randint(8, 16))}"

    def _sea(self, words: int) -> str:
        return " ".join(self.chance.sample(_TRADE, words))

    def _pick(self, among: Any) -> Any:
        return among[self.chance.randrange(len(among))]
