"""Transposed convolutions, resampling, recurrent cells and CTC, against their definitions."""

import itertools

import numpy as np
import pytest

import nxla as nx
from nxla._signatures import BoundedCache

nn = nx.nn
RNG = np.random.default_rng(0)

TRANSPOSED = [
    # The columns are strides, padding, dilation, groups and window.
    (1, "valid", 1, 1, 3),
    (2, "valid", 1, 1, 3),
    (2, ((1, 1), (0, 2)), 1, 1, 3),
    (3, "valid", 2, 2, 2),
    ((2, 1), ((1, 0), (1, 1)), 2, 2, 3),
]


@pytest.mark.parametrize(("strides", "padding", "dilation", "groups", "window"), TRANSPOSED)
def test_conv_transpose_is_the_adjoint_of_conv(
    compiler, strides, padding, dilation, groups, window
):
    y = nx.tensor(RNG.normal(size=(2, 4, 5, 4)))
    kernel = nx.tensor(RNG.normal(size=(4, 6 // groups, window, window)))
    options = {
        "strides": strides,
        "padding": padding,
        "kernel_dilation": dilation,
        "feature_groups": groups,
    }
    with nx.default_options(compiler=compiler):
        found = nn.conv_transpose(y, kernel, **options)
        x = nx.tensor(RNG.normal(size=(2, 6, *found.shape[2:])))
        # <conv(x), y> == <x, conv_transpose(y)>
        left = nx.sum(nx.conv(x, kernel, **options) * y).item()
        right = nx.sum(x * found).item()
    assert left == pytest.approx(right, rel=1e-10)


@pytest.mark.parametrize(("stride", "window"), [(1, 3), (2, 3), (3, 2), (2, 4)])
def test_conv_transpose_with_same_padding_multiplies_sizes(stride, window):
    out = nn.conv_transpose(
        nx.ones((1, 1, 5)), nx.ones((1, 2, window)), strides=stride, padding="same"
    )
    assert out.shape == (1, 2, 5 * stride)


def test_conv_transpose_refuses_output_padding_with_same_padding():
    x, kernel = nx.ones((1, 1, 5)), nx.ones((1, 1, 3))
    with pytest.raises(
        nx.ArgumentError,
        match=r'^conv_transpose: output_padding: must be 0 with padding="same"; got 1$',
    ):
        nn.conv_transpose(x, kernel, strides=2, padding="same", output_padding=1)
    same = nn.conv_transpose(x, kernel, strides=2, padding="same", output_padding=[0])
    assert same.shape == (1, 1, 10)
    pairs = nn.conv_transpose(x, kernel, strides=2, padding=[(1, 0)], output_padding=1)
    assert pairs.shape == (1, 1, 11)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "nearest", "align_corners": True}, "align_corners: must be False for mode 'near"),
        ({"mode": "nearest-exact", "align_corners": True}, "align_corners: must be False for mode"),
        ({"antialias": True}, "antialias: must be False for mode 'nearest'; got True"),
        ({"mode": "nearest-exact", "antialias": True}, "antialias: must be False for mode"),
        (
            {"mode": "linear", "align_corners": True, "antialias": True},
            "antialias: must be False with align_corners; got True",
        ),
    ],
)
def test_interpolate_refuses_options_that_do_not_apply(options, message):
    with pytest.raises(nx.ArgumentError, match=f"^interpolate: {message}"):
        nn.interpolate(nx.ones((1, 1, 4)), size=2, **options)


def test_conv_transpose_values_and_errors():
    out = nn.conv_transpose([[[1.0, 2.0]]], [[[1.0, 10.0]]], strides=2, output_padding=1)
    assert out.tolist() == [[[1.0, 10.0, 2.0, 20.0, 0.0]]]
    with pytest.raises(nx.ShapeError, match="conv_transpose: kernel: must have 1 input channels"):
        nn.conv_transpose(nx.ones((1, 1, 5)), nx.ones((2, 1, 3)))
    with pytest.raises(
        nx.ArgumentError, match="conv_transpose: strides: must have 1 entries; got 2"
    ):
        nn.conv_transpose(nx.ones((1, 1, 5)), nx.ones((1, 1, 3)), strides=(1, 2))


