"""Plan -> text, with a map from every output line back to its template line.

literals    Python values and expressions as C++ or Python literals
checks      what a template may not contain, refused when it loads
source_map  markers that survive rendering, turned into line origins
environment  the Jinja environment: strict, sandboxed, deterministic
dialects    output language by target API: file suffix, device layer, context
entries     a kernel in the source for every planned symbol
launchers   what the launchers of a rendered Triton module take
render      the entry point: render_family(plan)
"""

from dsv4gen.render.entries import missing_entries
from dsv4gen.render.launchers import Launcher
from dsv4gen.render.render import RenderedFile, launchers_in, render_family, render_source
from dsv4gen.render.source_map import SourceMap

__all__ = ["Launcher", "RenderedFile", "SourceMap", "launchers_in", "missing_entries", "render_family", "render_source"]
