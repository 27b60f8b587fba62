"""The family model and its cross references: each rule with the edit that breaks it."""

# ruff: noqa: E501 - one mistake per line

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dsv4gen.spec import load_specs
from tests.spec.samples import FAMILY, damage, load_errors, write_specs


def test_the_sample_is_sound(tmp_path: Path) -> None:
    family = load_specs(write_specs(tmp_path)).families["sample"]
    op, main = family.model.ops["run"], family.model.kernels["main"]
    assert op.launch_paths[0].launches == ("part", "main")
    assert op.launch_paths[0].requires == ("not cluster.remote_shared",)
    assert op.launch_paths[1].domain == "true"
    assert op.tensors["work"].scope == "stream"
    assert op.tensors["x"].strides == ("x_stride", "1")
    assert main.grid == ("batch", "1", "1")
    assert main.tiles["threads"] == (64, 128)
    assert (family.model.kernels["part"].cluster, family.model.kernels["part"].pdl) == ("2", True)
    assert family.place("ops", "run", "launch_paths", 0, "prefer").line == 36


BROKEN = [
    ("summary: A family for tests.", 'summary: "A \\0 family"', "summary: the character U+0000 cannot be printed"),
    ("summary: A family for tests.", "summary: 'A \"\"\"; import os'", "summary: three quotes in a row"),
    ("summary: A family for tests.", "summary: A \\N family", "summary: three quotes in a row, a quote"),
    ("summary: A family for tests.", "summary: 'A \"family\"'", "summary: three quotes in a row, a quote at the end"),
    ("summary: A family for tests.", 'summary: "A \\u202e family"', "summary: the character U+202E cannot be printed"),
    ("hazards: [nan, inf]", "main: rnu\nhazards: [nan, inf]", "main: 'rnu' is not among the ops (did you mean 'run'?)"),
    ("default: plain", "default: plane", "options.mode.default: 'plane' is not among the choices (did you mean 'plain'?)"),
    ("[plain, mapped]", "[plain, mapped, plain]", "options.mode.choices: 'plain' is listed 2 times"),
    ("  default: v1", "  default: v3", "variants.default: 'v3' is not among the choices"),
    ("hazards: [nan, inf]", "hazards: [nan, nan]", "hazards: 'nan' is listed 2 times"),
    ("wide: 8", "width: 8", "constants.width: the same name stands for something else"),
    ("per: batch", "per: bach", "axes.length.per: 'bach' is no axis (did you mean 'batch'?)"),
    ("max: width, per", "max: widht, per", "axes.length.max: 'widht' is no name known here (did you mean 'width'?)"),
    ("{min: 0, max: 64, doc: rows}", "{min: 65, max: 64, doc: rows}", "axes.batch.min: min 65 is above max 64"),
    ("test: [{batch: 1, width: 32}]", "test: [{batch: 1, wide: 32}]", "shapes.test[0].wide: 'wide' is no axis a caller chooses"),
    ("test: [{batch: 1, width: 32}]", "test: [{batch: 1, length: 3}]", "shapes.test[0].length: 'length' is no axis a caller chooses"),
    ("test: [{batch: 1, width: 32}]", "test: [{batch: 65}]", "shapes.test[0].batch: 65 is above the axis's max 64"),
    ("test: [{batch: 1, width: 32}]", "test: [{batch: -1}]", "shapes.test[0].batch: -1 is below the axis's min 0"),
    ("params: [x, map", "params: [x, x, map", "ops.run.params: 'x' is listed 2 times"),
    ("params: [x, map", "params: [x, mapp, map", "ops.run.params[1]: 'mapp' is no tensor, stride, axis or scalar (did you mean 'map'?)"),
    ("params: [x, map", "params: [x, length, map", "ops.run.params[1]: 'length' is no tensor, stride, axis or scalar"),
    ("work, x_stride, width", "x_stride, width", "ops.run.tensors.work: missing from params"),
    ("width, eps]", "width]", "ops.run.scalars.eps: missing from params"),
    ("strides: [x_stride, 1]", "strides: [x_strid, 1]", "ops.run.tensors.x.strides[0]: 'x_strid' is no name known here"),
    ("strides: [x_stride, 1]", "strides: [x_stride]", "ops.run.tensors.x.strides: 1 strides for 2 dimensions"),
    ("shape: [batch, width], ", "shape: [batch, wdth], ", "ops.run.tensors.x.shape[1]: 'wdth' is no name known here (did you mean 'width'?)"),
    ("shape: [batch, width], ", "shape: [batch, length], ", "ops.run.tensors.x.shape[1]: 'length' is no name known here"),
    ("{dtype: f32, shape: [batch, w", "{dtype: fp32, shape: [batch, w", "ops.run.tensors.x.dtype: 'fp32' is no dtype and no option (did you mean 'f32'?)"),
    ("{dtype: f32, shape: [batch, w", "{dtype: mode, shape: [batch, w", "ops.run.tensors.x.dtype: 'plain' is a choice of 'mode' but no dtype"),
    ("align: 16", "align: 12", "ops.run.tensors.out.align: 12 is not a power of two"),
    ("mode == 'mapped'", "mode == 'maped'", "ops.run.tensors.map.when: 'maped' is no choice of the options named here (did you mean 'mapped'?)"),
    ("mode == 'mapped'", "mod == 'mapped'", "ops.run.tensors.map.when: 'mod' is no name known here"),
    ("bytes: \"batch * 64\", ", "", "ops.run.tensors.work: a workspace needs 'bytes'"),
    ("bytes: \"batch * 64\", ", "bytes: \"batch * 64\", shape: [batch], ", "ops.run.tensors.work.shape: 'shape' does not go with role workspace"),
    ("align: 16, role: out", "align: 16, role: out, init: zero", "ops.run.tensors.out.init: 'init' does not go with role out"),
    ("shape: [width], role: in", "role: in", "ops.run.tensors.map: a tensor needs 'shape'"),
    ("paths: [split]", "paths: [splt]", "ops.run.tensors.work.paths[0]: 'splt' is no launch path (did you mean 'split'?)"),
    ("variant: v2", "variant: v9", "ops.run.launch_paths[0].variant: 'v9' is no variant"),
    ("name: single", "name: split", "ops.run.launch_paths: 'split' is listed 2 times"),
    ("launches: [part, main]", "launches: [prt, main]", "ops.run.launch_paths[0].launches[0]: 'prt' is no kernel (did you mean 'part'?)"),
    ("launches: [part, main]", "launches: [main]", "kernels.part: no launch path launches this kernel"),
    ("sample_{mode}_t{threads}", "sample_{mode}_t{thread}", "kernels.main.symbol: 'thread' is no option and no tile (did you mean 'threads'?)"),
    ("sample_{mode}_t{threads}", "sample_{mode}", "kernels.main.buckets[1].tile: another bucket has a different tile under the same symbol"),
    ("symbol: sample_part", "symbol: sample_plain_t64", "kernels.part.symbol: sample.kernels.main defines the same symbol"),
    ("loads: [1, 2]", "loads: [1, 2, 2]", "kernels.main.tiles.loads: '2' is listed 2 times"),
    ("loads: [1, 2]", "loads: [-1, 1, 2]", "kernels.main.tiles.loads: -1 is negative"),
    ("threads: 128, loads: 2}", "threads: 192, loads: 2}", "kernels.main.buckets[1].tile.threads: 192 is not among the tiles 64, 128"),
    ("threads: 128, loads: 2}", "threads: 128}", "kernels.main.buckets[1].tile: no value for 'loads'"),
    ("threads: 128, loads: 2}", "threads: 128, loads: 2, load: 1}", "kernels.main.buckets[1].tile.load: 'load' is no tile dimension (did you mean 'loads'?)"),
    ("when: true, tile: {threads: 128", "when: \"width <= 99\", tile: {threads: 128", "kernels.main.buckets[1].when: the last row must always hold"),
    ("when: \"width <= 64\", tile", "when: true, tile", "kernels.main.buckets[0].when: always holds, so the rows below it are dead"),
    ("{name: long,", "{name: short,", "kernels.main.row_paths: 'short' is listed 2 times"),
    ("pdl: true", "pdl: true\n    constexprs: {A: 1}", "kernels.part.constexprs: only Triton kernels have constexprs"),
    ("language: hip_cuda", "language: triton", "kernels.main.tiles: a Triton kernel needs 'num_warps'"),
    ("flag: DSV4GEN_SAMPLE", "flag: DSV4GEN_TARGET", "variants.flag: DSV4GEN_TARGET already belongs to the process-wide variables"),
    ("bits: 64", "bits: 48", "kernels.main.indices.offset.bits: expected one of 32 or 64"),
    ("grid: [batch, 1, 1]", "grid: [batch, 1]", "kernels.main.grid: missing item 2 of the list"),
    ("{op: run, options", "{op: rum, options", "bench.rows.op: 'rum' is no op (did you mean 'run'?)"),
    ("{mode: mapped}", "{mood: mapped}", "bench.rows.options.mood: 'mood' is no option (did you mean 'mode'?)"),
    ("{mode: mapped}", "{mode: maped}", "bench.rows.options.mode: 'maped' is not among the choices (did you mean 'mapped'?)"),
    ("[1, 64], width", "[1, 65], width", "bench.rows.shapes[0].batch: 65 is above the axis's max 64"),
    ("[1, 64], width", "[1, 1], width", "bench.rows.shapes[0].batch: 1 is listed twice"),
    ("[1, 64], width", "[1, 64], length", "bench.rows.shapes[0].length: 'length' is no axis a caller chooses"),
    ("  width: {min: 0", "  bytes: {min: 0", "axes.bytes: 'bytes' is a name that launch functions read"),
    ("  run:\n    summary", "  repr:\n    summary", "ops.repr: 'repr' is a name that launch functions read"),
    ("      eps: {dtype", "      lambda: {dtype", "ops.run.scalars.lambda: 'lambda' is no name in Python"),
    ("      map: {dtype", "      _map: {dtype", "ops.run.tensors._map: '_map' begins with an underscore"),
    ("align: 16, role: out}", "align: 16, role: out, in_place: [x]}", "ops.run.tensors.out.in_place[0]: x has another shape"),
    ("align: 16, role: out}", "align: 16, role: out, in_place: [x]}", "ops.run.tensors.out.in_place[0]: x has another dtype"),
    ("align: 16, role: out}", "align: 16, role: out, in_place: [work]}", "ops.run.tensors.out.in_place[0]: 'work' is no input"),
    ("[x_stride, 1], role: in}", "[x_stride, 1], role: in, in_place: [map]}", "ops.run.tensors.x.in_place: only a written tensor"),
    ("template: topk.cu.jinja", "template: ../up.cu.jinja", "template: string should match pattern"),
    ("template: topk.cu.jinja", "template: tokp.cu.jinja", "template: 'tokp.cu.jinja' is no file of templates/hip_cuda (did you mean 'topk.cu.jinja'?)"),
    ("template: topk.cu.jinja", "template: compress.py.jinja", "template: 'compress.py.jinja' is no file of templates/hip_cuda"),
    ("reference: topk", "reference: tpok", "reference: 'tpok' is no module of dsv4gen.reference (did you mean 'topk'?)"),
    ("reference: topk", "reference: hazards", "reference: no module hazards_cases has the calls that are judged by it"),
    ("hazards: [nan, inf]", "hazards: [nam, inf]", "hazards[0]: 'nam' is no hazard (did you mean 'nan'?)"),
    ("wide: 8", "wide: -8", "constants.wide: -8 is negative"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), BROKEN, ids=[expected for _, _, expected in BROKEN])
