"""Ops of Triton families on AMD GPUs that are not there: the module's own launcher, Triton's own JIT, emulated code.

driver    the device that Triton sees: names the target, runs what was compiled for it on the emulator
worker    the subprocess: installs the driver, runs requests
client    EmulatedWorker: called like an InterpreterWorker, and says what was launched

Triton specialises, compiles and packs as it would on the card (addresses divisible by 16, tensors below 2 GiB,
numbers equal to 1), so that the machine code that runs here is the one that runs there. A subprocess, because
Triton's compiler can take its process down.
"""

from __future__ import annotations

from dsv4gen.emulate.triton.client import EmulatedWorker, Launch, LineCount

__all__ = ["EmulatedWorker", "Launch", "LineCount"]
