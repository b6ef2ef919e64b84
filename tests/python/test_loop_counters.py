"""Loops that count in each integer dtype, with each comparison as the condition."""

import operator

import numpy as np
import pytest

import nxla as nx


def programs(cases, compiler):
    """Return the groups of cases that are compiled together.

    XLA, which `auto` chooses too, compiles all loops as one program in much less time than separate
    programs. The evaluator runs each loop as a separate program.
    """
    return [[case] for case in cases] if compiler == "evaluator" else [cases]


#: The first values, the steps and the ends of counters.
COUNTERS = [(7, -1, 3), (7, -3, 2), (3, 1, 7), (1, 2, 6)]


def counting_loop(case, dtype, seen):
    """Return a loop that counts, and appends the values of the counter to a list."""
    first, step, last = case

    def condition(state):
        return state[0] > last if step < 0 else state[0] < last

    def count(x):
        def body(state):
            i, total, rows = state
            i = nx.hook(i, lambda value: seen.append(value.item()))
            row = nx.astype(i, "f64") * x
            i_after = i + step if step > 0 else i - -step
            return i_after, total + row, nx.put_slice(rows, (i % 3,), nx.reshape(row, (1,)))

        start = nx.tensor(first, dtype), nx.tensor(0.0, "f64"), nx.zeros(3, "f64")
        return nx.while_loop(condition, body, start)

    return count


@pytest.mark.parametrize(
    "dtype", ["s4", "s8", "s16", "s32", "s64", "u4", "u8", "u16", "u32", "u64"]
)
def test_loops_count_in_every_integer_dtype(dtype, compiler):
    for cases in programs(COUNTERS, compiler):
        seen = [[] for _ in cases]
        loops = [counting_loop(case, dtype, each) for case, each in zip(cases, seen, strict=True)]
        found = nx.jit(lambda x, loops=loops: [count(x) for count in loops], compiler=compiler)(2.0)
        seen_by_loops = [list(each) for each in seen]

        def slopes(x, loops=loops):
            return [nx.grad(lambda x, count=count: count(x)[1])(x) for count in loops]

        slopes_of_loops = nx.jit(slopes, compiler=compiler)(2.0)
        for number, (first, step, last) in enumerate(cases):
            case, iterations = (first, step, last), list(range(first, last, step))
            rows = np.zeros(3)
            for i in iterations:
                rows[i % 3] = 2.0 * i
            i, total, of_rows = found[number]
            assert (i.dtype, i.item()) == (nx.DType(dtype), first + step * len(iterations)), case
            assert (total.item(), of_rows.tolist()) == (2.0 * sum(iterations), rows.tolist()), case
            assert seen_by_loops[number] == iterations, case
            assert slopes_of_loops[number].item() == sum(iterations), case


#: Comparisons of a counter, the first values, the steps and the ends of the counter.
COMPARISONS = {
    "<": (operator.lt, 0, 1, 5),
    "<=": (operator.le, 1, 2, 7),
    ">": (operator.gt, 7, -2, 1),
    ">=": (operator.ge, 7, -2, 2),
    "!= down": (operator.ne, 9, -3, 0),
    "!= up": (operator.ne, 0, 2, 6),
    "never": (operator.lt, 3, 1, 3),
}


def loop_ended_by(case, bounded):
    """Return a loop that ends by a comparison, with a second condition if it is bounded."""
    compare, _, step, last = COMPARISONS[case]

    def condition(state):
        more = compare(state[0], last)
        return nx.logical_and(more, state[1] < 100) if bounded else more

    def body(state):
        count = state[0] + step if step > 0 else state[0] - -step
        return count, state[1] + nx.astype(state[0], "f32"), state[2] + 1

    def loop(start):
        return nx.while_loop(condition, body, (start, nx.tensor(0.0), nx.tensor(0, "u8")))

    return loop


@pytest.mark.parametrize("dtype", ["s8", "u16", "u32", "s64", "u64", "f32"])
@pytest.mark.parametrize("bounded", [False, True], ids=["counter alone", "another condition"])
def test_loops_end_on_every_comparison(bounded, dtype, compiler):
    for cases in programs(list(COMPARISONS), compiler):
        loops = [loop_ended_by(case, bounded) for case in cases]
        starts = [nx.tensor(COMPARISONS[case][1], dtype) for case in cases]

        def run(starts, loops=loops):
            return [loop(start) for loop, start in zip(loops, starts, strict=True)]

        # Starts that are constants, and starts that are arguments.
        constant = nx.jit(lambda run=run, starts=starts: run(starts), compiler=compiler)()
        from_arguments = nx.jit(run, compiler=compiler)(starts)
        for number, case in enumerate(cases):
            compare, count, step, last = COMPARISONS[case]
            total, iterations = 0, 0
            while compare(count, last):
                count, total, iterations = count + step, total + count, iterations + 1
            for name, found in (("constant", constant), ("argument", from_arguments)):
                values = [value.item() for value in found[number]]
                assert values == [count, total, iterations], f"{case}, start is {name}"
