"""Executables on the disk: other processes find them, and damaged ones do not change results."""

import json
import os
import shutil
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import nxla as nx
from nxla.__main__ import main
from where import on_cpu

#: A program with kernels, a hook and a Python call, which prints the report of the folder.
PROGRAM = """
import json, sys
import nxla as nx
seen = []
def f(x):
    x = nx.hook(nx.sort(x, axis=1), "sorted")
    y = nx.runtime_call(lambda v: v * 2, nx.template((4, 300)), x)
    count = nx.fori(0, 3, lambda i, s: s + 1, 0)
    return nx.linalg.cholesky(y @ y.T + 300 * nx.eye(4)).sum() + count
x = nx.reshape(nx.iota(1200, dtype="f32"), (4, 300)) / 1000
result = nx.jit(f, compiler="xla", hooks={"sorted": lambda v: seen.append(v.tolist()[0][1])})(x)
print(json.dumps([result.item(), seen, nx.disk_cache_report()]))
"""


def run(folder, program=PROGRAM):
    """Run a program in another process with a folder; return its output."""
    environment = {**os.environ, "NXLA_CACHE_DIR": str(folder)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def files(folder):
    return sorted(Path(folder).glob("*.nxlaexec"))


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "cache"


_numbers = iter(range(1_000_000))


def compute(folder, **options):
    """Compile a new program; return the change of the report and the number in the program."""
    number = float(next(_numbers)) + 0.5
    return recompile(folder, number, **options), number


def recompile(folder, number, **options):
    before = nx.disk_cache_report()
    nx.set_cache_limit(0)
    try:
        f = nx.jit(lambda x: x * 3 + number, compiler="xla", cache_dir=folder, **options)
        assert f(2.0).item() == 6 + number
    finally:
        nx.set_cache_limit(512 << 20)
    after = nx.disk_cache_report()
    names = ("hits", "misses", "stored", "failed")
    return {name: after[name] - before[name] for name in names if after[name] != before[name]}


def test_processes_share_compiled_programs(folder):
    first = run(folder)
    assert first[2]["stored"] == first[2]["misses"] > 0
    second = run(folder)
    assert second[:2] == first[:2]
    assert second[2]["misses"] == second[2]["failed"] == second[2]["stored"] == 0
    assert second[2]["hits"] == first[2]["misses"]


def test_keys_depend_on_options_and_not_on_source_lines(folder):
    assert compute(folder)[0] == {"misses": 1, "stored": 1}
    number = 0.125
    assert recompile(folder, number) == {"misses": 1, "stored": 1}
    before = nx.disk_cache_report()["hits"]
    nx.set_cache_limit(0)
    nx.set_cache_limit(512 << 20)

    f = nx.jit(lambda y: y * 3 + number, compiler="xla", cache_dir=folder)
    assert f(2.0).item() == 6.125
    assert nx.disk_cache_report()["hits"] == before + 1
    flags = {"xla_cpu_enable_fast_math": True}
    assert recompile(folder, number, **flags) == {"misses": 1, "stored": 1}


def test_no_folder_is_used_by_default(folder, monkeypatch):
    monkeypatch.delenv("NXLA_CACHE_DIR", raising=False)
    assert compute("")[0] == {}
    monkeypatch.setenv("NXLA_CACHE_DIR", str(folder))
    assert compute("")[0] == {}
    assert not folder.exists()
    before = nx.disk_cache_report()["stored"]
    assert nx.jit(lambda x: x * 3.0625, compiler="xla")(2.0).item() == 6.125
    assert nx.disk_cache_report()["stored"] == before + 1
    assert len(files(folder)) == 1


def test_a_tilde_is_the_home_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert compute("~/cache")[0] == {"misses": 1, "stored": 1}
    assert len(files(tmp_path / "cache")) == 1
    assert run("~/cache")[2]["stored"] == len(files(tmp_path / "cache")) - 1
    assert main(["cache", "--dir=~/cache"]) == 0
    assert f"{len(files(tmp_path / 'cache'))} executables" in capsys.readouterr().out


def test_cache_dir_accepts_path_objects(folder):
    assert compute(Path(folder))[0] == {"misses": 1, "stored": 1}
    assert folder.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: b"something else",
        lambda data: data[: len(data) // 2],
        lambda data: data[:-5] + bytes(byte ^ 255 for byte in data[-5:]),
        lambda data: data[:200] + bytes([data[200] ^ 1]) + data[201:],
    ],
    ids=["empty", "foreign", "cut", "end", "bit"],
)
def test_damaged_files_are_replaced(folder, damage):
    _, number = compute(folder)
    (file,) = files(folder)
    data = file.read_bytes()
    file.write_bytes(damage(data))
    assert recompile(folder, number) == {"misses": 1, "stored": 1, "failed": 1}
    assert recompile(folder, number) == {"hits": 1}
    assert str(file) in nx.disk_cache_report()["last_failure"]


