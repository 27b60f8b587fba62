"""`dsv4gen explain`: which path a shape takes and why, why not the others, what is proven, what it costs at least."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from dsv4gen.base import extensions
from dsv4gen.base.errors import UsageError, did_you_mean
from dsv4gen.base.expression_json import evaluate_json, names_json
from dsv4gen.base.manifest import Manifest
from dsv4gen.base.tiles import tile_words
from dsv4gen.bench.cells import least_sizes
from dsv4gen.console import say, table
from dsv4gen.runtime.dispatch import Decision, PlannedLaunch, decide, usual_facts, with_facts

PROOF_HEAD = ("proven for", "what", "formula", "value", "limit", "slack", "verdict")


@dataclass(frozen=True)
class Explanation:
    """The decision for one shape beside the plan's proofs, row paths (kernel, name, predicate) and floors."""

    decision: Decision
    row_paths: tuple[tuple[str, str, str], ...]
    proofs: tuple[tuple[str, ...], ...]
    other_proofs: int
    refused_tiles: tuple[tuple[str, str], ...]
    floor_bytes: int | None
    floor_text: str
    spec: str
    workspaces: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        return asdict(self)

    def show(self) -> None:
        """Print for people."""
        d = self.decision
        say(f"{d.family}.{d.op} on {d.target}", "head")
        say("shape    " + " ".join(f"{name}={value}" for name, value in d.shape.items()))
        if d.options:
            say("options  " + " ".join(f"{name}={value}" for name, value in d.options.items()))
        if d.variant:
            say(f"variant  {d.variant} ({d.variant_reason})")
        say()
        table(("launch path", "", "because"), [(c.name, "taken" if c.taken else "-", c.reason) for c in d.considered])
        say()
        head = ("launch", "kernel", "tile", "because", "grid", "block")
        rows = [
            (i + 1, x.symbol, tile_words(x.tile), x.bucket, " x ".join(map(str, x.grid)), x.block)
            for i, x in enumerate(d.launches)
        ]
        table(head, rows)
        if self.row_paths:
            say()
            table(("kernel", "row path", "taken when (first of its kernel that holds, on the device)"), self.row_paths)
        say()
        table(PROOF_HEAD, self.proofs)
        say(f"and {self.other_proofs} more for other kernels and tiles: --all", "dim") if self.other_proofs else None
        if self.refused_tiles:
            say()
            table(("refused tile", "why"), self.refused_tiles)
        say()
        for line in self.workspaces:
            say(f"memory   {line}")
        moved = "" if self.floor_bytes is None else f"{self.floor_bytes:,} bytes moved at least: "
        say(f"floor    {moved}{self.floor_text}")
        say(f"spec     {self.spec}")


def explain_shape(
    family: str,
    target: str,
    op: str | None,
    shape: Mapping[str, int],
    options: Mapping[str, str],
    *,
    all_proofs: bool = False,
) -> Explanation:
    """Explain one shape from the specs as they are now; nothing needs to be built.

    Raises:
        UsageError: an unknown family or op, several targets.
        ArgumentError: an unknown axis, or a value outside its range.
    """
    manifest = _fresh_manifest(family, target)
    entry = manifest.families[family]
    op = op or entry["main"]
    if op not in entry["ops"]:
        raise UsageError(f"{family} has no op {op!r}{did_you_mean(op, entry['ops'])}")
    sizes = with_facts(entry, op, shape, usual_facts(manifest.target))
    decision = decide(family, entry, manifest.target["name"], op, sizes, options)
    names = {**entry["constants"], **shape, **decision.options}
    floor_bytes, floor_text = _floor(entry, op, {**_absent(entry), **names})
    kernels = {launch.kernel: launch for launch in decision.launches}
    subjects = {
        f"{family}.{op}",
        *kernels,
        *(f"{name} {tile_words(launch.tile)}" for name, launch in kernels.items()),
    }
    shown = [proof for proof in entry["proofs"] if all_proofs or proof["subject"] in subjects]
    return Explanation(
        decision=decision,
        row_paths=tuple(row for launch in decision.launches for row in _row_paths(entry, launch)),
        proofs=tuple((_subject(proof["subject"], all_proofs), *proof["cells"]) for proof in shown),
        other_proofs=len(entry["proofs"]) - len(shown),
        refused_tiles=tuple(
            (f"{name} {tile_words(tile['tile'])}", tile["reason"])
            for name in kernels
            for tile in entry["kernels"][name]["refused_tiles"]
        ),
        floor_bytes=floor_bytes,
        floor_text=floor_text,
        spec=entry["spec"],
        workspaces=tuple(_workspaces(entry["ops"][op], decision, {**names, **decision.shape})),
    )


def _floor(entry: Mapping[str, Any], op: str, names: Mapping[str, Any]) -> tuple[int | None, str]:
    """The bytes that a call of the op moves at least, with their formula; or None, with the reason."""
    lists = [shapes for shapes in entry["bench"].values() if shapes["op"] == op]
    if not lists and op != entry["main"]:
        return None, f"the spec states none for {op}"
    formula = (lists[0] if lists else entry)["floors"]["bytes"]
    missing = sorted({name for name in names_json(formula["tree"]) if name not in names})
    if missing:
        return None, f"needs {', '.join(missing)}: {formula['text']}"
    return int(evaluate_json(formula["tree"], names)), formula["text"]


def _absent(entry: Mapping[str, Any]) -> dict[str, int]:
    """Sizes that may be 0, as a second cache may be: that is what they are where a shape leaves them out."""
    return {axis: 0 for axis, least in least_sizes(entry).items() if least == 0}


def _fresh_manifest(family: str, target: str) -> Manifest:
    from dsv4gen.emit.build import make_plans
    from dsv4gen.emit.manifest import make_manifest, plan_files
    from dsv4gen.emit.select import select_target
    from dsv4gen.spec import load_specs

    specs = load_specs(*extensions.spec_folders())
    if family not in specs.families:
        known = ", ".join(sorted(specs.families))
        raise UsageError(f"no family {family!r}{did_you_mean(family, specs.families)}", remedy=f"families: {known}")
    plans = make_plans(specs, select_target(target), [family])
    return make_manifest(plans[0].target, [family], plan_files(plans))


def _workspaces(op: Mapping[str, Any], decision: Decision, names: Mapping[str, Any]) -> Iterator[str]:
    """What the taken path needs of the caller, in words."""
    for space in op["workspaces"]:
        if decision.path in space["paths"]:
            size = int(evaluate_json(space["bytes"]["tree"], names))
            rule = f"{space['init']} before the first call, {space['restore']} after each, one per {space['scope']}"
            yield f"{space['name']}: {size:,} bytes of the caller's, {space['bytes']['text']}; {rule}"


def _row_paths(entry: Mapping[str, Any], launch: PlannedLaunch) -> list[tuple[str, str, str]]:
    """Kernel, row path and predicate, of the paths that rows of the launched tile can take: launches of one call may
    have paths of the same name."""
    kernel = entry["kernels"][launch.kernel]
    taken = next(one["row_paths"] for one in kernel["instances"] if one["symbol"] == launch.symbol)
    rows = [path for path in kernel["row_paths"] if path["name"] in taken]
    return [(launch.kernel, path["name"], path["prefer"]["text"]) for path in rows]


def _subject(subject: str, all_proofs: bool) -> str:
    """With only the launched tiles shown, the tile need not be repeated."""
    kernel, _, tile = subject.partition(" ")
    return subject if all_proofs or not tile else f"{kernel}, this tile"
