"""A target nobody thought of, added as one file: everything builds, keeps to its limits and computes what is right."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from dsv4gen.base import env, extensions
from dsv4gen.emit.build import Request, TargetTree, make_plans, make_trees
from dsv4gen.emit.select import known_targets
from dsv4gen.interpret import shared_worker
from dsv4gen.plan.ir import FamilyPlan
from dsv4gen.reference.case import Case
from dsv4gen.reference.topk_rows import MODES
from dsv4gen.render.render import render_triton
from dsv4gen.spec import load_specs
from dsv4gen.verify.simt import SimtFamily
from tests.specs import Copy, copy_specs
from tests.targets.made_up import GFX1299, SM_137
from tests.tools import need_module

NAMES = ("gfx1299", "sm_137")
#: longest row of topk that is emulated here
LONGEST = 9000
FAMILIES = sorted(load_specs(*extensions.spec_folders()).families)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copy]:
    """The shipped specs and two files more."""
    copied = copy_specs(tmp_path_factory.mktemp("made-up"))
    for name, text in zip(NAMES, (GFX1299, SM_137), strict=True):
        (copied.folder / "specs" / "platforms" / f"{name}.yaml").write_text(text.lstrip(), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(env.SPECS_DIR.name, str(copied.folder / "specs"))
        patch.setenv(env.EXTENSIONS.name, "none")
        yield copied


@pytest.fixture(scope="module")
def trees(copy: Copy) -> dict[str, TargetTree]:
    assert set(NAMES) < set(known_targets())
    assert copy.folder.exists()
    return make_trees(Request(NAMES))


@pytest.fixture(scope="module")
def plans(copy: Copy) -> dict[str, FamilyPlan]:
    specs = load_specs(copy.folder / "specs")
    return {plan.family: plan for plan in make_plans(specs, "gfx1299", FAMILIES)}


@pytest.mark.parametrize("name", NAMES)
def test_every_family_is_built(trees: dict[str, TargetTree], name: str) -> None:
    assert sorted(trees[name].manifest.families) == FAMILIES
    suffix = "hip" if name.startswith("gfx") else "cu"
    assert {f"topk.{suffix}", "topk.py", "topk.pyi", "gather_dequant.py"} <= set(trees[name].files)


@pytest.mark.parametrize(("name", "limit"), [("gfx1299", 98304), ("sm_137", 49152)])
def test_every_kernel_keeps_to_its_limits(trees: dict[str, TargetTree], name: str, limit: int) -> None:
    instances = [
        instance
        for family in trees[name].manifest.families.values()
        if family["language"] == "hip_cuda"
        for kernel in family["kernels"].values()
        for instance in kernel["instances"]
    ]
    assert instances and max(instance["shared_bytes"] for instance in instances) <= limit
    proofs = str([family["proofs"] for family in trees[name].manifest.families.values()])
    assert f"'{limit}'" in proofs


def test_what_it_lacks_is_in_no_file(trees: dict[str, TargetTree]) -> None:
    text = b"\n".join(data for name, data in trees["gfx1299"].files.items() if not name.startswith("maps/")).decode()
    assert "native" not in re.findall(r"def \w*(native)\w*\(", text)
    assert not re.search(r"\.to\(tl\.float8|\bremote_\w+\(|\bcluster_rank\b|mapa|shared::cluster", text)
    assert "cluster_rank" in b"".join(trees["sm_137"].files.values()).decode()


def test_adding_it_changes_no_other_target(copy: Copy) -> None:
    with_it = make_trees(Request(("gfx1201",)))["gfx1201"]
    for name in NAMES:
        (copy.folder / "specs" / "platforms" / f"{name}.yaml").rename(copy.folder / name)
    try:
        without = make_trees(Request(("gfx1201",)))["gfx1201"]
    finally:
        for name in NAMES:
            (copy.folder / name).rename(copy.folder / "specs" / "platforms" / f"{name}.yaml")
    assert with_it.files == without.files
    assert with_it.manifest.to_text() == without.manifest.to_text()


def cases(plan: FamilyPlan) -> Iterator[Case]:
    module = importlib.import_module(f"dsv4gen.reference.{plan.reference}_cases")
    found: Iterator[Case] = module.verification_cases(full=False)
    return found


def few_cases(plan: FamilyPlan) -> list[Case]:
    """Of every mode, six cases of moderate length from all over the covering design."""
    short = [case for case in cases(plan) if max(row["seq_len"] for row in case.rows) <= LONGEST]
    by_mode = {mode: [case for case in short if case.options["mode"] == mode] for mode in MODES}
    return [case for found in by_mode.values() for case in found[:: max(1, len(found) // 6)]]


def test_topk_is_right_on_the_host_build(plans: dict[str, FamilyPlan]) -> None:
    """Every symbol of both variants, judged by the reference."""
    plan = plans["topk"]
    family = SimtFamily(plan, int(str(plan.target["wave.launch"])))
    ran: set[str] = set()
    for case in few_cases(plan):
        for variant in plan.variants.choices:
            ran.update(family.run(case.fresh(), variant=variant, every_tile=True).symbols)
    assert ran == {instance.symbol for kernel in plan.kernels for instance in kernel.instances}


@pytest.mark.parametrize("name", [family for family in FAMILIES if family != "topk"])
def test_triton_families_are_right_on_the_interpreter(plans: dict[str, FamilyPlan], name: str, tmp_path: Path) -> None:
    need_module("triton")
    module = tmp_path / f"{name}.py"
    module.write_text(render_triton(plans[name]).text, encoding="utf-8")
    for case in islice(cases(plans[name]), 1):
        arguments: dict[str, Any] = dict(case.arguments)
        shared_worker().call(module, case.op, **arguments)
        case.check()


def test_list_and_explain_know_it(copy: Copy) -> None:
    done = copy.run("explain", "topk", "--target", "gfx1299", "batch=1", "width=131072", "k=512")
    assert done.returncode == 0, done.stderr
    assert "topk.select on gfx1299" in done.stdout and "98304" in done.stdout
    assert "gfx1299" in copy.run("list").stdout
