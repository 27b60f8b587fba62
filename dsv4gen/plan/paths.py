"""Launch paths of an op: requirements folded against the target, coverage proven per variant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dsv4gen.base.runtime_facts import RUNTIME_FACTS
from dsv4gen.plan.ir import Axis, Launch, LaunchPath, Proof, Rejection
from dsv4gen.plan.reader import Reader
from dsv4gen.prove import Axis as ProofAxis
from dsv4gen.prove import Expr, PathRule, prove_coverage
from dsv4gen.prove.space import space_of
from dsv4gen.spec.family import LaunchPath as PathSpec


def make_launch_paths(reader: Reader, op_name: str) -> tuple[LaunchPath, ...]:
    """All paths of an op, the rejected ones with their reason."""
    specs = reader.spec.ops[op_name].launch_paths
    return tuple(_launch_path(reader, op_name, index, spec) for index, spec in enumerate(specs))


def _launch_path(reader: Reader, op_name: str, index: int, spec: PathSpec) -> LaunchPath:
    keys: tuple[str | int, ...] = ("ops", op_name, "launch_paths", index)
    rejected = _rejection(reader, spec, keys)
    return LaunchPath(
        name=spec.name,
        variant=spec.variant or "",
        domain=reader.expr(spec.domain, *keys, "domain"),
        prefer=reader.expr(spec.prefer, *keys, "prefer"),
        launches=() if rejected else tuple(_launch(reader, name) for name in spec.launches),
        rejected=rejected,
        key=f"ops.{op_name}.launch_paths[{index}]",
    )


def _rejection(reader: Reader, spec: PathSpec, keys: tuple[str | int, ...]) -> Rejection | None:
    for position, text in enumerate(spec.requires):
        requirement = reader.raw(text, *keys, "requires", position)
        if not reader.expr(text, *keys, "requires", position).evaluate({}):
            facts = ", ".join(f"{name} is {reader.record.facts[name]}" for name in sorted(requirement.names))
            path = f"ops.{keys[1]}.launch_paths[{keys[3]}].requires[{position}]"
            return Rejection(f"requires {requirement}, but {facts}", path)
    return None


def _launch(reader: Reader, kernel_name: str) -> Launch:
    spec = reader.spec.kernels[kernel_name]
    keys = ("kernels", kernel_name)
    x, y, z = (reader.expr(size, *keys, "grid", i, extra=spec.tiles) for i, size in enumerate(spec.grid))
    return Launch(
        kernel=kernel_name,
        grid=(x, y, z),
        block=reader.expr(spec.fits.threads, *keys, "fits", "threads", extra=spec.tiles),
        cluster=reader.expr(spec.cluster, *keys, "cluster", extra=spec.tiles) if spec.cluster else None,
        shared_bytes=Expr.parse("0"),
        dependent=spec.pdl and bool(reader.record.facts["launch.dependent"]),
    )


def prove_launch_paths(reader: Reader, op_name: str, paths: Iterable[LaunchPath], axes: Sequence[Axis]) -> list[Proof]:
    """The paths of each variant cover every shape, and none is dead.

    Raises:
        ProofError: a gap, a dead path, or a `prefer` outside its `domain`, with a shape that shows it.
    """
    paths = list(paths)
    variants = sorted({path.variant for path in paths if path.variant}) or [""]
    proofs = []
    for variant in variants:
        mine = [path for path in paths if path.variant in ("", variant) and path.rejected is None]
        rules = [PathRule(path.name, path.domain, path.prefer) for path in mine]
        table = "launch paths" + (f" of {variant}" if variant else "")
        place = reader.place("ops", op_name, "launch_paths")
        proof = prove_coverage(
            table, rules, proof_axes(axes, device=False), choices=used_choices(reader, rules), place=place
        )
        proofs.append(Proof(f"{reader.spec.family}.{op_name}", proof))
    return proofs


def proof_axes(axes: Iterable[Axis], *, device: bool) -> tuple[ProofAxis, ...]:
    """Axis bounds for a proof, run-time facts included; `device` adds the axes only the device reads."""
    own = (ProofAxis(axis.name, axis.minimum, axis.maximum) for axis in axes if device or axis.per is None)
    return (*own, *(ProofAxis.of(name, low, high) for name, (low, high) in RUNTIME_FACTS.items()))


def axis_ranges(axes: Iterable[Axis]) -> Mapping[str, tuple[int, int]]:
    """The smallest and largest value of each axis on its own."""
    return space_of(proof_axes(axes, device=True), {}).ranges


def used_choices(reader: Reader, rules: Iterable[PathRule]) -> dict[str, tuple[str, ...]]:
    """Options that a table's predicates read, with their choices."""
    return choices_of(reader, (name for rule in rules for name in (*rule.domain.names, *rule.prefer.names)))


def choices_of(reader: Reader, names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The options among `names`, with their choices."""
    read = set(names)
    return {name: option.choices for name, option in reader.spec.options.items() if name in read}
