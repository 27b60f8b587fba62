"""What the emulator must know of an ISA generation: wave size of scalars, fp8 dialect, memory geometry.

Sources: AMD's ISA documents (CDNA2, CDNA3, CDNA4, RDNA3, RDNA4). LDS banks and cache lines only feed counters.
"""

from __future__ import annotations

from dataclasses import dataclass

from dsv4gen.base.errors import UnknownTarget, did_you_mean


@dataclass(frozen=True)
class Generation:
    """One target. `fnuz` tells the dialect of the fp8 conversions; `keeps_high_half` whether 16-bit instructions
    leave the upper half of the result alone; `ids_in_ttmp` whether block ids arrive in trap registers; `lds_bytes` is
    the most a block may use."""

    name: str
    family: str  # cdna, rdna
    fnuz: bool
    keeps_high_half: bool
    ids_in_ttmp: bool
    lds_bytes: int
    lds_banks: int
    cache_line: int


GENERATIONS = {
    generation.name: generation
    for generation in (
        Generation("gfx90a", "cdna", False, False, False, 65536, 32, 128),
        Generation("gfx942", "cdna", True, False, False, 65536, 32, 128),
        Generation("gfx950", "cdna", False, False, False, 163840, 64, 128),
        Generation("gfx1100", "rdna", False, True, False, 65536, 32, 128),
        Generation("gfx1201", "rdna", False, True, True, 65536, 32, 128),
    )
}


def generation_of(target: str) -> Generation:
    """The generation of a target id such as `gfx942`.

    Raises:
        UnknownTarget: a target the emulator does not execute.
    """
    if target not in GENERATIONS:
        raise UnknownTarget(
            f"the emulator does not execute {target}{did_you_mean(target, GENERATIONS)}",
            remedy=f"compile for one of {', '.join(GENERATIONS)}",
        )
    return GENERATIONS[target]
