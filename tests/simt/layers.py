"""Device layers rendered for tests, in front of small kernels written here as text."""

from __future__ import annotations

import functools

import jinja2

from dsv4gen.base import paths
from dsv4gen.base.params import ParamsLayout
from dsv4gen.emulate.simt import SimtProgram
from dsv4gen.emulate.simt.memory_file import Array

LAYERS = {
    "hip": "device/hip/layer.hip.jinja",
    "cuda": "device/cuda/layer.cu.jinja",
    "simt": "device/simt/layer.cpp.jinja",
}
WAVES = (32, 64)
#: planted defects of the layers that show where a wave is two logical warps
WAVE_BUGS = ("ballot_low_half", "shuffle_without_width", "lane_mask_32bit")

#: the parameters of every small kernel
PARAMS = "struct Params { const float* input; u32* out; u32 n; };\n"
LAYOUT = ParamsLayout.of([("input", "pointer", "const float*"), ("out", "pointer", "u32*"), ("n", "u32", "u32")])


def render_layer(dialect: str, wave: int, mutations: frozenset[str] = frozenset(), **facts: object) -> str:
    """The text of one device layer; `facts` replaces the usual ones."""
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FileSystemLoader(paths.templates()),
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    context: dict[str, object] = {
        "wave": wave,
        "dependent_launch": False,
        "remote_shared": dialect == "simt",
        "simds_per_unit": 4,
        "max_waves_per_simd": 8 if wave == 64 else 16,
        "mutations": mutations,
    }
    return environment.get_template(LAYERS[dialect]).render({**context, **facts})


def arguments(out: Array | int, given: Array | int = 0, n: int = 0) -> dict[str, Array | int | float]:
    """Values for `LAYOUT`; 0 is a null pointer."""
    return {"input": given, "out": out, "n": n & 0xFFFFFFFF}


@functools.cache
def build(body: str, wave: int, mutations: frozenset[str] = frozenset()) -> SimtProgram:
    """The host build of kernels that take `Params`, kept for the whole test run."""
    return SimtProgram.build(render_layer("simt", wave, mutations) + PARAMS + body, wave=wave)
