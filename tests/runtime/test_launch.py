"""From call to driver: packed bytes, stream, grid, attributes, shared memory, and what a failing driver says."""

from __future__ import annotations

import struct
import threading
from pathlib import Path

import pytest
import torch

import dsv4gen
from dsv4gen.base.errors import ArgumentError, DriverError
from dsv4gen.runtime import driver, driver_backend
from dsv4gen.runtime.platform import HostPlatform
from tests.runtime.stubs import StubDriver

pytestmark = pytest.mark.usefixtures("generated", "way")


def test_params_stream_and_grid_arrive_byte_for_byte(cuda: StubDriver, host: HostPlatform) -> None:
    host.stream = 0x5150
    data, out = torch.zeros(3, 128)[:, :100], torch.zeros(3)
    dsv4gen.load("demo")(data, out, scale=0.5)
    (launch,) = cuda.launches()
    expected = struct.pack("<QQQqIIf4x", data.data_ptr(), out.data_ptr(), 0, 128, 3, 100, 0.5)
    assert bytes(launch.params[:48]) == expected
    assert tuple(launch.grid) == (3, 1, 1) and tuple(launch.block) == (128, 1, 1)
    assert launch.stream == 0x5150 and launch.shared_bytes == 0 and launch.attribute_count == 0
    assert cuda.symbol(launch) == "demo_small"


@pytest.mark.usefixtures("host")
def test_the_tile_follows_the_shape(cuda: StubDriver) -> None:
    demo = dsv4gen.load("demo")
    for width, symbol in ((1000, "demo_small"), (1001, "demo_large")):
        demo(torch.zeros(2, width), torch.zeros(2), scale=1.0)
        assert cuda.symbol(cuda.launches()[-1]) == symbol
        assert demo.explain(rows=2, width=width).launches[0].symbol == symbol


@pytest.mark.usefixtures("host")
def test_outputs_are_made_when_not_given(cuda: StubDriver) -> None:
    out = dsv4gen.load("demo")(torch.zeros(5, 8), scale=1.0)
    assert out.shape == (5,) and out.dtype is torch.float32
    (launch,) = cuda.launches()
    assert struct.unpack_from("<Q", bytes(launch.params), 8)[0] == out.data_ptr()


@pytest.mark.usefixtures("host")
def test_cluster_dependent_launch_and_large_shared_memory(cuda: StubDriver) -> None:
    demo = dsv4gen.load("demo")
    scratch = demo.run.make_workspaces("cpu", rows=4, width=8192)
    assert {name: space.numel() for name, space in scratch.items()} == {"scratch": 1024}
    demo(torch.zeros(4, 8192), torch.zeros(4), scale=1.0, **scratch)
    first, second = cuda.launches()
    assert first.attributes == {4: struct.pack("<3I", 16, 1, 1).ljust(64, b"\0")}
    assert second.attributes == {6: struct.pack("<i", 1).ljust(64, b"\0")}
    assert first.shared_bytes == 65536 and cuda.granted(first) == (65536, 1)
    assert cuda.granted(second) == (0, 0)
    assert struct.unpack_from("<Q", bytes(first.params), 16)[0] == scratch["scratch"].data_ptr()


@pytest.mark.usefixtures("host")
def test_a_path_with_a_workspace_refuses_to_run_without(cuda: StubDriver) -> None:
    demo = dsv4gen.load("demo")
    data, small = torch.zeros(4, 8192), torch.zeros(1023, dtype=torch.uint8)
    for scratch in (None, small):
        with pytest.raises(ArgumentError, match=r"scratch has \d+ bytes, 1024 are needed"):
            demo(data, torch.zeros(4), scale=1.0, scratch=scratch)
    assert cuda.count("launches") == 0
    with pytest.raises(ArgumentError, match="scratch is not contiguous"):
        demo(data, torch.zeros(4), scale=1.0, scratch=torch.zeros(4096, dtype=torch.uint8)[::2])


@pytest.mark.usefixtures("host")
def test_no_room_for_the_cluster_falls_to_the_next_path(cuda: StubDriver, caplog: pytest.LogCaptureFixture) -> None:
    cuda.set("cluster_capacity", 8)
    demo = dsv4gen.load("demo")
    demo(torch.zeros(4, 8192), torch.zeros(4), scale=1.0)
    assert [cuda.symbol(launch) for launch in cuda.launches()] == ["demo_large"]
    assert "no cluster of 16 blocks" in caplog.text
    decision = demo.explain(rows=4, width=8192)
    assert decision.path == "single" and "not on this device" in decision.considered[1].reason


@pytest.mark.usefixtures("host")
def test_an_unrelated_probe_error_is_not_swallowed(cuda: StubDriver) -> None:
    cuda.set("fail_clusters", 1)
    with pytest.raises(DriverError, match="INVALID_VALUE"):
        dsv4gen.load("demo")(torch.zeros(4, 8192), torch.zeros(4), scale=1.0)


@pytest.mark.usefixtures("host")
def test_an_empty_batch_launches_nothing(cuda: StubDriver) -> None:
    out = dsv4gen.load("demo")(torch.zeros(0, 8), scale=1.0)
    assert out.shape == (0,) and cuda.count("launches") == 0 and cuda.count("modules") == 0


