"""Proofs may use only facts that were seen, not ones that were inferred."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import pytest

from dsv4gen.base.errors import ProofError
from dsv4gen.spec.models import Table
from dsv4gen.target import TargetRecord


def test_seen_facts_are_given(records: Mapping[str, TargetRecord]) -> None:
    assert records["gfx950"].proof_fact("shared.block") == 163840
    assert records["sm_90"].proof_fact("cluster.remote_shared") is True


def test_inferred_facts_are_refused_by_name_and_place(records: Mapping[str, TargetRecord]) -> None:
    with pytest.raises(ProofError) as caught:
        records["sm_90"].proof_fact("matrix.fp8")
    assert "the fact matrix.fp8 of sm_90 is only inferred" in str(caught.value)
    assert str(caught.value).startswith("specs/platforms/sm_90.yaml:")


def test_marking_a_fact_inferred_closes_it(records: Mapping[str, TargetRecord]) -> None:
    record = records["gfx942"]
    doubtful = dataclasses.replace(record.provenance["shared.block"], mark="infer")
    changed = dataclasses.replace(record, provenance=Table({**record.provenance, "shared.block": doubtful}))
    assert changed.proof_fact("wave.launch") == 64
    with pytest.raises(ProofError, match=r"shared\.block"):
        changed.proof_fact("shared.block")


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("shared.blck", "has no fact 'shared.blck' \\(did you mean 'shared.block'\\?\\)"),
        ("compile.clang", "has no value"),
        ("regs.scalar", "has no value"),
    ],
)
def test_absent_facts(records: Mapping[str, TargetRecord], path: str, reason: str) -> None:
    with pytest.raises(ProofError, match=reason):
        records["sm_90"].proof_fact(path)


def test_limits_hold_for_every_device_of_the_target(records: Mapping[str, TargetRecord]) -> None:
    assert records["sm_80"].facts["shared.block"] == 166912
    assert records["sm_80"].proof_limit("shared.block") == 101376
    assert records["sm_86"].proof_limit("shared.block") == 101376
    assert records["sm_87"].proof_limit("shared.block") == 166912
    assert records["gfx1100"].proof_limit("regs.file") == 1024


@pytest.mark.parametrize("path", ["wave.independent_lanes", "unit.kind", "wave.sizes"])
def test_limits_are_integers(records: Mapping[str, TargetRecord], path: str) -> None:
    with pytest.raises(ProofError, match="is not an integer"):
        records["sm_80"].proof_limit(path)


def test_facts_that_fit_and_launch_proofs_need_are_seen(records: Mapping[str, TargetRecord]) -> None:
    paths = [path for path in records["gfx950"].facts if path.split(".")[0] in ("wave", "unit", "block", "shared")]
    for record in records.values():
        for path in paths:
            if record.facts[path] is not None:
                record.proof_fact(path)
