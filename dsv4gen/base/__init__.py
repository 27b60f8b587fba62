"""What generator and runtime share, in dependency order; standard library only.

errors           the error catalogue: code, message, place, remedy, exit status
env              every environment variable: name, type, default, meaning
paths            where specs, templates, generated files and caches live
extensions       folders with further specs, templates and references
outputs          files that a user asked for, tried before a long run and never half-written
target_id        one parser for every spelling of a GPU target
tiles            tiles as people read them
argument_names   names that arguments and ops may have
hazard_names     names of inputs that break kernels
params           the by-value struct of every HIP/CUDA kernel
entries          the line in front of each kernel of a source
choices          options that a kernel source states in one line each
expression_json  expressions as the runtime evaluates them
plain_data       JSON to dataclasses, each value checked
json_shape       what a JSON value must look like, as checks that are put together
plan_shape       what a manifest and a family's plan must look like
manifest         the model of generated/<target>/manifest.json
runtime_facts    names whose values only the running device knows
stamp            which builds are finished, by content
prebuilt         code objects compiled ahead of time, and what they were compiled from
"""
