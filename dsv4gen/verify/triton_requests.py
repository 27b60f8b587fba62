"""What a Triton family compiles ahead of time: requests for the offline compiler, read from the rendered module.

The module states its combinations as literals, `AHEAD_OF_TIME` (kernel, op, constants, options) and
`MULTIPLES_OF_16` (parameters whose divisibility makes accesses wide); argument types come from the plan's tensor
table. The module is parsed, not imported: that would need Triton.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dsv4gen.base.errors import TemplateError
from dsv4gen.plan.ir import FamilyPlan, Op
from dsv4gen.render import RenderedFile
from dsv4gen.spec.signature import DIVISIBILITY, TRITON_TYPES
from dsv4gen.toolchain import TritonKernel

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
