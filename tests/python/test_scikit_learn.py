"""scikit-learn's array dispatch with tensors: results are tensors with NumPy's values.

`GaussianMixture` with full covariances adds ``reg_covar`` to a view in place
(``_add_to_diagonal(covariances[k, :, :], …)``), which does not change tensors of nxla. Therefore
the tests use other kinds of covariances.
"""

import os

import numpy as np
import pytest

# SciPy reads this variable when it is first imported; scikit-learn requires SciPy's support of the
# Array API.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
sklearn = pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from sklearn import (  # noqa: E402  # noqa: E402
    decomposition,
    discriminant_analysis,
    linear_model,
    metrics,
    mixture,
    model_selection,
    naive_bayes,
    preprocessing,
)
from sklearn.metrics import pairwise  # noqa: E402

import nxla as nx  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")

RNG = np.random.default_rng(7)
X = RNG.normal(size=(60, 5)).astype(np.float32) @ np.diag([3, 2, 1, 0.5, 0.1]).astype(np.float32)
Y = (X @ np.array([1, -2, 0.5, 0, 3], np.float32) + 0.1 * RNG.normal(size=60)).astype(np.float32)
LABELS = (X[:, 0] + X[:, 1] > 0).astype(np.int32) + (X[:, 0] > 2)
PREDICTED = np.where(RNG.random(60) < 0.8, LABELS, 0).astype(np.int32)
SCORES = RNG.random((60, 3)).astype(np.float32)
SCORES /= SCORES.sum(1, keepdims=True)
POSITIVE = np.abs(X)


@pytest.fixture(autouse=True)
def dispatch():
    with sklearn.config_context(array_api_dispatch=True):
        yield


def close(found, expected, tolerance=2e-3):
    """Check for a tensor of nxla, or for a Python number if NumPy's function returns a number."""
    if isinstance(found, nx.Tensor):
        found = found.numpy()
    else:
        assert np.ndim(expected) == 0, type(found)
    return np.allclose(found, expected, rtol=tolerance, atol=tolerance)


SCALERS = [
    preprocessing.StandardScaler(),
    preprocessing.MinMaxScaler(),
    preprocessing.MaxAbsScaler(),
    preprocessing.Normalizer(),
    preprocessing.Normalizer(norm="l1"),
    preprocessing.Binarizer(),
    preprocessing.KernelCenterer(),
    preprocessing.PolynomialFeatures(degree=2),
]


@pytest.mark.parametrize("scaler", SCALERS, ids=str)
def test_scalers(scaler):
    x = X[:, :5][:5] if isinstance(scaler, preprocessing.KernelCenterer) else X
    expected = sklearn.clone(scaler).fit(x).transform(x)
    ours = sklearn.clone(scaler).fit(nx.tensor(x))
    found = ours.transform(nx.tensor(x))
    assert isinstance(found, nx.Tensor)
    assert close(found, expected)
    if hasattr(scaler, "inverse_transform"):
        assert close(ours.inverse_transform(found), x)


@pytest.mark.parametrize("solver", ["full", "covariance_eigh", "randomized"])
@pytest.mark.parametrize("whiten", [False, True])
def test_principal_components(solver, whiten):

    def make():
        return decomposition.PCA(3, svd_solver=solver, whiten=whiten, random_state=0)

    expected = make().fit(X)
    found = make().fit(nx.tensor(X))
    for name in ("components_", "explained_variance_", "explained_variance_ratio_", "mean_"):
        assert isinstance(getattr(found, name), nx.Tensor)
    assert close(found.explained_variance_, expected.explained_variance_)
    assert close(nx.abs(found.components_), np.abs(expected.components_), 1e-2)
    reconstructed = found.inverse_transform(found.transform(nx.tensor(X)))
    assert isinstance(reconstructed, nx.Tensor)
    assert close(reconstructed, expected.inverse_transform(expected.transform(X)), 1e-2)
    assert close(found.get_covariance(), expected.get_covariance(), 1e-2)


@pytest.mark.parametrize("solver", ["auto", "svd"])
def test_ridge(solver):
    expected = linear_model.Ridge(solver=solver).fit(X, Y)
    found = linear_model.Ridge(solver=solver).fit(nx.tensor(X), nx.tensor(Y))
    assert isinstance(found.coef_, nx.Tensor)
    assert close(found.coef_, expected.coef_)
    assert close(found.predict(nx.tensor(X)), expected.predict(X))
    assert close(found.score(nx.tensor(X), nx.tensor(Y)), expected.score(X, Y))


def test_ridge_with_cross_validation():
    expected = linear_model.RidgeCV(alphas=[0.1, 1.0, 10.0]).fit(X, Y)
    found = linear_model.RidgeCV(alphas=[0.1, 1.0, 10.0]).fit(nx.tensor(X), nx.tensor(Y))
    assert float(found.alpha_) == float(expected.alpha_)
    assert close(found.coef_, expected.coef_)


CLASSIFIERS = [
    naive_bayes.GaussianNB(),
    discriminant_analysis.LinearDiscriminantAnalysis(),
    linear_model.LogisticRegression(),
    linear_model.RidgeClassifier(solver="svd"),
]


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=str)
def test_classifiers(classifier):
    expected = sklearn.clone(classifier).fit(X, LABELS)
    found = sklearn.clone(classifier).fit(nx.tensor(X), nx.tensor(LABELS))
    x = nx.tensor(X)
    guesses = found.predict(x)
    assert isinstance(guesses, nx.Tensor)
    assert guesses.tolist() == expected.predict(X).tolist()
    if hasattr(classifier, "predict_proba"):
        assert close(found.predict_proba(x), expected.predict_proba(X), 1e-2)
    assert close(found.score(x, nx.tensor(LABELS)), expected.score(X, LABELS))


