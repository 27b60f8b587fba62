"""The card that the scripts in this folder need."""

from __future__ import annotations

import sys

import torch


def require_card() -> None:
    """End with one line and status 2 where torch sees no CUDA card."""
    if torch.version.cuda is None or not torch.cuda.is_available():
        print("needs a CUDA card: torch sees none on this machine", file=sys.stderr)
        sys.exit(2)
