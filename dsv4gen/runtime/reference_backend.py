"""`target="reference"`: the families' definitions in plain torch, behind the same calls; slow, right, on any device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from dsv4gen.base.errors import ArgumentError, LoadError
from dsv4gen.runtime import arguments, call_names
from dsv4gen.runtime.backend import Function, Sizes, make_outputs
from dsv4gen.runtime.call_table import CallTable
from dsv4gen.runtime.dispatch import Decision

NAME = "reference"
if TYPE_CHECKING:
    from dsv4gen.reference.sparse_decode import Scope

Values = Mapping[str, Any]


@dataclass
class ReferenceBackend:
    """One family's reference with chosen options.

    Raises:
        LoadError: no op of the family has a reference behind its call.
    """

    family: str
    options: Mapping[str, str]
    entry: Mapping[str, Any] = field(default_factory=dict, repr=False)
    target: str = NAME

    def __post_init__(self) -> None:
        behind_calls = sorted({family for family, _ in _ADAPTERS})
        if self.family not in behind_calls:
            raise self._no_reference(self.family, f"families: {', '.join(behind_calls)}")

    def decide(self, op: str, sizes: Sizes) -> Decision:
        """No launches: torch does the work."""
        return Decision(self.family, op, NAME, "", "", self.options, dict(sizes), "torch", (), ())

    def prewarm(self, table: CallTable, shapes: Sequence[Sizes]) -> None:
        """Nothing to load."""

    def workspace_bytes(self, table: CallTable, sizes: Sizes) -> dict[str, int]:  # noqa: ARG002
        """The reference works in memory of its own."""
        return {rule.name: 0 for rule in table.workspaces}

    def function(self, table: CallTable, *, checked: bool) -> Function:
        """The reference with the op's arguments: same names, same checks, results written in place."""
        run = _ADAPTERS.get((self.family, table.op))
        if run is None:
            runs = ", ".join(op for family, op in _ADAPTERS if family == self.family)
            raise self._no_reference(table.title, f"ops: {runs}")
        first = table.inputs[0].name
        outputs = [rule.name for rule in table.outputs]

        def call(*tensors: Any, **named: Any) -> Any:
            values = call_names.by_name(table, tensors, {**table.defaults, **named})
            if any(values.get(name) is None for name in outputs):
                values = make_outputs(table, values)
            if checked:
                bound = arguments.check(table, values, on_cuda=bool(getattr(values.get(first), "is_cuda", False)))
                values = {**values, **bound.sizes}
            run(values, self.options)
            made = tuple(values[name] for name in outputs)
            return made[0] if len(made) == 1 else made

        call.__name__ = table.op
        return call

    def _no_reference(self, what: str, runs: str) -> LoadError:
        return LoadError(
            f'{what} has no reference behind a call; target="{NAME}" runs the {runs}',
            remedy=f"load a generated target; without a GPU: dsv4gen verify -t sm_90 -f {self.family}",
        )


def _topk_select(values: Values, options: Mapping[str, str]) -> None:
    from dsv4gen.reference import topk
    from dsv4gen.reference.topk_rows import Rows

    optional = ("page_table", "row_starts", "out_offsets", "row_to_batch")
    given = {name: values[name].cpu() for name in optional if values.get(name) is not None}
    rows = Rows(
        values["scores"].cpu(),
        values["seq_lens"].cpu(),
        options["mode"],
        page_bits=int(values.get("page_bits") or 0),
        **given,
    )
    rules = topk.Rules(**{name: options[name] for name in topk.CHOICES})
    found = topk.select(rows, int(values["out"].shape[1]), rules)
    values["out"].copy_(found.out)
    if found.raw_out is not None:
        values["raw_out"].copy_(found.raw_out)


def _gather(values: Values, options: Mapping[str, str]) -> None:
    from dsv4gen.reference import gather_dequant

    gather_dequant.gather_dequant(
        values["cache"],
        values["indices"],
        values["out"],
        values["mask"],
        page_size=int(values["page_size"]),
        dialect=options["dialect"],
        lengths=values.get("lengths"),
        queries_per_batch=int(values["queries"]),
        k_offset=int(values["k_offset"]),
        layout=gather_dequant.LAYOUTS[options["layout"]],
    )


