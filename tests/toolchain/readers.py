"""Other people's readers of the same figures: clang's remarks, the assembly's metadata, cuobjdump."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from ruamel.yaml import YAML

REMARKS = ("-Rpass-analysis=kernel-resource-usage",)
_REMARK = re.compile(r"remark:\s+(.+?): (\S+) \[-Rpass-analysis")
_CUOBJDUMP = re.compile(r"Function (\S+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+)")


def remarks(log: str) -> dict[str, dict[str, str]]:
    """The figures of clang's `kernel-resource-usage` remarks by kernel, names and values as printed."""
    kernels: dict[str, dict[str, str]] = {}
    for name, value in _REMARK.findall(log):
        if name == "Function Name":
            current = kernels.setdefault(value, {})
        else:
            current[name] = value
    return kernels


def assembly_metadata(assembly: str) -> dict[str, dict[str, object]]:
    """The `.amdgpu_metadata` block of an assembly text, by kernel."""
    block = assembly.split(".amdgpu_metadata")[1].split(".end_amdgpu_metadata")[0]
    kernels = YAML(typ="safe").load(block.split("---")[1].split("...")[0])["amdhsa.kernels"]
    return {kernel[".name"]: kernel for kernel in kernels}


def cuobjdump(program: str, binary: bytes, folder: Path) -> dict[str, tuple[int, int, int]]:
    """Registers, stack and shared bytes (with the driver's reserve) by kernel."""
    file = folder / "read.cubin"
    file.write_bytes(binary)
    command = [program, "--dump-resource-usage", str(file)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {name: (int(reg), int(stack), int(shared)) for name, reg, stack, shared in _CUOBJDUMP.findall(output)}
