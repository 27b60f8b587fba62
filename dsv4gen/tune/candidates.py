"""Every tile that the plan has proven to fit, as a module of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from dsv4gen.base import extensions
from dsv4gen.base.errors import DsvError, UsageError, did_you_mean
from dsv4gen.bench.cells import Wanted, cells_of
from dsv4gen.emit.manifest import family_json, make_manifest, plan_json
from dsv4gen.plan.ir import FamilyPlan
from dsv4gen.plan.make import make_plan
from dsv4gen.render import launchers_in, render_family
from dsv4gen.spec import FamilySpec, Loaded, Specs, load_specs
from dsv4gen.spec.family import Bucket
from dsv4gen.spec.findings import identifiers
from dsv4gen.spec.models import Table
from dsv4gen.target import TargetRecord, resolve_target
from dsv4gen.tune.pack import Pack, Variant

Tile = Mapping[str, int]
#: tile dimensions that are held at a value, or at what the spec's own tiles have
Held = Mapping[str, int | str]
AS_SPEC = "spec"
Progress = Callable[[str], None]


def make_pack(
    family: str, target: str, kernels: Sequence[str] = (), only: Held | None = None,
    progress: Progress = lambda _: None, near: int = 0,
) -> Pack:  # fmt: skip
    """Candidates of a family's kernels.

    The base is the family without its tuning file, so that what is measured does not depend on what was tuned before.

    Args:
        kernels: only these; all when empty.
        only: tile dimensions that are held.
        near: dimensions in which a candidate may differ from one of the spec's tiles of its kernel; any when 0.

    Raises:
        UsageError: an unknown family, target, kernel or tile dimension.
    """
    loaded, record, _ = spec_of(family, target)
    plan = make_plan(loaded, record)
    base = _variant(plan, "", {})
    variants = []
    for kernel, tile in proven_tiles(plan, kernels, only or {}, near):
        try:
            variants.append(_variant(make_plan(with_tile(loaded, kernel, tile), record), kernel, tile))
        except DsvError as error:
            progress(f"left out: {kernel} {tile}: {error.message}")
            continue
        progress(variants[-1].name)
    manifest = make_manifest(plan.target, [family], {}).data
    return Pack(target, family, manifest, base, variants, predicate_axes(plan, loaded.model))


def spec_of(family: str, target: str) -> tuple[Loaded[FamilySpec], TargetRecord, Specs]:
    """The family's spec and the target's record as they are now.

    Raises:
        UsageError: an unknown family or target.
    """
    specs = require_family(family)
    return specs.families[family], resolve_target(specs, target), specs


def require_family(family: str) -> Specs:
    """The specs, in which the family is.

    Raises:
        UsageError: an unknown family.
    """
    specs = load_specs(*extensions.spec_folders())
    if family not in specs.families:
        remedy = f"one of {', '.join(specs.families)}"
        raise UsageError(f"no family {family!r}{did_you_mean(family, specs.families)}", remedy=remedy)
    return specs


def require_words(family: str, target: str, kernels: Sequence[str], held: Held, wanted: Wanted, near: int = 0) -> str:
    """The target's own name; words name what the family has on it, which is checked before hours are spent on them.

    Raises:
        UsageError: an unknown target, kernel, tile dimension, list or axis; a value that no proven tile has.
        ArgumentError: an unknown option or choice.
    """
    loaded, record, _ = spec_of(family, target)
    plan = make_plan(loaded, record)
    cells_of(family, family_json(plan), wanted)
    _require_held(plan, kernels, held, near)
    return record.name


def _require_held(plan: FamilyPlan, kernels: Sequence[str], held: Held, near: int) -> None:
    """Each held value is one of a wanted kernel; other kernels may lack the dimension, and are as they would be.

    Raises:
        UsageError: as `proven_tiles`; a dimension or a value that no proven tile has, or no tile at all.
    """
    found = next(proven_tiles(plan, kernels, held, near), None)
    tiles = [tile for kernel in plan.kernels if not kernels or kernel.name in kernels for tile in kernel.tiles]
    choices = {name: sorted({tile[name] for tile in tiles if name in tile}) for name in held}
    wrong = [name for name, value in held.items() if not choices[name] or value not in (AS_SPEC, *choices[name])]
    if found and not wrong:
        return
    words = " ".join(f"{name}={held[name]}" for name in wrong or held)
    known = "; ".join(f"{name}: {', '.join(map(str, choices[name])) or 'none'}" for name in wrong or held)
    which = f"kernel {', '.join(kernels)}" if kernels else f"{plan.family} kernel"
    raise UsageError(f"no {which} has a choice of tiles{f' with {words}' if words else ''}", remedy=known)


def proven_tiles(plan: FamilyPlan, kernels: Sequence[str], only: Held, near: int = 0) -> Iterator[tuple[str, Tile]]:
    """Kernels with each tile that fits and is wanted, see `make_pack`; those with a choice only.

    Raises:
        UsageError: no such kernel or tile dimension.
    """
    names = [kernel.name for kernel in plan.kernels]
    for name in kernels:
        if name not in names:
            raise UsageError(f"no kernel {name!r}{did_you_mean(name, names)}", remedy=f"kernels: {', '.join(names)}")
    dimensions = {name for kernel in plan.kernels for tile in kernel.tiles for name in tile}
    for name in only:
        if name not in dimensions:
            remedy = f"dimensions: {', '.join(sorted(dimensions))}"
            raise UsageError(f"no tile dimension {name!r}{did_you_mean(name, dimensions)}", remedy=remedy)
    for kernel in plan.kernels:
        if (not kernels or kernel.name in kernels) and len(kernel.tiles) > 1:
            own = [bucket.tile for bucket in kernel.buckets]
            for tile in kernel.tiles:
                if any(_is_wanted(tile, one, only, near) for one in own):
                    yield kernel.name, tile


def _is_wanted(tile: Tile, own: Tile, only: Held, near: int) -> bool:
    """Whether a tile has the held values, and lies near enough to one of the spec's."""
    held = {name: own.get(name) if value == AS_SPEC else value for name, value in only.items()}
    other = sum(tile[name] != own[name] for name in own)
    return all(name not in tile or tile[name] == value for name, value in held.items()) and not 0 < near < other


