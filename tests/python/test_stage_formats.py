"""Tests that read stored bytes of programs and stages, and damaged bytes."""

import contextlib
import io
import json
import pickle
import pickletools
import random
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import nxla as nx

FOLDER = Path(__file__).parents[1] / "formats"
sys.path.insert(0, str(FOLDER))
from write import arguments, example  # noqa: E402

sys.path.pop(0)

#: The earliest format of programs that is read.
OLDEST = 5
FILES = sorted(path.name for path in FOLDER.glob("[ps]*.bin"))


def read(name):
    """Read a golden file by its kind."""
    data = (FOLDER / name).read_bytes()
    return reader_of(name)(data)


def reader_of(name):
    return (
        nx.graph.Expression.from_bytes if name.startswith("program") else nx.graph.Stage.from_bytes
    )


def current_versions():
    """Return the current versions of the formats of stages and of programs."""
    (stage,) = nx.graph.split(nx.debug_expr(nx.sin)(1.0), lambda node: "none").stages
    return stage.to_bytes()[4], stage.expr.to_bytes()[4]


def versions_of(name):
    return tuple(map(int, re.findall(r"\d+", name)))


def program_of(versions):
    return versions[-1]


def facts_of(versions):
    """Return the expected facts about files of these versions."""
    end = "-of-".join(map(str, versions)) if len(versions) == 2 else f"*-of-{versions[0]}"
    return json.loads(min(FOLDER.glob(f"facts-{end}.json")).read_text())


def test_golden_files_of_the_current_version_exist():
    stage, program = current_versions()
    required = {
        f"program-{program}.bin",
        f"stage-{stage}-of-{program}.bin",
        f"stages-{stage}-of-{program}.bin",
    }
    assert required <= set(FILES), "run tests/formats/write.py, and describe the version"


@pytest.mark.parametrize("name", [name for name in FILES if not name.startswith("stages")])
def test_golden_files_are_read_or_rejected_by_version(name):
    versions, (stage, program) = versions_of(name), current_versions()
    message = ""
    is_current = versions == ((program,) if name.startswith("program") else (stage, program))
    try:
        found = read(name)
    except nx.FormatError as error:
        message = str(error)
        found = None
    if found is None:
        assert program_of(versions) < OLDEST
        assert re.search(r"has format \d+, this version reads formats? \d", message)
        return
    assert program_of(versions) >= OLDEST
    facts = facts_of(versions)
    if is_current:
        assert found.to_bytes() == (FOLDER / name).read_bytes()
    if name.startswith("stage"):
        assert found.digest == facts["stages"][0]
        assert [list(source) for source in found.arguments] == facts["arguments"][0]
        return
    assert found.digest == facts["digest"]
    assert [node.op for node in found.nodes] == facts["ops"]
    found.verify()
    results = found.run(*arguments())
    for result, expected in zip(results, facts["results"], strict=True):
        np.testing.assert_allclose(np.asarray(result), np.asarray(expected), rtol=1e-6)
    assert "example.py:" in next(node.line for node in found.nodes if node.op == "sin")


@pytest.fixture(scope="module")
def stage():
    expression = nx.debug_expr(example)(*arguments())
    return nx.graph.split(
        expression, lambda node: "after" if node.op == "while" else "none"
    ).stages[0]


def test_truncated_and_corrupted_bytes_are_detected(stage):
    data = stage.to_bytes()
    for length in range(len(data)):
        with pytest.raises(nx.FormatError):
            nx.graph.Stage.from_bytes(data[:length])
    choice = random.Random(0)
    accepted = []
    for offset in range(len(data)):
        damaged = bytearray(data)
        damaged[offset] ^= 1 << choice.randrange(8)
        with contextlib.suppress(nx.FormatError):
            accepted.append((offset, nx.graph.Stage.from_bytes(bytes(damaged))))
    # The bytes outside the checksum describe the position of the stage, not its program.
    program = data.index(b"nxla") - 8
    assert all(offset < program for offset, _ in accepted)
    assert all(found.digest == stage.digest for _, found in accepted)


def test_errors_name_the_damage(stage):
    data, program = stage.to_bytes(), stage.expr.to_bytes()
    newer = data[:4] + bytes([data[4] + 1]) + data[5:]
    cases = {
        data[: len(data) // 2]: "they end too early",
        b"": "they end too early",
        b"GIF89a" + data: "the magic bytes are missing",
        data + b"\0": "bytes follow the end",
        newer: rf"the stage has format {data[4] + 1}, this version reads format {data[4]}",
    }
    for damaged, message in cases.items():
        with pytest.raises(nx.FormatError, match=message):
            nx.graph.Stage.from_bytes(damaged)
    newer = program[:4] + bytes([program[4] + 1]) + program[5:]
    with pytest.raises(nx.FormatError, match=rf"has format {program[4] + 1}, this version reads"):
        nx.graph.Expression.from_bytes(newer)


def test_pickled_stage_contains_only_its_bytes(stage):
    loaded = []

    class RecordingUnpickler(pickle.Unpickler):
        def find_class(self, module, name):
            loaded.append((module, name))
            return super().find_class(module, name)

    data = pickle.dumps(stage)
    assert RecordingUnpickler(io.BytesIO(data)).load().digest == stage.digest
    assert {module.split(".")[0] for module, _ in loaded} <= {"nxla", "builtins"}
    payloads = [
        argument for _, argument, _ in pickletools.genops(data) if isinstance(argument, bytes)
    ]
    assert stage.to_bytes() in payloads
