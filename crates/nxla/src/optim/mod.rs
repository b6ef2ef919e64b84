//! Optimizers: updates of containers of parameters from their gradients.
//!
//! ```
//! use nxla::optim::{self, Schedule};
//! use nxla::prelude::*;
//!
//! #[derive(Container, Clone)]
//! struct Line<T> {
//!     slope: T,
//!     offset: T,
//! }
//!
//! let adam = optim::adam(Schedule::cosine(0.3, 0.01, 200)).clip_by_global_norm(1.0);
//! let mut line = Line { slope: Tensor::from(0f32), offset: Tensor::from(0f32) };
//! let mut state = adam.init(&line)?;
//! let step = jit(move |line: Line<Expr>, state: optim::State<Line<Expr>, Expr>, x: Expr, y: Expr| {
//!     let loss = |l: Line<Expr>| (l.slope * &x + l.offset - &y).pow(2).mean();
//!     let slopes = grad(loss)(line.clone());
//!     adam.step(&line, &slopes, &state)
//! });
//! let (x, y) = (Tensor::from([0f32, 1.0, 2.0]), Tensor::from([1f32, 3.0, 5.0]));
//! for _ in 0..200 {
//!     (line, state) = step.call((&line, &state, &x, &y))?;
//! }
//! assert!((line.slope.item::<f32>()? - 2.0).abs() < 0.05);
//! # Ok::<(), nxla::Error>(())
//! ```

mod schedule;

use nxla_expr::ErrorKind;
use nxla_tensor::DType;

use crate::containers::{Tree, paths_of};
use crate::expr::Expr;
use crate::tensor::Tensor;
use crate::{Container, Result};

pub use schedule::Schedule;

/// The state of an optimizer between steps: running means of the gradients, in containers like the
/// parameters, and the number of steps.
///
/// ```
/// use nxla::{Tensor, optim};
///
/// let state = optim::adam(0.1).init(&[Tensor::from([1.0f32, 2.0]), Tensor::from(3.0f32)])?;
/// assert_eq!((state.moments.len(), state.steps.item::<i32>()?), (2, 0));
/// # Ok::<(), nxla::Error>(())
/// ```
///
/// With the feature `serde`, a state can be saved with the parameters and read later:
///
/// ```
/// # #[cfg(feature = "serde")]
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use nxla::optim::{self, State};
/// use nxla::Tensor;
///
/// let parameters = [Tensor::from([1.0f32, 2.0])];
/// let text = serde_json::to_string(&optim::adam(0.1).init(&parameters)?)?;
/// let state: State<[Tensor; 1], Tensor> = serde_json::from_str(&text)?;
/// assert_eq!(state.moments[1][0].to_vec::<f32>()?, [0.0, 0.0]);
/// # Ok(())
/// # }
/// # #[cfg(not(feature = "serde"))]
/// # fn main() {}
/// ```
#[derive(nxla_derive::Container, Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct State<C, T> {
    /// The running means: none for gradient descent, one for momentum and Lion, two for Adam.
    pub moments: Vec<C>,
    /// The number of steps so far.
    pub steps: T,
}

/// An optimizer, created by [`sgd`], [`adam`], [`adamw`] or [`lion`].
///
/// ```
/// use nxla::prelude::*;
/// use nxla::optim;
///
/// let momentum = optim::sgd(0.5).momentum(0.9);
/// let state = momentum.init(&Tensor::from(1.0f32))?;
/// let step = jit(move |x: Expr, state: optim::State<Expr, Expr>| momentum.step(&x, &(&x * 2), &state));
/// let (x, state) = step.call((1.0f32, &state))?;
/// assert_eq!((x.item::<f32>()?, state.moments[0].item::<f32>()?), (0.0, 2.0));
/// # Ok::<(), nxla::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
#[must_use]
pub struct Optimizer {
    rule: Rule,
    rate: Schedule,
    /// The weight decay: the fraction of the parameters that is added to a step.
    decay: f64,
    max_norm: Option<f64>,
    /// The first invalid option, and the reason.
    invalid: Option<(&'static str, String)>,
}

/// The rule that computes a step from gradients.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Rule {
    Descent,
    Momentum { decay: f64, nesterov: bool },
    Adam { b1: f64, b2: f64, epsilon: f64 },
    Lion { b1: f64, b2: f64 },
}

