"""Inputs of calls that are timed, for `bench` and `tune`: fresh sets that rotate, and a judge on the device.

A family offers them in `dsv4gen.reference.<reference>_bench`, as a function `workload(request)`. Inputs are those of a
running model in size and layout, random in content, and every entry valid; hazards are the business of tests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from dsv4gen.base.errors import ArgumentError, VerifyError, did_you_mean

Arguments = Mapping[str, object]
#: two steps of bfloat16
_STEPS = 2**-6
#: bytes that are compared together, and the part of them that rounding may change
_STRETCH, _DIFFERING = 64, 0.25


@dataclass(frozen=True)
class Request:
    """What is wanted.

    Attributes:
        family, op: what is called.
        shape: axis values, those of the spec's `bench` list or of the command line.
        options: every compile-time option of the family.
        constants: those of the spec.
        device: a torch device.
    """

    family: str
    op: str
    shape: Mapping[str, int]
    options: Mapping[str, str]
    constants: Mapping[str, int]
    device: str

    def sizes(self, *names: str, **defaults: int) -> tuple[int, ...]:
        """Values of the named axes, then of those with a default.

        Raises:
            ArgumentError: an axis without a value, or one that these calls do not have.
        """
        known = (*names, *defaults)
        for name in self.shape:
            if name not in known:
                remedy = f"sizes of {self.op}: {', '.join(known)}"
                raise ArgumentError(f"no size {name!r}{did_you_mean(name, known)}", remedy=remedy)
        missing = [name for name in names if name not in self.shape]
        if missing:
            raise ArgumentError(f"{self.family}.{self.op}: no value for {', '.join(missing)}", remedy="give KEY=VALUE")
        return tuple(self.shape.get(name, defaults.get(name, 0)) for name in known)


@dataclass(frozen=True)
class Call:
    """One call of an op, outputs included."""

    op: str
    arguments: Arguments = field(repr=False)


def agree_exactly(written: Arguments, expected: Arguments) -> None:
    """Outputs hold the same bytes.

    Raises:
        VerifyError: names the output that differs.
    """
    for name, tensor in written.items():
        _require(torch.equal(_bytes(tensor), _bytes(expected[name])), name)


def agree_closely(written: Arguments, expected: Arguments) -> None:
    """Outputs differ by rounding at most: floats by two steps of bfloat16, or as little against the mean magnitude; of
    bytes, such as stored FP8 rows, a quarter of each stretch of 64; anything else not at all.

    Raises:
        VerifyError: names the output that differs.
    """
    for name, tensor in written.items():
        other = expected[name]
        assert isinstance(tensor, torch.Tensor) and isinstance(other, torch.Tensor)
        if tensor.is_floating_point():
            bound = _STEPS * float(other.float().abs().nan_to_num(0, 0, 0).mean())
            _require(torch.allclose(tensor.float(), other.float(), rtol=_STEPS, atol=bound, equal_nan=True), name)
        elif tensor.dtype == torch.uint8:
            differs = (tensor != other).float().flatten()
            padded = torch.nn.functional.pad(differs, (0, -len(differs) % _STRETCH)).view(-1, _STRETCH)
            _require(not bool((padded.mean(1) > _DIFFERING).any()), name)
        else:
            _require(torch.equal(tensor, other), name)


def _require(agree: bool, name: str) -> None:
    if not agree:
        raise VerifyError(f"{name} differs from what the untuned kernel wrote by more than rounding")


def _bytes(tensor: object) -> torch.Tensor:
    assert isinstance(tensor, torch.Tensor)
    return tensor.contiguous().view(torch.uint8)


@dataclass(frozen=True)
class Workload:
    """Calls of one shape.

    Attributes:
        set_bytes: bytes that rotate from set to set, which decides how many sets get past the device's cache.
        make: draws a set and returns its calls in order; the first is the op that was asked for.
        judge: takes the first call's arguments before it and after it, and raises VerifyError where a result is wrong.
        most_sets: sets that are worth their memory.
        agree: takes what a call wrote and what the same call wrote with another tile, and raises VerifyError where
            rounding cannot explain a difference; None where the judge looks at everything.
        unit: what counts of instructions are divided by, and how many of it a call has; no name for nothing.
    """

    set_bytes: int
    make: Callable[[], Sequence[Call]]
    judge: Callable[[Arguments, Arguments], None]
    most_sets: int = 64
    agree: Callable[[Arguments, Arguments], None] | None = agree_closely
    unit: tuple[str, int] = ("", 1)


def unknown_op(request: Request, known: Sequence[str]) -> ArgumentError:
    """The error for an op without inputs."""
    remedy = f"ops with inputs for timing: {', '.join(known)}"
    return ArgumentError(f"{request.family} has no inputs to time {request.op!r}", remedy=remedy)
