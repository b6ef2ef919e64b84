"""Write the golden files of the present format, next to the files of earlier formats.

Existing files do not change, because released formats are never written again. Run the script after
an increment of a version, and describe the new version in ``docs/format.md``::

    python tests/formats/write.py
"""

import json
import struct
import sys
from pathlib import Path

import nxla as nx

FOLDER = Path(__file__).parent


def example(table, x, count):
    """Compute something with an operation of each family, and regions inside regions."""
    x = nx.hook(nx.sin(x) + 0.5, "seen")
    x = nx.cond(count > 2, lambda: nx.cumulative_sum(x), lambda: -x)
    x = nx.while_loop(
        lambda s: nx.sum(s[0]) < 100, lambda s: (s[0] * 2 + 1, s[1] + 1), (nx.abs(x), count)
    )[0]
    rows = nx.take(table, nx.argsort(x)[:2], axis=0)
    pooled = nx.window_max(nx.reshape(rows, (2, 4)), (1, 2))
    return {"product": pooled @ nx.ones((3, 2)), "x": nx.astype(x, nx.float64), "n": nx.eye(2)}


def arguments():
    """Return arguments of the example."""
    table = nx.reshape(nx.arange(12, dtype=nx.float32), (3, 4))
    return table, nx.tensor([0.25, -1.5, 3.0]), nx.tensor(3)


def stages_as_bytes(stages, expression):
    """Write a graph of stages by the book, which is ``docs/format.md``."""
    inputs = nx.debug_expr(lambda *args: ())(*[nx.template(*kind) for kind in expression.inputs])

    def block(data):
        return struct.pack("<Q", len(data)) + data

    def source(stage, index):
        return struct.pack("<IQ", 0xFFFFFFFF if stage is None else stage, index)

    version = stages.stages[0].to_bytes()[4:8]
    parts = [b"nxsg", version, block(inputs.to_bytes())]
    parts.append(struct.pack("<Q", len(stages.stages)))
    parts += [block(stage.to_bytes()) for stage in stages.stages]
    parts.append(struct.pack("<Q", len(stages.outputs)))
    parts += [source(*output) for output in stages.outputs]
    return b"".join(parts)


def main():
    """Write the missing files."""
    # Programs contain source lines with file names; the stored files must not contain a local path.
    code = compile(Path(__file__).read_text(encoding="utf-8"), "example.py", "exec")
    names = {"__name__": "example", "__file__": __file__}
    exec(code, names)
    expression = nx.debug_expr(names["example"])(*arguments())
    stages = nx.graph.split(
        expression, lambda node: "after" if node.op in ("while", "dot") else "none"
    )
    program, stage = expression.to_bytes(), stages.stages[0].to_bytes()
    version = struct.unpack("<H", program[4:6])[0]
    stage_version = struct.unpack("<I", stage[4:8])[0]
    name = f"{stage_version}-of-{version}"
    results = [leaf.tolist() for leaf in nx.tree.leaves(expression.run(*arguments()))]
    facts = {
        "digest": expression.digest,
        "ops": [node.op for node in expression.nodes],
        "results": results,
        "stages": [stage.digest for stage in stages.stages],
        "arguments": [stage.arguments for stage in stages.stages],
    }
    files = {
        f"program-{version}.bin": program,
        f"stage-{name}.bin": stage,
        f"stages-{name}.bin": stages_as_bytes(stages, expression),
        f"facts-{name}.json": (json.dumps(facts, indent=1) + "\n").encode(),
    }
    for path, data in files.items():
        if (FOLDER / path).exists():
            sys.stdout.write(f"{path} is there already\n")
        else:
            (FOLDER / path).write_bytes(data)


if __name__ == "__main__":
    main()
