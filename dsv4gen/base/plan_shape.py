"""What the files of a target's folder hold: the manifest's JSON, and a family's plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dsv4gen.base.json_shape import (
    anything,
    either,
    expression,
    listed,
    mapped,
    maybe,
    number,
    one_of,
    positive,
    record,
    row,
    text,
    truth,
    whole,
)
from dsv4gen.base.plain_data import PlainDataError

Json = Mapping[str, Any]

_TARGET = record(
    {"units": positive, "dies": listed(row(positive, positive))},
    name=text, api=one_of("cuda", "hip"), arch=text, also=listed(text), facts=mapped(anything),
)  # fmt: skip
#: a manifest
check_manifest = record(target=_TARGET, families=listed(text), outputs=mapped(text))

_FLOORS = record(bytes=expression, flops=expression)
_TILE = mapped(whole)
_TENSOR = record(
    {"in_place": listed(text)},
    name=text, dtype=text, shape=listed(expression), strides=listed(either(text, whole)), align=positive,
    role=one_of("in", "out", "inout"), when=maybe(expression), optional=truth,
)  # fmt: skip
_WORKSPACE = record(
    name=text, dtype=text, bytes=expression, init=text, restore=text, scope=text, paths=listed(text)
)  # fmt: skip
_LAUNCH = record(
    kernel=text, grid=row(expression, expression, expression), block=expression, cluster=maybe(expression),
    shared_bytes=expression, dependent=truth,
)  # fmt: skip
_PATH = record(
    name=text, variant=text, domain=expression, prefer=expression, launches=listed(_LAUNCH),
    rejected=maybe(record(reason=text, key=text)), key=text,
)  # fmt: skip
_OP = record(
    summary=text, tensors=listed(_TENSOR), workspaces=listed(_WORKSPACE), paths=listed(_PATH),
    params=record(format=text, size=whole, fields=listed(row(text, text, whole))),
)  # fmt: skip
_KERNEL = record(
    entry=text,
    row_paths=listed(record(name=text, prefer=expression)),
    buckets=listed(record(when=expression, tile=_TILE, origin=text), 1),
    refused_tiles=listed(record(tile=_TILE, reason=text)),
    instances=listed(
        record(
            symbol=text,
            options=mapped(text),
            tile=_TILE,
            threads=whole,
            shared_bytes=whole,
            min_blocks=whole,
            row_paths=listed(text),
        )
    ),
)
_LAUNCHER = record(required=listed(text), defaults=mapped(maybe(either(text, either(truth, number)))))
#: candidates of `tune` come without proofs
_PLAN = record(
    {"proofs": listed(record(subject=text, cells=listed(text))), "launchers": mapped(_LAUNCHER)},
    summary=text, language=one_of("hip_cuda", "triton"), spec=text, template=text, reference=text, digest=text,
    axes=mapped(
        record({"when": maybe(expression)}, min=expression, max=expression, per=maybe(text), doc=text)
    ),
    constants=mapped(whole),
    options=mapped(record(choices=listed(text), default=text, doc=text)),
    variants=record(flag=text, choices=listed(text), default=text),
    main=text, ops=mapped(_OP), kernels=mapped(_KERNEL),
    floors=_FLOORS, hazards=listed(text), shapes=record(test=listed(mapped(whole))),
    bench=mapped(record(op=text, options=mapped(text), shapes=listed(mapped(whole), 1), floors=_FLOORS)),
)  # fmt: skip


def check_plan(plan: object) -> None:
    """Every value of a family's plan, and the names that it refers to.

    Raises:
        PlainDataError: a value of another kind, a missing key, or a name of nothing.
    """
    _PLAN(plan, "")
    found: Json = plan  # type: ignore[assignment]
    _known(found["main"], found["ops"], "main")
    for name, option in found["options"].items():
        _known(option["default"], option["choices"], f"options.{name}.default")
    for name, entry in found["bench"].items():
        _known(entry["op"], found["ops"], f"bench.{name}.op")
    for op_name, op in found["ops"].items():
        tensors = [tensor["name"] for tensor in op["tensors"]]
        for position, tensor in enumerate(op["tensors"]):
            for name in tensor.get("in_place", ()):
                _known(name, tensors, f"ops.{op_name}.tensors[{position}].in_place")
        for position, path in enumerate(op["paths"]):
            for launch in path["launches"]:
                _known(launch["kernel"], found["kernels"], f"ops.{op_name}.paths[{position}].launches")


def _known(name: str, names: Iterable[str], where: str) -> None:
    if name not in names:
        raise PlainDataError(f"{where}: {name!r} is not one of {', '.join(names) or 'none'}")
