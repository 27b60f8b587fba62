"""The subprocess: `python -m dsv4gen.interpret.worker CLIENT_PID`, requests on stdin, replies on stdout.

TRITON_INTERPRET is read when `@triton.jit` decorates, so the client sets it in this process's environment and
the patch is applied before any module is loaded.
"""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Mapping

import numpy as np

from dsv4gen.interpret import patch
from dsv4gen.interpret.protocol import Json, TensorReference
from dsv4gen.interpret.service import Service, serve_standard_streams


class Interpreter(Service):
    """Runs kernels by Triton's interpreter, every access checked against the arguments."""

    def __init__(self, client: int) -> None:
        super().__init__(client)
        self.guard = patch.AddressGuard()
        patch.apply(self.guard)

    def describe(self) -> list[str]:
        """Versions of the libraries that run kernels."""
        return [f"{name} {importlib.metadata.version(name)}" for name in ("triton", "torch", "numpy")]

    def enter(self, request: Mapping[str, Json], tensors: Mapping[str, TensorReference]) -> None:
        """Allow the arguments' bytes alone."""
        if request["guard"]:
            self.guard.allow([self.address(reference) for reference in tensors.values()])

    def leave(self) -> Mapping[str, Json]:
        """Check nothing between requests."""
        self.guard.allow(None)
        return {}


def main() -> None:
    """Serve until the client goes away."""
    np.seterr(all="ignore")
    serve_standard_streams(Interpreter(int(sys.argv[1])))


if __name__ == "__main__":
    main()
