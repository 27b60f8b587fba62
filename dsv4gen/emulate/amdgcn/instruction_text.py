"""Parse one instruction as compilers and llvm-objdump print it: mnemonic, operands, modifiers, dual-issue pair."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

from dsv4gen.base.errors import Place
from dsv4gen.emulate.amdgcn.operands import parse_operand, split_operands
from dsv4gen.emulate.amdgcn.program import Instruction, ModifierValue, Operand, Register

_NAMED = re.compile(r"(?<![\w.\]])([a-z][a-z0-9_]*):(\[[^\]]*\]|[\w.]+\([^)]*\)|-?[\w.x]+)")
_SWITCHES = frozenset(
    (
        "glc",
        "slc",
        "dlc",
        "sc0",
        "sc1",
        "nt",
        "offen",
        "idxen",
        "lds",
        "tfe",
        "clamp",
        "row_mirror",
        "row_half_mirror",
        "gds",
        "high",
    )
)
#: Instructions whose operands have no effect here: waits, hints, cache control.
_IGNORED_OPERANDS = re.compile(
    r"s_(wait|delay_alu|nop|sleep|setprio|sendmsg|clause|set_inst_prefetch|inst_prefetch|barrier|icache|sethalt|ttrace"
    r"|code_end|endpgm$|prefetch|set_gpr_idx_off)|buffer_(inv|wb|gl)|global_(inv|wb)"
)


def parse_instruction(
    text: str, address: int = 0, place: Place | None = None, callers: tuple[Place, ...] = ()
) -> Instruction:
    """The record of one instruction; `text` has no comment and single blanks."""
    first, separator, second = text.partition(" :: ")
    mnemonic, operands, modifiers = _parse_single(first)
    pair = Instruction(*_parse_single(second)) if separator else None
    return Instruction(mnemonic, operands, modifiers, address, pair, place, text, callers)


@functools.lru_cache(maxsize=16384)
def _parse_single(text: str) -> tuple[str, tuple[Operand, ...], Mapping[str, ModifierValue]]:
    """Mnemonic, operands and modifiers; kept, because unrolled code repeats itself."""
    mnemonic, _, rest = text.partition(" ")
    modifiers: dict[str, ModifierValue] = {}
    if _IGNORED_OPERANDS.match(mnemonic):
        return mnemonic, (), modifiers
    operands = tuple(parse_operand(part) for part in _operand_texts(rest.strip(), modifiers))
    if any(isinstance(operand.value, Register) and operand.value.half is not None for operand in operands):
        # llvm-objdump prints the halves twice, as `v1.h` and in op_sel.
        modifiers.pop("op_sel", None)
    return mnemonic, operands, modifiers


def _operand_texts(rest: str, modifiers: dict[str, ModifierValue]) -> list[str]:
    """Operand texts of an instruction; fills `modifiers` with what stands behind them."""
    if ":" in rest:
        rest = _NAMED.sub(lambda match: _keep(match, modifiers), rest)
    parts = split_operands(rest)
    if not parts:
        return []
    words = parts[-1].split()
    while words and words[-1] in _SWITCHES:
        modifiers[words.pop()] = 1
    # `s[0:3], 0 offen`: the switch follows the last operand without a comma.
    parts[-1] = " ".join(words)
    return [part for part in parts if part]


def _keep(match: re.Match[str], modifiers: dict[str, ModifierValue]) -> str:
    modifiers[match[1]] = _modifier_value(match[2])
    return ""


def _modifier_value(text: str) -> ModifierValue:
    if text.startswith("["):
        return tuple(int(part, 0) for part in text[1:-1].split(","))
    try:
        return int(text, 0)
    except ValueError:
        return text
