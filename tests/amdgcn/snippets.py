"""Kernels of a few hand-written instructions: every thread loads eight dwords, runs the snippet, stores four.

Registers of a snippet: v[8:15] are the thread's inputs, v[16:19] its results (they start as copies of v[12:15]),
v[2:7] and s[8:31] are free, v0 is the thread number. Waves of 64 lanes on CDNA, 32 on RDNA.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dsv4gen.emulate.amdgcn import Kernel, Result
from tests.amdgcn.compiled import WAVE64, wave_of

INPUTS, RESULTS = 8, 4

_DESCRIPTOR = """\
	.section .rodata,"a",@progbits
	.p2align 6
	.amdhsa_kernel {name}
		.amdhsa_group_segment_fixed_size {lds}
		.amdhsa_private_segment_fixed_size {scratch}
		.amdhsa_kernarg_size 16
		.amdhsa_user_sgpr_count 2
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_next_free_vgpr 64
		.amdhsa_next_free_sgpr 64
{extra}
	.end_amdhsa_kernel
	.text
"""
_METADATA = """\
	.amdgpu_metadata
---
amdhsa.kernels:
{kernels}
amdhsa.target: amdgcn-amd-amdhsa--{target}
amdhsa.version:
  - 1
  - 2
...
	.end_amdgpu_metadata
"""
_KERNEL_METADATA = """\
  - .args:
      - .offset: 0
        .size: 8
        .value_kind: global_buffer
      - .offset: 8
        .size: 8
        .value_kind: global_buffer
    .group_segment_fixed_size: {lds}
    .kernarg_segment_align: 8
    .kernarg_segment_size: 16
    .max_flat_workgroup_size: 1024
    .name: {name}
    .private_segment_fixed_size: {scratch}
    .sgpr_count: 64
    .symbol: {name}.kd
    .vgpr_count: 64
    .wavefront_size: {wave}
"""


def kernel_text(target: str, name: str, lines: Sequence[str], *, lds: int = 0, scratch: int = 0) -> str:
    """Code and descriptor of one kernel."""
    cdna = target in WAVE64
    load, store = ("dwordx4", "dwordx4") if cdna else ("b128", "b128")
    all_lanes = "s_mov_b64 exec, -1" if cdna else "s_mov_b32 exec_lo, -1"
    body = [
        "s_load_dwordx4 s[4:7], s[0:1], 0x0" if cdna else "s_load_b128 s[4:7], s[0:1], 0x0",
        f"v_lshlrev_b32_e32 v1, {3 + 2}, v0",
        _wait(target, scalar=True),
        f"global_load_{load} v[8:11], v1, s[4:5]",
        f"global_load_{load} v[12:15], v1, s[4:5] offset:16",
        _wait(target),
        *(f"v_mov_b32_e32 v{16 + index}, v{12 + index}" for index in range(RESULTS)),
        *lines,
        all_lanes,
        f"v_lshlrev_b32_e32 v1, {2 + 2}, v0",
        _wait(target),
        f"global_store_{store} v1, v[16:19], s[6:7]",
        "s_endpgm",
    ]
    extra = ["\t\t.amdhsa_accum_offset 64"] if cdna else ["\t\t.amdhsa_wavefront_size32 1"]
    if scratch and target != "gfx90a":
        extra.append("\t\t.amdhsa_enable_private_segment 1")
    code = "\n".join(f"\t{line}" for line in body)
    return (
        f"\t.text\n\t.globl {name}\n\t.p2align 8\n\t.type {name},@function\n{name}:\n{code}\n.L{name}_end:\n"
        f"\t.size {name}, .L{name}_end-{name}\n"
        + _DESCRIPTOR.format(name=name, lds=lds, scratch=scratch, extra="\n".join(extra))
    )


def module_text(target: str, kernels: Sequence[str], names: Sequence[str], *, lds: int = 0, scratch: int = 0) -> str:
    """A whole assembly file."""
    listed = "".join(
        _KERNEL_METADATA.format(name=name, lds=lds, scratch=scratch, wave=wave_of(target)) for name in names
    )
    head = f'\t.amdgcn_target "amdgcn-amd-amdhsa--{target}"\n\t.amdhsa_code_object_version 5\n'
    return head + "\n".join(kernels) + _METADATA.format(kernels=listed.rstrip(), target=target)


def snippet_text(target: str, lines: Sequence[str], *, lds: int = 0, scratch: int = 0) -> str:
    """The file of one snippet; its kernel is named `snippet`."""
    kernel = kernel_text(target, "snippet", lines, lds=lds, scratch=scratch)
    return module_text(target, [kernel], ["snippet"], lds=lds, scratch=scratch)


def snippet_kernel(target: str, lines: Sequence[str], *, lds: int = 0, scratch: int = 0) -> Kernel:
    """The emulated kernel of a snippet."""
    return Kernel.from_assembly(snippet_text(target, lines, lds=lds, scratch=scratch), "snippet")


def launch(kernel: Kernel, inputs: np.ndarray) -> tuple[np.ndarray, Result]:
    """Run one block with a thread per row of `inputs` (uint32, shape [threads, up to 8]), in whole waves.

    Returns the results, uint32 of shape [threads, 4], and the emulator's result.
    """
    rows = inputs.shape[0]
    wave = kernel.program.descriptor.wave
    threads = -(-rows // wave) * wave
    full = np.zeros((threads, INPUTS), np.uint32)
    full[:rows, : inputs.shape[1]] = inputs
    results = np.zeros((threads, RESULTS), np.uint32)
    outcome = kernel.run(1, threads, [full, results])
    return results[:rows], outcome


def run_snippet(target: str, lines: Sequence[str], inputs: np.ndarray, **sizes: int) -> np.ndarray:
    """Results of a snippet that must run cleanly."""
    results, outcome = launch(snippet_kernel(target, lines, **sizes), inputs)
    assert outcome.problems == ()
    return results


def _wait(target: str, *, scalar: bool = False) -> str:
    if target == "gfx1201":
        return "s_wait_kmcnt 0x0" if scalar else "s_wait_loadcnt 0x0"
    return "s_waitcnt lgkmcnt(0)" if scalar else "s_waitcnt vmcnt(0)"
