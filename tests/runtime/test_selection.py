"""Which folder serves which device: explicit target, environment, device; several, mixed, hidden and no GPUs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import dsv4gen
from dsv4gen.base.errors import (
    ArgumentError,
    DsvError,
    EnvironmentValueError,
    LoadError,
    ManifestError,
    UnknownName,
    UnknownTarget,
)
from dsv4gen.base.manifest import SCHEMA
from dsv4gen.base.target_id import parse
from dsv4gen.runtime import platform, selection
from dsv4gen.runtime.platform import HostPlatform, TorchPlatform
from tests.runtime import synthetic
from tests.runtime.stubs import StubDriver


@dataclass
class FakeGpus:
    """What torch would report; `gcn` is the architecture name on ROCm and the product's name on CUDA."""

    devices: list[tuple[str, tuple[int, int], str]]
    hip: str | None = None
    cuda: str | None = "13.0"
    index: int = 0

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def properties(index: int) -> SimpleNamespace:
            name, (major, minor), gcn = self.devices[index]
            return SimpleNamespace(name=name, major=major, minor=minor, gcnArchName=gcn, multi_processor_count=132)

        monkeypatch.setattr(torch.version, "hip", self.hip)
        monkeypatch.setattr(torch.version, "cuda", self.cuda)
        monkeypatch.setattr(torch.cuda, "is_available", lambda: bool(self.devices))
        monkeypatch.setattr(torch.cuda, "device_count", lambda: len(self.devices))
        monkeypatch.setattr(torch.cuda, "get_device_properties", properties)
        monkeypatch.setattr(torch.cuda, "current_device", lambda: self.index)
        monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda _: 0, raising=False)
        monkeypatch.setattr(torch._C, "_cuda_getDevice", lambda: self.index, raising=False)


H200 = ("NVIDIA H200", (9, 0), "NVIDIA H200")
B200 = ("NVIDIA B200", (10, 0), "NVIDIA B200")
B300 = ("NVIDIA B300", (10, 3), "NVIDIA B300")
A100 = ("NVIDIA A100", (8, 0), "NVIDIA A100")
A10 = ("NVIDIA A10", (8, 6), "NVIDIA A10")
MI300X = ("AMD Instinct MI300X", (9, 4), "gfx942:sramecc+:xnack-")
MI250X = ("AMD Instinct MI250X", (9, 0), "gfx90a:sramecc+:xnack-")


@pytest.fixture
def roots(tmp_path: Path) -> Path:
    """Folders for six targets."""
    root = tmp_path / "generated"
    synthetic.write_folder(root, "sm_80", arch="sm_80", also=("sm_86", "sm_87"))
    synthetic.write_folder(root, "sm_90", arch="sm_90a")
    synthetic.write_folder(root, "sm_100", arch="sm_100a")
    synthetic.write_folder(root, "sm_120", arch="sm_120a", also=("sm_121",))
    synthetic.write_folder(root, "gfx90a", api="hip", arch="gfx90a")
    synthetic.write_folder(root, "gfx942", api="hip", arch="gfx942")
    return root


CASES = [
    (H200, None, "sm_90", "sm_90a"),
    (MI250X, "7.1", "gfx90a", "gfx90a"),
    (MI300X, "7.1", "gfx942", "gfx942"),
    (A10, None, "sm_80", "sm_86"),
    (("RTX Spark", (12, 1), "RTX Spark"), None, "sm_120", "sm_121a"),
]


