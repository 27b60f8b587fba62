"""The end of a Triton op's launch function: call the generated module's launcher, after the capture guard."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from dsv4gen.runtime.call_table import CallTable, TensorRule

#: Triton compiles again when an address, a stride or a number stops being a multiple of this
DIVISIBILITY = 16
#: AMD: Triton compiles again for memory of more bytes, which 32-bit offsets do not reach
BUFFER_BYTES_MAX = 2**31 - 1


class TritonLaunch:
    """Lines of text that call `_launcher, _warm` and `_cold`, on AMD also `_capturing`.

    Triton compiles per class of dtypes, strides and addresses. `_warm` holds the classes that were called before; a
    memory stands for one of them, so it fits only addresses that are multiples of 16, and holds nothing more. On AMD
    the classes also depend on the memory behind a tensor, which no comparison sees: captures take the long way there.

    Args:
        table: of an op with a launcher.
    """

    remembered: Sequence[str] = ()
    aligned = DIVISIBILITY

    def __init__(self, table: CallTable, *, amd: bool) -> None:
        self._table = table
        self._names = table.launcher.names if table.launcher else frozenset()
        self._amd = amd
        self.conditions: Sequence[str] = ("not _capturing()",) if amd else ()

    def again(self) -> Iterator[str]:
        """Call the launcher without asking what it will compile: nothing."""
        yield "_hits or _hits.append(True)"
        yield self._call()

    def launch(self, everything: str, remember: Callable[[str], list[str]]) -> Iterator[str]:  # noqa: ARG002
        """Call the launcher, unless a graph is captured and it would compile."""
        yield f"_class = ({', '.join(self._class())},)"
        yield "if _class not in _warm:"
        yield "    _cold()"
        yield self._call()
        yield "_warm.add(_class)"
        yield f"if not ({' | '.join(f'_at_{name}' for name in self._table.memory)}) % {DIVISIBILITY}:"
        yield from (f"    {line}" for line in remember(""))

    def _call(self) -> str:
        """The call; a float scalar is passed as one, since Triton compiles anew for an integer."""
        names = [*self._table.memory, *self._table.required_numbers, *self._table.choices]
        floats = self._table.floats
        words = [
            f"{name}=float({name})" if name in floats else f"{name}={name}" for name in names if name in self._names
        ]
        words += [f"{name}={value!r}" for name, value in self._table.options.items() if name in self._names]
        return f"_launcher({', '.join(words)})"

    def _class(self) -> Iterator[str]:
        """What makes Triton compile again: presence, dtype, device and divisibility; and sizes and choices."""
        yield "_device"
        for rule in (*self._table.inputs, *self._table.outputs):
            classes = ", ".join(self._tensor_class(rule))
            yield f"None if {rule.name} is None else ({classes})" if rule.optional else classes
        yield from (axis.name for axis in self._table.axes if axis.source == "given")
        yield from (f"{rule.name} is None" for rule in self._table.workspaces)
        yield from (f"None if {name} is None else repr({name})" for name in self._table.choices)

    def _tensor_class(self, rule: TensorRule) -> Iterator[str]:
        yield f"{rule.name}.dtype"
        yield f"_at_{rule.name} % {DIVISIBILITY} == 0"
        if self._amd:
            yield f"{rule.name}.untyped_storage().nbytes() > {BUFFER_BYTES_MAX}"
        yield f"*[2 if stride == 1 else stride % {DIVISIBILITY} == 0 for stride in {rule.name}.stride()]"
        for position, tree in enumerate(rule.shape):
            if tree in self._table.key_axes:
                yield f"{rule.name}.shape[{position}]"
