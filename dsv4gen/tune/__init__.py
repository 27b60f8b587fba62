"""Find the fastest proven tile per shape, and write it down for review.

A sweep has three steps. On one machine they follow each other; a card's machine without the generator takes a pack of
candidates and gives back a journal.

pack        a family's module per candidate tile, in one file
candidates  makes a pack: tiles that the plan has proven to fit  (needs the generator)
journal     what was measured, a line each; a sweep that was interrupted goes on from it
measure     checks and times the candidates of the shapes' kernels on a card
workers     compiles ahead in processes, and spreads shapes over several cards
counts      ranks candidates by executed instructions on an emulator, where there is no card
choose      times to an ordered list of predicates
write       specs/tuning/<target>/<family>.yaml, with the comments that were there  (needs the generator)
apply       a journal's rows chosen, written, and taken back where the specs refuse them  (needs the generator)
asked       the command's words, and those that exclude each other
show        what a run did
command     the steps together
"""

from __future__ import annotations
