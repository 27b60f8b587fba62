"""Facts of one record that must agree with each other, and with the families that use its gates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dsv4gen.base.errors import SpecError, did_you_mean
from dsv4gen.spec.load import Specs
from dsv4gen.spec.loaded import Loaded
from dsv4gen.target.record import TargetRecord

_GATE = "defaults."


def check_record(record: TargetRecord, main: Loaded[Any]) -> list[SpecError]:
    """Contradictions between facts of `record`, each at the place of the fact named first."""
    shared, cluster, wave, unit = record.shared, record.cluster, record.wave, record.unit
    rules = [
        ("wave.launch", wave.launch in wave.sizes, f"is not among wave.sizes {list(wave.sizes)}"),
        ("wave.ballot_bits", wave.ballot_bits >= wave.launch, "is smaller than the wave"),
        ("wave.mask_bits", wave.mask_bits >= wave.launch, "is smaller than the wave"),
        ("compile.triton.wave", record.compile.triton.wave == wave.launch, "differs from wave.launch"),
        ("shared.static", shared.static <= shared.block, "is larger than shared.block"),
        ("shared.block", shared.block + shared.reserved <= shared.unit, "and the reserve exceed shared.unit"),
        ("block.threads", record.block.threads <= unit.threads, "is larger than unit.threads"),
        ("unit.threads", unit.threads % wave.launch == 0, "is not a multiple of the wave"),
        ("cluster.portable", cluster.portable <= cluster.maximum, "is larger than cluster.maximum"),
        ("cluster.use", cluster.supported or cluster.use == "never", "needs clusters, which it lacks"),
        ("cluster.maximum", cluster.supported == (cluster.maximum > 0), "contradicts cluster.supported"),
        ("regs.vector", record.regs.vector <= record.regs.per_thread, "is larger than regs.per_thread"),
    ]
    errors: list[SpecError] = []
    for path, holds, reason in rules:
        if not holds:
            message = f"{record.device}: {path} = {record.facts[path]} {reason}"
            errors.append(SpecError(message, place=record.provenance[path].place))
    if record.evidence is None:
        message = f"{record.name} is a target and needs 'evidence'"
        errors.append(SpecError(message, place=main.key_place("target")))
    return errors


def check_gates(specs: Specs, record: TargetRecord, files: Sequence[Loaded[Any]]) -> list[SpecError]:
    """Families whose default variant is a platform gate that this target lacks or sets wrongly.

    Args:
        files: the target's own and those it extends, outwards; a mistake is in the first that states the gate.
    """
    errors: list[SpecError] = []
    for name, family in specs.families.items():
        variants = family.model.variants
        if variants is None or not variants.default.startswith(_GATE):
            continue
        gate, choices = variants.default[len(_GATE) :], variants.choices
        chosen = record.defaults.get(gate)
        if chosen is None:
            message = f"{record.name} has no default for '{gate}', which the family {name} asks for"
            remedy = f"add `defaults: {{{gate}: {choices[0]}}}` here, or to a file this one extends"
            errors.append(SpecError(message, place=files[0].key_place("defaults"), remedy=remedy))
        elif chosen not in choices:
            message = f"defaults.{gate} is '{chosen}', which is no variant of {name}{did_you_mean(chosen, choices)}"
            stating = next(file for file in files if gate in file.model.defaults)
            remedy = f"one of {', '.join(choices)}"
            errors.append(SpecError(message, place=stating.place("defaults", gate), remedy=remedy))
    return errors
