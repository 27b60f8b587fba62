"""A user's mistake in words, numbers and paths ends at once with exit code 2, before anything runs or is written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from dsv4gen.base.errors import OutputError, UsageError
from dsv4gen.base.outputs import require_file, require_folder, write_whole
from dsv4gen.cli import main
from dsv4gen.emit.api import build
from tests.tools import need_module

SHAPE = ("batch=1", "width=9", "k=4")


@pytest.fixture(autouse=True)
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A working folder and a cache of the test's own; no card."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DSV4GEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.delenv("DSV4GEN_TARGET", raising=False)
    return tmp_path


def refused(*words: str, says: str) -> None:
    """The command ends with 2, says so, and leaves nothing behind."""
    before = sorted(Path.cwd().rglob("*"))
    done = CliRunner().invoke(main, list(words))
    assert done.exit_code == 2, (done.output, done.exception)
    assert says in done.output
    assert "Traceback" not in done.output
    assert sorted(Path.cwd().rglob("*")) == before


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("explain tpk -t gfx950", "no family 'tpk' (did you mean 'topk'?)"),
        ("explain topk -t gfx95", "did you mean 'gfx950'?"),
        ("explain topk -t gfx950 --op pick", "has no op 'pick'"),
        ("explain topk -t gfx950 batch=1 widht=9 k=4", "did you mean 'width'?"),
        ("explain topk -t gfx950 batch=1 width=9 k=4000", "k=4000 is outside 1..2048"),
        ("explain topk -t gfx950 batch=1 k=4", "no value for 'width'"),
        ("explain topk -t gfx950", "batch=N, rows of scores; width=N, allocated columns of a row"),
        ("explain topk -t gfx950 batch=1.5 width=9 k=4", "batch='1.5' is not a whole number"),
        ("explain topk -t gfx950 batch=--4 width=9 k=4", "batch='--4' is not a whole number"),
        ("explain topk -t gfx950 batch=² width=9 k=4", "batch='²' is not a whole number"),
        ("explain topk -t gfx950 batch=1 batch=2", "batch is given twice"),
        ("explain topk -t gfx950 mode=dual mode=dual", "mode is given twice"),
        ("explain topk -t gfx950 batch=1 width=9 k=4 mode=pages", "mode='pages' is not one of"),
        ("explain topk -t gfx950 batch", "'batch' is not KEY=VALUE"),
        ("explain topk -t all batch=1 width=9 k=4", "--target all means"),
        ("explain topk -t gfx950,gfx942 batch=1 width=9 k=4", "name one of gfx950, gfx942"),
        ("emulate topk -t all width=9 k=4", "--target all means"),
        ("verify -t gfx950 -f tpk", "did you mean 'topk'?"),
        ("verify -t gfx95", "did you mean 'gfx950'?"),
        ("emulate tpk -t gfx950", "did you mean 'topk'?"),
        ("emulate topk -t gfx950 rows=3", "no size or option 'rows'"),
        ("emulate topk -t gfx950 --op pick width=9 k=4", "no op 'pick'"),
        ("emulate topk -t gfx950 mode=pages", "mode='pages' is not one of indices"),
        ("emulate sparse_decode -t gfx950 --op attends", "no op 'attends' (did you mean 'attend'?)"),
        ("emulate topk -t gfx950 width=900 k=512 --order upwards", "unknown order 'upwards'"),
        ("bench tpk", "did you mean 'topk'?"),
        ("bench topk rows=3", "topk has no axis 'rows'"),
        ("bench topk mod=dual", "no option 'mod' (did you mean 'mode'?)"),
        ("bench topk mode=pages", "mode='pages' is not one of"),
        ("bench topk --list nope", "no list of shapes 'nope'"),
        ("bench topk --peers nope", "no peer 'nope'"),
        ("bench batch=8", "no family 'batch=8'"),
        ("tune tpk", "did you mean 'topk'?"),
        ("tune topk -t gfx950 --kernel nope", "no kernel 'nope'"),
        ("tune topk -t gfx950 --tile nope=3", "no tile dimension 'nope'"),
        ("tune topk -t gfx950 --tile block_threads=7", "block_threads: 256, 512, 1024"),
        ("tune topk -t gfx950 --tile tie_capacity=7", "no topk kernel has a choice of tiles with tie_capacity=7"),
        ("tune topk -t gfx950 --tile tie_capacity=7", "tie_capacity: 512, 1024, 2048"),
        ("tune topk -t gfx950 --tile tie_capacity=7 --tile block_threads=512", "tiles with tie_capacity=7"),
        ("tune topk -t gfx950 --kernel short --tile tie_capacity=512", "tie_capacity: 1024"),
        ("tune topk -t gfx950 --kernel legacy --tile tie_capacity=1024", "tie_capacity: none"),
        ("tune topk -t gfx950 rows=3", "topk has no axis 'rows'"),
        ("tune topk -t gfx950 --list nope", "no list of shapes 'nope'"),
        ("tune topk -t gfx950 mode=pages", "mode='pages' is not one of"),
        ("tune topk -t gfx95", "did you mean 'gfx950'?"),
        ("tune batch=8", "no family given"),
        ("tune topk --apply a.jsonl", "--apply takes no family"),
        ("tune --measure a.pack --kernel select", "--measure takes no --kernel"),
        ("tune topk --pack a.pack width=9", "--pack takes no shapes"),
        ("report nope/topk", "nope"),
        ("report gfx950/tpk", "did you mean 'topk'?"),
        ("report gfx950", "no cell 'gfx950'"),
        ("report -t gfx950 -f tpk", "did you mean 'topk'?"),
        ("report -t gfx95", "did you mean 'gfx950'?"),
        ("schema families", "families"),
        ("new-family 9x", "is not a family name"),
        ("new-family topk", "there is a family topk already"),
        ("new-target gfx950", "is described already"),
        ("new-target gfx951 --like nope", "nope"),
        ("build -t gfx950 --compile --compiler nope", "compiler 'nope' does not compile for gfx950"),
        ("build -t gfx950 --compile --compiler nvrtc", "compiler 'nvrtc' does not compile for gfx950"),
        ("tune topk -t gfx950 --tile block_threads=-1", "block_threads: 256, 512, 1024"),
        ("tune topk -t gfx950 --tile block_threads=x", "is no number"),
    ],
)
def test_words(words: str, says: str) -> None:
    refused(*words.split(), says=says)


@pytest.mark.parametrize(
    "words",
    ["build -t gfx950", "verify -t gfx950", "emulate topk -t gfx950", "bench topk", "tune topk -t gfx950", "report"],
)
def test_a_cache_that_is_no_folder(words: str, own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = own_folder / "file"
    file.write_text("x", encoding="utf-8")
    monkeypatch.setenv("DSV4GEN_CACHE_DIR", str(file))
    refused(*words.split(), says=f"DSV4GEN_CACHE_DIR={file} is not a folder")
    monkeypatch.setenv("DSV4GEN_CACHE_DIR", str(file / "a" / "b"))
    refused(*words.split(), says=f"DSV4GEN_CACHE_DIR={file}/a/b: {file} is not a folder")


NUMBERS = ("nan", "inf", "-inf", "-1", "", "x", "1e999", "9" * 400)


def test_the_list_of_commands_is_not_cut_short() -> None:
    shown = CliRunner().invoke(main, ["--help"], terminal_width=80)
    assert shown.exit_code == 0
    commands = shown.output.partition("Commands:")[2]
    assert "verify" in commands and "..." not in commands


@pytest.mark.parametrize("value", NUMBERS)
@pytest.mark.parametrize(
    "words",
    [
        "bench topk --noise",
        "bench topk --device",
        "tune topk --seconds",
        "tune topk --device",
        "tune topk --jobs",
        "build -t gfx950 --jobs",
        "emulate --hsaco k.hsaco --block",
        "emulate --hsaco k.hsaco --lds",
        "emulate --hsaco k.hsaco --grid",
    ],
)
def test_numbers(words: str, value: str) -> None:
    command = words.split()
    refused(*command, value, says=command[-1])


@pytest.mark.parametrize(
    "words",
    ["bench topk --noise 1.01", "tune topk --seconds 0", "emulate --hsaco k --block 0", "emulate --hsaco k --grid 0"],
)
def test_numbers_at_the_edge(words: str) -> None:
    refused(*words.split(), says=words.split()[-2])


#: flags whose value is a file that will be written
FILES = [
    "bench topk --json",
    "bench topk --plot",
    "tune topk --journal",
    "tune topk -t gfx950 --pack",
    "verify -t gfx950 --out",
]
#: flags whose value is a folder that will be written to
FOLDERS = ["build -t gfx950 --out", "report --html", "new-family abc --folder", "new-target gfx951 --folder"]


@pytest.mark.parametrize("words", [*FILES, *FOLDERS])
def test_an_empty_path(words: str) -> None:
    """It would mean the current folder."""
    refused(*words.split(), "", says=f"{words.split()[-1]} is empty")


def test_an_empty_path_for_the_function() -> None:
    with pytest.raises(UsageError, match="out is empty"):
        build("gfx950", out="")
    assert not list(Path.cwd().iterdir())


@pytest.mark.parametrize("words", FILES)
def test_a_file_that_cannot_be_written(words: str) -> None:
    Path("folder").mkdir()
    Path("file").write_text("x", encoding="utf-8")
    flag = words.split()[-1]
    refused(*words.split(), "folder", says=f"{flag} folder is a folder")
    refused(*words.split(), "file/x.svg", says="file")
    refused(*words.split(), "/dev/null/x.svg", says="/dev/null")
    refused(*words.split(), "/proc/x.svg", says=f"{flag} /proc/x.svg cannot be written")
    refused(*words.split(), "a" * 300 + ".svg", says="cannot be written")
    if "verify" not in words:
        refused(*words.split(), "missing/x.svg", says="there is no folder missing")


@pytest.mark.parametrize("words", FOLDERS)
def test_a_folder_that_cannot_be_written(words: str) -> None:
    Path("file").write_text("x", encoding="utf-8")
    refused(*words.split(), "file", says="file is not a folder")
    refused(*words.split(), "file/x", says="file is not a folder")
    refused(*words.split(), "/proc/x", says=f"{words.split()[-1]} /proc/x cannot be written")


#: files of another kind
OTHER = ("text", "binary")


@pytest.mark.parametrize("words", ["report --bench", "report --verify"])
@pytest.mark.parametrize("what", ["missing", "folder"])
def test_results_that_are_not_there(words: str, what: str) -> None:
    Path("folder").mkdir()
    refused(*words.split(), what, says=f"'{what}'")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("bench topk --compare", "no result of bench"),
        ("tune --measure", "no pack of candidates"),
        ("tune --apply", "journal"),
        ("emulate --kernel x --hsaco", "cannot read"),
    ],
)
@pytest.mark.parametrize("what", ["missing", "folder", *OTHER])
def test_a_file_that_is_none(words: str, says: str, what: str) -> None:
    Path("folder").mkdir()
    Path("text").write_text("hello\n", encoding="utf-8")
    Path("binary").write_bytes(bytes(range(256)))
    refused(*words.split(), what, says=f"{what} has no kernel 'x'" if "--hsaco" in words and what in OTHER else says)


def test_a_plot_of_no_format_is_refused() -> None:
    need_module("matplotlib")
    refused("bench", "topk", "--plot", "a.nope", says=".nope stands for no format")


def test_a_variable_that_names_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSV4GEN_SPECS_DIR", "/no/such/folder")
    refused("list", says="DSV4GEN_SPECS_DIR=/no/such/folder is not a folder")


def test_a_check_of_an_output_leaves_no_trace(tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.write_bytes(b"kept")
    os.utime(old, (1, 1))
    require_file(old, "--json")
    require_file(tmp_path / "new", "--json")
    require_file(tmp_path / "a" / "b", "--json", parents=True)
    require_folder(tmp_path / "a" / "b", "--out")
    require_file(Path("/dev/null"), "--json")
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    assert (old.read_bytes(), old.stat().st_mtime) == (b"kept", 1)
    with pytest.raises(UsageError, match="there is no folder"):
        require_file(tmp_path / "a" / "b", "--json")


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    write_whole(file, b"one")
    link = tmp_path / "link"
    link.symlink_to(file)
    write_whole(link, b"two")
    assert link.is_symlink() and file.read_bytes() == b"two"

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match="No space left"):
        write_whole(file, b"three")
    assert file.read_bytes() == b"two"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "link"]
    write_whole(Path("/dev/null"), b"four")
    assert not Path("/dev/null").is_file()
