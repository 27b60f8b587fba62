"""Well-formed specs that are wrong: refused at their line, with the shape that shows it."""

from __future__ import annotations

import pytest

from dsv4gen.base.errors import DsvError
from tests.plan.planned import SPEC, plan
from tests.specs import Copy


def refusal(copy: Copy, target: str = "gfx950") -> DsvError:
    with pytest.raises(DsvError) as caught:
        plan(copy, target)
    return getattr(caught.value, "errors", (caught.value,))[0]


def lines_of(copy: Copy, text: str) -> list[int]:
    lines = (copy.folder / SPEC).read_text(encoding="utf-8").split("\n")
    return [number for number, line in enumerate(lines, start=1) if text in line]


def line_of(copy: Copy, text: str) -> int:
    return lines_of(copy, text)[0]


def test_the_shipped_spec_plans_on_every_target(copy: Copy) -> None:
    for target in (
        "gfx90a",
        "gfx942",
        "gfx950",
        "gfx1100",
        "gfx1201",
        "gfx1250",
        "sm_80",
        "sm_89",
        "sm_90",
        "sm_100",
        "sm_120",
    ):
        made = plan(copy, target)
        assert {instance.options["mode"] for kernel in made.kernels for instance in kernel.instances} == {
            "indices",
            "page_table",
            "dual",
            "ragged",
            "packed",
        }


def test_a_tile_that_cannot_fit_is_refused_with_its_formula(copy: Copy) -> None:
    copy.edit(SPEC, "4 * fine_bins", "65536 + 4 * fine_bins")
    plan(copy, "gfx950")
    error = refusal(copy, "gfx1201")
    assert "shared memory does not fit at block_threads=" in error.message
    assert "over the limit of 65536" in error.message
    assert error.place is not None and error.place.line in lines_of(copy, "65536 + 4")


@pytest.mark.parametrize(
    ("target", "limit"),
    [("gfx942", 65536), ("gfx950", 163840), ("gfx1201", 65536), ("sm_90", 49152), ("sm_120", 49152)],
)
def test_each_target_has_its_own_shared_memory_limit(copy: Copy, target: str, limit: int) -> None:
    copy.edit(SPEC, "4 * fine_bins", "300000 + 4 * fine_bins")
    assert f"over the limit of {limit}" in refusal(copy, target).message


def test_a_coverage_gap_is_refused_with_a_shape(copy: Copy) -> None:
    copy.edit(
        SPEC,
        'name: streaming, domain: "true", prefer: "true"',
        'name: streaming, domain: "true", prefer: "width > 20000"',
    )
    error = refusal(copy)
    assert "no path takes" in error.message
    assert "seq_len=" in error.message and "width=" in error.message
    assert error.place is not None and error.place.line is not None


def test_a_dead_path_is_refused(copy: Copy) -> None:
    copy.edit(
        SPEC,
        "- {name: register4,",
        '- {name: late, domain: "true", prefer: "head + seq_len <= vector * block_threads"}\n      - {name: register4,',
    )
    error = refusal(copy)
    assert "'late' is never chosen" in error.message


def test_a_path_wanted_where_it_is_wrong_is_refused_with_a_shape(copy: Copy) -> None:
    copy.edit(
        SPEC,
        'prefer: "head + seq_len <= 4 * vector * block_threads"',
        'prefer: "seq_len <= 4 * vector * block_threads"',
    )
    error = refusal(copy)
    assert "register4" in error.message
    assert "domain" in error.message
    assert "head=" in error.message


def test_a_bucket_list_that_ends_early_is_refused(copy: Copy) -> None:
    copy.edit(SPEC, '{when: "true", tile: {block_threads: 1024', '{when: "width <= 65536", tile: {block_threads: 1024')
    assert "bucket" in refusal(copy).message


def test_an_index_too_wide_for_its_type_is_refused_with_a_shape(copy: Copy) -> None:
    copy.edit(
        SPEC, 'score_offset: {value: "batch * width", bits: 64}', 'score_offset: {value: "batch * width", bits: 32}'
    )
    error = refusal(copy)
    assert "batch=" in error.message and "width=" in error.message


def test_launch_bounds_no_unit_can_hold_are_refused(copy: Copy) -> None:
    copy.edit(SPEC, "min(1024 // block_threads, shared.unit // 18432)", "4096 // block_threads")
    assert "blocks of 256 threads" in refusal(copy).message


def test_two_tiles_under_one_symbol_are_refused(copy: Copy) -> None:
    copy.edit(SPEC, "topk_{mode}_t{block_threads}", "topk_{mode}_c{coarse_bits}")
    assert "different tile under the same symbol" in refusal(copy).message


def test_buckets_share_a_symbol_where_facts_rule_one_out(copy: Copy) -> None:
    """256 threads have a pool of candidates where a unit has memory for four blocks, and none elsewhere; a target that
    can hold both is refused at the second."""
    pools = {
        target: {
            one.tile["pool_capacity"] for one in plan(copy, target).kernel("select").instances if one.threads == 256
        }
        for target in ("sm_90", "gfx942")
    }
    assert pools == {"sm_90": {4096}, "gfx942": {0}}
    copy.edit(SPEC, "4 * units and shared.unit < 4 * 36864", "4 * units and shared.unit < 8 * 36864")
    plan(copy, "gfx942")
    error = refusal(copy, "sm_90")
    assert "another bucket has a different tile under the same symbol on sm_90" in error.message
    assert error.place is not None and error.place.line == line_of(copy, "shared.unit < 8 * 36864")
    assert error.remedy == "add the dimension that differs to the symbol"


