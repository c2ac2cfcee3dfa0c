"""Short lengths say what the text says, keep to their room, and never take long."""

from __future__ import annotations

import json
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate.text import tokens
from foveate.text.summarize import ExtractiveSummarizer, Lengths, Summarizer

SUMMARIZER: Summarizer = ExtractiveSummarizer()

DECISION = """\
# Storage backend

Hi all, thanks for the discussion! Where should the memory live? We looked at three stores over two weeks, with the real
data of the pilot, and ran the same forty queries against each of them on one small machine in the office.

We decided to keep everything in Postgres with pgvector because one database then holds both the rows and the vectors.
The other stores need a second backup target, and a second way to lose data. Queries on the pilot data were eight times
faster than before, e.g. the nightly report took 40 s instead of 320 s. Dr. Lee checked the numbers in bench.py v1.2.

- The migration runs on Friday.
- Nobody needs to change code, as the API stays the same.
- Somebody might want to update the wiki at some point.

Does anyone object? Otherwise see you at lunch.
"""

PROCEDURE = """\
To deploy: branch -> PR -> review -> CI -> merge.

1. Create a branch from main and push it early, so that others see it.
2. Open a pull request and ask one person who knows the room for a review.
3. Wait until CI is green; never merge while it is red, because main is deployed at once.
4. Merge with a squash commit. The release job then tags the version and uploads the image.
5. Watch the dashboard for ten minutes. If the error rate rises, run `make rollback` and tell the channel.
"""

EPISODE = (
    "The import job stopped at night. It ran out of memory on the file from March. The log showed that each row was "
    "kept twice, once as text and once parsed. We fixed it by reading the file in batches of a thousand rows. Memory "
    "stays under 200 MB now. The weather was nice. A test with a large file makes sure that it stays so."
)

TRACEBACK = """\
Traceback (most recent call last):
  File "/srv/app/main.py", line 12, in <module>
    run(load())
  File "/srv/app/load.py", line 40, in load
    return parse(open(path).read())
  File "/srv/app/parse.py", line 7, in parse
    raise ValueError(f"row {number} has {len(cells)} cells")
ValueError: row 17 has 3 cells, expected 4
"""

CODE = '''\
#!/usr/bin/env python3
import os
from pathlib import Path


def total(paths: list[Path]) -> int:
    """The bytes of all files."""
    size = 0
    for path in paths:
        size += path.stat().st_size
    return size


class Report:
    def __init__(self, root: str) -> None:
        self.root = Path(root)
        self.files = [path for path in self.root.rglob("*") if path.is_file()]

    def render(self) -> str:
        lines = [f"{path}: {path.stat().st_size}" for path in self.files]
        return os.linesep.join(lines)
'''

LOG = "\n".join(
    [f"2026-03-01 10:00:{second:02} INFO worker {second} handled a request" for second in range(30)]
    + ["2026-03-01 10:00:31 ERROR worker 31 lost its connection to db-7"]
    + [f"2026-03-01 10:01:{second:02} INFO worker {second} handled a request" for second in range(30)]
)

CHINESE = (
    "大家好！我们讨论了很久应该使用哪个数据库。最后我们决定使用 PostgreSQL，因为它可以同时保存结构化数据和向量。"
    "今天天气很好。备份也只需要一个目标。查询速度比以前快了八倍，夜间报告只需要四十秒。还有人有问题吗？"
    "迁移将在星期五进行，任何人都不需要修改代码，因为接口保持不变。午饭见！"
)


def micro(text: str, title: str = "") -> str:
    return SUMMARIZER.shorten(text, title).micro


def summary(text: str, title: str = "") -> str:
    return SUMMARIZER.shorten(text, title).summary


def width(text: str) -> float:
    """Tokens, as the module estimates them: a quarter for a Latin character, one for any other."""
    return sum(0.25 if char < "\u0250" else 1 for char in text)


# --- sentences -----------------------------------------------------------------------------------------------------


def test_a_short_text_is_its_own_summary_and_micro() -> None:
    text = "Tim prefers Celsius, not Fahrenheit"
    lengths = SUMMARIZER.shorten(text)
    assert lengths.summary is text
    assert lengths.micro is text


def test_a_text_of_summary_length_is_its_own_summary() -> None:
    assert summary(EPISODE) is EPISODE
    assert micro(EPISODE) == "We fixed it by reading the file in batches of a thousand rows."


