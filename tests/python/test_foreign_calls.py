"""C functions in programs: their results, their errors, and derivatives around them."""

import ctypes
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import nxla as nx

SOURCE = r"""
#include <math.h>
#include "xla/ffi/api/c_api.h"

static XLA_FFI_Error* fail(XLA_FFI_CallFrame* frame, const char* message) {
  XLA_FFI_Error_Create_Args args = {XLA_FFI_Error_Create_Args_STRUCT_SIZE, 0, message,
                                    XLA_FFI_Error_Code_INVALID_ARGUMENT};
  return frame->api->XLA_FFI_Error_Create(&args);
}

/* y[i] = scale * sin(x[i]) */
XLA_FFI_Error* scaled_sine(XLA_FFI_CallFrame* frame) {
  XLA_FFI_Buffer* x = frame->args.args[0];
  XLA_FFI_Buffer* y = frame->rets.rets[0];
  if (frame->struct_size < XLA_FFI_CallFrame_STRUCT_SIZE) return fail(frame, "an old frame");
  if (x->dtype != XLA_FFI_DataType_F32) return fail(frame, "only f32 is known");
  double scale = 1;
  for (int64_t i = 0; i < frame->attrs.size; ++i) {
    XLA_FFI_ByteSpan* name = frame->attrs.names[i];
    if (frame->attrs.types[i] == XLA_FFI_AttrType_SCALAR && name->ptr[0] == 's')
      scale = *(double*)((XLA_FFI_Scalar*)frame->attrs.attrs[i])->value;
  }
  int64_t size = 1;
  for (int64_t i = 0; i < x->rank; ++i) size *= x->dims[i];
  for (int64_t i = 0; i < size; ++i) ((float*)y->data)[i] = scale * sin(((float*)x->data)[i]);
  return 0;
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    compiler, headers = shutil.which("cc"), find_spec("jaxlib")
    if compiler is None or headers is None:
        pytest.skip("a C compiler and the headers in jaxlib are needed")
    folder = tmp_path_factory.mktemp("foreign")
    (folder / "sine.c").write_text(SOURCE)
    include = Path(headers.origin).with_name("include")
    command = [compiler, "-shared", "-fPIC", "-O1", f"-I{include}", "sine.c", "-o", "sine.so"]
    subprocess.run([*command, "-lm"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "sine.so"))


X = np.linspace(0.1, 1, 6, dtype=np.float32).reshape(2, 3)


def test_c_functions_run_eagerly_and_in_programs(library, compiler):
    def f(x):
        y = nx.foreign_call(library.scaled_sine, x, x * 2, attributes={"scale": 3.0})
        return nx.sum(y + x)

    expected = np.sum(3 * np.sin(2 * X) + X)
    np.testing.assert_allclose(nx.jit(f, compiler=compiler)(X), expected, rtol=1e-5)
    with nx.default_options(compiler=compiler):
        np.testing.assert_allclose(f(nx.tensor(X)), expected, rtol=1e-5)
    address = ctypes.cast(library.scaled_sine, ctypes.c_void_p).value
    found = nx.foreign_call(address, {"y": nx.template(X.shape)}, X)["y"]
    np.testing.assert_allclose(found, np.sin(X), rtol=1e-5)


@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
def write_nothing(frame):
    return None


def test_foreign_call_accepts_the_arguments_of_runtime_call():
    named = nx.tensor([1.0, 2.0], names=["x"])
    for template in (named, nx.template(2, names=["x"])):
        result = nx.foreign_call(write_nothing, template, named)
        assert (result.names, result.tolist()) == (["x"], [0.0, 0.0])
    result = nx.foreign_call(write_nothing, (0.5, 2), 1.0, [np.ones(3)])
    assert [(part.shape, str(part.dtype)) for part in result] == [((), "f32"), ((), "s32")]


def test_foreign_calls_use_custom_derivatives(library, compiler):
    @nx.custom_jvp
    def sine(x):
        return nx.foreign_call(library.scaled_sine, x, x)

    @sine.defjvp
    def rule(primals, tangents):
        return tangents[0] * nx.cos(primals[0])

    gradient = nx.jit(nx.grad(lambda x: nx.sum(sine(x) ** 2)), compiler=compiler)
    np.testing.assert_allclose(gradient(X), 2 * np.sin(X) * np.cos(X), rtol=1e-5)


def test_errors_of_foreign_functions_are_raised(library, compiler):
    f = nx.jit(lambda x: nx.foreign_call(library.scaled_sine, x, x), compiler=compiler)
    with pytest.raises(nx.ExecutionError, match="only f32 is known"):
        nx.tree.map(lambda y: y.tolist(), f(X.astype(np.float64)))
    np.testing.assert_allclose(f(X), np.sin(X), rtol=1e-5)


def test_capsules_of_jaxlib_are_called(compiler):
    lapack = pytest.importorskip("jaxlib.cpu._lapack", reason="jaxlib brings handlers of C++")
    pytest.importorskip("scipy", reason="jaxlib takes LAPACK from scipy")
    lapack.initialize()
    handler = lapack.registrations()["lapack_dpotrf_ffi"]
    a = np.random.default_rng(0).normal(size=(2, 4, 4))
    a = a @ a.transpose(0, 2, 1) + np.eye(4)

    @nx.jit
    def factor(a):
        template = nx.template(a.shape, "f64"), nx.template(a.shape[:1], "s32")
        # LAPACK uses column-major order, so its `L` is `U` here.
        return nx.foreign_call(handler, template, a, attributes={"uplo": np.uint8(ord("U"))})

    with nx.default_options(compiler=compiler):
        found, status = factor(a)
    assert status.tolist() == [0, 0]
    np.testing.assert_allclose(np.tril(found), np.linalg.cholesky(a), rtol=1e-10)


def test_invalid_handlers_dtypes_and_attributes_raise(library):
    for wrong in ("sine", 0, True, None, lambda frame: None):
        with pytest.raises(nx.ArgumentError, match="an address, a PyCapsule or a ctypes function"):
            nx.foreign_call(wrong, X, X)
    with pytest.raises(nx.DTypeError, match="do not support the dtype s4"):
        nx.foreign_call(library.scaled_sine, nx.template(2, "s4"), X)
    with pytest.raises(nx.ArgumentError, match="got 2 axes"):
        nx.foreign_call(library.scaled_sine, X, X, attributes={"scale": X})
    with pytest.raises(nx.ArgumentError, match="attributes: names must be strings"):
        nx.foreign_call(library.scaled_sine, X, X, attributes={1: 2})
