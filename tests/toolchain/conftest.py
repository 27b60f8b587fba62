"""Every toolchain test has its own cache folder, so that nothing is green because of an earlier run."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsv4gen.base import env


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder named by the environment."""
    folder = tmp_path / "cache"
    monkeypatch.setenv(env.CACHE_DIR.name, str(folder))
    return folder


@pytest.fixture
def odd_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose name breaks every tool that goes through a shell; also the working folder."""
    folder = tmp_path / "a b" / "ü'$(touch x)"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder
