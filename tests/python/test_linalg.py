"""`nx.linalg` and `nx.fft`, compared with numpy."""

import itertools

import numpy as np
import pytest

import nxla as nx

RNG = np.random.default_rng(0)


def matrices(*shape, dtype="float64"):
    """Return random numbers, complex ones for a complex dtype."""
    x = RNG.standard_normal(shape)
    if np.issubdtype(np.dtype(dtype), np.complexfloating):
        x = x + 1j * RNG.standard_normal(shape)
    return x.astype(dtype)


def close(found, expected, tolerance=1e-9):
    np.testing.assert_allclose(np.asarray(found), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4)])
def test_functions_of_square_matrices(shape, dtype):
    a = matrices(*shape, dtype=dtype)
    close(nx.linalg.inv(a), np.linalg.inv(a))
    close(nx.linalg.det(a), np.linalg.det(a))
    sign, logarithm = nx.linalg.slogdet(a)
    close(sign, np.linalg.slogdet(a).sign)
    close(logarithm, np.linalg.slogdet(a).logabsdet)
    for power in (-2, 0, 1, 5):
        close(nx.linalg.matrix_power(a, power), np.linalg.matrix_power(a, power))
    close(nx.linalg.trace(a, offset=1), np.trace(a, offset=1, axis1=-2, axis2=-1))
    p, l, u = nx.linalg.lu(a)  # noqa: E741
    close(p @ l @ u, a)
    hermitian = a + np.conj(np.swapaxes(a, -1, -2))
    values, vectors = nx.linalg.eigh(hermitian)
    close(values, np.linalg.eigvalsh(hermitian))
    close(nx.linalg.eigvalsh(hermitian), np.linalg.eigvalsh(hermitian))
    close(vectors * nx.expand_dims(values, axis=-2) @ nx.linalg.adjoint(vectors), hermitian)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (3, 2, 3)])
def test_functions_of_matrices(shape, dtype):
    a = matrices(*shape, dtype=dtype)
    close(nx.linalg.pinv(a), np.linalg.pinv(a))
    close(nx.linalg.svdvals(a), np.linalg.svd(a, compute_uv=False))
    assert np.asarray(nx.linalg.matrix_rank(a)).tolist() == np.linalg.matrix_rank(a).tolist()
    for mode in ("reduced", "complete"):
        q, r = nx.linalg.qr(a, mode=mode)
        assert q.shape == np.linalg.qr(a, mode=mode).Q.shape
        close(q @ r, a)
        product = np.asarray(nx.linalg.adjoint(q) @ q)
        close(product, np.broadcast_to(np.eye(q.shape[-1]), product.shape))
    for full in (False, True):
        result = nx.linalg.svd(a, full_matrices=full)
        expected = np.linalg.svd(a, full_matrices=full)
        assert [part.shape for part in result] == [part.shape for part in expected]
        count = result.S.shape[-1]
        u, vh = np.asarray(result.U)[..., :count], np.asarray(result.Vh)[..., :count, :]
        close(u * np.asarray(result.S)[..., None, :] @ vh, a)
    for order in (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        expected = np.linalg.norm(a, ord=order, axis=(-2, -1))
        close(nx.linalg.norm(a, ord=order, axis=(-2, -1)), expected)
        close(nx.linalg.matrix_norm(a, ord=order or "fro", keepdims=True)[..., 0, 0], expected)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (0, 0), (2, 0, 3), (0, 2, 0)])
def test_vector_norms_of_empty_tensors(shape):
    x = np.ones(shape)
    singles = [None, *range(len(shape))]
    axes = [*singles, *itertools.combinations(range(len(shape)), 2)]
    for order, axis, keepdims in itertools.product([0, 0.5, 1, 2, 3], axes, [False, True]):
        options = {"ord": order, "axis": axis, "keepdims": keepdims}
        expected = np.linalg.vector_norm(x, **options)
        found = nx.linalg.vector_norm(nx.tensor(x), **options)
        assert found.shape == expected.shape
        close(found, expected)
        if axis in singles[1:]:
            close(nx.linalg.norm(nx.tensor(x), **options), expected)


