//! Gradients of functions.

use crate::error::Result;
use crate::expr::Expr;

/// The gradient of `function` with respect to each of its arguments.
///
/// The function gives one value; if that is not a scalar, its sum is differentiated. The result
/// is a function again, to be jitted, called inside another one, or differentiated once more.
///
/// ```
/// use nxla::{Expr, Tensor, grad, jit};
///
/// let cube = |[x]: [Expr; 1]| x.pow(3);
/// let second = |args: [Expr; 1]| { let [g] = grad(cube)(args); g };
/// let [slope] = jit(grad(second)).call([&Tensor::from(2.0f32)])?;
/// assert_eq!(slope.item()?.as_f64(), 12.0);
/// # Ok::<(), nxla::Error>(())
/// ```
pub fn grad<F, const N: usize>(function: F) -> impl Fn([Expr; N]) -> [Expr; N]
where
    F: Fn([Expr; N]) -> Expr,
{
    let both = value_and_grad(move |args| (function(args), ()));
    move |args| both(args).1
}

/// What the function of a gradient may return: the value to differentiate, alone or first of a
/// pair whose other part is passed on.
pub trait ValueAndRest {
    /// Appends everything but the value, and gives the value.
    fn split(self, rest: &mut Vec<Expr>) -> Expr;

    /// What the caller gets for value and rest.
    type Result;

    /// Puts the result together.
    fn join(value: Expr, rest: Vec<Expr>) -> Self::Result;
}

impl ValueAndRest for Expr {
    type Result = Expr;

    fn split(self, _: &mut Vec<Expr>) -> Expr {
        self
    }

    fn join(value: Expr, _: Vec<Expr>) -> Expr {
        value
    }
}

impl ValueAndRest for (Expr, ()) {
    type Result = Expr;

    fn split(self, _: &mut Vec<Expr>) -> Expr {
        self.0
    }

    fn join(value: Expr, _: Vec<Expr>) -> Expr {
        value
    }
}

impl ValueAndRest for (Expr, Vec<Expr>) {
    type Result = (Expr, Vec<Expr>);

    fn split(self, rest: &mut Vec<Expr>) -> Expr {
        rest.extend(self.1);
        self.0
    }

    fn join(value: Expr, rest: Vec<Expr>) -> Self::Result {
        (value, rest)
    }
}

/// The value of `function` and its gradient with respect to each of its arguments.
///
/// The function gives the value, or a pair of the value and further expressions (`Vec<Expr>`)
/// that are passed on.
///
/// ```
/// use nxla::{Expr, Tensor, jit, value_and_grad};
///
/// let square = jit(value_and_grad(|[x]: [Expr; 1]| &x * &x));
/// let (value, [slope]) = square.call([&Tensor::from(3.0f32)])?;
/// assert_eq!((value.item()?.as_f64(), slope.item()?.as_f64()), (9.0, 6.0));
/// # Ok::<(), nxla::Error>(())
/// ```
pub fn value_and_grad<F, R, const N: usize>(
    function: F,
) -> impl Fn([Expr; N]) -> (R::Result, [Expr; N])
where
    F: Fn([Expr; N]) -> R,
    R: ValueAndRest,
{
    move |args| {
        let traced = gradient_of(&function, &args);
        traced.unwrap_or_else(|error| {
            let Some(first) = args.first() else { unreachable!("only arguments can be refused") };
            first.trace().fail(error);
            let value = first.clone();
            (R::join(value, Vec::new()), args.clone())
        })
    }
}

fn gradient_of<F, R, const N: usize>(
    function: &F,
    args: &[Expr; N],
) -> Result<(R::Result, [Expr; N])>
where
    F: Fn([Expr; N]) -> R,
    R: ValueAndRest,
{
    let trace = match args.first() {
        Some(first) => first.trace().clone(),
        None => {
            let mut rest = Vec::new();
            let value = function(args.clone()).split(&mut rest);
            return Ok((R::join(value, rest), args.clone()));
        }
    };
    let gradient = trace.begin_gradient(args)?;
    let mut stand_ins = gradient.stand_ins().into_iter();
    let stand_ins = std::array::from_fn(|_| stand_ins.next().expect("one for each argument"));
    let mut results = vec![];
    let value = function(stand_ins).split(&mut results);
    results.insert(0, value.clone());
    let (mut results, gradients) = gradient.finish(&value, &results)?;
    let rest = results.split_off(1);
    let value = results.remove(0);
    let mut gradients = gradients.into_iter();
    let gradients = std::array::from_fn(|_| gradients.next().expect("one for each argument"));
    Ok((R::join(value, rest), gradients))
}
