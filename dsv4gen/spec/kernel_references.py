"""Cross references of one kernel: symbol, tiles, buckets; and symbols that two kernels share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import product

from dsv4gen.base.errors import SpecError
from dsv4gen.spec.check import dotted
from dsv4gen.spec.family import FamilySpec, Kernel
from dsv4gen.spec.findings import Findings
from dsv4gen.spec.loaded import Loaded

_PLACEHOLDER = re.compile(r"\{([a-z_][a-z0-9_]*)\}")

#: Tile dimensions that Triton's launcher needs.
_TRITON_TILES = ("num_warps", "num_stages")


def check_kernel(family: FamilySpec, name: str, findings: Findings) -> None:
    """Symbol, tiles, buckets and row paths of one kernel."""
    kernel, keys = family.kernels[name], ("kernels", name)
    for placeholder in _PLACEHOLDER.findall(kernel.symbol):
        known = {*family.options, *kernel.tiles}
        findings.known(placeholder, known, "no option and no tile", *keys, "symbol")
    for dimension, values in kernel.tiles.items():
        findings.unique(map(str, values), *keys, "tiles", dimension)
        if min(values) < 0:
            findings.add(f"{min(values)} is negative", *keys, "tiles", dimension)
        if dimension in {*family.axes, *family.constants, *family.options}:
            findings.add("the same name stands for something else in this file", *keys, "tiles", dimension)
    findings.unique((path.name for path in kernel.row_paths), *keys, "row_paths")
    _check_language(family, kernel, findings, keys)
    _check_buckets(kernel, findings, keys)


def _check_language(family: FamilySpec, kernel: Kernel, findings: Findings, keys: tuple[str, str]) -> None:
    if family.language == "triton":
        for dimension in _TRITON_TILES:
            if dimension not in kernel.tiles:
                findings.add(f"a Triton kernel needs '{dimension}'", *keys, "tiles")
    elif kernel.constexprs:
        remedy = "use constants or tiles"
        findings.add("only Triton kernels have constexprs", *keys, "constexprs", remedy=remedy)


def check_tile(kernel: Kernel, tile: Mapping[str, int], findings: Findings, keys: tuple[str | int, ...]) -> None:
    """`tile` gives every dimension of the kernel one of its legal values, and nothing else."""
    for dimension, value in tile.items():
        if findings.known(dimension, kernel.tiles, "no tile dimension", *keys, dimension):
            legal = kernel.tiles[dimension]
            if value not in legal:
                findings.add(f"{value} is not among the tiles {', '.join(map(str, legal))}", *keys, dimension)
    for dimension in kernel.tiles:
        if dimension not in tile:
            findings.add(f"no value for '{dimension}'", *keys)


def check_whens(whens: Iterable[str], findings: Findings, keys: tuple[str | int, ...]) -> None:
    """Of an ordered list of predicates the last, and only the last, always holds."""
    ordered = list(whens)
    for position, when in enumerate(ordered):
        if when == "true" and position < len(ordered) - 1:
            findings.add("always holds, so the rows below it are dead", *keys, position, "when")
    if ordered[-1] != "true":
        remedy = 'end the list with a row whose when is "true"'
        findings.add("the last row must always hold", *keys, len(ordered) - 1, "when", remedy=remedy)


def _check_buckets(kernel: Kernel, findings: Findings, keys: tuple[str, str]) -> None:
    check_whens((bucket.when for bucket in kernel.buckets), findings, (*keys, "buckets"))
    for position, bucket in enumerate(kernel.buckets):
        check_tile(kernel, bucket.tile, findings, (*keys, "buckets", position, "tile"))
    everywhere = [bucket.tile if "." not in bucket.when else None for bucket in kernel.buckets]
    check_symbol_tiles(kernel, everywhere, findings, (*keys, "buckets"), "tile")


def check_symbol_tiles(
    kernel: Kernel, tiles: Iterable[Mapping[str, int] | None], findings: Findings, keys: tuple[str, ...], last: str
) -> None:
    """Tiles that differ have symbols that differ; mistakes are at `keys`, the position, and `last`.

    None stands for a bucket that a target's facts may rule out: the plan for a target checks it.
    """
    first: dict[tuple[tuple[str, int], ...], Mapping[str, int]] = {}
    for position, tile in enumerate(tiles):
        if tile is None:
            continue
        visible = visible_tile(kernel, tile)
        if first.setdefault(visible, tile) != tile:
            message = "another bucket has a different tile under the same symbol"
            remedy = "add the dimension that differs to the symbol"
            findings.add(message, *keys, position, last, remedy=remedy)


def visible_tile(kernel: Kernel, tile: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """The part of a tile that the kernel's symbol shows."""
    named = set(_PLACEHOLDER.findall(kernel.symbol))
    return tuple((name, value) for name, value in tile.items() if name in named)


def kernel_symbols(family: FamilySpec, kernel: Kernel) -> set[str]:
    """Every name the kernel's symbol pattern yields over the options and the legal tiles.

    A placeholder that names nothing, which is a mistake reported elsewhere, stands for itself.
    """
    names = _PLACEHOLDER.findall(kernel.symbol)
    choices = {name: option.choices for name, option in family.options.items()}
    values = [choices.get(name) or kernel.tiles.get(name, (name,)) for name in names]
    return {kernel.symbol.format(**dict(zip(names, chosen, strict=True))) for chosen in product(*values)}


def check_symbols(families: Mapping[str, Loaded[FamilySpec]]) -> list[SpecError]:
    """Symbols that two kernels, of one family or of two, would both define."""
    owners: dict[str, str] = {}
    errors: list[SpecError] = []
    for family_name, loaded in families.items():
        for name, kernel in loaded.model.kernels.items():
            symbols = kernel_symbols(loaded.model, kernel)
            place = loaded.place("kernels", name, "symbol")
            for other in sorted({owners[symbol] for symbol in symbols if symbol in owners}):
                message = f"{dotted(('kernels', name, 'symbol'))}: {other} defines the same symbol"
                errors.append(SpecError(message, place=place, remedy="give the kernels different names"))
            owners.update(dict.fromkeys(symbols, f"{family_name}.kernels.{name}"))
    return errors
