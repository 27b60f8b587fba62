"""A private copy of the specs for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.specs import Copy, copy_specs


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    """Specs that a test may edit."""
    return copy_specs(tmp_path)
