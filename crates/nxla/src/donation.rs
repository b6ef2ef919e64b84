//! Donation: the arguments whose memory a jitted function may reuse, and their leaves.

use std::fmt;

use nxla_expr::{Program, TensorType};
use nxla_runtime::{Donations, Error, Result, covers_leaf, unusable_donations};

use crate::containers::{Container, Leaves, relative_path};

/// An argument, or a part of one, whose memory the results of a call may reuse.
///
/// A number is the index of an argument. A string is the index of an argument and the path of a
/// part of it, such as `"0.weights"` or `"1[0].bias"`, in the notation of error messages.
///
/// ```
/// use nxla::prelude::*;
///
/// #[derive(Container)]
/// struct State<T> {
///     weights: T,
///     rate: T,
/// }
///
/// let step = jit(|state: State<Expr>, slope: Expr| state.weights - slope * state.rate);
/// let step = step.donate(["0.weights"]);
/// let state = State { weights: Tensor::from([1.0f32, 2.0]), rate: Tensor::from(0.5f32) };
/// assert_eq!(step.call((state, Tensor::from([2.0f32, 4.0])))?.to_vec::<f32>()?, [0.0, 0.0]);
/// # Ok::<(), nxla::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Donation {
    /// The index of the argument and the path of a part.
    path: String,
}

impl From<usize> for Donation {
    fn from(position: usize) -> Self {
        Donation { path: position.to_string() }
    }
}

impl From<i32> for Donation {
    fn from(position: i32) -> Self {
        Donation { path: position.to_string() }
    }
}

impl From<&str> for Donation {
    fn from(path: &str) -> Self {
        Donation { path: path.into() }
    }
}

impl From<String> for Donation {
    fn from(path: String) -> Self {
        Donation { path }
    }
}

impl fmt::Display for Donation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)
    }
}

/// The handling of an unusable donation: no result has the type of the donated tensor, or the
/// function does not use it.
///
/// ```
/// use nxla::{Expr, Tensor, UnusableDonation, jit};
///
/// let sum = |unusable| jit(|x: Expr| x.sum()).donate([0]).on_unusable_donation(unusable);
/// let x = Tensor::from([1.0f32, 2.0]);
/// assert_eq!(sum(UnusableDonation::Ignore).call(&x)?.item::<f32>()?, 3.0);
/// assert!(sum(UnusableDonation::Raise).call(&x).is_err());
/// # Ok::<(), nxla::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum UnusableDonation {
    /// The donation is ignored.
    #[default]
    Ignore,
    /// The call that compiles the function returns an error that names the tensors.
    Raise,
}

/// Returns the path of each leaf of the arguments: the index of the argument and the path in it.
pub(crate) fn argument_paths<C: Container>(
    count: usize,
    types: &Leaves<TensorType>,
) -> Result<Vec<String>> {
    if count == 1 {
        return types.paths::<C>("0");
    }
    let paths = types.paths::<C>("")?;
    Ok(paths.into_iter().map(|path| relative_path(&path).to_owned()).collect())
}

/// Returns the donated inputs of a program. `paths` are the paths of the first inputs.
///
/// # Errors
/// Returns an error if an argument or a part does not exist, or if a donation is unusable and
/// `Raise` is set.
pub(crate) fn donated_inputs(
    donations: &[Donation],
    unusable: UnusableDonation,
    paths: &[String],
    program: &Program,
) -> Result<Donations> {
    let mistake = |why: String| Error::Arguments { function: "donate".into(), why };
    let mut marks = vec![false; program.inputs().len()];
    for donation in donations {
        let mut found = false;
        for (at, path) in paths.iter().enumerate() {
            if covers_leaf(&donation.path, path) {
                (marks[at], found) = (true, true);
            }
        }
        if !found {
            let listed = paths.join(", ");
            return Err(mistake(format!(
                "{donation}: must be an argument or a part of one; the tensors of the call are {listed}"
            )));
        }
    }
    let wasted = unusable_donations(program, &marks);
    if unusable == UnusableDonation::Raise && !wasted.is_empty() {
        let named = wasted.iter().map(|&at| format!("{} ({})", paths[at], program.inputs()[at]));
        let listed = named.collect::<Vec<_>>().join(", ");
        return Err(mistake(format!(
            "no result can reuse the memory of {listed}; each result reuses one needed tensor of \
             its type"
        )));
    }
    let names = paths.iter().map(|path| format!("argument {path}")).collect();
    Ok(Donations { marks, names })
}
