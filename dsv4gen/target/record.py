"""One GPU target: what templates, proofs and launch code may know about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from dsv4gen.base.errors import Place, ProofError, did_you_mean
from dsv4gen.spec.facts import (
    Access,
    Atomics,
    Bf16,
    Block,
    Bounds,
    Cache,
    Cluster,
    Compile,
    Copy,
    Detect,
    Fp8,
    Launch,
    Matrix,
    Product,
    Regs,
    Shared,
    Split,
    Unit,
    Wave,
)
from dsv4gen.spec.models import Table
from dsv4gen.spec.platform import Mark

#: Values of facts; shapes are tuples of tuples.
FactValue: TypeAlias = int | bool | str | tuple["FactValue", ...] | None


@dataclass(frozen=True)
class Provenance:
    """Where a fact comes from: source text, how well it is known, and its line in the specs."""

    source: str
    mark: Mark
    place: Place


@dataclass(frozen=True)
class TargetRecord:
    """The facts of one target, or of one device that runs a target's source.

    Attributes:
        name: the target, which is the folder under `generated/`.
        device: the device described; equals `name` unless it is one of the target's `also` devices.
        evidence: `device`, `emulated` or `compiled`: the best check this project can make.
        also: records of the other devices that run the same source.
        facts: all groups flattened, e.g. `facts["shared.block"]`.
        provenance: per dotted path, products included; defaults that no file states have no entry.
        works: titles of the works that provenance sources cite by key.
    """

    name: str
    device: str
    summary: str
    evidence: str
    compile: Compile
    detect: Detect
    wave: Wave
    unit: Unit
    regs: Regs
    block: Block
    shared: Shared
    bounds: Bounds
    cluster: Cluster
    split: Split
    launch: Launch
    copy: Copy
    matrix: Matrix
    fp8: Fp8
    bf16: Bf16
    atomics: Atomics
    access: Access
    cache: Cache
    products: Table[Product]
    defaults: Table[str]
    also: tuple[TargetRecord, ...]
    facts: Table[FactValue]
    provenance: Table[Provenance]
    works: Table[str]

    def proof_fact(self, path: str) -> FactValue:
        """The fact at `path` for use in a proof.

        Raises:
            ProofError: no such fact, a fact without a value, or one marked `infer`.
        """
        if path not in self.facts:
            raise ProofError(f"{self.device} has no fact '{path}'{did_you_mean(path, self.facts)}")
        origin = self.provenance.get(path)
        if origin is None or self.facts[path] is None:
            raise ProofError(f"the fact {path} of {self.device} has no value, so no proof can use it")
        if origin.mark == "infer":
            remedy = "confirm it, then mark it ran or read"
            message = f"the fact {path} of {self.device} is only inferred, so no proof can use it"
            raise ProofError(message, place=origin.place, remedy=remedy)
        return self.facts[path]

    def proof_limit(self, path: str) -> int:
        """The smallest value of an integer fact over this target and all devices that run its source.

        Raises:
            ProofError: as `proof_fact`, for any of the devices; or a fact that is not an integer.
        """
        values = [record.proof_fact(path) for record in (self, *self.also)]
        numbers = [value for value in values if isinstance(value, int) and not isinstance(value, bool)]
        if len(numbers) < len(values):
            raise ProofError(f"the fact {path} of {self.device} is not an integer")
        return min(numbers)
