"""The report as data: targets x families of cells, each with its stages and everything that explains them.

Both renderers read this tree and nothing else; `Report.to_json` is what `--json` prints and the page carries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from dsv4gen.bench.stopwatch import Timing
from dsv4gen.verify.outcome import CounterRow, ExecutedRow, Gap, KernelRow

SCHEMA = 1
KIND = "dsv4gen report"

#: `yes` done, `part` done with a reservation, `no` not done, `never` not possible here, `stale` done for something
#: older, `failed` tried and wrong
State = Literal["yes", "part", "no", "never", "stale", "failed"]
STAGES = ("built", "proven", "compiled", "executed", "measured")
WRONG: tuple[State, ...] = ("failed", "stale")


@dataclass(frozen=True)
class Stage:
    """How far one stage came: a state, a few words for the matrix, and the reasons, one per line."""

    name: str
    state: State
    text: str
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Path:
    """One launch path: where it is right, where it is wanted, what it launches, or why the target rejects it.

    `key` is the place in the family's spec, such as `ops.select.launch_paths[0]`.
    """

    op: str
    name: str
    variant: str
    domain: str
    prefer: str
    launches: tuple[str, ...]
    rejected: str
    key: str


@dataclass(frozen=True)
class Tile:
    """One tile of a kernel: taken where `when` is the first predicate that holds, or refused for a reason."""

    kernel: str
    tile: str
    when: str
    origin: str
    refused: str = ""


@dataclass(frozen=True)
class Decision:
    """What one shape of the spec takes on a usual device of the target, and why."""

    op: str
    shape: str
    path: str
    because: str
    symbols: tuple[str, ...]


@dataclass(frozen=True)
class Proof:
    """One row of the proof table."""

    subject: str
    name: str
    formula: str
    value: str
    limit: str
    slack: str
    verdict: str


@dataclass(frozen=True)
class Measurement:
    """One timed shape: our time by way of timing, the floor, and the peers' times of the way that is compared."""

    group: str
    op: str
    options: Mapping[str, str]
    shape: Mapping[str, int]
    path: str
    kernels: tuple[str, ...]
    floor_us: float
    times: Mapping[str, Timing]
    peers: Mapping[str, Timing]
    peer_problems: Mapping[str, str]
    problem: str


@dataclass(frozen=True)
class Series:
    """One line of a chart: `kind` is ours, floor or peer; points are (value of the axis, microseconds)."""

    name: str
    kind: Literal["ours", "floor", "peer"]
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Chart:
    """Microseconds over one axis, everything else fixed."""

    title: str
    axis: str
    series: tuple[Series, ...]


@dataclass(frozen=True)
class Bench:
    """One file of times as far as it concerns a cell."""

    file: str
    date: str
    machine: Mapping[str, str]
    way: str
    rows: tuple[Measurement, ...]
    charts: tuple[Chart, ...]


@dataclass(frozen=True)
class SourceFile:
    """A generated file: keys of its text and of its template texts in `Report.texts`, and the runs of its map.

    A run is (first output line, index of the template, template line of that first line).
    """

    name: str
    text: str
    templates: tuple[str, ...] = ()
    runs: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True)
class Cell:
    """One family on one target."""

    target: str
    family: str
    headline: str
    state: State
    stages: tuple[Stage, ...]
    paths: tuple[Path, ...] = ()
    tiles: tuple[Tile, ...] = ()
    decisions: tuple[Decision, ...] = ()
    proofs: tuple[Proof, ...] = ()
    resources: tuple[KernelRow, ...] = ()
    executed: tuple[ExecutedRow, ...] = ()
    gaps: tuple[Gap, ...] = ()
    counters: tuple[CounterRow, ...] = ()
    bench: tuple[Bench, ...] = ()
    sources: tuple[SourceFile, ...] = ()

    @property
    def id(self) -> str:
        """The cell's name in links: `gfx950/topk`."""
        return f"{self.target}/{self.family}"

    def stage(self, name: str) -> Stage:
        """The stage of that name."""
        return next(stage for stage in self.stages if stage.name == name)

    @property
    def wrong(self) -> Iterator[Stage]:
        """Stages that failed or are about something older."""
        return (stage for stage in self.stages if stage.state in WRONG)


@dataclass(frozen=True)
class Target:
    """One row of the matrix."""

    name: str
    also: tuple[str, ...]
    summary: str
    evidence: str
    wave: int
    spec: str


@dataclass(frozen=True)
class Family:
    """One column of the matrix; `spec_lines` has the line of every key path of the spec."""

    name: str
    language: str
    summary: str
    spec: str
    spec_lines: Mapping[str, int]


@dataclass(frozen=True)
class Report:
    """Everything.

    Attributes:
        inputs: files of results that were read, in words.
        problems: inputs and specs that could not be used, and why.
        texts: generated files, templates and specs by name.
    """

    generator: str
    targets: tuple[Target, ...]
    families: tuple[Family, ...]
    cells: tuple[Cell, ...]
    inputs: tuple[str, ...]
    problems: tuple[str, ...]
    texts: Mapping[str, str] = field(default_factory=dict)

    def cell(self, target: str, family: str) -> Cell:
        """One cell."""
        return next(cell for cell in self.cells if (cell.target, cell.family) == (target, family))

    @property
    def clean(self) -> bool:
        """Every input was usable, nothing failed and nothing is out of date."""
        return not self.problems and not any(list(cell.wrong) for cell in self.cells)

    def to_json(self, *, texts: bool = False) -> dict[str, Any]:
        """Plain data; without the texts of sources unless asked for."""
        data = {"kind": KIND, "schema": SCHEMA, **asdict(self), "clean": self.clean}
        if not texts:
            del data["texts"]
        return data
