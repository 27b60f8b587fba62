"""What a kernel may spill on this target: the spec's allowance, narrowed to the instances that it is about."""

from __future__ import annotations

from dsv4gen.base.errors import SpecError
from dsv4gen.plan.ir import Spills
from dsv4gen.plan.reader import Reader


def make_spills(reader: Reader, name: str) -> Spills | None:
    """The allowance of one kernel; None where the spec states none, or none for this target.

    Raises:
        SpecError: a `when` that reads more than facts and options, or registers that are no number on this target.
    """
    kernel = reader.spec.kernels[name]
    if kernel.spills is None:
        return None
    keys = ("kernels", name, "spills", "when")
    when = reader.expr(kernel.spills.when, *keys)
    known = [*reader.spec.options]
    for word in when.names:
        if word not in known:
            raise SpecError(
                f"spills.when reads {word!r}, which is known only when a shape is",
                place=reader.place(*keys),
                remedy=f"target facts{', ' if known else ''}{', '.join(known)} may be read",
            )
    registers = reader.expr(kernel.spills.registers, "kernels", name, "spills", "registers").constant
    if type(registers) is not int or registers < 0:
        raise SpecError(
            f"spills.registers is no whole number from 0 on {reader.record.name}: {kernel.spills.registers}",
            place=reader.place("kernels", name, "spills", "registers"),
            remedy="state a number, or an expression over target facts",
        )
    return None if when.constant is False else Spills(registers, when, kernel.spills.reason)