def test_files_of_other_programs_are_not_used(folder):
    _, first = compute(folder)
    (file,) = files(folder)
    _, second = compute(folder)
    (other,) = set(files(folder)) - {file}
    other.write_bytes(file.read_bytes())
    assert recompile(folder, second) == {"misses": 1, "stored": 1, "failed": 1}
    assert recompile(folder, first) == {"hits": 1}


def test_a_deleted_folder_is_recreated(folder):
    _, number = compute(folder)
    shutil.rmtree(folder)
    assert recompile(folder, number) == {"misses": 1, "stored": 1}
    assert recompile(folder, number) == {"hits": 1}


def test_an_invalid_folder_does_not_affect_results(tmp_path):
    occupied = tmp_path / "file"
    occupied.write_text("not a folder")
    report, number = compute(occupied)
    assert report["misses"] == 1
    assert report["failed"] >= 1
    assert "stored" not in report
    assert recompile(occupied, number)["misses"] == 1
    assert occupied.read_text() == "not a folder"


def test_a_read_only_folder_is_read(folder):
    _, number = compute(folder)
    folder.chmod(0o500)
    try:
        assert recompile(folder, number)["hits"] == 1
        report = compute(folder)[0]
        # Root can write in any case.
        assert report["misses"] == 1
        assert report.get("stored", 0) + report.get("failed", 0) == 1
    finally:
        folder.chmod(0o700)


@on_cpu
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="requires /dev/full")
def test_a_full_disk_leaves_no_partial_files(folder):
    # A limit on the size of files simulates a full disk.
    program = """
    import resource, signal, sys, json
    import nxla as nx
    nx.jit(lambda x: x + 1, compiler="xla")(1.0)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
    f = nx.jit(lambda x: x * 5.75, compiler="xla")
    print(json.dumps([f(2.0).item(), nx.disk_cache_report()]))
    """
    result, report = run(folder, textwrap.dedent(program))
    assert (result, report["stored"], report["failed"]) == (11.5, 1, 1)
    assert sorted(os.listdir(folder)) == sorted([files(folder)[0].name, "secret"])


@pytest.mark.skipif(os.name != "posix", reason="requires POSIX permissions")
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702, 0o1777])
def test_a_folder_writable_by_other_users_is_not_used(folder, mode):
    _, number = compute(folder)
    folder.chmod(mode)
    report = recompile(folder, number)
    assert "hits" not in report
    assert report["failed"] == 2
    assert "must not be writable" in nx.disk_cache_report()["last_failure"]


@pytest.mark.skipif(os.name != "posix", reason="requires POSIX permissions")
def test_a_world_writable_parent_needs_the_sticky_bit(tmp_path):
    folder = tmp_path / "parent" / "cache"
    _, number = compute(folder)
    folder.parent.chmod(0o777)
    assert recompile(folder, number)["failed"] == 2
    folder.parent.chmod(0o1777)
    assert recompile(folder, number) == {"hits": 1}


