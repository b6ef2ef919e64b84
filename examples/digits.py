"""Train a small network on scikit-learn's handwritten digits, whole and in stages.

The data ships with scikit-learn: 1,797 pictures of 8 by 8 pixels. The training step is one
function, differentiated and compiled by XLA. Then the same step is split into three stages
(forward, backward, update) that give the same numbers, and timed on the evaluator as well.

Run it with ``make demo``.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm import tqdm

import nxla as nx

LAYERS = (64, 96, 48, 10)
BATCH = 128
EPOCHS = 40
LEARNING_RATE = 2e-3
BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


def initial_parameters(rng):
    """Weights and biases of each layer, scaled for rectified activations (He et al. 2015)."""
    layers = []
    for fan_in, fan_out in itertools.pairwise(LAYERS):
        scale = np.sqrt(2.0 / fan_in)
        weight = rng.normal(0.0, scale, (fan_in, fan_out)).astype(np.float32)
        layers.append({"weight": weight, "bias": np.zeros(fan_out, np.float32)})
    return layers


def predict(layers, pictures):
    """Scores of the ten digits, shape ``(batch, 10)``."""
    x = pictures
    for layer in layers[:-1]:
        x = nx.maximum(x @ layer["weight"] + layer["bias"], 0.0)
    return x @ layers[-1]["weight"] + layers[-1]["bias"]


def loss(layers, pictures, labels):
    """Mean cross-entropy of the digits, given as one-hot rows."""
    # The stages below are split at this note, which does not change the value.
    scores = nx.annotate(predict(layers, pictures), "forward")
    log_probability = scores - nx.logsumexp(scores, axis=-1, keepdims=True)
    return -nx.mean(nx.sum(labels * log_probability, axis=-1))


def train_step(layers, moments, step, pictures, labels):
    """Apply one step of Adam (Kingma and Ba 2015); return the loss and the updated values."""
    value, gradients = nx.value_and_grad(loss)(layers, pictures, labels)
    gradients = nx.annotate(gradients, "update")
    step = step + 1.0
    correction1, correction2 = 1.0 - BETA1**step, 1.0 - BETA2**step
    new_layers, new_moments = [], []
    for layer, gradient, moment in zip(layers, gradients, moments, strict=True):
        new_layer, new_moment = {}, {}
        for name in layer:
            mean, square = moment[name]
            mean = BETA1 * mean + (1.0 - BETA1) * gradient[name]
            square = BETA2 * square + (1.0 - BETA2) * gradient[name] * gradient[name]
            change = (mean / correction1) / (nx.sqrt(square / correction2) + EPSILON)
            new_layer[name] = layer[name] - LEARNING_RATE * change
            new_moment[name] = (mean, square)
        new_layers.append(new_layer)
        new_moments.append(new_moment)
    return value, new_layers, new_moments, step


def batches(rng, pictures, labels):
    """Shuffled batches of equal size, without the incomplete last batch."""
    order = rng.permutation(len(pictures))
    for start in range(0, len(order) - BATCH + 1, BATCH):
        chosen = order[start : start + BATCH]
        yield pictures[chosen], labels[chosen]


def initial_state(seed):
    """Parameters, zero moments and the step count."""
    layers = initial_parameters(np.random.default_rng(seed))
    zeros = [
        {name: (0.0 * value, 0.0 * value) for name, value in layer.items()} for layer in layers
    ]
    return layers, zeros, np.float32(0.0)


def train(step_function, pictures, labels, epochs, seed=0):
    """Train from a fixed start; return the layers and the losses of all steps."""
    layers, moments, count = initial_state(seed)
    rng = np.random.default_rng(seed)
    losses = []
    progress = tqdm(range(epochs), desc="training", unit="epoch", file=sys.stdout, mininterval=0.2)
    for _ in progress:
        for x, y in batches(rng, pictures, labels):
            value, layers, moments, count = step_function(layers, moments, count, x, y)
            losses.append(value)
        progress.set_postfix(loss=f"{float(losses[-1]):.4f}", refresh=False)
    return layers, losses


def leaves(container):
    """The numbers of a container of tensors, in order, as numpy arrays."""
    return [np.asarray(leaf) for leaf in nx.tree.leaves(container)]


def largest_difference(left, right):
    """The largest absolute difference between two containers of the same structure."""
    pairs = zip(leaves(left), leaves(right), strict=True)
    return max(float(np.max(np.abs(x.astype(np.float64) - y))) for x, y in pairs)


def seconds_per_step(step_function, arguments, repeats):
    """Median elapsed time of a step, including the wait for its results."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        results = step_function(*arguments)
        for leaf in nx.tree.leaves(results):
            leaf.block_until_ready()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def cut(node):
    """Cut the step after the scores and before the update."""
    if node.op != "metadata":
        return "none"
    return {"forward": "after", "update": "before"}.get(node.note, "none")


