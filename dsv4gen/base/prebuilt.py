"""Code objects compiled ahead of time, beside the generated sources: their names and the record that ties both.

`<family>.<arch>.cubin` or `.hsaco` holds every kernel of the family for one architecture, and
`<family>.<arch>.json` says what it was compiled from. Neither is in the manifest, which knows no toolchain; the
record's digest of the source is what makes a code object of an older source visible.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from dsv4gen.base.manifest import digest_bytes

SUFFIX = {"cuda": "cubin", "hip": "hsaco"}


@dataclass(frozen=True)
class Record:
    """What a prebuilt code object was made from: SHA-256 of the source and of the object, and by what."""

    source: str
    binary: str
    compiler: str


def binary_name(family: str, arch: str, api: str) -> str:
    """File name of a prebuilt code object."""
    return f"{family}.{arch}.{SUFFIX[api]}"


def record_name(family: str, arch: str) -> str:
    """File name of its record."""
    return f"{family}.{arch}.json"


def record_text(source: bytes, binary: bytes, compiler: str) -> str:
    """The record as written beside a code object; `compiler` is a version text."""
    record = Record(digest_bytes(source), digest_bytes(binary), compiler)
    return json.dumps(asdict(record), sort_keys=True, indent=1) + "\n"


def read_record(folder: Path, family: str, arch: str) -> Record | None:
    """The record of a code object, or None when there is none that can be read."""
    try:
        data = json.loads((folder / record_name(family, arch)).read_text(encoding="utf-8"))
        return Record(data["source"], data["binary"], data["compiler"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