/// Creates gradient descent: H. Robbins and S. Monro, "A stochastic approximation method" (1951).
///
/// ```
/// use nxla::prelude::*;
/// use nxla::optim;
///
/// let sgd = optim::sgd(0.25);
/// let state = sgd.init(&Tensor::from(1.0f32))?;
/// let step = jit(move |x: Expr, state: optim::State<Expr, Expr>| sgd.step(&x, &(&x * 2), &state));
/// assert_eq!(step.call((1.0f32, &state))?.0.item::<f32>()?, 0.5);
/// # Ok::<(), nxla::Error>(())
/// ```
pub fn sgd(rate: impl Into<Schedule>) -> Optimizer {
    Optimizer { rule: Rule::Descent, rate: rate.into(), decay: 0.0, max_norm: None, invalid: None }
}

/// Creates Adam: running means of gradients, divided by the roots of running means of their
/// squares. D. P. Kingma and J. Ba, "Adam: a method for stochastic optimization" (2014).
///
/// ```
/// use nxla::optim;
///
/// assert_ne!(optim::adam(0.1), optim::adam(0.1).betas(0.8, 0.99));
/// ```
pub fn adam(rate: impl Into<Schedule>) -> Optimizer {
    Optimizer { rule: Rule::Adam { b1: 0.9, b2: 0.999, epsilon: 1e-8 }, ..sgd(rate) }
}

/// Creates Adam with decoupled weight decay, 1e-4 by default: I. Loshchilov and F. Hutter,
/// "Decoupled weight decay regularization" (2017).
///
/// ```
/// use nxla::optim;
///
/// assert_eq!(optim::adamw(0.1), optim::adam(0.1).weight_decay(1e-4));
/// ```
pub fn adamw(rate: impl Into<Schedule>) -> Optimizer {
    adam(rate).weight_decay(1e-4)
}

/// Creates Lion: steps of fixed length in the direction of a running mean, with a default weight
/// decay of 1e-3. X. Chen et al., "Symbolic discovery of optimization algorithms" (2023).
///
/// ```
/// use nxla::optim;
///
/// assert_eq!(optim::lion(0.1), optim::lion(0.1).weight_decay(1e-3));
/// ```
pub fn lion(rate: impl Into<Schedule>) -> Optimizer {
    Optimizer { rule: Rule::Lion { b1: 0.9, b2: 0.99 }, ..sgd(rate) }.weight_decay(1e-3)
}

impl Optimizer {
    /// Adds momentum to [`sgd`]: a step follows a sum of gradients that decays by this factor in
    /// each step. B. T. Polyak, "Some methods of speeding up the convergence of iteration methods"
    /// (1964). For another optimizer, [`init`](Self::init) and [`step`](Self::step) return an error.
    ///
    /// ```
    /// use nxla::optim;
    ///
    /// assert_ne!(optim::sgd(0.1).momentum(0.9), optim::sgd(0.1).nesterov(0.9));
    /// ```
    ///
    /// The factor is at least 0 and at most 1. For another factor, `init` and `step` return an error.
    pub fn momentum(self, decay: f64) -> Self {
        self.with_momentum("momentum", decay, false)
    }

    /// Adds Nesterov momentum, which looks one step ahead: I. Sutskever et al., "On the importance
    /// of initialization and momentum in deep learning" (2013).
    ///
    /// ```
    /// use nxla::optim;
    ///
    /// let nesterov = optim::sgd(0.1).nesterov(0.9);
    /// assert_eq!(nesterov, nesterov.clone());
    /// ```
    ///
    /// The factor is at least 0 and at most 1, as for [`momentum`](Self::momentum).
    pub fn nesterov(self, decay: f64) -> Self {
        self.with_momentum("nesterov", decay, true)
    }

    fn with_momentum(self, option: &'static str, decay: f64, nesterov: bool) -> Self {
        if !(0.0..=1.0).contains(&decay) {
            let why = format!("decay: must be at least 0 and at most 1; got {decay}");
            return self.with_invalid(option, why);
        }
        match self.rule {
            Rule::Descent | Rule::Momentum { .. } => {
                Self { rule: Rule::Momentum { decay, nesterov }, ..self }
            }
            Rule::Adam { .. } | Rule::Lion { .. } => {
                let why = "optimizer: must be an `sgd`; the other optimizers have `betas`";
                self.with_invalid(option, why.into())
            }
        }
    }