def with_tile(loaded: Loaded[FamilySpec], kernel: str, tile: Tile) -> Loaded[FamilySpec]:
    """The spec with one bucket for one kernel."""
    spec = loaded.model
    bucket = Bucket.model_validate({"when": "true", "tile": dict(tile)})
    changed = spec.kernels[kernel].model_copy(update={"buckets": (bucket,)})
    model = spec.model_copy(update={"kernels": Table({**spec.kernels, kernel: changed})})
    return Loaded(model, loaded.file, loaded.document)


def _variant(plan: FamilyPlan, kernel: str, tile: Tile) -> Variant:
    rendered = render_family(plan)
    files = {file.name: file.text for file in rendered if not file.name.endswith(".pyi")}
    whole = plan_json(plan, launchers_in(rendered[0], plan))
    entry = {name: value for name, value in whole.items() if name != "proofs"}
    return Variant(kernel, dict(tile), entry, files)


def predicate_axes(plan: FamilyPlan, spec: FamilySpec) -> dict[str, list[str]]:
    """Per kernel the sizes that a tuned predicate may use: a Triton launcher passes those that its own buckets use."""
    chosen = [axis.name for axis in plan.axes if axis.per is None]
    if plan.language != "triton":
        return {kernel.name: chosen for kernel in plan.kernels}
    used = {name: _used(spec, name) for name in spec.kernels}
    return {kernel.name: [axis for axis in chosen if axis in used[kernel.name]] for kernel in plan.kernels}


def _used(spec: FamilySpec, kernel: str) -> set[str]:
    return {name for bucket in spec.kernels[kernel].buckets for name in identifiers(bucket.when)}
