"""What a proof leaves behind: frozen records for the plan, the manifest and tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: heads of the columns that `row()` fills
COLUMNS = ("name", "formula", "value", "limit", "slack", "verdict")


@dataclass(frozen=True)
class FitProof:
    """A tile's use of a resource against its limit, both in `unit`."""

    name: str
    tile: tuple[tuple[str, int], ...]
    formula: str
    value: int
    limit: int
    unit: str

    @property
    def slack(self) -> int:
        """What is left; negative when it does not fit."""
        return self.limit - self.value

    @property
    def fits(self) -> bool:
        """Whether the tile may be emitted."""
        return self.slack >= 0

    @property
    def verdict(self) -> str:
        """`fits` or `too large`."""
        return "fits" if self.fits else "too large"

    def describe(self) -> str:
        """One line for tables."""
        tile = " ".join(f"{name}={value}" for name, value in self.tile)
        where = f"{self.name} [{tile}]" if tile else self.name
        return f"{where}: {self.formula} = {self.value} of {self.limit} {self.unit}, slack {self.slack}: {self.verdict}"

    def row(self) -> tuple[str, ...]:
        """The cells of `COLUMNS`."""
        return self.name, self.formula, str(self.value), str(self.limit), str(self.slack), self.verdict

    def to_json(self) -> dict[str, Any]:
        """Plain data for the manifest."""
        return {
            "proof": "fit",
            "name": self.name,
            "tile": dict(self.tile),
            "formula": self.formula,
            "value": self.value,
            "limit": self.limit,
            "slack": self.slack,
            "unit": self.unit,
        }


@dataclass(frozen=True)
class CoverageProof:
    """A table of paths or buckets that takes every shape, uses every row and never leaves a domain."""

    name: str
    paths: tuple[str, ...]
    axes: tuple[str, ...]
    noun: str

    @property
    def verdict(self) -> str:
        """Always `covers`: a table that does not is an error."""
        return "covers"

    def describe(self) -> str:
        """One line for tables."""
        over = ", ".join(self.axes) or "the only shape"
        plural = "" if len(self.paths) == 1 else "s"
        rows = f"{len(self.paths)} {self.noun}{plural} ({', '.join(self.paths)})"
        return f"{self.name}: {rows} cover {over}, all in use"

    def row(self) -> tuple[str, ...]:
        """The cells of `COLUMNS`."""
        count = str(len(self.paths))
        return self.name, ", ".join(self.paths), f"{count} in use", f"{count} {self.noun}s", "", self.verdict

    def to_json(self) -> dict[str, Any]:
        """Plain data for the manifest."""
        return {
            "proof": "coverage",
            "name": self.name,
            "paths": list(self.paths),
            "axes": list(self.axes),
        }


@dataclass(frozen=True)
class WidthProof:
    """An index expression that stays within the type it is computed in.

    `value` is the largest value when `exact`, else an upper bound of it; `smallest` likewise.
    """

    name: str
    formula: str
    smallest: int
    value: int
    limit: int
    type: str
    exact: bool

    @property
    def slack(self) -> int:
        """How far the type reaches beyond the value."""
        return self.limit - self.value

    @property
    def verdict(self) -> str:
        """Always `fits`: an index that does not is an error."""
        return "fits"

    def describe(self) -> str:
        """One line for tables."""
        relation = "=" if self.exact else "<="
        return (
            f"{self.name}: maximum of {self.formula} {relation} {self.value} of {self.limit} ({self.type}), "
            f"slack {self.slack}: {self.verdict}"
        )

    def row(self) -> tuple[str, ...]:
        """The cells of `COLUMNS`."""
        value = f"{'' if self.exact else '<= '}{self.value}"
        return self.name, self.formula, value, f"{self.limit} ({self.type})", str(self.slack), self.verdict

    def to_json(self) -> dict[str, Any]:
        """Plain data for the manifest."""
        return {
            "proof": "width",
            "name": self.name,
            "formula": self.formula,
            "smallest": self.smallest,
            "value": self.value,
            "limit": self.limit,
            "slack": self.slack,
            "type": self.type,
            "exact": self.exact,
        }


Proof = FitProof | CoverageProof | WidthProof


def tile_items(tile: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """A tile assignment as a hashable value, in the spec's order."""
    return tuple(tile.items())
