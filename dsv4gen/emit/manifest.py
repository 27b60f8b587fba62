"""Plans and rendered files -> the JSON of the manifest and of each family's plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from dsv4gen import __version__
from dsv4gen.base.manifest import SCHEMA, Manifest, Plans, digest_bytes, digest_json, json_text, plan_file
from dsv4gen.base.params import ParamsLayout
from dsv4gen.plan.ir import BenchShapes, FactValue, FamilyPlan, Kernel, Launch, LaunchPath, Op, TargetFacts, Tensor
from dsv4gen.prove import Expr

if TYPE_CHECKING:
    from dsv4gen.render import Launcher

Json = dict[str, Any]

#: target facts the runtime needs to check, launch and explain
RUNTIME_FACTS = (
    "wave.launch",
    "shared.static",
    "shared.block",
    "cluster.supported",
    "cluster.use",
    "cluster.maximum",
    "cluster.remote_shared",
    "launch.dependent",
)


def make_manifest(target: TargetFacts, families: Iterable[str], files: Mapping[str, bytes]) -> Manifest:
    """The manifest of one target's folder; `files` is all it holds, the plans of `families` among them."""
    names = sorted(families)
    data = {
        "schema": SCHEMA,
        "generator": __version__,
        "target": target_json(target),
        "families": names,
        "outputs": {name: digest_bytes(data) for name, data in files.items()},
    }
    return Manifest(data, Plans(names, files.__getitem__))


def plan_files(plans: Iterable[FamilyPlan], launchers: Mapping[str, Launcher] | None = None) -> dict[str, bytes]:
    """The file of each family's plan; `launchers` as for `plan_json`."""
    return {plan_file(plan.family): json_text(plan_json(plan, launchers or {})).encode() for plan in plans}


def plan_json(plan: FamilyPlan, launchers: Mapping[str, Launcher]) -> Json:
    """What the runtime reads of one family; `launchers` are those of a Triton module, by op."""
    return {**family_json(plan), "launchers": {op: launcher.to_json() for op, launcher in launchers.items()}}


def family_json(plan: FamilyPlan) -> Json:
    """One family as JSON; `digest` covers everything else in it."""
    data: Json = {
        "summary": plan.summary,
        "language": plan.language,
        "spec": plan.spec_file,
        "template": plan.template,
        "reference": plan.reference,
        "axes": {
            axis.name: {
                "min": expr_json(axis.minimum),
                "max": expr_json(axis.maximum),
                "per": axis.per,
                "when": expr_json(axis.when) if axis.when else None,
                "doc": axis.doc,
            }
            for axis in plan.axes
        },
        "constants": dict(plan.constants),
        "options": {
            option.name: {"choices": list(option.choices), "default": option.default, "doc": option.doc}
            for option in plan.options
        },
        "variants": {
            "flag": plan.variants.flag,
            "choices": list(plan.variants.choices),
            "default": plan.variants.default,
        },
        "main": plan.main,
        "ops": {op.name: _op_json(op) for op in plan.ops},
        "kernels": {kernel.name: _kernel_json(kernel) for kernel in plan.kernels},
        "proofs": [{"subject": row.subject, "cells": list(row.proof.row())} for row in plan.proofs],
        "floors": {"bytes": expr_json(plan.floor_bytes), "flops": expr_json(plan.floor_flops)},
        "hazards": list(plan.hazards),
        "shapes": {"test": [dict(shape) for shape in plan.test_shapes]},
        "bench": {entry.name: _bench_json(entry) for entry in plan.bench},
    }
    return {**data, "digest": digest_json(data)}


def _bench_json(entry: BenchShapes) -> Json:
    return {
        "op": entry.op,
        "options": dict(entry.options),
        "shapes": [dict(shape) for shape in entry.shapes],
        "floors": {"bytes": expr_json(entry.floor_bytes), "flops": expr_json(entry.floor_flops)},
    }


def expr_json(expr: Expr) -> Json:
    """An expression as readers see it and as the runtime evaluates it."""
    return {"text": str(expr), "tree": expr.to_json()}


def target_json(target: TargetFacts) -> Json:
    """What the runtime knows of a target."""
    return {
        "name": target.name,
        "api": target.api,
        "arch": target.arch,
        "also": list(target.also),
        "units": target.units,
        "dies": [list(pair) for pair in target.dies],
        "facts": {path: _plain(target.facts[path]) for path in RUNTIME_FACTS},
    }


def _plain(value: FactValue) -> object:
    return list(value) if isinstance(value, tuple) else value


def _op_json(op: Op) -> Json:
    return {
        "summary": op.summary,
        "tensors": [_tensor_json(tensor) for tensor in op.tensors],
        "params": _params_json(op.params),
        "workspaces": [
            {
                "name": space.name,
                "dtype": space.dtype,
                "bytes": expr_json(space.bytes),
                "init": space.init,
                "restore": space.restore,
                "scope": space.scope,
                "paths": list(space.paths),
            }
            for space in op.workspaces
        ],
        "paths": [_path_json(path) for path in op.launch_paths],
    }


def _tensor_json(tensor: Tensor) -> Json:
    return {
        "name": tensor.name,
        "dtype": tensor.dtype,
        "shape": [expr_json(size) for size in tensor.shape],
        "strides": list(tensor.strides),
        "align": tensor.align,
        "role": tensor.role,
        "when": expr_json(tensor.when) if tensor.when else None,
        "optional": tensor.optional,
        **({"in_place": list(tensor.in_place)} if tensor.in_place else {}),
    }


def _params_json(params: ParamsLayout) -> Json:
    fields = [[field.name, field.kind, field.offset] for field in params.fields]
    return {"format": params.format, "size": params.size, "fields": fields}


def _path_json(path: LaunchPath) -> Json:
    rejected = {"reason": path.rejected.reason, "key": path.rejected.key} if path.rejected else None
    return {
        "name": path.name,
        "variant": path.variant,
        "domain": expr_json(path.domain),
        "prefer": expr_json(path.prefer),
        "launches": [_launch_json(launch) for launch in path.launches],
        "rejected": rejected,
        "key": path.key,
    }


def _launch_json(launch: Launch) -> Json:
    return {
        "kernel": launch.kernel,
        "grid": [expr_json(size) for size in launch.grid],
        "block": expr_json(launch.block),
        "cluster": expr_json(launch.cluster) if launch.cluster else None,
        "shared_bytes": expr_json(launch.shared_bytes),
        "dependent": launch.dependent,
    }


def _kernel_json(kernel: Kernel) -> Json:
    return {
        "entry": kernel.entry,
        "row_paths": [{"name": path.name, "prefer": expr_json(path.prefer)} for path in kernel.row_paths],
        "buckets": [
            {"when": expr_json(bucket.when), "tile": dict(bucket.tile), "origin": bucket.origin}
            for bucket in kernel.buckets
        ],
        "refused_tiles": [{"tile": dict(tile), "reason": reason} for tile, reason in kernel.refused_tiles],
        "instances": [
            {
                "symbol": instance.symbol,
                "options": dict(instance.options),
                "tile": dict(instance.tile),
                "threads": instance.threads,
                "shared_bytes": instance.shared_bytes,
                "min_blocks": instance.min_blocks,
                "row_paths": list(instance.row_paths),
            }
            for instance in kernel.instances
        ],
    }
