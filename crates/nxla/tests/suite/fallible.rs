//! Traced functions that return a `Result`.

use nxla::graph::{Difference, ErrorKind, Misfit, Region};
use nxla::{
    Container, Error, Expr, Function, Keep, Replay, Result, Tensor, block, checkpoint, cond,
    custom_grad, custom_jvp, fori, grad, hessian, hessian_diagonal, hook, hvp, if_, jacfwd,
    jacobian, jacrev, jit, jvp, linearize, map, safe_where, scan, scan_times, scan_with,
    value_and_grad, vjp, vmap, when, while_loop,
};

#[derive(Debug)]
struct Negative(i32);

impl std::fmt::Display for Negative {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} is negative", self.0)
    }
}

impl std::error::Error for Negative {}

impl From<Negative> for Error {
    fn from(error: Negative) -> Self {
        Error::user(error)
    }
}

/// Cubes a value if an exponent is not negative.
fn cube(x: Expr, exponent: i32) -> Result<Expr, Negative> {
    if exponent < 0 { Err(Negative(exponent)) } else { Ok(x.pow(3)) }
}

/// Checks the result for `x = 2`, and the error.
fn check<F, A, O>(expected: &[f64], function: impl Fn(i32) -> F)
where
    F: Fn(A) -> Result<O> + Function<(A,), Arguments = Expr, Results = O>,
    A: Container,
    O: Container<Tensors = Tensor>,
{
    let found = jit(function(1)).call(2.0f64).unwrap().to_vec::<f64>().unwrap();
    assert_eq!(found, expected);
    let error = jit(function(-1)).call(2.0f64).unwrap_err();
    let user = error.user_error().unwrap_or_else(|| panic!("{error}"));
    assert_eq!(user.downcast_ref::<Negative>().unwrap().0, -1);
}

#[test]
fn derivatives_return_errors_of_functions() {
    check(&[12.0], |n| grad(move |x: Expr| cube(x, n)));
    check(&[12.0], |n| {
        move |x: Expr| Ok::<_, Error>(value_and_grad(move |x: Expr| cube(x, n))(x)?.1)
    });
    check(&[12.0], |n| move |x: Expr| Ok(jvp(move |x: Expr| cube(x, n))(x, Expr::of(1.0f64))?.1));
    check(&[12.0], |n| {
        move |x: Expr| {
            let (_, pull) = vjp(move |x: Expr| cube(x, n), x)?;
            Ok(pull(Expr::of(1.0)))
        }
    });
    check(&[12.0], |n| {
        move |x: Expr| {
            let (_, push) = linearize(move |x: Expr| cube(x, n), x)?;
            Ok(push(Expr::of(1.0)))
        }
    });
    check(&[12.0], |n| jacfwd(move |x: Expr| cube(x, n)));
    check(&[12.0], |n| jacrev(move |x: Expr| cube(x, n)));
    check(&[12.0], |n| jacobian(move |x: Expr| cube(x, n)));
    check(&[12.0], |n| hessian(move |x: Expr| cube(x, n)));
    check(&[12.0], |n| hessian_diagonal(move |x: Expr| cube(x, n)));
    check(&[12.0], |n| grad(grad(move |x: Expr| cube(x, n))));
    check(&[12.0], |n| move |x: Expr| hvp(move |x: Expr| cube(x, n))(x, Expr::of(1.0)));
    check(&[12.0], |n| {
        move |x: Expr| {
            let inputs = x.clone();
            custom_grad(&x * 1.0, &inputs, move |g: Expr| cube(g, n)).map(|y| y * 6)
        }
    });
    check(&[12.0], |n| {
        move |x: Expr| {
            let inputs = x.clone();
            custom_jvp(&x * 1.0, &inputs, move |t: Expr| cube(t, n)).map(|y| y * 6)
        }
    });
    check(&[8.0], |n| move |x: Expr| safe_where(&x.greater(0), &x, 1, move |x| cube(x, n), 0));
}

#[test]
fn control_flow_returns_errors_of_functions() {
    check(&[8.0], |n| {
        move |x: Expr| cond(x.greater(0), || cube(x.clone(), n), || Ok(x.zeros_like()))
    });
    check(&[0.0], |n| move |x: Expr| cond(x.less(0), || Ok(x.clone()), || cube(x.zeros_like(), n)));
    check(&[0.0], |n| {
        move |x: Expr| {
            when(x.less(0), || Ok(x.clone()))
                .or_when(x.less(1), || cube(x.clone(), n))
                .otherwise(|| Ok(x.zeros_like()))
        }
    });
    check(&[8.0], |n| move |x: Expr| if_(x.greater(0), || cube(x.clone(), n)));
    check(&[512.0], |n| move |x: Expr| fori(0, 2, x, |_, x| cube(x, n)));
    check(&[8.0], |n| move |x: Expr| while_loop(x, |x| x.less(3), |x| cube(x, n)));
    check(&[8.0], |n| move |x: Expr| map(x.new_axis(0), |x| cube(x, n)));
    check(&[8.0], |n| move |x: Expr| vmap(move |x: Expr| cube(x, n), 0, 0)(x.new_axis(0)));
    check(&[8.0], |n| move |x: Expr| block("cube", x, |x: Expr| cube(x, n)));
    check(&[8.0], |n| checkpoint(move |x: Expr| cube(x, n), Keep::Nothing));
}