def test_cross_reference(tmp_path: Path, old: str, new: str, expected: str) -> None:
    broken = damage(FAMILY, old, new)
    errors = load_errors(write_specs(tmp_path, family=broken))
    matching = [error for error in errors if expected in error.message]
    assert matching, [str(error) for error in errors]
    place = matching[0].place
    assert place is not None and place.line is not None
    assert place.file.endswith("families/sample.yaml")
    path = expected.partition(":")[0]
    key = re.findall(r"[a-z_]+", path)[-1]
    assert f"{key}:" in broken.splitlines()[place.line - 1]


def test_a_tile_dimension_may_be_zero(tmp_path: Path) -> None:
    """What it stands for is left out."""
    edited = damage(
        damage(FAMILY, "loads: [1, 2]", "loads: [0, 1, 2]"), "threads: 64, loads: 1}", "threads: 64, loads: 0}"
    )
    main = load_specs(write_specs(tmp_path, family=edited)).families["sample"].model.kernels["main"]
    assert main.buckets[0].tile == {"threads": 64, "loads": 0}


def test_two_families_may_not_share_symbols_or_flags(tmp_path: Path) -> None:
    write_specs(tmp_path)
    (tmp_path / "families" / "twin.yaml").write_text(damage(FAMILY, "family: sample", "family: twin"))
    messages = [error.message for error in load_errors(tmp_path)]
    assert "kernels.main.symbol: sample.kernels.main defines the same symbol" in messages
    assert "kernels.part.symbol: sample.kernels.part defines the same symbol" in messages
    assert "variants.flag: DSV4GEN_SAMPLE already belongs to sample" in messages


def test_no_kernel_without_buckets(tmp_path: Path) -> None:
    broken = damage(FAMILY, "    buckets:\n      - {when: true, tile: {threads: 64}}\n", "    buckets: []\n")
    assert "kernels.part.buckets: tuple should have at least 1 item" in str(
        load_errors(write_specs(tmp_path, family=broken))[0]
    )