def test_a_path_whose_capability_is_missing_is_rejected_with_reason_and_key(copy: Copy) -> None:
    copy.edit(
        SPEC,
        "- {name: single,",
        '- {name: fast, requires: ["cluster.remote_shared"], domain: "true", prefer: "width == 4095", '
        "launches: [select]}\n      - {name: single,",
    )
    fast = next(path for path in plan(copy, "gfx950").op("select").launch_paths if path.name == "fast")
    assert fast.rejected is not None
    assert fast.rejected.reason == "requires cluster.remote_shared, but cluster.remote_shared is False"
    assert fast.rejected.key == "ops.select.launch_paths[4].requires[0]"
    fast = next(path for path in plan(copy, "sm_90").op("select").launch_paths if path.name == "fast")
    assert fast.rejected is None


def test_a_fact_that_is_only_inferred_decides_nothing(copy: Copy) -> None:
    copy.edit(SPEC, "- {name: single,", '- {name: single, requires: ["not atomics.shared_pk_bf16"],')
    error = refusal(copy, "sm_80")
    assert "the fact atomics.shared_pk_bf16 of sm_80 is only inferred" in error.message
    assert error.place is not None and "specs/platforms" in error.place.file


SIZE = "batch * split_row_bytes"


@pytest.mark.parametrize(
    ("size", "message"),
    [
        ("0 - batch", "workspace bytes: '0 - batch' is -1 at batch=1, but no memory has fewer than 0 bytes"),
        ("batch * (k - 600)", "workspace bytes: 'batch * (k - 600)' is -599 at batch=1 k=1"),
        ("batch * units - 1", "workspace bytes: 'batch * units - 1' is -1 at batch=0 units=1"),
        ("8 if mode == 'dual' else 0 - k", "workspace bytes mode=indices: "),
        ("batch * width * width", "at batch=524288 width=4194304, above 9223372036854775807 (i64)"),
        ("width // (k - 5)", "divides by a number that is not positive at k=1"),
    ],
)
def test_a_workspace_that_is_no_number_of_bytes_is_refused_at_its_line(copy: Copy, size: str, message: str) -> None:
    copy.edit(SPEC, f'bytes: "{SIZE}"', f'bytes: "{size}"')
    error = refusal(copy)
    assert message in error.message
    assert error.place is not None and error.place.column is not None
    assert error.place.line == line_of(copy, f'bytes: "{size}"')


def test_the_size_of_a_workspace_is_among_the_proofs(copy: Copy) -> None:
    copy.edit(SPEC, f'bytes: "{SIZE}"', "bytes: \"batch * max(0, k - 600) * (2 if sorted == 'none' else 4)\"")
    cells = [proof.proof.row() for proof in plan(copy).proofs if "bytes" in proof.proof.row()[0]]
    assert [(name, value) for name, _, value, *_ in cells] == [
        ("workspace bytes sorted=none", str(2**20 * 1448 * 2)),
        ("workspace bytes sorted=index", str(2**20 * 1448 * 4)),
    ]


#: the first allowance of the spec, of short rows
REGISTERS = '{registers: "16 if wave.launch == 64 else 4"'
MODES = frozenset({"indices", "page_table", "dual", "ragged", "packed"})
#: modes that may spill, by kernel
SPILLING = {"select": MODES, "cluster": MODES}


def test_an_allowance_to_spill_is_for_the_modes_and_targets_it_names(copy: Copy) -> None:
    assert not [kernel.name for kernel in plan(copy, "gfx1201").kernels if kernel.spills]
    assert {kernel.name: kernel.spills.registers for kernel in plan(copy, "gfx950").kernels if kernel.spills} == {
        "short": 16,
        "select": 32,
    }
    for kernel in plan(copy, "sm_90").kernels:
        allowed = {i.options["mode"] for i in kernel.instances if kernel.spills and kernel.spills.allowed(i.options)}
        assert allowed == SPILLING.get(kernel.name, set()), kernel.name


def test_an_allowance_that_reads_a_shape_is_refused(copy: Copy) -> None:
    copy.edit(SPEC, f'{REGISTERS}, when: "', f'{REGISTERS}, when: "width > 8 or ')
    error = refusal(copy, "sm_90")
    assert error.message == "spills.when reads 'width', which is known only when a shape is"
    assert error.remedy == "target facts, mode, nan_policy, score_dtype, sorted, tie_break may be read"
    assert error.place is not None and error.place.line == line_of(copy, "spills: ")


@pytest.mark.parametrize(
    "registers", ["0 - 1", "batch", "2 * units", "wave.launch == 64", "16 if wave.launch == 64 else k"]
)
def test_an_allowance_for_no_number_is_refused(copy: Copy, registers: str) -> None:
    copy.edit(SPEC, f"{REGISTERS},", f'{{registers: "{registers}",')
    error = refusal(copy, "gfx1201")
    assert error.message == f"spills.registers is no whole number from 0 on gfx1201: {registers}"
    assert error.place is not None and error.place.line == line_of(copy, "spills: ")
    assert error.remedy == "state a number, or an expression over target facts"
