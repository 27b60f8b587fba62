"""Workspaces for a call on an oracle: as the spec says they begin, between guard bytes, and judged afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from dsv4gen.base.errors import VerifyError
from dsv4gen.base.expression_json import evaluate_json
from dsv4gen.reference.hazards import Poisoned, poisoned
from dsv4gen.runtime.call_table import CallTable, WorkspaceRule


@dataclass(frozen=True)
class Spaces:
    """The workspaces that one path uses, by argument name; those of other paths are absent."""

    rules: Mapping[str, WorkspaceRule]
    made: Mapping[str, Poisoned]

    @classmethod
    def of(cls, table: CallTable, path: str, names: Mapping[str, int]) -> Spaces:
        """Just as many bytes as the size expressions say: zero where that is the rule, a pattern elsewhere."""
        rules = {rule.name: rule for rule in table.workspaces if path in rule.paths}
        made = {name: poisoned((int(evaluate_json(r.bytes, names)),), torch.uint8) for name, r in rules.items()}
        for name, space in made.items():
            if rules[name].init == "zero":
                space.tensor.zero_()
        return cls(rules, made)

    @property
    def arguments(self) -> dict[str, Tensor]:
        """The tensors to pass."""
        return {name: space.tensor for name, space in self.made.items()}

    def check(self, what: str) -> None:
        """Judge what a call left.

        Raises:
            VerifyError: a byte outside changed, or one inside is not zero where the spec promises that.
        """
        for name, space in self.made.items():
            space.check_surroundings(f"{what}: {name}")
            left = int((space.tensor != 0).sum()) if self.rules[name].restore == "zero" else 0
            if left:
                first = int(space.tensor.nonzero()[0])
                raise VerifyError(f"{what}: {left} bytes of {name} are not zero again, first at byte {first}")
