"""Commands: ``python -m nxla doctor``, ``python -m nxla cache`` and ``--version``."""

from __future__ import annotations

import argparse
import os
import sys
import time

from nxla import __version__
from nxla._observer import format_bytes
from nxla._values import count_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit status of the process."""
    parser = argparse.ArgumentParser(prog="python -m nxla", description=__doc__)
    parser.add_argument("--version", action="version", version=f"nxla {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    doctor = commands.add_parser(
        "doctor", help="list installed plugins, test them, and report problems"
    )
    doctor.add_argument("--plugin", action="append", default=[], help="look at this plugin as well")
    doctor.add_argument("--quick", action="store_true", help="leave the smoke tests out")
    # Hidden option: the command starts itself in a separate process for each plugin.
    doctor.add_argument("--probe", help=argparse.SUPPRESS)
    cache = commands.add_parser("cache", help="list or clear the executables on the disk")
    cache.add_argument("action", nargs="?", choices=("list", "clear"), default="list")
    cache.add_argument("--dir", help="the folder, by default what NXLA_CACHE_DIR says")
    given = parser.parse_args(arguments)
    if given.command == "cache":
        return _cache(given.action, given.dir)
    from nxla import _doctor

    if given.probe is not None:
        return _doctor.probe(given.probe, smoke=not given.quick)
    return _doctor.doctor(given.plugin, smoke=not given.quick)


def _cache(action: str, folder: str | None) -> int:
    from nxla import _core

    folder = os.path.expanduser(folder or os.environ.get("NXLA_CACHE_DIR", ""))
    if not folder:
        sys.stderr.write("no folder: pass one with --dir, or set NXLA_CACHE_DIR\n")
        return 2
    try:
        if action == "clear":
            count, size = _core.disk_cache_clear(folder)
            sys.stdout.write(f"removed {count_text(count, 'executable')}, {format_bytes(size)}\n")
            return 0
        entries = _core.disk_cache_entries(folder)
    except OSError as error:
        sys.stderr.write(f"{folder}: {error}\n")
        return 1
    for key, size, used, took, refused in entries:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(used))
        saved = "of another version" if took is None else f"compiled in {took} ms"
        saved = saved if refused is None else f"not used: {refused}"
        sys.stdout.write(f"{key[:16]}  {format_bytes(size):>10}  used {when}  {saved}\n")
    total = sum(size for _, size, *_ in entries)
    sys.stdout.write(
        f"{count_text(len(entries), 'executable')}, {format_bytes(total)}, in {folder}\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
