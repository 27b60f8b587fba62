"""One call of an op with known results: what tests, `verify`, benchmarks and the card's script all build.

A family's cases live in `dsv4gen.reference.<family>_cases`, which offers `verification_cases(full)`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


class Case(Protocol):
    """A call and its judge."""

    @property
    def name(self) -> str:
        """What the case is, in a few words."""

    @property
    def op(self) -> str:
        """The op to call."""

    @property
    def options(self) -> Mapping[str, str]:
        """Compile-time options; absent ones take their default."""

    @property
    def arguments(self) -> Mapping[str, object]:
        """Tensors (CPU, outputs poisoned) and numbers by name."""

    @property
    def rows(self) -> Sequence[Mapping[str, int]]:
        """Per-row axes as the device computes them, for row path coverage; empty where no kernel branches on rows."""

    def fresh(self) -> Case:
        """The same call with outputs poisoned again, for another run."""

    def check(self) -> None:
        """Judge what the call wrote.

        Raises:
            VerifyError: the first difference found.
        """