#: Results of ``jax.image.resize`` for the numbers 0, 1, …, from one size to another.
RESIZED = [
    (8, 4, "linear", True, [0.714286, 2.5, 4.5, 6.285714]),
    (8, 4, "linear", False, [0.5, 2.5, 4.5, 6.5]),
    (8, 5, "linear", True, [0.409091, 1.925926, 3.5, 5.074074, 6.590909]),
    (4, 8, "cubic", True,
     [-0.088235, 0.167883, 0.709924, 1.25, 1.75, 2.290076, 2.832117, 3.088235]),
    (8, 3, "cubic", True, [0.896465, 3.5, 6.103535]),
    (8, 5, "cubic", False, [0.210992, 1.9, 3.5, 5.1, 6.789008]),
    (8, 3, "nearest", True, [1.0, 4.0, 6.0]),
]  # fmt: skip


@pytest.mark.parametrize(("size", "target", "method", "antialias", "expected"), RESIZED)
def test_resize(compiler, size, target, method, antialias, expected):
    with nx.default_options(compiler=compiler):
        found = nn.resize(nx.arange(float(size)), (target,), method, antialias=antialias)
        rows = nn.resize(nx.ones((2, size)), (2, target), method, antialias=antialias)
    np.testing.assert_allclose(found.numpy(), expected, atol=2e-6)
    # Weights sum to 1.
    np.testing.assert_allclose(rows.numpy(), 1.0, rtol=1e-6)


#: Results of ``torch.nn.functional.interpolate`` by its formulas.
INTERPOLATED = [
    ({"scale_factor": 2, "mode": "linear"}, [0.0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3.0]),
    ({"size": 7, "mode": "linear", "align_corners": True}, [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0]),
    ({"size": 3}, [0.0, 1.0, 2.0]),
    ({"size": 3, "mode": "nearest-exact"}, [0.0, 2.0, 3.0]),
    ({"scale_factor": 1.5}, [0.0, 0.0, 1.0, 2.0, 2.0, 3.0]),
    ({"size": 2, "mode": "linear", "antialias": True}, [0.714286, 2.285714]),
]  # fmt: skip


@pytest.mark.parametrize(("options", "expected"), INTERPOLATED)
def test_interpolate(compiler, options, expected):
    with nx.default_options(compiler=compiler):
        found = nn.interpolate([[[0.0, 1.0, 2.0, 3.0]]], **options)
    np.testing.assert_allclose(found.numpy()[0, 0], expected, atol=1e-6)


def keys(t, sharpness):
    """Return the cubic convolution kernel of R. Keys (1981)."""
    t = np.abs(t)
    inner = (sharpness + 2) * t**3 - (sharpness + 3) * t**2 + 1
    outer = sharpness * (t**3 - 5 * t**2 + 8 * t - 4)
    return np.where(t < 1, inner, np.where(t < 2, outer, 0.0))


def antialiased(size, target, mode):
    """Return the weights of PyTorch's interpolation with `antialias`, as in its source."""
    scale, reach = size / target, {"bilinear": 1, "bicubic": 2}[mode]
    kernel = (lambda t: keys(t, -0.5)) if mode == "bicubic" else lambda t: np.maximum(1 - abs(t), 0)
    weights = np.zeros((target, size))
    for row, center in zip(weights, (np.arange(target) + 0.5) * scale, strict=True):
        support = reach * max(scale, 1.0)
        first, end = max(int(center - support + 0.5), 0), min(int(center + support + 0.5), size)
        row[first:end] = kernel((np.arange(first, end) - center + 0.5) / max(scale, 1.0))
    return weights / weights.sum(1, keepdims=True)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("sizes", [(1, 8), (5, 8), (5, 3), (13, 13), (3, 16), (16, 3), (2, 1)])
