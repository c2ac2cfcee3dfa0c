"""An adapter without its framework says what to install."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import foveate.integrations

FOLDER = Path(foveate.integrations.__file__).parent


def adapters() -> Iterator[tuple[str, str, str]]:
    """Yield each module that needs an extra, the first package that it imports, and the name of the extra."""
    for path in sorted(FOLDER.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.With) and ast.unparse(node.items[0]).startswith("requires_extra("):
                call, first = node.items[0].context_expr, node.body[0]
                assert isinstance(call, ast.Call)
                package = first.module if isinstance(first, ast.ImportFrom) else ast.unparse(first).split()[1]
                yield path.stem, str(package), ast.literal_eval(call.args[0])


@pytest.mark.parametrize(("adapter", "package", "extra"), list(adapters()))
def test_the_extra_is_named(adapter: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"foveate.integrations.{adapter}", raising=False)
    with pytest.raises(ImportError, match=rf"pip install foveate\[{extra}\]"):
        import_module(f"foveate.integrations.{adapter}")
