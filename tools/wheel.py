"""Check the archives of `make wheel`: their contents, and the installed package."""

import argparse
import json
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path

# The compressed size limit; a larger wheel contains files that should not be shipped.
MAX_BYTES = 12 << 20
CHECKS = Path(__file__).with_name("installed.py")


def fail(message: str) -> None:
    """Exit with an error message."""
    sys.exit(f"wheel: {message}")


def names_in(archive: Path) -> list[str]:
    """Return the files in a wheel, or in an sdist without its top-level folder."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return wheel.namelist()
    with tarfile.open(archive) as sdist:
        return [name.partition("/")[2] for name in sdist.getnames()]


def check_bill_of_materials(wheel: Path) -> None:
    """Check that a wheel lists its crates, at the versions of Cargo.lock."""
    with zipfile.ZipFile(wheel) as files:
        names = [n for n in files.namelist() if "/sboms/" in n and n.endswith(".cyclonedx.json")]
        if len(names) != 1:
            fail(f"{wheel.name}: one bill of materials is needed in dist-info/sboms; got {names}")
        listed = json.loads(files.read(names[0]))["components"]
    lock = tomllib.loads(Path("Cargo.lock").read_text(encoding="utf-8"))["package"]
    locked = {(package["name"], package["version"]) for package in lock}
    components = {(component["name"], component["version"]) for component in listed}
    if unknown := sorted(components - locked):
        fail(f"{wheel.name}: the bill of materials lists crates outside of Cargo.lock: {unknown}")
    if not {"pyo3", "nxla-eval"} <= {name for name, _ in components}:
        fail(f"{wheel.name}: the bill of materials is incomplete: {sorted(components)}")


def check_contents(archive: Path) -> None:
    """Check that an archive contains all required files and no others."""
    names = names_in(archive)
    is_wheel = archive.suffix == ".whl"
    package = "nxla/" if is_wheel else "python/nxla/"
    needed = [f"{package}{name}" for name in ("__init__.py", "_core.pyi", "py.typed")]
    if is_wheel:
        module = [n for n in names if n.startswith("nxla/_core.") and n.endswith((".so", ".pyd"))]
        if len(module) != 1 or "abi3" not in archive.name:
            fail(f"{archive.name} is not one stable-ABI module: {module}")
        needed += [n for n in names if n.endswith("METADATA")] or ["METADATA"]
        check_bill_of_materials(archive)
    else:
        needed += ["PKG-INFO", "Cargo.lock", "crates/python/Cargo.toml", "pyproject.toml"]
    missing = [name for name in needed if name not in names]
    if not any(name.rpartition("/")[2] == "LICENSE" for name in names):
        missing.append("LICENSE")
    foreign = ("__pycache__", ".pytest_cache", "target/", "tests/python", ".venv")
    stray = [name for name in names if any(part in name for part in foreign)]
    if is_wheel:
        stray += [n for n in names if not n.startswith(("nxla/", "nxla-"))]
    if missing or stray:
        fail(f"{archive.name}: missing {missing}, and unexpected {stray[:10]}")
    if archive.stat().st_size > MAX_BYTES:
        fail(f"{archive.name} has {archive.stat().st_size} bytes, above {MAX_BYTES}")


def check_installed(archive: Path, extra: str) -> str:
    """Install an archive with an extra into a new environment, and run the package from there."""
    with tempfile.TemporaryDirectory(prefix="nxla-wheel-") as folder:
        environment = Path(folder) / "env"
        try:
            venv.create(environment, with_pip=True)
        except subprocess.CalledProcessError:
            # If the `venv` module lacks `ensurepip`, use the pip of this environment.
            venv.create(environment, with_pip=False, clear=True)
        python = next(environment.glob("[bS]*/python*"))
        pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q"]
        # Some examples need NumPy and XLA, although the package needs neither.
        package = f"nxla[{extra}] @ {archive.resolve().as_uri()}"
        subprocess.run([*pip, package, "numpy"], check=True, cwd=folder, timeout=1800)
        run = subprocess.run(
            [str(python), "-I", str(CHECKS)],
            cwd=folder,
            check=False,
            capture_output=True,
            text=True,
            timeout=900,
        )
        if run.returncode:
            fail(f"{archive.name}, installed:\n{run.stdout}{run.stderr}")
        return run.stdout.strip()


def main() -> None:
    """Check every archive that is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("archives", nargs="+", type=Path)
    parser.add_argument("--extra", default="xla", help="the extra to install; may be empty")
    parsed = parser.parse_args()
    for archive in parsed.archives:
        check_contents(archive)
        summary = check_installed(archive, parsed.extra)
        size = archive.stat().st_size / (1 << 20)
        count = len(names_in(archive))
        sys.stdout.write(f"{archive.name}: {size:.1f} MiB, {count} files; {summary}\n")


if __name__ == "__main__":
    main()