def test_a_decision_keeps_what_was_decided_and_why() -> None:
    lengths = SUMMARIZER.shorten(DECISION)
    assert lengths.micro.startswith("We decided to keep everything in Postgres with pgvector")
    assert lengths.micro.endswith("…")
    assert "because one database then holds both the rows and the vectors." in lengths.summary
    assert "thanks" not in lengths.summary
    assert "?" not in lengths.summary
    assert 50 <= width(lengths.summary) <= 100


def test_a_procedure_keeps_its_steps_in_order() -> None:
    lengths = SUMMARIZER.shorten(PROCEDURE)
    assert lengths.micro in PROCEDURE or lengths.micro[:-1] in PROCEDURE
    lines = [line.strip() for line in PROCEDURE.splitlines()]
    places = [next(i for i, line in enumerate(lines) if line.startswith(kept[:25])) for kept in lengths.summary.split("\n")]
    assert places == sorted(places)
    assert len(places) >= 2


def test_sentences_are_kept_whole() -> None:
    kept = summary(DECISION)
    sentences = re.split(r"(?<=[.?!])(?<!e\.g\.)(?<!Dr\.)\s", " ".join(DECISION.split()))
    for sentence in sentences:
        kept = kept.replace(sentence, "")
    assert not kept.strip()


def test_abbreviations_versions_and_file_names_do_not_end_a_sentence() -> None:
    text = (
        "We spent the afternoon on other things and then had some coffee and cake in the garden behind the house. "
        "Dr. Smith decided to use v1.2 of parse.py, i.e. The Old One, because it is fast. Nothing else was said."
    )
    assert micro(text).startswith("Dr. Smith decided to use v1.2 of parse.py")


def test_a_hard_wrapped_sentence_is_one_sentence() -> None:
    text = (
        "Some introduction stands here, and it is of no great interest to anybody.\n"
        "The cache is cleared after every deploy because stale entries led\nto wrong prices."
    )
    assert micro(text) == "The cache is cleared after every deploy because stale entries led to wrong…"


def test_bullets_and_headings_lose_their_marks_in_the_micro() -> None:
    assert micro("- use tabs") == "use tabs"
    assert micro("## Rules\n\n1. Never push to main.") == "Rules; Never push to main."
    assert micro("> * quoted   item") == "quoted item"


def test_code_fences_are_kept_out() -> None:
    block = "```python\n" + "value = compute(value)\n" * 30 + "```"
    text = f"The loop must run thirty times because the pump needs it.\n\n{block}\n\nNothing else changes here."
    lengths = SUMMARIZER.shorten(text)
    assert "compute" not in lengths.summary
    assert lengths.micro == "The loop must run thirty times because the pump needs it."


def test_a_title_draws_the_micro_to_what_it_names() -> None:
    text = (
        "The kitchen was painted in a warm yellow last week and everybody likes it. "
        "The garden got three new apple trees along the southern wall of the house."
    )
    assert micro(text).startswith("The kitchen")
    assert micro(text, title="Apple trees in the garden").startswith("The garden")


def test_one_endless_sentence_is_cut_at_a_clause_or_word() -> None:
    text = "the river flows past the mill, " * 60
    lengths = SUMMARIZER.shorten(text)
    assert lengths.micro == "the river flows past the mill, the river flows past the mill…"
    assert lengths.summary.endswith("the river flows past the mill…")
    assert 50 <= width(lengths.summary) <= 100


def test_a_greeting_before_an_endless_sentence_is_not_all_that_is_kept() -> None:
    lengths = SUMMARIZER.shorten("Hello there! " + "and then the water rose " * 60)
    assert "the water rose" in lengths.micro
    assert "the water rose" in lengths.summary


def test_chinese_sentences_are_split_and_weighed() -> None:
    lengths = SUMMARIZER.shorten(CHINESE * 2)
    assert "我们决定使用 PostgreSQL" in lengths.summary
    assert "大家好" not in lengths.summary
    assert width(lengths.micro) <= 20
    assert lengths.summary.endswith("。")


# --- lines ---------------------------------------------------------------------------------------------------------


def test_a_traceback_is_named_by_its_error() -> None:
    lengths = SUMMARIZER.shorten(TRACEBACK)
    assert lengths.micro == "ValueError: row 17 has 3 cells, expected 4"
    assert lengths.summary.startswith("Traceback (most recent call last):")
    assert lengths.summary.endswith("ValueError: row 17 has 3 cells, expected 4")


def test_a_long_traceback_keeps_both_ends_with_a_gap_between() -> None:
    frames = "".join(f'  File "/srv/app/m{i}.py", line {i}, in call\n    call()\n' for i in range(100))
    lengths = SUMMARIZER.shorten(TRACEBACK.replace("    run(load())\n", "    run(load())\n" + frames))
    assert "\n…\n" in lengths.summary
    assert lengths.summary.endswith("ValueError: row 17 has 3 cells, expected 4")


