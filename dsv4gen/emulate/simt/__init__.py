"""The SIMT host build: generated HIP/CUDA text executed on this machine's CPU, one fiber per thread.

Modules in dependency order:

    memory_file  arrays in memory shared with the worker, poison around them
    findings     the engine's findings in words
    protocol     requests and reports
    worker       building, starting and stopping the worker
    program      SimtProgram: build, launch

The worker itself is C++ without the C++ library: protocol.h, fiber.h (stack switch), memory.h (stacks, shared
memory, the window of arrays), engine.h and engine.cpp (the scheduler), worker.cpp (entry, signals, simt_*).

What it shows: wrong lane arithmetic on either wave size, votes and shuffles in divergent flow, missing and
divergent barriers (run several orders), accesses outside of arrays and of shared memory, hangs.
What it cannot: memory-model races between blocks, and what a GPU compiler makes of the text.
"""

from __future__ import annotations

from dsv4gen.emulate.simt.program import SimtProgram, SimtResult

__all__ = ["SimtProgram", "SimtResult"]
