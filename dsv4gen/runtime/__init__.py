"""What runs beside the model: choose, compile, cache and launch generated kernels; base + torch + standard library.

Modules in dependency order:

dispatch           shape, options and flags -> the launches to make, and why not the others
call_table         what an op takes under chosen options
read_table         that, from a manifest entry
call_names         arguments of a call by name
tensor_checks      what one tensor shows, and what is wrong with it
repeat             the short way for a call like an earlier one
sharing            which arguments may share memory
arguments          the definition of a right call, and what is wrong with another one
platform           every question to the machine: devices, streams, graph capture
selection          which generated folder serves a device; every candidate accepted or rejected with a reason
freshness          generated files older than their specs: noticed, rebuilt where that is wanted
libraries          vendor libraries in torch's wheels, pip packages and the system
sources            one kernel cut out of a source; compiler messages at template lines
compilers          NVRTC and hipRTC
cache              compiled code objects by content
objects            symbol -> machine code: prebuilt, cached or compiled
driver             cu* and hip* calls
launch_config      launch configurations as the driver reads them
launching          kernels on one device, launches per shape and stream
native             the same in C, where the extension was built
build_native       builds it
argument_text      lines of a launch function that read and test arguments
specialise         the launch function of an op, written for its tensor table
driver_launch, triton_launch    its two ends
backend            what can stand behind an op
driver_backend, triton_backend, reference_backend
torch_schema       what torch's dispatcher is told of an op
torch_ops          ops in torch's dispatcher
loaded             what `load` returns
load               load, explain, prewarm, targets, families
workspaces         sets of workspaces for callers without their own
family             a generated family as its own module sees it

Importing this package imports no torch, and of its modules only the first and the last.
"""

from __future__ import annotations

from dsv4gen.runtime.dispatch import Decision, decide
from dsv4gen.runtime.family import GeneratedFamily

__all__ = ["Decision", "GeneratedFamily", "decide"]
