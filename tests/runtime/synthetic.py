"""A small generated folder written by hand: every feature of the manifest that the runtime reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dsv4gen.base.manifest import SCHEMA, Manifest, digest_bytes, digest_json, json_text, plan_file
from dsv4gen.base.params import ParamsLayout

Json = dict[str, Any]

LAYER = {"cuda": "typedef unsigned int u32;\n", "hip": "typedef unsigned int u32;\n"}
BODY = """\
struct Params { const float* data; float* out; void* scratch; long long stride; u32 rows; u32 width; float scale; };
"""
ENTRY = """\
extern "C" __global__ void {symbol}(const Params p) {{ p.out[blockIdx.x] = p.data[blockIdx.x * p.stride] * p.scale; }}
"""
SYMBOLS = ("demo_small", "demo_large", "demo_pool", "demo_old")
SUFFIX = {"cuda": "cu", "hip": "hip"}


def expression(tree: Any) -> Json:
    """An expression as the manifest holds it."""
    return {"text": json.dumps(tree), "tree": tree}


def launch(kernel: str, *, grid: Any = "rows", cluster: Any = None, shared: Any = 0, dependent: bool = False) -> Json:
    """One launch."""
    return {
        "kernel": kernel,
        "grid": [expression(grid), expression(1), expression(1)],
        "block": expression("block_threads"),
        "cluster": expression(cluster) if cluster else None,
        "shared_bytes": expression(shared),
        "dependent": dependent,
    }


def path(name: str, prefer: Any, launches: list[Json], *, variant: str = "new", rejected: Json | None = None) -> Json:
    """One launch path, correct everywhere."""
    return {
        "name": name,
        "variant": variant,
        "domain": expression(True),
        "prefer": expression(prefer),
        "launches": launches,
        "rejected": rejected,
        "key": f"ops.run.launch_paths.{name}",
    }


def kernel(*buckets: tuple[Any, int, str]) -> Json:
    """A kernel with (predicate, block size, symbol) buckets."""
    return {
        "entry": "run",
        "row_paths": [],
        "refused_tiles": [],
        "buckets": [
            {"when": expression(when), "tile": {"block_threads": threads}, "origin": "spec"}
            for when, threads, _ in buckets
        ],
        "instances": [
            {"symbol": symbol, "options": {}, "tile": {"block_threads": threads}, "threads": threads, "shared_bytes": 0,
             "min_blocks": 1, "row_paths": []}
            for _, threads, symbol in buckets
        ],
    }  # fmt: skip


def tensor(name: str, dtype: str, shape: list[Any], strides: list[Any], role: str, **more: Any) -> Json:
    """One tensor of the table."""
    fixed = {"align": 4, "when": None, "optional": False}
    sizes = [expression(size) for size in shape]
    return {"name": name, "dtype": dtype, "shape": sizes, "strides": strides, "role": role, **fixed, **more}


def demo_family() -> Json:
    """`demo`: four paths, two tile buckets, a workspace, a scalar, two variants, one option that removes a tensor."""
    params = ParamsLayout.of(
        [("data", "pointer", ""), ("out", "pointer", ""), ("scratch", "pointer", ""), ("stride", "i64", ""),
         ("rows", "u32", ""), ("width", "u32", ""), ("scale", "f32", "")]
    )  # fmt: skip
    axis = {"min": expression(0), "max": expression(65536), "per": None, "doc": "a size"}
    data: Json = {
        "summary": "Scale the first column.",
        "language": "hip_cuda",
        "spec": "specs/families/demo.yaml",
        "template": "demo.cu.jinja",
        "reference": "demo",
        "axes": {"rows": axis, "width": axis},
        "constants": {"limit": 1000},
        "options": {"mode": {"choices": ["plain", "extra"], "default": "plain", "doc": "whether bias is read"}},
        "variants": {"flag": "DSV4GEN_DEMO", "choices": ["new", "old"], "default": "new"},
        "main": "run",
        "ops": {
            "run": {
                "summary": "out[row] = data[row, 0] * scale",
                "tensors": [
                    tensor("data", "f32", ["rows", "width"], ["stride", 1], "in"),
                    tensor("bias", "f32", ["rows"], [1], "in", when=expression(["==", "mode", ["choice", "extra"]])),
                    tensor("out", "f32", ["rows"], [1], "out"),
                ],
                "params": {
                    "format": params.format,
                    "size": params.size,
                    "fields": [[field.name, field.kind, field.offset] for field in params.fields],
                },
                "workspaces": [
                    {
                        "name": "scratch",
                        "dtype": "u8",
                        "bytes": expression(["*", "rows", 256]),
                        "init": "zero",
                        "restore": "zero",
                        "scope": "stream",
                        "paths": ["pool"],
                    }
                ],
                "paths": [
                    path("remote", True, [launch("tiles")], rejected={"reason": "no remote shared memory", "key": "x"}),
                    path(
                        "pool", [">", "width", 4096],
                        [launch("pool", cluster=16, shared=65536), launch("tiles", dependent=True)],
                    ),
                    path("single", True, [launch("tiles")]),
                    path("legacy", True, [launch("old")], variant="old"),
                ],
            }
        },
        "kernels": {
            "tiles": kernel((["<=", "width", "limit"], 128, "demo_small"), (True, 256, "demo_large")),
            "pool": kernel((True, 512, "demo_pool")),
            "old": kernel((True, 64, "demo_old")),
        },
        "proofs": [],
        "floors": {"bytes": expression(0), "flops": expression(0)},
        "hazards": [],
        "shapes": {"test": []},
        "bench": {},
    }  # fmt: skip
    return {**data, "digest": digest_json(data)}


def source_text(api: str = "cuda", extra: str = "") -> str:
    """The family's source with its markers."""
    entries = "".join(f"// ---- entry: {name} ----\n{ENTRY.format(symbol=name)}\n" for name in SYMBOLS)
    return f"// demo\n\n// ==== device layer ====\n{LAYER[api]}\n// ==== kernel body ====\n{BODY}{extra}\n{entries}"


def write_folder(
    root: Path,
    target: str = "sm_90",
    *,
    api: str = "cuda",
    arch: str = "sm_90a",
    also: tuple[str, ...] = (),
    families: Mapping[str, Json] | None = None,
    source: str | None = None,
) -> Path:
    """Write `<root>/<target>` with its manifest; returns the folder."""
    folder = root / target
    folder.mkdir(parents=True, exist_ok=True)
    name = f"demo.{SUFFIX[api]}"
    text = source if source is not None else source_text(api)
    count = text.count("\n")
    source_map = {"file": name, "lines": count, "templates": ["hip_cuda/demo.cu.jinja"], "runs": [[1, 0, 101]]}
    files = {name: text.encode(), f"maps/{name}.json": json.dumps(source_map).encode()}
    families = {"demo": demo_family()} if families is None else families
    files |= {plan_file(family): json_text(entry).encode() for family, entry in families.items()}
    data = {
        "schema": SCHEMA,
        "generator": "0",
        "target": {"name": target, "api": api, "arch": arch, "also": list(also), "facts": {}},
        "families": sorted(families),
        "outputs": {file: digest_bytes(content) for file, content in files.items()},
    }
    manifest = Manifest(data, families)
    for file, content in files.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(content)
    (folder / "manifest.json").write_text(manifest.to_text(), encoding="utf-8")
    return folder
