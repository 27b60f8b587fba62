"""Single cards, for roofline text only."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dsv4gen.spec.models import Model, Positive, Text


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
