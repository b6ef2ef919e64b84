"""Functions for neural networks: activations, norms, attention, losses, pooling.

All functions are pure. Layers and modules do not exist: users keep parameters in containers
(dicts, tuples, dataclasses), and a model is a function of its parameters. Therefore derivatives,
`nxla.optim`, serialization and devices do not depend on models. The reasons are in
``docs/decisions/0015-functions-not-layers.md``.

Narrow floats are computed in 32 bits and rounded once. The docstring of each function cites its
paper. `nxla.nn.initializers` contains initializers for parameters.

>>> import nxla as nx
>>> def model(params, x):
...     for w, b in params[:-1]:
...         x = nx.nn.relu(x @ w + b)
...     w, b = params[-1]
...     return x @ w + b
>>> init, keys = nx.nn.initializers.he_normal(), nx.random.split(nx.random.key(0))
>>> params = [(init(key, shape), nx.zeros(shape[1])) for key, shape in zip(keys, [(4, 8), (8, 3)])]
>>> def loss(params, x, y):
...     return nx.mean(nx.nn.softmax_cross_entropy_with_integer_labels(model(params, x), y))
>>> slopes = nx.grad(loss)(params, nx.ones((5, 4)), nx.tensor([0, 1, 2, 1, 0]))
>>> slopes[1][0].shape
(8, 3)
"""

from nxla import _hints
from nxla._core import (
    avg_pool,
    batch_norm,
    celu,
    cosine_similarity,
    dot_product_attention,
    elu,
    embedding,
    gelu,
    glu,
    group_norm,
    hard_sigmoid,
    hard_silu,
    hard_tanh,
    huber_loss,
    kl_divergence,
    layer_norm,
    leaky_relu,
    log1mexp,
    log_sigmoid,
    log_softmax,
    logsumexp,
    max_pool,
    mish,
    one_hot,
    relu,
    relu6,
    rms_norm,
    selu,
    sigmoid,
    sigmoid_binary_cross_entropy,
    silu,
    soft_sign,
    softmax,
    softmax_cross_entropy,
    softmax_cross_entropy_with_integer_labels,
    softplus,
    sparse_plus,
    sparse_sigmoid,
    squared_error,
    squareplus,
    tanh,
)
from nxla.nn import initializers
from nxla.nn.images import conv_transpose, interpolate, resize
from nxla.nn.recurrent import gru_cell, lstm_cell
from nxla.nn.sequences import ctc_loss
from nxla.ops.nn import batch_norm_train, dropout, dropout_split

# The names that are imported above. `make stubs` writes this list.
__all__ = [
    "avg_pool",
    "batch_norm",
    "batch_norm_train",
    "celu",
    "conv_transpose",
    "cosine_similarity",
    "ctc_loss",
    "dot_product_attention",
    "dropout",
    "dropout_split",
    "elu",
    "embedding",
    "gelu",
    "glu",
    "group_norm",
    "gru_cell",
    "hard_sigmoid",
    "hard_silu",
    "hard_tanh",
    "huber_loss",
    "initializers",
    "interpolate",
    "kl_divergence",
    "layer_norm",
    "leaky_relu",
    "log1mexp",
    "log_sigmoid",
    "log_softmax",
    "logsumexp",
    "lstm_cell",
    "max_pool",
    "mish",
    "one_hot",
    "relu",
    "relu6",
    "resize",
    "rms_norm",
    "selu",
    "sigmoid",
    "sigmoid_binary_cross_entropy",
    "silu",
    "soft_sign",
    "softmax",
    "softmax_cross_entropy",
    "softmax_cross_entropy_with_integer_labels",
    "softplus",
    "sparse_plus",
    "sparse_sigmoid",
    "squared_error",
    "squareplus",
    "tanh",
]

_hints.install_missing_names(globals())
