"""A program of instructions -> ops: calls of the functions in the instruction library.

builder   where registers, temporaries and constants live, and how operands become rows
scalar    table rows, saveexec, scalar loads, program counter and mode registers
vector    operands, modifiers, dual issue
lanes     values that move between lanes, or between lanes and scalars
relative  registers whose numbers a scalar decides
memory    an address step, then one load, store or atomic step
matrix    matrix instructions
lower     the entry point: a whole program, branch targets last
"""
