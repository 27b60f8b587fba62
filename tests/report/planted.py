"""A report with every failure planted: specs that do not fit, stale tuning, spills, wrong results, gaps, bad inputs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dsv4gen.base.manifest import read_manifest
from dsv4gen.emit.build import Request, build
from dsv4gen.report.collect import collect
from dsv4gen.report.model import Report
from dsv4gen.verify.outcome import Counted, CounterRow, ExecutedRow, Finding, Gap, KernelRow, Outcome
from dsv4gen.verify.results import write_results
from tests.specs import Copy, copy_specs

TARGETS = ("gfx90a", "gfx950", "gfx1250", "sm_90")
FAMILIES = ("gather_dequant", "topk")
TUNING = """\
target: gfx950
family: topk
measured: {device: a card, toolchain: a compiler, policy: graph, date: 2026-01-01}
kernels:
  select:
    - {when: true, tile: {block_threads: 384, loads_in_flight: 4, coarse_bits: 12, tie_capacity: 1024}, shape: {width: 4096}, microseconds: 3.5}
"""  # noqa: E501 - one row
PEERS = ("sglang", "flashinfer", "torch")


@dataclass(frozen=True)
class Planted:
    """A copy of the specs with a folder of results beside it."""

    copy: Copy

    @property
    def results(self) -> Path:
        """A file of results of verify."""
        return self.copy.folder / "verify.json"

    @property
    def times(self) -> Path:
        """A file of times."""
        return self.copy.folder / "bench.json"

    def digest(self, target: str, family: str) -> str:
        """What is built."""
        return read_manifest(self.copy.generated / target).family_digest(family)

    def collect(self, verify: Sequence[Path] = (), bench: Sequence[Path] = ()) -> Report:
        """The report on the copy."""
        with self.here():
            return collect(TARGETS, FAMILIES, verify, bench)

    @contextmanager
    def here(self) -> Iterator[None]:
        """This process's inputs and outputs are the copy's."""
        before = dict(os.environ)
        os.environ.update(self.copy.environment(DSV4GEN_EXTENSIONS="none"))
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


def sound(folder: Path) -> Planted:
    """Unchanged specs, built for all targets but gfx1250."""
    planted = Planted(copy_specs(folder))
    with planted.here():
        build(Request(tuple(target for target in TARGETS if target != "gfx1250")))
    return planted


def outcome(planted: Planted, target: str, family: str = "topk", oracle: str = "SIMT wave 64") -> Outcome:
    """Results with nothing wrong."""
    return Outcome(
        targets=(target,),
        kernels=(KernelRow(target, family, target, f"{family}_t256", "clang", 82, 0, 90, 0, 0, 17696, 65536, 5),),
        executed=(ExecutedRow(target, family, f"{family}_t256", oracle, 264, ("streaming", "trivial")),),
        not_executed=(),
        findings=(),
        notes=(),
        seconds={},
        digests={target: {family: planted.digest(target, family)}},
        finished="2026-01-02T03:04:05+00:00",
    )


def emulated(planted: Planted, target: str) -> Outcome:
    """As `outcome`, executed as machine code too, with counts."""
    found = outcome(planted, target)
    row = ExecutedRow(target, "topk", "topk_t256", "amdgcn emulator", 13, ("streaming",))
    counted = Counted("select: normal", (4, 1, 1), 256, 180145, {"vector": 105190, "barriers": 288, "matrix": 0})
    counters = (CounterRow(target, "topk", "topk_t256", counted),)
    return replace(found, executed=(*found.executed, row), counters=counters)


def times(planted: Planted, target: str = "sm_90", family: str = "topk") -> dict[str, Any]:
    """Times as `dsv4gen bench --json` writes them: two batches over six widths, three peers."""
    rows = [
        {
            "cell": {
                "family": family,
                "group": "decode",
                "op": "select",
                "options": {"mode": "page_table"},
                "shape": {"batch": batch, "width": width, "k": 512},
                "floor_bytes": 4 * batch * width,
                "floor_flops": 0,
            },
            "floor_us": 4e-6 * batch * width,
            "path": "cluster" if width > 16384 else "single",
            "kernels": ["topk_page_table_t1024"],
            "times": {"chained": {"us": 2.0 + 5e-6 * batch * width, "spread": 0.01}},
            "peers": {
                name: {"times": {"chained": {"us": slower * (3 + 5e-6 * batch * width), "spread": 0.02}}, "problem": ""}
                for name, slower in zip(PEERS, (1.1, 1.6, 4.0), strict=True)
            },
            "problem": "",
        }
        for batch in (1, 64)
        for width in (4096, 8192, 16384, 32768, 65536, 131072)
    ]
    return {
        "kind": "dsv4gen bench",
        "schema": 1,
        "date": "2026-01-03",
        "machine": {"device": "NVIDIA H200", "target": target, "torch": "2.13.0"},
        "rates": {"bytes_per_s": 4.2e12, "flops_per_s": 6e14, "empty_us": 1.0},
        "rows": rows,
        "missing": {},
        "digests": {family: planted.digest(target, family)},
    }


def merge(outcomes: Sequence[Outcome]) -> Outcome:
    """Several outcomes as one run."""
    first = outcomes[0]
    digests: dict[str, dict[str, str]] = {}
    for one in outcomes:
        for target, families in one.digests.items():
            digests.setdefault(target, {}).update(families)
    return replace(
        first,
        targets=tuple(digests),
        kernels=tuple(row for one in outcomes for row in one.kernels),
        executed=tuple(row for one in outcomes for row in one.executed),
        not_executed=tuple(row for one in outcomes for row in one.not_executed),
        findings=tuple(row for one in outcomes for row in one.findings),
        counters=tuple(row for one in outcomes for row in one.counters),
        digests=digests,
    )


def spilling(found: Outcome) -> Outcome:
    """Three registers of every kernel spill, over budget."""
    text = f"{found.kernels[0].symbol}: 3 registers spilled, 0 allowed"
    target, family = found.kernels[0].target, found.kernels[0].family
    return replace(
        found,
        kernels=tuple(replace(row, spills=3, scratch=12) for row in found.kernels),
        findings=(Finding(target, family, "compile", text),),
    )


def with_gap(found: Outcome) -> Outcome:
    """One row path was not executed."""
    row = found.executed[0]
    return replace(found, not_executed=(Gap(row.target, row.family, row.symbol, "register2"),))


def older(found: Outcome) -> Outcome:
    """The results are about another generation."""
    digests = {target: dict.fromkeys(families, "0" * 64) for target, families in found.digests.items()}
    return replace(found, digests=digests)


def all_failures(folder: Path) -> tuple[Planted, Report]:
    """Everything at once.

    gfx90a: nothing fits. gfx950: topk has stale tuning and a gap, gather_dequant older results. gfx1250: not built.
    sm_90: topk spills and is measured, gather_dequant gives wrong results and its module was edited.
    """
    planted = sound(folder)
    wrong = Finding("sm_90", "gather_dequant", "run", "gather_dequant on sm_90: far_pages: 3 of 512 values differ")
    gap = Gap("sm_90", "gather_dequant", "gather", oracle="amdgcn emulator", reason="the emulator cannot")
    outcomes = [
        with_gap(emulated(planted, "gfx950")),
        older(outcome(planted, "gfx950", "gather_dequant", "interpreter")),
        spilling(outcome(planted, "sm_90", oracle="SIMT wave 32")),
        replace(outcome(planted, "sm_90", "gather_dequant", "interpreter"), findings=(wrong,), not_executed=(gap,)),
    ]
    write_results(merge(outcomes), planted.results)
    planted.times.write_text(json.dumps(times(planted)), encoding="utf-8")
    other = folder / "other.json"
    other.write_text('{"kind": "dsv4gen bench", "schema": 99}', encoding="utf-8")
    planted.copy.edit("specs/platforms/gfx90a.yaml", "65536", "8192")
    tuning = folder / "specs" / "tuning" / "gfx950"
    tuning.mkdir(parents=True)
    (tuning / "topk.yaml").write_text(TUNING, encoding="utf-8")
    with (planted.copy.generated / "sm_90" / "gather_dequant.py").open("a", encoding="utf-8") as file:
        file.write("# edited by hand\n")
    return planted, planted.collect([planted.results, folder / "gone.json"], [planted.times, other])
