"""Run all fuzzers: ``python -m fuzz --seconds 600 --seed 0``."""

from fuzz.driver import main

main()
