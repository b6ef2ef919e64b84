"""Measure the first release build of a small program for each set of features of the crate nxla.

The program depends on nxla alone and calls one jitted function on the evaluator. Each set of
features is built in a new folder, and prints a row of a Markdown table. CPU seconds are the sum
over all compilers; the elapsed time depends on this machine and its load.
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

MANIFEST = """[package]
name = "hello"
version = "0.1.0"
edition = "2024"

[dependencies.nxla]
path = "{crate}"
default-features = {default}
features = [{features}]

[workspace]
"""

PROGRAM = """
use nxla::prelude::*;

fn main() -> nxla::Result<()> {
    println!("{}", jit(|x: Expr| x * 2 + 1).call(20.5f32)?.item::<f32>()?);
    Ok(())
}
"""

SETS = ["default", "none", "parallel", "parallel,linalg", "parallel,fft", "xla"]


def crates_in(folder: Path) -> int:
    """Return the number of packages of the program."""
    command = ["cargo", "tree", "--prefix", "none", "--no-dedupe", "--edges", "normal,build"]
    tree = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout
    return len({line.removesuffix(" (*)") for line in tree.splitlines() if line}) - 1


def used_seconds() -> float:
    """Return the CPU seconds of all programs that have been started and have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure(features: str, crate: Path) -> str:
    """Build the program with a set of features, run it, and return a row of the table."""
    with tempfile.TemporaryDirectory(prefix="nxla-cold-") as name:
        folder = Path(name)
        (folder / "src").mkdir()
        (folder / "src" / "main.rs").write_text(PROGRAM)
        listed = "" if features in ("default", "none") else features
        manifest = MANIFEST.format(
            crate=crate,
            default="true" if features == "default" else "false",
            features=", ".join(f'"{feature}"' for feature in listed.split(",") if feature),
        )
        (folder / "Cargo.toml").write_text(manifest)
        # Use the versions with which the workspace is tested.
        shutil.copy(crate.parent.parent / "Cargo.lock", folder)
        environment = {**os.environ, "CARGO_TARGET_DIR": str(folder / "target")}
        environment.pop("CARGO_ENCODED_RUSTFLAGS", None)
        subprocess.run(["cargo", "fetch", "--quiet"], cwd=folder, check=True, env=environment)
        start, before = time.monotonic(), used_seconds()
        build = ["cargo", "build", "--release", "--quiet"]
        subprocess.run(build, cwd=folder, check=True, env=environment)
        wall, cpu = time.monotonic() - start, used_seconds() - before
        binary = folder / "target" / "release" / f"hello{'.exe' if os.name == 'nt' else ''}"
        output = subprocess.run([binary], check=True, capture_output=True, text=True).stdout.strip()
        if output != "42":
            sys.exit(f"cold_build: the program printed {output!r}, not 42")
        size = binary.stat().st_size / 1e6
        return f"| {features} | {crates_in(folder)} | {cpu:.0f} | {wall:.0f} | {size:.1f} |"


def main() -> None:
    """Print a table, one row for each set of features."""
    parser = argparse.ArgumentParser(description=__doc__)
    defaults = " ".join(SETS)
    parser.add_argument("sets", nargs="*", help=f"features with commas, by default {defaults}")
    parser.add_argument("--crate", type=Path, default=ROOT / "crates" / "nxla", help="which crate")
    arguments = parser.parse_args()
    sys.stdout.write("| features | crates | CPU seconds | wall seconds | binary, MB |\n")
    sys.stdout.write("|---|---|---|---|---|\n")
    for features in arguments.sets or SETS:
        sys.stdout.write(f"{measure(features, arguments.crate.resolve())}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
