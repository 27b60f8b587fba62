"""Arrays, shared memory and their borders: what comes back, and what is reported when a kernel steps outside."""

from __future__ import annotations

import numpy as np
import pytest

from dsv4gen.base.errors import EmulationError
from dsv4gen.base.params import ParamsLayout
from dsv4gen.emulate.simt import SimtResult, memory_file
from dsv4gen.emulate.simt.memory_file import Array
from tests.simt.layers import LAYOUT, arguments, build

BORDERS = """
struct Shared {
  u32 words[10];
};

struct Big {
  u32 words[16384];
  u32 one_more;
};

DSV4_KERNEL(32, 1) void write_at(DSV4_PARAMS(Params, params)) {
  if (thread_id() == 7) params.out[static_cast<i64>(static_cast<i32>(params.n))] = 1;
}

DSV4_KERNEL(32, 1) void write_input(DSV4_PARAMS(Params, params)) {
  const_cast<float*>(params.input)[thread_id()] = 1.0f;
}

DSV4_KERNEL(32, 1) void read_at(DSV4_PARAMS(Params, params)) {
  params.out[thread_id()] = float_bits(load_scalar(params.input + params.n));
}

DSV4_KERNEL(32, 1) void copy(DSV4_PARAMS(Params, params)) {
  const u32 thread = thread_id();
  if (thread < params.n) params.out[thread] = float_bits(params.input[thread]);
}

DSV4_KERNEL(32, 1) void vector_at(DSV4_PARAMS(Params, params)) {
  params.out[thread_id()] = float_bits(load_vector(params.input + params.n).x);
}

DSV4_KERNEL(32, 1) void shared_at(DSV4_PARAMS(Params, params)) {
  DSV4_SHARED(Shared, shared);
  if (thread_id() == 3) shared.words[static_cast<i64>(static_cast<i32>(params.n))] = 5;
  params.out[thread_id()] = shared.words[9];
}

DSV4_KERNEL(32, 1) void shared_big(DSV4_PARAMS(Params, params)) {
  DSV4_SHARED(Big, shared);
  shared.words[thread_id()] = params.n;
  params.out[thread_id()] = shared.words[thread_id()];
}

DSV4_KERNEL(32, 1) void shared_twice(DSV4_PARAMS(Params, params)) {
  DSV4_SHARED(Shared, first);
  DSV4_SHARED(Big, second);
  second.words[0] = first.words[0];
  params.out[0] = second.words[0];
}
"""


def launch(kernel: str, out: Array, *, given: Array | int = 0, n: int = 0, shared_limit: int = 65536) -> SimtResult:
    values = arguments(out, given, n)
    return build(BORDERS, 32).launch(kernel, LAYOUT, values, 1, 32, shared_limit=shared_limit)


def words(count: int) -> Array:
    return np.zeros(count, np.uint32)


@pytest.mark.parametrize(("index", "offset"), [(5, 20), (6, 24), (-1, -4), (-100, -400)])
def test_writes_beside_an_array_are_reported(index: int, offset: int) -> None:
    """Five words end 12 bytes before unmapped memory; before them lies the rest of a page."""
    result = launch("write_at", words(5), n=index)
    assert result.errors == (f"kernel write_at: wrote at byte {offset} of array out, which has 20 bytes",)


@pytest.mark.parametrize(("index", "where"), [(8, "12 bytes past the end"), (8 + 1000, "4012 bytes past the end")])
def test_writes_past_the_page_crash_with_a_name(index: int, where: str) -> None:
    with pytest.raises(EmulationError, match=rf"SIGSEGV.*\n.*thread 7: SIGSEGV: write {where} of array out"):
        launch("write_at", words(5), n=index)


def test_writes_before_the_page_crash_with_a_name() -> None:
    with pytest.raises(EmulationError, match="write 4100 bytes before array out"):
        launch("write_at", words(5), n=-1025)


def test_reads_past_an_array_crash_with_a_name() -> None:
    given = np.ones(4, np.float32)
    with pytest.raises(EmulationError, match="thread 0: SIGSEGV: read 0 bytes past the end of array input"):
        launch("read_at", words(32), given=given, n=4)


def test_null_pointers_are_far_from_every_array() -> None:
    with pytest.raises(EmulationError, match="read at 0x4, far from every array"):
        launch("read_at", words(32), given=0, n=1)


def test_what_was_written_before_a_crash_comes_back() -> None:
    out, given = words(40), np.arange(16, dtype=np.float32)
    with pytest.raises(EmulationError, match="read 0 bytes past the end of array input"):
        launch("copy", out, given=given, n=32)
    assert out[:16].tolist() == given.view(np.uint32).tolist() and not out[16:].any()


