"""The report of installed plugins and their problems: ``python -m nxla doctor``.

Each plugin is tested in a separate process, because a broken plugin may end the process, and two
plugins may conflict.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

from nxla import _core, _nvidia, _versions, plugins
from nxla._values import count_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

#: The time limit for all checks of a plugin, in seconds.
PROBE_TIMEOUT = 300


def doctor(more: Sequence[str] = (), *, smoke: bool = True) -> int:
    """Print the report; return 0 if the evaluator and the default and requested plugins work."""
    say = _Printer()
    say.head("versions")
    for name, value in _versions.versions().items():
        say.line(f"{name}: {value}")
    say.head("settings in force")
    for name, value in _versions.settings().items():
        say.line(f"{name}={value}")
    options = _core.get_default_options()
    described = ", ".join(f"{name}={value!r}" for name, value in options.items())
    say.line(f"default options: {described or 'none'}")
    good = _defaults(say)
    good = _cache(say) and good
    say.head("evaluator")
    if smoke:
        good = _show_smoke(say, smoke_tests({"compiler": "evaluator"})) and good
    else:
        say.line("not tested")
    say.head("plugins for XLA")
    chosen = plugins.find_default()
    paths = list(dict.fromkeys([*([chosen] if chosen else []), *plugins.find_all(), *more]))
    if not paths:
        say.line("none is installed; functions run on the evaluator")
        say.line('install one for the CPU (Linux on x86-64) with: pip install "nxla[xla]"')
        say.line("or name the file of one in NXLA_PJRT_PLUGIN")
    for path in paths:
        role = "used by default" if path == chosen else "found"
        works = _plugin(say, path, role, smoke=smoke)
        good = good and (works or path not in (chosen, *more))
    _gpu(say, paths)
    say.line("")
    say.line("all is well" if good else "something is wrong, see above")
    return 0 if good else 1


class _Printer:
    def line(self, text: str) -> None:
        sys.stdout.write(f"  {text}\n" if text else "\n")
        sys.stdout.flush()

    def head(self, text: str) -> None:
        sys.stdout.write(f"\n{text}\n")


def _defaults(say: _Printer) -> bool:
    """Print whether a function runs with the default options; return whether it does."""
    import nxla as nx

    try:
        nx.jit(_square)(nx.tensor([1.0, 2.0])).block_until_ready()
    except Exception as error:  # Every error is reported.
        say.line(f"functions do not run with the default options: {error}")
        return False
    return True


def _cache(say: _Printer) -> bool:
    folder = os.path.expanduser(os.environ.get("NXLA_CACHE_DIR", ""))
    if not folder:
        say.line("executables end with the process; NXLA_CACHE_DIR names a folder to keep them in")
        return True
    try:
        _core.check_disk_cache(folder)
        entries = _core.disk_cache_entries(folder)
    except PermissionError as error:
        say.line(f"the executables in NXLA_CACHE_DIR are not used: {error}")
        return False
    except OSError as error:
        say.line(f"the folder for executables, {folder}, cannot be read: {error}")
        return False
    size = sum(each[1] for each in entries)
    say.line(f"{count_text(len(entries), 'executable')} of {size} bytes in {folder}")
    refused = [why for *_, why in entries if why is not None]
    for why in refused:
        say.line(f"  not used: {why}")
    writable = folder
    while not os.path.exists(writable):
        writable = os.path.dirname(os.path.abspath(writable))
    if not os.access(writable, os.W_OK):
        say.line("  nothing can be added to that folder")
    return not refused


def _plugin(say: _Printer, path: str, role: str, *, smoke: bool) -> bool:
    """Print the properties of a plugin; return whether it works."""
    say.line(f"{path} ({role})")
    command = [sys.executable, "-m", "nxla", "doctor", "--probe", path]
    if not smoke:
        command.append("--quick")
    try:
        child = subprocess.run(
            command, capture_output=True, text=True, timeout=PROBE_TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        say.line(f"  does not work: it takes more than {PROBE_TIMEOUT} seconds")
        return False
    try:
        report = json.loads(child.stdout)
    except ValueError:
        last = (child.stderr.strip().splitlines() or ["nothing"])[-1]
        say.line(f"  does not work: the process ended with {child.returncode}, and said: {last}")
        return False
    if "error" in report:
        say.line(f"  does not work: {report['error']}")
        return False
    versions = {key: value for key, value in report["attributes"].items() if "version" in key}
    told = ", ".join(f"{name} {value}" for name, value in sorted(versions.items()))
    say.line(f"  API {report['api']}, {report['platform']} ({report['platform_version']}), {told}")
    functions = "can" if report["calls_host"] else "cannot"
    say.line(f"  programs {functions} call functions of the host")
    for number, device in enumerate(report["devices"]):
        say.line(f"  device {number}: {device['kind']}, memory {_memory(device)}")
    say.line(f"  loaded in {report['seconds']:.2f} s")
    return not smoke or _show_smoke(say, report["smoke"], "  ")


def _memory(device: dict[str, Any]) -> str:
    if device["in_use"] is None:
        return "not counted by the plugin"
    limit = "" if device["limit"] is None else f" of {device['limit']}"
    pool = device.get("pool")
    if pool is None:
        return f"{device['in_use']}{limit} bytes in use"
    # The client has run no program, so that an allocator on demand has reserved little.
    is_reserved = device["limit"] is not None and pool > device["limit"] / 2
    how = "preallocated" if is_reserved else "allocated on demand"
    return f"{device['in_use']}{limit} bytes in use, {how}"


def _gpu(say: _Printer, paths: Sequence[str]) -> None:
    """Print the driver, the plugins and the libraries of NVIDIA GPUs, and the missing parts."""
    for_cuda = [path for path in paths if "cuda" in os.path.basename(path)]
    if not _nvidia.has_gpu() and not for_cuda:
        return
    say.head("NVIDIA GPUs")
    if not _nvidia.has_gpu():
        say.line("there is a plugin, but no NVIDIA driver")
        return
    say.line(f"driver {_nvidia.driver_version() or 'of unknown version'}")
    if not for_cuda:
        say.line('there is no plugin for them; install one with: pip install "nxla[cuda13]"')
        say.line('or, for drivers before 580, with: pip install "nxla[cuda12]"')
        return
    for path in for_cuda:
        say.line(f"plugin {path}")
        folders = _nvidia.library_folders(path)
        for folder, names in folders.items():
            say.line(f"  in {folder}: {', '.join(names)}")
        found = {name for names in folders.values() for name in names}
        missing = [name for name in _nvidia.LIBRARIES if name not in found]
        if missing:
            say.line(f"  not found: {', '.join(missing)}")
            say.line(
                '  install the libraries with: pip install "nxla[cuda13]"  (or "nxla[cuda12]")'
            )
    if plugins.find_default() not in for_cuda:
        say.line("the plugin is not used by default; NXLA_PJRT_PLUGIN=cuda selects it")


#: The result of a smoke test: its name, its time in milliseconds, and the error.
Outcome = tuple[str, float, str]


def _show_smoke(say: _Printer, outcomes: Sequence[Outcome], indent: str = "") -> bool:
    failed = [(name, why) for name, _, why in outcomes if why]
    total = sum(took for _, took, _ in outcomes)
    say.line(f"{indent}{len(outcomes) - len(failed)} of {len(outcomes)} tests in {total:.0f} ms:")
    told = [f"{name} {took:.0f}" for name, took, why in outcomes if not why]
    for start in range(0, len(told), 8):
        say.line(f"{indent}  {', '.join(told[start : start + 8])}")
    for name, why in failed:
        say.line(f"{indent}  {name} FAILED: {why}")
    return not failed


def probe(path: str, *, smoke: bool) -> int:
    """Test a plugin in this process, and print the results as JSON."""
    # The cache must not hide problems of the plugin.
    os.environ.pop("NXLA_CACHE_DIR", None)
    report: dict[str, Any]
    begun = time.perf_counter()
    try:
        report = _core.plugin_report(path)
        report["seconds"] = time.perf_counter() - begun
        # The tests are small, and meant for the plugin.
        options = {"compiler": "xla", "plugin": path}
        report["smoke"] = smoke_tests(options) if smoke else []
    except Exception as error:  # Every error is reported.
        report = {"error": str(error)}
    sys.stdout.write(json.dumps(report))
    return 0


def _itself(x: Any) -> Any:
    """Return a vector that a program with a comparison and a selection has copied."""
    import nxla as nx

    return nx.where(x == x, x, x[0])


def _square(x: Any) -> Any:
    return (x * x).sum()


def _random_bits(x: Any) -> Any:
    import nxla as nx

    # The argument makes the key depend on an input of the program, instead of a constant.
    return nx.random.split(nx.random.key(nx.astype(x[0, 0], nx.int32) + 1697))[0]


def smoke_tests(options: dict[str, Any]) -> list[Outcome]:
    """Run a small program for every dtype and every family of operations."""
    import nxla as nx

    def run(name: str, function: Callable[..., Any], args: list[Any], expected: Any) -> Outcome:
        begun = time.perf_counter()
        try:
            found = nx.jit(function)(*args).tolist()
            why = "" if found == expected else f"expected {expected}, got {found}"
        except Exception as error:  # Every error is reported.
            why = str(error).split("\n", 1)[0]
        return name, (time.perf_counter() - begun) * 1e3, why

    with nx.default_options(options):
        return _outcomes(run)


def _outcomes(run: Callable[[str, Callable[..., Any], list[Any], Any], Outcome]) -> list[Outcome]:
    """Return the results of all smoke tests, which the function runs."""
    import nxla as nx

    outcomes = []
    dtypes = [value for value in vars(_core).values() if isinstance(value, _core.DType)]
    for dtype in dtypes:
        x = nx.tensor([0, 1, 1], dtype)
        expected = x.tolist()
        outcomes.append(run(str(dtype), _itself, [x], expected))
    x = nx.tensor([[4.0, 2.0], [2.0, 3.0]], nx.float32)
    families: list[tuple[str, Callable[[Any], Any], Any]] = [
        ("create", lambda x: nx.iota(3) + nx.astype(x[0, 0], nx.int32), [4, 5, 6]),
        ("elementwise", lambda x: nx.sqrt(x[0] * x[0]), [4.0, 2.0]),
        ("movement", nx.flip, [[3.0, 2.0], [2.0, 4.0]]),
        ("reduce", lambda x: nx.sum(x, axis=0), [6.0, 5.0]),
        ("window", lambda x: nx.cumulative_sum(x[0]), [4.0, 6.0]),
        ("contract", lambda x: x @ x, [[20.0, 14.0], [14.0, 13.0]]),
        ("index", lambda x: nx.sort(x[0]), [2.0, 4.0]),
        ("linalg", lambda x: nx.round(nx.linalg.det(x)), 8.0),
        ("control", lambda x: nx.fori(0, 3, lambda i, y: y + i, x[0, 0]), 7.0),
        ("random", _random_bits, [56197195, 1801093307]),
        ("gradient", nx.grad(_square), [[8.0, 4.0], [4.0, 6.0]]),
    ]
    outcomes += [run(name, function, [x], expected) for name, function, expected in families]
    return outcomes
