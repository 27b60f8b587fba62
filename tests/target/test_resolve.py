"""Lookup by any spelling, and refusals that help."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from dsv4gen.base import target_id
from dsv4gen.base.errors import DsvError, Problems, SpecError, UnknownTarget
from dsv4gen.spec import Specs, load_specs
from dsv4gen.target import TargetRecord, list_targets, resolve_all, resolve_target
from tests.spec.samples import CHILD, damage, write_specs


@pytest.mark.parametrize(
    ("spelling", "name", "device"),
    [
        ("gfx942:sramecc+:xnack-", "gfx942", "gfx942"),
        ("GFX950", "gfx950", "gfx950"),
        ("gfx1151", "gfx1100", "gfx1151"),
        ("sm_90a", "sm_90", "sm_90"),
        ("9.0", "sm_90", "sm_90"),
        ("100", "sm_100", "sm_100"),
        ("10.3", "sm_100", "sm_103"),
        ("12.1", "sm_120", "sm_121"),
        ("8.6+PTX", "sm_80", "sm_86"),
    ],
)
def test_lookup(specs: Specs, spelling: str, name: str, device: str) -> None:
    record = resolve_target(specs, spelling)
    assert (record.name, record.device) == (name, device)


@pytest.mark.parametrize(
    ("spelling", "reason"),
    [
        ("gfx943", "no platform file describes 'gfx943' (did you mean 'gfx942'?)"),
        ("7.5", "no platform file describes 'sm_75'"),
        ("gfx90c:xnack-", "no platform file describes 'gfx90c'"),
        ("gfx1100:xnack+", "gfx1100 has no target-id feature 'xnack'"),
        ("gfx942:wgp+", "gfx942 has no target-id feature 'wgp'"),
        ("_cdna", "'_cdna' is not a GPU target"),
        ("gfx11-generic", "a generic code object"),
        ("native", "leave the target out"),
        ("", "it is empty"),
    ],
)
def test_refusal(specs: Specs, spelling: str, reason: str) -> None:
    with pytest.raises(UnknownTarget) as caught:
        resolve_target(specs, spelling)
    assert reason in str(caught.value)
    assert "known targets: gfx1100, gfx1201, gfx1250, gfx90a, gfx942, gfx950, sm_100" in str(caught.value)


def test_list_has_the_targets_and_no_parents(specs: Specs) -> None:
    assert len(list_targets(specs)) == 11
    assert not [name for name in list_targets(specs) if name.startswith("_")]


def test_each_device_is_compiled_for_its_own_architecture(records: Mapping[str, TargetRecord]) -> None:
    for device, record in records.items():
        name = record.compile.clang or record.compile.nvrtc
        assert name is not None
        built = target_id.parse(name)
        assert built.arch == device
        assert target_id.runs_on(built, target_id.parse(device))
        assert str(record.compile.triton.arch) in (device, device.removeprefix("sm_"))


def test_the_plain_ptx_and_family_names_run_on_the_device(records: Mapping[str, TargetRecord]) -> None:
    for device, record in records.items():
        for name in (record.compile.ptx, record.compile.family):
            if name is not None:
                assert target_id.runs_on(target_id.parse(name), target_id.parse(device)), f"{device} {name}"


def test_detection_tells_all_devices_apart(records: Mapping[str, TargetRecord]) -> None:
    for device, record in records.items():
        hip = "7.1" if record.detect.api == "hip" else None
        found = target_id.from_device(hip, record.detect.capability, record.detect.arch or "marketing name")
        assert found.arch == device
        if hip:
            assert found.capability == record.detect.capability


def errors_in(tmp_path: Path, child: str, **files: str) -> list[str]:
    with pytest.raises(DsvError) as caught:
        resolve_all(load_specs(write_specs(tmp_path, child=child, **files)))
    error = caught.value
    return [str(one) for one in (error.errors if isinstance(error, Problems) else (error,))]


def test_missing_facts_are_all_listed_at_their_group(tmp_path: Path) -> None:
    found = errors_in(tmp_path, damage(CHILD, "  mask_bits: 64\n", ""))
    assert "gfx1.yaml:5:1: gfx1 has no fact 'wave.mask_bits'" in found[0] + found[1] + "".join(found)
    assert any("gfx1 has no fact 'shared.block'" in one for one in found)
    assert any("gfx1 has no fact 'matrix.dot_floor'" in one for one in found)
    assert not any("wave.launch" in one for one in found)


def test_a_child_overrides_single_facts_only(specs: Specs) -> None:
    record = resolve_target(specs, "sm_120")
    assert (record.cluster.use, record.cluster.portable) == ("probe", 8)
    assert record.provenance["cluster.use"].place.file == "specs/platforms/sm_120.yaml"
    assert record.provenance["cluster.portable"].place.file == "specs/platforms/_cuda_cluster.yaml"
    assert record.provenance["wave.launch"].place.file == "specs/platforms/_cuda.yaml"


def test_one_target_can_be_resolved_while_another_is_incomplete(specs: Specs, tmp_path: Path) -> None:
    for source in Path(specs.platforms["gfx950"].file).resolve().parent.glob("*.yaml"):
        target = tmp_path / "platforms" / source.name
        target.parent.mkdir(exist_ok=True)
        target.write_text(source.read_text())
    (tmp_path / "families").mkdir()
    broken = tmp_path / "platforms" / "gfx90a.yaml"
    broken.write_text(broken.read_text().replace("  l2_scope: gcd\n", ""))
    loaded = load_specs(tmp_path)
    assert resolve_target(loaded, "gfx950").name == "gfx950"
    with pytest.raises(SpecError, match=r"gfx90a has no fact 'cache.l2_scope'"):
        resolve_target(loaded, "gfx90a")
