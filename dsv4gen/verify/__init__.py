"""Does what was generated compile, fit and compute the right thing; no GPU needed.

compiled    every source of every target through its compiler, resources against budgets
runs        what the cases of a family did; a Triton family as machine code
found       the rows that runs give, and what no case reached
executed    every symbol on the oracles, results against the reference
progress    what a long run says while it works
outcome     what was found, printed or as JSON
results     outcomes on disk
run         the entry point: verify(targets, families)
"""
