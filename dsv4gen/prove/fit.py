"""Proof (a): a tile assignment stays within a resource limit, such as shared memory or threads per block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from dsv4gen.base.errors import Place, ProofError
from dsv4gen.base.expression_json import Value
from dsv4gen.prove.expressions import Expr
from dsv4gen.prove.records import FitProof, tile_items
from dsv4gen.prove.space import show


def tile_assignments(tiles: Mapping[str, Sequence[int]]) -> Iterator[dict[str, int]]:
    """Every assignment of the declared tile values, the last dimension varying fastest."""
    for values in product(*tiles.values()):
        yield dict(zip(tiles, values, strict=True))


def measure_fit(
    name: str,
    tile: Mapping[str, int],
    formula: Expr,
    limit: int,
    *,
    constants: Mapping[str, Value] | None = None,
    unit: str = "bytes",
) -> FitProof:
    """What a tile needs of a resource, fitting or not (`FitProof.fits`).

    Raises:
        ExpressionError: an unknown name, or a formula that has no value here.
        ProofError: a formula that is not a number of at least 0.
    """
    values = {**(constants or {}), **tile}
    formula.check_names(values)
    value = formula.evaluate(values)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ProofError(f"{name}: '{formula}' is not a number of {unit}", place=formula.place)
    if value < 0:
        raise ProofError(f"{name}: {formula} = {value} is negative at {show(tile)}", place=formula.place)
    return FitProof(name, tile_items(tile), str(formula), value, limit, unit)


def prove_fit(
    name: str,
    tile: Mapping[str, int],
    formula: Expr,
    limit: int,
    place: Place | None = None,
    *,
    constants: Mapping[str, Value] | None = None,
    unit: str = "bytes",
) -> FitProof:
    """Proof that a tile fits.

    Raises:
        ProofError: it does not; the message has formula, value, limit and overshoot.
        ExpressionError: an unknown name, or a formula that has no value here.
    """
    proof = measure_fit(name, tile, formula, limit, constants=constants, unit=unit)
    if not proof.fits:
        at = f" at {show(tile)}" if tile else ""
        raise ProofError(
            f"{name} does not fit{at}: {formula} = {proof.value} {unit}, {-proof.slack} over the limit of {limit}",
            place=place or formula.place,
            remedy="drop this tile, or need less in the formula",
        )
    return proof
