"""A project with something in it, and servers on it that are reached in every way that there is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from mcp_client import ROOT, Command

import foveate


@pytest.fixture
def environment(home: Path) -> dict[str, str]:
    """The environment of a child process, which imports these sources."""
    paths = [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one decision."""
    folder = tmp_path / "shop"
    folder.mkdir()
    with foveate.open(folder) as engine:
        engine.add("decision", "Chose Postgres over ChromaDB for unified storage")
    return folder


@pytest.fixture
def command(project: Path, environment: dict[str, str]) -> Command:
    return Command(project, environment)