    fn with_invalid(self, option: &'static str, why: String) -> Self {
        Self { invalid: self.invalid.or(Some((option, why))), ..self }
    }

    /// Requires a number that is not negative, which is the argument of an option or the option.
    fn require_not_negative(
        self,
        option: &'static str,
        argument: Option<&str>,
        value: f64,
    ) -> Self {
        if value >= 0.0 {
            return self;
        }
        let argument = argument.map_or(String::new(), |argument| format!("{argument}: "));
        self.with_invalid(option, format!("{argument}must not be negative; got {value}"))
    }

    /// Returns an error if an option has an invalid value or belongs to another rule.
    fn check_options(&self) -> Result<()> {
        match self.invalid.clone() {
            None => Ok(()),
            Some((option, why)) => Err(crate::Error::Arguments { function: option.into(), why }),
        }
    }

    /// Sets the decay factors of the running means of [`adam`] and [`lion`], which are at least 0
    /// and less than 1. For other factors and for [`sgd`], [`init`](Self::init) and
    /// [`step`](Self::step) return an error.
    ///
    /// ```
    /// use nxla::optim;
    ///
    /// assert_eq!(optim::adam(0.1).betas(0.9, 0.999), optim::adam(0.1));
    /// ```
    pub fn betas(self, b1: f64, b2: f64) -> Self {
        for (argument, factor) in [("b1", b1), ("b2", b2)] {
            if !(0.0..1.0).contains(&factor) {
                let why = format!("{argument}: must be at least 0 and less than 1; got {factor}");
                return self.with_invalid("betas", why);
            }
        }
        let rule = match self.rule {
            Rule::Adam { epsilon, .. } => Rule::Adam { b1, b2, epsilon },
            Rule::Lion { .. } => Rule::Lion { b1, b2 },
            Rule::Descent | Rule::Momentum { .. } => {
                let why = "optimizer: must be an `adam`, `adamw` or `lion`; got an `sgd`";
                return self.with_invalid("betas", why.into());
            }
        };
        Self { rule, ..self }
    }

    /// Sets the constant that [`adam`] adds to the root of the second moment. For other optimizers
    /// and a negative constant, [`init`](Self::init) and [`step`](Self::step) return an error.
    ///
    /// ```
    /// use nxla::optim;
    ///
    /// assert_eq!(optim::adam(0.1).epsilon(1e-8), optim::adam(0.1));
    /// ```
    pub fn epsilon(self, epsilon: f64) -> Self {
        let valid = self.require_not_negative("epsilon", None, epsilon);
        match valid.rule {
            Rule::Adam { b1, b2, .. } => Self { rule: Rule::Adam { b1, b2, epsilon }, ..valid },
            Rule::Descent | Rule::Momentum { .. } | Rule::Lion { .. } => {
                let why = "optimizer: must be an `adam` or `adamw`; got another one";
                valid.with_invalid("epsilon", why.into())
            }
        }
    }

    /// Adds a fraction of the parameters to each step, before the rate scales the step. For a negative
    /// fraction, [`init`](Self::init) and [`step`](Self::step) return an error.
    ///
    /// ```
    /// use nxla::optim;
    ///
    /// assert_ne!(optim::sgd(0.1).weight_decay(0.01), optim::sgd(0.1));
    /// ```
    pub fn weight_decay(self, decay: f64) -> Self {
        Self { decay, ..self.require_not_negative("weight_decay", Some("decay"), decay) }
    }

    /// Scales all gradients down if their global norm is larger than `max_norm`: R. Pascanu et al.,
    /// "On the difficulty of training recurrent neural networks" (2012). For a negative norm,
    /// [`init`](Self::init) and [`step`](Self::step) return an error.
    ///
    /// ```
    /// use nxla::optim;
    ///
    /// assert_ne!(optim::sgd(0.1).clip_by_global_norm(1.0), optim::sgd(0.1));
    /// ```
    pub fn clip_by_global_norm(self, max_norm: f64) -> Self {
        let valid = self.require_not_negative("clip_by_global_norm", Some("max_norm"), max_norm);
        Self { max_norm: Some(max_norm), ..valid }
    }

