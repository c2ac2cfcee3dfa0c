"""Runs a tool through its public interface, inside its own environment: `python -I peer_process.py VERB FOLDER`.

Requests and answers are lines of JSON; FOLDER is for indexes. Only the standard library is imported at the top, because
foveate may not be installed in that environment.

semble needs an embedding model from a hub. Unless a request names a folder with one, a model that gives every text the same
vector replaces it, and searches use `alpha=0`: BM25 and its ranking, without the semantic part.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

MAX_CHUNKS = 100
"""Enough to fill 32,000 tokens."""
RequestHandler = Callable[[dict[str, Any]], Any]


def semble(folder: str) -> RequestHandler:
    """Answer `{root, query, model}` with the best chunks: path, first line, last line, text."""
    os.environ.update(SEMBLE_CACHE_LOCATION=folder)
    from semble import SembleIndex
    from semble.cache import save_index_to_cache

    def chunks(request: dict[str, Any]) -> list[list[Any]]:
        model = request["model"] or make_placeholder_model(Path(folder, "model"))
        index = SembleIndex.from_path(request["root"], model_path=model)
        save_index_to_cache(index, request["root"])
        results = index.search(request["query"], top_k=MAX_CHUNKS, alpha=None if request["model"] else 0.0)
        return [[one.chunk.file_path, one.chunk.start_line, one.chunk.end_line, one.chunk.content] for one in results]

    return chunks


def make_placeholder_model(folder: Path) -> str:
    """Write a model without knowledge, in the format that semble loads."""
    if not folder.is_dir():
        import numpy
        from model2vec import StaticModel
        from tokenizers import Tokenizer, models

        tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
        StaticModel(numpy.ones((1, 8), dtype=numpy.float32), tokenizer).save_pretrained(folder)
    return str(folder)


def token_counter_model() -> Any:
    """Return the part of a model that aider needs: token counts, by the tokenizer that was installed with it."""
    import importlib.util

    litellm = importlib.util.find_spec("litellm")
    assert litellm is not None
    assert litellm.origin is not None
    os.environ.update(TIKTOKEN_CACHE_DIR=str(Path(litellm.origin).parent / "litellm_core_utils" / "tokenizers"))
    import tiktoken

    encoding = tiktoken.get_encoding("cl100k_base")

    class Model:
        def token_count(self, text: str) -> int:
            return len(encoding.encode(text, disallowed_special=()))

    return Model()


def build_repo_map(root: str, budget: int, model: Any) -> Any:
    """Return aider's object for maps of a repository with a budget."""
    from aider.io import InputOutput
    from aider.repomap import RepoMap

    io = InputOutput(pretty=False, yes=True, fancy_input=False)
    return RepoMap(map_tokens=budget, root=root, main_model=model, io=io, map_mul_no_files=1)


def tracked_files(root: str) -> list[str]:
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z"], check=True, capture_output=True, text=True).stdout
    return [name for name in listed.split("\0") if name and Path(root, name).is_file()]


def aider(folder: str) -> RequestHandler:
    """Answer `{root, query, budget}` with the map for a message with that text and no file in the chat."""
    model = token_counter_model()
    from aider.coders.base_coder import Coder
    from aider.repomap import RepoMap

    RepoMap.TAGS_CACHE_DIR = str(Path(folder, "tags").absolute())  # by default it is written into the repository
    Path(folder).mkdir(parents=True, exist_ok=True)

    class Chat(Coder):  # type: ignore[misc]
        """The part of a chat that finds the files and names that a message mentions."""

        abs_read_only_fnames: tuple[str, ...] = ()

        def __init__(self, files: list[str]) -> None:
            self.files = files

        def __del__(self) -> None: ...

        def get_all_relative_files(self) -> list[str]:
            return self.files

        def get_addable_relative_files(self) -> list[str]:
            return self.files

        def get_inchat_relative_files(self) -> list[str]:
            return []

    def repo_map(request: dict[str, Any]) -> str:
        root, query = request["root"], request["query"]
        files = tracked_files(root)
        chat = Chat(files)
        names = chat.get_ident_mentions(query)
        mentioned = chat.get_file_mentions(query) | chat.get_ident_filename_matches(names)
        full = [str(Path(root, name)) for name in files]
        return (
            build_repo_map(root, request["budget"], model).get_repo_map(
                [], full, mentioned_fnames=mentioned, mentioned_idents=names
            )
            or ""
        )

    return repo_map


def main(verb: str, folder: str) -> None:
    out = sys.stdout
    sys.stdout = sys.stderr  # tools print messages, which must not mix with answers
    handle = {"semble": semble, "aider": aider}[verb](folder)
    for line in sys.stdin:
        out.write(json.dumps(handle(json.loads(line))) + "\n")
        out.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
