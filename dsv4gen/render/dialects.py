"""Output dialects of the HIP/CUDA language: file suffix, device layer, and the layer's context."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dsv4gen.base.errors import TemplateError, did_you_mean


@dataclass(frozen=True)
class Dialect:
    """One spelling of the device layer."""

    name: str
    suffix: str
    layer: str


DIALECTS = {
    "hip": Dialect("hip", ".hip", "device/hip/layer.hip.jinja"),
    "cuda": Dialect("cuda", ".cu", "device/cuda/layer.cu.jinja"),
    "simt": Dialect("simt", ".cpp", "device/simt/layer.cpp.jinja"),
}


def dialect_named(name: str) -> Dialect:
    """The dialect of that name.

    Raises:
        TemplateError: no such dialect.
    """
    if name not in DIALECTS:
        raise TemplateError(
            f"no dialect {name!r}{did_you_mean(name, DIALECTS)}", remedy=f"one of {', '.join(DIALECTS)}"
        )
    return DIALECTS[name]


def layer_context(facts: Mapping[str, object], wave: int | None) -> dict[str, object]:
    """What a device layer may know; `wave` overrides the target's own wave size in a host build."""
    return {
        "wave": facts["wave.launch"] if wave is None else wave,
        "dependent_launch": facts["launch.dependent"],
        "remote_shared": facts["cluster.remote_shared"],
        "simds_per_unit": facts["unit.simds"],
        "max_waves_per_simd": facts["unit.waves_per_simd"],
    }