def test_antialiased_interpolation(compiler, mode, sizes):
    """Enlarged and reduced axes, whose kernels are cut off at the borders."""
    size, target = sizes
    x = RNG.normal(size=(size, 4))
    expected = antialiased(size, target, mode) @ x @ antialiased(4, 7, mode).T
    with nx.default_options(compiler=compiler):
        found = nn.interpolate(nx.tensor(x[None, None]), (target, 7), mode=mode, antialias=True)
    np.testing.assert_allclose(found.numpy()[0, 0], expected, atol=1e-6)


def test_bicubic_interpolation(compiler):
    x = RNG.normal(size=(5, 8))
    expected = x
    for axis, target in ((0, 10), (1, 13)):
        size = x.shape[axis]
        positions = (np.arange(target) + 0.5) * size / target - 0.5
        taps = np.floor(positions).astype(int)[:, None] + np.arange(-1, 3)
        weights = np.zeros((target, size))
        # Neighbors outside of the image equal the edge.
        rows = np.repeat(np.arange(target), 4)
        np.add.at(
            weights,
            (rows, np.clip(taps, 0, size - 1).ravel()),
            keys(positions[:, None] - taps, -0.75).ravel(),
        )
        expected = np.moveaxis(np.tensordot(weights, expected, axes=(1, axis)), 0, axis)
    with nx.default_options(compiler=compiler):
        found = nn.interpolate(nx.tensor(x[None, None]), (10, 13), mode="bicubic")
    np.testing.assert_allclose(found.numpy()[0, 0], expected, rtol=1e-10)


def test_errors_of_resampling():
    with pytest.raises(nx.ShapeError, match="resize: shape: must have 2 positive sizes"):
        nn.resize(nx.ones((2, 2)), (4,))
    with pytest.raises(nx.ArgumentError, match="resize: method: must be"):
        nn.resize(nx.ones(2), (4,), "area")
    with pytest.raises(nx.ArgumentError, match="interpolate: size, scale_factor: exactly one"):
        nn.interpolate(nx.ones((1, 1, 2)))
    with pytest.raises(nx.ArgumentError, match="interpolate: mode: must be a method for 1 spatial"):
        nn.interpolate(nx.ones((1, 1, 2)), 3, mode="bilinear")


@pytest.mark.parametrize("method", ["linear", "cubic", "nearest"])
def test_gradients_of_resampling(method):
    x = nx.tensor(RNG.normal(size=(2, 6)))
    nx.testing.check_grads(lambda x: nn.resize(x, (3, 9), method), (x,), order=1)


def test_pools_with_dilations(compiler):
    x = RNG.normal(size=(1, 1, 9)).astype("f4")
    with nx.default_options(compiler=compiler):
        found = nn.max_pool(nx.tensor(x), 3, strides=1, dilations=2)
        same = nn.max_pool(nx.tensor(x), 3, strides=1, dilations=2, padding="same")
        means = nn.avg_pool(nx.tensor(x), 3, strides=2, dilations=2)
    windows = np.stack([x[0, 0, k : k + 5] for k in (0, 2, 4)])
    np.testing.assert_array_equal(found.numpy()[0, 0], windows.max(0))
    assert same.shape == x.shape
    np.testing.assert_allclose(means.numpy()[0, 0], windows.mean(0)[::2], rtol=1e-6)
    with pytest.raises(nx.ArgumentError, match="dilations"):
        nn.max_pool(nx.tensor(x), 3, dilations=(1, 2))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_lstm_cell(compiler):
    w_x, w_h, b = RNG.normal(size=(3, 8)), RNG.normal(size=(2, 8)), RNG.normal(size=8)
    xs = RNG.normal(size=(5, 4, 3))
    h, c = np.zeros((4, 2)), np.zeros((4, 2))
    expected = []
    for x in xs:
        i, f, g, o = np.split(x @ w_x + h @ w_h + b, 4, axis=-1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        expected.append(h)
    weights = [nx.tensor(w) for w in (w_x, w_h, b)]
    start = (nx.zeros((4, 2), dtype="f64"), nx.zeros((4, 2), dtype="f64"))
    with nx.default_options(compiler=compiler):
        (last, memory), found = nx.scan(
            lambda carry, x: nn.lstm_cell(carry, x, *weights), start, nx.tensor(xs)
        )
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)
    np.testing.assert_allclose(last.numpy(), h, rtol=1e-12)
    np.testing.assert_allclose(memory.numpy(), c, rtol=1e-12)
    with pytest.raises(nx.ShapeError, match=r"lstm_cell: w_x: must have the shape \(3, 8\)"):
        nn.lstm_cell(start, nx.tensor(xs[0]), nx.ones((3, 6)), weights[1])


