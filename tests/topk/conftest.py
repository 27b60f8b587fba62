"""One build per wave size for the whole run."""

from __future__ import annotations

import pytest

from tests.topk.host import WAVES, HostTopk, topk_plan


@pytest.fixture(scope="session", params=WAVES, ids=lambda wave: f"wave{wave}")
def host(request: pytest.FixtureRequest) -> HostTopk:
    """All kernels of the family on one wave size."""
    return HostTopk(topk_plan(), request.param)
