"""Imports point one way: cli -> server -> engine -> pipeline -> store, code -> text -> types.

Every import counts, also one inside a function or under TYPE_CHECKING. Only the rule on optional packages looks at what
runs when a module is imported.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "foveate"

LAYERS: tuple[tuple[str, ...], ...] = (
    ("types", "errors", "clock", "options"),
    ("text",),
    ("records", "code"),
    ("store",),
    ("memory",),
    ("tasks",),
    ("project",),
    ("pipeline",),
    ("receipts",),
    ("engine", "factory", "testing"),
    ("agents", "eval"),
    ("integrations",),
    ("operations",),
    ("server",),
    ("cli",),
)
"""Lowest first. A name stands for the module and, where it is a package, for everything below it."""

ROOT_LAYER = next(n for n, names in enumerate(LAYERS) if "engine" in names)
"""The package itself gives the engine's names: what is above the engine may import it, nothing else."""

FREE = ("foveate", "foveate.__main__")
"""May import from any layer."""

EXTRAS = frozenset(
    (
        "numpy", "pydantic", "fastapi", "starlette", "uvicorn", "limits", "prometheus_client", "opentelemetry",
        "mcp", "jinja2",
        "httpx", "httpx2", "matplotlib", "anthropic", "openai", "agents", "pydantic_ai", "langchain", "langchain_core",
        "langgraph", "llama_index", "agent_framework", "llm", "mem0", "graphiti_core", "psycopg", "psycopg_pool",
    )
)  # fmt: skip
"""Optional packages: the core can be imported without them."""

EDGES = (
    "foveate.integrations",
    "foveate.operations",
    "foveate.server",
    "foveate.cli",
    "foveate.store.sqlite.vectors",
    "foveate.store.postgres",
)
"""Not core: each needs its extra and says so. The segments of vectors are imported with the first search by vector."""


def modules(package: Path) -> dict[str, ast.Module]:
    """Every module below `package`, by its dotted name."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = [package.name, *path.relative_to(package).with_suffix("").parts]
        if parts[-1] == "__init__":
            parts.pop()
        found[".".join(parts)] = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    return found


def packages(package: Path) -> set[str]:
    """The dotted names that have an `__init__.py`."""
    return {".".join([package.name, *p.parent.relative_to(package).parts]) for p in package.rglob("__init__.py")}


def targets(node: ast.AST, name: str, is_package: bool, known: set[str]) -> Iterator[str]:
    """The dotted names that one statement imports; `from a import b` gives `a.b` where that is a module."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            here = name.split(".")
            here = here[: len(here) - node.level + is_package]
            base = ".".join([*here, *([node.module] if node.module else [])])
        for alias in node.names:
            below = f"{base}.{alias.name}"
            yield below if below in known else base


def imports(package: Path) -> dict[str, set[str]]:
    """Which of our modules each module imports."""
    trees, inits = modules(package), packages(package)
    known = set(trees)
    graph = {}
    for name, tree in trees.items():
        found = {t for node in ast.walk(tree) for t in targets(node, name, name in inits, known)}
        graph[name] = {t for t in found if t == package.name or t.startswith(f"{package.name}.")} - {name}
    return graph


def layer(name: str) -> int | None:
    """The layer of a dotted name, or None where it has no place."""
    if name in FREE:
        return ROOT_LAYER
    first = name.split(".")[1]
    return next((n for n, names in enumerate(LAYERS) if first in names), None)


def backward(graph: dict[str, set[str]]) -> Iterator[str]:
    """One line for each import that points up."""
    for name in sorted(set(graph) - set(FREE)):
        own = layer(name)
        for target in sorted(graph[name]):
            other = layer(target)
            too_high = own is not None and other is not None and other > own
            if too_high or (target in FREE and own == ROOT_LAYER):
                yield f"{name} imports {target}, which is above it: move what both need to a lower layer"


def homeless(graph: dict[str, set[str]]) -> Iterator[str]:
    """One line for each module that is in no layer."""
    for name in sorted(graph):
        if layer(name) is None:
            rows = "\n".join(f"    {n}: {', '.join(names)}" for n, names in enumerate(LAYERS))
            yield (
                f"{name} is in no layer: move it into one of the folders, or add {name.split('.')[1]!r} to LAYERS "
                f"in tests/unit/test_imports.py, above all that it imports (lowest first):\n{rows}"
            )


