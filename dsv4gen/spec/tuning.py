"""The model of `specs/tuning/<target>/<family>.yaml`: measured tiles, checked against the family's spec."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Literal

from pydantic import Field

from dsv4gen.base.errors import SpecError
from dsv4gen.spec.family import FamilySpec
from dsv4gen.spec.findings import Findings
from dsv4gen.spec.kernel_references import check_symbol_tiles, check_tile, check_whens
from dsv4gen.spec.loaded import Loaded
from dsv4gen.spec.models import Expression, Model, Name, Table, Text


class Measured(Model):
    """How the times were taken; none of it enters a plan.

    `policy` names the timing method, e.g. "CUDA graph, median of 50, L2 cold".

    Attributes:
        kind: times of a card, or counts of an emulator where there was none.
        device: the card.
        toolchain: compiler and driver versions.
        policy: how it was timed.
        date: the day.
    """

    kind: Literal["time", "emulated"] = "time"
    device: Text
    toolchain: Text
    policy: Text
    date: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]


class TuningRow(Model):
    """The tile for shapes where `when` is the first predicate that holds, and its time at one such shape.

    A row without a shape was not measured: it repeats what the family's spec says.

    Attributes:
        when: shapes that take the tile.
        tile: one of the legal values per tile dimension.
        shape: a shape that was timed.
        microseconds: the op's time there.
        instructions: executed instructions there, of an emulator.
    """

    when: Expression
    tile: Table[int]
    shape: Table[int] | None = None
    microseconds: Annotated[float, Field(gt=0)] | None = None
    instructions: Annotated[int, Field(gt=0)] | None = None


class TuningSpec(Model):
    """Tuned buckets of one family on one target; they replace the spec's own buckets kernel by kernel.

    Attributes:
        target: the folder's name.
        family: the file's name.
        kernels: rows per kernel of the family; the last row of each says `true`.
    """

    target: Name
    family: Name
    measured: Measured
    kernels: Table[Annotated[tuple[TuningRow, ...], Field(min_length=1)]]


def check_tuning(
    loaded: Loaded[TuningSpec], families: Mapping[str, Loaded[FamilySpec]], targets: Collection[str]
) -> list[SpecError]:
    """Rows that name no kernel or hold a tile that is no longer legal, all of them."""
    tuning, findings = loaded.model, Findings(loaded)
    findings.known(tuning.target, targets, "no target", "target")
    if not findings.known(tuning.family, families, "no family", "family"):
        return findings.errors
    family = families[tuning.family].model
    for name, rows in tuning.kernels.items():
        if not findings.known(name, family.kernels, "no kernel of the family", "kernels", name):
            continue
        check_whens((row.when for row in rows), findings, ("kernels", name))
        for position, row in enumerate(rows):
            keys = ("kernels", name, position)
            check_tile(family.kernels[name], row.tile, findings, (*keys, "tile"))
            for axis in row.shape or ():
                findings.known(axis, family.axes, "no axis", *keys, "shape", axis)
            wanted = "instructions" if tuning.measured.kind == "emulated" else "microseconds"
            if (row.shape is None) != (getattr(row, wanted) is None):
                findings.add(f"'shape' and '{wanted}' go together", *keys)
        check_symbol_tiles(family.kernels[name], [row.tile for row in rows], findings, ("kernels", name), "tile")
    return findings.errors