@pytest.mark.skipif(os.name != "posix", reason="requires POSIX permissions")
@pytest.mark.parametrize("kind", ["mode", "link", "endless", "pipe"])
def test_files_writable_by_other_users_are_recompiled(folder, tmp_path, kind):
    _, number = compute(folder)
    (file,) = files(folder)
    match kind:
        case "mode":
            file.chmod(0o666)
        case "link":
            file.rename(tmp_path / "elsewhere")
            file.symlink_to(tmp_path / "elsewhere")
        case "endless":
            file.unlink()
            file.symlink_to("/dev/zero")
        case "pipe":
            file.unlink()
            os.mkfifo(file)
    report = recompile(folder, number)
    assert report == {"misses": 1, "failed": 1, "stored": 1}
    assert recompile(folder, number) == {"hits": 1}


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")
def test_files_and_folders_of_another_user_are_not_used(folder):
    _, number = compute(folder)
    (file,) = files(folder)
    os.chown(file, 12345, -1)
    assert recompile(folder, number) == {"misses": 1, "failed": 1, "stored": 1}
    os.chown(folder, 12345, -1)
    assert recompile(folder, number) == {"misses": 1, "failed": 2}


def test_a_file_with_another_secret_is_not_run(folder, tmp_path):
    _, number = compute(folder)
    recompile(tmp_path / "other", number)
    (file,), (other,) = files(folder), files(tmp_path / "other")
    assert file.name == other.name
    other.replace(file)
    assert recompile(folder, number) == {"misses": 1, "failed": 1, "stored": 1}
    assert "secret" in nx.disk_cache_report()["last_failure"]


def test_least_recently_used_files_are_evicted_first(folder):
    numbers = [compute(folder)[1] for _ in range(4)]
    size = files(folder)[0].stat().st_size
    for age, file in enumerate(sorted(files(folder), key=lambda file: file.stat().st_mtime_ns)):
        os.utime(file, (1_000_000_000 + age, 1_000_000_000 + age))
    assert recompile(folder, numbers[0]) == {"hits": 1}
    compute(folder, cache_bytes=int(2.9 * size))
    assert len(files(folder)) == 2
    assert recompile(folder, numbers[0]) == {"hits": 1}
    report, _ = compute(folder, cache_bytes=10)
    assert report == {"misses": 1, "failed": 1}


def test_concurrent_processes_leave_a_valid_folder(folder):
    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(run, [folder] * 4))
    assert all(result[:2] == results[0][:2] for result in results)
    assert all(result[2]["failed"] == 0 for result in results)
    assert not list(folder.glob("*.nxlatmp"))
    last = run(folder)
    assert last[2]["misses"] == 0


def test_invalid_cache_options_are_rejected(folder):
    with pytest.raises(nx.OptionError, match="cache_dir"):
        nx.jit(lambda x: x + 0.25, compiler="xla", cache_dir=3)(1.0)
    with pytest.raises(nx.OptionError, match="cache_bytes"):
        nx.jit(lambda x: x + 0.25, compiler="xla", cache_dir=folder, cache_bytes=-1)(1.0)
    with pytest.raises(nx.OptionError, match="no option"):
        nx.jit(lambda x: x + 0.25, compiler="evaluator", cache_dir=folder)(1.0)


def test_the_cache_command_lists_and_clears_files(folder, capsys, monkeypatch):
    compute(folder)
    (folder / "notes.txt").write_text("mine")
    assert main(["cache", "--dir", str(folder)]) == 0
    printed = capsys.readouterr().out
    assert "compiled in" in printed
    assert "1 executable, " in printed
    monkeypatch.setenv("NXLA_CACHE_DIR", str(folder))
    assert main(["cache", "clear"]) == 0
    assert "removed 1 executable, " in capsys.readouterr().out
    assert os.listdir(folder) == ["notes.txt"]
    assert main(["cache"]) == 0
    assert "0 executables" in capsys.readouterr().out
    monkeypatch.delenv("NXLA_CACHE_DIR")
    assert main(["cache"]) == 2
    assert "NXLA_CACHE_DIR" in capsys.readouterr().err
