//! Tests of derivatives against finite differences.

use std::fmt;
use std::panic::Location;

use nxla_runtime::{CompilerChoice, Mode};
use nxla_tensor::DType;

use crate::containers::{
    Arguments, Function, Leaves, Structure, Tree, leaves_of, leaves_of_arguments,
};
use crate::expr::Expr;
use crate::jit::jit_separately;
use crate::tensor::Tensor;
use crate::transform::{jvp, vjp};
use crate::{Error, Result};

/// Compares derivatives of `function` with finite differences, up to second order and in both
/// modes; see [`CheckGrads`] for options.
///
/// ```
/// use nxla::testing::check_grads;
/// use nxla::{Expr, Tensor, custom_grad};
///
/// let x = Tensor::from([0.5f64, 1.5]);
/// check_grads(|x: Expr, y: Expr| x.sin() * y, (&x, 2.0f64))?;
///
/// let wrong = |x: Expr| custom_grad(x.sin(), &x, |cotangent| cotangent);
/// let error = check_grads(wrong, &x).unwrap_err();
/// assert!(error.to_string().starts_with("forward: derivative must match finite differences"));
/// # Ok::<(), nxla::Error>(())
/// ```
///
/// # Errors
/// Returns the errors of [`CheckGrads::run`].
#[track_caller]
pub fn check_grads<F, Types>(
    function: F,
    arguments: impl Arguments<F::Arguments, Tensor>,
) -> Result<()>
where
    F: Function<Types>,
{
    CheckGrads::new().run(function, arguments)
}

/// Options of [`check_grads`].
///
/// The arguments are moved in a random direction and its opposite, and the change of the results is
/// compared with the forward-mode derivative in this direction. Reverse mode with random cotangents
/// must have the same result. The derivatives are functions too, and are checked in the same way up
/// to an order, in each mode.
///
/// ```
/// use nxla::runtime::Mode;
/// use nxla::testing::CheckGrads;
/// use nxla::{Expr, fori};
///
/// let power = |x: Expr| fori(0, 3, x.ones_like(), |_, y| y * &x);
/// CheckGrads::new().order(3).modes([Mode::Reverse]).run(power, 1.2f64)?;
/// # Ok::<(), nxla::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct CheckGrads {
    order: usize,
    modes: Vec<Mode>,
    relative: Option<f64>,
    absolute: Option<f64>,
    step: Option<f64>,
    seed: u64,
    compiler: Option<CompilerChoice>,
}

impl Default for CheckGrads {
    fn default() -> Self {
        Self::new()
    }
}

