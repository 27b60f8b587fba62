"""Does what was generated compile, fit and compute the right thing; no GPU needed.

outcome          what was found, printed or as JSON
results          outcomes on disk
progress         what a long run says while it works
triton_requests  what a Triton family compiles ahead of time
builds           what options make of a source
compiled         every source of every target through its compiler, resources against budgets
spaces           workspaces of a call between guard bytes
simt             launches on the SIMT host build
amdgcn           launches of AMD machine code on the emulator
oracle           an op of a HIP/CUDA family through the runtime's checks and dispatch, on either
triton_machine   ops of Triton families as AMD machine code
runs             what the cases of a family did; a Triton family as machine code
found            the rows that runs give, and what no case reached
executed         every symbol on the oracles, results against the reference
run              the entry point: verify(targets, families)

The real runtime and other machine code, also without a card:

standin          `load` and calls on an AMD GPU that is not there
standin_lines    template lines in what its emulator says
argument_words   kernel arguments in words
count_tables     emulated instructions by function and kind
emulated         `dsv4gen emulate`
"""
