"""Run all tests with instrumented code, and list the lines of crates and Python that none runs.

The Rust code counts as covered by tests of both languages: the profiles of `cargo test` and of the
Python processes are merged. Documentation tests of Rust do not count. Everything is written below
`target/coverage`; the compiled Python module is replaced during the run.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / "target/coverage"
BUILD = HOME / "build"
PROFILES = HOME / "profiles"
REPORT = HOME / "report"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

#: The share of lines that tests must run, in percent.
MINIMUM = 90.0

#: A test that compiles the workspace again and reads messages of the compiler.
SKIPPED = "compile_errors_name_a_remedy"

#: Packages of the workspace without code of the product.
EXCLUDED = ("nxla-tidy", "nxla-benches", "nxla-models")

#: The executed and the other lines of files, by path.
Lines = dict[str, dict[int, bool]]


def llvm_tool(name: str) -> str:
    """Return the path of a tool of LLVM: from PyPI, the Rust toolchain, or the search path."""
    query = ["rustc", "--print", "target-libdir"]
    library = subprocess.run(query, check=True, capture_output=True, text=True).stdout.strip()
    folders = [
        Path(sysconfig.get_path("purelib")) / "llvm/bin",
        Path(library).parent / "bin",
        *map(Path, os.environ["PATH"].split(os.pathsep)),
    ]
    for folder in folders:
        if (folder / name).is_file():
            return str(folder / name)
    sys.exit(f"coverage: {name} is missing; `rustup component add llvm-tools` installs it")


def environment() -> dict[str, str]:
    """Return the environment in which crates of the workspace are compiled with counters."""
    wrapper = HOME / "rustc"
    # The tools from PyPI do not support zlib.
    flags = "-C instrument-coverage -C llvm-args=-enable-name-compression=false"
    wrapper.write_text(f'#!/bin/sh\nexec "$@" {flags}\n', encoding="utf-8")
    wrapper.chmod(0o755)
    return {
        **os.environ,
        "CARGO_INCREMENTAL": "0",
        "CARGO_PROFILE_DEV_DEBUG": "false",
        "CARGO_TARGET_DIR": str(BUILD),
        "RUSTC_WORKSPACE_WRAPPER": str(wrapper),
        # All processes of a binary share four files, so that thousands of processes need little
        # space.
        "LLVM_PROFILE_FILE": str(PROFILES / "%4m.profraw"),
        "COVERAGE_FILE": str(HOME / "python/data"),
    }


def run(command: list[str], env: dict[str, str]) -> bool:
    """Run a command with its output on the terminal; return whether it succeeded."""
    sys.stdout.write(f"$ {' '.join(command)}\n")
    sys.stdout.flush()
    return subprocess.run(command, env=env, cwd=ROOT, check=False).returncode == 0


def test_rust(packages: list[str], env: dict[str, str]) -> tuple[bool, list[str]]:
    """Run the tests of packages; return whether they passed, and the binaries."""
    chosen = [word for name in packages for word in ("-p", name)]
    if not packages:
        chosen = ["--workspace", *(word for name in EXCLUDED for word in ("--exclude", name))]
    command = ["cargo", "test", *chosen, "--lib", "--bins", "--tests"]
    built = subprocess.run(
        [*command, "--no-run", "--message-format", "json-render-diagnostics"],
        env=env,
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    objects = []
    for line in built.stdout.splitlines():
        message = json.loads(line)
        if message["reason"] != "compiler-artifact" or str(ROOT) not in message["manifest_path"]:
            continue
        is_macro = "proc-macro" in message["target"]["kind"]
        objects += [message["executable"]] if message["executable"] else []
        objects += message["filenames"] if is_macro else []
    return run([*command, "--no-fail-fast", "--", "--skip", SKIPPED], env), objects


@contextlib.contextmanager
def preserved_module() -> Iterator[None]:
    """Restore the compiled Python module at the end."""
    folder, saved = ROOT / "python/nxla", HOME / "saved"
    shutil.rmtree(saved, ignore_errors=True)
    saved.mkdir(parents=True)
    for path in folder.glob("_core*.so"):
        shutil.copy2(path, saved)
    try:
        yield
    finally:
        for path in folder.glob("_core*.so"):
            path.unlink()
        for path in saved.iterdir():
            shutil.move(path, folder)


def test_python(arguments: list[str], env: dict[str, str]) -> tuple[bool, str]:
    """Run the tests of Python; return whether they passed, and the compiled module."""
    develop = ["maturin", "develop", "--quiet"]
    if not run([str(Path(sys.executable).with_name(develop[0])), *develop[1:]], env):
        sys.exit("coverage: the module was not built")
    measure = [sys.executable, "-m", "coverage"]
    tests = [
        *measure,
        "run",
        "-m",
        "pytest",
        "-q",
        *(arguments or ["-n", "2", "--dist", "loadfile"]),
    ]
    passed = run(tests, env)
    run([*measure, "combine", "--quiet"], env)
    REPORT.mkdir(parents=True, exist_ok=True)
    run([*measure, "json", "--quiet", "-o", str(HOME / "python/lines.json")], env)
    (module,) = (ROOT / "python/nxla").glob("_core*.so")
    return passed, str(shutil.copy2(module, str(HOME / module.name)))


def rust_lines(objects: list[str]) -> Lines:
    """Merge the profiles, and return the lines of the crates; lines of tests are omitted."""
    merged = HOME / "merged.profdata"
    profiles = [str(path) for path in PROFILES.glob("*.profraw")]
    # A process that was killed leaves a damaged file, which must not hide the others.
    merge = [llvm_tool("llvm-profdata"), "merge", "--sparse", "--failure-mode=all", "-o"]
    subprocess.run([*merge, str(merged), *profiles], check=True)
    chosen = [word for path in objects for word in ("--object", path)][1:]
    export = [llvm_tool("llvm-cov"), "export", "--format=lcov", "--skip-functions"]
    export += [f"--instr-profile={merged}", *chosen]
    found: Lines = {}
    exported = subprocess.run(export, check=True, stdout=subprocess.PIPE, text=True).stdout
    file = ""
    for line in exported.splitlines():
        kind, _, value = line.partition(":")
        if kind == "SF":
            file = os.path.relpath(value, ROOT)
        elif kind == "DA" and is_product(file):
            number, count = value.split(",")[:2]
            found.setdefault(file, {})[int(number)] = int(count) > 0
    return found


def is_product(file: str) -> bool:
    """Return whether a source file belongs to the product, and not to its tests."""
    parts = Path(file).parts
    is_source = len(parts) > 3 and parts[0] == "crates" and parts[2] == "src"
    return is_source and "tests" not in parts and parts[-1] not in {"tests.rs", "testing.rs"}


def python_lines() -> Lines:
    """Return the lines of the Python package."""
    files = json.loads((HOME / "python/lines.json").read_text(encoding="utf-8"))["files"]
    return {
        name: dict.fromkeys(lines["executed_lines"], True)
        | dict.fromkeys(lines["missing_lines"], False)
        for name, lines in files.items()
    }


def ranges(numbers: list[int]) -> str:
    """Return sorted numbers as ranges: `3-5, 9`."""
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][1] + 1 == number:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in found)


def summarize(title: str, lines: Lines, depth: int) -> tuple[str, float]:
    """Return a table with one row per folder of a depth, and the share of run lines."""
    groups: dict[str, list[bool]] = defaultdict(list)
    for file, states in lines.items():
        groups["/".join(Path(file).parts[:depth])] += states.values()
    rows = [*sorted(groups.items()), (title, [each for group in groups.values() for each in group])]
    table = [f"{'':40} {'lines':>7} {'not run':>8} {'run':>7}"]
    table += [
        f"{name:40} {len(states):7} {states.count(False):8} {share(states):6.1f}%"
        for name, states in rows
    ]
    return "\n".join(table) + "\n", share(rows[-1][1])


def share(states: list[bool]) -> float:
    """Return the share of true states in percent."""
    return 100 * states.count(True) / max(len(states), 1)


def main() -> None:
    """Run the tests and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-p", "--package", action="append", default=[], help="a crate to test")
    parser.add_argument(
        "--pytest", nargs=argparse.REMAINDER, default=[], help="arguments of pytest"
    )
    options = parser.parse_args()
    shutil.rmtree(PROFILES, ignore_errors=True)
    shutil.rmtree(HOME / "python", ignore_errors=True)
    (HOME / "python").mkdir(parents=True)
    env = environment()
    passed_rust, objects = test_rust(options.package, env)
    with preserved_module():
        passed_python, module = test_python(options.pytest, env)
    crates, package = rust_lines([*objects, module]), python_lines()
    tables = [summarize("crates", crates, 2), summarize("python/nxla", package, 3)]
    missing = [
        f"{file}: {ranges(sorted(number for number, is_run in lines.items() if not is_run))}\n"
        for file, lines in sorted({**crates, **package}.items())
        if not all(lines.values())
    ]
    (REPORT / "summary.txt").write_text("\n".join(text for text, _ in tables), encoding="utf-8")
    (REPORT / "missing.txt").write_text("".join(missing), encoding="utf-8")
    sys.stdout.write((REPORT / "summary.txt").read_text(encoding="utf-8"))
    sys.stdout.write(f"lines that no test runs: {REPORT / 'missing.txt'}\n")
    if not (passed_rust and passed_python):
        sys.exit("coverage: tests failed")
    if min(percent for _, percent in tables) < MINIMUM:
        sys.exit(f"coverage: at least {MINIMUM:.0f} % of the lines must be run")


if __name__ == "__main__":
    main()