def test_code_is_named_by_its_first_meaningful_line() -> None:
    lengths = SUMMARIZER.shorten(CODE)
    assert lengths.micro == "def total(paths: list[Path]) -> int:"
    assert lengths.summary.startswith("#!/usr/bin/env python3\nimport os\n")
    assert lengths.summary.endswith("        return os.linesep.join(lines)")


def test_a_log_is_named_by_its_error_which_the_summary_keeps() -> None:
    lengths = SUMMARIZER.shorten(LOG)
    assert lengths.micro == "2026-03-01 10:00:31 ERROR worker 31 lost its connection to db-7"
    assert lengths.summary.startswith(LOG.splitlines()[0])
    assert "\n…\n2026-03-01 10:00:31 ERROR worker 31 lost its connection to db-7\n…\n" in lengths.summary
    assert lengths.summary.endswith(LOG.splitlines()[-1])


@pytest.mark.parametrize(("indent", "count"), [(None, 40), (2, 40), (None, 4000), (2, 4000)])
def test_json_is_cut_and_not_read_as_prose(indent: int | None, count: int) -> None:
    data = {"name": "foveate", "items": [{"id": number, "note": "It works. Really."} for number in range(count)]}
    lengths = SUMMARIZER.shorten(json.dumps(data, indent=indent))
    assert "foveate" in lengths.micro
    assert lengths.summary.startswith("{")
    assert "…" in lengths.summary


CLASS = """\
class Cache:
    def __init__(self) -> None:
        self.items = {}

    def get(self, key):
        return self.items[key]

    def put(self, key, value):
        self.items[key] = value
"""
YAML = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: billing
spec:
  template:
    spec:
      containers:
        - name: api
          image: x/y
"""
DIFF = """\
diff --git a/x.py b/x.py
index 1..2 100644
--- a/x.py
+++ b/x.py
@@ -1,2 +1,2 @@
-old = 1
+value = compute(2)
 keep = 3
"""
TABLE = "| Service | Port |\n|---|---|\n| billing | 5432 for the database of the accounts |\n| search | 9200 |\n"
NOTES = """\
Attendees: Ann, Bob, Carl
We talked about the budget for a while and had no coffee left.
Outcome: the launch moves to May.
See you next week.
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (CLASS, "class Cache: get, put"),
        (
            CLASS.replace("    def __init__", '    """Keeps what was read."""\n\n    def __init__'),
            "class Cache: Keeps what was read.",
        ),
        (
            json.dumps({"error": {"code": 17, "message": "no such table"}, "rows": list(range(40))}, indent=2),
            "message: no such table",
        ),
        (YAML, "kind: Deployment; name: billing"),
        (DIFF, "diff a/x.py: +value = compute(2)"),
        (TABLE, "Service, Port; billing, 5432 for the database of the accounts"),
        (NOTES, "Outcome: the launch moves to May."),
        (NOTES.replace("Outcome", "Root cause"), "Root cause: the launch moves to May."),
        ("## Rules\n- use tabs\n- no spaces", "Rules; use tabs; no spaces"),
        ("Run this:\n```sh\nmake all\n```", "Run this: make all"),
    ],
)
def test_a_micro_says_something(text: str, expected: str) -> None:
    assert micro(text) == expected


def test_json_without_telling_keys_is_flattened() -> None:
    text = json.dumps({"a": {"b": [1, 2, 3]}, "c": list(range(100))}, indent=2)
    assert micro(text).startswith('{ "a": { "b": [ 1, 2, 3 ] }')


def test_items_and_headings_start_on_a_line_of_their_own() -> None:
    text = (
        "# Runbook: restoring the billing database\n- The tool must be installed because the restore needs it.\n"
        "- A recent dump is important and must exist.\n1. Stop the service, never skip it.\n2. Restore the dump.\n"
        + " ".join(f"Is it {word * 3}?" for word in "abcdefghijklmnopqrstuvwxyz" * 2)
    )
    kept = summary(text)
    assert kept.startswith("# Runbook: restoring the billing database\n- The tool must")
    assert "\n- A recent dump" in kept
    assert "\n1. Stop the service" in kept
    assert not re.search(r"[^\n](?:- The|- A|1\. Stop)", kept)


def test_a_summary_has_no_open_fence() -> None:
    assert "```" not in summary("Run this and wait for it to finish:\n```sh\nmake all")
    assert summary("Do:\n```sh\nmake\n```").count("```") == 2
    assert summary("```python\n" + "value = compute(value)\n" * 60).count("```") % 2 == 0


