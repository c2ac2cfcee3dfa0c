"""The reference pages say what the code says."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[1] / "docs" / "generate.py"


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_reference_pages_are_fresh(generate: ModuleType) -> None:
    assert generate.stale() == [], "run: python docs/generate.py"


def test_every_command_has_a_heading(generate: ModuleType) -> None:
    page = generate.cli_page()
    for commands in generate.COMMANDS.values():
        for path in commands:
            assert f"### foveate {path}\n" in page


def test_every_setting_is_explained(generate: ModuleType) -> None:
    page = generate.config_page() + generate.profiles_page()
    for name in (
        *generate.project.SETTING_TYPES,
        *generate.settings.PROFILE_SETTINGS,
        *generate.settings.SLOT_SETTINGS,
        *generate.settings.FEATURES,
    ):
        assert f"| `{name}` |" in page


def test_name_without_a_meaning_is_an_error(generate: ModuleType) -> None:
    with pytest.raises(generate.Gap, match="colour"):
        generate.told("settings", ["colour"], {})
    with pytest.raises(generate.Gap, match="gone"):
        generate.told("settings", [], {"gone": "It is no more."})


def test_check_names_the_page_that_is_stale(
    generate: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(generate, "PAGES", tmp_path)
    for name in ("ARCHITECTURE", "STATE"):  # pages of which a part is generated
        monkeypatch.setattr(generate, name, Path(shutil.copy(getattr(generate, name), tmp_path)))
    assert generate.main([]) == 0
    assert generate.main(["--check"]) == 0
    (tmp_path / "cli.md").write_text("old", "utf-8")
    assert generate.main(["--check"]) == 1
    assert "cli.md is stale" in capsys.readouterr().err
