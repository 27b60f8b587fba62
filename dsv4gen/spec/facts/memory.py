"""Memories and how they are reached: shared memory, copies, atomics, widths, caches."""

from __future__ import annotations

from typing import Literal

from dsv4gen.spec.models import Distinct, Model, Natural, Positive


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


class Copy(Model):
    """Asynchronous copies to shared memory: bytes per lane, and the tensor copy engine.

    Attributes:
        to_shared_bytes: bytes per lane of a copy that bypasses registers.
        tensor: the engine that copies tiles.
    """

    to_shared_bytes: Distinct[Positive]
    tensor: Literal["none", "tma", "tdm"]


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
