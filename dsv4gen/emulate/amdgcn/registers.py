"""Slots of the scalar file, by the names used in assembly text.

Slots 0..127 follow the hardware's numbers on gfx9; the others are our own, since text never shows numbers for
them. runtime/wave.h uses the same slots.
"""

from __future__ import annotations

VCC = 106
TTMP = 108
M0 = 124
EXEC = 126
SCC = 128
NULL_READ = 130
NULL_WRITE = 132
FLAT_SCRATCH = 148
XNACK_MASK = 150
SHARED_BASE = 152
SHARED_LIMIT = 154
PRIVATE_BASE = 156
PRIVATE_LIMIT = 158
SLOTS = 160

#: name -> (slot, dwords)
SPECIAL: dict[str, tuple[int, int]] = {
    "vcc": (VCC, 2),
    "vcc_lo": (VCC, 1),
    "vcc_hi": (VCC + 1, 1),
    "exec": (EXEC, 2),
    "exec_lo": (EXEC, 1),
    "exec_hi": (EXEC + 1, 1),
    "m0": (M0, 1),
    "scc": (SCC, 1),
    "src_scc": (SCC, 1),
    "null": (NULL_READ, 2),
    "flat_scratch": (FLAT_SCRATCH, 2),
    "flat_scratch_lo": (FLAT_SCRATCH, 1),
    "flat_scratch_hi": (FLAT_SCRATCH + 1, 1),
    "xnack_mask": (XNACK_MASK, 2),
    "xnack_mask_lo": (XNACK_MASK, 1),
    "xnack_mask_hi": (XNACK_MASK + 1, 1),
    "src_shared_base": (SHARED_BASE, 2),
    "src_shared_limit": (SHARED_LIMIT, 2),
    "src_private_base": (PRIVATE_BASE, 2),
    "src_private_limit": (PRIVATE_LIMIT, 2),
}

#: Upper dwords of generic addresses that mean LDS and scratch. Our choice: above every 48-bit address.
SHARED_APERTURE = 0x0001_0000
PRIVATE_APERTURE = 0x0002_0000
