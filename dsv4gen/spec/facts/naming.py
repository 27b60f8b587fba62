"""How compilers and drivers name a target."""

from __future__ import annotations

from typing import Literal

from dsv4gen.spec.models import Distinct, Model, Natural, Positive


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