# --- counts --------------------------------------------------------------------------------------------------------

LONG = {
    "a decision": DECISION * 4,
    "English": "We moved the cache to Redis, because the old one lost its keys with every restart. " * 8,
    "Russian": "Мы решили хранить кэш в Redis, потому что старый терял ключи при каждом запуске. " * 8,
    "Hindi": "हमने साझा भंडारण के लिए पोस्टग्रेस का उपयोग करने का निर्णय लिया। " * 8,
    "Chinese": CHINESE * 4,
    "a rare script in sentences": f"{'𐎀𐎁𐎂 ' * 9}. {'word ' * 90}. " * 2,
    "emoji": "🧑‍🚀🚀 " * 120,
    "one line of hashes": " ".join(f"{n * 0x9E3779B97F4A7C15 % 2**128:032x}" for n in range(1, 60)),
    "numbers": "The run gave " + ", ".join(f"{n * 0.618034 % 1:.6f}" for n in range(90)) + ".",
    "JSON": json.dumps({f"key_{n}": {"id": n, "values": [n, n + 1]} for n in range(50)}),
    "JSON in lines": json.dumps([{"value": n * 0.618034 % 1} for n in range(60)], indent=1),
    "a log": LOG,
    "code": CODE * 6,
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG.keys())
def test_a_summary_of_any_writing_has_50_to_100_tokens(text: str) -> None:
    assert tokens.count(text) > 100
    assert 50 <= tokens.count(summary(text)) <= 100


def test_a_text_of_up_to_100_tokens_is_its_own_summary_however_wide() -> None:
    text = "Мы решили хранить кэш в Redis, потому что старый терял ключи при каждом запуске. " * 4
    assert tokens.count(text) <= 100
    assert summary(text) == text.strip()


# --- properties ----------------------------------------------------------------------------------------------------

PIECES = st.sampled_from(
    [
        *("We decided to use it because it is fast. ", "Why? ", "Hello! ", "e.g. ", "- item ", "# Title\n", "1. "),
        *("```", "```py\nx = 1\n```\n", "{", "}", '"key": 1,\n', "def f():\n    return 1\n", "ValueError: no\n"),
        *("Traceback (most recent call last):\n", "2026-03-01 10:00:00 ERROR no\n", "a" * 90, "word " * 30),
        *("我们决定了。", "！", "…", ". ", ", and so on; ", "😀", "é", "\n", "\n\n", "\t", " ", "\u3000"),
    ]
)
TEXTS = st.lists(PIECES | st.text(max_size=12), max_size=40).map("".join)


@given(TEXTS)
def test_both_lengths_keep_to_their_room_and_their_text(text: str) -> None:
    lengths = SUMMARIZER.shorten(text)
    visible = bool(text.strip())
    for short in (lengths.summary, lengths.micro):
        assert bool(short) == visible
        assert short == short.strip()
        assert len(short) <= len(text)
    assert tokens.count(lengths.summary) <= 100
    assert width(lengths.micro) <= 20
    assert len(lengths.micro.splitlines()) <= 1
    assert lengths == SUMMARIZER.shorten(text)


@given(TEXTS)
def test_the_micro_is_its_own_micro(text: str) -> None:
    short = micro(text)
    assert SUMMARIZER.shorten(short) == Lengths(short, short)


@given(TEXTS, st.text(max_size=40))
def test_a_title_changes_the_choice_and_not_the_bounds(text: str, title: str) -> None:
    lengths = SUMMARIZER.shorten(text, title)
    assert tokens.count(lengths.summary) <= 100
    assert width(lengths.micro) <= 20
    assert bool(lengths.micro) == bool(text.strip())


# --- time ----------------------------------------------------------------------------------------------------------

MEGABYTE = 1_000_000


@pytest.mark.parametrize(
    "piece",
    [
        DECISION,
        LOG + "\n",
        CODE,
        CHINESE,
        "a",
        "a.\n",
        ". ",
        "\n",
        "```",
        " ",
        "-",
        "{",
        "。",
        "a b",
        "x\n ",
        "1. ",
        '"',
        "!?",
    ],
)
def test_a_megabyte_takes_linear_time(piece: str) -> None:
    text = "start " + piece * (MEGABYTE // len(piece)) + " end"
    start = time.process_time()
    SUMMARIZER.shorten(text)
    assert time.process_time() - start < 5.0  # seconds where it is linear, hours where it is not; the machine may be busy
