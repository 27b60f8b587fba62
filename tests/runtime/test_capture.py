"""Graph capture and prewarming: nothing is compiled, loaded or allocated inside a capture."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import dsv4gen
from dsv4gen.base.errors import CaptureError
from dsv4gen.runtime.platform import HostPlatform
from tests.runtime.stubs import StubDriver

pytestmark = pytest.mark.usefixtures("generated")


def test_a_cold_kernel_under_capture_names_the_call_to_make(
    cuda: StubDriver, host: HostPlatform, tmp_path: Path
) -> None:
    demo = dsv4gen.load("demo")
    host.capturing = True
    with pytest.raises(CaptureError) as caught:
        demo(torch.zeros(2, 8), torch.zeros(2), scale=1.0)
    call = "dsv4gen.prewarm('demo', device=0, mode='plain', shapes=[dict(rows=2, width=8)])"
    assert call in str(caught.value)
    assert cuda.count("modules") == cuda.count("launches") == 0 and not (tmp_path / "cache").exists()
    host.capturing = False
    eval(call, {"dsv4gen": dsv4gen})
    assert cuda.count("modules") == 1


def test_after_prewarming_a_capture_only_launches(cuda: StubDriver, host: HostPlatform) -> None:
    demo = dsv4gen.prewarm("demo", shapes=[{"rows": 2, "width": 8}, {"rows": 2, "width": 8192}])
    modules = cuda.count("modules")
    assert modules == 3, "demo_small, demo_pool and demo_large"
    host.capturing, host.stream = True, 0xCA
    scratch = torch.zeros(1024, dtype=torch.uint8)
    for width in (8, 8192):
        demo(torch.zeros(2, width), torch.zeros(2), scale=1.0, scratch=scratch)
    assert cuda.count("modules") == modules
    assert {launch.stream for launch in cuda.launches()} == {0xCA} and cuda.count("launches") == 3


def test_a_new_shape_of_a_loaded_kernel_is_fine_under_capture(cuda: StubDriver, host: HostPlatform) -> None:
    demo = dsv4gen.load("demo")
    demo(torch.zeros(2, 8), torch.zeros(2), scale=1.0)
    host.capturing = True
    demo(torch.zeros(3, 9), torch.zeros(3), scale=1.0)
    assert cuda.count("launches") == 2


@pytest.mark.usefixtures("host")
def test_prewarming_without_shapes_loads_what_the_options_reach(cuda: StubDriver) -> None:
    dsv4gen.prewarm("demo")
    assert cuda.count("modules") == 3, "the other variant's kernel stays out"


@pytest.mark.usefixtures("host")
def test_prewarming_compiles_side_by_side(cuda: StubDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "compiles.log"
    monkeypatch.setenv("STUB_COMPILE_LOG", str(log))
    dsv4gen.prewarm("demo")
    assert len(log.read_text().splitlines()) == 3 == cuda.count("functions")


@pytest.mark.usefixtures("cuda")
def test_prewarming_under_capture_is_refused(host: HostPlatform) -> None:
    host.capturing = True
    with pytest.raises(CaptureError, match="would be loaded now") as caught:
        dsv4gen.load("demo", mode="extra")
    assert "dsv4gen.prewarm('demo', mode='extra', shapes=[...])" in str(caught.value)
    with pytest.raises(CaptureError, match="would be loaded now"):
        dsv4gen.prewarm("demo", shapes=[{"rows": 1, "width": 1}])
