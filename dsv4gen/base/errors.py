"""The error catalogue: one class per kind of mistake a user can make.

Every error says what is wrong (message), where (place) and the way out (remedy). The command line prints
them without a traceback and exits with `exit_status`: 0 fine, 1 drift or findings, 2 usage, 3 failure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

EXIT_FINDINGS = 1
EXIT_USAGE = 2
EXIT_FAILURE = 3


@dataclass(frozen=True, order=True)
class Place:
    """A position in a file a user can open; line and column count from 1."""

    file: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)


class DsvError(Exception):
    """Base of all errors the product raises on purpose."""

    code: ClassVar[str] = "DSV000"
    exit_status: ClassVar[int] = EXIT_FAILURE

    def __init__(self, message: str, *, place: Place | None = None, remedy: str = "") -> None:
        self.message = message
        self.place = place
        self.remedy = remedy
        super().__init__(str(self))

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        way_out = f"\n  remedy: {self.remedy}" if self.remedy else ""
        return f"{where}{self.message}{way_out}"


class UsageError(DsvError):
    """A flag, word or option of a command that does not exist or does not fit."""

    code = "DSV010"
    exit_status = EXIT_USAGE


class UnknownTarget(UsageError):
    """A target id that no platform record describes."""

    code = "DSV011"


class EnvironmentValueError(UsageError):
    """An environment variable with a value its declaration does not allow."""

    code = "DSV012"


class SpecError(DsvError):
    """A mistake in a YAML file: syntax, type, unknown or missing key, wrong value."""

    code = "DSV100"
    exit_status = EXIT_USAGE


class ExpressionError(SpecError):
    """A spec expression outside the allowed language, or one with an unknown name."""

    code = "DSV110"


class ProofError(SpecError):
    """A spec that is well formed but wrong: a tile that cannot fit, a gap, a dead path, a narrow index."""

    code = "DSV120"


class TemplateError(DsvError):
    """A template that cannot be loaded or rendered; the place is the template's line."""

    code = "DSV200"


class LintError(DsvError):
    """Rendered text with a foreign token, a vendor conditional, or text that does not parse."""

    code = "DSV210"


class OutputError(DsvError):
    """An output folder that cannot be written, or that holds files we did not make."""

    code = "DSV300"


class ManifestError(DsvError):
    """A manifest that is missing, of another schema, or that its files contradict."""

    code = "DSV320"


class ResultsError(DsvError):
    """A file of verification or benchmark results that is missing, no such file, or of another schema."""

    code = "DSV330"
    exit_status = EXIT_USAGE


class ToolMissing(DsvError):
    """A compiler or library that a step needs and that this machine lacks."""

    code = "DSV400"


class CompileError(DsvError):
    """A compiler that refused generated text or died; the place is the template's line when known."""

    code = "DSV410"


class ResourceError(DsvError):
    """A compiled kernel outside its budget: spills, registers, shared memory."""

    code = "DSV420"


class EmulationError(DsvError):
    """A kernel that misbehaved on an emulator: out of bounds, race, divergence, unknown instruction."""

    code = "DSV500"


class VerifyError(DsvError):
    """A kernel whose results differ from the reference."""

    code = "DSV510"
    exit_status = EXIT_FINDINGS


class LoadError(DsvError):
    """No kernel could be selected or loaded; the message lists each candidate and why it was rejected."""

    code = "DSV600"


class UnknownName(LoadError):
    """A family or an op that is not among those that are generated."""

    code = "DSV601"
    exit_status = EXIT_USAGE


class ArgumentError(DsvError):
    """A tensor or scalar argument a kernel cannot take: dtype, shape, stride, alignment, device."""

    code = "DSV610"
    exit_status = EXIT_USAGE


class CaptureError(DsvError):
    """Work that would break a graph capture in progress."""

    code = "DSV620"


class DriverError(DsvError):
    """A GPU driver call that failed."""

    code = "DSV630"


class Problems(DsvError):
    """Several errors found in one pass, reported together."""

    def __init__(self, errors: Iterable[DsvError]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(str(error) for error in self.errors))

    @property
    def exit_code(self) -> int:
        """The most severe exit status among the errors."""
        return max(error.exit_status for error in self.errors)


def raise_all(errors: Iterable[DsvError]) -> None:
    """Raise the single error, or all of them as `Problems`; return when there is none.

    The same mistake found from several sides is reported once.
    """
    found = list({(error.code, str(error)): error for error in errors}.values())
    if len(found) == 1:
        raise found[0]
    if found:
        raise Problems(found)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint such as " (did you mean 'has_cluster'?)", or an empty string."""
    from difflib import get_close_matches

    close = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" (did you mean '{close[0]}'?)" if close else ""