@pytest.mark.parametrize("shape", [(0, 2), (2, 0), (0, 0)])
def test_matrix_norms_of_empty_matrices(shape):
    for order in ("fro", "nuc", 1, 2, np.inf):
        assert nx.linalg.matrix_norm(nx.ones(shape), ord=order).item() == 0
    assert nx.linalg.matrix_norm(nx.ones(shape), ord=-2).item() == np.inf
    # The sum of an empty row or column is 0, and the smallest of no sums is infinite.
    for order, axis in ((-1, 1), (-np.inf, 0)):
        expected = 0 if shape[axis] else np.inf
        assert nx.linalg.matrix_norm(nx.ones(shape), ord=order).item() == expected
    assert nx.linalg.vector_norm(nx.ones(shape), ord=np.inf).item() == 0
    assert nx.linalg.vector_norm(nx.ones(shape), ord=-1).item() == np.inf


def test_vector_norms():
    x = matrices(2, 3, 4)
    for order in (0, 1, 2, 3.5, -1, np.inf, -np.inf):
        close(nx.linalg.vector_norm(x, axis=1, ord=order), np.linalg.norm(x, axis=1, ord=order))
        for axes in (None, (0, 2), (2, 1)):
            found = nx.linalg.vector_norm(x, axis=axes, ord=order, keepdims=True)
            close(found, np.linalg.vector_norm(x, axis=axes, ord=order, keepdims=True))
    for order in ("fro", "nuc"):
        with pytest.raises(nx.ArgumentError, match="norm: axis: must be two for the Frobenius"):
            nx.linalg.norm(x, order, axis=1)
    named = nx.rename(nx.asarray(x), ("batch", "rows", "columns"))
    close(nx.linalg.vector_norm(named, axis="rows"), np.linalg.norm(x, axis=1))


@pytest.mark.parametrize("compiler", ["evaluator", "xla"])
@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
def test_norms_do_not_overflow_or_underflow(dtype, compiler):
    norm = nx.jit(nx.linalg.norm, compiler=compiler)
    largest = nx.finfo(dtype).max
    for size in (largest / 4, 1.0, float(nx.finfo(dtype).smallest_normal) * 4):
        found = norm(nx.tensor([3.0, 4.0, 0.0], dtype) * (size / 4)).item()
        assert found == pytest.approx(1.25 * size, rel=1e-2)
    assert norm(nx.tensor([np.inf, 1.0], dtype)).item() == np.inf
    assert np.isnan(norm(nx.tensor([np.nan, 1.0], dtype)).item())
    assert norm(nx.zeros(3, dtype)).item() == 0


def test_norm_of_one_element_is_its_absolute_value():
    # The scale is a power of two, so that scaling is exact.
    x = matrices(1000)
    found = nx.linalg.norm(x[:, None], axis=1)
    assert np.array_equal(np.asarray(found), np.sqrt(np.square(x)))


def test_invalid_axes_of_vector_norm_raise(monkeypatch):
    x = nx.tensor(matrices(2, 3, 4))
    for axis in (3, -4, (0, 3), "rows"):
        with pytest.raises(nx.ShapeError, match=r"^vector_norm: axis: must be an axis of shape"):
            nx.linalg.vector_norm(x, axis=axis)
    for axis in ((0, 0), (0, -3)):
        with pytest.raises(nx.ShapeError, match=r"^vector_norm: axes: must be distinct; got \(0"):
            nx.linalg.vector_norm(x, axis=axis)
    with pytest.raises(nx.ArgumentError, match=r"^vector_norm: axis: .*int or a name; got float"):
        nx.linalg.vector_norm(x, axis=1.0)
    # The check of the axes does not compute a sum.
    monkeypatch.setattr(nx._core, "sum", None)
    assert nx.linalg.vector_norm(x, axis=1).shape == (2, 4)


