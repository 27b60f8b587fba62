"""Small valid specs that tests damage one line at a time."""

from __future__ import annotations

from pathlib import Path

from dsv4gen.base.errors import DsvError, Problems
from dsv4gen.spec import load_specs

FAMILY = """\
family: sample
summary: A family for tests.
language: hip_cuda
template: topk.cu.jinja
reference: topk
axes:
  batch: {min: 0, max: 64, doc: rows}
  width: {min: 0, max: 4096}
  length: {min: 0, max: width, per: batch}
constants:
  wide: 8
options:
  mode: {choices: [plain, mapped], default: plain, doc: what is written}
variants:
  flag: DSV4GEN_SAMPLE
  choices: [v1, v2]
  default: v1
  doc: two versions
ops:
  run:
    summary: Do it.
    tensors:
      x: {dtype: f32, shape: [batch, width], strides: [x_stride, 1], role: in}
      map: {dtype: i32, shape: [width], role: in, when: "mode == 'mapped'"}
      out: {dtype: i32, shape: [batch, wide], align: 16, role: out}
      work:
        {dtype: u8, bytes: "batch * 64", role: workspace, init: zero, restore: zero, scope: stream, paths: [split]}
    scalars:
      eps: {dtype: f32}
    params: [x, map, out, work, x_stride, width, eps]
    launch_paths:
      - name: split
        variant: v2
        requires: ["not cluster.remote_shared"]
        domain: true
        prefer: "width > 64"
        launches: [part, main]
      - {name: single, domain: true, prefer: true, launches: [main]}
kernels:
  main:
    symbol: "sample_{mode}_t{threads}"
    entry: main_row
    grid: [batch, 1, 1]
    tiles: {threads: [64, 128], loads: [1, 2]}
    fits: {threads: threads, shared_bytes: "4 * threads"}
    row_paths:
      - {name: short, domain: "length <= threads", prefer: "length <= threads"}
      - {name: long, domain: true, prefer: true}
    buckets:
      - {when: "width <= 64", tile: {threads: 64, loads: 1}}
      - {when: true, tile: {threads: 128, loads: 2}}
    indices:
      offset: {value: "batch * width", bits: 64}
  part:
    symbol: sample_part
    entry: part_row
    grid: [batch, "ceil_div(width, 64)", 1]
    cluster: 2
    pdl: true
    tiles: {threads: [64]}
    fits: {threads: threads, shared_bytes: 0}
    buckets:
      - {when: true, tile: {threads: 64}}
floors: {bytes: "4 * batch * width", flops: 0}
hazards: [nan, inf]
shapes:
  test: [{batch: 1, width: 32}]
bench:
  rows: {op: run, options: {mode: mapped}, shapes: [{batch: [1, 64], width: 4096}]}
"""

PARENT = """\
target: _base
summary: Facts for tests.
sources:
  LAB: a laboratory
wave: {source: "LAB: counted", mark: ran, sizes: [32], launch: 32, ballot_bits: 32}
"""

CHILD = """\
target: gfx1
summary: A target for tests.
extends: _base
evidence: compiled
wave:
  source: LAB
  mark: read
  mask_bits: 64
  shuffle_width: {value: 32, source: "LAB: guessed", mark: infer}
"""

TUNING = """\
target: gfx1
family: sample
measured: {device: Card, toolchain: clang 22, policy: median of 50, date: 2026-05-26}
kernels:
  main:
    - {when: "width <= 64", tile: {threads: 64, loads: 2}, shape: {batch: 1, width: 64}, microseconds: 3}
    - {when: true, tile: {threads: 128, loads: 2}, shape: {batch: 1, width: 4096}, microseconds: 4.5}
"""


def write_specs(
    root: Path, *, family: str = FAMILY, parent: str = PARENT, child: str = CHILD, tuning: str | None = None
) -> Path:
    """A specs folder with one family, one parent, one target and, if given, one tuning file."""
    files = {"families/sample.yaml": family, "platforms/_base.yaml": parent, "platforms/gfx1.yaml": child}
    if tuning is not None:
        files["tuning/gfx1/sample.yaml"] = tuning
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def load_errors(root: Path) -> list[DsvError]:
    """The mistakes `load_specs` reports, none for a sound folder."""
    try:
        load_specs(root)
    except Problems as problems:
        return list(problems.errors)
    except DsvError as error:
        return [error]
    return []


def damage(text: str, old: str, new: str) -> str:
    """`text` with one passage replaced; the passage must be there exactly once."""
    assert text.count(old) == 1, f"{text.count(old)} times: {old}"
    return text.replace(old, new)
