"""One parser for every spelling of a GPU target, and the rules of which code runs on which device.

Spellings: HIP names with target-id features (`gfx942:sramecc+:xnack-`), CUDA names (`sm_90a`, `compute_90`),
compute capabilities (`9.0`, `10.0+PTX`, `12.0f`, `90`), in any case, alone or in lists separated by `;`, `,`
or blanks. Features, suffix and PTX are kept as fields, never compared as text. Strings that name something
other than one device (`gfx11-generic`, `gfx950-dcgpu`, `native`, `Hopper`) are refused with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from dsv4gen.base.errors import UnknownTarget, UsageError, did_you_mean

_GFX = re.compile(r"gfx\d{1,2}\d[0-9a-f]", re.ASCII)
_FEATURE = re.compile(r"([a-z0-9]+)([+-])", re.ASCII)
_CUDA_NAME = re.compile(r"(sm_?|compute_?)?(\d{1,2})(\d)([af]?)(\+ptx)?", re.ASCII)
_CAPABILITY = re.compile(r"(\d{1,2})\.(\d)([af]?)(\+ptx)?", re.ASCII)
_LONG_MINOR = re.compile(r"\d+\.\d{2,}[af]?(\+ptx)?", re.ASCII)

#: What the ROCm device list prints for the CPU; never a GPU.
_NO_GPU = "gfx000"

#: Architecture families people name, and the targets they may mean.
_MARKETING = {
    "ampere": "sm_80",
    "ada": "sm_89",
    "lovelace": "sm_89",
    "hopper": "sm_90",
    "blackwell": "sm_100 or sm_120",
    "cdna2": "gfx90a",
    "cdna3": "gfx942",
    "cdna4": "gfx950",
    "rdna3": "gfx1100",
    "rdna4": "gfx1201",
}


@dataclass(frozen=True, order=True)
class TargetId:
    """One GPU architecture as a value.

    Attributes:
        arch: `gfx942`, `sm_90`: without features or suffix.
        features: HIP target-id features that are fixed on or off, sorted by name; one left out means either.
        suffix: `a` (this exact device) or `f` (this family) of a CUDA name, else empty.
        ptx: the CUDA name asks for PTX beside or instead of machine code.
    """

    arch: str
    features: tuple[tuple[str, bool], ...] = ()
    suffix: str = ""
    ptx: bool = False

    @property
    def api(self) -> str:
        """`hip` or `cuda`."""
        return "hip" if self.arch.startswith("gfx") else "cuda"

    @property
    def capability(self) -> tuple[int, int]:
        """Compute capability of a CUDA id; major and minor ISA version of a HIP id, as torch reports it."""
        digits = self.arch[3:]
        cut = -1 if self.api == "cuda" else -2
        return int(digits[:cut]), int(digits[cut])

    def __str__(self) -> str:
        switches = "".join(f":{name}{'+' if on else '-'}" for name, on in self.features)
        return f"{self.arch}{self.suffix}{switches}{'+PTX' if self.ptx else ''}"


def parse(text: str, known: Iterable[str] = ()) -> TargetId:
    """The id that one word spells.

    Raises:
        UnknownTarget: not a spelling of one device; says why and, if given, lists the known targets.
    """
    word = text.strip().lower()
    found = _parse_gfx(word) if word.startswith("gfx") and word != _NO_GPU else _parse_cuda(word)
    if isinstance(found, TargetId):
        return found
    raise unknown(f"'{text}' is not a GPU target: {found or _reason(word)}", text, known)


def parse_list(text: str, known: Iterable[str] = ()) -> tuple[TargetId, ...]:
    """All ids of a list in the order given; `gfx000`, which stands for a CPU, is left out.

    Raises:
        UnknownTarget: a word that `parse` refuses.
        UsageError: a target that the list names twice.
    """
    found: dict[TargetId, str] = {}
    for word in re.split(r"[;,\s]+", text):
        if not word or word.lower() == _NO_GPU:
            continue
        one = parse(word, known)
        if one in found:
            raise UsageError(f"the list '{text}' names {one} twice: '{found[one]}' and '{word}'")
        found[one] = word
    return tuple(found)


def from_device(hip_version: str | None, capability: tuple[int, int], gcn_arch_name: str) -> TargetId:
    """The id of a running device, from torch's `version.hip`, `get_device_capability()` and `gcnArchName`.

    `hip_version` decides first: capability (9, 0) is both gfx90a and sm_90, and on CUDA builds `gcnArchName`
    is the product's marketing name.

    Raises:
        UnknownTarget: a HIP build whose device has no architecture name.
    """
    if hip_version is None:
        major, minor = capability
        return TargetId(f"sm_{major}{minor}")
    return parse(gcn_arch_name)


def runs_on(code: TargetId, device: TargetId) -> bool:
    """Whether machine code or PTX built for `code` may be loaded on `device`.

    HIP: the same architecture, and every feature the code fixes has that state on the device. CUDA: `a` on
    exactly that device; `f` and plain machine code on the same major version from that minor version up;
    plain PTX on any newer device.
    """
    if code.api != device.api:
        return False
    if code.api == "hip":
        return code.arch == device.arch and set(code.features) <= set(device.features)
    if code.suffix == "a":
        return code.arch == device.arch
    if code.ptx and not code.suffix:
        return device.capability >= code.capability
    return code.capability[0] == device.capability[0] and code.capability[1] <= device.capability[1]


def unknown(message: str, word: str, known: Iterable[str]) -> UnknownTarget:
    """An UnknownTarget that lists the known targets."""
    names = list(known)
    remedy = f"known targets: {', '.join(names)}" if names else ""
    return UnknownTarget(f"{message}{did_you_mean(word.strip().lower(), names)}", remedy=remedy)


def _parse_gfx(word: str) -> TargetId | str:
    """The id, or the reason why there is none."""
    arch, *switches = word.split(":")
    if arch.endswith("-generic"):
        return "a generic code object runs on several devices; name one of them"
    if re.search(r"-(dcgpu|dgpu|igpu|all)$", arch):
        return "this names a family of packages; name one device"
    if not _GFX.fullmatch(arch):
        return f"'{arch}' is not an architecture name such as gfx942"
    features: dict[str, bool] = {}
    for switch in switches:
        match = _FEATURE.fullmatch(switch)
        if match is None:
            return f"'{switch}' is not a feature such as xnack- or sramecc+"
        name, sign = match.groups()
        if name in features:
            return f"the feature {name} is given twice"
        features[name] = sign == "+"
    return TargetId(arch, tuple(sorted(features.items())))


def _parse_cuda(word: str) -> TargetId | None:
    named = _CUDA_NAME.fullmatch(word)
    if named:
        prefix, major, minor, suffix, ptx = named.groups()
        virtual = bool(prefix) and prefix.startswith("compute")
        return TargetId(f"sm_{int(major)}{minor}", suffix=suffix, ptx=bool(ptx) or virtual)
    numbered = _CAPABILITY.fullmatch(word)
    if numbered:
        major, minor, suffix, ptx = numbered.groups()
        return TargetId(f"sm_{int(major)}{minor}", suffix=suffix, ptx=bool(ptx))
    return None


def _reason(word: str) -> str:
    if not word:
        return "it is empty"
    if word == _NO_GPU:
        return "gfx000 stands for a CPU"
    if word in ("native", "auto"):
        return "leave the target out to use the device in this machine"
    if word in _MARKETING:
        return f"it names a family of devices; write {_MARKETING[word]}"
    if _LONG_MINOR.fullmatch(word):
        return "a compute capability has one digit after the point"
    return "expected a name such as gfx942, sm_90 or 9.0"
