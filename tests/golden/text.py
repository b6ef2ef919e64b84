"""Comparison of printed expressions: the graphs and operations of Nx and nxla must be equal.

The allowed differences are:

* Nx shares a node only if the program does; nodes of nxla are hash-consed. Both texts are parsed
  into graphs, equal lines are merged, and the nodes are renamed in traversal order.
* A predicate has the dtype ``u8`` in Nx and ``pred`` in nxla.
* Nx prints functions with Erlang's names, and nxla as ``&fun/1``.
* Blocks of Nx are structs, ``%Nx.Block.TopK{k: 2}``; blocks of nxla have a name and the same
  attributes, ``top_k{k: 2}``. Some are ops in nxla (`OPS`). Options for the iteration of Nx's
  reference kernels (`ITERATION`) are ignored.
* A number in an operation of floats may be printed as an integer, ``2`` for ``2.0``, depending on
  where literals were folded.
* Numbers are equal if their first seven digits are: Nx rounds logarithms of bases to ``f32``.
* The sum of a value and itself equals twice the value.
* Renaming axes is a ``reshape`` in nxla, and no node in Nx.
* A slice with a stride ends at its last element in nxla, so that equal slices have equal text.
* For a host call, Nx also prints the template and the options, but no operands in containers.
* nxla prints all notes, and Nx only the notes that it creates itself.
* A transform along two axes is a transform along any number of axes in nxla, ``fftn``.
* Nx prints ``keep_axes: nil`` for some reductions, where the default is ``false``.
* Templates are printed on several lines, and compared on one line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

#: Options for the iteration of Nx's reference kernels, which do not change the value.
ITERATION = ("eps", "max_iter")
#: Blocks of Nx that are ops in nxla.
OPS = ("logical_not", "cholesky", "eigh")

#: Factorizations are blocks in Nx, and ops in nxla, which print their options at the end.
_FACTORS = re.compile(r"\bblock (qr|svd)\{([^}]+)\}, ([a-z]+)")

#: Notes that Nx creates itself, and prints.
NOTES = (":stop_grad", ":custom_grad")

_TENSOR = re.compile(r"#(?:Nx\.Tensor|nxla\.Expr)<")
_LINE = re.compile(r"^(?P<name>[a-z]+) = (?P<text>.*?)(?:\s{3,}(?P<type>\S+))?$")
_INPUT = re.compile(
    r"^(?P<kind>parameter|tensor) (?P<name>[a-z]+)(?::(?P<index>\d+))?\s{3,}(?P<type>\S+)$"
)
_WORD = re.compile(r"(?<![:\w.%])[a-z]{1,3}\b(?![:{\w])")
_KEYS = re.compile(r"(?:'[^']*'|:\w+): ")
_TYPE = re.compile(r"(?:pred|bf16|[a-z]\d+(?:_\w+)?)(?:\[[^\]]*\])*")
_NAME = re.compile(r"-?\d[\w.+-]*|[A-Za-z]+")
_TEMPLATE = re.compile(r"#(?:Nx\.Tensor|nxla\.Tensor)<\s*(\S+)\s*Nx\.TemplateBackend\s*>")


@dataclass
class Graph:
    """A graph that was parsed from a printed expression."""

    type: str
    #: For each name: the text of its line, its type, and whether the line precedes the operations.
    lines: dict[str, tuple[str, str, bool]] = field(default_factory=dict)
    root: str = ""


def canonical(text: str) -> list[str]:
    """Return one canonical string for each tensor of a container, sorted for a map."""
    found = [_print(graph) for graph in graphs(text)]
    return sorted(found) if text.startswith("%{") else found


def graphs(text: str) -> list[Graph]:
    """Parse the printed tensors of a container into graphs."""
    found = (_read_all(block) for block in _blocks(_TEMPLATE.sub(r"template \1", text)))
    return [graph for graphs in found for graph in graphs]


def rename(words: str, graph: Graph, name_of: Callable[[str], str]) -> str:
    """Rename the operands in a line."""
    return _WORD.sub(lambda m: name_of(m[0]) if m[0] in graph.lines else m[0], words)


def _blocks(text: str) -> list[list[str]]:
    """Split a printed container into the lines of its tensors."""
    blocks: list[list[str]] = []
    current: list[str] | None = None
    for line in text.splitlines():
        stripped = line.strip()
        if current is None:
            if _TENSOR.search(line):
                current = []
        elif stripped.startswith(">"):
            blocks.append(current)
            # The next tensor of a tuple may begin on the last line of this tensor.
            current = [] if _TENSOR.search(line) else None
        else:
            current.append(stripped)
    return blocks


def _read_all(lines: list[str]) -> list[Graph]:
    """Read a block as a graph for each of its tensors.

    nxla prints the tensors of a container as one block: the types are at the top, the names at the
    end.
    """
    if not lines[0].startswith(("(", "[", "{")):
        return [_read(lines)]
    types = _TYPE.findall(_KEYS.sub("", lines[0]))
    roots = _NAME.findall(_KEYS.sub("", lines[-1]))
    inside = lines[1:-2]
    return [_read([ty, *inside, root]) for ty, root in zip(types, roots, strict=True)]


def _read(lines: list[str]) -> Graph:
    blank = lines.index("")
    graph = Graph(" ".join(_type(line) for line in lines[:blank]))
    for line in lines[blank + 1 :]:
        if line == "Nx.Defn.Expr":
            continue
        listed, operation = _INPUT.match(line), _LINE.match(line)
        if listed:
            words = listed["kind"] + (f":{listed['index']}" if listed["index"] else "")
            graph.lines[listed["name"]] = (words, _type(listed["type"]), True)
        elif operation:
            words = _words(operation["text"])
            graph.lines[operation["name"]] = (words, _type(operation["type"] or ""), False)
        else:
            graph.root = line
    if not graph.root and graph.lines:
        # Nodes are named in post-order, so the root has the last name.
        graph.root = max(graph.lines, key=lambda name: (len(name), name))
    return graph


def _type(text: str) -> str:
    return re.sub(r"\bpred\b", "u8", text)


def _words(text: str) -> str:
    text = re.sub(r"#Function<[^>]*>(?:\.[\w/&]+)?", "&fun", text)
    text = re.sub(r"&(?:anonymous fn|fun)/\d.*$", "&fun", text)
    text = re.sub(r"^runtime_call (?:\{[^}]*\}, )?(?:([a-z]+), )?&fun.*$", _host_call, text)
    text = text.replace("keep_axes: nil", "keep_axes: false")
    text = re.sub(r"(?<![\w.])-?\d+\.\d+(?:e[-+]?\d+)?(?!\w)", lambda x: f"{float(x[0]):.7g}", text)
    text = re.sub(r"^add ([a-z]+), \1$", r"multiply 2, \1", text)
    text = re.sub(r"^(slice .*), \[([\d, ]*)\], \[([\d, ]*)\]$", _slice, text)
    text = re.sub(r"%Nx\.Block\.([\w.]+)\{([^}]*)\}", _block, text)
    text = re.sub(rf"\bblock ({'|'.join(OPS)})\{{\}},", r"\1", text)
    text = _FACTORS.sub(r"\1 \3, \2", text)
    return re.sub(rf"\b(?:{'|'.join(ITERATION)}): [^,]+, ", "", text)


def _host_call(found: re.Match[str]) -> str:
    return f"runtime_call {found[1]}, &fun" if found[1] else "runtime_call &fun"


def _slice(found: re.Match[str]) -> str:
    """Let each axis end at the last element that is taken."""
    lengths, strides = ([int(x) for x in part.split(",") if x] for part in (found[2], found[3]))
    ends = [(n - 1) // by * by + 1 for n, by in zip(lengths, strides, strict=True)]
    return f"{found[1]}, {ends}, {strides}"


def _block(found: re.Match[str]) -> str:
    last = found[1].split(".")[-1]
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", last).lower()
    name = {"fft2": "fftn", "ifft2": "ifftn"}.get(name, name)
    parts = [part for part in found[2].split(", ") if part and part.split(":")[0] not in ITERATION]
    return f"{name}{{{', '.join(parts)}}}"


def same_value(words: str, kind: str, graph: Graph) -> str | None:
    """Return the operand of a line without effect on values: a note, or new names of axes."""
    found = re.fullmatch(r"(?:reshape|metadata) ([a-z]+)(?:, (:\w+))?", words)
    if found is None or found[1] not in graph.lines or found[2] in NOTES:
        return None
    unnamed = [re.sub(r"\[\w+: ", "[", ty) for ty in (kind, graph.lines[found[1]][1])]
    return found[1] if unnamed[0] == unnamed[1] else None


def _print(graph: Graph) -> str:
    """Print the lines in canonical form: equal lines once, named in traversal order."""
    names: dict[str, str] = {}
    known: dict[tuple[str, str], str] = {}
    inputs: list[str] = []
    rows: list[str] = []

    def visit(name: str) -> str:
        if name in names:
            return names[name]
        words, kind, listed = graph.lines[name]
        same = same_value(words, kind, graph)
        if same is not None:
            names[name] = visit(same)
            return names[name]
        row = rename(words, graph, visit)
        key = (name, kind) if row == "tensor" else (row, kind)
        if key not in known:
            known[key] = f"v{len(known)}"
            (inputs if listed else rows).append(f"{known[key]} = {row}   {kind}")
        names[name] = known[key]
        return names[name]

    root = visit(graph.root) if graph.root in graph.lines else graph.root
    return "\n".join([graph.type, *inputs, *rows, root])


def mismatch(expected: str, actual: str) -> str | None:
    """Return the difference of two printed expressions; None if their graphs are equal."""
    left, right = canonical(expected), canonical(actual)
    if left == right:
        return None
    if len(left) != len(right):
        return f"text of {len(right)} tensors, expected {len(left)}"
    for want, got in zip(left, right, strict=True):
        if want != got:
            return f"text\n{got}\n  expected\n{want}"
    return None
