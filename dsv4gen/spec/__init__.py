"""YAML specs to typed data in which every value knows its file, line and column, in dependency order.

document     a parsed file: plain data and the position of every key and value
scalars      plain scalars after YAML 1.2
yaml_text    YAML text to a document
models       strict frozen models, read-only tables, expressions as text
family       the model of specs/families/<family>.yaml
facts        the groups of facts of a platform
platform     the model of specs/platforms/<target>.yaml, derived from the groups
schema_walk  which keys are allowed at a path
check        a document against a model
loaded       a checked model with its positions
leaves       the facts a platform file states, with their sources
inheritance  `extends` between platform files
findings     mistakes of one spec, each at its key
signature    argument types of a Triton kernel
kernel_references, tensor_references, family_references
             names that refer to nothing, tables that contradict each other
files        templates and references that family specs name
tuning       the model of specs/tuning/<target>/<family>.yaml
json_schema  schemas for editors
load         every spec of a folder, all mistakes at once
"""

from __future__ import annotations

from dsv4gen.spec.family import FamilySpec
from dsv4gen.spec.json_schema import json_schema
from dsv4gen.spec.load import Specs, load_specs
from dsv4gen.spec.loaded import Loaded
from dsv4gen.spec.tuning import TuningSpec

__all__ = ["FamilySpec", "Loaded", "Specs", "TuningSpec", "json_schema", "load_specs"]
