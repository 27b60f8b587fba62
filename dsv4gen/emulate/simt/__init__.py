"""The SIMT host build: generated HIP/CUDA text executed on this machine's CPU, one fiber per thread.

Modules in dependency order:

    protocol.h, fiber.h, memory.h, engine.h, engine.cpp, worker.cpp    the worker process, C++ without its library
    memory_file  arrays in memory shared with the worker, poison around them
    findings     the engine's findings in words
    worker       building, starting and stopping the worker
    program      SimtProgram: build, launch

What it shows: wrong lane arithmetic on either wave size, votes and shuffles in divergent flow, missing and
divergent barriers (run several orders), accesses outside of arrays and of shared memory, hangs.
What it cannot: memory-model races between blocks, and what a GPU compiler makes of the text.
"""

from __future__ import annotations

from dsv4gen.emulate.simt.program import SimtProgram, SimtResult

__all__ = ["SimtProgram", "SimtResult"]
