"""Triton families behind the same load: names, defaults, versions, capture guard; and a real module, interpreted."""

from __future__ import annotations

import importlib
import inspect
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import triton

import dsv4gen
from dsv4gen.base.errors import ArgumentError, CaptureError, LoadError, ManifestError
from dsv4gen.base.manifest import digest_bytes, json_text, read_manifest
from dsv4gen.render.launchers import read_launchers
from dsv4gen.render.source_map import SourceMap
from dsv4gen.runtime.platform import HostPlatform, use
from tests.runtime import synthetic

ROOT = Path(__file__).parents[2]
MODULE = """\
TRITON_RANGE = ("3.0", "99.0")
calls = []

def run(*, data, out, scale=2.0, scratch=None, mode="none"):
    calls.append((tuple(data.shape), scale, scratch, mode))
    out.copy_(data[:, 0] * scale)
"""


def write_triton(root: Path, module: str = MODULE, family: str = "demo") -> Path:
    """The demo family as a Triton family; one whose op takes other arguments needs a name that torch does not know."""
    entry = {**synthetic.demo_family(), "language": "triton"}
    entry["ops"]["run"]["paths"] = [synthetic.path("single", True, [synthetic.launch("tiles")])]
    launchers = (
        read_launchers(f"{family}.py", module, SourceMap(f"{family}.py", ()), {"run": ()})
        if "def run(" in module
        else {}
    )
    entry["launchers"] = {op: launcher.to_json() for op, launcher in launchers.items()}
    folder = synthetic.write_folder(root, families={family: entry})
    (folder / f"{family}.py").write_text(module, encoding="utf-8")
    data = dict(read_manifest(folder).data)
    data["outputs"] = {**data["outputs"], f"{family}.py": digest_bytes(module.encode())}
    (folder / "manifest.json").write_text(json_text(data), encoding="utf-8")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_triton(tmp_path / "generated")


def _calls(demo: Any) -> list[Any]:
    calls: list[Any] = demo.run._backend.module.calls
    calls_now = list(calls)
    calls.clear()
    return calls_now


@pytest.mark.usefixtures("folder", "host")
def test_names_options_and_defaults_reach_the_launcher() -> None:
    demo = dsv4gen.load("demo", mode="extra")
    data, bias = torch.rand(3, 8), torch.zeros(3)
    assert torch.equal(demo(data, bias), data[:, 0] * 2)
    out, scratch = torch.zeros(3), torch.zeros(8, dtype=torch.uint8)
    assert demo(data, bias, out, scale=3.0, scratch=scratch) is out
    assert torch.equal(out, data[:, 0] * 3)
    first, second = _calls(demo)
    assert first == ((3, 8), 2.0, None, "extra")
    assert second[2] is scratch
    assert demo.explain(rows=3, width=8).launches[0].symbol == "demo_small"


@pytest.mark.usefixtures("folder", "host")
def test_arguments_are_checked_like_any_others() -> None:
    demo = dsv4gen.load("demo")
    with pytest.raises(ArgumentError, match="data is float64"):
        demo(torch.zeros(3, 8).double())
    with pytest.raises(ArgumentError, match="no argument 'sale'"):
        demo(torch.zeros(3, 8), sale=1)
    with pytest.raises(ArgumentError, match="takes no bias with mode=plain"):
        demo(torch.zeros(3, 8), bias=torch.zeros(3))
    assert _calls(demo) == []
    dsv4gen.load("demo", checked=False)(torch.zeros(3, 8).double(), torch.zeros(3))
    assert len(_calls(demo)) == 1


@pytest.mark.usefixtures("folder")
def test_a_capture_takes_only_what_was_compiled_before(host: HostPlatform) -> None:
    demo = dsv4gen.load("demo")
    host.capturing = True
    with pytest.raises(CaptureError, match=r"dsv4gen\.prewarm\('demo', shapes="):
        demo(torch.zeros(3, 16))
    host.capturing = False
    dsv4gen.prewarm("demo", shapes=[{"rows": 3, "width": 16}])
    demo(torch.zeros(3, 16))
    host.capturing = True
    demo(torch.zeros(3, 16))
    with pytest.raises(CaptureError, match="would be compiled now"):
        demo(torch.zeros(3, 17)[:, :16])
    with pytest.raises(CaptureError, match="would be compiled now"):
        demo(torch.zeros(3 * 16 + 1)[1:].view(3, 16))


@pytest.mark.usefixtures("folder", "host")
def test_prewarming_needs_shapes() -> None:
    with pytest.raises(ArgumentError, match=r"prewarming demo\.run needs shapes") as caught:
        dsv4gen.prewarm("demo")
    assert "rows=..., width=..." in str(caught.value)
    with pytest.raises(ArgumentError, match="no value for 'width'"):
        dsv4gen.prewarm("demo", shapes=[{"rows": 3}])