impl CheckGrads {
    /// Creates options for second order, both modes, and the default compiler.
    ///
    /// ```
    /// use nxla::Expr;
    /// use nxla::testing::CheckGrads;
    ///
    /// CheckGrads::new().run(|x: Expr| x.tanh(), 0.3f64)?;
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self {
            order: 2,
            modes: vec![Mode::Forward, Mode::Reverse],
            relative: None,
            absolute: None,
            step: None,
            seed: 0,
            compiler: None,
        }
    }

    /// Sets the number of times that the function is differentiated.
    ///
    /// ```
    /// use nxla::Expr;
    /// use nxla::testing::CheckGrads;
    ///
    /// CheckGrads::new().order(1).run(|x: Expr| x.exp(), 0.3f64)?;
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn order(mut self, order: usize) -> Self {
        self.order = order;
        self
    }

    /// Sets the modes that are checked for each order.
    ///
    /// ```
    /// use nxla::Expr;
    /// use nxla::runtime::Mode;
    /// use nxla::testing::CheckGrads;
    ///
    /// CheckGrads::new().modes([Mode::Forward]).run(|x: Expr| x.exp(), 0.3f64)?;
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn modes(mut self, modes: impl IntoIterator<Item = Mode>) -> Self {
        self.modes = modes.into_iter().collect();
        self
    }

    /// Sets the permitted difference of two values, relative to the larger one and absolute. The
    /// default is the accuracy of differences in the least precise dtype: about 1e-6 for `f64` and
    /// 1e-3 for `f32`.
    ///
    /// ```
    /// use nxla::Expr;
    /// use nxla::testing::CheckGrads;
    ///
    /// CheckGrads::new().tolerance(1e-8, 1e-8).run(|x: Expr| x.sin(), 0.3f64)?;
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn tolerance(mut self, relative: f64, absolute: f64) -> Self {
        (self.relative, self.absolute) = (Some(relative), Some(absolute));
        self
    }

    /// Sets the step of the differences.
    ///
    /// ```
    /// use nxla::Expr;
    /// use nxla::testing::CheckGrads;
    ///
    /// CheckGrads::new().step(1e-4).run(|x: Expr| x.sin(), 0.3f64)?;
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn step(mut self, step: f64) -> Self {
        self.step = Some(step);
        self
    }

    /// Sets the seed of the random directions.
    ///
    /// ```
    /// use nxla::Expr;
    /// use nxla::testing::CheckGrads;
    ///
    /// CheckGrads::new().seed(7).run(|x: Expr| x.sin(), 0.3f64)?;
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets the compiler of the function and its derivatives.
    ///
    /// ```
    /// use nxla::Expr;
    /// use nxla::testing::CheckGrads;
    ///
    /// CheckGrads::new().compiler("evaluator").run(|x: Expr| x.sin(), 0.3f64)?;
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn compiler(mut self, compiler: impl Into<CompilerChoice>) -> Self {
        self.compiler = Some(compiler.into());
        self
    }

    /// Checks the derivatives of a function at these arguments, where the function should be
    /// smooth. Integers are constants.
    ///
    /// ```
    /// use nxla::testing::CheckGrads;
    /// use nxla::{Expr, Tensor};
    ///
    /// let take = |x: Expr, at: Expr| x.take(at, 0).pow(2);
    /// CheckGrads::new().run(take, (Tensor::from([0.5f64, 1.5]), Tensor::from([1, 0, 1])))?;
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns a [`Mismatch`] as [`Error::User`] if two values differ. Returns an error for an
    /// order of 0, for no modes, and if there is nothing to differentiate, and the errors of the
    /// function.
    #[track_caller]
    pub fn run<F, Types>(
        &self,
        function: F,
        arguments: impl Arguments<F::Arguments, Tensor>,
    ) -> Result<()>
    where
        F: Function<Types>,
    {
        if self.order == 0 || self.modes.is_empty() {
            return Err(wrong(&format!(
                "order, modes: order must be at least 1, and modes must not be empty; got order {} \
                 and {} modes",
                self.order,
                self.modes.len()
            )));
        }
        let given = leaves_of_arguments(arguments);
        let flat = Flat { function: &function, given, location: Location::caller() };
        let values = flat.smooth();
        if values.is_empty() {
            return Err(wrong("arguments: must contain a float or complex tensor"));
        }
        let digits = values.iter().map(|x| digits(x.dtype())).fold(f64::INFINITY, f64::min);
        let checker = Checker {
            relative: self.relative.unwrap_or(10f64.powf(-0.4 * digits)),
            absolute: self.absolute.unwrap_or(10f64.powf(-0.4 * digits)),
            step: self.step.unwrap_or(10f64.powf(-digits / 3.0)),
            modes: &self.modes,
            compiler: self.compiler.as_ref(),
        };
        let call = |values: Vec<Expr>| flat.call(&values);
        checker.check(&call, &values, self.order, &mut Random(self.seed), "")
    }
}

fn wrong(why: &str) -> Error {
    Error::Arguments { function: "check_grads".into(), why: why.into() }
}

