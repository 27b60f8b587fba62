"""Public packages that can do what a family does, for times beside ours. Each is used where it is installed.

A peer is a module with `version()`, which raises ImportError where the package is missing, and `prepare(request,
calls)`: for each input set a function that does the same as the set's calls, and the tensors it leaves behind, by the
names of our outputs; or None where the package has nothing for the op. A distribution adds one as an entry point:

    [project.entry-points."dsv4gen.peers"]
    name = "package.module"

sglang       its DeepSeek-V4 kernels, called as its own layers call them
flashinfer   its top-k with page table
plain_torch  the op written with torch's functions
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any, Protocol

from dsv4gen.base.errors import UsageError, did_you_mean
from dsv4gen.bench.stopwatch import Thunk
from dsv4gen.reference.workload import Call, Request

GROUP = "dsv4gen.peers"
OWN = {
    "sglang": "dsv4gen.bench.peers.sglang",
    "flashinfer": "dsv4gen.bench.peers.flashinfer",
    "torch": "dsv4gen.bench.peers.plain_torch",
}


@dataclass(frozen=True)
class PeerCalls:
    """A peer's calls, one per input set, and what the first leaves behind: our outputs by name."""

    calls: Sequence[Thunk]
    written: Callable[[], Mapping[str, Any]]


class Peer(Protocol):
    """A module as described above."""

    def version(self) -> str:
        """The package's version."""

    def prepare(self, request: Request, sets: Sequence[Sequence[Call]]) -> PeerCalls | None:
        """Calls that do the same on the same inputs."""


def names() -> tuple[str, ...]:
    """Peers that can be asked for."""
    return (*OWN, *(entry.name for entry in entry_points(group=GROUP) if entry.name not in OWN))


def open_peers(wanted: Sequence[str]) -> tuple[dict[str, Peer], dict[str, str], dict[str, str]]:
    """Peers by name, their versions, and the reasons of those that are not installed.

    Raises:
        UsageError: no such peer.
    """
    found: dict[str, Peer] = {}
    versions: dict[str, str] = {}
    missing: dict[str, str] = {}
    known = names()
    modules = {**{entry.name: entry.value for entry in entry_points(group=GROUP)}, **OWN}
    for name in wanted:
        if name not in known:
            raise UsageError(f"no peer {name!r}{did_you_mean(name, known)}", remedy=f"peers: {', '.join(known)}, none")
        try:
            peer: Any = importlib.import_module(modules[name])
            versions[name] = peer.version()
            found[name] = peer
        except ImportError as error:
            missing[name] = str(error)
    return found, versions, missing