@pytest.mark.usefixtures("roots")
@pytest.mark.parametrize(("device", "hip", "target", "arch"), CASES, ids=lambda case: str(case)[:20])
def test_a_device_gets_its_own_folder(
    device: tuple[str, tuple[int, int], str],
    hip: str | None,
    target: str,
    arch: str,
    roots: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    FakeGpus([device], hip=hip).install(monkeypatch)
    assert dsv4gen.load("demo").target == target
    (found,) = TorchPlatform().devices()
    assert found.target is not None
    assert selection.choose("demo", found.target, "it", roots).arch == arch


@pytest.mark.usefixtures("roots")
def test_b300_never_gets_code_for_b200(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeGpus([B300]).install(monkeypatch)
    with pytest.raises(LoadError) as caught:
        dsv4gen.load("demo")
    text = str(caught.value)
    assert "device 0 (NVIDIA B300, sm_103)" in text
    assert "sm_100: sm_100a code runs on sm_100 only, not on sm_103" in text
    assert "sm_80: made for sm_80 (also sm_86, sm_87), not for sm_103" in text
    assert "gfx942: made for hip" in text
    assert "dsv4gen build --target sm_103" in text


def test_an_also_device_is_compiled_for_itself(roots: Path) -> None:
    synthetic.write_folder(roots, "sm_100", arch="sm_100a", also=("sm_103",))
    assert selection.choose("demo", parse("10.3"), "it", roots).arch == "sm_103a"


def test_two_folders_for_one_device_are_an_error(roots: Path) -> None:
    synthetic.write_folder(roots, "mine", arch="sm_90a")
    manifest = json.loads((roots / "mine" / "manifest.json").read_text())
    manifest["target"]["name"] = "sm_90"
    (roots / "mine" / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(LoadError, match="several folders serve it"):
        selection.choose("demo", parse("sm_90"), "it", roots)


@pytest.mark.usefixtures("roots")
def test_argument_before_environment_before_device(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeGpus([H200]).install(monkeypatch)
    monkeypatch.setenv("DSV4GEN_TARGET", "sm_80")
    assert dsv4gen.load("demo", target="9.0").target == "sm_90"
    assert dsv4gen.load("demo", target="sm_90a").target == "sm_90"
    assert dsv4gen.load("demo").target == "sm_80"
    monkeypatch.delenv("DSV4GEN_TARGET")
    assert dsv4gen.load("demo").target == "sm_90"
    with pytest.raises(UnknownTarget, match="sm_90"):
        dsv4gen.load("demo", target="hopper")


@pytest.mark.usefixtures("roots")
@pytest.mark.parametrize(
    ("cuda", "hidden", "reason"),
    [
        (None, None, "is built without GPU support"),
        ("13.0", None, "torch sees no GPU"),
        ("13.0", "", "with CUDA_VISIBLE_DEVICES=''"),
    ],
)
def test_no_gpu_and_no_target(
    cuda: str | None, hidden: str | None, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    FakeGpus([], cuda=cuda).install(monkeypatch)
    for name in platform.VISIBILITY:
        monkeypatch.delenv(name, raising=False)
    if hidden is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
    with pytest.raises(LoadError, match="no GPU and no target") as caught:
        dsv4gen.load("demo")
    assert reason in str(caught.value) and 'target="reference"' in str(caught.value)
    assert dsv4gen.explain("demo", target="gfx942", rows=1, width=8).path == "single"
    with pytest.raises(UnknownName, match=r"no family 'dmeo'.*did you mean 'demo'"):
        dsv4gen.load("dmeo")


@pytest.mark.usefixtures("roots")
def test_mixed_gpus_take_the_current_or_the_named_device(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = FakeGpus([A100, H200])
    gpus.install(monkeypatch)
    assert dsv4gen.load("demo").target == "sm_80"
    for device in (1, "cuda:1", torch.device("cuda", 1)):
        assert dsv4gen.load("demo", device).target == "sm_90"
    gpus.index = 1
    assert dsv4gen.load("demo").target == "sm_90"
    assert dsv4gen.load("demo", "cuda").target == "sm_90"
    with pytest.raises(LoadError, match=r"only 2 GPU\(s\) are visible"):
        dsv4gen.load("demo", "cuda:2")
    with pytest.raises(LoadError, match="device cpu is not a GPU"):
        dsv4gen.load("demo", "cpu")


@pytest.mark.usefixtures("roots", "cuda")
def test_each_of_mixed_gpus_gets_its_own_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeGpus([A100, H200]).install(monkeypatch)
    backend = dsv4gen.load("demo").run._backend
    targets = [backend.kernels(index).target for index in (0, 1)]  # type: ignore[attr-defined]
    assert targets == ["sm_80", "sm_90"]


@pytest.mark.usefixtures("roots")
def test_kernels_of_another_target_are_refused_before_any_launch(
    cuda: StubDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    FakeGpus([H200]).install(monkeypatch)
    backend = dsv4gen.load("demo", target="sm_100").run._backend
    with pytest.raises(LoadError, match=r"loaded for sm_100, whose code \(sm_100a\) does not run on device 0"):
        backend.kernels(0)  # type: ignore[attr-defined]
    assert cuda.count("modules") == cuda.count("launches") == 0


@pytest.mark.usefixtures("roots", "cuda")
def test_an_explicit_relative_is_allowed_where_the_code_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeGpus([("A newer Ampere", (8, 8), "")]).install(monkeypatch)
    with pytest.raises(LoadError, match="not for sm_88"):
        dsv4gen.load("demo")
    backend = dsv4gen.load("demo", target="sm_80").run._backend
    assert backend.kernels(0).target == "sm_80"  # type: ignore[attr-defined]


@pytest.mark.usefixtures("roots", "cuda")
def test_tensors_on_the_host_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeGpus([H200]).install(monkeypatch)
    with pytest.raises(ArgumentError, match="data is on cpu; this kernel needs its tensors on a GPU"):
        dsv4gen.load("demo")(torch.zeros(2, 8), torch.zeros(2), scale=1.0)
    with pytest.raises(DsvError, match="on no GPU"):
        dsv4gen.load("demo", checked=False)(torch.zeros(2, 8), torch.zeros(2), scale=1.0)


def test_an_unreadable_device_name_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeGpus([("Something", (9, 9), "gfx9-generic")], hip="7.1").install(monkeypatch)
    with pytest.raises(LoadError, match="generic code object"):
        dsv4gen.load("demo")


@pytest.mark.usefixtures("roots")
@pytest.mark.parametrize("damage", ["schema", "json", "missing"])
def test_a_manifest_of_another_schema_is_a_reason(damage: str, roots: Path) -> None:
    path = roots / "sm_90" / "manifest.json"
    if damage == "schema":
        path.write_text(path.read_text().replace(f'"schema": {SCHEMA}', '"schema": 99'))
    if damage == "json":
        path.write_text("{")
    if damage == "missing":
        path.unlink()
    with platform.use(HostPlatform("sm_90")), pytest.raises(LoadError) as caught:
        dsv4gen.load("demo")
    wanted = {"schema": "manifest schema 99", "json": "unreadable manifest", "missing": "candidates:"}[damage]
    assert wanted in str(caught.value)


@pytest.mark.usefixtures("roots")
def test_only_the_plan_that_is_used_is_read_and_it_must_be_the_listed_one(roots: Path) -> None:
    for folder in roots.iterdir():
        if folder.name != "sm_90":
            (folder / "plans" / "demo.json").write_text("{")
    with platform.use(HostPlatform("sm_90")):
        assert dsv4gen.load("demo").target == "sm_90"
    (roots / "sm_90" / "plans" / "demo.json").write_text("{}")
    with pytest.raises(ManifestError, match=r"demo\.json does not match its manifest"):
        dsv4gen.explain("demo", target="sm_90", rows=1, width=8)
    (roots / "sm_90" / "plans" / "demo.json").unlink()
    with pytest.raises(ManifestError, match=r"cannot read .*demo\.json"):
        dsv4gen.explain("demo", target="sm_90", rows=1, width=8)


def test_an_empty_root_says_where_it_looked() -> None:
    with platform.use(HostPlatform("sm_90")), pytest.raises(LoadError, match=r"nothing is generated in .*generated"):
        dsv4gen.load("demo")
    with pytest.raises(LoadError, match="no family 'demo'"):
        dsv4gen.load("demo", target="reference")


@pytest.mark.usefixtures("roots")
def test_wrong_names_are_answered_with_right_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    with platform.use(HostPlatform("sm_90")):
        with pytest.raises(LoadError, match="holds no demmo, only demo"):
            dsv4gen.load("demmo")
        with pytest.raises(ArgumentError, match=r"no option 'mod' \(did you mean 'mode'"):
            dsv4gen.load("demo", mod="plain")
        with pytest.raises(ArgumentError, match="mode='other' is not one of plain, extra"):
            dsv4gen.load("demo", mode="other")
        with pytest.raises(LoadError, match=r"no op 'rum' \(did you mean 'run'"):
            dsv4gen.load("demo").op("rum")
        monkeypatch.setenv("DSV4GEN_DEMO", "v9")
        with pytest.raises(EnvironmentValueError, match="is not one of new, old"):
            dsv4gen.explain("demo", rows=1, width=8)


@pytest.mark.usefixtures("roots")
def test_explain_says_why_and_why_not() -> None:
    text = str(dsv4gen.explain("demo", target="sm_90", rows=4, width=8192))
    assert "-> pool" in text and "remote: not on this target: no remote shared memory" in text
    assert "single: not needed: pool took it" in text and "legacy: belongs to variant old" in text
    assert "launch demo_pool grid 4 x 1 x 1 block 512" in text
    with pytest.raises(ArgumentError, match="no value for 'width'"):
        dsv4gen.explain("demo", target="sm_90", rows=4)
    with pytest.raises(ArgumentError, match=r"rows=70000 is outside 0\.\.65536"):
        dsv4gen.explain("demo", target="sm_90", rows=70000, width=1)


@pytest.mark.usefixtures("roots")
def test_explain_with_a_target_asks_for_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TorchPlatform, "devices", lambda _: pytest.fail("asked"))
    assert dsv4gen.explain("demo", target="sm_90", rows=4, width=8192).launches


def test_listing(roots: Path) -> None:
    assert dsv4gen.targets() == ("gfx90a", "gfx942", "sm_100", "sm_120", "sm_80", "sm_90")
    assert dsv4gen.families() == dsv4gen.families("sm_90") == ("demo",)
    (roots / "sm_90" / "manifest.json").write_text("{")
    with pytest.raises(ManifestError):
        dsv4gen.families("sm_90")
