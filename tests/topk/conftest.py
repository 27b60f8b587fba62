"""One build per wave size for the whole run; torch on one thread, because the cores are busy emulating."""

from __future__ import annotations

import pytest
import torch

from tests.topk.host import WAVES, HostTopk, topk_plan


@pytest.fixture(scope="session", autouse=True)
def _one_torch_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session", params=WAVES, ids=lambda wave: f"wave{wave}")
def host(request: pytest.FixtureRequest) -> HostTopk:
    """All kernels of the family on one wave size."""
    return HostTopk(topk_plan(), request.param)
