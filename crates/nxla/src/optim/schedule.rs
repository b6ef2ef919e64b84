//! Learning-rate schedules.

use std::f64::consts::PI;
use std::panic::Location;

use crate::Error;
use crate::expr::Expr;

/// A learning rate as a function of the number of steps so far.
///
/// ```
/// use nxla::optim::Schedule;
/// use nxla::{Expr, jit};
///
/// let schedule = Schedule::linear(1.0, 0.0, 4);
/// let rate = jit(move |step: Expr| schedule.at(&step));
/// assert_eq!(rate.call(1)?.item::<f32>()?, 0.75);
/// assert_eq!(rate.call(9)?.item::<f32>()?, 0.0);
/// # Ok::<(), nxla::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
#[must_use]
pub struct Schedule(Kind);

#[derive(Clone, PartialEq, Debug)]
enum Kind {
    Constant(f64),
    Linear { from: f64, to: f64, steps: u32 },
    Exponential { from: f64, factor: f64, steps: u32 },
    Cosine { from: f64, share: f64, steps: u32 },
    Joined { first: Box<Schedule>, steps: u32, second: Box<Schedule> },
}

impl From<f64> for Schedule {
    fn from(rate: f64) -> Self {
        Schedule(Kind::Constant(rate))
    }
}

impl From<f32> for Schedule {
    fn from(rate: f32) -> Self {
        Schedule::from(f64::from(rate))
    }
}

impl Schedule {
    /// Changes linearly from one rate to another, and then stays constant.
    ///
    /// ```
    /// use nxla::Tensor;
    /// use nxla::optim::Schedule;
    /// use nxla::{Expr, jit};
    ///
    /// let rates = jit(|step: Expr| Schedule::linear(0.0, 1.0, 2).at(&step));
    /// assert_eq!(rates.call(Tensor::from([0, 1, 2, 3]))?.to_vec::<f32>()?, [0.0, 0.5, 1.0, 1.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    pub fn linear(from: f64, to: f64, steps: u32) -> Self {
        Schedule(Kind::Linear { from, to, steps })
    }

    /// Multiplies the rate by `factor` every `steps` steps, evenly over the steps. The factor must
    /// be positive; [`at`](Self::at) fails for another factor.
    ///
    /// ```
    /// use nxla::Tensor;
    /// use nxla::optim::Schedule;
    /// use nxla::{Expr, jit};
    ///
    /// let rates = jit(|step: Expr| Schedule::exponential(1.0, 0.25, 2).at(&step));
    /// assert_eq!(rates.call(Tensor::from([0, 1, 2]))?.to_vec::<f32>()?, [1.0, 0.5, 0.25]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    pub fn exponential(from: f64, factor: f64, steps: u32) -> Self {
        Schedule(Kind::Exponential { from, factor, steps })
    }

    /// Decreases along half a cosine wave to the fraction `share` of the first rate, and then stays
    /// constant: I. Loshchilov and F. Hutter, "SGDR: stochastic gradient descent with warm
    /// restarts" (2016).
    ///
    /// ```
    /// use nxla::Tensor;
    /// use nxla::optim::Schedule;
    /// use nxla::{Expr, jit};
    ///
    /// let rates = jit(|step: Expr| Schedule::cosine(1.0, 0.5, 2).at(&step));
    /// let rates = rates.call(Tensor::from([0, 1, 2, 3]))?.to_vec::<f32>()?;
    /// assert!(rates.iter().zip([1.0, 0.75, 0.5, 0.5]).all(|(x, y)| (x - y).abs() < 1e-6));
    /// # Ok::<(), nxla::Error>(())
    /// ```
    pub fn cosine(from: f64, share: f64, steps: u32) -> Self {
        Schedule(Kind::Cosine { from, share, steps })
    }

    /// Follows this schedule for a number of steps, and then another schedule from its start.
    ///
    /// ```
    /// use nxla::Tensor;
    /// use nxla::optim::Schedule;
    /// use nxla::{Expr, jit};
    ///
    /// // A warm-up, and a decay.
    /// let schedule = Schedule::linear(0.0, 1.0, 2).then(2, Schedule::linear(1.0, 0.0, 4));
    /// let rates = jit(move |step: Expr| schedule.at(&step));
    /// assert_eq!(rates.call(Tensor::from([0, 1, 2, 4]))?.to_vec::<f32>()?, [0.0, 0.5, 1.0, 0.5]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    pub fn then(self, steps: u32, second: Schedule) -> Self {
        Schedule(Kind::Joined { first: Box::new(self), steps, second: Box::new(second) })
    }

    /// Returns the rate after a number of steps, as `f32`.
    ///
    /// ```
    /// use nxla::optim::Schedule;
    /// use nxla::{Expr, jit};
    ///
    /// let constant = jit(|step: Expr| Schedule::from(0.5).at(&step));
    /// assert_eq!(constant.call(7)?.item::<f32>()?, 0.5);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    #[track_caller]
    pub fn at(&self, step: &Expr) -> Expr {
        let count = step.as_type(nxla_tensor::DType::F32);
        // A schedule without steps is at its end.
        let share = |steps: u32| (&count / f64::from(steps.max(1))).clip(0, 1);
        match &self.0 {
            Kind::Constant(rate) => count.full_like(*rate),
            Kind::Linear { from, to, steps } => share(*steps) * (to - from) + *from,
            Kind::Exponential { factor, .. } if *factor <= 0.0 || factor.is_nan() => {
                let why = format!("factor: must be positive; got {factor}");
                let error = Error::Arguments { function: "exponential".into(), why };
                step.trace().fail(Location::caller(), error);
                Expr::new_failed(step.trace())
            }
            Kind::Exponential { from, factor, steps } => {
                (&count * (factor.ln() / f64::from((*steps).max(1)))).exp() * *from
            }
            Kind::Cosine { from, share: last, steps } => {
                let wave = ((share(*steps) * PI).cos() + 1) * 0.5;
                (wave * (1.0 - last) + *last) * *from
            }
            Kind::Joined { first, steps, second } => {
                let later = second.at(&(step - i64::from(*steps)));
                step.less(i64::from(*steps)).select(first.at(step), later)
            }
        }
    }
}
