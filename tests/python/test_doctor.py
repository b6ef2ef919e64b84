"""The command `python -m nxla doctor`, which reports installed plugins and problems."""

import ctypes.util
import importlib.metadata
import io
import os
import platform
import shutil
import subprocess
import sys

import pytest

import nxla as nx
from nxla import _versions, plugins


def doctor(*arguments, **environment):
    command = [sys.executable, "-m", "nxla", "doctor", *arguments]
    environment = {**os.environ, "NXLA_PJRT_PLUGIN": "", **environment}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    """Create a text file with the name of a library, and a library that is not a plugin."""
    folder = tmp_path_factory.mktemp("plugins")
    text = folder / "text.so"
    text.write_text("no library at all")
    other = folder / "other.so"
    found = next(
        path
        for path in (f"/lib/x86_64-linux-gnu/{ctypes.util.find_library('m')}", sys.executable)
        if os.path.exists(path)
    )
    shutil.copy(found, other)
    return str(text), str(other)


@pytest.mark.usefixtures("device")
def test_the_plugin_that_is_used_is_tried_with_all_dtypes():
    done = doctor(XLA_FLAGS="--xla_cpu_enable_fast_math=false")
    assert done.returncode == 0, done.stdout + done.stderr
    for part in (
        "(used by default)",
        f"nxla: {nx.__version__}",
        f"python: {platform.python_version()}",
        "API 0.",
        "device 0:",
        "32 of 32 tests",
        "XLA_FLAGS=--xla_cpu_enable_fast_math=false",
        "all is well",
    ):
        assert part in done.stdout


@pytest.mark.usefixtures("device")
def test_the_variable_may_name_a_platform():
    done = doctor("--quick", NXLA_PJRT_PLUGIN="cpu")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{plugins.find_cpu()} (used by default)" in done.stdout
    missing = doctor("--quick", NXLA_PJRT_PLUGIN="abacus")
    assert missing.returncode == 1
    assert "abacus (used by default)" in missing.stdout


def test_broken_plugins_are_told_and_others_still_work(libraries):
    text, other = libraries
    done = doctor("--quick", "--plugin", text, "--plugin", other)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{text} (found)" in done.stdout
    assert "it is not a shared library" in done.stdout
    assert "GetPjrtApi" in done.stdout
    assert done.stdout.count("does not work") >= 2


def test_a_broken_plugin_that_would_be_used_is_a_failure(libraries):
    done = doctor("--quick", NXLA_PJRT_PLUGIN=libraries[0])
    assert done.returncode == 1
    assert "something is wrong" in done.stdout
    missing = doctor("--quick", NXLA_PJRT_PLUGIN="/nowhere/plugin.so")
    assert missing.returncode == 1
    assert "does not exist" in missing.stdout


def test_without_a_plugin_it_says_how_to_get_one(monkeypatch, capsys):
    from nxla.__main__ import main

    monkeypatch.setattr(plugins, "find", lambda: None)
    monkeypatch.setattr(plugins, "find_all", list)
    monkeypatch.delenv("NXLA_PJRT_PLUGIN", raising=False)
    assert main(["doctor"]) == 0
    printed = capsys.readouterr().out
    assert 'pip install "nxla[xla]"' in printed
    assert "32 of 32 tests" in printed


def test_a_cache_that_cannot_be_read_is_told(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    done = doctor("--quick", NXLA_CACHE_DIR=str(file))
    assert done.returncode == 1
    assert "cannot be read" in done.stdout
    good = doctor("--quick", NXLA_CACHE_DIR=str(tmp_path / "none"))
    assert "0 executables" in good.stdout


@pytest.mark.skipif(os.name != "posix", reason="requires POSIX permissions")
def test_a_cache_that_others_can_change_is_reported(tmp_path):
    tmp_path.chmod(0o770)
    done = doctor("--quick", NXLA_CACHE_DIR=str(tmp_path))
    assert done.returncode == 1
    assert "must not be writable by the group or by others; got mode 0770" in done.stdout
    tmp_path.chmod(0o700)
    (tmp_path / ("0" * 64 + ".nxlaexec")).symlink_to("/dev/zero")
    done = doctor("--quick", NXLA_CACHE_DIR=str(tmp_path))
    assert done.returncode == 1
    assert "got a symbolic link" in done.stdout


def test_show_versions_prints_packages_and_settings(monkeypatch, capsys):
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=false")
    nx.show_versions()
    lines = dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines())
    assert lines["nxla"] == importlib.metadata.version("nxla")
    assert lines["python"].startswith(platform.python_version())
    assert platform.machine() in lines["platform"]
    assert lines["numpy"] == importlib.metadata.version("numpy")
    assert lines["XLA_FLAGS"] == "--xla_cpu_enable_fast_math=false"
    stream = io.StringIO()
    nx.show_versions(stream)
    assert dict(line.split(": ", 1) for line in stream.getvalue().splitlines()) == lines


def test_show_versions_omits_packages_that_are_not_installed(monkeypatch, capsys):
    monkeypatch.setattr(_versions, "PACKAGES", ("numpy", "nxla-no-such-package"))
    nx.show_versions()
    printed = capsys.readouterr().out
    assert "numpy: " in printed
    assert "no-such-package" not in printed


def test_show_versions_imports_no_package():
    code = "import nxla as nx, sys; nx.show_versions(); sys.exit('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_command_prints_the_version():
    command = [sys.executable, "-m", "nxla", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"nxla {importlib.metadata.version('nxla')}\n"
