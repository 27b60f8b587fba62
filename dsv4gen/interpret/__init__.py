"""Triton kernels run on the CPU by Triton's own interpreter, in a persistent subprocess.

protocol  requests and replies as JSON lines; tensors as references into shared memory
arena     shared memory of client and worker, with poison between the tensors
convert   exact casts between float types, through torch
patch     what makes Triton's interpreter right for bf16 and fp8, and makes it check addresses
worker    the subprocess: sets the interpreter up, loads generated modules, runs requests
client    InterpreterWorker: starts the subprocess, sends calls, turns failures into errors

The interpreter must be chosen before a module is imported, and turns library functions of its process into
interpreted ones for good: hence the subprocess. It knows nothing of warps, layouts, races or shared memory;
the amdgcn emulator and the offline compiler cover those.
"""

from dsv4gen.interpret.client import InterpreterWorker, shared_worker

__all__ = ["InterpreterWorker", "shared_worker"]
