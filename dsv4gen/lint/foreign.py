"""Words that have no business in a file: another vendor's, or of a capability the target lacks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Foreign:
    """A pattern, what it is, and when it is foreign."""

    pattern: re.Pattern[str]
    meaning: str


def _words(meaning: str, *patterns: str) -> Foreign:
    return Foreign(re.compile("|".join(patterns)), meaning)


#: never right, on any target
ALWAYS = (
    _words(
        "a preprocessor conditional; the plan decides, not the preprocessor",
        r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif|else)\b",
    ),
    _words("a header; generated kernels include none", r"^[ \t]*#[ \t]*include\b"),
    _words("a wave size that is no constant", r"\bwarpSize\b", r"__AMDGCN_WAVEFRONT_SIZE"),
)

#: right under one dialect only: seen anywhere else they are foreign
DIALECT = {
    "cuda": _words(
        "a CUDA word",
        r"__\w+_sync\b",
        r"\bgriddepcontrol\b",
        r"__grid_constant__",
        r"\bmapa\.",
        r"\bcvt\.rn\b",
        r"\bld\.global\.nc\b",
        r"__cvta_\w+",
        r"__nv\w+",
        r"\bcooperative_groups\b",
    ),
    "hip": _words(
        "a HIP or AMD word",
        r"__builtin_amdgcn_\w+",
        r"__hip_\w+",
        r"\bhip[A-Z]\w+",
        r"\bamdgpu_\w+",
        r"__ballot\b",
        r"__popcll\b",
    ),
    "simt": _words("a host-build word", r"\bsimt_\w+"),
}

#: capability fact -> words that need it
CAPABILITY = {
    "cluster.remote_shared": _words(
        "remote shared memory", r"\bmapa\b", r"shared::cluster", r"\b(?:push|expect_bytes|await_bytes)\("
    ),
    "cluster.barrier": _words("a cluster barrier", r"barrier\.cluster", r"\bcluster_barrier\b"),
    "launch.dependent": _words("programmatic dependent launch", r"\bgriddepcontrol\b"),
}

_NARROW_BALLOT = _words("a ballot narrowed to 32 bits", r"\bu32\s+\w+\s*=\s*__builtin_amdgcn_ballot_w64")
_NARROW_MASK = _words("a 32-bit mask for a 64-bit vote", r"__\w+_sync\(\s*(?:0x[fF]{8}u?\b|\(?unsigned\)?)")


def foreign_words(code: str, dialect: str, facts: Mapping[str, object]) -> Iterator[tuple[int, str, str]]:
    """Each finding as (line, word, why it is foreign here)."""
    rules = [*ALWAYS, *(rule for name, rule in DIALECT.items() if name != dialect)]
    rules += [rule for fact, rule in CAPABILITY.items() if not facts[fact] and dialect != "simt"]
    if dialect == "hip":
        rules += [_NARROW_BALLOT, _NARROW_MASK]
    for number, line in enumerate(code.split("\n"), start=1):
        for rule in rules:
            found = rule.pattern.search(line)
            if found:
                yield number, found.group().strip(), rule.meaning
