//! Vectorized axes in Rust: eager and traced functions, control flow, and gradients.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use nxla::vectors::EntryAxes;
use nxla::{
    DType, Expr, Tensor, Window, cond, custom_grad, custom_jvp, fori, grad, hook, jit, jvp,
    linearize, value_and_grad, vmap, while_loop,
};

fn rows() -> Tensor {
    let rows = Tensor::new(vec![1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3]).unwrap();
    rows.vectorize(["row"]).unwrap()
}

fn vector(name: &str, elements: &[f32]) -> Tensor {
    Tensor::from(elements.to_vec()).vectorize([name]).unwrap()
}

fn numbers(tensor: &Tensor) -> Vec<f32> {
    tensor.to_vec().unwrap()
}

#[test]
fn functions_apply_to_each_entry() {
    let sums = rows().sum().unwrap();
    assert_eq!((sums.vectors().to_string(), sums.shape().rank()), ("vectorized[row: 2]".into(), 0));
    assert_eq!(numbers(&sums), [6.0, 15.0]);
    let table = rows().add(vector("column", &[10.0, 20.0])).unwrap();
    assert_eq!(table.vectors().to_string(), "vectorized[row: 2][column: 2]");
    assert_eq!(table.shape()[..], [3]);
    let error = rows().add(vector("row", &[1.0, 2.0, 3.0])).unwrap_err();
    let expected = "add: the vectorized axis \"row\" has size 2 in one operand and 3 in another; sizes \
                    must be equal, or 1 (vectors.rs:";
    assert!(error.to_string().starts_with(expected), "{error}");
    assert!(rows().item::<f64>().unwrap_err().to_string().contains("must be a single number"));
}

#[test]
fn vectorized_axes_are_converted() {
    let devectorized = rows().devectorize(true).unwrap();
    assert_eq!(devectorized.ty().to_string(), "f32[row: 2][3]");
    let target = EntryAxes { shape: Some(vec![None]), names: None };
    let flat = rows().revectorize([("a", 3)], &target).unwrap();
    assert_eq!(
        (flat.vectors().to_string(), &flat.shape()[..]),
        ("vectorized[a: 3]".into(), &[2][..])
    );
    let aligned = Tensor::reshape_vectors(&[rows(), vector("v", &[1.0])], true).unwrap();
    assert_eq!(aligned[1].vectors().to_string(), "vectorized[row: 1][v: 1]");
    assert_eq!(aligned[1].shape()[..], [1]);
}

#[test]
fn vectorized_axes_are_part_of_the_signature() {
    let total = jit(|x: Expr| x.sum());
    let plain = rows().devectorize(false).unwrap();
    for _ in 0..2 {
        assert_eq!(numbers(&total.call(&plain).unwrap()), [21.0]);
        let each = total.call(rows()).unwrap();
        assert_eq!((each.vectors().len(), numbers(&each)), (1, vec![6.0, 15.0]));
    }
}

#[test]
fn branches_and_loops_apply_to_each_entry() {
    let x = vector("v", &[1.0, -2.0, 3.0]);
    let either = jit(|x: Expr| cond(x.greater(0), || &x * 10, || -&x));
    assert_eq!(numbers(&either.call(&x).unwrap()), [10.0, 2.0, 30.0]);
    let doubled = jit(|x: Expr| while_loop(x, |x| x.abs().less(10), |x| x * 2));
    assert_eq!(numbers(&doubled.call(&x).unwrap()), [16.0, -16.0, 12.0]);
    let power = jit(|x: Expr, n: Expr| fori(0, n, Expr::of(1.0f32), |_, y| y * &x));
    let n = Tensor::from(vec![0, 1, 3]).vectorize(["v"]).unwrap();
    assert_eq!(numbers(&power.call((2.0f32, &n)).unwrap()), [1.0, 2.0, 8.0]);
}

#[test]
fn hooks_of_a_condition_run_once_for_each_iteration() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = calls.clone();
    // The body adds an axis to the state, so the loop and its vectorized condition are traced again.
    let f = jit(move |[x, y]: [Expr; 2]| {
        let counter = counter.clone();
        let condition = move |x: Expr| {
            let counter = counter.clone();
            let count = move |_: Tensor| {
                counter.fetch_add(1, Ordering::Relaxed);
            };
            hook(x, count).less(10)
        };
        while_loop(x, condition, |x| x + &y)
    });
    let last = f.call([&vector("v", &[1.0, 5.0]), &vector("w", &[4.0, 6.0])]).unwrap();
    assert_eq!(last.vectors().to_string(), "vectorized[v: 2][w: 2]");
    assert_eq!(numbers(&last), [13.0, 13.0, 13.0, 11.0]);
    // Three iterations, and the initial state.
    assert_eq!(calls.load(Ordering::Relaxed), 4);
}

