"""The origin of NaN, and differences between compilers."""

import concurrent.futures

import numpy as np
import pytest

import nxla as nx
from where import on_cpu


def test_function_option_overrides_the_debug_nans_block(compiler):
    function = nx.jit(nx.log, compiler=compiler, debug_nans=False)
    checked = nx.jit(nx.log, compiler=compiler)
    with nx.debug_nans():
        assert np.isnan(function(-1.0).item())
        assert np.isnan(nx.compile(function, [nx.template(())])(-1.0).item())
        with pytest.raises(nx.ExecutionError, match="log"):
            checked(-1.0)
    with pytest.raises(nx.ArgumentError, match="debug_nans: must be one of False, True; got 1"):
        nx.jit(nx.log, debug_nans=1)


def test_the_first_operation_that_produces_nan_is_named(compiler):
    def f(x):
        y = x * 2
        z = nx.log(y - 2)  # here
        return nx.sum(z * 0 + nx.sqrt(y))

    g = nx.jit(f, compiler=compiler, debug_nans=True)
    assert g(nx.tensor([3.0, 4.0])).item() == pytest.approx(6**0.5 + 8**0.5)
    line = f.__code__.co_firstlineno + 2
    with pytest.raises(
        nx.ExecutionError, match=rf"^log: produced -inf at \[1\] .*test_debugging\.py:{line}\)"
    ):
        g(nx.tensor([3.0, 1.0]))
    # Without the option, results are not checked.
    assert nx.isnan(nx.jit(f, compiler=compiler)(nx.tensor([1.0]))).item()


def test_operations_inside_of_loops_and_branches_are_named():
    def f(x):
        def body(i, s):
            return nx.cond(s < 3, lambda: s + 1, lambda: nx.sqrt(-s))

        return nx.fori(0, 9, body, x)

    with pytest.raises(nx.ExecutionError, match=r"^sqrt: produced NaN"):
        nx.jit(f, debug_nans=True)(0.0)


def test_the_backward_pass_is_checked(compiler):
    def f(x):
        return nx.sum(nx.sqrt(x))

    line = f.__code__.co_firstlineno + 1
    with nx.debug_nans():
        g = nx.jit(nx.grad(f), compiler=compiler)
        assert g(nx.tensor([4.0])).tolist() == [0.25]
        with pytest.raises(
            nx.ExecutionError, match=rf"produced (inf|NaN) .*test_debugging\.py:{line}\)"
        ):
            g(nx.tensor([1.0, 0.0]))


def test_debug_nans_block_checks_eager_and_compiled_calls():
    compiled = nx.compile(nx.log, [nx.template(())])
    with nx.debug_nans():
        with pytest.raises(nx.ExecutionError, match="log: produced -inf"):
            nx.log(0.0)
        with pytest.raises(nx.ExecutionError, match="log: produced -inf"):
            compiled(0.0)
        with nx.debug_nans(False):
            nx.log(0.0)
        with pytest.raises(nx.ExecutionError):
            nx.log(0.0)
    assert nx.log(0.0).item() == -nx.inf


def test_nan_arguments_are_not_attributed_to_operations():
    f = nx.jit(lambda x: x + 1, debug_nans=True)
    with pytest.raises(nx.ExecutionError, match=r"argument leaf 0 contains NaN"):
        f(nx.nan)
    # This infinity comes from an infinite argument.
    assert f(nx.inf).item() == nx.inf
    assert nx.jit(lambda x: x == nx.inf, debug_nans=True)(nx.inf).item()


@pytest.mark.parametrize("shape", [(), (3,)])
def test_nan_of_infinite_operands_is_not_attributed_to_finite_ones(shape):
    def difference(x):
        return x - x

    def sum_with_literal(x):
        return (x - nx.inf) + nx.inf

    for function in (difference, sum_with_literal):
        f = nx.jit(function, debug_nans=True)
        with pytest.raises(nx.ExecutionError, match="computes it from infinite operands"):
            f(nx.full(shape, nx.inf if function is difference else 1.0))
    assert nx.jit(lambda x: x - nx.inf, debug_nans=True)(nx.ones(shape)).min() == -nx.inf


