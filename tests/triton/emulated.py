"""Run a compiled gather_dequant kernel on the emulated AMD GPU, on the inputs of a case."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from dsv4gen.emulate.amdgcn import Kernel, Result
from dsv4gen.reference.gather_dequant_cases import Case
from dsv4gen.toolchain import TritonKernel, TritonObject
from tests.triton.modules import plan

#: integers of the same size, which the emulator's buffers hold
_RAW = {torch.bfloat16: torch.int16, torch.bool: torch.uint8}
_NUMBERS = {"i32": np.int32, "i64": np.int64}
#: global and profile scratch, which Triton appends to the arguments
_HIDDEN = (None, None)


def launch(target: str, request: TritonKernel, built: TritonObject, case: Case, *, order: str = "ascending") -> Result:
    """Execute, bring the outputs into the case's tensors, and raise what the emulator found."""
    tensors = {name: _contiguous(value) for name, value in case.arguments.items() if isinstance(value, Tensor)}
    numbers = _numbers(target, case, tensors)
    arguments = [
        tensors[name] if kind.startswith("*") else _NUMBERS[kind](numbers[name])
        for name, kind in request.signature.items()
    ]
    assert built.code.assembly is not None
    kernel = Kernel.from_assembly(built.code.assembly, built.symbol)
    blocks = sum(
        numbers["tokens"] * -(-numbers[width] // int(request.constexprs["ROWS"] or 1))
        for width in ("width", "extra_width")
        if width in numbers
    )
    result = kernel(blocks, built.threads, [*arguments, *_HIDDEN], lds=built.shared_bytes, order=order)
    assert result.error is None and not result.findings, (result.error, result.findings)
    for name in ("out", "mask"):
        home = case.arguments[name]
        assert isinstance(home, Tensor)
        home.view(_RAW[home.dtype]).copy_(tensors[name])
    return result


def _contiguous(tensor: Tensor) -> Tensor:
    """A copy without gaps; a cache keeps its page stride by taking its padding along."""
    whole = tensor._base if tensor.dtype == torch.uint8 and tensor._base is not None else tensor
    return whole.view(_RAW.get(whole.dtype, whole.dtype)).contiguous().clone()


def _numbers(target: str, case: Case, tensors: Mapping[str, Tensor]) -> dict[str, int]:
    """Axes, scalars and strides by name, as the launch functions compute them."""
    numbers = {name: value for name, value in case.arguments.items() if isinstance(value, int)}
    numbers["tokens"], numbers["width"] = tensors["indices"].shape
    numbers["pages"] = tensors["cache"].shape[0]
    if "extra_cache" in tensors:
        numbers["extra_width"] = tensors["extra_indices"].shape[1]
        numbers["extra_pages"] = tensors["extra_cache"].shape[0]
    for tensor in plan(target).op(case.op).tensors:
        for position, stride in enumerate(tensor.strides):
            if isinstance(stride, str):
                numbers[stride] = tensors[tensor.name].stride(position)
    return numbers