#[test]
fn gradients_of_entries() {
    let both = jit(|x: Expr, y: Expr| value_and_grad(|x: Expr| (&x * &y).sum())(x));
    let (value, slope) =
        both.call((Tensor::from(vec![3.0f32, 4.0]), vector("v", &[1.0, 2.0]))).unwrap();
    assert_eq!(numbers(&value), [7.0, 14.0]);
    assert_eq!(slope.vectors().to_string(), "vectorized[v: 2]");
    assert_eq!(numbers(&slope), [1.0, 1.0, 2.0, 2.0]);
    let with_rule = |x: Expr| custom_grad(x.pow(2), &x, |cotangent| cotangent * 7);
    assert_eq!(numbers(&jit(grad(with_rule)).call(rows()).unwrap()), [7.0; 6]);
}

#[test]
fn tangents_match_entries_of_captured_values() {
    let both = jit(|x: Expr, tangents: Expr, y: Expr| {
        let product = |x: Expr| (&x * &y).sum();
        let (_, push) = linearize(product, x.clone());
        (jvp(product)(x, tangents.clone()).1, push(tangents))
    });
    let x = Tensor::from(vec![3.0f32, 4.0]);
    let tangents = Tensor::from([[1.0f32, 0.0], [0.0, 1.0]]).vectorize(["v"]).unwrap();
    let y = Tensor::from([[1.0f32, 2.0], [3.0, 5.0]]).vectorize(["v"]).unwrap();
    let (along, pushed) = both.call((x, tangents, y)).unwrap();
    assert_eq!(along.vectors().to_string(), "vectorized[v: 2]");
    assert_eq!((numbers(&along), numbers(&pushed)), (vec![1.0, 5.0], vec![1.0, 5.0]));
}

#[test]
fn custom_rules_of_shared_outputs() {
    // The output has no entries, but each entry has its own input and its own weight.
    let grads = |x: Expr, rule: fn(Expr) -> Expr| {
        let weights = Expr::of(vector("v", &[2.0, 5.0]));
        grad(move |x: Expr| rule(x) * &weights)(x)
    };
    let by_cotangents = jit(move |x: Expr| {
        grads(x, |x| custom_grad(Expr::of(1.0f32), &x, |cotangent| cotangent * &x))
    });
    let by_tangents =
        jit(move |x: Expr| grads(x, |x| custom_jvp(Expr::of(1.0f32), &x, |tangent| tangent * &x)));
    let x = vector("v", &[3.0, 7.0]);
    for f in [by_cotangents.call(&x), by_tangents.call(&x)] {
        assert_eq!(numbers(&f.unwrap()), [6.0, 35.0]);
    }
}

#[test]
fn custom_rules_capture_vectorized_values() {
    // Neither the output nor the input has entries, but the rule uses the weight of each entry.
    let slope = jit(|x: Expr| {
        let weights = Expr::of(vector("v", &[2.0, 5.0]));
        let with_rule = move |x: Expr| custom_grad(&x * 1.0, &x, |cotangent| cotangent * &weights);
        grad(move |x: Expr| with_rule(x) * &Expr::of(vector("v", &[1.0, 10.0])))(x)
    });
    assert_eq!(numbers(&slope.call(1.0f32).unwrap()), [2.0, 50.0]);
    // An axis of size 1 is broadcast.
    let one = jit(|x: Expr, y: Expr| {
        grad(move |x: Expr| {
            let y = &y;
            custom_grad(&x * y, &x, |cotangent| cotangent * y)
        })(x)
    });
    let slope = one.call((vector("v", &[5.0]), vector("v", &[1.0, 2.0]))).unwrap();
    assert_eq!(numbers(&slope), [1.0, 2.0]);
}