/// A derivative that differs from finite differences.
///
/// ```
/// use nxla::testing::{Mismatch, check_grads};
/// use nxla::{Expr, custom_grad};
///
/// let wrong = |x: Expr| custom_grad(x.sin(), &x, |cotangent| cotangent);
/// let nxla::Error::User(error) = check_grads(wrong, 0.5f64).unwrap_err() else { panic!() };
/// assert_eq!(error.downcast::<Mismatch>().unwrap().modes, "forward");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Mismatch {
    /// The modes in which the function was differentiated, the last one first.
    pub modes: String,
    /// The change of the function, in real and imaginary parts.
    pub shown: Vec<f64>,
    /// The derivative.
    pub found: Vec<f64>,
    /// The largest difference.
    pub distance: f64,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { modes, shown, found, distance } = self;
        write!(
            f,
            "{modes}: derivative must match finite differences; got {found:?} and {shown:?} along one \
             direction, which differ by up to {distance}"
        )
    }
}

impl std::error::Error for Mismatch {}

/// A function of the floats among its arguments, which returns the floats among its results.
struct Flat<'a, F> {
    function: &'a F,
    given: Leaves<Tensor>,
    location: &'static Location<'static>,
}

impl<F> Flat<'_, F> {
    /// Returns the arguments that are not constant.
    fn smooth(&self) -> Vec<Tensor> {
        self.given.items.iter().filter(|x| is_smooth(x.dtype())).cloned().collect()
    }

    fn call<Types>(&self, values: &[Expr]) -> Vec<Expr>
    where
        F: Function<Types>,
    {
        let trace = values[0].trace().clone();
        let mut moving = values.iter();
        let items = self.given.items.iter().map(|x| {
            if is_smooth(x.dtype()) {
                moving.next().expect("there is one value for each of them").clone()
            } else {
                Expr::of(x)
            }
        });
        let structure: Structure = self.given.structure.clone();
        let arguments = F::Arguments::rebuild(&mut Leaves::new(items, structure));
        // After an error, which the trace records, the results are dropped.
        let Some(results) = trace.attempt(self.location, || self.function.invoke(arguments)) else {
            return values.to_vec();
        };
        leaves_of(&results).items.into_iter().filter(|x| is_smooth(x.dtype())).collect()
    }
}

fn is_smooth(dtype: DType) -> bool {
    dtype.is_float() || dtype.is_complex()
}

/// Returns the number of decimal digits of a dtype.
fn digits(dtype: DType) -> f64 {
    let bits = dtype.bits() / if dtype.is_complex() { 2 } else { 1 };
    match bits {
        64 => 15.5,
        32 => 7.0,
        16 => 3.0,
        _ => 2.0,
    }
}

/// A random number generator by Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators" (2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Returns a value between one half and one, with a random sign.
    fn number(&mut self) -> f64 {
        let bits = self.next();
        let size = 0.5 + 0.5 * ((bits >> 11) as f64 / (1u64 << 53) as f64);
        if bits & 1 == 0 { size } else { -size }
    }

    fn like(&mut self, x: &Tensor) -> Result<Tensor> {
        let mut part = || -> Result<Tensor> {
            let numbers = (0..x.shape().size()).map(|_| self.number()).collect();
            Tensor::new(numbers, x.shape().clone())
        };
        let whole = if x.dtype().is_complex() { part()?.complex(part()?)? } else { part()? };
        whole.as_type(x.dtype())
    }
}

/// A function of a list, whose derivatives are functions of a list too.
type ListFunction<'a> = dyn Fn(Vec<Expr>) -> Vec<Expr> + 'a;

struct Checker<'a> {
    relative: f64,
    absolute: f64,
    step: f64,
    modes: &'a [Mode],
    compiler: Option<&'a CompilerChoice>,
}

