"""Triton kernels run on the CPU by Triton's own interpreter, in a persistent subprocess.

protocol  requests and replies as JSON lines; tensors as references into shared memory
arena     shared memory of client and worker, with poison between the tensors
convert   exact casts between float types, through torch
handles   values of the interpreter, bf16 and fp8 as numbers
reductions  sums, extrema, scans, and functions of a kernel over whole slices
patch     what makes Triton's interpreter right for bf16 and fp8, and makes it check addresses
service   what any worker program does: loads generated modules, maps memory, runs requests
worker    the subprocess that sets the interpreter up
session   the client's side of any worker: starts the subprocess, sends calls, turns failures into errors
client    InterpreterWorker

The interpreter must be chosen before a module is imported, and turns library functions of its process into
interpreted ones for good: hence the subprocess. It knows nothing of warps, layouts, races or shared memory;
the amdgcn emulator and the offline compiler cover those.
"""

from dsv4gen.interpret.client import InterpreterWorker, shared_worker
from dsv4gen.interpret.session import WorkerSession

__all__ = ["InterpreterWorker", "WorkerSession", "shared_worker"]
