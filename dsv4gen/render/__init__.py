"""Plan -> text, with a map from every output line back to its template line.

literals    Python values and expressions as C++ or Python literals
checks      what a template may not contain, refused when it loads
source_map  markers that survive rendering, turned into line origins
environment the Jinja environment: strict, sandboxed, deterministic
dialects    output language by target API: file suffix, device layer, context
render      the entry point: render_family(plan)
"""

from dsv4gen.render.render import RenderedFile, render_family, render_source
from dsv4gen.render.source_map import SourceMap

__all__ = ["RenderedFile", "SourceMap", "render_family", "render_source"]
