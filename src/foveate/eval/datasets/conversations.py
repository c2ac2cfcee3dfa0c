"""Public data sets of conversations: LoCoMo, REALTALK, LongMemEval (also with its turns in one pool) and BEAM.

Documents are messages (*turns*). Evidence is the turns that a question needs and, except in BEAM, their sessions. A turn is
stored as it is and counts only if all of it is in the prompt. If the data have answers, a second figure (*passage*) also
counts a part of a turn that has every content word of the answer. Questions without evidence in the data are skipped.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from foveate.errors import InputError, NotFound
from foveate.eval.evidence import AnyEvidence, EvidenceText, session_evidence, turn_evidence
from foveate.eval.model import Case, Dataset, Document, Evidence, Subset, Suite
from foveate.eval.reading import (
    MalformedData,
    data_errors_at,
    find_data_file,
    load_json,
    message_text,
    open_text,
    parse_date,
    read_jsonl,
    require_date,
)

# --- LoCoMo: conversations of two people over months ---------------------------------------------------------------
#
# A list of conversations: `conversation.session_N` lists turns with a `dia_id`, and `qa` lists questions with `evidence`.

LOCOMO_FORMAT = (
    "a list of conversations with conversation (session_N: turns of dia_id, speaker and text; session_N_date_time) "
    "and qa (question, evidence, category)"
)
LOCOMO_QUESTION_TYPES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
_TURN_ID = re.compile(r"D:?(\d+):0*(\d+)")


def _locomo_files(path: Path) -> list[Path]:
    return [find_data_file(path, "locomo", "conversations*.json", "locomo*.json")]


def _locomo_subsets(path: Path, options: Mapping[str, str]) -> Iterator[Subset]:
    (file,) = _locomo_files(path)
    with_captions = options.get("captions") == "yes"
    for n, sample in enumerate(load_json(file), 1):
        yield Subset(str(sample.get("sample_id", n)), partial(_locomo_dataset, sample, with_captions))


def _locomo_dataset(sample: Mapping[str, Any], with_captions: bool = False) -> Dataset:
    conversation = sample["conversation"]
    documents = {
        id: Document(
            id=id,
            text=_locomo_text(turn, with_captions),
            session=name,
            timestamp=require_date(conversation[f"{name}_date_time"], "%I:%M %p on %d %B, %Y", "1:56 pm on 8 May, 2023"),
        )
        for name, turns in conversation.items()
        if isinstance(turns, list)
        for turn in turns
        if turn["text"].strip()
        for id in _parse_turn_ids([turn["dia_id"]])
    }
    if not documents:
        raise MalformedData("the conversation has no turns")
    last_date = max(document.timestamp or "" for document in documents.values())
    cases = []
    for n, question in enumerate(sample["qa"], 1):
        ids = _parse_turn_ids(question["evidence"])
        if ids and all(id in documents for id in ids):
            cases.append(_locomo_case(str(n), question, [documents[id] for id in ids], last_date))
    return Dataset(cases, list(documents.values()), skipped_cases=len(sample["qa"]) - len(cases))


def _locomo_case(id: str, question: Mapping[str, Any], documents: Sequence[Document], last_date: str) -> Case:
    turns = turn_evidence([(document.id, document.text) for document in documents], question.get("answer"))
    sessions = session_evidence([(document.session or "", document.text) for document in documents])
    question_type = LOCOMO_QUESTION_TYPES.get(question["category"], str(question["category"]))
    return Case(id, question["question"], (*turns, *sessions), question_type=question_type, now=last_date)


def _locomo_text(turn: Mapping[str, Any], with_captions: bool) -> str:
    caption = turn.get("blip_caption") if with_captions else None
    return f"{turn['speaker']}: {turn['text']}" + (f" [shows {caption}]" if caption else "")


def _parse_turn_ids(names: Sequence[str]) -> list[str]:
    """Parse the spellings in the data: `D1:3`, `D:1:03` and `D1:3; D2:4` become `D1:3` and `D2:4`, each once."""
    return list(dict.fromkeys(f"D{a}:{int(b)}" for name in names for a, b in _TURN_ID.findall(name)))


LOCOMO = Suite(
    name="locomo",
    description="LoCoMo: conversations over months; evidence is turns and their sessions",
    subsets=_locomo_subsets,
    files=_locomo_files,
    data_format=LOCOMO_FORMAT,
    options={"captions": "yes: also store what shared pictures show, as in LoCoMo's own prompts"},
    rank_cutoffs={"session": (5, 10), "turn": (10,)},
)

# --- REALTALK: chats of real people over three weeks ---------------------------------------------------------------
#
# A file for each chat, in nearly LoCoMo's format. A session has the date of its first message.

REALTALK_PATTERN = "Chat_*.json"
REALTALK_FORMAT = (
    "a chat with session_N (messages of dia_id, speaker, clean_text and date_time) and qa (question, evidence, category)"
)


def _realtalk_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    for folder in (path, path / "realtalk", path / "data"):
        if files := sorted(folder.glob(REALTALK_PATTERN), key=_chat_number):
            return files
    raise NotFound(f"{str(path)!r} contains no data of 'realtalk': no file matches {REALTALK_PATTERN}.")


def _realtalk_subsets(path: Path, options: Mapping[str, str]) -> Iterator[Subset]:
    for file in _realtalk_files(path):
        yield Subset(file.stem, partial(_realtalk_dataset, file))


def _chat_number(file: Path) -> tuple[int, str]:
    """Sort `Chat_2_...` before `Chat_10_...`."""
    number = file.name.split("_")[1]
    return int(number) if number.isdigit() else 0, file.name


def _realtalk_dataset(file: Path) -> Dataset:
    chat = load_json(file)
    conversation: dict[str, Any] = {}
    for name, messages in chat.items():
        if name.startswith("session_") and isinstance(messages, list) and messages:
            conversation[name] = [{**message, "text": message["clean_text"]} for message in messages]
            date = require_date(messages[0]["date_time"], "%d.%m.%Y, %H:%M:%S", "29.12.2023, 22:42:04")
            conversation[f"{name}_date_time"] = date
    questions = [
        {**question, "evidence": question.get("evidence") if isinstance(question.get("evidence"), list) else []}
        for question in chat["qa"]
    ]
    return _locomo_dataset({"conversation": conversation, "qa": questions})


REALTALK = Suite(
    name="realtalk",
    description="REALTALK: chats of real people; evidence is messages and their sessions",
    subsets=_realtalk_subsets,
    files=_realtalk_files,
    data_format=REALTALK_FORMAT,
    rank_cutoffs=LOCOMO.rank_cutoffs,
)

# --- LongMemEval: a question, and a haystack of conversations with an assistant ------------------------------------
#
# A list of questions, each with its own haystack: `haystack_sessions` lists sessions as turns of `role` and `content`,
# `answer_session_ids` names the sessions with the evidence, and `has_answer` marks its turns. A session is present if one of
# its marked turns is, or any of its turns if none is marked.

LONGMEMEVAL_FORMAT = (
    "a list of questions with question_id, question, answer_session_ids, and for each session of the haystack "
    "haystack_session_ids, haystack_dates and haystack_sessions (turns of role and content)"
)
ABSTENTION_SUFFIX = "_abs"
READ_CHUNK_CHARS = 1 << 22
LONGMEMEVAL_DATE_FORMATS = ("%Y/%m/%d %H:%M", "%Y/%m/%d")
_SEPARATOR = re.compile(r"[\s,]*")
_WEEKDAY = re.compile(r"\s*\(\w+\)")


def _longmemeval_files(path: Path) -> list[Path]:
    return [find_data_file(path, "longmemeval", "longmemeval*.json")]


def _longmemeval_subsets(path: Path, options: Mapping[str, str]) -> Iterator[Subset]:
    (file,) = _longmemeval_files(path)
    for question in _longmemeval_questions(file):
        yield Subset(str(question["question_id"]), partial(_longmemeval_dataset, question))


def _longmemeval_dataset(question: Mapping[str, Any]) -> Dataset:
    if str(question["question_id"]).endswith(ABSTENTION_SUFFIX):
        return Dataset([], skipped_cases=1)
    gold = frozenset(_gold_sessions(question["answer_session_ids"]))
    documents: list[Document] = []
    gold_turns: list[tuple[str, str]] = []
    sessions: list[AnyEvidence] = []
    for n, (id, date, turns) in enumerate(_haystack(question), 1):
        # The ids of gold sessions begin with `answer`, so the place in the haystack replaces them.
        session, timestamp = f"session {n}", _longmemeval_date(date)
        stored = [
            (turn, _turn_document(session, m, turn, timestamp))
            for m, turn in enumerate(turns, 1)
            if message_text(turn["content"])
        ]
        documents += [document for _, document in stored]
        marked = [document for turn, document in stored if turn.get("has_answer")]
        gold_turns += [(document.id, document.text) for document in marked]
        if id in gold:
            texts = tuple(document.text for document in marked or [document for _, document in stored])
            sessions.append(AnyEvidence(session, texts))
    expected: tuple[Evidence, ...] = (*turn_evidence(gold_turns, question.get("answer")), *sessions)
    if not expected:
        return Dataset([], skipped_cases=1)
    case = Case(
        str(question["question_id"]),
        question["question"],
        expected,
        question_type=str(question.get("question_type", "")),
        now=_longmemeval_date(question.get("question_date")),
    )
    return Dataset([case], documents)


def _gold_sessions(session_ids: Any) -> list[str]:
    if not isinstance(session_ids, list):
        raise MalformedData(f"answer_session_ids must be a list of ids, got {session_ids!r}")
    return session_ids


def _haystack(question: Mapping[str, Any]) -> Iterator[tuple[str, Any, list[Mapping[str, Any]]]]:
    columns = [question[name] for name in ("haystack_session_ids", "haystack_dates", "haystack_sessions")]
    if len(set(map(len, columns))) != 1:
        raise MalformedData("haystack_session_ids, haystack_dates and haystack_sessions differ in length")
    return zip(*columns, strict=True)


def _turn_document(session: str, n: int, turn: Mapping[str, Any], timestamp: str | None) -> Document:
    text = f"{turn['role']}: {message_text(turn['content'])}"
    return Document(id=f"{session}, turn {n}", text=text, session=session, timestamp=timestamp)


def _longmemeval_date(text: str | None) -> str | None:
    """Parse a date such as `2023/05/20 (Sat) 02:21`; None if there is no text."""
    date = parse_date(_WEEKDAY.sub("", text), *LONGMEMEVAL_DATE_FORMATS) if text else None
    if text and date is None:
        raise MalformedData(f"{text!r} is not a date such as 2023/05/20 (Sat) 02:21")
    return date


def _longmemeval_questions(path: Path) -> Iterator[Any]:
    """Yield the items of the list one by one: a file has several GB, so only one question is in memory at a time."""
    decode = json.JSONDecoder().raw_decode
    with open_text(path) as file:
        text = file.read(READ_CHUNK_CHARS).lstrip()
        if not text.startswith("["):
            raise InputError(f"{str(path)!r} is not data of 'longmemeval'. Expected: {LONGMEMEVAL_FORMAT}.")
        at = 1
        while True:
            at = _SEPARATOR.match(text, at).end()  # type: ignore[union-attr]
            if text.startswith("]", at):
                return
            try:
                item, at = decode(text, at)
            except ValueError as error:
                more = file.read(READ_CHUNK_CHARS)
                if not more:
                    raise InputError(f"{str(path)!r} is not JSON: {error}.") from None
                text, at = text[at:] + more, 0
            else:
                yield item


LONGMEMEVAL = Suite(
    name="longmemeval",
    description="LongMemEval: a haystack of conversations for each question; evidence is turns and sessions",
    subsets=_longmemeval_subsets,
    files=_longmemeval_files,
    data_format=LONGMEMEVAL_FORMAT,
    rank_cutoffs={"session": (5, 10), "turn": (10,)},
)

# --- LongMemEval turns, pooled: the sessions with evidence of all questions in one store ---------------------------
#
# Not the official split. `sessions.jsonl` has a session of one person with an assistant in each line, `questions.jsonl` a
# question with the turns that it needs as pairs of a session and a position. Turns are stored as messages, and each
# question is asked in a new session.

SESSIONS_FILE, POOLED_QUESTIONS_FILE = "sessions.jsonl", "questions.jsonl"
POOLED_FORMAT = (
    f"{SESSIONS_FILE}: lines of session, date and turns (role and content); "
    f"{POOLED_QUESTIONS_FILE}: lines of id, type, question, date, answer and evidence (pairs of a session and a position)"
)


def _pooled_files(path: Path) -> list[Path]:
    for folder in (path, path / "longmemeval"):
        files = [folder / SESSIONS_FILE, folder / POOLED_QUESTIONS_FILE]
        if all(file.is_file() for file in files):
            return files
    raise NotFound(f"{str(path)!r} contains no {SESSIONS_FILE} with a {POOLED_QUESTIONS_FILE}; name their folder.")


def _pooled_subsets(path: Path, options: Mapping[str, str]) -> Iterator[Subset]:
    sessions, questions = _pooled_files(path)
    yield Subset("pool", partial(_pooled_dataset, sessions, questions, options.get("sample")))


def _pooled_dataset(sessions: Path, questions: Path, sample: str | None) -> Dataset:
    documents = {document.id: document for _, session in read_jsonl(sessions) for document in _pooled_documents(session)}
    lines = _sample([question for _, question in read_jsonl(questions)], sample)
    cases = [case for question in lines if (case := _pooled_case(question, documents))]
    return Dataset(cases, list(documents.values()), skipped_cases=len(lines) - len(cases))


def _pooled_documents(session: Mapping[str, Any]) -> Iterator[Document]:
    name, timestamp = session["session"], _longmemeval_date(session["date"])
    for n, turn in enumerate(session["turns"]):
        if text := message_text(turn["content"]):
            id = _pooled_id(name, n)
            yield Document(id=id, text=text, kind="event", session=name, timestamp=timestamp, role=turn["role"])


def _pooled_case(question: Mapping[str, Any], documents: Mapping[str, Document]) -> Case | None:
    """Return the case of a question, or None if one of its turns is missing."""
    turns = [documents.get(_pooled_id(*position)) for position in question["evidence"]]
    found = [turn for turn in turns if turn]
    if not found or len(found) < len(turns):
        return None
    expected: tuple[Evidence, ...] = (
        *turn_evidence([(turn.id, turn.text) for turn in found], question.get("answer")),
        *session_evidence([(turn.session or "", turn.text) for turn in found]),
    )
    return Case(
        question["id"],
        question["question"],
        expected,
        question_type=question["type"],
        now=_longmemeval_date(question["date"]),
        options={"session": f"question {question['id']}"},
    )


def _pooled_id(session: str, n: int) -> str:
    return f"{session}, turn {n}"


def _sample(questions: list[Any], size: str | None) -> list[Any]:
    """Return this many questions from all parts of a list, or all of them."""
    if size is None:
        return questions
    if not (size.isascii() and size.isdigit() and int(size)):
        raise InputError(f"sample must be a number of questions, got {size!r}.")
    count = min(int(size), len(questions))
    return [questions[n * len(questions) // count] for n in range(count)]


LONGMEMEVAL_TURNS = Suite(
    name="longmemeval-turns",
    description="LongMemEval turns, pooled: an assistant's conversations in one store; evidence is turns and sessions",
    subsets=_pooled_subsets,
    files=_pooled_files,
    data_format=POOLED_FORMAT,
    options={"sample": "N: only N questions, from all parts of the data"},
    rank_cutoffs=LONGMEMEVAL.rank_cutoffs,
)

# --- BEAM: very long chats with an assistant -----------------------------------------------------------------------
#
# A chat is a folder. `chat.json` lists batches with `turns` (lists of messages: `role`, `id`, `content` and sometimes a
# `time_anchor`). `probing_questions.json` lists questions by type, each with `source_chat_ids`: a list, or lists by name.
# The path is the folder of one chat, of several chats, or of sizes that contain chats.

CHAT_FILE, QUESTIONS_FILE = "chat.json", "probing_questions.json"
BEAM_FORMAT = f"{CHAT_FILE}: batches with turns of role, id and content; {QUESTIONS_FILE}: questions by type"
BEAM_DATE_FORMATS = ("%B-%d-%Y", "%B %d, %Y")
# User messages end in a marker of the plan that they were written from, such as `->-> 1,2`.
_TRAILING_MARKER = re.compile(r"\s*->->[^\n]*\s*\Z")


def _beam_files(path: Path) -> list[Path]:
    return [file for folder in _chat_folders(path).values() for file in (folder / CHAT_FILE, _questions_file(folder))]


def _beam_subsets(path: Path, options: Mapping[str, str]) -> Iterator[Subset]:
    for name, folder in _chat_folders(path).items():
        yield Subset(name, partial(_beam_dataset, folder))


def _chat_folders(path: Path) -> dict[str, Path]:
    """Return the folders of chats by names that are the same for every path that leads to them."""
    folders = [chat.parent.absolute() for chat in path.rglob(CHAT_FILE)] if path.is_dir() else []
    if not folders:
        raise NotFound(f"{str(path)!r} contains no data of 'beam': no folder with {CHAT_FILE} and {QUESTIONS_FILE}.")
    above = os.path.commonpath(folders) if len(folders) > 1 else folders[0].parent
    by_name = {str(folder.relative_to(above)): folder for folder in folders}
    return {name: by_name[name] for name in sorted(by_name, key=_natural_sort_key)}


def _questions_file(folder: Path) -> Path:
    for file in (folder / QUESTIONS_FILE, folder / "probing_questions" / QUESTIONS_FILE):
        if file.exists():
            return file
    raise NotFound(f"{str(folder)!r} has no {QUESTIONS_FILE}; each chat needs its questions.")


def _beam_dataset(folder: Path) -> Dataset:
    questions_file = _questions_file(folder)
    with data_errors_at(repr(str(folder / CHAT_FILE)), BEAM_FORMAT):
        documents = list(_with_unique_ids(_beam_documents(load_json(folder / CHAT_FILE))))
        last_date = max((document.timestamp or "" for document in documents), default="") or None
    texts = {document.id: document.text for document in documents}
    cases = []
    skipped = 0
    with data_errors_at(repr(str(questions_file)), BEAM_FORMAT):
        for question_type, questions in load_json(questions_file).items():
            for n, question in enumerate(questions, 1):
                ids = list(dict.fromkeys(_source_ids(question.get("source_chat_ids"))))
                if ids and all(id in texts for id in ids):
                    expected = tuple(EvidenceText(id, texts[id]) for id in ids)
                    name = f"{question_type} {n}"
                    cases.append(Case(name, question["question"], expected, question_type=question_type, now=last_date))
                else:
                    skipped += 1
    return Dataset(cases, documents, skipped_cases=skipped)


def _beam_documents(chat: list[Mapping[str, Any]]) -> list[Document]:
    """Return the messages. A time anchor is valid until the next one, and the first one also before it."""
    messages = [(str(batch["batch_number"]), message) for batch in chat for turn in batch["turns"] for message in turn]
    anchors = [parse_date(message.get("time_anchor"), *BEAM_DATE_FORMATS) for _, message in messages]
    timestamp = next(filter(None, anchors), None)
    documents = []
    for (batch, message), anchor in zip(messages, anchors, strict=True):
        timestamp = anchor or timestamp
        content = _TRAILING_MARKER.sub("", message_text(message["content"]))
        if content.strip():
            text = f"{message['role']}: {content}"
            documents.append(Document(id=str(message["id"]), text=text, session=f"batch {batch}", timestamp=timestamp))
    return documents


def _with_unique_ids(documents: Sequence[Document]) -> Iterator[Document]:
    """Give messages that share an id new ids that no question names: the question is ambiguous."""
    counts = Counter(document.id for document in documents)
    for n, document in enumerate(documents, 1):
        yield document if counts[document.id] == 1 else replace(document, id=f"{document.id} (message {n})")


def _source_ids(sources: Any) -> Iterator[str]:
    """Yield the ids in lists and mappings of any depth."""
    if isinstance(sources, Mapping):
        sources = list(sources.values())
    if isinstance(sources, list):
        for part in sources:
            yield from _source_ids(part)
    elif sources is not None:
        yield str(sources)


def _natural_sort_key(name: str) -> list[tuple[int, str]]:
    """Sort 2 before 10."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]


BEAM = Suite(
    name="beam",
    description="BEAM: very long chats with questions of ten types; evidence is messages",
    subsets=_beam_subsets,
    files=_beam_files,
    data_format=BEAM_FORMAT,
    rank_cutoffs={"turn": (10,)},
)
