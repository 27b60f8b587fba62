"""What a compiled kernel uses: one record for both vendors, and the check against its budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dsv4gen.base.errors import ResourceError
from dsv4gen.target.occupancy import Occupancy, occupancy
from dsv4gen.target.record import TargetRecord


@dataclass(frozen=True)
class KernelResources:
    """Figures of one kernel, read from its code object.

    Registers are 32-bit and counted per thread, scalar ones per wave. What a vendor does not have is 0.

    Attributes:
        vector_registers: AMD architectural VGPRs, NVIDIA registers.
        accumulator_registers: AMD AGPRs; they come on top of the vector registers.
        spilled_vector: registers kept in memory for lack of registers. NVIDIA: bytes of spill stores / 4 from
            the assembler's log, or without a log the stack frame / 4 when spill instructions are marked.
        spilled_scalar: AMD SGPRs kept in VGPR lanes or memory.
        scratch_bytes: private memory per thread: spills and local arrays.
        static_shared_bytes: declared by the kernel, without the driver's reserve.
        dynamic_shared_bytes: what a launch has to add (Triton kernels); 0 when all is static.
        max_threads: largest block the kernel accepts, from its launch bounds.
        wave: hardware wave the code was compiled for.
        occupancy: blocks and waves one unit holds; None until `for_launch` was told the target.
    """

    symbol: str
    vector_registers: int
    accumulator_registers: int
    scalar_registers: int
    spilled_vector: int
    spilled_scalar: int
    scratch_bytes: int
    static_shared_bytes: int
    dynamic_shared_bytes: int
    max_threads: int
    wave: int
    occupancy: Occupancy | None = None

    @property
    def shared_bytes(self) -> int:
        """Shared memory of one block: static and dynamic."""
        return self.static_shared_bytes + self.dynamic_shared_bytes

    @property
    def spilled_registers(self) -> int:
        """Vector and scalar registers that did not fit."""
        return self.spilled_vector + self.spilled_scalar

    @property
    def waves(self) -> int:
        """Hardware waves of the largest block."""
        return -(-self.max_threads // self.wave)

    def for_launch(
        self, record: TargetRecord, *, threads: int | None = None, dynamic_shared_bytes: int | None = None
    ) -> KernelResources:
        """The same kernel with its occupancy on a target.

        Args:
            threads: block size of the launch; default: the largest the kernel accepts.
            dynamic_shared_bytes: what the launch adds; default: what is already recorded.
        """
        dynamic = self.dynamic_shared_bytes if dynamic_shared_bytes is None else dynamic_shared_bytes
        resident = occupancy(
            record,
            threads or self.max_threads,
            vector=self.vector_registers,
            accumulator=self.accumulator_registers,
            scalar=self.scalar_registers,
            shared_bytes=self.static_shared_bytes + dynamic,
        )
        return replace(self, dynamic_shared_bytes=dynamic, occupancy=resident)


def check_budget(
    resources: KernelResources,
    record: TargetRecord,
    *,
    expected_shared: int | None = None,
    threads: int | None = None,
    min_blocks: int | None = None,
    allowed_spills: int = 0,
    allowed_scalar_spills: int = 0,
    allowed_scratch: int = 0,
) -> list[ResourceError]:
    """Every way in which a kernel is outside its budget; empty when it is inside.

    Args:
        expected_shared: bytes per block that the fit proof computed; the compiler must agree.
        threads: the block size of the plan's launches.
        min_blocks: blocks per unit that the launch bounds ask for.
        allowed_spills: vector registers.
        allowed_scalar_spills: AMD scalar registers; without scratch they sit in lanes of vector registers.
        allowed_scratch: bytes per thread.
    """
    found = (
        *_excess("spilled vector registers", resources.spilled_vector, allowed_spills),
        *_excess("spilled scalar registers", resources.spilled_scalar, allowed_scalar_spills),
        *_excess("bytes of scratch per thread", resources.scratch_bytes, allowed_scratch),
        *_shared_findings(resources, record, expected_shared),
        *_thread_findings(resources, record, threads),
        *_occupancy_findings(resources.for_launch(record, threads=threads), min_blocks),
    )
    return [ResourceError(f"{resources.symbol} on {record.device}: {finding}") for finding in found]


def check_static_shared(kernels: Sequence[KernelResources], record: TargetRecord) -> list[ResourceError]:
    """Kernels whose static shared memory no launch can provide.

    The limit is the platform's fact: on sm_90 and later the assembler accepts far more than the 48 KiB that a
    plain launch gives, so that its success proves nothing.
    """
    limit = record.shared.static
    return [
        ResourceError(
            f"{kernel.symbol} on {record.device}: {kernel.static_shared_bytes} bytes of static shared "
            f"memory, the limit is {limit}",
            remedy="choose a smaller tile, or ask for the memory at launch (dynamic, opt-in)",
        )
        for kernel in kernels
        if kernel.static_shared_bytes > limit
    ]


def _excess(what: str, used: int, allowed: int) -> list[str]:
    return [f"{used} {what}, {allowed} allowed"] if used > allowed else []


def _shared_findings(kernel: KernelResources, record: TargetRecord, expected: int | None) -> list[str]:
    found = []
    for kind, used, limit in (
        ("static shared memory", kernel.static_shared_bytes, record.shared.static),
        ("shared memory per block", kernel.shared_bytes, record.shared.block),
    ):
        if used > limit:
            found.append(f"{used} bytes of {kind}, the limit is {limit}")
    if expected is not None and kernel.shared_bytes != expected:
        found.append(f"{kernel.shared_bytes} bytes of shared memory, the proof computed {expected}")
    return found


def _thread_findings(kernel: KernelResources, record: TargetRecord, threads: int | None) -> list[str]:
    found = []
    limit = record.block.threads
    wanted = kernel.max_threads if threads is None else threads
    if wanted > limit:
        found.append(f"blocks of {wanted} threads, the limit is {limit}")
    if threads is not None and threads > kernel.max_threads:
        found.append(f"blocks of {threads} threads, the kernel was compiled for {kernel.max_threads}")
    return found


def _occupancy_findings(kernel: KernelResources, min_blocks: int | None) -> list[str]:
    resident = kernel.occupancy
    if min_blocks is None or resident is None or resident.blocks >= min_blocks:
        return []
    return [f"{resident.blocks} blocks per unit fit ({resident.limit}), {min_blocks} were asked for"]
