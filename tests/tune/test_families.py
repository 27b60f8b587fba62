"""Pack, measure and apply beyond `gather_dequant`: made-up times, references behind calls, a copy of the specs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import dsv4gen
from dsv4gen.bench import prepare as preparing
from dsv4gen.bench.cells import Wanted, cells_of, least_sizes
from dsv4gen.emit.build import family_files, make_plans
from dsv4gen.runtime.call_table import CallTable
from dsv4gen.runtime.dispatch import complete_options, decide
from dsv4gen.runtime.read_table import make_table
from dsv4gen.runtime.specialise import function_text
from dsv4gen.runtime.triton_launch import TritonLaunch
from dsv4gen.spec import load_specs
from dsv4gen.tune.apply import apply
from dsv4gen.tune.candidates import make_pack
from dsv4gen.tune.journal import Head, Journal
from dsv4gen.tune.measure import Sweep
from dsv4gen.tune.pack import Pack, Variant, read_pack
from tests.bench.fakes import Clock
from tests.bench.test_inputs import by_state_machine
from tests.checkout import ROOT

TARGET = "sm_90"
FACTS = {"units": 132, "xcds": 1}
#: family -> list of the spec, a small shape, a kernel that it launches, and what of the tile a better one has changed
FAMILIES: Mapping[str, tuple[str, Mapping[str, int], str, Mapping[str, int]]] = {
    "topk": ("short", {"batch": 2, "width": 600, "k": 16}, "short", {"row_vectors": 1}),
    "compress": ("c4_decode", {"batch": 2, "completing": 2}, "decode_four", {"num_warps": 4}),
    "qk_norm_rope": ("queries", {"tokens": 3, "heads": 16}, "rotate_heads", {"num_warps": 2}),
    "indexer_logits": ("decode", {"batch": 1, "width": 128}, "decode", {"num_stages": 3}),
}


@pytest.fixture
def specs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the specs without tuning files, in use."""
    shutil.copytree(ROOT / "specs", tmp_path / "specs", ignore=shutil.ignore_patterns("tuning"))
    monkeypatch.setenv("DSV4GEN_SPECS_DIR", str(tmp_path / "specs"))
    return tmp_path / "specs"


class _Loaded:
    """A family that decides as a variant does, with the reference behind its calls, and notes which tile runs."""

    def __init__(self, pack: Pack, variant: Variant, running: list[Variant], options: Mapping[str, str]) -> None:
        defaults = {name: option["default"] for name, option in variant.entry["options"].items()}
        self.family, self.variant, self.running = pack.family, variant, running
        self.options = {**defaults, **options}

    def op(self, name: str | None = None) -> Any:
        """The op."""
        outer, entry = self, self.variant.entry
        op = name or entry["main"]

        class Op:
            table = make_table(outer.family, entry, op, outer.options)
            workspaces = ()

            @staticmethod
            def explain(**shape: int) -> Any:
                return decide(outer.family, entry, TARGET, op, {**least_sizes(entry), **shape, **FACTS}, outer.options)

            @staticmethod
            def unchecked(**values: Any) -> None:
                outer.running[:] = [outer.variant]
                if outer.family == "compress":
                    made: Any = SimpleNamespace(arguments=values, request=SimpleNamespace(op=op))
                    for name, tensor in by_state_machine(made).items():
                        values[name].copy_(tensor)
                else:
                    dsv4gen.load(outer.family, target="reference").op(op).unchecked(**values)

        return Op


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.usefixtures("specs")
def test_the_base_is_called_as_the_generated_family_is(family: str) -> None:
    """Arguments that only a Triton module's launcher has among them."""
    kernel, better = FAMILIES[family][2:]
    entry = make_pack(family, TARGET, [kernel], better, near=1).base.entry
    (plan,) = make_plans(load_specs(ROOT / "specs"), TARGET, [family])
    generated = json.loads(family_files(plan)[f"plans/{family}.json"])
    for op in generated["ops"]:
        tables = [make_table(family, one, op, complete_options(one, {})) for one in (entry, generated)]
        assert parameters_of(tables[0]) == parameters_of(tables[1])


def parameters_of(table: CallTable) -> str:
    """The first line of a launch function."""
    ending = TritonLaunch(table, amd=False)
    return next(function_text(table, ending, checked=False, on_cuda=True, many_devices=False))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_faster_tile_goes_from_the_pack_into_the_plan(
    family: str, specs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group, sizes, kernel, better = FAMILIES[family]
    monkeypatch.setattr(preparing, "LEAST_BYTES", 1)
    make_pack(family, TARGET, [kernel], better, near=1).write(tmp_path / "a.pack")
    pack, running = read_pack(tmp_path / "a.pack"), []
    cells = cells_of(family, pack.base.entry, Wanted([group], sizes, {}))

    def us(_: int) -> float:
        return 5.0 if better.items() <= running[0].tile.items() else 10.0

    head = Head(family, TARGET, "time", "2026-01-02", {"device": "a card"}, {k: [*v] for k, v in pack.axes.items()})
    clock, journal = Clock(us), Journal.open(tmp_path / "a.jsonl", head)
    load = lambda variant, options: _Loaded(pack, variant, running, options)  # noqa: E731
    assert Sweep(pack, load, clock, clock, journal, "cpu").run(cells)
    assert all(not entry.problem for entry in journal.done.values()), [e.problem for e in journal.done.values()]
    file, _, outcome = apply(tmp_path / "a.jsonl")
    assert file == specs / "tuning" / TARGET / f"{family}.yaml"
    (row,) = [choice for choice in outcome.choices[kernel] if choice.entries]
    assert better.items() <= row.tile.items()
    (plan,) = make_plans(load_specs(specs), TARGET, [family])
    (bucket,) = [one for one in plan.kernel(kernel).buckets if str(one.when) == row.when]
    assert dict(bucket.tile) == dict(row.tile) and bucket.origin != "spec"