@on_cpu
def test_nan_of_xla_alone_is_not_attributed_to_infinite_operands():
    """XLA flushes the products to zero; the evaluator divides subnormal numbers."""
    f = nx.jit(lambda x: (x * 1e-30) / (x * 1e-30), compiler="xla", debug_nans=True)
    with pytest.raises(nx.ExecutionError, match="the evaluator computes other values"):
        f(1e-10)


def test_stages_are_checked_on_every_executor():
    def f(x):
        y = nx.sin(x)
        return nx.cos(nx.log(y))  # here

    expression = nx.debug_expr(f)(1.0)
    stages = nx.graph.split(expression, lambda node: "after" if node.op == "sin" else "none")
    line = f.__code__.co_firstlineno + 2
    named = rf"^log: produced NaN .*test_debugging\.py:{line}\)"
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for executor in (None, pool):
            assert nx.isnan(nx.graph.run(stages, -1.0, executor=executor)).item()
            with nx.debug_nans():
                with pytest.raises(nx.ExecutionError, match=named):
                    nx.graph.run(stages, -1.0, executor=executor)
                unchecked = nx.graph.run(stages, -1.0, executor=executor, debug_nans=False)
                assert nx.isnan(unchecked).item()
            with pytest.raises(nx.ExecutionError, match=named):
                nx.graph.run(stages, -1.0, executor=executor, debug_nans=True)
            with pytest.raises(nx.ExecutionError, match="argument leaf 0 contains NaN"):
                nx.graph.run(stages, nx.nan, executor=executor, debug_nans=True)
    with pytest.raises(nx.ArgumentError, match="run: debug_nans: must be one of False, True"):
        nx.graph.run(stages, 1.0, debug_nans=1)


def test_compilers_are_compared_value_by_value(capsys):
    capsys.readouterr()

    def f(x, y):
        z = nx.exp(x) + y
        return nx.sum(nx.tanh(z) * x)

    x = nx.tensor([0.1, 0.7, -1.3, 2.5])
    report = nx.compare(f, compilers=["evaluator", "xla"])(x, 0.5)
    assert capsys.readouterr().out == ""
    assert repr(report) == str(report)
    assert "test_debugging.py" in str(report)
    assert report.devices["evaluator"] == "host"
    assert report.devices["xla"] != "host"
    names = [row.operation for row in report.rows]
    assert names[0] == "exp"
    assert names[-1] == "sum"
    assert {"add", "tanh", "multiply"} <= set(names)
    assert report.max_ulps < 64
    assert all(row.compiler == "xla" and row.size in (1, 4) for row in report.rows)
    assert report.first == next((row for row in report.rows if row.differing), None)
    with pytest.raises(nx.ArgumentError, match="compilers: must be at least two"):
        nx.compare(f, ["xla"])
    for arguments in (x, 0.5, [0.5]):
        with pytest.raises(nx.ArgumentError, match=r"as in nx\.compare\(f\)\(x\)"):
            nx.compare(f, arguments)


def test_compare_locates_differences():
    class Wrong(nx.Compiler):
        name = "wrong"

        def compile(self, expression, options):
            def run(inputs):
                results = list(expression.run(*inputs, compiler="evaluator"))
                results[1] = results[1] + nx.tensor([0.0, 1e-3])
                return results

            return run

    nx.register_compiler(Wrong())
    compared = nx.compare(lambda x: nx.cos(nx.sin(x) * 2), ["evaluator", "wrong"])
    report = compared(nx.tensor([0.5, 1.0]))
    assert [row.differing for row in report.rows] == [0, 1, 0]
    assert report.first.operation == "multiply"
    assert report.first.index == (1,)
    assert report.first.absolute == pytest.approx(1e-3, rel=1e-3)
    assert report.max_ulps == report.first.ulps > 1000
