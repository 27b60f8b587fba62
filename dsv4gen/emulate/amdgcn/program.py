"""The program both front ends produce: instructions, labels, constant data, and the kernel's descriptor.

Addresses are byte offsets from the start of the code. A code object has the real ones; assembly text gets one
dword per instruction, which no instruction can tell as long as code addresses are only subtracted and jumped to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dsv4gen.base.errors import Place

#: Device address of the program's code; `s_getpc_b64` gives addresses from here. Our choice, below 2^47.
CODE_BASE = 0x0200_0000_0000


@dataclass(frozen=True)
class Register:
    """Registers `index .. index + count - 1` of a file: v (vector), a (accumulator), s (scalar, special ones
    included by slot number). `half` is 0 or 1 for `v5.l` / `v5.h`."""

    file: str
    index: int
    count: int = 1
    half: int | None = None


@dataclass(frozen=True)
class Expression:
    """A symbol or a sum of symbols, such as `.LBB0_4`, `table@rel32@lo+4` or `(.LBB0_9-.Lpost)&4294967295`."""

    text: str


@dataclass(frozen=True)
class Operand:
    """One operand with its input modifiers. The value is None for `off`."""

    value: Register | Expression | int | float | str | None
    negate: bool = False
    absolute: bool = False
    sign_extend: bool = False


ModifierValue = int | str | tuple[int, ...]


@dataclass(frozen=True)
class Instruction:
    """One instruction; `second` is the Y half of a dual-issue pair.

    `place` is its source line where the text has debug lines, else its line in the text; `callers` are the lines of
    the calls it was inlined through, innermost first.
    """

    mnemonic: str
    operands: tuple[Operand, ...]
    modifiers: Mapping[str, ModifierValue] = field(default_factory=dict)
    address: int = 0
    second: Instruction | None = None
    place: Place | None = None
    text: str = ""
    callers: tuple[Place, ...] = ()


@dataclass(frozen=True)
class Argument:
    """One kernel argument of the metadata; `kind` is the metadata's value_kind (`global_buffer`, `by_value`,
    `hidden_block_count_x`, ...), offset and size in bytes."""

    kind: str
    offset: int
    size: int
    name: str = ""

    @property
    def hidden(self) -> bool:
        """True for arguments the runtime fills in."""
        return self.kind.startswith("hidden_")


@dataclass(frozen=True)
class Descriptor:
    """What the launch needs of the kernel descriptor and the metadata; sizes in bytes.

    `user_registers` names the user SGPR groups in order; `user_count` is where the workgroup ids start, which
    is not always the number of registers filled.
    """

    symbol: str
    target: str
    group_bytes: int
    private_bytes: int
    kernarg_bytes: int
    wave: int
    user_registers: tuple[str, ...]
    user_count: int
    preload_dwords: int = 0
    preload_offset_dwords: int = 0
    workgroup_ids: tuple[bool, bool, bool] = (True, False, False)
    scratch_offset_register: bool = False
    fp16_overflow: bool = False
    dynamic_stack: bool = False
    max_threads: int = 1024
    arguments: tuple[Argument, ...] = ()


@dataclass(frozen=True)
class Program:
    """Instructions in address order, label addresses, constant data behind the code.

    `symbols` holds offsets from the start of the code, of labels and of data alike; data starts at `data_offset`.
    `relocations` are (offset in data, expression) pairs of 8-byte words that hold an address.
    """

    instructions: tuple[Instruction, ...]
    symbols: Mapping[str, int]
    descriptor: Descriptor
    data: bytes = b""
    data_offset: int = 0
    relocations: tuple[tuple[int, str], ...] = ()

    @property
    def entry(self) -> int:
        """Address of the kernel's first instruction."""
        return self.symbols[self.descriptor.symbol]
