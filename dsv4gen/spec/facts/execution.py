"""Where threads run: waves, units, registers, blocks and what launches them."""

from __future__ import annotations

from typing import Literal

from dsv4gen.spec.models import Distinct, Model, Natural, Positive, Tile


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
        rows_128th: for up to a 128th of the device's units.
        rows_32nd: for up to a 32nd.
        rows_16th: for up to a 16th.
        rows_8th: for up to an 8th.
        rows_4th: for up to a quarter.
    """

    rows_128th: Positive
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