def main():  # noqa: PLR0915 - a script is read from top to bottom
    """Trains, splits, compares and reports."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compiler", default="xla", help="what trains: xla or evaluator")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--out", type=Path, default=Path("out"), help="where the picture goes")
    options = parser.parse_args()

    digits = load_digits()
    pictures = (digits.data / 16.0).astype(np.float32)
    labels = np.eye(10, dtype=np.float32)[digits.target]
    train_x, test_x, train_y, test_y = train_test_split(
        pictures, labels, test_size=0.2, random_state=0, stratify=digits.target
    )
    print(f"{len(train_x)} pictures to train on, {len(test_x)} held out")

    layers, _, _ = initial_state(0)
    print("\nThe loss as an expression:\n")
    print(nx.debug_expr(loss)(layers, train_x[:BATCH], train_y[:BATCH]))

    step = nx.jit(train_step, compiler=options.compiler)
    print(f"\nTraining on {options.compiler}:")
    layers, losses = train(step, train_x, train_y, options.epochs)
    scores = np.asarray(nx.jit(predict, compiler=options.compiler)(layers, test_x))
    accuracy = float(np.mean(scores.argmax(axis=1) == test_y.argmax(axis=1)))

    arguments = (*initial_state(0), train_x[:BATCH], train_y[:BATCH])
    stages = nx.graph.split(nx.debug_expr(train_step)(*arguments), cut)
    print(f"\nThe training step in {len(stages)} stages (forward, backward, update):\n")
    print(stages.explain())
    options.out.mkdir(parents=True, exist_ok=True)
    picture = options.out / "stages.svg"
    picture.write_text(stages.to_svg(), encoding="utf-8")

    evaluator = nx.jit(train_step, compiler="evaluator")
    whole = evaluator(*arguments)
    staged = nx.graph.run(stages, *arguments, compiler="evaluator")
    same = all(np.array_equal(x, y) for x, y in zip(leaves(whole), leaves(staged), strict=True))
    compiled = step(*arguments)
    staged_compiled = nx.graph.run(stages, *arguments, compiler=options.compiler)
    difference = largest_difference(compiled, staged_compiled)

    time_compiled = seconds_per_step(step, arguments, 50)
    time_evaluator = seconds_per_step(evaluator, arguments, 20)
    print(f"loss                    {float(losses[0]):.4f} -> {float(losses[-1]):.4f}")
    print(f"test accuracy           {accuracy:.4f}")
    print(f"staged equals whole     {same} (evaluator, bit for bit)")
    print(f"staged against whole    {difference:.2e} on {options.compiler}, largest difference")
    print(f"time per step           {time_compiled * 1e3:.3f} ms on {options.compiler}")
    print(f"                        {time_evaluator * 1e3:.3f} ms on the evaluator")
    print(
        f"{options.compiler} against evaluator   "
        f"{largest_difference(compiled, whole):.2e}, largest difference after one step"
    )
    print(f"picture of the stages   {picture}")
    if accuracy < 0.96 or not same or difference > 1e-5:
        sys.exit("the demonstration did not reach what it promises")


if __name__ == "__main__":
    main()
