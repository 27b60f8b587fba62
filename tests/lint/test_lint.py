"""Every line of an output is live on its target: foreign words, vendor conditionals, text that does not parse."""

from __future__ import annotations

import pytest

from dsv4gen.lint import check_file
from dsv4gen.lint.tokens import code_only
from dsv4gen.render import RenderedFile, SourceMap

FACTS = {"cluster.remote_shared": False, "cluster.barrier": False, "launch.dependent": False}


def findings(text: str, dialect: str = "hip", **facts: bool) -> list[str]:
    origins = tuple(("t.jinja", number) for number in range(1, text.count("\n") + 2))
    suffix = {"hip": ".hip", "cuda": ".cu", "python": ".py"}[dialect]
    file = RenderedFile(f"x{suffix}", text, dialect, SourceMap("x", origins))
    merged = {**FACTS, **{name.replace("__", "."): value for name, value in facts.items()}}
    return [f"{error.place}: {error.message}" for error in check_file(file, merged)]


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("u32 v = __shfl_sync(0xffffffff, x, 0);", "__shfl_sync"),
        ("int w = warpSize;", "warpSize"),
        ("#ifdef USE_ROCM", "#ifdef"),
        ("  # if 1", "# if"),
        ("#include <hip/hip_runtime.h>", "#include"),
        ('asm volatile("barrier.cluster.arrive;");', "barrier.cluster"),
        ('asm volatile("mapa.shared::cluster.u32 %0, %1, %2;");', "mapa"),
        ("u32 low = __builtin_amdgcn_ballot_w64(p);", "ballot"),
        ("griddepcontrol_wait(); griddepcontrol", "griddepcontrol"),
    ],
)
def test_foreign_words_in_hip_are_found_at_the_template_line(line: str, word: str) -> None:
    found = findings(f"int a;\n{line}\n")
    assert found
    assert found[0].startswith("templates/t.jinja:2: ")
    assert word in found[0]


@pytest.mark.parametrize(
    "line", ["u64 b = __builtin_amdgcn_ballot_w64(p);", "__hip_atomic_fetch_add(p, 1, 0, 0);", "hipError_t e;"]
)
def test_amd_words_are_foreign_in_cuda_only(line: str) -> None:
    assert findings(f"{line}\n", "cuda")
    assert not findings(f"{line}\n", "hip")


def test_cluster_words_need_the_capability() -> None:
    text = 'asm volatile("barrier.cluster.arrive.release;");\n'
    assert findings(text, "cuda")
    assert not findings(text, "cuda", cluster__barrier=True, cluster__remote_shared=True)


def test_words_in_comments_and_strings_are_no_code() -> None:
    assert not findings('// warpSize and __shfl_sync\n/* #if\n*/ const char* s = "warpSize";\n')
    assert code_only("a /* b\n */ c // d\n").split() == ["a", "c"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("void f() { (a]; }\n", "closes nothing"),
        ("void f() {\n", "never closed"),
        ("constexpr int kW = ;\n", "rendered to nothing"),
        ("f(a, );\n", "rendered to nothing"),
    ],
)
def test_broken_cpp_is_found(text: str, words: str) -> None:
    assert words in findings(text)[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def f(:\n", "not Python"),
        ("x = undefined_name\n", "'undefined_name' is not defined"),
        ("def f():\n    return hidden\n", "'hidden' is not defined"),
    ],
)
def test_broken_python_is_found(text: str, words: str) -> None:
    assert words in findings(text, "python")[0]


def test_right_python_passes() -> None:
    assert not findings(
        "import os\nX = [y for y in range(3)]\ndef f(a):\n    b = a\n    return lambda: b + len(X) + os.sep\n", "python"
    )
