"""What `dsv4gen tune` is asked for, and words that exclude each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dsv4gen.base.errors import UsageError
from dsv4gen.bench.cells import Wanted


@dataclass(frozen=True)
class Sweeping:
    """How to measure.

    Attributes:
        wanted: shapes, as for bench.
        devices: numbers of the cards, all of one kind.
        seconds: stop then; the journal goes on from there.
        processes: that compile ahead; 0 takes as many as cores repay.
    """

    wanted: Wanted = field(default_factory=lambda: Wanted((), {}, {}))
    devices: Sequence[int] = (0,)
    seconds: float = float("inf")
    processes: int = 0


@dataclass(frozen=True)
class Asked:
    """The words of the command line; at most one of `pack`, `measure` and `apply`, and then nothing else is done.

    `held` and `near` narrow the candidates, see `candidates.make_pack`.
    """

    family: str | None
    target: str | None = None
    kernels: Sequence[str] = ()
    held: Mapping[str, int | str] = field(default_factory=dict)
    journal: Path | None = None
    pack: Path | None = None
    measure: Path | None = None
    apply: Path | None = None
    near: int = 0


_FROM = {
    "pack": "a pack holds candidates, and shapes are chosen where they are measured",
    "measure": "the pack says it",
    "apply": "the journal says it",
}
#: what each step takes from its file, so that words about it would go unheard
_UNHEARD = {
    "pack": ("journal", "shapes"),
    "measure": ("family", "target", "kernel", "tile", "near"),
    "apply": ("family", "target", "kernel", "tile", "near", "journal", "shapes"),
}


def refuse_contradictions(asked: Asked, wanted: Wanted) -> None:
    """Raises UsageError for steps that exclude each other, and for words that a step would not heed."""
    steps = [step for step in _UNHEARD if getattr(asked, step)]
    if len(steps) > 1:
        raise UsageError(f"--{steps[0]} and --{steps[1]} exclude each other")
    said = {
        "family": asked.family,
        "target": asked.target,
        "kernel": asked.kernels,
        "tile": asked.held,
        "near": asked.near,
        "journal": asked.journal,
        "shapes": wanted.groups or wanted.sizes or wanted.options,
    }
    for step in steps:
        for name in _UNHEARD[step]:
            if said[name]:
                what = name if name in ("family", "shapes") else f"--{name}"
                raise UsageError(f"--{step} takes no {what}", remedy=f"leave it out: {_FROM[step]}")