#[test]
fn scans_return_errors_of_functions() {
    let step = |n| move |total: Expr, x: Expr| cube(x, n).map(|y| (&total + &y, y));
    check(&[8.0], |n| move |x: Expr| Ok(scan(x.zeros_like(), x.new_axis(0), step(n))?.0));
    check(&[8.0], |n| {
        let replay = Replay::default();
        move |x: Expr| Ok(scan_with(replay, x.zeros_like(), x.new_axis(0), step(n))?.1)
    });
    check(&[8.0], |n| move |x: Expr| Ok(scan_times(1, x, |x| cube(x, n).map(|y| (y, ())))?.0));
    // The types of the results come from a trace of the body, also without steps.
    check(&[], |n| move |x: Expr| Ok(scan_times(0, x, |x| cube(x, n).map(|y| (y.clone(), y)))?.1));
}

#[test]
fn a_caught_error_leaves_the_trace_usable() {
    let f = jit(|x: Expr| {
        let slope = grad(|x: Expr| cube(x, -1))(x.clone());
        let branch = cond(x.greater(0), || cube(x.clone(), -1), || Ok(x.clone()));
        let last = fori(0, 2, x.clone(), |_, x| cube(x, -1));
        let caught = [slope, branch, last].iter().filter(|result| result.is_err()).count();
        x * caught
    });
    assert_eq!(f.call(2).unwrap().item::<i32>().unwrap(), 6);
}

/// A function that fails after it has traced a hook, which must never be called.
fn abandoned(x: Expr) -> Result<Expr> {
    Ok(cube(hook(x, |_: Tensor| Err("an abandoned hook was called")), -1)?)
}

#[test]
fn a_caught_error_drops_the_hooks_of_the_function() {
    let f = jit(|x: Expr| {
        let positive = || x.greater(0);
        let step = |x: Expr| abandoned(x).map(|y| (y.clone(), y));
        let caught = [
            grad(abandoned)(x.clone()).is_err(),
            jvp(abandoned)(x.clone(), x.clone()).is_err(),
            vmap(abandoned, 0, 0)(x.new_axis(0)).is_err(),
            custom_grad(&x * 1.0, &x, abandoned).is_err(),
            cond(positive(), || abandoned(x.clone()), || Ok(x.clone())).is_err(),
            cond(positive(), || Ok(x.clone()), || abandoned(x.clone())).is_err(),
            if_(positive(), || abandoned(x.clone())).is_err(),
            fori(0, 2, x.clone(), |_, x| abandoned(x)).is_err(),
            while_loop(x.clone(), |x| x.less(3), abandoned).is_err(),
            map(x.new_axis(0), abandoned).is_err(),
            scan_times(1, x.clone(), step).is_err(),
            scan_times(0, x.clone(), step).is_err(),
            block("abandoned", x.clone(), abandoned).is_err(),
            checkpoint(abandoned, Keep::Nothing)(x.clone()).is_err(),
        ];
        assert_eq!(caught, [true; 14]);
        x
    });
    assert_eq!(f.call(2.0f32).unwrap().item::<f32>().unwrap(), 2.0);
}

#[test]
fn an_earlier_error_of_an_operation_takes_precedence() {
    let f = jit(|x: Expr| {
        grad(|x: Expr| {
            let _ = x.at(3);
            cube(x, -1)
        })(x)
    });
    let error = f.call(2.0f32).unwrap_err().to_string();
    assert!(error.starts_with("at: ") && error.contains("fallible.rs:"), "{error}");
}

#[test]
fn loops_return_errors_of_functions_unchanged() {
    let misfit = Misfit {
        region: Region::Branch(1),
        result: 0,
        path: None,
        found: "f32".into(),
        expected: "s32".into(),
        difference: Difference::DType,
    };
    let error = ErrorKind::Misfit(misfit.into()).of("inner");
    let expected = error.to_string();
    let f = jit(move |x: Expr| fori(0, 2, x, |_, _| Err::<Expr, Error>(error.clone().into())));
    assert_eq!(f.call(2.0f32).unwrap_err().to_string(), expected);
}
