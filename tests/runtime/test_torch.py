"""Torch's side: registered ops, fake tensors, torch.compile, opcheck; on the CPU through the reference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

import dsv4gen
from dsv4gen.base.errors import ArgumentError, LoadError
from dsv4gen.runtime import platform, reference_backend
from dsv4gen.runtime.platform import HostPlatform
from tests.runtime.stubs import StubDriver

pytestmark = pytest.mark.usefixtures("generated")


def _demo_reference(values: dict[str, Any], options: dict[str, str]) -> None:
    bias = values["bias"] if options["mode"] == "extra" else 0.0
    values["out"].copy_(values["data"][:, 0] * values["scale"] + bias)


@pytest.fixture
def reference(monkeypatch: pytest.MonkeyPatch) -> None:
    adapters = {**reference_backend._ADAPTERS, ("demo", "run"): _demo_reference}
    monkeypatch.setattr(reference_backend, "_ADAPTERS", adapters)


@pytest.fixture
def fresh_dynamo() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.usefixtures("reference")
def test_the_reference_runs_on_the_cpu_without_a_gpu() -> None:
    demo = dsv4gen.load("demo", target="reference")
    data = torch.rand(4, 8)
    assert torch.equal(demo(data, scale=2.0), data[:, 0] * 2)
    extra = dsv4gen.load("demo", target="reference", mode="extra")
    assert torch.equal(extra(data, torch.ones(4), scale=2.0), data[:, 0] * 2 + 1)
    with pytest.raises(ArgumentError, match="takes no bias with mode=plain"):
        demo(data, bias=torch.ones(4), scale=2.0)


@pytest.mark.usefixtures("reference")
@pytest.mark.parametrize("mode", ["plain", "extra"])
def test_opcheck(mode: str) -> None:
    dsv4gen.load("demo", target="reference", mode=mode)
    bias = torch.rand(4) if mode == "extra" else None
    args = (torch.rand(4, 8), bias, torch.zeros(4), None, 0.5)
    torch.library.opcheck(torch.ops.dsv4gen.demo_run, args, {"option_mode": mode, "target": "reference"})


@pytest.mark.usefixtures("reference", "fresh_dynamo")
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_compiled_function_holds_the_op_without_a_graph_break(backend: str) -> None:
    demo = dsv4gen.load("demo", target="reference")

    def step(data: torch.Tensor) -> Any:
        return demo(data + 1, scale=2.0) + 1

    compiled = torch.compile(step, backend=backend, fullgraph=True, dynamic=True)
    for rows in (3, 5):
        data = torch.rand(rows, 8)
        assert torch.equal(compiled(data), step(data))


@pytest.mark.usefixtures("reference", "fresh_dynamo")
def test_given_outputs_are_written_inside_a_compiled_function() -> None:
    demo = dsv4gen.load("demo", target="reference")

    def step(data: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        demo.run(data=data, out=out, scale=3.0)
        return out * 2

    data, out = torch.rand(3, 8), torch.zeros(3)
    result = torch.compile(step, backend="aot_eager", fullgraph=True)(data, out)
    assert torch.equal(out, data[:, 0] * 3) and torch.equal(result, out * 2)


@pytest.mark.usefixtures("reference", "fresh_dynamo")
def test_the_bare_function_is_never_traced() -> None:
    raw = dsv4gen.load("demo", target="reference").raw
    with pytest.raises(Exception, match="torch_op"):
        torch.compile(lambda data: raw(data, scale=1.0), backend="eager", fullgraph=True)(torch.rand(3, 8))


@pytest.mark.usefixtures("host")
@pytest.mark.usefixtures("fresh_dynamo")
def test_dynamo_never_enters_the_loader(cuda: StubDriver) -> None:
    """Loaded but never called: the first run of the compiled function loads the kernel, outside of the trace."""
    demo = dsv4gen.load("demo")

    def step(data: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        demo(data, out, scale=2.0)
        return out + 1

    data, out = torch.rand(3, 8), torch.zeros(3)
    torch.compile(step, backend="aot_eager", fullgraph=True)(data, out)
    assert [cuda.symbol(launch) for launch in cuda.launches()] == ["demo_small"]


@pytest.mark.usefixtures("host")
@pytest.mark.filterwarnings("ignore:Accessing the data pointer")
def test_fake_tensors_have_no_memory(cuda: StubDriver) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    demo = dsv4gen.load("demo")
    with FakeTensorMode():
        data, out = torch.zeros(3, 8), torch.zeros(3)
        with pytest.raises(ArgumentError, match=r"data has no memory.*torch_op"):
            demo.run.raw(data, out, scale=1.0)
        assert demo.run.torch_op(data, scale=1.0).shape == (3,)
    assert cuda.count("launches") == 0


@pytest.mark.usefixtures("host")
def test_the_op_loads_what_nobody_loaded(cuda: StubDriver) -> None:
    dsv4gen.load("demo")
    torch.ops.dsv4gen.demo_run(torch.zeros(3, 8), torch.zeros(3), torch.zeros(3), None, 1.0, option_mode="extra")
    assert cuda.count("launches") == 1
    with pytest.raises(ArgumentError, match="bias"):
        torch.ops.dsv4gen.demo_run(torch.zeros(3, 8), torch.zeros(3), torch.zeros(3), None, 1.0)


def test_without_a_device_the_op_says_so() -> None:
    class Nothing(HostPlatform):
        def devices(self) -> tuple[platform.Device, ...]:
            return ()

        def why_no_device(self) -> str:
            return "torch sees no GPU"

    with platform.use(Nothing("sm_90")), pytest.raises(LoadError, match=r"no GPU and no target \(torch sees no GPU"):
        dsv4gen.load("demo")
