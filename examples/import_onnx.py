"""Fine-tune an ONNX model: a small classifier from a file learns three clusters of points."""

from pathlib import Path

import numpy as np

import nxla as nx
from nxla import optim

MODEL = Path(__file__).with_name("data") / "mlp.onnx"


def points(count, seed=0):
    """Draw points around three centers, and the number of the center of each."""
    rng = np.random.default_rng(seed)
    centers = np.array([[0.0, 1.5], [-1.3, -0.8], [1.3, -0.8]])
    labels = rng.integers(0, 3, count)
    noise = rng.normal(0.0, 0.5, (count, 2))
    return (centers[labels] + noise).astype(np.float32), labels.astype(np.int32)


def main(steps=200, count=300):
    """Return the loss before and after, and the share of points that are classified correctly."""
    model = nx.from_onnx(MODEL, weights="arguments")
    x, labels = (nx.tensor(value) for value in points(count))

    def loss(weights, x, labels):
        logits = model(weights, x)
        return nx.mean(nx.nn.softmax_cross_entropy_with_integer_labels(logits, labels))

    optimizer = optim.adam(0.05)

    @nx.jit
    def step(weights, state, x, labels):
        value, gradient = nx.value_and_grad(loss)(weights, x, labels)
        updates, state = optimizer.update(gradient, state, weights)
        return optim.apply_updates(weights, updates), state, value

    weights = model.weights
    state = optimizer.init(weights)
    first = loss(weights, x, labels).item()
    for _ in range(steps):
        weights, state, _ = step(weights, state, x, labels)
    found = nx.argmax(model(weights, x), axis=-1)
    right = nx.mean(nx.astype(nx.equal(found, labels), "f32")).item()
    return {"first": first, "last": loss(weights, x, labels).item(), "right": right}


if __name__ == "__main__":
    result = main()
    print(f"loss {result['first']:.3f} -> {result['last']:.3f}, {result['right']:.0%} correct")