    /// Returns the state before the first step. Moments of integers and of floats of fewer than 32
    /// bits are `f32`: in `f16`, the square of 300 and an epsilon of 1e-8 are not representable.
    ///
    /// ```
    /// use nxla::{Tensor, optim};
    ///
    /// let state = optim::lion(0.1).init(&Tensor::from([1.0f32, 2.0]))?;
    /// assert_eq!(state.moments[0].to_vec::<f32>()?, [0.0, 0.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error for an option that the optimizer does not have or that is invalid, and the
    /// error of creating zeros.
    pub fn init<C: Tree<Tensor>>(&self, parameters: &C) -> Result<State<C, Tensor>> {
        self.check_options()?;
        let zeros = || parameters.try_map(|x| x.zeros_like()?.as_type(wide_dtype(x.dtype())));
        let moments = (0..self.rule.moments()).map(|_| zeros()).collect::<Result<_>>()?;
        Ok(State { moments, steps: Tensor::from(0) })
    }

    /// Returns the parameters and the state after a step. Steps of integers and of floats of fewer
    /// than 32 bits are computed in `f32` and rounded once, to the nearest number.
    ///
    /// ```
    /// use nxla::prelude::*;
    /// use nxla::optim;
    ///
    /// let adam = optim::adam(0.5);
    /// let state = adam.init(&Tensor::from(1.0f32))?;
    /// let step = jit(move |x: Expr, state: optim::State<Expr, Expr>| adam.step(&x, &(&x * 2), &state));
    /// let (x, state) = step.call((1.0f32, &state))?;
    /// assert!((x.item::<f32>()? - 0.5).abs() < 1e-6);
    /// assert_eq!(state.steps.item::<i32>()?, 1);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error for an option that the optimizer does not have or that is invalid, and if
    /// gradients or state have another container or other shapes than the parameters.
    #[track_caller]
    pub fn step<C: Container>(
        &self,
        parameters: &C,
        gradients: &C,
        state: &State<C, Expr>,
    ) -> Result<(C, State<C, Expr>)> {
        self.check_options()?;
        check_shapes("gradients", gradients, parameters)?;
        state.moments.iter().try_for_each(|moment| check_shapes("state", moment, parameters))?;
        let steps = &state.steps + 1;
        let gradients = self.clip_gradients(&gradients.map(wide));
        let (changes, moments) = self.rule.apply(&gradients, &state.moments, &steps)?;
        let changes = match self.decay {
            0.0 => changes,
            decay => changes.zip(parameters, |change, x| change + wide(x) * decay)?,
        };
        let rate = self.rate.at(&state.steps);
        let moved = |x: &Expr, change: &Expr| {
            let moved = wide(x) - change * rate.as_type(change.dtype());
            // A conversion truncates: a step of 0.1 would change 5 to 4.
            let moved = if x.dtype().is_integer() { moved.round() } else { moved };
            moved.as_type(x.dtype())
        };
        Ok((parameters.zip(&changes, moved)?, State { moments, steps }))
    }

    /// The gradients, scaled down if their norm is too large. Finite gradients keep their direction even if the norm
    /// is too large for their dtype: the norm is the product of the largest element and a norm relative to it.
    fn clip_gradients<C: Container>(&self, gradients: &C) -> C {
        let Some(max_norm) = self.max_norm else { return gradients.map(Expr::clone) };
        let leaves = Tree::<Expr>::leaves(gradients);
        let occupied = || leaves.iter().filter(|x| x.shape().size() > 0).map(|x| x.abs());
        let Some(largest) = occupied().map(|x| x.reduce_max()).reduce(|x, y| x.max(y)) else {
            return gradients.map(Expr::clone);
        };
        // The norm does not depend on the scale, and so neither does its derivative.
        let largest = largest.stop_grad();
        let usable = largest.is_finite().logical_and(largest.greater(0));
        let largest = usable.select(&largest, 1);
        let squares = occupied().map(|x| (x / &largest).pow(2).sum());
        let total = squares.reduce(|x, y| x + y).expect("there is an element");
        // The root has no derivative at zero, where the norm has its minimum.
        let relative = total.equal(0).select(1, &total).sqrt();
        let is_small = total.equal(0).logical_or((&largest * &relative).less(max_norm));
        // XLA rewrites two divisions in a row as a division by the product, which may overflow.
        let factor = relative.full_like(max_norm) / &relative;
        gradients.map(|x| {
            let scaled = x / &largest * &factor;
            is_small.select(x, scaled.as_type(x.dtype()))
        })
    }
}