@pytest.mark.usefixtures("host")
def test_an_older_triton_is_refused(tmp_path: Path) -> None:
    write_triton(tmp_path / "generated", MODULE.replace('"3.0"', '"98.0"'))
    with pytest.raises(LoadError, match=rf"demo needs Triton 98.0 or newer, found {triton.__version__}"):
        dsv4gen.load("demo")(torch.zeros(3, 8))


@pytest.mark.usefixtures("host")
def test_without_triton_the_load_error_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert folder.is_dir()
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.raises(LoadError, match="demo needs Triton") as caught:
        dsv4gen.load("demo")(torch.zeros(3, 8))
    assert "pip install triton" in str(caught.value)


@pytest.mark.usefixtures("host")
def test_a_module_without_the_launcher(tmp_path: Path) -> None:
    write_triton(tmp_path / "generated", MODULE.replace("def run", "def walk"))
    with pytest.raises(LoadError, match="has no launcher for run"):
        dsv4gen.load("demo")(torch.zeros(3, 8))


@pytest.mark.usefixtures("host")
def test_an_edited_module_does_not_load(folder: Path) -> None:
    (folder / "demo.py").write_text(MODULE + "# mine\n", encoding="utf-8")
    with pytest.raises(ManifestError, match=r"demo\.py \(edited\)"):
        dsv4gen.load("demo")


INTERPRETED = """
import torch, dsv4gen
from dsv4gen.render.launchers import read_launchers
from dsv4gen.render.source_map import SourceMap
from dsv4gen.runtime.platform import HostPlatform, use, use
with use(HostPlatform("sm_90")):
    gather = dsv4gen.load("gather_dequant").gather
    reference = dsv4gen.load("gather_dequant", target="reference").gather
    torch.manual_seed(0)
    pages = torch.randint(0, 120, (3, 2880), dtype=torch.uint8)
    pages[:, 4 * 576 :] = 127
    indices = torch.tensor([[0, 5, -1], [11, 12, 2]], dtype=torch.int32)
    numbers = dict(page_size=4, queries=1, k_offset=1, columns=5)
    results = []
    for op in (gather, reference):
        out, mask = torch.zeros(2, 5, 512, dtype=torch.bfloat16), torch.zeros(2, 5, dtype=torch.bool)
        op(pages, indices, None, out, mask, **numbers)
        results.append((out, mask))
    (out, mask), (right, right_mask) = results
    assert torch.equal(out.view(torch.int16), right.view(torch.int16)) and torch.equal(mask, right_mask)
    assert mask[0].tolist() == [False, False, False, True, False] and right.abs().max() > 0
"""


def test_a_generated_module_runs_interpreted_and_agrees_with_the_reference(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "dsv4gen", "build", "--target", "sm_90", "--family", "gather_dequant"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TRITON_INTERPRET": "1"}
    subprocess.run([*build, "--out", str(tmp_path / "generated")], env=environment, check=True)
    done = subprocess.run(
        [sys.executable, "-c", INTERPRETED], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("family", ["gather_dequant", "sparse_decode", "compress", "qk_norm_rope"])
def test_every_op_of_the_generated_modules_takes_its_arguments_through_load(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sizes that only the launcher takes arrive; sizes that only the manifest's grids read need not be given."""
    cases = importlib.import_module(f"dsv4gen.reference.{family}_cases").verification_cases(full=False)
    monkeypatch.setenv("DSV4GEN_GENERATED_DIR", str(ROOT / "generated"))
    seen: dict[str, list[dict[str, Any]]] = {}
    with use(HostPlatform("sm_90")):
        for case in {case.op: case for case in cases}.values():
            loaded = dsv4gen.load(family, **case.options)
            module = loaded.op(case.op)._backend.module  # type: ignore[attr-defined]

            def stub(op: str = case.op, **values: Any) -> None:
                seen.setdefault(op, []).append(values)

            stub.__signature__ = inspect.signature(getattr(module, case.op))  # type: ignore[attr-defined]
            monkeypatch.setattr(module, case.op, stub)
            loaded.op(case.op).unchecked(**{name: v for name, v in case.arguments.items() if name not in case.options})
            passed = {name for name, value in case.arguments.items() if value is not None}
            assert passed <= {*seen[case.op][0], *case.options}
    ops = {"gather_dequant": "gather", "sparse_decode": "attend", "compress": "decode", "qk_norm_rope": "q_norm_rope"}
    assert ops[family] in seen