def test_gru_cell(compiler):
    w_x, w_h = RNG.normal(size=(3, 6)), RNG.normal(size=(2, 6))
    b_x, b_h = RNG.normal(size=(2, 6))
    x, h = RNG.normal(size=(4, 3)), RNG.normal(size=(4, 2))
    r_x, z_x, n_x = np.split(x @ w_x + b_x, 3, axis=-1)
    r_h, z_h, n_h = np.split(h @ w_h + b_h, 3, axis=-1)
    z = sigmoid(z_x + z_h)
    expected = (1 - z) * np.tanh(n_x + sigmoid(r_x + r_h) * n_h) + z * h
    with nx.default_options(compiler=compiler):
        carry, found = nn.gru_cell(*map(nx.tensor, (h, x, w_x, w_h, b_x, b_h)))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)
    assert nx.all(carry == found).item()
    nx.testing.check_grads(
        lambda *operands: nn.gru_cell(*operands)[1],
        tuple(map(nx.tensor, (h, x, w_x, w_h))),
        order=1,
    )


LOGITS = RNG.normal(size=(5, 5, 3))
LABELS = np.array([[1, 2], [1, 1], [2, 0], [0, 0], [1, 1]])
LENGTHS, TIMES = [2, 2, 1, 0, 2], [5, 4, 3, 5, 2]
LABEL_PADS = np.array([[k >= n for k in range(2)] for n in LENGTHS], dtype=np.float32)
LOGIT_PADS = np.array([[k >= n for k in range(5)] for n in TIMES], dtype=np.float32)


def loss_by_enumeration(logits, labels):
    """Sum the probabilities of all alignments."""
    logs = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    total = 0.0
    for path in itertools.product(range(logits.shape[1]), repeat=len(logits)):
        if [label for label, _ in itertools.groupby(path) if label] == list(labels):
            total += np.exp(sum(logs[time, label] for time, label in enumerate(path)))
    return -np.log(total) if total else np.inf


def ctc(logits):
    return nn.ctc_loss(logits, LOGIT_PADS, nx.tensor(LABELS), LABEL_PADS)