def _gather_dual(values: Values, options: Mapping[str, str]) -> None:
    _gather(values, options)
    second = {
        **values,
        "cache": values["extra_cache"],
        "indices": values["extra_indices"],
        "lengths": values.get("extra_lengths"),
        "page_size": values["extra_page_size"],
        "k_offset": int(values["k_offset"]) + int(values["indices"].shape[1]),
    }
    _gather(second, {**options, "dialect": options["extra_dialect"]})


def _indexer_logits(op: str, values: Values, options: Mapping[str, str]) -> None:
    from dsv4gen.reference import indexer_logits

    if op == "decode" and (values.get("seq_lens") is None) == (values.get("row_lens") is None):
        raise ArgumentError(
            "lengths are given twice or not at all",
            remedy="pass seq_lens, one length per request, or row_lens, one per query",
        )
    names = ("q", "weights", "page_table", "requests", "seq_lens", "row_lens")
    named = {name: values[name].cpu() for name in names if values.get(name) is not None}
    chosen = {name: options[name] for name in ("dialect", "query_dialect", "tail")}
    out = values["out"].cpu()
    run = getattr(indexer_logits, op)
    run(**named, pool=values["cache"].cpu(), out=out, page_size=int(values["page_size"]), **chosen)
    values["out"].copy_(out)


def _sparse_decode(op: str, values: Values, options: Mapping[str, str]) -> None:
    from dsv4gen.reference import sparse_decode

    on_cpu = {name: value.cpu() if hasattr(value, "cpu") else value for name, value in values.items()}
    sink = on_cpu.get("sink")
    if op == "merge_lse":
        out, lse = sparse_decode.merge_lse(on_cpu["parts"], on_cpu["lses"], sink=sink)
    else:
        shared: dict[str, Any] = {
            "scale": float(values["scale"]),
            "sink": sink,
            "value_width": int(values["out"].shape[2]),
        }
        if op == "attend_rows":
            out, lse = sparse_decode.attend_rows(on_cpu["q"], on_cpu["rows"], on_cpu["mask"], **shared)
        else:
            scopes = [_scope(prefix, on_cpu, options) for prefix in ("", "extra_")[: 1 + (options["scopes"] == "two")]]
            queries = int(values["queries"])
            out, lse = sparse_decode.attend(on_cpu["q"], scopes, queries=queries, **shared)
    values["out"].copy_(out)
    values["lse"].copy_(lse)


def _scope(prefix: str, values: Values, options: Mapping[str, str]) -> Scope:
    from dsv4gen.reference.sparse_decode import Scope

    return Scope(
        pool=values[f"{prefix}cache"],
        page_size=int(values[f"{prefix}page_size"]),
        indices=values[f"{prefix}indices"],
        lengths=values.get(f"{prefix}lengths"),
        dialect=options[f"{prefix}dialect"],
    )


def _qk_norm_rope(op: str, values: Values, options: Mapping[str, str]) -> None:
    from dsv4gen.reference import qk_norm_rope_calls

    qk_norm_rope_calls.run(op, values, options)


_ADAPTERS: dict[tuple[str, str], Callable[[Values, Mapping[str, str]], None]] = {
    ("topk", "select"): _topk_select,
    ("gather_dequant", "gather"): _gather,
    ("gather_dequant", "gather_dual"): _gather_dual,
    ("indexer_logits", "decode"): partial(_indexer_logits, "decode"),
    ("indexer_logits", "prefill"): partial(_indexer_logits, "prefill"),
    **{("sparse_decode", op): partial(_sparse_decode, op) for op in ("attend", "attend_rows", "merge_lse")},
    **{
        ("qk_norm_rope", op): partial(_qk_norm_rope, op)
        for op in ("qk_norm", "q_norm_rope", "k_norm_rope_store", "qk_norm_rope_store")
    },
}