@pytest.mark.parametrize("shapes", [((3, 3), (3,)), ((3, 3), (3, 2)), ((2, 3, 3), (2, 3, 2))])
def test_linear_systems_and_least_squares(shapes):
    a, b = (matrices(*shape) for shape in shapes)
    close(nx.linalg.solve(a, b), np.linalg.solve(a, b))
    tall = np.concatenate([a, a + 1.0], axis=-2)
    both = np.concatenate([b, b - 2.0], axis=0 if b.ndim < 3 else -2)
    if a.ndim == 2:
        close(nx.linalg.least_squares(tall, both), np.linalg.lstsq(tall, both)[0])


def test_solve_broadcasts_batches():
    a, b = matrices(2, 3, 3), matrices(3, 4)
    close(nx.linalg.solve(a, b), np.linalg.solve(a, b))
    close(nx.linalg.solve(a, b[:, 0]), np.linalg.solve(a, b[:, :1])[..., 0])
    close(nx.linalg.solve(a[0], matrices(5, 3, 1)).shape, (5, 3, 1))
    with pytest.raises(nx.ShapeError, match="solve: x2: must have matrices of 3 rows"):
        nx.linalg.solve(a, matrices(2, 2))
    with pytest.raises(nx.ShapeError, match="square matrices"):
        nx.linalg.solve(b, b)


