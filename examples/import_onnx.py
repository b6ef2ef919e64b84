"""Fine-tune an ONNX model: a small classifier learns three clusters of points, and is drawn."""

import base64

import numpy as np

import nxla as nx
from nxla import optim

# The contents of an ONNX file: Gemm, Tanh, Gemm with 2 inputs, 16 hidden units and 3 classes.
MODEL = base64.b64decode("""
CAo63QQKHAoBeAoCdzEKAmIxEgFoGgZoaWRkZW4iBEdlbW0KGAoBaBIBYRoKYWN0aXZhdGlvbiIEVGFuaAohCgFhCgJ3MgoC
YjISBmxvZ2l0cxoGb3V0cHV0IgRHZW1tEgNtbHAqjQEIAggQEAFCAncxSoABqhO2PetOv72X2+c+XumXPdvuwb5R6YI+mgxs
P6JwKz+Fx/6+1RBlv0Om4b65Yu88EXDSvw5sHr6yiGG/940Ev/UKxb6ZBmW+swaVPg+3PD9ZI7q9N1t3P4LT8L4+hX4+q4sj
P/QkiD12lga/odkmv+a2pb40cB8+qsI2v5R1F74qSggQEAFCAmIxSkAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAKs0BCBAIAxABQgJ3MkrAAeILI73bdAo+ms9bPWnztT1QYSe+cLkE
vZ6ySD7AKL8+DymhvkHIwT6lRaw+BgRIPrpmhz1+uqC9bKC6Pr/p+j75m+Y+UlWoPpH6tj0vqpq++vORur4OKD4H6aS+cE3K
PRgX3D3bLzI+LZGXvldlKb5xdN+9EryVvpuj3j4D6P29tW6oPZ9jhL09r8o+lwGpPmYjIj5OBg2/VRxVPA8GLz7QgYA+KC8e
vqs36T7iA6m+51kpvnBfbz5+7Ug8MycAPyoWCAMQAUICYjJKDAAAAAAAAAAAAAAAAFoYCgF4EhMKEQgBEg0KBxIFYmF0Y2gK
AggCYh0KBmxvZ2l0cxITChEIARINCgcSBWJhdGNoCgIIA0IECgAQFQ==
""")


def points(count, seed=0):
    """Draw points around three centers, and the number of the center of each."""
    rng = np.random.default_rng(seed)
    centers = np.array([[0.0, 1.5], [-1.3, -0.8], [1.3, -0.8]])
    labels = rng.integers(0, 3, count)
    noise = rng.normal(0.0, 0.5, (count, 2))
    return (centers[labels] + noise).astype(np.float32), labels.astype(np.int32)


def run(steps=200, count=300):
    """Fine-tune all weights; return the losses, the share of right classes and the step."""
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
    program = nx.debug_expr(step)(weights, state, x, labels)
    losses = []
    for _ in range(steps):
        weights, state, value = step(weights, state, x, labels)
        losses.append(value)
    classes = nx.argmax(model(weights, x), axis=-1)
    right = nx.mean(nx.astype(nx.equal(classes, labels), "f32"))
    return {"losses": nx.stack(losses), "right": right, "step": program}


if __name__ == "__main__":
    result = run()
    first, last = result["losses"][0].item(), result["losses"][-1].item()
    print(f"loss {first:.3f} -> {last:.3f}, {result['right'].item():.0%} correct")
    nx.view(result["step"]).save("import_onnx.html")
