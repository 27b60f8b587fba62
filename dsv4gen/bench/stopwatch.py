"""How calls are timed. `Stopwatch` is the protocol, which tests fill with a clock of their own."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Thunk = Callable[[], object]

#: microseconds that one replay should last, so that its start does not count
REPLAY_US = 1500.0
#: calls in a graph at most
MOST_CALLS = 400
#: a graph that walks through all input sets may last that long
LONGEST_US = 20000.0
REPLAYS = 15
WARM_REPLAYS = 3
LOOPS = 9


@dataclass(frozen=True)
class Timing:
    """Microseconds of a call: the median, and half of the range of the middle 80 %, as a part of it."""

    us: float
    spread: float

    @classmethod
    def of(cls, times: Sequence[float]) -> Timing:
        """From times of the same work."""
        ordered = sorted(times)
        cut = len(ordered) // 10
        middle = ordered[cut : len(ordered) - cut]
        median = statistics.median(ordered)
        return cls(median, (middle[-1] - middle[0]) / 2 / median if median else 0.0)


class Stopwatch(Protocol):
    """Times calls. Each method gets calls that do the same on different inputs and gives microseconds for one."""

    def chained(self, calls: Sequence[Thunk]) -> Timing:
        """Calls one after the other in a graph that walks through the inputs, so they overlap as they would in use."""

    def isolated(self, calls: Sequence[Thunk]) -> Timing:
        """As chained, with an empty kernel behind each call, whose own time is taken off: nothing overlaps."""

    def eager(self, calls: Sequence[Thunk]) -> Timing:
        """A loop of plain calls; where it is above chained, the host is the limit."""

    def cache_bytes(self) -> int:
        """Size of the device's last cache, which rotated inputs must exceed."""

    def synchronize(self) -> None:
        """Wait for the device."""


class CudaStopwatch:
    """CUDA and ROCm devices through torch; fewer and shorter replays time in passing."""

    def __init__(self, device: int = 0, replays: int = REPLAYS, replay_us: float = REPLAY_US) -> None:
        import torch

        self._torch: Any = torch
        self._count_of_replays, self._replay_us = replays, replay_us
        self._device = device
        self._nothing = torch.zeros(1, device=f"cuda:{device}")

    def chained(self, calls: Sequence[Thunk]) -> Timing:
        """Replays of a graph."""
        return Timing.of(self._replays(calls, self._count(calls)))

    def isolated(self, calls: Sequence[Thunk]) -> Timing:
        """Graphs with and without the calls; the spread is that of the first."""

        def empty() -> object:
            return self._nothing.add_(0)

        def apart(call: Thunk) -> Thunk:
            return lambda: (call(), empty())

        count = self._count(calls)
        both = Timing.of(self._replays([apart(call) for call in calls], count))
        alone = Timing.of(self._replays([empty], count))
        return Timing(max(both.us - alone.us, 0.0), both.spread)

    def eager(self, calls: Sequence[Thunk]) -> Timing:
        """Events around a loop."""
        count = max(2, self._count(calls))
        times = []
        for _ in range(LOOPS):
            times.append(self._between(lambda: [calls[number % len(calls)]() for number in range(count)]) / count)
        return Timing.of(times)

    def cache_bytes(self) -> int:
        """L2 as the driver reports it."""
        return int(getattr(self._torch.cuda.get_device_properties(self._device), "L2_cache_size", 0))

    def synchronize(self) -> None:
        """Wait for every stream."""
        self._torch.cuda.synchronize(self._device)

    def _count(self, calls: Sequence[Thunk]) -> int:
        """Calls in a graph: a replay lasts long enough, and walks through all inputs where that does not take ages."""
        for call in calls:
            call()
        self.synchronize()
        few = calls[:4]
        rough = max(1.0, self._between(lambda: [call() for call in few]) / len(few))
        count = int(min(max(self._replay_us / rough, 1), MOST_CALLS))
        longest = LONGEST_US * self._replay_us / REPLAY_US
        return max(count, len(calls)) if len(calls) * rough < longest else count

    def _replays(self, calls: Sequence[Thunk], count: int) -> list[float]:
        graph = self._torch.cuda.CUDAGraph()
        with self._torch.cuda.graph(graph):
            for number in range(count):
                calls[number % len(calls)]()
        for _ in range(WARM_REPLAYS):
            graph.replay()
        self.synchronize()
        times = [self._between(graph.replay) / count for _ in range(self._count_of_replays)]
        graph.reset()
        return times

    def _between(self, work: Callable[[], object]) -> float:
        """Microseconds on the device from before to after some work."""
        start, end = (self._torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work()
        end.record()
        self.synchronize()
        return float(start.elapsed_time(end)) * 1e3
