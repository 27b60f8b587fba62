"""What the launchers of a rendered Triton module take: the runtime and the type stub need it without the module."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from dsv4gen.base.errors import LintError, Place
from dsv4gen.render.source_map import SourceMap


@dataclass(frozen=True)
class Launcher:
    """Keywords of one op's launcher: without a default, and with one, which is None, a number or a string."""

    required: tuple[str, ...]
    defaults: dict[str, bool | int | float | str | None]

    def to_json(self) -> dict[str, object]:
        """As the family's plan file holds it."""
        return {"required": list(self.required), "defaults": self.defaults}


def read_launchers(
    name: str, text: str, source_map: SourceMap, ops: Mapping[str, Collection[str]]
) -> dict[str, Launcher]:
    """Op -> its launcher; nothing where the text is no Python, which is the lint's to say.

    Args:
        name: of the rendered file.
        ops: op -> what its launcher must take, since the runtime would drop it.

    Raises:
        LintError: an op without a function of its name, an argument that is missing or not by keyword, a default of
            another kind.
    """
    try:
        nodes = ast.parse(text).body
    except SyntaxError:
        return {}
    functions = {node.name: node for node in nodes if isinstance(node, ast.FunctionDef)}
    found = {}
    for op, needed in ops.items():
        if op not in functions:
            remedy = f"define `def {op}(*, ...)` in the template"
            raise LintError(f"{name} has no launcher for the op {op}", place=source_map.origin(1), remedy=remedy)
        node = functions[op]
        place = source_map.origin(node.lineno) or Place(name, node.lineno)
        found[op] = _launcher(op, node.args, place)
        missing = [word for word in needed if word not in (*found[op].required, *found[op].defaults)]
        if missing:
            message = f"the launcher {op} does not take {', '.join(missing)}"
            raise LintError(message, place=place, remedy="add it to the keywords, or take it out of the spec's op")
    return found


def _launcher(op: str, arguments: ast.arguments, place: Place) -> Launcher:
    if arguments.posonlyargs or arguments.args or arguments.vararg or arguments.kwarg:
        raise LintError(f"the launcher {op} takes more than keywords", place=place, remedy="write (*, name, ...)")
    required: list[str] = []
    defaults: dict[str, bool | int | float | str | None] = {}
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if default is None:
            required.append(argument.arg)
        elif isinstance(default, ast.Constant) and isinstance(default.value, (bool, int, float, str, type(None))):
            defaults[argument.arg] = default.value
        else:
            message = f"{op}: the default {ast.unparse(default)} of {argument.arg} is no constant"
            raise LintError(message, place=place, remedy="a default is None, a number or a string")
    return Launcher(tuple(required), defaults)
