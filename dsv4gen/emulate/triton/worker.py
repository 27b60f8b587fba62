"""The subprocess: `python -m dsv4gen.emulate.triton.worker CLIENT_PID ARCH WAVE`, requests on stdin, replies on stdout.

Requests carry the order of blocks and waves and whether counts by source line are wanted; replies carry launches.
"""

from __future__ import annotations

import importlib.metadata
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from triton.backends.compiler import GPUTarget
from triton.runtime import driver

from dsv4gen.base.errors import Place
from dsv4gen.emulate.amdgcn.counters import instruction_class
from dsv4gen.emulate.triton.driver import Device, Driver, Launched
from dsv4gen.interpret.protocol import Json, TensorReference
from dsv4gen.interpret.service import Service, serve_standard_streams


class EmulatedGpu(Service):
    """Runs kernels as machine code of one target."""

    def __init__(self, client: int, target: GPUTarget) -> None:
        super().__init__(client)
        self.device = Device(target)
        self._lines_of = ""
        driver.set_active(Driver(self.device))

    def describe(self) -> list[str]:
        """The compiler and what it compiles for."""
        return [f"triton {importlib.metadata.version('triton')}", str(self.device.target.arch)]

    def enter(self, request: Mapping[str, Json], tensors: Mapping[str, TensorReference]) -> None:
        """Make the arguments the device's memory."""
        self.device.order = str(request["order"])
        self._lines_of = Path(str(request["module"])).name if request["lines"] else ""
        self.device.memory = [(name, *self.address(reference)) for name, reference in tensors.items()]

    def leave(self) -> Mapping[str, Json]:
        """What the request launched."""
        launches = [_launch(launch, self._lines_of) for launch in self.device.launches]
        self.device.launches.clear()
        return {"launches": launches}


def _launch(launch: Launched, lines_of: str) -> Json:
    return {
        "function": launch.function,
        "constants": {name: _plain(value) for name, value in launch.constants.items()},
        "grid": list(launch.grid),
        "block": launch.block,
        "shared_bytes": launch.shared_bytes,
        "instructions": launch.result.instructions,
        "counters": dict(launch.result.counters),
        "seconds": launch.result.seconds,
        "lines": _lines(launch, lines_of) if lines_of else [],
    }


def _plain(value: object) -> Json:
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _lines(launch: Launched, file: str) -> Json:
    """[class, count, lines of the file from the innermost call outwards], summed over equal ones.

    Lines of other files are left out: a sum, say, is Triton's own function, called from a line of the module.
    """
    counts: Counter[tuple[str, tuple[int, ...]]] = Counter()
    for record, executed in zip(launch.kernel.program.instructions, launch.result.executed, strict=True):
        places = [line for place in (record.place, *record.callers) if (line := _line_in(place, file))]
        counts[instruction_class(record.mnemonic), tuple(places)] += executed
    return [[name, count, list(places)] for (name, places), count in counts.items() if count]


def _line_in(place: Place | None, file: str) -> int:
    """The line of a place in a file, 0 where the place is elsewhere."""
    return place.line or 0 if place is not None and Path(place.file).name == file else 0


def main() -> None:
    """Serve until the client goes away."""
    client, arch, wave = sys.argv[1:]
    serve_standard_streams(EmulatedGpu(int(client), GPUTarget("hip", arch, int(wave))))


if __name__ == "__main__":
    main()
