"""What generator and runtime share, in dependency order; standard library only.

errors      the error catalogue: code, message, place, remedy, exit status
env         every environment variable: name, type, default, meaning
paths       where specs, templates, generated files and caches live
extensions  folders with further specs, templates and references
target_id   one parser for every spelling of a GPU target
tiles       tiles as people read them
argument_names  names that arguments and ops may have
params      the by-value struct of every HIP/CUDA kernel
expression_json  expressions as the runtime evaluates them
manifest    the model of generated/<target>/manifest.json
runtime_facts  names whose values only the running device knows
stamp       which builds are finished, by content
prebuilt    code objects compiled ahead of time, and what they were compiled from
"""
