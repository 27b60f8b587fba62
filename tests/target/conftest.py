"""The shipped specs, loaded once for all tests of this folder."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from dsv4gen.base import paths
from dsv4gen.spec import Specs, load_specs
from dsv4gen.target import TargetRecord, resolve_all


@pytest.fixture(scope="session")
def specs() -> Specs:
    return load_specs(paths.specs())


@pytest.fixture(scope="session")
def records(specs: Specs) -> Mapping[str, TargetRecord]:
    """Every described device, targets and their `also` devices, by name."""
    found = resolve_all(specs)
    return {record.device: record for target in found for record in (target, *target.also)}