def test_read_only_arrays_cannot_be_written() -> None:
    given = np.zeros(32, np.float32)
    launch("write_input", words(1), given=given).raise_errors()
    assert given.all()
    given[:] = 0
    given.flags.writeable = False
    with pytest.raises(EmulationError, match="write at byte 0 of array input, which is read-only"):
        launch("write_input", words(1), given=given)
    assert not given.any()


def test_views_keep_strides_alignment_and_aliasing() -> None:
    buffer = np.arange(64, dtype=np.uint32)
    launch("copy", buffer[40:], given=buffer[3:].view(np.float32), n=8).raise_errors()
    assert buffer.tolist() == [*range(40), *range(3, 11), *range(48, 64)]
    backwards, column = np.arange(8, dtype=np.float32)[::-1], np.arange(32, dtype=np.float32).reshape(8, 4)[:, 1]
    for view in (backwards, column):
        (region,) = memory_file.place({"view": view}, 0)
        first = memory_file.first_address(view)
        assert region.translate(first) % 16 == first % 16
        assert region.size == (32 if view is backwards else 4 * 29)


def test_arrays_end_where_unmapped_memory_begins() -> None:
    for count in (1, 3, 4, 1023, 1024, 1025):
        (region,) = memory_file.place({"array": np.zeros(count, np.float32)}, 0)
        end = region.page_address + region.page_bytes
        assert end % memory_file.PAGE == 0 and 0 <= end - region.address - region.size < 16


def test_empty_arrays_have_an_address_and_no_memory() -> None:
    out = words(32)
    launch("copy", out, given=np.zeros(0, np.float32), n=0).raise_errors()
    with pytest.raises(EmulationError, match="read 0 bytes past the end of array input"):
        launch("copy", out, given=np.zeros(0, np.float32), n=1)


def test_vector_loads_want_16_bytes_alignment() -> None:
    given = np.zeros(64, np.float32)
    launch("vector_at", words(32), given=given, n=4).raise_errors()
    errors = launch("vector_at", words(32), given=given, n=5).errors
    assert len(errors) == 1 and "is not a multiple of 16" in errors[0]
    assert "is not a multiple of 16" in launch("vector_at", words(32), given=given[1:], n=4).errors[0]


def test_shared_memory_is_poisoned_for_every_block() -> None:
    out = words(32)
    launch("shared_at", out, n=0).raise_errors()
    assert set(out.tolist()) == {0xCDCDCDCD}


def test_writes_outside_of_shared_memory() -> None:
    before = launch("shared_at", words(32), n=-1).errors
    where = "kernel shared_at, block (0, 0, 0)"
    assert before == (f"{where}: shared memory written at byte -4 of a struct of 40 bytes",)
    with pytest.raises(EmulationError, match=r"thread 3, after line \d+: SIGSEGV: write outside the block's sh"):
        launch("shared_at", words(32), n=10)


def test_shared_memory_has_a_limit() -> None:
    size = 4 * 16385
    errors = launch("shared_big", words(32)).errors
    assert len(errors) == 1 and f"shared memory of {size} bytes exceeds the limit of 65536" in errors[0]
    result = launch("shared_big", words(32), shared_limit=size)
    assert result.errors == () and result.counters["shared_bytes"] == size


def test_a_block_has_one_shared_struct() -> None:
    errors = launch("shared_twice", words(32), shared_limit=1 << 17).errors
    assert len(errors) == 1 and "second shared struct, of 65540 bytes; the first has 40" in errors[0]


def test_every_kind_of_parameter_arrives() -> None:
    members = [("small", "i32"), ("big", "u64"), ("real", "f32"), ("out", "pointer"), ("far", "i64")]
    layout = ParamsLayout.of((name, kind, "") for name, kind in members)
    body = """
struct Mixed { i32 small; u64 big; float real; float* out; i64 far; };
DSV4_KERNEL(1, 1) void mixed(DSV4_PARAMS(Mixed, params)) {
  params.out[0] = params.small;
  params.out[1] = params.big == 1ull << 63;
  params.out[2] = params.real;
  params.out[3] = params.far == -(1ll << 40);
}
"""
    out = np.zeros(4, np.float32)
    values: dict[str, Array | int | float] = {"small": -3, "big": 1 << 63, "real": 0.25, "far": -(1 << 40)}
    values["out"] = out
    build(body, 32).launch("mixed", layout, values, 1, 1).raise_errors()
    assert out.tolist() == [-3, 1, 0.25, 1]
