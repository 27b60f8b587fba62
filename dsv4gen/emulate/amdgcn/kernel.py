"""The emulator's front door: a kernel from assembly text or a code object, and its launches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dsv4gen.emulate.amdgcn.arguments import pack_arguments
from dsv4gen.emulate.amdgcn.assembly_text import read_assembly
from dsv4gen.emulate.amdgcn.code_object import read_code_object
from dsv4gen.emulate.amdgcn.launch import Image, Options, run
from dsv4gen.emulate.amdgcn.lowering.lower import Lowered, lower
from dsv4gen.emulate.amdgcn.program import Program
from dsv4gen.emulate.amdgcn.result import Result

Size = int | Sequence[int]


class Kernel:
    """One kernel of compiled AMD code, ready to run on this CPU."""

    def __init__(self, program: Program) -> None:
        """Lower a program.

        Raises:
            EmulationError: instructions without a translation, all listed.
            UnknownTarget: code for a target that is not emulated.
        """
        self.program = program
        self.lowered: Lowered = lower(program)
        self._image: Image | None = None

    @classmethod
    def from_assembly(cls, text: str, symbol: str, *, file: str = "kernel.s") -> Kernel:
        """A kernel from the text that `clang -S` or Triton's `asm["amdgcn"]` gives.

        Raises:
            CompileError: no such kernel, or text that is not AMD assembly.
            EmulationError: instructions without a translation, all listed.
        """
        return cls(read_assembly(text, symbol, file=file))

    @classmethod
    def from_code_object(cls, binary: bytes, symbol: str) -> Kernel:
        """A kernel from an hsaco; needs llvm-objdump.

        Raises:
            CompileError: no such kernel, or not an AMD code object.
            ToolMissing: no llvm-objdump.
            EmulationError: instructions without a translation, all listed.
        """
        return cls(read_code_object(binary, symbol))

    def run(
        self,
        grid: Size,
        block: Size,
        args: Sequence[Any] | bytes,
        *,
        buffers: Sequence[Any] = (),
        lds: int = 0,
        order: str = "ascending",
        seed: int = 0,
        budget: int = 2_000_000_000,
        turn: int = 0,
        count_memory: bool = True,
    ) -> Result:
        """Execute one launch; misbehaviour is in the result, not raised.

        Args:
            grid: number of blocks (x, y, z; missing axes are 1).
            block: threads per block, likewise.
            args: NumPy arrays or CPU tensors for pointers, sized NumPy scalars by value, None for a null
                pointer; or the bytes of one by-value struct.
            buffers: arrays that pointers inside by-value structs refer to.
            lds: bytes of dynamic LDS behind the kernel's static ones (Triton: `metadata.shared`).
            order: of blocks and waves: `ascending`, `descending`, `random` with `seed`, or `random:SEED`.
            budget: wave instructions the launch may execute.
            turn: instructions a wave executes before another one continues; 0 runs waves to their barrier.
            count_memory: count cache lines and LDS bank conflicts (takes some time).

        Raises:
            ArgumentError: arguments or sizes the kernel cannot take.
        """
        if self._image is None:
            self._image = Image(self.lowered)
        kernarg, mappings = pack_arguments(self.program.descriptor, args, buffers)
        options = Options(lds, order, seed, budget, turn, count_memory)
        return run(self._image, _three(grid), _three(block), kernarg, mappings, options)

    __call__ = run


def _three(size: Size) -> tuple[int, int, int]:
    parts = [size] if isinstance(size, int) else list(size)
    x, y, z = ([int(part) for part in parts] + [1, 1, 1])[:3]
    return x, y, z
