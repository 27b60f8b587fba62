"""The commands: flags and words to calls of the stages, and what these return to the terminal; no logic of their own.

options   flags that several commands have, and the types of their values
generate  build, new-target, new-family
check     verify, emulate
measure   bench, tune
look      explain, report, list, doctor, schema
"""
