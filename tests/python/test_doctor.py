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
from nxla import _doctor, _nvidia, _versions, plugins
from where import on_cpu


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
def test_the_default_plugin_is_tested_with_all_dtypes():
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
@on_cpu
def test_the_plugin_variable_may_name_a_platform():
    done = doctor("--quick", NXLA_PJRT_PLUGIN="cpu")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{plugins.find_cpu()} (used by default)" in done.stdout
    missing = doctor("--quick", NXLA_PJRT_PLUGIN="abacus")
    assert missing.returncode == 1
    assert "abacus (used by default)" in missing.stdout


def test_every_requested_plugin_must_work(libraries):
    text, other = libraries
    done = doctor("--quick", "--plugin", text, "--plugin", other)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "something is wrong" in done.stdout
    assert f"{text} (found)" in done.stdout
    assert "it is not a shared library" in done.stdout
    assert "GetPjrtApi" in done.stdout
    assert done.stdout.count("does not work") >= 2


def test_default_options_that_do_not_work_are_a_failure():
    done = doctor(NXLA_COMPILER="bogus")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "functions do not run with the default options: compiler: name: must be" in done.stdout
    # The tests of the evaluator do not depend on the defaults.
    assert "32 of 32 tests" in done.stdout
    assert "something is wrong" in done.stdout


def test_a_broken_default_plugin_is_a_failure(libraries):
    done = doctor("--quick", NXLA_PJRT_PLUGIN=libraries[0])
    assert done.returncode == 1
    assert "something is wrong" in done.stdout
    missing = doctor("--quick", NXLA_PJRT_PLUGIN="/nowhere/plugin.so")
    assert missing.returncode == 1
    assert "does not exist" in missing.stdout


def test_a_missing_plugin_suggests_a_package(monkeypatch, capsys):
    from nxla.__main__ import main

    monkeypatch.setattr(plugins, "find", lambda: None)
    monkeypatch.setattr(plugins, "find_all", list)
    monkeypatch.delenv("NXLA_PJRT_PLUGIN", raising=False)
    assert main(["doctor"]) == 0
    printed = capsys.readouterr().out
    assert 'pip install "nxla[xla]"' in printed
    assert "32 of 32 tests" in printed


def test_smoke_tests_find_wrong_values(monkeypatch):
    options = {"compiler": "evaluator"}
    assert not [name for name, _, why in _doctor.smoke_tests(options) if why]
    monkeypatch.setattr(nx, "sqrt", lambda x: x + 1)
    monkeypatch.setattr(nx.random, "split", lambda key: nx.stack([key, key]))
    wrong = {name: why for name, _, why in _doctor.smoke_tests(options) if why}
    assert wrong == {
        "elementwise": "expected [4.0, 2.0], got [17.0, 5.0]",
        "random": "expected [56197195, 1801093307], got [0, 1701]",
    }


@pytest.fixture
def gpu(tmp_path, monkeypatch):
    """Pretend that there is an NVIDIA driver, and that no plugin is installed."""
    driver = tmp_path / "version"
    driver.write_text(
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n"
        "GCC version:  gcc version 12.3.0\n"
    )
    monkeypatch.setattr(_nvidia, "DRIVER", str(driver))
    monkeypatch.setattr(_nvidia, "SYSTEM", ())
    monkeypatch.setattr(plugins, "find_all", list)
    monkeypatch.setattr(plugins, "find", lambda: None)
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    monkeypatch.delenv("NXLA_PJRT_PLUGIN", raising=False)
    return tmp_path


def printed_by_doctor(capsys, *arguments):
    from nxla.__main__ import main

    main(["doctor", "--quick", *arguments])
    return capsys.readouterr().out


@pytest.mark.usefixtures("gpu")
def test_a_gpu_without_a_plugin_suggests_extras(capsys):
    printed = printed_by_doctor(capsys)
    assert "driver 580.65.06\n" in printed
    assert 'pip install "nxla[cuda13]"' in printed
    assert 'pip install "nxla[cuda12]"' in printed


def test_the_nvidia_libraries_of_a_plugin_are_listed_by_folder(gpu, capsys):
    packages = gpu / "site-packages"
    plugin = packages / "jax_plugins" / "xla_cuda13" / "xla_cuda_plugin.so"
    toolkit, deep = packages / "nvidia" / "cu13" / "lib", packages / "nvidia" / "cudnn" / "lib"
    for folder in (plugin.parent, toolkit, deep):
        folder.mkdir(parents=True)
    plugin.write_text("")
    for name in ("libcublas.so.13", "libcublasLt.so.13", "libcusolver.so.12", "libcudart.so.13"):
        (toolkit / name).write_text("")
    (deep / "libcudnn.so.9").write_text("")
    printed = printed_by_doctor(capsys, "--plugin", str(plugin))
    assert f"in {toolkit}: cublas, cublasLt, cudart, cusolver\n" in printed
    assert f"in {deep}: cudnn\n" in printed
    assert "not found: cufft, cupti, cusparse, nccl, nvJitLink\n" in printed
    assert "NXLA_PJRT_PLUGIN=cuda selects it" in printed


def test_package_libraries_precede_system_libraries(gpu, monkeypatch):
    own, system = gpu / "nvidia" / "cu13" / "lib", gpu / "system"
    for folder in (own, system):
        folder.mkdir(parents=True)
        (folder / "libcublas.so.13").write_text("")
    (system / "libcufft.so.12").write_text("")
    monkeypatch.setattr(_nvidia, "SYSTEM", (str(system), "/nowhere"))
    plugin = str(gpu / "jax_plugins" / "xla_cuda13" / "xla_cuda_plugin.so")
    assert _nvidia.library_folders(plugin) == {str(own): ["cublas"], str(system): ["cufft"]}


def test_a_driver_that_reports_no_version_is_accepted(gpu, monkeypatch, capsys):
    (gpu / "version").write_text("")
    assert _nvidia.driver_version() is None
    monkeypatch.setattr(_nvidia, "DRIVER", "/nowhere")
    monkeypatch.setattr(_nvidia, "CONTROL", str(gpu))
    assert "driver of unknown version" in printed_by_doctor(capsys)


def test_a_plugin_without_a_driver_is_reported(gpu, monkeypatch, capsys):
    for name in ("DRIVER", "CONTROL"):
        monkeypatch.setattr(_nvidia, name, "/nowhere")
    assert "NVIDIA" not in printed_by_doctor(capsys)
    plugin = gpu / "xla_cuda_plugin.so"
    plugin.write_text("")
    assert "no NVIDIA driver" in printed_by_doctor(capsys, "--plugin", str(plugin))


@pytest.mark.parametrize(
    ("pool", "text"),
    [
        (None, "5 of 100 bytes in use"),
        (10, "5 of 100 bytes in use, allocated on demand"),
        (75, "5 of 100 bytes in use, preallocated"),
    ],
)
def test_memory_report_states_the_allocation(pool, text):
    assert _doctor._memory({"in_use": 5, "limit": 100, "pool": pool}) == text


def test_an_unreadable_cache_is_reported(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    done = doctor("--quick", NXLA_CACHE_DIR=str(file))
    assert done.returncode == 1
    assert "cannot be read" in done.stdout
    good = doctor("--quick", NXLA_CACHE_DIR=str(tmp_path / "none"))
    assert "0 executables" in good.stdout


@pytest.mark.skipif(os.name != "posix", reason="requires POSIX permissions")
def test_a_cache_writable_by_other_users_is_reported(tmp_path):
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