@pytest.mark.parametrize("backend", ["evaluator", "xla"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_solve_with_all_matrix_sizes(dtype, backend):
    # Systems with up to 32 unknowns are solved in one step, larger systems in blocks.
    solve = nx.jit(nx.linalg.solve, compiler=backend)
    tolerance = 2e-3 if dtype == "float32" else 1e-9
    for side in (1, 2, 3, 7, 31, 32, 33, 70):
        a, b = matrices(side, side, dtype=dtype), matrices(side, 3, dtype=dtype)
        a += side * np.eye(side, dtype=dtype)[::-1]
        close(solve(a, b), np.linalg.solve(a, b), tolerance)
        close(solve(a, b[:, 0]), np.linalg.solve(a, b[:, 0]), tolerance)
    batch, right = matrices(300, 4, 4, dtype=dtype), matrices(300, 4, 2, dtype=dtype)
    batch += 4 * np.eye(4, dtype=dtype)
    close(solve(batch, right), np.linalg.solve(batch, right), tolerance)
    solve_batch = nx.jit(nx.vmap(nx.linalg.solve, in_axes=(None, 0)), compiler=backend)
    close(solve_batch(batch[0], right), np.linalg.solve(batch[0], right), tolerance)
    solve_batch = nx.jit(nx.vmap(nx.linalg.solve, in_axes=(0, None)), compiler=backend)
    close(solve_batch(batch, right[0]), np.linalg.solve(batch, right[0]), tolerance)


@pytest.mark.parametrize("backend", ["evaluator", "xla"])
def test_singular_entries_do_not_affect_other_entries(backend):
    a = matrices(5, 3, 3) + 3 * np.eye(3)
    a[1] = 0.0
    a[3, 0, 0] = np.nan
    found = np.asarray(nx.jit(nx.linalg.inv, compiler=backend)(a))
    assert np.isnan(found[1]).all()
    assert np.isnan(found[3]).all()
    close(found[[0, 2, 4]], np.linalg.inv(a[[0, 2, 4]]))


@pytest.mark.parametrize("backend", ["evaluator", "xla"])
def test_derivatives_of_solve(backend):
    a, b = matrices(4, 4) + 4 * np.eye(4), matrices(4)

    def loss(a, b):
        return nx.sum(nx.linalg.solve(a, b) ** 2)

    def jit(function):
        return nx.jit(function, compiler=backend)

    gradient = np.asarray(jit(nx.grad(loss))(a, b))
    step = 1e-6
    for index in ((0, 1), (2, 2), (3, 0)):
        moved = a.copy()
        moved[index] += step
        slope = (jit(loss)(moved, b).item() - jit(loss)(a, b).item()) / step
        close(gradient[index], slope, 1e-4)
        direction = np.zeros_like(a)
        direction[index] = 1.0
        _, tangent = jit(lambda a, d, b: nx.jvp(lambda a: loss(a, b), (a,), (d,)))(a, direction, b)
        close(tangent, slope, 1e-4)
    inverse = np.linalg.inv(a)
    curvature = jit(lambda a, b: nx.hessian(lambda b: loss(a, b))(b))(a, b)
    close(curvature, 2 * inverse.T @ inverse)


def test_singular_matrices():
    zeros = nx.zeros((2, 2))
    assert np.isnan(np.asarray(nx.linalg.inv(zeros))).all()
    assert nx.linalg.slogdet(zeros).logabsdet.item() == -np.inf
    assert nx.linalg.matrix_rank(zeros).item() == 0


def test_cross_and_outer_products():
    x, y = matrices(2, 3), matrices(3)
    close(nx.linalg.cross(x, y), np.cross(x, y))
    close(nx.linalg.cross(x.T, x.T + 1.0, axis=0), np.cross(x.T, x.T + 1.0, axis=0))
    close(nx.linalg.outer(y, x[0]), np.outer(y, x[0]))
    close(nx.linalg.diagonal(x), np.diagonal(x))
    with pytest.raises(nx.ShapeError, match="cross: x1: expected"):
        nx.linalg.cross(x.T, x.T)
    with pytest.raises(nx.ShapeError, match="outer"):
        nx.linalg.outer(x, y)


def test_result_dtypes():
    a = [[2, 1], [1, 3]]
    assert nx.linalg.det(a).dtype == nx.float32
    assert nx.linalg.qr(nx.astype(nx.tensor(a), nx.bfloat16)).R.dtype == nx.bfloat16
    assert nx.linalg.svdvals(nx.astype(nx.tensor(a), nx.complex128)).dtype == nx.float64
    assert nx.linalg.matrix_rank(a).dtype == nx.int32
    assert nx.linalg.matrix_power(a, 2).dtype == nx.int32


def test_gradient_of_qr_and_slogdet():
    a = matrices(3, 3)

    def loss(x):
        return nx.sum(nx.linalg.qr(x).R) + nx.linalg.slogdet(x).logabsdet

    slope = np.asarray(nx.jit(nx.grad(loss))(a))
    step = 1e-6
    for row, column in np.ndindex(3, 3):
        moved = np.zeros_like(a)
        moved[row, column] = step
        expected = (loss(a + moved).item() - loss(a - moved).item()) / (2 * step)
        np.testing.assert_allclose(slope[row, column], expected, rtol=1e-5, atol=1e-7)
    text = nx.debug_expr(nx.linalg.qr)(nx.template((3, 2), "f32"))
    assert "qr a, mode: :reduced" in str(text)


@pytest.mark.parametrize("dtype", ["f64", "c128"])
def test_derivatives_of_nonsymmetric_eigenvalues(dtype, compiler):
    a = matrices(2, 3, 3)
    a = nx.tensor(a + 0.5j * np.flip(a, 0) if dtype == "c128" else a, dtype)

    def parts(a):
        w, v = nx.linalg.eig(a)
        return w, nx.abs(v) ** 2, (v * nx.exp(w)[:, None]) @ nx.linalg.inv(v)

    def cubes(a):
        return nx.real(nx.sum(nx.linalg.eigvals(a) ** 3))

    def expected_sum(a):
        return nx.real(nx.sum(nx.linalg.trace(nx.linalg.matrix_power(a, 3))))

    if compiler == "evaluator":
        nx.testing.check_grads(parts, (a,))
    slopes = nx.jit(lambda a: (nx.grad(cubes)(a), nx.grad(expected_sum)(a)), compiler=compiler)
    found, expected = slopes(a)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_derivatives_of_eigenvalues_of_integer_and_empty_matrices():
    squares = lambda a: nx.real(nx.sum(nx.linalg.eigvals(a) ** 2))  # noqa: E731
    a = nx.tensor([[2, 1], [0, 3]])
    # The sum of the squares is the trace of a @ a.
    np.testing.assert_allclose(nx.grad(squares)(a), [[4, 0], [2, 6]], rtol=1e-5, atol=1e-5)
    for shape in ((0, 3, 3), (2, 0, 0)):
        assert nx.grad(squares)(nx.zeros(shape)).shape == shape
        change = nx.jvp(squares, (nx.zeros(shape),), (nx.zeros(shape),))[1]
        assert change.item() == 0


def test_higher_derivatives_of_eigenvalues_are_exact_or_nan():
    a, b = (nx.tensor(part, "f64") for part in matrices(2, 3, 3))
    found = lambda s: nx.real(nx.sum(nx.linalg.eigvals(a + s * b) ** 4))  # noqa: E731
    expected = lambda s: nx.linalg.trace(nx.linalg.matrix_power(a + s * b, 4))  # noqa: E731
    point = nx.tensor(0.3, "f64")
    for _ in range(4):
        found, expected = nx.grad(found), nx.grad(expected)
        np.testing.assert_allclose(found(point), expected(point), rtol=1e-9)
    assert np.isnan(nx.grad(found)(point).item())


SECOND_DERIVATIVES = {
    "forward over reverse": lambda f, a, v: nx.jvp(nx.grad(f), (a,), (v,))[1],
    "reverse over reverse": lambda f, a, v: nx.grad(lambda a: nx.sum(nx.grad(f)(a) * v))(a),
}


@pytest.mark.parametrize("order", SECOND_DERIVATIVES)
@pytest.mark.parametrize("matrix", [np.eye(3), np.diag([1.0, 1.0, 2.0]), np.eye(3)[[1, 2, 0]]])
def test_second_derivatives_of_pseudo_inverses_at_repeated_values(matrix, order, compiler):
    rng = np.random.default_rng(4)
    weights, b, v = (nx.tensor(rng.normal(size=size)) for size in ((3, 3), 3, (3, 3)))
    pairs = (
        (nx.linalg.pinv, nx.linalg.inv),
        (lambda a: nx.linalg.least_squares(a, b) ** 2, lambda a: nx.linalg.solve(a, b) ** 2),
    )
    for pair in pairs:
        second = [
            nx.jit(
                lambda a, f=f: SECOND_DERIVATIVES[order](lambda a: nx.sum(f(a) * weights), a, v),
                compiler=compiler,
            )
            for f in pair
        ]
        found, expected = (np.asarray(function(nx.tensor(matrix))) for function in second)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("dtype", "scales"), [("f32", [1e15, 1e-16]), ("f64", [1e150, 1e-140])])
def test_gradients_of_pseudo_inverses_scale_with_the_matrix(dtype, scales, compiler):
    rng = np.random.default_rng(5)
    a, b, weights = (nx.tensor(rng.normal(size=size), dtype) for size in ((5, 3), (5, 2), (3, 2)))
    inverse = nx.jit(
        nx.grad(lambda a: nx.sum(nx.linalg.pinv(a)[:, :2] * weights)), compiler=compiler
    )
    solution = nx.jit(
        nx.grad(lambda a, b: nx.sum(nx.linalg.least_squares(a, b) * weights)), compiler=compiler
    )
    rtol = 1e-3 if dtype == "f32" else 1e-11
    for scale in scales:
        # Each factor of the product is a number of the dtype.
        found = np.asarray(inverse(a * scale) * scale * scale)
        np.testing.assert_allclose(found, np.asarray(inverse(a)), rtol=rtol)
        found = np.asarray(solution(a * scale, b * scale) * scale)
        np.testing.assert_allclose(found, np.asarray(solution(a, b)), rtol=rtol)


def test_singular_values_decrease_without_kernels():
    reflection = np.linalg.qr(np.random.default_rng(6).normal(size=(6, 6)))[0]
    values = nx.jit(lambda a: nx.linalg.svd(a)[1], compiler="xla", kernels=False)
    for matrix in (reflection, reflection[:, :4], np.eye(6)[::-1]):
        found = np.asarray(values(nx.tensor(matrix, "f32")))
        assert (np.diff(found) <= 0).all()
        np.testing.assert_allclose(found, np.linalg.svd(matrix)[1], rtol=1e-6)


def test_gradients_at_singular_matrices(compiler):
    """Check the rows of the table in ``docs/derivatives.md``."""
    weights = nx.tensor([[1.0, 2.0], [3.0, 5.0]], dtype=nx.float64)
    eye, ones = nx.eye(2, dtype=nx.float64), nx.ones((2, 2), dtype=nx.float64)
    zeros, edge = ones * 0.0, nx.tensor([[1.0, 0.0], [0.0, 0.0]], dtype=nx.float64)
    # The factors of this matrix are exact on every backend.
    dependent = nx.tensor([[1.0, 1.0], [0.0, 0.0]], dtype=nx.float64)

    def values_sum(a):
        return nx.sum(nx.linalg.svd(a)[1])

    def nearest(a):
        u, _, vh = nx.linalg.svd(a)
        return u @ vh

    def exponential(a):
        w, v = nx.linalg.eigh(a)
        return (v * nx.exp(w)) @ nx.matrix_transpose(v)

    nan, half = np.full((2, 2), np.nan), [[0.0, -0.5], [0.5, 0.0]]
    rows = [
        (lambda a: nx.linalg.qr(a)[1], dependent, nan),
        (lambda a: nx.linalg.qr(a)[1], zeros, nan),
        (lambda a: nx.linalg.lu(a)[2], ones, nan),
        (nx.linalg.cholesky, edge, nan),
        (nx.linalg.inv, ones, nan),
        (lambda a: nx.linalg.det(a) / 11.0, ones, [[1.0, -1.0], [-1.0, 1.0]]),
        (nx.linalg.pinv, eye, [[-1.0, -2.0], [-3.0, -5.0]]),
        (lambda a: nx.make_diagonal(nx.linalg.eigh(a)[0]), eye, [[1.0, 0.0], [0.0, 5.0]]),
        (lambda a: values_sum(a) / 11.0, eye, np.eye(2)),
        (nx.grad(values_sum), eye, half),
        (nearest, eye, half),
        (exponential, eye, [[np.e, 0.0], [0.0, 5 * np.e]]),
    ]

    def slopes(*points):
        pairs = zip(rows, points, strict=True)
        return [nx.grad(lambda a, f=f: nx.sum(f(a) * weights))(a) for (f, _, _), a in pairs]

    found = nx.jit(slopes, compiler=compiler)(*(point for _, point, _ in rows))
    for row, (gradient, (_, _, expected)) in enumerate(zip(found, rows, strict=True)):
        np.testing.assert_allclose(gradient, expected, rtol=1e-9, atol=1e-9, err_msg=f"row {row}")


TRANSFORMS = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_fourier_transforms(name, norm):
    real = name in ("rfft", "ihfft")
    x = matrices(3, 5, 4, dtype="float64" if real else "complex128")
    if name in ("irfft", "hfft"):
        x = x.copy()
    for axis in (-1, 0, 1):
        for n in (None, 1, 3, 8):
            found = getattr(nx.fft, name)(x, n=n, axis=axis, norm=norm)
            close(found, getattr(np.fft, name)(x, n=n, axis=axis, norm=norm))


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_fourier_transforms_of_several_axes(name, norm):
    x = matrices(3, 5, 4, dtype="float64" if name == "rfftn" else "complex128")
    for s, axes in [(None, None), (None, (0, 1)), ((4, 6), (2, 0)), ((7, 3), (-2, -1))]:
        found = getattr(nx.fft, name)(x, s=s, axes=axes, norm=norm)
        close(found, getattr(np.fft, name)(x, s=s, axes=axes, norm=norm))
    with pytest.raises(nx.ArgumentError, match="lengths"):
        getattr(nx.fft, name)(x, s=(3,), axes=(0, 1))


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("length", [1, 2, 9, 83, 509])
def test_spectra_of_real_signals_are_symmetric(length, dtype):
    x = nx.tensor(-np.random.default_rng(8).random(length), dtype)
    for transform in (nx.fft.fft, nx.fft.ifft):
        spectrum = np.asarray(nx.jit(transform, compiler="evaluator")(x))
        np.testing.assert_array_equal(spectrum[1:], spectrum[1:][::-1].conj())
        assert spectrum[0].imag == 0
    assert np.asarray(nx.phase(nx.fft.rfft(x)))[0] > 0


def test_fourier_transforms_of_two_axes():
    x = matrices(3, 5, 4)
    close(nx.fft.fft2(x), np.fft.fft2(x))
    close(nx.fft.ifft2(x, s=(2, 7), axes=(0, 2)), np.fft.ifft2(x, s=(2, 7), axes=(0, 2)))


def test_fft_frequencies_and_shifts():
    for n in (1, 4, 5):
        close(nx.fft.fftfreq(n, d=0.5, dtype="f64"), np.fft.fftfreq(n, d=0.5))
        close(nx.fft.rfftfreq(n, d=0.5, dtype="f64"), np.fft.rfftfreq(n, d=0.5))
    x = matrices(3, 4)
    close(nx.fft.fftshift(x), np.fft.fftshift(x))
    close(nx.fft.ifftshift(x, axes=0), np.fft.ifftshift(x, axes=0))
    close(nx.fft.ifftshift(nx.fft.fftshift(x)), x)


def test_invalid_options_raise():
    with pytest.raises(nx.ArgumentError, match="norm: must be"):
        nx.fft.fft([1.0], norm="sideways")
    for call in (lambda: nx.fft.fft([1.0], n=0), lambda: nx.fft.irfftn([[1.0]], s=(-1, 2))):
        with pytest.raises(nx.ArgumentError, match="at least 1"):
            call()
    with pytest.raises(nx.ShapeError, match="axes"):
        nx.fft.fft2([[1.0]], axes=(0, 0))
    with pytest.raises(nx.ArgumentError, match="mode: must be"):
        nx.linalg.qr([[1.0]], mode="some")
    with pytest.raises(nx.ArgumentError, match="ord: must be"):
        nx.linalg.norm([[1.0]], ord="large")


def test_vector_norm_keeps_other_axis_names():
    x = nx.ones((2, 3), names=["a", "b"])
    for axis in ("a", "b", ("a", "b"), None):
        for keepdims in (False, True):
            names = nx.linalg.vector_norm(x, axis=axis, keepdims=keepdims).names
            assert names == nx.sum(x, axis=axis, keepdims=keepdims).names


@pytest.mark.parametrize("compiler", ["evaluator", "xla"])
def test_eigenvalues_of_vectorized_matrices(compiler):
    matrices = nx.tensor(np.random.default_rng(0).normal(size=(3, 4, 4)))

    def size(matrix):
        return nx.sum(nx.abs(nx.linalg.eigvals(matrix)))

    separate = [nx.grad(size)(matrix).tolist() for matrix in matrices]
    found = nx.jit(nx.vmap(nx.grad(size)), compiler=compiler)(matrices)
    np.testing.assert_allclose(found, separate, rtol=1e-9)
    values, vectors = nx.linalg.eig(nx.vectorize(matrices, "entry"))
    assert values.vectorized_axes == vectors.vectorized_axes == (("entry", 3),)
    expected = nx.linalg.eig(matrices)
    np.testing.assert_array_equal(nx.devectorize(values, keep_names=False), expected.eigenvalues)
    np.testing.assert_array_equal(nx.devectorize(vectors, keep_names=False), expected.eigenvectors)
