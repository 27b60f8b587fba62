"""What a Triton family compiles ahead of time: requests for the offline compiler, read from the rendered module.

The module states its combinations as literals, `AHEAD_OF_TIME` (kernel, op, constants, options) and
`MULTIPLES_OF_16` (parameters whose divisibility makes accesses wide); argument types come from the plan's tensor
table. The module is parsed, not imported: that would need Triton.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dsv4gen.base.errors import TemplateError
from dsv4gen.plan.ir import FamilyPlan, Op
from dsv4gen.render import RenderedFile
from dsv4gen.spec.signature import DIVISIBILITY, TRITON_TYPES
from dsv4gen.toolchain import TritonKernel
from dsv4gen.toolchain.triton_compile import Constant

#: kind of a parameter that is no tensor -> Triton type; counts are declared unsigned but travel as i32
_NUMBER_TYPES = {"u32": "i32", "i32": "i32", "i64": "i64", "u64": "i64", "f32": "fp32"}


def triton_requests(plan: FamilyPlan, rendered: RenderedFile, path: Path) -> list[TritonKernel]:
    """One request per stated combination; `path` is where the rendered text was written.

    Raises:
        TemplateError: the module does not state its combinations as literals.
    """
    stated = _literals(rendered, ("AHEAD_OF_TIME", "MULTIPLES_OF_16"))
    requests = []
    for function, op_name, constants, options in stated["AHEAD_OF_TIME"]:
        signature = triton_signature(plan, plan.op(op_name))
        even = {name: DIVISIBILITY for name in stated["MULTIPLES_OF_16"] if name in signature}
        requests.append(TritonKernel(path, function, signature, constants, even, options, rendered.source_map))
    return requests


def declared(kernel: TritonKernel) -> dict[str, Constant]:
    """The constants that the kernel declares; lower case names are arguments that were specialised for a call."""
    return {name: value for name, value in kernel.constexprs.items() if not name.islower()}


def labels(kernels: Sequence[TritonKernel]) -> list[str]:
    """A name for each combination: its function, what tells it from the others of that function, and its warps.

    `attend_scopes reduce=none block_h=16 block_n=32 warps=4`
    """
    values: dict[tuple[str, str], set[Constant]] = {}
    for kernel in kernels:
        for name, value in declared(kernel).items():
            values.setdefault((kernel.function, name), set()).add(value)
    return [
        _label(kernel, [name for name in declared(kernel) if len(values[kernel.function, name]) > 1])
        for kernel in kernels
    ]


def _label(kernel: TritonKernel, telling: Sequence[str]) -> str:
    chosen = [f"{name.lower()}={_word(kernel.constexprs[name])}" for name in telling]
    return " ".join([kernel.function, *chosen, f"warps={kernel.options.get('num_warps', 4)}"])


def _word(value: Constant) -> str:
    return ("no", "yes")[value] if isinstance(value, bool) else str(value)


def triton_signature(plan: FamilyPlan, op: Op) -> dict[str, str]:
    """Triton type per parameter in order, such as `*bf16` and `i64`; dtypes that are options take their default."""
    chosen = {option.name: option.default for option in plan.options}
    dtypes = {tensor.name: chosen.get(tensor.dtype, tensor.dtype) for tensor in op.tensors}
    return {
        field.name: f"*{TRITON_TYPES[dtypes[field.name]]}" if field.name in dtypes else _NUMBER_TYPES[field.kind]
        for field in op.params.fields
    }


def _literals(rendered: RenderedFile, names: tuple[str, ...]) -> Mapping[str, Any]:
    found = {}
    for node in ast.parse(rendered.text).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in names:
            found[node.targets[0].id] = ast.literal_eval(node.value)
    missing = [name for name in names if name not in found]
    if missing:
        raise TemplateError(
            f"{rendered.name} does not state {', '.join(missing)}",
            remedy="assign a tuple of literals to it at the top level of the template",
        )
    return found
