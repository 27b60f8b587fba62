"""`dsv4gen doctor`: the tools and devices of this machine, what each is for, and how to get what is missing."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass


@dataclass(frozen=True)
class Health:
    """One tool or device."""

    name: str
    found: str
    used_for: str
    remedy: str

    def cells(self) -> tuple[str, str, str, str]:
        """The row of the printed table."""
        return self.name, self.found or "missing", self.used_for, "" if self.found else self.remedy


def diagnose() -> list[Health]:
    """Everything a command may need, found or not."""
    from dsv4gen.toolchain import find_tools

    rows = [Health(tool.name, tool.found, tool.used_for, tool.remedy) for tool in find_tools()]
    return [*rows, *(_module(*entry) for entry in _MODULES), _extension(), _device()]


_MODULES = (
    ("torch", "reference results, running kernels", "pip install 'dsv4gen[runtime]'"),
    ("triton", "compiling and running the Triton families", "pip install 'dsv4gen[runtime]'"),
)


def _module(name: str, used_for: str, remedy: str) -> Health:
    if importlib.util.find_spec(name) is None:
        return Health(name, "", used_for, remedy)
    from importlib.metadata import version

    return Health(name, version(name), used_for, remedy)


def _extension() -> Health:
    used_for = "host time of calls like an earlier one; the same without it, a microsecond later"
    if importlib.util.find_spec("torch") is None:
        return Health("extension", "", used_for, "install torch to use it")
    from dsv4gen.runtime import native

    found = native.find()
    return Health("extension", native.NAME if found.module else "", used_for, found.reason)


def _device() -> Health:
    used_for = "running kernels; building and verifying need none"
    if importlib.util.find_spec("torch") is None:
        return Health("GPU", "", used_for, "install torch to look for one")
    import torch

    if not torch.cuda.is_available():
        return Health("GPU", "", used_for, "none visible to torch")
    names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return Health("GPU", ", ".join(names), used_for, "")