@pytest.mark.parametrize("kind", ["diag", "spherical"])
def test_mixtures(kind):
    means = X[:2]

    def make(means):
        return mixture.GaussianMixture(
            2,
            covariance_type=kind,
            means_init=means,
            init_params="random_from_data",
            random_state=0,
            max_iter=5,
        )

    expected = make(means).fit(X)
    found = make(nx.tensor(means)).fit(nx.tensor(X))
    assert isinstance(found.means_, nx.Tensor)
    assert close(found.means_, expected.means_, 2e-2)
    assert close(found.score(nx.tensor(X)), expected.score(X), 2e-2)


CLASSIFICATION = [
    metrics.accuracy_score,
    metrics.balanced_accuracy_score,
    metrics.zero_one_loss,
    metrics.confusion_matrix,
    metrics.cohen_kappa_score,
    metrics.hamming_loss,
    lambda t, p: metrics.f1_score(t, p, average="macro"),
    lambda t, p: metrics.jaccard_score(t, p, average="micro"),
    lambda t, p: metrics.precision_score(t, p, average="weighted", zero_division=0),
    lambda t, p: metrics.recall_score(t, p, average=None),
    metrics.multilabel_confusion_matrix,
]


@pytest.mark.parametrize("score", CLASSIFICATION)
def test_scores_of_classifiers(score):
    assert close(score(nx.tensor(LABELS), nx.tensor(PREDICTED)), score(LABELS, PREDICTED))


REGRESSION = [
    metrics.mean_squared_error,
    metrics.mean_absolute_error,
    metrics.root_mean_squared_error,
    metrics.mean_absolute_percentage_error,
    metrics.max_error,
    metrics.median_absolute_error,
    metrics.r2_score,
    metrics.explained_variance_score,
    metrics.d2_tweedie_score,
    lambda t, p: metrics.mean_pinball_loss(t, p, alpha=0.3),
    lambda t, p: metrics.mean_squared_log_error(t - t.min() + 1, p - p.min() + 1),
    lambda t, p: metrics.mean_poisson_deviance(t - t.min() + 1, p - p.min() + 1),
    lambda t, p: metrics.mean_gamma_deviance(t - t.min() + 1, p - p.min() + 1),
]


@pytest.mark.parametrize("score", REGRESSION)
def test_scores_of_regressions(score):
    guess = (Y * 0.9 + 0.2).astype(np.float32)
    assert close(score(nx.tensor(Y), nx.tensor(guess)), score(Y, guess))


@pytest.mark.parametrize(
    "score",
    [
        metrics.log_loss,
        lambda t, p: metrics.brier_score_loss(t, p),
        lambda t, p: metrics.d2_log_loss_score(t, p),
    ],
)
def test_scores_of_probabilities(score):
    assert close(score(nx.tensor(LABELS), nx.tensor(SCORES)), score(LABELS, SCORES))


def test_scores_of_rankings():
    targets, guess = (LABELS > 0).astype(np.int32), SCORES[:, 0]
    for score in (metrics.roc_auc_score, metrics.average_precision_score):
        assert close(score(nx.tensor(targets), nx.tensor(guess)), score(targets, guess))
    found = metrics.roc_curve(nx.tensor(targets), nx.tensor(guess))
    for ours, theirs in zip(found, metrics.roc_curve(targets, guess), strict=True):
        assert close(ours, theirs)


PAIRWISE = [
    pairwise.euclidean_distances,
    pairwise.cosine_similarity,
    pairwise.cosine_distances,
    pairwise.linear_kernel,
    pairwise.polynomial_kernel,
    pairwise.rbf_kernel,
    pairwise.sigmoid_kernel,
    pairwise.laplacian_kernel,
    pairwise.manhattan_distances,
    pairwise.paired_cosine_distances,
    pairwise.paired_euclidean_distances,
    lambda x, y: pairwise.additive_chi2_kernel(abs(x), abs(y)),
    lambda x, y: pairwise.chi2_kernel(abs(x), abs(y)),
]


@pytest.mark.parametrize("kernel", PAIRWISE)
def test_distances_and_kernels(kernel):
    other = X[::-1].copy()
    found = kernel(nx.tensor(X), nx.tensor(other))
    assert isinstance(found, nx.Tensor)
    assert close(found, kernel(X, other))


def test_train_test_split():
    parts = model_selection.train_test_split(nx.tensor(X), nx.tensor(LABELS), random_state=0)
    expected = model_selection.train_test_split(X, LABELS, random_state=0)
    for found, part in zip(parts, expected, strict=True):
        assert isinstance(found, nx.Tensor)
        assert np.array_equal(found.numpy(), part)


def test_label_encoders():
    encoder = preprocessing.LabelEncoder().fit(nx.tensor([5, 2, 5, 9]))
    assert encoder.transform(nx.tensor([9, 2])).tolist() == [2, 0]
    assert encoder.inverse_transform(nx.tensor([2, 0])).tolist() == [9, 2]
    binary = preprocessing.LabelBinarizer().fit_transform(nx.tensor([0, 2, 1]))
    assert binary.tolist() == [[1, 0, 0], [0, 0, 1], [0, 1, 0]]
