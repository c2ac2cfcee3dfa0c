"""Jobs of other tools for `bench.codeindex`, in their own environment: `PEERS/bin/python bench/peers.py COMMAND ...`.

A command prints one line of JSON with the CPU seconds of each step. Only the standard library is imported at the top,
because foveate is not installed in that environment. `foveate eval` measures the results of these tools, this script their
cost.

semble needs an embedding model from a hub. If the environment has wordllama 0.3.9, a model with its weights (256 numbers a
word) replaces it; otherwise one that gives every text the same vector, and the index does only a part of its work.
"""

from __future__ import annotations

import importlib.util
import json
import os
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

SCRIPT = Path(__file__).with_name("systems") / "peer_process.py"


def peer_process() -> SimpleNamespace:
    """Return the names of the script that `foveate eval` runs in the peers' environment."""
    return SimpleNamespace(**runpy.run_path(str(SCRIPT)))


def cpu() -> float:
    """Return the user and system seconds of this process and of its ended children."""
    return sum(os.times()[:4])


def time_step(steps: dict[str, float], name: str, job: Callable[[], object]) -> object:
    began = cpu()
    result = job()
    steps[name] = cpu() - began
    return result


def semble_index(root: str, cache: str) -> None:
    os.environ["SEMBLE_CACHE_LOCATION"] = cache
    from semble import SembleIndex
    from semble.cache import save_index_to_cache

    model = word_vectors(Path(cache, "model"))
    embeds = model is not None
    model = model or peer_process().make_placeholder_model(Path(cache, "model"))
    steps: dict[str, float] = {"start": cpu()}
    time_step(steps, "index", lambda: save_index_to_cache(SembleIndex.from_path(root, model_path=model), root))
    answer({"steps": steps, "embeds": embeds})


def word_vectors(folder: Path) -> str | None:
    """Write the weights of wordllama in the format that semble loads, if it is installed."""
    spec = importlib.util.find_spec("wordllama")
    if spec is None or spec.origin is None:
        return None
    from model2vec import StaticModel
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    package = Path(spec.origin).parent
    (weights,) = load_file(package / "weights" / "l2_supercat_256.safetensors").values()
    tokenizer = Tokenizer.from_file(str(package / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    StaticModel(weights, tokenizer).save_pretrained(folder)
    return str(folder)


def aider_map(root: str, budget: str, *questions: str) -> None:
    """Compute a repository map for each question in turn. The first one is cold if there is no cache."""
    script = peer_process()
    model = script.token_counter_model()
    repo_map = script.build_repo_map(root, int(budget), model)
    files = [str(Path(root, name)) for name in script.tracked_files(root)]
    steps: dict[str, float] = {"start": cpu()}
    tokens = []
    for question in questions:
        words = set(question.split())
        text = time_step(steps, question, lambda words=words: repo_map.get_repo_map([], files, mentioned_idents=words))
        tokens.append(model.token_count(str(text or "")))
    answer({"steps": steps, "tokens": tokens})


def answer(value: object) -> None:
    print(json.dumps(value), flush=True)


# --- the other side ------------------------------------------------------------------------------------------------


def python() -> str | None:
    """Return the interpreter of the peers' environment, if the user has named one."""
    folder = os.environ.get("FOVEATE_EVAL_PEERS") or os.environ.get("FOVEATE_BENCH_PEERS")
    if not folder:
        return None
    python = Path(folder, "bin", "python")
    return str(python) if python.exists() else None


VERBS: dict[str, Callable[..., None]] = {
    "semble-index": semble_index,
    "aider-map": aider_map,
}

if __name__ == "__main__":
    VERBS[sys.argv[1]](*sys.argv[2:])
