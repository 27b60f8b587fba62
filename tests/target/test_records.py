"""The shipped records against the documented tables, column by column."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from dsv4gen.target import TargetRecord

TARGETS = (
    "gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250", "sm_80", "sm_89", "sm_90", "sm_100", "sm_120",
)  # fmt: skip

FN = ("e4m3fn",)

#: One row per fact, one column per target in the order above.
TABLE: dict[str, tuple[object, ...]] = {
    "wave.launch": (64, 64, 64, 32, 32, 32, 32, 32, 32, 32, 32),
    "wave.ballot_bits": (64, 64, 64, 64, 64, 64, 32, 32, 32, 32, 32),
    "wave.independent_lanes": (False,) * 6 + (True,) * 5,
    "unit.kind": ("cu", "cu", "cu", "wgp", "wgp", "cu", "sm", "sm", "sm", "sm", "sm"),
    "unit.waves_per_simd": (8, 8, 8, 16, 16, 16, 16, 12, 16, 16, 12),
    "unit.threads": (2048, 2048, 2048, 2048, 2048, 2048, 2048, 1536, 2048, 2048, 1536),
    "unit.blocks": (32, 32, 32, 64, 64, 32, 32, 24, 32, 32, 24),
    "regs.file": (512, 512, 512, 1536, 1536, 1024, 65536, 65536, 65536, 65536, 65536),
    "regs.granule": (8, 8, 8, 24, 24, 16, 256, 256, 256, 256, 256),
    "regs.per_thread": (512, 512, 512, 256, 256, 1024, 255, 255, 255, 255, 255),
    "regs.scalar": (102, 102, 102, 106, 106, 106, None, None, None, None, None),
    "shared.static": (65536, 65536, 163840, 65536, 65536, 327680, 49152, 49152, 49152, 49152, 49152),
    "shared.block": (65536, 65536, 163840, 65536, 65536, 327680, 166912, 101376, 232448, 232448, 101376),
    "shared.unit": (65536, 65536, 163840, 131072, 131072, 327680, 167936, 102400, 233472, 233472, 102400),
    "shared.granule": (512, 512, 1280, 1024, 1024, 2048, 128, 128, 128, 128, 128),
    "shared.reserved": (0,) * 6 + (1024,) * 5,
    "shared.banks": (32, 32, 64, 32, 32, 64, 32, 32, 32, 32, 32),
    "bounds.second": ("waves_per_simd",) * 6 + ("blocks_per_unit",) * 5,
    "cluster.supported": (False, False, False, False, False, True, False, False, True, True, True),
    "cluster.maximum": (0, 0, 0, 0, 0, 16, 0, 0, 16, 16, 8),
    "cluster.remote_shared": (False,) * 8 + (True,) * 3,
    "cluster.use": ("never",) * 5 + ("probe", "never", "never", "always", "always", "probe"),
    "launch.dependent": (False,) * 8 + (True,) * 3,
    "fp8.convert": ((), ("e4m3fnuz",), FN, (), FN, FN, (), FN, FN, FN, FN),
    "fp8.overflow": ("nan",) * 6 + ("saturate",) * 5,
    "matrix.fp32_default": ("ieee", "xf32", "ieee", "ieee", "ieee", "ieee", *("tf32",) * 5),
    "matrix.fp8_sums": (None, "f32", "f32", None, "f32", "f32", None, "short", "short", "f32", "short"),
    "atomics.global_f32": ("cas", *("native",) * 10),
    "atomics.shared_f64": ("native", "native", "native", "none", "none", "none", *("native",) * 5),
    "compile.clang": ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250", *(None,) * 5),
    "compile.nvrtc": (*(None,) * 6, "sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a"),
    "compile.triton.arch": ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250", 80, 89, 90, 100, 120),
    "detect.capability": ((9, 0), (9, 4), (9, 5), (11, 0), (12, 0), (12, 5), (8, 0), (8, 9), (9, 0), (10, 0), (12, 0)),
}  # fmt: skip

#: Facts in which a device differs from the target whose source it runs.
DEVICES: dict[str, dict[str, object]] = {
    "gfx1101": {"regs.file": 1536, "detect.capability": (11, 0), "compile.clang": "gfx1101"},
    "gfx1102": {"regs.file": 1024, "regs.granule": 16, "compile.clang": "gfx1102"},
    "gfx1150": {"regs.file": 1024, "regs.granule": 16, "detect.capability": (11, 5)},
    "gfx1151": {"regs.file": 1536, "regs.granule": 24, "detect.capability": (11, 5)},
    "gfx1200": {"compile.clang": "gfx1200", "compile.triton.arch": "gfx1200", "cache.l2": None},
    "sm_86": {"shared.block": 101376, "unit.threads": 1536, "unit.blocks": 16, "compile.nvrtc": "sm_86"},
    "sm_87": {"shared.block": 166912, "unit.threads": 1536, "unit.blocks": 16, "compile.nvrtc": "sm_87"},
    "sm_103": {"compile.nvrtc": "sm_103a", "detect.capability": (10, 3), "shared.block": 232448},
    "sm_121": {"compile.nvrtc": "sm_121a", "detect.capability": (12, 1), "unit.threads": 1536},
}


@pytest.mark.parametrize("path", TABLE)
def test_documented_value(records: Mapping[str, TargetRecord], path: str) -> None:
    assert tuple(records[target].facts[path] for target in TARGETS) == TABLE[path]


@pytest.mark.parametrize("device", DEVICES)
def test_other_devices_of_a_target(records: Mapping[str, TargetRecord], device: str) -> None:
    assert {path: records[device].facts[path] for path in DEVICES[device]} == DEVICES[device]


def test_nothing_else_is_described(records: Mapping[str, TargetRecord]) -> None:
    assert set(records) == {*TARGETS, *DEVICES}


def test_every_fact_has_its_source(records: Mapping[str, TargetRecord]) -> None:
    for record in records.values():
        for path, value in record.facts.items():
            origin = record.provenance.get(path)
            if origin is None:
                assert value is None, f"{record.device} {path}"
            else:
                works = origin.source.partition(":")[0].split(", ")
                assert set(works) <= set(record.works), f"{record.device} {path}"
                assert origin.place.line is not None


def test_records_have_the_same_facts(records: Mapping[str, TargetRecord]) -> None:
    assert len({tuple(record.facts) for record in records.values()}) == 1
    assert all(isinstance(path, str) and path.count(".") >= 1 for path in records["gfx950"].facts)


def test_product_facts_stay_out_of_facts_but_keep_their_source(records: Mapping[str, TargetRecord]) -> None:
    record = records["gfx942"]
    assert not [path for path in record.facts if path.startswith("products")]
    assert record.products["MI300X"].xcds == 8
    assert record.provenance["products.MI308X.bf16_tflops"].mark == "infer"


def test_typed_groups_and_flat_facts_agree(records: Mapping[str, TargetRecord]) -> None:
    for record in records.values():
        assert record.facts["shared.block"] == record.shared.block
        assert record.facts["matrix.dot_floor.bf16"] == record.matrix.dot_floor.bf16
        assert record.facts["fp8.triton.native_since.encode"] == record.fp8.triton.native_since.encode


def test_evidence_is_stated_plainly(records: Mapping[str, TargetRecord]) -> None:
    by_evidence = {record.evidence for record in records.values()}
    assert by_evidence == {"device", "emulated", "compiled"}
    assert [name for name, record in records.items() if record.evidence == "device"] == ["sm_90"]
    assert records["gfx1250"].evidence == "compiled"