@pytest.mark.usefixtures("host")
def test_the_flag_chooses_the_variant(cuda: StubDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSV4GEN_DEMO", "old")
    demo = dsv4gen.load("demo")
    monkeypatch.delenv("DSV4GEN_DEMO")
    demo(torch.zeros(2, 8), scale=1.0)
    assert cuda.symbol(cuda.launches()[0]) == "demo_old"
    assert "belongs to variant new" in str(demo.explain(rows=2, width=8))


@pytest.mark.usefixtures("host")
def test_a_thread_without_a_context_gets_one(cuda: StubDriver) -> None:
    demo = dsv4gen.load("demo")
    demo(torch.zeros(2, 8), scale=1.0)
    cuda.set("fail_launch", 201)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            demo(torch.zeros(2, 8), scale=1.0)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert not failures and cuda.count("launches") == 2
    assert cuda.launches()[1].context == 0xC0


@pytest.mark.usefixtures("host")
def test_driver_errors_come_as_messages(cuda: StubDriver) -> None:
    demo = dsv4gen.load("demo")
    cuda.set("fail_launch", 700)
    with pytest.raises(DriverError) as caught:
        demo(torch.zeros(2, 8), scale=1.0)
    text = str(caught.value)
    assert "launching demo.run: ILLEGAL_ADDRESS (700): illegal memory access" in text
    assert "CUDA_LAUNCH_BLOCKING=1" in text


@pytest.mark.parametrize("api", ["cuda", "hip"])
@pytest.mark.parametrize("status", [2, 98, 200, 209, 700, 719])
def test_a_status_that_users_meet_has_a_way_out_on_either_vendor(api: str, status: int) -> None:
    advice = driver._ADVICE[api][status]
    assert advice and ("LAUNCH_BLOCKING" not in advice or f"{api.upper()}_LAUNCH_BLOCKING=1" in advice)


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize(("status", "advice"), [(209, "another architecture"), (222, "newer toolkit")])
def test_a_refused_module_says_why(cuda: StubDriver, status: int, advice: str) -> None:
    cuda.set("fail_load", status)
    with pytest.raises(DriverError, match="loading demo_small") as caught:
        dsv4gen.load("demo")(torch.zeros(2, 8), scale=1.0)
    assert advice in str(caught.value)


@pytest.mark.usefixtures("host")
def test_threads_do_not_share_parameters(cuda: StubDriver) -> None:
    demo = dsv4gen.load("demo")
    buffers = [torch.zeros(rows, 8) for rows in range(1, 9)]

    def work(data: torch.Tensor) -> None:
        for _ in range(100):
            demo(data, torch.zeros(data.shape[0]), scale=float(data.shape[0]))

    threads = [threading.Thread(target=work, args=(data,)) for data in buffers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    launches = cuda.launches()
    assert len(launches) == 800
    for launch in launches:
        data, _, _, _, rows, _, scale = struct.unpack_from("<QQQqIIf", bytes(launch.params))
        assert buffers[rows - 1].data_ptr() == data and scale == rows and launch.grid[0] == rows


@pytest.mark.usefixtures("host")
def test_unchecked_calls_launch_the_same(cuda: StubDriver) -> None:
    data, out = torch.zeros(3, 100), torch.zeros(3)
    demo = dsv4gen.load("demo")
    demo(data, out, scale=2.0)
    demo.run.unchecked(data, out, scale=2.0)
    dsv4gen.load("demo", checked=False)(data, out, scale=2.0)
    first, *others = (bytes(launch.params) for launch in cuda.launches())
    assert len(others) == 2 and all(other == first for other in others)


@pytest.mark.usefixtures("host")
def test_unchecked_still_refuses_what_cannot_be_packed(cuda: StubDriver) -> None:
    demo = dsv4gen.load("demo", checked=False)
    with pytest.raises(ArgumentError, match="scale is 'x', not a number"):
        demo(torch.zeros(3, 100), torch.zeros(3), scale="x")
    assert cuda.count("launches") == 0


@pytest.mark.usefixtures("host")
def test_loading_twice_loads_the_module_once(cuda: StubDriver) -> None:
    for _ in range(3):
        dsv4gen.load("demo")(torch.zeros(3, 100), scale=1.0)
    assert cuda.count("modules") == 1 and cuda.count("launches") == 3


def test_remembered_shapes_stay_bounded(cuda: StubDriver, host: HostPlatform, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_backend, "DECISIONS_MAX", 50)
    demo = dsv4gen.load("demo")
    for stream in range(170):
        host.stream = stream
        demo(torch.zeros(1, 8), scale=1.0)
    assert len(demo.raw.__globals__["_decisions"]) == 20
    assert [launch.stream or 0 for launch in cuda.launches()] == list(range(170))


@pytest.mark.usefixtures("cuda", "host")
def test_nothing_is_written_beside_the_sources(generated: Path) -> None:
    before = sorted(path.name for path in generated.rglob("*"))
    dsv4gen.load("demo")(torch.zeros(2, 8), scale=1.0)
    assert sorted(path.name for path in generated.rglob("*")) == before
