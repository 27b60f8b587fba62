"""The groups of facts that describe one GPU target, as they are once `extends` is resolved.

Every leaf is a hardware, compiler or driver fact with a source. Field names are the keys of
`specs/platforms/*.yaml`; dotted paths such as `shared.block` are the names expressions and templates use.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from dsv4gen.spec.models import Distinct, Model, Natural, Positive, Text

Tile: TypeAlias = tuple[Positive, Positive, Positive]


class Triton(Model):
    """Arguments of Triton's `GPUTarget`.

    Attributes:
        backend: its compiler backend.
        arch: a name for hip, a number for cuda.
        wave: lanes of a warp.
    """

    backend: Literal["hip", "cuda"]
    arch: str | int
    wave: Positive


class Compile(Model):
    """Architecture names for the compilers; null where a compiler does not serve the target.

    Attributes:
        clang: `--offload-arch` of clang.
        nvrtc: `--gpu-architecture` of NVRTC, with the suffix that gives all features of this exact device.
        family: the nvrtc name that also runs on newer devices of the same family.
        ptx: the plain name whose PTX runs on any newer device, without suffix features.
        generic: clang's name of the generic code object that covers the target.
        triton: how Triton is told the target.
    """

    clang: str | None = None
    nvrtc: str | None = None
    family: str | None = None
    ptx: str | None = None
    generic: str | None = None
    triton: Triton


class Detect(Model):
    """How a running device is recognised; `features` are the target-id features its name may carry.

    Attributes:
        api: the driver.
        arch: the architecture's name, null where the driver reports none.
        capability: major and minor version as torch reports them.
        features: names that may follow the architecture, as in `gfx942:xnack-`.
    """

    api: Literal["hip", "cuda"]
    arch: str | None = None
    capability: tuple[Natural, Natural]
    features: Distinct[str]


class Wave(Model):
    """Hardware wave, width of a ballot's result, width of a sync mask: three numbers kept apart.

    Attributes:
        sizes: lanes a wave may have.
        launch: lanes of the waves we launch.
        ballot_bits: bits of a ballot's result.
        mask_bits: bits of the mask of a sync operation.
        shuffle_width: lanes a shuffle without a width spans.
        independent_lanes: lanes of one wave may wait for each other.
    """

    sizes: Distinct[Positive]
    launch: Positive
    ballot_bits: Positive
    mask_bits: Positive
    shuffle_width: Positive
    independent_lanes: bool


class Unit(Model):
    """What blocks are placed on: its SIMDs or sub-partitions, and how many threads and blocks it holds.

    Attributes:
        kind: compute unit, workgroup processor or SM.
        simds: SIMDs or sub-partitions.
        waves_per_simd: waves one of them holds.
        threads: threads a unit holds.
        blocks: blocks of one wave a unit holds.
        blocks_multi_wave: blocks of several waves a unit holds.
    """

    kind: Literal["cu", "wgp", "sm"]
    simds: Positive
    waves_per_simd: Positive
    threads: Positive
    blocks: Positive
    blocks_multi_wave: Positive


class Regs(Model):
    """32-bit registers. `file` counts per lane of a SIMD on HIP targets and per unit on CUDA targets.

    `granule` is per lane on HIP and per warp on CUDA; `scalar` is null where there is no scalar file.

    Attributes:
        file: registers there are.
        granule: registers that are handed out at once.
        per_thread: registers a thread may have.
        vector: of these, ordinary ones.
        accumulator: of these, accumulation registers.
        scalar: scalar registers of a wave.
    """

    file: Positive
    granule: Positive
    per_thread: Positive
    vector: Positive
    accumulator: Natural
    scalar: Positive | None


class Block(Model):
    """Launch limits: threads of a block, blocks per grid axis, threads of a grid (null: no further limit).

    Attributes:
        threads: threads of a block.
        grid: blocks along x, y, z.
        grid_threads: threads of a grid.
    """

    threads: Positive
    grid: Tile
    grid_threads: Positive | None


class Shared(Model):
    """Bytes of shared memory (LDS): static, per block with opt-in, per unit, granule, reserve per block.

    Attributes:
        static: bytes a static array may have.
        block: bytes of a block, with opt-in where there is one.
        unit: bytes of a unit.
        granule: bytes that are handed out at once.
        reserved: bytes the driver takes from each block.
        banks: banks.
        bank_bytes: bytes of a bank's word.
    """

    static: Positive
    block: Positive
    unit: Positive
    granule: Positive
    reserved: Natural
    banks: Positive
    bank_bytes: Positive


class Bounds(Model):
    """What the second number of the launch bounds counts.

    Attributes:
        second: waves per SIMD on HIP, blocks per unit on CUDA.
    """

    second: Literal["waves_per_simd", "blocks_per_unit"]


class Cluster(Model):
    """Blocks launched together; sizes in blocks. `use: probe` asks the driver before the first launch.

    Attributes:
        supported: clusters exist.
        portable: largest size that needs no attribute.
        maximum: largest size.
        axis_maximum: largest size along one axis.
        remote_shared: blocks reach each other's shared memory.
        barrier: there is a barrier of the cluster.
        multicast: a copy can go to several blocks.
        use: whether we launch them: `probe` asks the driver first.
    """

    supported: bool
    portable: Natural
    maximum: Natural
    axis_maximum: Natural
    remote_shared: bool
    barrier: bool
    multicast: bool
    use: Literal["always", "probe", "never"]


class Split(Model):
    """Columns of a row above which two launches whose blocks share it are worth it, by the number of rows.

    Attributes:
        rows_32nd: for up to a 32nd of the device's units.
        rows_16th: for up to a 16th.
        rows_8th: for up to an 8th.
        rows_4th: for up to a quarter.
    """

    rows_32nd: Positive
    rows_16th: Positive
    rows_8th: Positive
    rows_4th: Positive


class Launch(Model):
    """Kinds of launch the driver offers.

    Attributes:
        cooperative: all blocks of a grid are resident together.
        dependent: a kernel may start before the one in front of it has ended.
    """

    cooperative: bool
    dependent: bool


class Copy(Model):
    """Asynchronous copies to shared memory: bytes per lane, and the tensor copy engine.

    Attributes:
        to_shared_bytes: bytes per lane of a copy that bypasses registers.
        tensor: the engine that copies tiles.
    """

    to_shared_bytes: Distinct[Positive]
    tensor: Literal["none", "tma", "tdm"]


class DotFloor(Model):
    """Smallest (M, N, K) of `tl.dot` that reaches the matrix unit; null where none does.

    Attributes:
        bf16: for bf16 inputs.
        fp8: for FP8 inputs.
    """

    bf16: Tile | None
    fp8: Tile | None


class Matrix(Model):
    """Matrix instructions: shapes (M, N, K) per input type, and the default precision of an fp32 dot.

    Attributes:
        family: the instructions.
        bf16: shapes with bf16 inputs.
        fp8: shapes with FP8 inputs.
        dot_floor: smallest (M, N, K) of `tl.dot` that reaches them.
        fp32_default: precision of an fp32 dot unless told otherwise.
    """

    family: Literal["mfma", "wmma", "mma", "wgmma", "tcgen05"]
    bf16: Distinct[Tile]
    fp8: Distinct[Tile]
    dot_floor: DotFloor
    fp32_default: Literal["ieee", "tf32", "xf32"]


class MaxFinite(Model):
    """Largest finite value per dialect.

    Attributes:
        e4m3fn: of the OCP dialect.
        e4m3fnuz: of the dialect without negative zero.
    """

    e4m3fn: Positive | None = None
    e4m3fnuz: Positive | None = None


class NativeSince(Model):
    """First Triton version whose casts are native; null where they are emulated or refused.

    Attributes:
        encode: for casts to FP8.
        decode: for casts from FP8.
    """

    encode: str | None
    decode: str | None


class TritonFp8(Model):
    """Type names Triton takes without error, emulated ones included.

    Attributes:
        accepted: the type names.
        native_since: first versions whose casts are native.
    """

    accepted: Distinct[str]
    native_since: NativeSince


class Fp8(Model):
    """Native FP8 dialects. `mode_bit`: conversions saturate only after a mode bit is set.

    Attributes:
        convert: dialects with conversion instructions.
        matrix: dialects the matrix instructions read.
        max_finite: largest finite value per dialect.
        overflow: what a conversion of a larger value gives.
        mode_bit: whether saturation needs the mode bit.
        triton: what Triton accepts.
    """

    convert: Distinct[Literal["e4m3fn", "e4m3fnuz"]]
    matrix: Distinct[Literal["e4m3fn", "e4m3fnuz"]]
    max_finite: MaxFinite
    overflow: Literal["nan", "saturate"]
    mode_bit: bool
    triton: TritonFp8


class Bf16(Model):
    """How f32 becomes bf16, and whether bf16 values multiply as they are or are widened to f32 for it.

    Attributes:
        convert: an instruction, or a sequence of integer operations.
        multiply: as they are, or widened.
    """

    convert: Literal["native", "software"]
    multiply: Literal["native", "widened"]


class Atomics(Model):
    """Native read-modify-write operations; `cas` means a compare-and-swap loop.

    Attributes:
        shared_f32: f32 addition in shared memory.
        shared_f64: f64 addition in shared memory.
        shared_pk_bf16: addition of two bf16 in shared memory.
        global_f32: f32 addition in global memory.
        global_pk_bf16: addition of two bf16 in global memory.
    """

    shared_f32: Literal["native", "cas"]
    shared_f64: Literal["native", "none"]
    shared_pk_bf16: bool
    global_f32: Literal["native", "cas"]
    global_pk_bf16: bool


class Access(Model):
    """Widest access per lane in bytes; most bytes behind a buffer descriptor (null: no descriptors).

    Attributes:
        global_bytes: of global memory.
        shared_bytes: of shared memory.
        buffer_limit: behind a buffer descriptor.
    """

    global_bytes: Positive
    shared_bytes: Positive
    buffer_limit: Positive | None


class Cache(Model):
    """Cache bytes and what shares one L2; null where it depends on the product or there is none.

    Attributes:
        l2: bytes of one L2.
        l2_scope: what shares one L2.
        last_level: bytes of the cache behind it.
    """

    l2: Positive | None
    l2_scope: Literal["device", "gcd", "xcd"]
    last_level: Positive | None


class Product(Model):
    """One card. For roofline text only: running code reads units, XCDs and L2 from the device.

    `units` are compute units or SMs, `reported_units` what the runtime's multiProcessorCount says;
    memory in GB and TB/s, dense peaks in TFLOPS.

    Attributes:
        units: compute units or SMs.
        reported_units: what the runtime reports as multiprocessors.
        xcds: dies with an L2 each.
        l2: bytes of one L2.
        memory_gb: memory in GB.
        memory_tbs: memory bandwidth in TB/s.
        bf16_tflops: dense peak in TFLOPS.
        fp8_tflops: dense peak in TFLOPS.
    """

    units: Positive | None
    reported_units: Positive | None = None
    xcds: Positive | None = None
    l2: Positive | None = None
    memory_gb: Positive | None = None
    memory_tbs: Annotated[float, Field(gt=0)] | None = None
    bf16_tflops: Positive | None = None
    fp8_tflops: Positive | None = None
    doc: Text | None = None


#: Groups that become facts, by key; `products` stay out on purpose.
GROUPS: dict[str, type[Model]] = {
    "compile": Compile,
    "detect": Detect,
    "wave": Wave,
    "unit": Unit,
    "regs": Regs,
    "block": Block,
    "shared": Shared,
    "bounds": Bounds,
    "cluster": Cluster,
    "split": Split,
    "launch": Launch,
    "copy": Copy,
    "matrix": Matrix,
    "fp8": Fp8,
    "bf16": Bf16,
    "atomics": Atomics,
    "access": Access,
    "cache": Cache,
}
