"""Shipped gather_dequant modules against the reference, on Triton's interpreter."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import torch

from dsv4gen.base.errors import ArgumentError, VerifyError
from dsv4gen.interpret import InterpreterWorker
from dsv4gen.reference import fp8, hazards
from dsv4gen.reference.compare import check_exact, check_untouched
from dsv4gen.reference.gather_dequant import V4, store_tokens
from dsv4gen.reference.gather_dequant_cases import Case, build_case, products_case, verification_cases
from tests.triton import checks
from tests.triton.checks import DUAL, SHAPE, run
from tests.triton.modules import SMALL_THRESHOLDS, module, plan

#: wave 64 with rounding in software; wave 64 with rounding in hardware; wave 32
TARGETS = ("gfx942", "gfx950", "gfx1100")
TARGET = "gfx950"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("check", checks.CHECKS.values(), ids=checks.CHECKS)
def test_checks(worker: InterpreterWorker, check: checks.Check, target: str) -> None:
    check(worker, module(target))


@pytest.mark.parametrize(
    ("target", "dialect"), [("gfx942", fp8.E4M3FNUZ), ("gfx950", fp8.E4M3FN), ("sm_90", fp8.E4M3FN)], ids=str
)
def test_native_conversion_of_every_code_and_scale(
    worker: InterpreterWorker, target: str, dialect: fp8.Dialect
) -> None:
    """The launch functions avoid it under the interpreter; the kernel with it is the one that ships."""
    case = products_case(dialect.name)
    pool, indices, lengths = (case.arguments[name] for name in ("cache", "indices", "lengths"))
    assert isinstance(pool, torch.Tensor) and isinstance(indices, torch.Tensor)
    out, mask, rows = case.out.tensor, case.mask.tensor, indices.shape[1]
    numbers = (rows, 1, rows, 1, 1, pool.stride(0), *indices.stride(), 1, *out.stride()[:2], *mask.stride())
    constants = {"DIALECT": dialect.name, "HAS_LENGTHS": True, "NATIVE": True, "ROWS": 16}
    grid = [-(-rows // 16)]
    worker.launch(module(target), "gather_scope", grid, pool, indices, lengths, out, mask, *numbers, **constants)
    case.check()


@pytest.mark.parametrize("name", plan(TARGET).hazards)
@pytest.mark.parametrize("shape", [SHAPE, DUAL], ids=["gather", "gather_dual"])
def test_every_hazard_of_the_spec(worker: InterpreterWorker, shape: dict[str, int], name: str) -> None:
    run(worker, module(TARGET), build_case(shape, names=(name,), seed=3))


def test_all_hazards_together(worker: InterpreterWorker) -> None:
    names = [name for name in plan(TARGET).hazards if name not in ("index_all_invalid", "empty")]
    for dialect in fp8.DIALECTS:
        run(worker, module(TARGET), build_case({**DUAL, "tokens": 5, "queries": 3}, names=names, dialect=dialect))


@pytest.mark.parametrize("shape", plan(TARGET).test_shapes, ids=lambda shape: "-".join(map(str, shape.values())))
def test_shapes_of_the_spec(worker: InterpreterWorker, shape: dict[str, int]) -> None:
    names = ("index_minus_one", "index_past_end", "length_zero", "length_above_width")
    run(worker, module(TARGET), build_case(shape, names=names, dialect="e4m3fnuz"))


@pytest.mark.parametrize("queries", [1, 2, 4])
def test_queries_share_a_length(worker: InterpreterWorker, queries: int) -> None:
    run(worker, module(TARGET), build_case({**SHAPE, "tokens": 7, "queries": queries}))


@pytest.mark.parametrize(("page_size", "extra_page_size"), [(2, 53), (53, 2), (64, 256), (256, 64), (1, 61)])
def test_unequal_page_sizes(worker: InterpreterWorker, page_size: int, extra_page_size: int) -> None:
    shape = {**DUAL, "page_size": page_size, "extra_page_size": extra_page_size}
    run(worker, module(TARGET), build_case(shape, names=("index_garbage",)))


@pytest.mark.parametrize("target", ["gfx942", "sm_90"])
def test_every_tile_and_both_launch_paths(worker: InterpreterWorker, target: str) -> None:
    """With thresholds of a few rows the public functions walk through all buckets and paths."""
    small = module(target, edits=SMALL_THRESHOLDS)
    for tokens in (1, 2, 5):
        run(worker, small, build_case({**SHAPE, "tokens": tokens, "width": 17}))
        run(worker, small, build_case({**DUAL, "tokens": tokens, "width": 17}))
    assert [path.name for path in plan(target).op("gather_dual").launch_paths] == ["fused", "separate"]


@pytest.mark.parametrize("empty", ["tokens", "width", "extra_width", "pages"])
def test_empty_axes(worker: InterpreterWorker, empty: str) -> None:
    run(worker, module(TARGET), build_case({**DUAL, empty: 0}))
    if empty != "extra_width":
        run(worker, module(TARGET), build_case({**SHAPE, empty: 0}))


def test_separate_launches_skip_an_empty_scope(worker: InterpreterWorker) -> None:
    small = module(TARGET, edits=SMALL_THRESHOLDS)
    for empty in ("width", "extra_width"):
        run(worker, small, build_case({**DUAL, "tokens": 9, empty: 0}))


def test_misaligned_cache_is_refused(worker: InterpreterWorker) -> None:
    case = build_case(SHAPE)
    pages, stride = 3, V4.page_bytes(5)
    memory = torch.zeros(pages * (stride + 8) + 16, dtype=torch.uint8)
    moved = memory.as_strided((pages, stride), (stride, 1), 8)
    apart = memory.as_strided((pages, stride), (stride + 8, 1))
    for cache in (moved, apart):
        assert cache.numel() >= 3 * 5 * 584
        with pytest.raises(ArgumentError, match=r"cache: pages of .* are not aligned") as caught:
            worker.call(module(TARGET), "gather", **{**case.arguments, "cache": cache})
        assert "multiples of 16 bytes" in caught.value.remedy


@pytest.mark.parametrize("page_size", [0, 6, 64])
def test_a_page_size_that_pages_cannot_hold_is_refused(worker: InterpreterWorker, page_size: int) -> None:
    case = build_case(SHAPE)
    with pytest.raises(ArgumentError, match=f"bytes are too few for 3 pages of {page_size} tokens"):
        worker.call(module(TARGET), "gather", **{**case.arguments, "page_size": page_size})


def test_bl14_mixed_dialects_read_the_same_bytes_a_factor_of_two_apart(worker: InterpreterWorker) -> None:
    case = build_case({**SHAPE, "width": 4}, lengths=False, dialect="e4m3fn")
    same = {f"extra_{name}": case.arguments[name] for name in ("cache", "page_size", "indices", "lengths")}
    out, mask = torch.zeros(3, 8, 512, dtype=torch.bfloat16), torch.zeros(3, 8, dtype=torch.bool)
    arguments = {**case.arguments, **same, "out": out, "mask": mask, "k_offset": 0, "extra_dialect": "e4m3fnuz"}
    worker.call(module("gfx942"), "gather_dual", **arguments)
    first, second = out[:, :4, : V4.codes].float(), out[:, 4:, : V4.codes].float()
    comparable = torch.isfinite(first) & torch.isfinite(second) & (first.abs() > 2.0**-120)
    assert comparable.any()
    assert torch.equal(first[comparable], 2 * second[comparable])


def test_bl16_extreme_scales_and_zero_tiles(worker: InterpreterWorker) -> None:
    scales = torch.tensor([[0, 1, 126, 127, 128, 254, 255], [105] * 7], dtype=torch.uint8)
    codes = torch.full((2, V4.codes), 0x38, dtype=torch.uint8)
    codes[1] = 0
    pool = torch.zeros(1, V4.page_bytes(2), dtype=torch.uint8)
    store_tokens(pool, 2, torch.arange(2), codes, scales, torch.zeros(2, V4.rope, dtype=torch.bfloat16))
    out = torch.full((1, 2, V4.width), 7.0, dtype=torch.bfloat16)
    mask = torch.ones(1, 2, dtype=torch.bool)
    indices = torch.tensor([[0, 1]], dtype=torch.int32)
    for target in TARGETS:
        worker.call(module(target), "gather", cache=pool, indices=indices, out=out, mask=mask, page_size=2)
        expected = torch.tensor([2.0**-127, 2.0**-126, 0.5, 1.0, 2.0, 2.0**127, torch.nan]).bfloat16()
        check_exact(out[0, 0, : V4.codes : V4.tile], expected, name=target)
        assert torch.equal(out[0, 1], torch.zeros(V4.width, dtype=torch.bfloat16))


def test_bl21_offsets_of_the_published_pool() -> None:
    """The reference's own addresses, and the wrap that a 32-bit product would show."""
    slot = checks.FAR_PAGE * checks.BIG_PAGE
    stride = V4.page_bytes(checks.BIG_PAGE)
    assert slot == 3_671_040
    assert V4.data_offset(slot, checks.BIG_PAGE, stride) == 2_147_558_400
    assert (2_147_558_400 + 2**31) % 2**32 - 2**31 == -2_147_408_896
    assert V4.scale_offset(slot, checks.BIG_PAGE, stride) == 2_147_558_400 + 147_456


