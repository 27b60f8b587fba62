"""A stand-in for AMD's `libamdhip64` and `libhiprtc`: the same calls, run by clang and the emulator in this process.

    driver.cpp, compiler.cpp   the two libraries: AMD's names and layouts, and nothing that decides
    libraries        builds them, and puts copies of their own in a folder for one GPU
    status           HIP's numbers, and failures that carry one
    images           code objects: read from memory, checked, turned into kernels
    memory           the tensors behind the pointers of a call
    gpu              the device behind the driver library: modules, launches, what it saw
    compiler         the compiler behind hipRTC
    machine          both together

Nothing here knows the runtime. `dsv4gen.verify.standin.amd` puts a machine in the place of a real one.
"""

from __future__ import annotations

from dsv4gen.emulate.standin.gpu import Gpu, Launch
from dsv4gen.emulate.standin.machine import Machine, connect

__all__ = ["Gpu", "Launch", "Machine", "connect"]
