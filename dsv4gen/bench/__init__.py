"""Time every shape of a family on the card in the machine, against its floor and against installed peers.

Needs torch and what `load` needs; neither the generator nor its libraries, so a card's machine can do without them.

cells     what is timed: the manifest's shapes with their floors
machine   what the numbers belong to: card, versions, and the rates of its floors
stopwatch  how: graph replays over rotated inputs, a plain loop, single calls
prepare   inputs, and one call checked against the reference before any is timed
peers     public packages that can do the same, where they are installed
run       all cells; a failing one does not end the others
result    what was found, as JSON
compare   two results of the same shapes, with the noise of both
show, plot  the table, and the picture
command   the command's steps together
"""

from __future__ import annotations
