"""The ops of qk_norm_rope by name: arguments as the launch functions take them, results written in place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from dsv4gen.base.errors import ArgumentError
from dsv4gen.reference.compress_store import quantizer, store_rows
from dsv4gen.reference.qk_norm_rope import ROPE, RotaryTable, keys, query_heads, rms_norm

Values = Mapping[str, Any]
Options = Mapping[str, str]


def run(op: str, values: Values, options: Options) -> None:
    """Compute one call on the CPU.

    Args:
        op: an op of the family.
        values: tensors and numbers by name; those that a call leaves out are None or absent.
        options: every compile-time option.

    Raises:
        ArgumentError: tensors that do not go together, heads that cannot be rotated, or pages that are too small.
    """
    if op == "qk_norm":
        for name in ("q", "k"):
            normed = rms_norm(values[name].cpu(), _host(values, f"{name}_weight"), float(values["eps"]))
            values[f"{name}_out"].copy_(normed)
        return
    _check(op, values, options)
    table = RotaryTable(options["table"], values["cosines"].cpu(), _host(values, "sines"))
    positions = values["positions"].cpu()
    heads = _heads(values)
    # Both before either is written: outputs may be the inputs.
    rows = None if op == "q_norm_rope" else _keys(values, positions, table)
    if heads is not None:
        eps = float(values["eps" if op == "q_norm_rope" else "q_eps"]) if options["q_norm"] == "on" else None
        weight = _host(values, "q_weight")
        values["q_out"].copy_(query_heads(heads, positions, table, eps=eps, weight=weight))
    if rows is not None:
        if values.get("kv_out") is not None:
            values["kv_out"].copy_(rows)
        _store(values, options, rows)


def _check(op: str, values: Values, options: Options) -> None:
    """What the tensors' own shapes do not say: the same rules as those of the generated launchers."""
    given = {name for name, value in values.items() if value is not None}
    if "q_weight" in given and options["q_norm"] == "off":
        raise ArgumentError("q_weight is given with q_norm='off'", remedy="leave it out, or normalise")
    if op == "q_norm_rope":
        _check_rotated(int(values["q"].shape[2]))
    if op == "qk_norm_rope_store":
        _check_queries(given, values)
    two = options["table"] == "two"
    columns = ROPE // 2 if two else ROPE
    if values["cosines"].shape[1] != columns:
        raise ArgumentError(
            f"cosines: shape {tuple(values['cosines'].shape)} with table={options['table']!r}",
            remedy=f"rows of {columns} angles",
        )
    if two != ("sines" in given):
        raise ArgumentError(
            f"sines are {'missing' if two else 'given'} with table={options['table']!r}",
            remedy="layout two takes sines, the others have them in cosines",
        )


def _check_rotated(head_dim: int) -> None:
    if head_dim < ROPE or head_dim & (head_dim - 1):
        remedy = f"a power of two from {ROPE} on, or qk_norm, which rotates nothing"
        raise ArgumentError(f"heads of {head_dim} dimensions", remedy=remedy)


def _check_queries(given: set[str], values: Values) -> None:
    if {"q", "partials"} <= given:
        raise ArgumentError("q and partials are both given", remedy="partials are instead of q")
    if bool({"q", "partials"} & given) != ("q_out" in given):
        is_there = "given" if "q_out" in given else "missing"
        raise ArgumentError(f"q_out is {is_there}", remedy="queries and q_out go together; q_out=q is in place")
    if "partials" in given and not values["partials"].shape[0]:
        raise ArgumentError("partials have no splits", remedy="at least one split of [tokens, heads, head_dim]")


def _host(values: Values, name: str) -> Tensor | None:
    tensor: Tensor | None = values.get(name)
    return None if tensor is None else tensor.cpu()


def _heads(values: Values) -> Tensor | None:
    """Query heads, from their parts where they come so."""
    partials = _host(values, "partials")
    return _host(values, "q") if partials is None else partials.double().sum(0)


def _keys(values: Values, positions: Tensor, table: RotaryTable) -> Tensor:
    eps = float(values["kv_eps"] if values.get("kv_eps") is not None else values["eps"])
    return keys(values["kv"].cpu(), positions, table, eps=eps, weight=values["kv_weight"].cpu())


def _store(values: Values, options: Options, rows: Tensor) -> None:
    """Keys to their slots; a token without a slot goes nowhere."""
    given = values["slots"].cpu().long()[: len(rows)]
    slots = torch.full((len(rows),), -1)
    slots[: len(given)] = given
    if options["slot_zero"] == "reserved":
        slots[slots == 0] = -1
    quant = quantizer(
        options["dialect"], maximum=options["fp8_max"], floor=options["floor"], source=options["quant_source"]
    )
    cache = values["cache"].cpu()
    store_rows(cache, int(values["page_size"]), slots, rows.float(), options["record"], quant)
    values["cache"].copy_(cache)
