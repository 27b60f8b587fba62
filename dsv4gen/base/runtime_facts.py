"""Names in spec expressions whose values only the running device knows, with the bounds that proofs assume."""

from __future__ import annotations

#: compute units as the vendor's API counts them (WGPs on RDNA); XCDs with an L2 cache of their own
RUNTIME_FACTS = {"units": (1, 1024), "xcds": (1, 64)}
