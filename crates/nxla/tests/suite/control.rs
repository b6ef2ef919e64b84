//! Conditionals, loops and hooks, on every available compiler.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::common::{compilers, numbers};
use nxla::runtime::Mode;
use nxla::testing::{CheckGrads, Mismatch, check_grads};
use nxla::{
    Container, DType, Error, ErrorClass, Expr, Tensor, TensorType, Window, annotate, block, cond,
    custom_grad, custom_jvp, fori, grad, hessian_diagonal, hook, hvp, if_, jit, jvp, linearize,
    map, named_hook, runtime_call, safe_where, scan, scan_reverse, scan_times, vjp, when,
    while_loop,
};

/// A list to which a hook writes.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<f64>>>);

impl Seen {
    fn push(&self, value: f64) {
        self.0.lock().unwrap().push(value);
    }

    fn take(&self) -> Vec<f64> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

#[test]
fn branches_unify_and_nest() {
    let function = |x: Expr| {
        when(x.greater(10), || (Expr::of(1), x.clone()))
            .or_when(x.less(0), || {
                cond(x.less(-10), || (Expr::of(2), &x * 2), || (Expr::of(3), &x * 3))
            })
            .otherwise(|| (Expr::of(0.5), Expr::of(7)))
    };
    for compiler in compilers() {
        let function = jit(function).compiler(compiler);
        for (x, expected) in
            [(11, (1.0, 11.0)), (-11, (2.0, -22.0)), (-1, (3.0, -3.0)), (5, (0.5, 7.0))]
        {
            let (a, b) = function.call(x).unwrap();
            assert_eq!((a.dtype(), b.dtype()), (DType::F32, DType::S32));
            assert_eq!((numbers(&a)[0], numbers(&b)[0]), expected, "{x} on {compiler}");
        }
    }
}

#[test]
fn constant_predicates_create_no_branch() {
    let (program, _) = jit(|x: Expr| if_(true, || x.sin())).trace(&Tensor::from(1.0f32)).unwrap();
    assert!(!program.to_string().contains("cond"), "{program}");
}

#[test]
fn mismatched_branches_name_branch_and_position() {
    let lists =
        jit(|x: Expr| cond(x.greater(0), || vec![x.clone()], || vec![x.clone(), x.clone()]));
    let error = lists.call(1).unwrap_err();
    let expected = "cond: branch: must return the structure of the earlier branches; got result[1] \
                    instead of nothing (branch 1) (";
    assert!(error.to_string().starts_with(expected), "{error}");
    let shapes = jit(|x: Expr| {
        let zeros = |size: usize| Expr::zeros([size], DType::F32);
        cond(x.greater(0), || (x.clone(), zeros(2)), || (x.clone(), zeros(3)))
    });
    let error = shapes.call(1).unwrap_err().to_string();
    let expected =
        "cond: branch 1, result.1: must broadcast with f32[2] in earlier branches; got f32[3]";
    assert!(error.starts_with(expected), "{error}");
    assert!(error.contains("control.rs:"), "{error}");
    let vector = jit(|x: Expr| if_(x.greater(0), || x.clone()));
    let error = vector.call(Tensor::from(vec![1, 2])).unwrap_err().to_string();
    assert!(error.contains("predicate") && error.contains("a scalar"), "{error}");
}

#[test]
fn loops_capture_outer_values() {
    // Large enough to be an additional input instead of a constant of the program.
    let table = Tensor::iota([8192], None, DType::F32).unwrap();
    let function = |(n, start): (Expr, Vec<Expr>)| {
        let scale = &n * 2;
        fori(0, &n, start, |i, state| {
            let row = Expr::of(&table).at_axis(&i, 0);
            state.into_iter().map(|x| x + &row * &scale).collect::<Vec<Expr>>()
        })
    };
    for compiler in compilers() {
        let start = [Tensor::from(0.0f32), Tensor::from(100.0f32)];
        let results = jit(function).compiler(compiler).call((4, &start[..])).unwrap();
        let results: Vec<f64> = results.iter().flat_map(|tensor| numbers(tensor)).collect();
        assert_eq!(results, [48.0, 148.0], "{compiler}");
    }
}

#[test]
fn loop_states_must_keep_their_types() {
    let grows = jit(|x: Expr| while_loop(x, |x| x.less(3), |x| x + 0.5));
    let error = grows.call(0).unwrap_err();
    assert_eq!(error.class(), ErrorClass::DType);
    let error = error.to_string();
    let expected = "while_loop: state: must keep the type s32; got f32 after the body (";
    assert!(error.starts_with(expected) && error.contains("control.rs:"), "{error}");
    let lists = jit(|x: Expr| {
        fori(0, 3, vec![x], |_, mut list| {
            list.push(list[0].clone());
            list
        })
    });
    let error = lists.call(0).unwrap_err().to_string();
    let expected = "fori: body: must have the structure of the initial state; got state[1] instead of nothing (";
    assert!(error.starts_with(expected), "{error}");
    let condition = jit(|x: Expr| while_loop(x, |x| x.less(3), |x| x + 1));
    let error = condition.call(Tensor::from([1, 2])).unwrap_err().to_string();
    assert!(error.starts_with("while_loop: "), "{error}");
    // The error inside the body is reported, not its consequences.
    let inside = jit(|x: Expr| fori(0, 3, x, |_, x| x.reshape([7])));
    let error = inside.call(0).unwrap_err().to_string();
    assert!(error.starts_with("reshape"), "{error}");
}

#[test]
fn counters_have_the_promoted_dtype_of_their_bounds() {
    let count = |lower: Expr, upper: Expr| {
        fori(lower, upper, Expr::of(0), |i, n| {
            assert_eq!(i.dtype(), DType::S64);
            n + 1
        })
    };
    for compiler in compilers() {
        let count = jit(count).compiler(compiler).call((250u8, 300i64)).unwrap();
        assert_eq!(numbers(&count), [50.0], "{compiler}");
    }
    let wrong: [(&str, fn(Expr) -> Expr); 2] = [
        ("lower", |x| fori(x, 3, Expr::of(0), |_, n| n + 1)),
        ("upper", |x| fori(0, x, Expr::of(0), |_, n| n + 1)),
    ];
    for (argument, function) in wrong {
        let error = jit(function).call(2.5f32).unwrap_err();
        assert_eq!(error.class(), ErrorClass::DType);
        let expected = format!("fori: {argument}: expected an integer; got f32");
        assert!(error.to_string().starts_with(&expected), "{error}");
    }
}

type Lists = (Vec<Expr>, Vec<Expr>);

fn lists(x: &Expr) -> Lists {
    (vec![x.clone()], vec![x.clone(), x * 2])
}

fn swap_lists((one, two): Lists) -> Lists {
    (two, one)
}

/// A call that fails by its structure, with the start of its message.
type StructureCase = (&'static str, fn(Expr) -> Lists);

#[test]
fn structure_errors_name_the_difference_and_the_line() {
    let calls: [StructureCase; 14] = [
        ("cond: branch: must return the structure of the earlier branches", |x| {
            cond(x.greater(0), || lists(&x), || swap_lists(lists(&x)))
        }),
        ("cond: branch: must return the structure of the earlier branches", |x| {
            when(x.greater(0), || lists(&x)).otherwise(|| swap_lists(lists(&x)))
        }),
        ("while_loop: body: must have the structure of the initial state", |x| {
            while_loop(lists(&x), |(one, _)| one[0].less(3), swap_lists)
        }),
        ("fori: body: must have the structure of the initial state", |x| {
            fori(0, 3, lists(&x), |_, lists| swap_lists(lists))
        }),
        ("scan: body: must have the structure of the initial carry", |x| {
            scan(lists(&x), Expr::from([1, 2]), |carry, x| (swap_lists(carry), x)).0
        }),
        ("scan: body: must have the structure of the initial carry", |x| {
            scan(lists(&x), Expr::zeros([0], DType::F32), |carry, x| (swap_lists(carry), x)).0
        }),
        ("scan: body: must have the structure of the initial carry", |x| {
            scan_times(3, lists(&x), |carry| (swap_lists(carry), x.clone())).0
        }),
        ("custom_grad: rule: must have the structure of the inputs", |x| {
            custom_grad(lists(&x), &lists(&x), swap_lists)
        }),
        ("custom_jvp: rule: must have the structure of the value", |x| {
            custom_jvp(lists(&x), &lists(&x), swap_lists)
        }),
        ("jvp: tangent: must have the structure of the argument", |x| {
            jvp(|lists: Lists| lists)(lists(&x), swap_lists(lists(&x))).1
        }),
        ("vjp: cotangent: must have the structure of the result", |x| {
            vjp(|lists: Lists| lists, lists(&x)).1(swap_lists(lists(&x)))
        }),
        ("linearize: tangent: must have the structure of the argument", |x| {
            linearize(|lists: Lists| lists, lists(&x)).1(swap_lists(lists(&x)))
        }),
        ("hvp: direction: must have the structure of the argument", |x| {
            hvp(|(a, b): Lists| &a[0] * &b[0])(lists(&x), swap_lists(lists(&x)))
        }),
        ("jvp: tangent: must have the structure of the argument", |x| {
            let keyed = |key: &str| BTreeMap::from([(key.to_owned(), x.clone())]);
            let _ = jvp(|x: BTreeMap<String, Expr>| x)(keyed("a"), keyed("b"));
            lists(&x)
        }),
    ];
    for (start, call) in calls {
        let error = jit(call).trace(TensorType::scalar(DType::F32)).unwrap_err().to_string();
        let (requirement, rest) = error.split_once("; got ").unwrap();
        assert_eq!(requirement, start);
        assert!(rest.contains(" instead of "), "{error}");
        assert!(rest.contains(" (control.rs:"), "{error}");
    }
}

#[test]
fn static_values_and_empty_lists_are_named_in_structure_errors() {
    let count = |rate: usize| {
        jit(move |x: Expr| {
            let rated = |rate| Rated { x: x.clone(), rate };
            cond(x.greater(0), || rated(1), || rated(rate)).x
        })
    };
    let error = count(2).call(1.0f32).unwrap_err().to_string();
    assert!(error.contains("got the static value 2 instead of 1 (branch 1)"), "{error}");
    assert!(count(1).call(1.0f32).is_ok());
    let nested = |count: usize| vec![Vec::<Expr>::new(); count];
    let empty = jit(move |x: Expr| {
        let _ = cond(x.greater(0), || nested(1), || nested(2));
        x
    });
    let error = empty.call(1.0f32).unwrap_err().to_string();
    assert!(error.contains("got a list of length 2 instead of 1 (branch 1)"), "{error}");
}

#[derive(Container)]
struct Rated<T> {
    x: T,
    #[container(skip)]
    rate: usize,
}

#[test]
fn eager_functions_run_during_a_trace() {
    let factors = Tensor::from([2, 3, 4]);
    let f = jit(move |x: Expr| -> nxla::Result<Expr> {
        let product = factors.reduce(1, (), |x, product| x * product)?;
        let sums = factors.window_reduce(0, &Window::new([2]), |x, sum| x + sum)?;
        check_grads(|x: Expr| x.sin(), 0.5f64)?;
        Ok(x + product + sums)
    });
    assert_eq!(f.call(1).unwrap().to_vec::<i32>().unwrap(), [30, 32]);
}

#[derive(Container)]
struct Pair<T> {
    first: T,
    rest: Vec<T>,
}

#[test]
fn type_errors_name_paths_in_containers() {
    let pair = |x: &Expr| Pair { first: x.clone(), rest: vec![x.clone()] };
    let error = |f: &dyn Fn(Expr) -> Expr| jit(|x: Expr| f(x)).call(1).unwrap_err();
    let shapes = error(&|x| {
        let body = |_, s: Pair<Expr>| Pair { rest: vec![s.rest[0].new_axis(0)], ..s };
        fori(0, 3, pair(&x), body).first
    });
    assert_eq!(shapes.class(), ErrorClass::Shape);
    let expected = "fori: state.rest[0]: must keep the type s32; got s32[1] after the body";
    assert!(shapes.to_string().starts_with(expected), "{shapes}");
    let branches = error(&|x| {
        let wide = |size| Pair { first: x.clone(), rest: vec![Expr::zeros([size], DType::S32)] };
        when(x.greater(1), || wide(2)).or_when(x.less(1), || wide(1)).otherwise(|| wide(3)).first
    });
    let expected = "cond: branch: expected s32[2] as in the first branch (use `broadcast_to`); got \
                    s32[1] in result.rest[0] of branch 1";
    assert!(branches.to_string().starts_with(expected), "{branches}");
    let inner = error(&|x| {
        let zeros = |size: usize| [Expr::zeros([size], DType::S32)];
        fori(0, 3, x, |_, s| cond(s.greater(1), || zeros(2), || zeros(3))[0].sum())
    });
    assert!(
        inner.to_string().starts_with("cond: branch 1, result[0]: must broadcast with s32[2]"),
        "{inner}"
    );
    let carry =
        error(&|x| scan_times(3, pair(&x), |s| (Pair { first: s.first * 0.5, ..s }, ())).0.first);
    let expected = "scan: carry.first: must keep the type s32; got f32 after the body";
    assert!(carry.to_string().starts_with(expected), "{carry}");
}

#[test]
fn scans_trace_their_step_once() {
    let calls = std::cell::Cell::new(0);
    let nested = jit(|xs: Expr| {
        scan(Expr::of(1.0), xs.clone(), |outer, x| {
            let inner = |inner: Expr, y: Expr| {
                calls.set(calls.get() + 1);
                (&inner * y, inner)
            };
            let (product, before) = scan(outer * x, xs.clone(), inner);
            (product.clone(), (product, before))
        })
    });
    let (last, (products, before)) = nested.call(Tensor::from(vec![2.0f32, 3.0])).unwrap();
    assert_eq!(calls.get(), 1);
    assert_eq!((numbers(&last), numbers(&products)), (vec![216.0], vec![12.0, 216.0]));
    assert_eq!(numbers(&before), [2.0, 4.0, 36.0, 72.0]);
}

#[test]
fn empty_scans_call_no_hooks() {
    let seen = Seen::default();
    let sink = seen.clone();
    let hooked = jit(move |xs: Expr| {
        let sink = sink.clone();
        scan(Expr::of(0.0), xs, move |total, x| {
            let sink = sink.clone();
            let total = hook(total + x, move |value: Tensor| sink.push(numbers(&value)[0]));
            (total.clone(), total)
        })
    });
    let empty = hooked.call(Tensor::iota([0], None, DType::F32).unwrap()).unwrap();
    assert_eq!((numbers(&empty.0), empty.1.shape()[0]), (vec![0.0], 0));
    assert_eq!(seen.take(), Vec::<f64>::new());
    hooked.call(Tensor::from(vec![1.0f32, 2.0])).unwrap();
    assert_eq!(seen.take(), [1.0, 3.0]);
}

#[test]
fn empty_scans_have_the_same_result_types() {
    let rows = |steps: usize| {
        let rows = Tensor::zeros([3, steps, 2], DType::F32).unwrap();
        let rows = rows.with_names([None, None, Some("column")]).unwrap();
        rows.vectorize(["row"]).unwrap()
    };
    let f = jit(|xs: Expr| scan(Expr::of(0.0), xs, |sum, x| (sum, x)).1);
    let [none, two] = [0, 2].map(|steps| f.call(rows(steps)).unwrap());
    assert_eq!((none.vectors(), none.names()), (two.vectors(), two.names()));
    assert!(none.names().is_some());
    assert_eq!((none.dtype(), &none.shape()[..]), (DType::F32, &[0, 2][..]));
    let changes = jit(|xs: Expr| scan(Expr::of(0), xs, |sum, x| (sum + 0.5, x)).0);
    let error = changes.call(Tensor::zeros([0], DType::F32).unwrap()).unwrap_err().to_string();
    let expected = "scan: carry: must keep the type s32; got f32 after the body";
    assert!(error.starts_with(expected), "{error}");
    let empty = jit(|x: Expr| scan(x, Vec::<Expr>::new(), |x, _| (x, ())).0);
    let error = empty.call(1).unwrap_err().to_string();
    let expected = "scan: xs: must contain a tensor; got none (use `scan_times`) (control.rs:";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn scans_carry_and_collect() {
    let function = |xs: (Expr, Expr)| {
        scan(Expr::of(0.0), xs, |total, (x, rows)| {
            let total = total + x * rows.sum();
            (total.clone(), (total, rows.reverse(())))
        })
    };
    for compiler in compilers() {
        for steps in [0, 1, 3] {
            let xs = Tensor::iota([steps], None, DType::F32).unwrap();
            let rows = Tensor::iota([steps, 2], None, DType::S32).unwrap();
            let (total, (totals, rows)) =
                jit(function).compiler(compiler).call((&xs, &rows)).unwrap();
            let expected: &[f64] = &[0.0, 5.0, 23.0][..steps];
            assert_eq!(numbers(&totals), expected, "{compiler}");
            assert_eq!(numbers(&total), [expected.last().copied().unwrap_or(0.0)]);
            assert_eq!(numbers(&rows), &[1.0, 0.0, 3.0, 2.0, 5.0, 4.0][..2 * steps]);
        }
    }
    let error = jit(|xs: (Expr, Expr)| map(xs, |(x, y)| x + y))
        .call((&Tensor::from(vec![1, 2]), &Tensor::from(vec![1])))
        .unwrap_err();
    let expected = "scan: xs: must have first axes of equal sizes; got s32[2], s32[1] (control.rs:";
    assert!(error.to_string().starts_with(expected), "{error}");
    let (last, powers) =
        jit(|x: Expr| scan_times(3, Expr::of(1), |p| (&p * &x, p))).call(2).unwrap();
    assert_eq!((numbers(&last), numbers(&powers)), (vec![8.0], vec![1.0, 2.0, 4.0]));
}

#[test]
fn reverse_scans_start_at_the_last_element() {
    let function = |xs: Expr| {
        scan_reverse(xs.sum().ones_like(), xs, |product, x| {
            let product = product * x;
            (product.clone(), product)
        })
    };
    for compiler in compilers() {
        for steps in [0, 1, 3] {
            let xs = Tensor::from(&[2.0f32, 3.0, 5.0][..steps]);
            let (last, products) = jit(function).compiler(compiler).call(&xs).unwrap();
            let expected: &[f64] = [&[] as &[f64], &[2.0], &[], &[30.0, 15.0, 5.0]][steps];
            assert_eq!(numbers(&products), expected, "{compiler}");
            assert_eq!(numbers(&last), [expected.first().copied().unwrap_or(1.0)]);
        }
    }
    check_grads(|xs: Expr| function(xs).1, Tensor::from([1.2f64, -1.3, 0.7])).unwrap();
}

#[test]
fn control_flow_is_differentiable() {
    let function = |x: Expr| {
        let scanned = scan(x.sum().ones_like(), x.clone(), |p, x| (&p * &x, p)).0;
        let counted = fori(0, 3, scanned.clone(), |i, y| y.sin() * &scanned + i);
        let last = while_loop(counted, |y| y.less(4), |y| &y * &y * 0.5 + x.sum() + 1).tanh();
        (cond(scanned.greater(0), || &scanned * 2, || scanned.negate()), last)
    };
    for compiler in compilers() {
        let check = CheckGrads::new().compiler(*compiler);
        let x = Tensor::from(vec![1.2f64, -1.3, 0.7]);
        check.order(if *compiler == "xla" { 1 } else { 2 }).run(function, &x).unwrap();
    }
}

#[test]
fn derivatives_are_checked_to_any_order() {
    let (x, n) = (Tensor::from([0.5f64, 1.5]), Tensor::from([2, 3]));
    let complex = x.complex((&x * 0.5).unwrap()).unwrap();
    check_grads(|x: Expr, n: Expr| (x.pow(&n).sum(), n), (&x, &n)).unwrap();
    check_grads(|x: Expr| x.exp() * &x, &complex).unwrap();
    check_grads(|x: Expr| x.cos(), Tensor::from([0.5f32, 1.5])).unwrap();
    // The first derivative is right, and its derivative is wrong.
    let wrong = |x: Expr| custom_grad(x.sin(), &x, |g| g * x.cos().stop_grad());
    let check = CheckGrads::new().modes([Mode::Reverse]);
    check.clone().order(1).run(wrong, &x).unwrap();
    let Error::User(error) = check.run(wrong, &x).unwrap_err() else { panic!("another error") };
    let error = error.downcast::<Mismatch>().unwrap();
    assert_eq!(error.modes, "reverse of reverse");
    assert!(error.distance > 0.01 && error.to_string().contains("differ by up to"), "{error}");
    for (error, why) in [
        (check_grads(|n: Expr| n * 2, &n).unwrap_err(), "must contain a float or complex"),
        (check_grads(|x: Expr| x.greater(0), &x).unwrap_err(), "must return a float or complex"),
        (CheckGrads::new().order(0).run(wrong, &x).unwrap_err(), "order must be at least 1"),
        (check_grads(|x: Expr| x.reshape([7]), &x).unwrap_err(), "reshape"),
    ] {
        assert!(error.to_string().contains(why), "{error}");
    }
    // The derivative is wrong where the function is NaN.
    assert!(check_grads(|x: Expr| (x - 3).sqrt(), &x).is_err());
}

#[test]
fn hessian_diagonals_and_functions_with_limited_domains() {
    let x = Tensor::from([1.0f32, 2.0]);
    let pair = jit(hessian_diagonal(|(x, y): (Expr, Expr)| x.pow(3).sum() * &y + y.pow(2)));
    let (along_x, along_y) = pair.call((&x, 2.0f32)).unwrap();
    assert_eq!((numbers(&along_x), numbers(&along_y)), (vec![12.0, 24.0], vec![2.0]));
    // An element-wise gradient needs one pass, without an axis of directions.
    let (program, _) = jit(hessian_diagonal(|x: Expr| x.pow(3).sum())).trace(&x).unwrap();
    let ranks = |program: &nxla::Program| {
        let graph = program.graph();
        graph.ids().map(|id| graph.shape(id).rank()).max()
    };
    assert_eq!(ranks(&program), Some(1), "{program}");
    for compiler in compilers() {
        let root = |x: Expr| safe_where(&x.greater(1), &x, 2, |x| (x - 1).sqrt(), x.sum() * 7);
        let both = jit(|x: Expr| (root(x.clone()), grad(root)(x))).compiler(compiler);
        let (value, slope) = both.call(&x).unwrap();
        assert_eq!(numbers(&value), [21.0, 1.0], "{compiler}");
        assert_eq!(numbers(&slope), [7.0, 7.5], "{compiler}");
    }
}

#[test]
fn hooks_receive_values_in_order() {
    for compiler in compilers() {
        let seen = Seen::default();
        let (named, inline) = (seen.clone(), seen.clone());
        let function = move |x: Expr| {
            let x = named_hook(x, "x");
            let inline = inline.clone();
            let (doubled, _) =
                hook((&x * 2.0, vec![x]), move |(doubled, list): (Tensor, Vec<Tensor>)| {
                    assert_eq!(list.len(), 1);
                    inline.push(numbers(&doubled)[0]);
                });
            named_hook(doubled, "x") + 1.0
        };
        let function = jit(function).compiler(compiler).hook("x", move |value: Tensor| {
            named.push(numbers(&value)[0]);
        });
        assert_eq!(numbers(&function.call(3.0f32).unwrap()), [7.0]);
        assert_eq!(seen.take(), [3.0, 6.0, 6.0], "{compiler}");
        assert_eq!(numbers(&function.call(4.0f32).unwrap()), [9.0]);
        assert_eq!(seen.take(), [4.0, 8.0, 8.0], "{compiler}");
    }
}

#[test]
fn failing_hooks_end_the_program() {
    for compiler in compilers() {
        let function = jit(|x: Expr| {
            fori(0, 10, x, |i, x| {
                hook(i, |i: Tensor| match numbers(&i)[0] {
                    3.0 => Err("three is too much".to_owned()),
                    _ => Ok(()),
                });
                x + 1
            })
        });
        let error = function.compiler(compiler).call(0).unwrap_err().to_string();
        assert!(error.contains("three is too much"), "{compiler}: {error}");
    }
}

#[test]
fn annotations_are_printed_but_compute_nothing() {
    let function = |x: Expr| {
        let (sin, cos) = annotate((x.sin(), x.cos()), "both");
        sin + cos
    };
    let (program, _) = jit(function).trace(&Tensor::from(1.0f32)).unwrap();
    assert!(program.to_string().contains("both"), "{program}");
    for compiler in compilers() {
        let result = jit(function).compiler(compiler).call(0.0f32).unwrap();
        assert_eq!(numbers(&result), [1.0]);
    }
}

#[test]
fn control_flow_outside_traces_is_an_error() {
    let outside = cond(true, || Expr::of(1), || Expr::of(2));
    let error = jit(move |x: Expr| x + &outside).call(1).unwrap_err();
    assert!(matches!(error, Error::Expr(_)), "{error}");
    assert_eq!(Expr::of(1).shape().rank(), 0);
}

#[test]
fn blocks_are_single_nodes_that_compute_their_bodies() {
    let function = |x: Expr, y: Expr| {
        let outside = &x * 3;
        let (sum, product) = block("both", (x, y), |(x, y)| (&x + &y + &outside, x * y));
        sum + product
    };
    let types = [TensorType::scalar(DType::S32), TensorType::scalar(DType::S32)];
    let (program, _) = jit(function).trace((&types[0], &types[1])).unwrap();
    assert!(program.to_string().contains("both"), "{program}");
    for compiler in compilers() {
        let result = jit(function).compiler(compiler).call((2, 5)).unwrap();
        assert_eq!(numbers(&result), [23.0], "{compiler}");
    }
    let slope = jit(grad(|x: Expr| block("square", x, |x| &x * &x))).call(3.0f32).unwrap();
    assert_eq!(numbers(&slope), [6.0]);
    let wrong = jit(|x: Expr| block("wrong", x, |x| x.reshape([7]))).call(1).unwrap_err();
    assert!(matches!(wrong, Error::Expr(_)), "{wrong}");
}

#[test]
fn runtime_calls_return_host_results() {
    let types = || vec![TensorType::new(DType::S32, [2]), TensorType::scalar(DType::F32)];
    let function = |x: Expr| -> Vec<Expr> {
        runtime_call(x, types(), |x: Tensor| {
            let total: f32 = x.to_vec::<f32>()?.iter().sum();
            Ok::<_, Error>(vec![Tensor::from(vec![1, 2]), Tensor::from(total)])
        })
    };
    for compiler in compilers() {
        let results = jit(function).compiler(compiler).call(Tensor::from(vec![1.5f32, 2.0]));
        let results = results.unwrap();
        assert_eq!((numbers(&results[0]), numbers(&results[1])), (vec![1.0, 2.0], vec![3.5]));
        let fails = jit(|x: Expr| -> Expr {
            runtime_call(x, TensorType::scalar(DType::S32), |_: Tensor| {
                Err::<Tensor, _>("no answer today")
            })
        });
        let error = fails.compiler(compiler).call(1).unwrap_err().to_string();
        assert!(error.contains("no answer today"), "{compiler}: {error}");
        let other = jit(|x: Expr| -> Expr {
            runtime_call(x, TensorType::scalar(DType::F32), Ok::<Tensor, Error>)
        });
        let error = other.compiler(compiler).call(1).unwrap_err().to_string();
        assert!(error.contains("s32") && error.contains("f32"), "{compiler}: {error}");
    }
}

#[test]
fn runtime_calls_are_not_differentiable() {
    fn identity(x: Expr) -> Expr {
        runtime_call(x, TensorType::scalar(DType::F32), Ok::<Tensor, Error>)
    }
    let derivatives: [(&str, Box<dyn Fn(Expr) -> Expr>); 4] = [
        ("grad", Box::new(grad(identity))),
        ("in a loop", Box::new(grad(|x: Expr| fori(0, 3, x, |_, x| identity(x))))),
        ("jvp", Box::new(|x: Expr| jvp(identity)(x.clone(), x).1)),
        ("vjp", Box::new(|x: Expr| vjp(identity, x.clone()).1(x))),
    ];
    for (name, derivative) in derivatives {
        let error = jit(derivative).call(1.0f32).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Gradient);
        let text = error.to_string();
        let start = "runtime_call: function: must have a derivative";
        assert!(text.starts_with(start) && text.contains("control.rs:"), "{name}: {text}");
    }
    let stopped = jit(grad(|x: Expr| identity(x.stop_grad()) * x)).call(3.0f32).unwrap();
    assert_eq!(numbers(&stopped), [3.0]);
}
