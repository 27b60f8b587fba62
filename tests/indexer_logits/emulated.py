"""Run a compiled indexer_logits kernel on the emulated AMD GPU, on the inputs of a case."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from dsv4gen.emulate.amdgcn import Kernel, Result
from dsv4gen.reference.indexer_logits_cases import Case
from dsv4gen.toolchain import TritonKernel, TritonObject
from tests.indexer_logits.modules import plan

_NUMBERS = {"i32": np.int32, "i64": np.int64}
#: global and profile scratch, which Triton appends to the arguments
_HIDDEN = (None, None)


def launch(target: str, request: TritonKernel, built: TritonObject, case: Case, *, order: str = "ascending") -> Result:
    """Execute, bring the output into the case's tensor, and raise what the emulator found."""
    tensors = {name: _whole(value) for name, value in case.arguments.items() if isinstance(value, Tensor)}
    if case.op == "decode":
        tensors["row_lens"] = tensors["seq_lens"]
    numbers = _numbers(target, case, tensors)
    arguments = [
        tensors[name] if kind.startswith("*") else _NUMBERS[kind](numbers.get(name, 0))
        for name, kind in request.signature.items()
        if name not in request.constexprs
    ]
    assert built.code.assembly is not None
    kernel = Kernel.from_assembly(built.code.assembly, built.symbol)
    rows, keys = (int(str(request.constexprs[name])) for name in ("ROWS", "BLOCK_N"))
    ranges = -(-numbers["width"] // (keys * int(str(request.constexprs["BLOCKS"]))))
    groups = numbers["batch"] * -(-numbers["queries"] // rows) if case.op == "decode" else -(-numbers["rows"] // rows)
    result = kernel(groups * ranges, built.threads, [*arguments, *_HIDDEN], lds=built.shared_bytes, order=order)
    assert result.error is None and not result.findings, (result.error, result.findings)
    out = case.arguments["out"]
    assert isinstance(out, Tensor)
    out.copy_(tensors["out"])
    return result


def _whole(tensor: Tensor) -> Tensor:
    """A copy without gaps; a cache keeps its page stride by taking its padding along."""
    return (
        tensor._base if tensor._base is not None and tensor.dtype == torch.uint8 and tensor.dim() == 2 else tensor
    ).clone()


def _numbers(target: str, case: Case, tensors: dict[str, Tensor]) -> dict[str, int]:
    """Axes and strides by name, as the launch functions compute them."""
    numbers = {"pages": tensors["cache"].shape[0], "width": tensors["out"].shape[1]}
    numbers["batch"], numbers["table_pages"] = tensors["page_table"].shape
    numbers["heads"] = tensors["q"].shape[-2]
    numbers["queries" if case.op == "decode" else "rows"] = tensors["q"].shape[-3]
    for tensor in plan(target).op(case.op).tensors:
        for position, stride in enumerate(tensor.strides):
            if isinstance(stride, str) and tensor.name != "row_lens":
                numbers[stride] = tensors[tensor.name].stride(position)
    return numbers