#[test]
fn vmap_nests() {
    let outer =
        jit(|x: Expr, y: Expr| vmap(|x: Expr| vmap(|y: Expr| &x * &y, 0, 0)(y.clone()), 0, 0)(x));
    let (x, y) = (Tensor::from(vec![1, 2]), Tensor::from(vec![3, 4, 5]));
    let table = outer.call((&x, &y)).unwrap();
    assert_eq!((table.shape()[..].to_vec(), table.dtype()), (vec![2, 3], DType::S32));
    assert_eq!(table.to_vec::<i32>().unwrap(), [3, 4, 5, 6, 8, 10]);
    let error = jit(|x: Expr| vmap(|x: Expr| x, 2, 0)(x)).call(&x).unwrap_err();
    assert!(
        error.to_string().starts_with("vmap: in_axis: must be in range for s32[2]; got 2"),
        "{error}"
    );
}

#[test]
fn unselected_branches_do_not_affect_derivatives() {
    let logarithms = |[w, x]: [Expr; 2]| cond(x.greater(0), || &w * x.log(), || &w * &x);
    // The body must not run for an entry that has finished, and the last entry has no iterations.
    let roots = |[w, x]: [Expr; 2]| {
        let step = |[total, at]: [Expr; 2]| [total + &w * (4 - &at).sqrt(), at + 1.0];
        let [total, _] = while_loop([&x * 0.0, x.clone()], |[_, at]: [Expr; 2]| at.less(4), step);
        total
    };
    let entries = Tensor::from(vec![0.0f64, 1.0, 2.0, 9.0]);
    let w = Tensor::from(3.0f64);
    let shared = |function: fn([Expr; 2]) -> Expr| {
        grad(move |w: Expr| {
            let entries = Expr::of(Tensor::from(vec![0.0f64, 1.0, 2.0, 9.0]));
            let each = vmap(move |x: Expr| function([w.clone(), x]), 0, 0);
            each(entries).sum()
        })
    };
    let by_w = jit(shared(logarithms)).call(&w).unwrap().item::<f64>().unwrap();
    assert!((by_w - 18f64.ln()).abs() < 1e-12, "{by_w}");
    let by_w = jit(shared(roots)).call(&w).unwrap().item::<f64>().unwrap();
    let expected = [4., 3., 2., 1., 3., 2., 1., 2., 1.].map(f64::sqrt).iter().sum::<f64>();
    assert!((by_w - expected).abs() < 1e-12, "{by_w}");
    let each = vmap(move |x: Expr| grad(move |x: Expr| logarithms([Expr::of(3.0f64), x]))(x), 0, 0);
    let by_x = jit(each).call(&entries).unwrap().to_vec::<f64>().unwrap();
    for (found, expected) in by_x.into_iter().zip([3.0, 3.0, 1.5, 1.0 / 3.0]) {
        assert!((found - expected).abs() < 1e-12, "{found}");
    }
}

#[test]
fn folds_keep_vectorized_axes() {
    let f = jit(|x: Expr| x.reduce(1, (), |x, product| x * product));
    let products = f.call(rows()).unwrap();
    assert_eq!(products.vectors().to_string(), "vectorized[row: 2]");
    assert_eq!(numbers(&products), [6.0, 120.0]);
    // Inside a trace, each vectorized initial value has a result.
    let f = jit(|x: Expr, start: Expr| {
        x.vectorize(["row"]).reduce(start.vectorize(["s"]), 0, |x, y| x + y)
    });
    let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
    let sums = f.call((&x, Tensor::from([0.0f32, 10.0, 20.0]))).unwrap();
    assert_eq!(sums.vectors().to_string(), "vectorized[row: 2][s: 3]");
    assert_eq!(numbers(&sums), [3.0, 13.0, 23.0, 7.0, 17.0, 27.0]);
    let named = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]).with_names(["row", "column"]).unwrap();
    let maxima = named.vectorize(["row"]).unwrap().reduce(0.0, "column", |x, y| x.max(y)).unwrap();
    assert_eq!(numbers(&maxima), [2.0, 4.0]);
    let windows = rows().window_reduce(0, &Window::new([2]), |x, sum| x + sum).unwrap();
    assert_eq!(windows.vectors().to_string(), "vectorized[row: 2]");
    assert_eq!(numbers(&windows), [3.0, 5.0, 9.0, 11.0]);
    let mapped = jit(|x: Expr| vmap(|x: Expr| x.reduce(0, (), |x, sum| x + sum), 0, 0)(x));
    assert_eq!(numbers(&mapped.call(&x).unwrap()), [3.0, 7.0]);
    let wrong = jit(|x: Expr| {
        let each = x.vectorize(["row"]);
        each.reduce(0, (), |_, sum| &each.sum() + sum)
    });
    let error = wrong.call(&x).unwrap_err().to_string();
    assert!(error.contains("must return one scalar"), "{error}");
}
