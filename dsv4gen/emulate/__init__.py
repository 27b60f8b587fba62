"""Generated kernels executed without their GPU: the same text on the CPU, and real AMD machine code.

simt     the C++ text, compiled for the host, one fiber per thread, wave 32 or 64
amdgcn   the code object a GPU compiler made, each instruction a function of a library
standin  AMD's driver and compiler libraries, with that emulator behind them
triton   the machine code that Triton makes of a module's ops
"""