def test_ctc_loss(compiler):
    pairs = zip(LOGITS, LABELS, TIMES, LENGTHS, strict=True)
    expected = [loss_by_enumeration(x[:time], y[:length]) for x, y, time, length in pairs]
    assert expected[-1] == np.inf
    with nx.default_options(compiler=compiler):
        found = ctc(nx.tensor(LOGITS)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_ctc_loss_with_padding_anywhere(compiler):
    logits = RNG.normal(size=(3, 3))
    sequences = [(), (1,), (1, 2), (1, 1), (2, 1)]
    for pads in itertools.product((0, 1), repeat=3):
        steps = logits[[step for step in range(3) if not pads[step]]]
        expected = [loss_by_enumeration(steps, labels) for labels in sequences]
        labels = np.array([[*labels, 0, 0][:2] for labels in sequences])
        label_pads = np.array([[k >= len(labels) for k in range(2)] for labels in sequences])
        with nx.default_options(compiler=compiler):
            found = nn.ctc_loss(
                nx.tensor(np.stack([logits] * len(sequences))),
                np.array([pads] * len(sequences), "f4"),
                nx.tensor(labels),
                label_pads.astype("f4"),
            ).numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_gradient_of_ctc_loss(compiler):
    with nx.default_options(compiler=compiler):
        slopes = nx.grad(lambda x: nx.sum(ctc(x)[:4]))(nx.tensor(LOGITS)).numpy()
        impossible = nx.grad(lambda x: ctc(x)[4])(nx.tensor(LOGITS)).numpy()
    change = RNG.normal(size=LOGITS.shape)
    up, down = (ctc(nx.tensor(LOGITS + step * change)).numpy()[:4].sum() for step in (1e-5, -1e-5))
    assert np.sum(slopes * change) == pytest.approx((up - down) / 2e-5, rel=1e-6)
    # The gradients of padding and of a sequence that is too short are zero.
    assert np.all(slopes[LOGIT_PADS == 1] == 0.0)
    assert np.all(impossible == 0.0)


def test_ctc_loss_of_other_dtypes_and_shapes():
    assert (
        nn.ctc_loss(nx.zeros((1, 2, 3), dtype="bf16"), nx.zeros((1, 2)), [[1]], [[0]]).dtype
        == "bf16"
    )
    one = nn.ctc_loss(
        nx.zeros((1, 4, 3)), nx.zeros((1, 4)), nx.zeros((1, 0), dtype="s32"), nx.zeros((1, 0))
    )
    assert one.item() == pytest.approx(4 * np.log(3), rel=1e-6)
    with pytest.raises(nx.ShapeError, match="ctc_loss: operands: must have the shapes"):
        nn.ctc_loss(nx.zeros((2, 3)), nx.zeros((1, 2)), [[1]], [[0]])


def test_ctc_is_traced_once_for_equal_shapes_and_blanks(monkeypatch):
    from nxla import _signatures
    from nxla.nn import sequences

    traced = []
    loss_of = sequences._ctc

    def counted(x, x_pads, y, y_pads, blank_id):
        traced.append(blank_id)
        return loss_of(x, x_pads, y, y_pads, blank_id)

    monkeypatch.setattr(_signatures, "_programs", BoundedCache())
    monkeypatch.setattr(sequences, "_ctc", counted)
    x, pads = nx.tensor(RNG.normal(size=(2, 6, 4)), dtype="f32"), nx.zeros((2, 6))
    operands = pads, nx.tensor([[1, 2], [3, 1]]), nx.zeros((2, 2))
    losses = [nn.ctc_loss(x, *operands, blank_id=blank) for blank in (0, 3, 0, 3)]
    assert traced == [0, 3]
    assert losses[0].tolist() == losses[2].tolist() != losses[1].tolist() == losses[3].tolist()
    for blank, loss in ((0, losses[0]), (3, losses[1]), (np.int32(3), losses[1])):
        call = lambda x, blank=blank: nn.ctc_loss(x, *operands, blank_id=blank)  # noqa: E731
        assert nx.all_close(nx.jit(call)(x), loss, rtol=1e-5).item()
        assert nx.all_close(call(x), loss, rtol=1e-5).item()


def test_ctc_loss_accepts_any_class_as_blank():
    x, pads = nx.tensor(RNG.normal(size=(1, 4, 3))), nx.zeros((1, 4))
    losses = [nn.ctc_loss(x, pads, [[1]], [[0]], blank_id=blank).item() for blank in (2, -1)]
    assert losses[0] == losses[1] != nn.ctc_loss(x, pads, [[1]], [[0]]).item()
    for blank in (3, -4, 7, 1.5, "0"):
        with pytest.raises(nx.ArgumentError, match="ctc_loss: blank_id: must be from -3 to 2"):
            nn.ctc_loss(x, pads, [[1]], [[0]], blank_id=blank)
