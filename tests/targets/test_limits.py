"""Shared memory: what each target may use, static or with opt-in, decides which tiles exist (BL-12)."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsv4gen.base import env
from dsv4gen.base.errors import DsvError, ProofError
from dsv4gen.base.extensions import spec_folders
from dsv4gen.emit.build import make_plans
from dsv4gen.plan.ir import FamilyPlan
from dsv4gen.scaffold.family import new_family
from dsv4gen.spec import Specs, load_specs
from dsv4gen.target import resolve_target

#: bytes of one block, with opt-in where there is one
BLOCK = {
    "gfx90a": 65536,
    "gfx942": 65536,
    "gfx950": 163840,
    "gfx1100": 65536,
    "gfx1201": 65536,
    "gfx1250": 327680,
    "sm_80": 166912,
    "sm_89": 101376,
    "sm_90": 232448,
    "sm_100": 232448,
    "sm_120": 101376,
}
#: bytes of a static array: all of it on AMD, 48 KiB on NVIDIA
STATIC = {name: 49152 if name.startswith("sm_") else size for name, size in BLOCK.items()}
#: the smallest device that runs the target's source
SMALLEST = {**BLOCK, "sm_80": 101376}
SMALL = {"gfx90a", "gfx942", "gfx1100", "gfx1201"}


@pytest.fixture(scope="module")
def specs(tmp_path_factory: pytest.TempPathFactory) -> Specs:
    """Families whose only tiles need a given number of bytes: dyn_N in Triton, static_N in HIP/CUDA."""
    folder = tmp_path_factory.mktemp("limits")
    for need in (60_000, 90_000, 100_000, 200_000):
        _family(folder, f"dyn_{need}", "triton", "4 * num_warps", need)
        _family(folder, f"static_{need}", "hip_cuda", '"4"', need)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(env.EXTENSIONS.name, str(folder))
        return load_specs(*spec_folders())


def _family(folder: Path, name: str, language: str, old: str, need: int) -> None:
    spec = new_family(name, language=language, folder=folder)[0]
    text = spec.read_text(encoding="utf-8")
    assert old in text
    spec.write_text(text.replace(old, str(need) if language == "triton" else f'"{need}"'), encoding="utf-8")


def plan(specs: Specs, target: str, family: str) -> FamilyPlan:
    (made,) = make_plans(specs, target, [family])
    return made


def test_every_target_is_in_the_tables(specs: Specs) -> None:
    assert set(BLOCK) == {name for name in specs.platforms if not name.startswith("_")}


@pytest.mark.parametrize("target", sorted(BLOCK))
def test_the_record_has_the_limit(specs: Specs, target: str) -> None:
    record = resolve_target(specs, target)
    assert (record.shared.static, record.shared.block) == (STATIC[target], BLOCK[target])
    assert record.proof_limit("shared.block") == SMALLEST[target]


@pytest.mark.parametrize("target", sorted(BLOCK))
@pytest.mark.parametrize("need", [60_000, 90_000, 100_000, 200_000])
def test_a_tile_with_opt_in_exists_where_it_fits(specs: Specs, target: str, need: int) -> None:
    check(specs, target, f"dyn_{need}", need, SMALLEST[target])


@pytest.mark.parametrize("target", sorted(BLOCK))
@pytest.mark.parametrize("need", [60_000, 90_000])
def test_a_static_array_exists_where_it_fits(specs: Specs, target: str, need: int) -> None:
    check(specs, target, f"static_{need}", need, STATIC[target])


def check(specs: Specs, target: str, family: str, need: int, limit: int) -> None:
    """The family is planned where `need` is within the limit, and refused with both numbers elsewhere."""
    if need <= limit:
        (kernel,) = plan(specs, target, family).kernels
        assert {instance.shared_bytes for instance in kernel.instances} == {need}
        return
    with pytest.raises(DsvError) as caught:
        plan(specs, target, family)
    for error in getattr(caught.value, "errors", (caught.value,)):
        assert isinstance(error, ProofError)
        assert f"= {need} bytes, {need - limit} over the limit of {limit}" in error.message
        assert error.place is not None and f"{family}.yaml" in error.place.file and error.place.line


def test_90000_bytes_are_refused_on_the_four_small_targets_only(specs: Specs) -> None:
    refused = set()
    for target in BLOCK:
        try:
            plan(specs, target, "dyn_90000")
        except DsvError:
            refused.add(target)
    assert refused == SMALL


def test_60000_static_bytes_are_refused_on_nvidia_only(specs: Specs) -> None:
    """On sm_120 a compiler that is asked for plain sm_120 takes 48 KiB and no more."""
    refused = set()
    for target in BLOCK:
        try:
            plan(specs, target, "static_60000")
        except DsvError:
            refused.add(target)
    assert refused == {target for target in BLOCK if target.startswith("sm_")}
