"""The client's side: a worker that is one emulated GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dsv4gen.base import paths
from dsv4gen.interpret import WorkerSession


@dataclass(frozen=True)
class LineCount:
    """Executed wave instructions of one class that the line table puts at `lines`: the innermost call first."""

    kind: str
    count: int
    lines: tuple[int, ...]


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel: `constants` are its constant parameters, counts are of wave instructions.

    `lines` is empty unless the worker was asked for them.
    """

    function: str
    constants: Mapping[str, object]
    grid: tuple[int, int, int]
    block: int
    shared_bytes: int
    instructions: int
    counters: Mapping[str, int]
    seconds: float
    lines: tuple[LineCount, ...] = ()


class EmulatedWorker(WorkerSession):
    """Runs launch functions of generated modules as machine code of an AMD target; `launches` has the last call's.

    Attributes:
        order: of blocks and waves in the next calls.
        lines: whether launches come with their counts by source line.
        launches: what the last call launched, a failed one included.
    """

    def __init__(
        self, arch: str, wave: int, *, order: str = "ascending", lines: bool = False, python_path: Sequence[str] = ()
    ) -> None:
        variables = {
            "TRITON_CACHE_DIR": str(paths.cache() / "toolchain" / "triton-jit"),
            "TRITON_DEFAULT_FP_FUSION": "1",
        }
        program = ["dsv4gen.emulate.triton.worker", arch, str(wave)]
        super().__init__(f"Triton on an emulated {arch}", program, variables, python_path=python_path)
        self.order = order
        self.lines = lines
        self.launches: tuple[Launch, ...] = ()

    def settings(self) -> Mapping[str, Any]:
        """Order and detail of the next call."""
        return {"order": self.order, "lines": self.lines}

    def took(self, reply: Mapping[str, Any]) -> None:
        """Keep what was launched."""
        self.launches = tuple(_launch(launch) for launch in reply["launches"])


def _launch(fields: Mapping[str, Any]) -> Launch:
    lines = tuple(LineCount(kind, count, tuple(places)) for kind, count, places in fields["lines"])
    x, y, z = fields["grid"]
    return Launch(**{**fields, "grid": (x, y, z), "lines": lines})