def cycles(graph: dict[str, set[str]]) -> Iterator[str]:
    """One line for the first cycle."""
    try:
        TopologicalSorter({name: {t for t in found if t in graph} for name, found in graph.items()}).prepare()
    except CycleError as error:
        yield f"cycle: {' -> '.join(reversed(error.args[1]))}"


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def run_at_import(node: ast.AST) -> Iterator[ast.AST]:
    """The statements that importing a module runs."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if is_type_checking(child):
            assert isinstance(child, ast.If)
            for other in child.orelse:
                yield other
                yield from run_at_import(other)
            continue
        yield child
        yield from run_at_import(child)


def extras(package: Path) -> Iterator[str]:
    """One line for each optional package that importing a core module would need."""
    for name, tree in modules(package).items():
        if any(name == edge or name.startswith(f"{edge}.") for edge in EDGES):
            continue
        for node in run_at_import(tree):
            for target in targets(node, name, False, set()):
                if target.split(".")[0] in EXTRAS:
                    yield f"{name}:{getattr(node, 'lineno', 0)} imports {target}: import it where it is used"


def problems(package: Path) -> list[str]:
    graph = imports(package)
    return [*homeless(graph), *backward(graph), *cycles(graph), *extras(package)]


@pytest.mark.slow
def test_imports_point_one_way() -> None:
    graph = imports(PACKAGE)
    found = [*homeless(graph), *backward(graph), *cycles(graph)]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.slow
def test_a_store_of_memories_loads_no_parser_and_no_code_index() -> None:
    program = (
        "import sys, foveate\n"
        "with foveate.open(':memory:') as engine:\n"
        "    engine.add('fact', 'Tea is green')\n"
        "    engine.context('Which tea?', profile='coding')\n"
        "print([name for name in ('tree_sitter', 'foveate.code.index', 'foveate.code.docs') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
def test_core_imports_without_optional_packages() -> None:
    found = list(extras(PACKAGE))
    assert not found, "\n" + "\n".join(found)


# --- the checks themselves -----------------------------------------------------------------------------------------


def write(tmp_path: Path, files: dict[str, str]) -> Path:
    package = tmp_path / "foveate"
    for name, text in files.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return package


@pytest.mark.parametrize(
    "files",
    [
        {
            "pipeline/scoring.py": "from foveate import types\nfrom foveate.store import protocol\n",
            "store/protocol.py": "from ..types import Record\n",
            "types.py": "",
        },
        {"store/__init__.py": "from .protocol import Store\n", "store/protocol.py": ""},
        {"__init__.py": "from .cli import main\n", "__main__.py": "from foveate.cli import main\n", "cli/__init__.py": ""},
        {"server/mcp.py": "import pydantic\nfrom foveate import open\n", "__init__.py": ""},
        {"text/embed.py": "if TYPE_CHECKING:\n    import numpy\ndef f():\n    import numpy\n"},
    ],
)
def test_forward_imports_pass(tmp_path: Path, files: dict[str, str]) -> None:
    assert problems(write(tmp_path, files)) == []


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"pipeline/budget.py": "def f():\n    from foveate.engine import Engine\n"},
            "foveate.pipeline.budget imports foveate.engine",
        ),
        (
            {"store/sqlite/store.py": "from ...pipeline.sources import recent\n"},
            "foveate.store.sqlite.store imports foveate.pipeline.sources",
        ),
        ({"pipeline/scoring.py": "import foveate\n"}, "foveate.pipeline.scoring imports foveate,"),
        ({"engine.py": "from foveate import open\n"}, "foveate.engine imports foveate,"),
        (
            {"store/a.py": "from .b import x\n", "store/b.py": "from foveate.store import a\n"},
            "cycle: foveate.store.",
        ),
        ({"managers.py": ""}, "foveate.managers is in no layer"),
        (
            {"text/embed.py": "try:\n    import numpy.linalg\nexcept ImportError:\n    pass\n"},
            "foveate.text.embed:2 imports numpy",
        ),
        ({"agents/base.py": "from pydantic import BaseModel\n"}, "foveate.agents.base:1 imports pydantic"),
    ],
)
def test_what_points_backward_is_named(tmp_path: Path, files: dict[str, str], message: str) -> None:
    found = problems(write(tmp_path, files))
    assert len(found) == 1
    assert message in found[0]