/// Checks that each leaf has the shape of its parameter, to which it would broadcast otherwise.
/// Differences of structure are reported by [`Tree::zip`], and failed values by the trace.
fn check_shapes<C: Container>(argument: &'static str, container: &C, parameters: &C) -> Result<()> {
    let (leaves, expected) = (Tree::<Expr>::leaves(container), Tree::<Expr>::leaves(parameters));
    let differs = |(x, parameter): (&Expr, &Expr)| {
        !x.has_failed() && !parameter.has_failed() && x.shape() != parameter.shape()
    };
    let Some(at) = leaves.iter().zip(&expected).position(differs) else { return Ok(()) };
    let paths = paths_of::<Expr>(parameters, "");
    let expected = format!("the shape of the parameter{}, {}", paths[at], expected[at].ty());
    let found = leaves[at].ty().to_string();
    Err(ErrorKind::Shape { argument, found, expected }.of("step").into())
}

/// Returns a value in the dtype of its moments.
fn wide(x: &Expr) -> Expr {
    x.as_type(wide_dtype(x.dtype()))
}

/// Returns the dtype of moments: `f32` for integers, whose steps are fractions, and for narrower
/// floats, whose squares could overflow or vanish.
fn wide_dtype(dtype: DType) -> DType {
    dtype.to_floating().at_least_f32()
}

impl Rule {
    fn moments(self) -> usize {
        match self {
            Rule::Descent => 0,
            Rule::Momentum { .. } | Rule::Lion { .. } => 1,
            Rule::Adam { .. } => 2,
        }
    }

    /// Returns the updates of the parameters before the rate scales them, and the new moments.
    /// `steps` includes this step.
    fn apply<C: Container>(
        self,
        gradients: &C,
        moments: &[C],
        steps: &Expr,
    ) -> Result<(C, Vec<C>)> {
        let mean = |decay: f64| move |m: &Expr, g: &Expr| m * decay + g * (1.0 - decay);
        match (self, moments) {
            (Rule::Descent, []) => Ok((gradients.map(Expr::clone), Vec::new())),
            (Rule::Momentum { decay, nesterov }, [sum]) => {
                let add = |sum: &Expr, g: &Expr| g + sum * decay;
                let sum = sum.zip(gradients, add)?;
                let changes =
                    if nesterov { sum.zip(gradients, add)? } else { sum.map(Expr::clone) };
                Ok((changes, vec![sum]))
            }
            (Rule::Lion { b1, b2 }, [old]) => {
                let changes = old.zip(gradients, mean(b1))?.map(Expr::sign);
                Ok((changes, vec![old.zip(gradients, mean(b2))?]))
            }
            (Rule::Adam { b1, b2, epsilon }, [first, second]) => {
                let first = first.zip(gradients, mean(b1))?;
                let squares = gradients.map(|g| g.abs().pow(2));
                let second = second.zip(&squares, mean(b2))?;
                let [one, two] = [b1, b2].map(|decay| share(decay, steps));
                let changes = first.zip(&second, |m, v| {
                    let (one, two) = (one.as_type(m.dtype()), two.as_type(v.dtype()));
                    m / one / ((v / two).sqrt() + epsilon)
                })?;
                Ok((changes, vec![first, second]))
            }
            (Rule::Descent | Rule::Momentum { .. } | Rule::Lion { .. } | Rule::Adam { .. }, _) => {
                let (expected, found) = (self.moments(), moments.len());
                let why = format!(
                    "state: must come from `init` of this optimizer; got {found} moments, expected {expected}"
                );
                Err(crate::Error::Arguments { function: "step".into(), why })
            }
        }
    }
}

/// Returns `1 - decay^steps`, the bias correction of a running mean, without cancellation in the
/// first steps.
fn share(decay: f64, steps: &Expr) -> Expr {
    -(steps.as_type(DType::F64) * decay.ln()).expm1()
}