impl Checker<'_> {
    /// Checks a function, and its derivatives up to the order.
    fn check(
        &self,
        function: &ListFunction<'_>,
        values: &[Tensor],
        order: usize,
        random: &mut Random,
        path: &str,
    ) -> Result<()> {
        let directions: Vec<Tensor> =
            values.iter().map(|x| random.like(x)).collect::<Result<_>>()?;
        let shown = self.differences(function, values, &directions)?;
        if shown.is_empty() {
            return Err(wrong("function: must return a float or complex tensor"));
        }
        for &mode in self.modes {
            let name = if mode == Mode::Forward { "forward" } else { "reverse" };
            let path = if path.is_empty() { name.into() } else { format!("{path} of {name}") };
            if mode == Mode::Forward {
                let along = |values| jvp(function)(values, constants(&directions)).1;
                for (change, shown) in self.call(&along, values)?.iter().zip(&shown) {
                    self.compare(&path, &numbers(change)?, &numbers(shown)?)?;
                }
                self.further(&along, values, order, random, &path)?;
            } else {
                let cotangents: Vec<Tensor> =
                    shown.iter().map(|x| random.like(x)).collect::<Result<_>>()?;
                let back = |values| vjp(function, values).1(constants(&cotangents));
                let found = inner_product(&self.call(&back, values)?, &directions)?;
                self.compare(&path, &[found], &[inner_product(&cotangents, &shown)?])?;
                self.further(&back, values, order, random, &path)?;
            }
        }
        Ok(())
    }

    fn further(
        &self,
        derivative: &ListFunction<'_>,
        values: &[Tensor],
        order: usize,
        random: &mut Random,
        path: &str,
    ) -> Result<()> {
        if order == 1 {
            return Ok(());
        }
        self.check(derivative, values, order - 1, random, path)
    }

    fn call(&self, function: &ListFunction<'_>, values: &[Tensor]) -> Result<Vec<Tensor>> {
        let mut compiled = jit_separately(|values: Vec<Expr>| function(values));
        if let Some(compiler) = self.compiler {
            compiled = compiled.compiler(compiler.clone());
        }
        compiled.call(values.to_vec())
    }

    /// Returns the changes of the results in a direction, per unit of step length.
    fn differences(
        &self,
        function: &ListFunction<'_>,
        values: &[Tensor],
        directions: &[Tensor],
    ) -> Result<Vec<Tensor>> {
        let both = |values: Vec<Expr>| -> Vec<Expr> {
            let moved = |step: f64| {
                let pairs = values.iter().zip(directions);
                function(pairs.map(|(x, direction)| x + Expr::of(direction) * step).collect())
            };
            let pairs = moved(self.step).into_iter().zip(moved(-self.step));
            pairs.map(|(high, low)| (high - low) * (0.5 / self.step)).collect()
        };
        self.call(&both, values)
    }

    fn compare(&self, modes: &str, found: &[f64], shown: &[f64]) -> Result<()> {
        let mut distance = 0.0f64;
        let mut largest = 0.0f64;
        for (found, shown) in found.iter().zip(shown) {
            let apart = (found - shown).abs();
            // NaN is larger than all other values.
            distance = if distance.is_nan() || apart <= distance { distance } else { apart };
            largest = largest.max(shown.abs());
        }
        if distance <= self.absolute + self.relative * largest {
            return Ok(());
        }
        let (shown, found) = (shown.to_vec(), found.to_vec());
        Err(Error::User(Box::new(Mismatch { modes: modes.into(), shown, found, distance })))
    }
}

fn constants(tensors: &[Tensor]) -> Vec<Expr> {
    tensors.iter().map(Expr::of).collect()
}

/// Returns the elements, each with its imaginary part for complex tensors.
fn numbers(x: &Tensor) -> Result<Vec<f64>> {
    let host = x.to_host()?;
    let parts = (0..host.size()).map(|at| host.get(at).parts());
    Ok(if x.dtype().is_complex() {
        parts.flat_map(|(real, imaginary)| [real, imaginary]).collect()
    } else {
        parts.map(|(real, _)| real).collect()
    })
}

/// Returns the change that cotangents predict for tangents: the real part of the sum of their
/// products.
fn inner_product(cotangents: &[Tensor], changes: &[Tensor]) -> Result<f64> {
    let mut total = 0.0;
    for (cotangent, change) in cotangents.iter().zip(changes) {
        total += (cotangent * change)?.sum()?.real()?.as_type(DType::F64)?.item::<f64>()?;
    }
    Ok(total)
}
