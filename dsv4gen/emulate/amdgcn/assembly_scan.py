"""Split assembly text into functions, constant data, descriptors and metadata, without looking at instructions.

A file may hold many kernels and hundred thousands of lines, and each kernel is read by itself: the split is made
once per text and kept.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from dsv4gen.base.errors import CompileError
from dsv4gen.emulate.amdgcn.data_section import DataSection

LABEL = re.compile(r'\s*(?:"([^"]+)"|([.$\w]+)):')
_FUNCTION = re.compile(r"\.(?:type\s+([.$\w]+)\s*,\s*@function|amdhsa_kernel\s+([.$\w]+))")
_FILE = re.compile(r'(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?')
_DATA_SECTIONS = (".rodata", ".data", ".bss", ".AMDGPU.constants")


@dataclass(frozen=True)
class Assembly:
    """A text in parts. `functions` maps a name to its lines: (number, text) pairs; `descriptors` a kernel to its
    `.amdhsa_*` values; `files` debug file numbers to names."""

    target: str
    functions: Mapping[str, list[tuple[int, str]]]
    descriptors: Mapping[str, Mapping[str, str]]
    metadata: Mapping[str, object]
    data: DataSection
    files: Mapping[str, str]

    def functions_of(self, kernel: str) -> list[list[tuple[int, str]]]:
        """The lines of a kernel and of every function it may call: all that are no kernels."""
        return [lines for name, lines in self.functions.items() if name == kernel or name not in self.descriptors]


@dataclass
class _Scanner:
    names: frozenset[str]
    functions: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    descriptors: dict[str, dict[str, str]] = field(default_factory=dict)
    data: DataSection = field(default_factory=DataSection)
    metadata: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    target: str = ""
    section: str = "text"  # text, data or skipped
    mode: str = ""  # "", "metadata", or the kernel whose descriptor is being read
    function: str = ""


@functools.lru_cache(maxsize=4)
def scan_assembly(text: str) -> Assembly:
    """The parts of an assembly file.

    Raises:
        CompileError: not AMD assembly, or without metadata.
    """
    names = frozenset(first or second for first, second in _FUNCTION.findall(text))
    scanner = _Scanner(names)
    for number, line in enumerate(text.splitlines(), start=1):
        _scan_line(scanner, line, number)
    if not scanner.target:
        raise CompileError("no .amdgcn_target: not AMD assembly text")
    return Assembly(
        scanner.target,
        scanner.functions,
        scanner.descriptors,
        _parse_metadata("\n".join(scanner.metadata)),
        scanner.data,
        scanner.files,
    )


def _scan_line(scanner: _Scanner, line: str, number: int) -> None:
    if scanner.mode == "metadata":
        if ".end_amdgpu_metadata" in line:
            scanner.mode = ""
        else:
            scanner.metadata.append(line)
        return
    body = line.lstrip()
    if body.startswith(".") and not body.startswith(".L"):
        name, _, arguments = without_comment(body).replace("\t", " ").partition(" ")
        if _scan_directive(scanner, name, arguments.strip()):
            return
    if scanner.section == "text":
        _scan_code(scanner, line, number)
    elif scanner.section == "data":
        _scan_data(scanner, line)


def _scan_directive(scanner: _Scanner, name: str, arguments: str) -> bool:
    """Apply a directive that concerns the whole file; False for those that belong to code or data."""
    if name == ".end_amdhsa_kernel":
        scanner.mode = ""
    elif scanner.mode:
        scanner.descriptors[scanner.mode][name] = arguments
    elif name == ".amdhsa_kernel":
        scanner.mode = arguments
        scanner.descriptors[arguments] = {}
    elif name == ".amdgpu_metadata":
        scanner.mode = "metadata"
    elif name == ".amdgcn_target":
        scanner.target = arguments.strip('"')
    elif name in (".text", ".data", ".bss"):
        scanner.section = "text" if name == ".text" else "data"
    elif name == ".section":
        scanner.section = _section_kind(arguments)
    elif name == ".file":
        _remember_file(scanner, arguments)
    else:
        return False
    return True


def _section_kind(arguments: str) -> str:
    name = arguments.split(",")[0].strip().strip('"')
    if name.startswith(".text"):
        return "text"
    return "data" if name.startswith(_DATA_SECTIONS) else "skipped"


def _remember_file(scanner: _Scanner, arguments: str) -> None:
    match = _FILE.match(arguments)
    if match:
        scanner.files[match[1]] = match[3] or match[2]


def _scan_code(scanner: _Scanner, line: str, number: int) -> None:
    if line[:1] not in ("", "\t", " ", ";", "#"):
        label = LABEL.match(line)
        name = (label[1] or label[2]) if label else ""
        if name in scanner.names:
            scanner.function = name
            scanner.functions[name] = []
    if scanner.function:
        scanner.functions[scanner.function].append((number, line))


def _scan_data(scanner: _Scanner, line: str) -> None:
    code = without_comment(line)
    label = LABEL.match(code)
    if label:
        scanner.data.label(label[1] or label[2])
        code = code[label.end() :]
    name, _, arguments = code.strip().replace("\t", " ").partition(" ")
    if name.startswith("."):
        scanner.data.directive(name, arguments.strip())


def without_comment(line: str) -> str:
    """The line up to `;` or `//`, both outside quotes."""
    if ";" not in line and "//" not in line:
        return line
    if '"' not in line:
        return line.split(";", 1)[0].split("//", 1)[0]
    quoted = False
    for position, character in enumerate(line):
        if character == '"':
            quoted = not quoted
        elif not quoted and (character == ";" or line.startswith("//", position)):
            return line[:position]
    return line


def _parse_metadata(text: str) -> Mapping[str, object]:
    from ruamel.yaml import YAML

    loaded = YAML(typ="safe", pure=True).load(text.replace("\t", " "))
    if not isinstance(loaded, Mapping):
        raise CompileError("the assembly text has no .amdgpu_metadata block")
    return loaded