@pytest.mark.parametrize(("page_size", "stride"), [(256, 149760), (64, 37440), (2, 1728), (1, 1152)])
def test_page_strides(page_size: int, stride: int) -> None:
    assert V4.page_bytes(page_size) == stride


def test_bl22_the_writer_skips_invalid_slots() -> None:
    pool = torch.full((2, V4.page_bytes(4)), 0xAB, dtype=torch.uint8)
    before = pool.clone()
    codes, scales, rope = checks.random_tokens(4, torch.Generator().manual_seed(1))
    store_tokens(pool, 4, torch.tensor([-1, -1, 5, 8]), codes, scales, rope)
    written = torch.zeros_like(pool, dtype=torch.bool)
    written[1, V4.data_row : 2 * V4.data_row] = True
    written[1, 4 * V4.data_row + V4.scale_row :][: V4.tiles] = True
    check_untouched(pool, before, name="pool", written=written)
    assert torch.equal(pool[1, V4.data_row : V4.data_row + V4.codes], codes[2])


@pytest.mark.parametrize("page_size", [1, 2, 53, 64, 256])
def test_bl25_round_trip_of_writer_and_reader(worker: InterpreterWorker, page_size: int) -> None:
    """Bytes (7t + j) mod 251 stored by the reference writer come back through the kernel, whatever the page size."""
    tokens = 9
    pages = -(-tokens // page_size) + 1
    pattern = (7 * torch.arange(tokens)[:, None] + torch.arange(V4.data_row)) % 251
    codes = pattern[:, : V4.codes].to(torch.uint8)
    rope = pattern[:, V4.codes :].to(torch.uint8).contiguous().view(torch.bfloat16)
    scales = (120 + torch.arange(tokens)[:, None] % 16).expand(tokens, V4.tiles).to(torch.uint8)
    pool = torch.full((pages, V4.page_bytes(page_size)), hazards.POISON_BYTE, dtype=torch.uint8)
    slots = torch.randperm(pages * page_size, generator=torch.Generator().manual_seed(page_size))[:tokens]
    store_tokens(pool, page_size, slots, codes, scales, rope)
    out, mask = torch.zeros(1, tokens, V4.width, dtype=torch.bfloat16), torch.ones(1, tokens, dtype=torch.bool)
    indices = slots.to(torch.int32)[None]
    worker.call(module(TARGET), "gather", cache=pool, indices=indices, out=out, mask=mask, page_size=page_size)
    values = fp8.decode(codes, fp8.E4M3FN) * fp8.decode_scale(scales).repeat_interleave(V4.tile, 1)
    check_exact(out[0, :, : V4.codes], values.bfloat16(), name="codes")
    check_exact(out[0, :, V4.codes :], rope, name="bf16 part", nan_payload=True)


def test_quantised_rows_come_back_close(worker: InterpreterWorker) -> None:
    """Writer and reader of one dialect together: a reader alone cannot notice that they disagree."""
    values = torch.randn(4, V4.codes, generator=torch.Generator().manual_seed(5)) * 3
    for dialect in fp8.DIALECTS.values():
        codes, scales = fp8.quantize_tiles(values.view(4, V4.tiles, V4.tile), dialect)
        pool = torch.zeros(1, V4.page_bytes(4), dtype=torch.uint8)
        rope = torch.zeros(4, V4.rope, dtype=torch.bfloat16)
        store_tokens(pool, 4, torch.arange(4), codes.view(4, -1), scales, rope)
        out, mask = torch.zeros(1, 4, V4.width, dtype=torch.bfloat16), torch.ones(1, 4, dtype=torch.bool)
        indices = torch.arange(4, dtype=torch.int32)[None]
        worker.call(
            module(TARGET), "gather", cache=pool, indices=indices, out=out, mask=mask, page_size=4, dialect=dialect.name
        )
        torch.testing.assert_close(out[0, :, : V4.codes].float(), values, rtol=1 / 16, atol=1e-2)


def test_bl25_kernel_and_reference_take_the_same_layout() -> None:
    constants = plan(TARGET).constants
    assert (V4.codes, V4.rope, V4.tile, V4.scale_row) == tuple(
        constants[n] for n in ("codes", "rope", "tile", "scale_row")
    )
    changed = module(TARGET, edits=(("scale_row: 8 ", "scale_row: 16 "),)).read_text(encoding="utf-8")
    assert "slot * 8" in module(TARGET).read_text(encoding="utf-8")
    assert "slot * 16" in changed


def test_unknown_dialect_is_refused(worker: InterpreterWorker) -> None:
    case = build_case(SHAPE)
    with pytest.raises(Exception, match="no such FP8 dialect"):
        worker.call(module(TARGET), "gather", **{**case.arguments, "dialect": "e4m3"})


def test_modules_are_files_that_state_what_they_need() -> None:
    for target in (*TARGETS, "sm_90"):
        text = Path(module(target)).read_text(encoding="utf-8")
        assert "autotune" not in text
        assert 'TRITON_RANGE = ("3.6", ' in text
        assert "enable_fp_fusion=FP_FUSION" in text
        assert ("float8e4b8" in text) == (target == "gfx942")
        assert ("float8e4nv" in text) == (target in ("gfx950", "sm_90"))


@pytest.mark.parametrize("case", [*verification_cases(full=False)], ids=lambda case: case.name.replace(" ", "-"))
def test_cases_of_verify(worker: InterpreterWorker, case: Case) -> None:
    for target in ("gfx90a", "sm_120"):
        run(worker, module(target), case.fresh())


def test_a_fresh_case_does_not_pass_unrun() -> None:
    case = build_case(SHAPE)
    with pytest.raises(VerifyError):
        case.fresh().check()


def test_bl28_counts_do_not_specialise() -> None:
    """One compile serves every number of tokens, rows and pages; pointers and strides stay specialised."""
    text = module("sm_90").read_text(encoding="utf-8")
    lists = [ast.literal_eval(found) for found in re.findall(r"do_not_specialize=(\(.*?\))\)", text)]
    for op, unspecialised in zip(("gather", "gather_dual"), lists, strict=True):
        counts = {field.name for field in plan("sm_90").op(op).params.fields if field.kind in ("u32", "i32")}
        assert set(unspecialised) == counts
