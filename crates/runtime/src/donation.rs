//! Donation: the arguments whose memory a call reuses, and the state of their tensors after the call.

use nxla_eval::EvalError;
use nxla_expr::{Program, TensorType};
use rustc_hash::FxHashMap;

use crate::error::{Error, Result};
use crate::tensor::RawTensor;

/// The donated inputs of a program.
#[derive(Clone, Default, Debug)]
pub struct Donations {
    /// For each input, `true` if it is donated; empty if no input is donated.
    pub marks: Vec<bool>,
    /// The names of the arguments, the first inputs, in error messages.
    pub names: Vec<String>,
}

/// The inputs of one run whose memory it may reuse.
#[derive(Default)]
pub(crate) struct RunDonation {
    /// For each input, `true` if the executable may reuse its memory; empty if none is reused.
    pub(crate) marks: Vec<bool>,
    /// The inputs among them whose memory this run must not reuse.
    pub(crate) kept: Vec<usize>,
}

/// Returns whether the part of an argument at a path contains the leaf at another path.
///
/// ```
/// use nxla_runtime::covers_leaf;
///
/// assert!(covers_leaf(".mean", ".mean[0]") && covers_leaf("", ".mean[0]"));
/// assert!(!covers_leaf(".mean", ".means[0]"));
/// ```
pub fn covers_leaf(part: &str, leaf: &str) -> bool {
    let rest = leaf.strip_prefix(part);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// The donations of a compiled function.
///
/// A call is accepted once its arguments are checked and its program is compiled. An accepted call takes the
/// donated tensors that the program needs, on every backend, also if the run fails. A rejected call leaves its
/// arguments alone. Tensors on the host are never donated.
pub(crate) struct Donated {
    donations: Donations,
    /// For each input whether an output or an effect depends on it; empty if no input is donated.
    needed: Vec<bool>,
}

impl Donated {
    pub(crate) fn new(program: &Program, donations: Donations) -> Self {
        let needed =
            if donations.marks.contains(&true) { program.used_inputs() } else { Vec::new() };
        Self { donations, needed }
    }

    /// Returns whether no input is donated.
    pub(crate) fn is_empty(&self) -> bool {
        self.needed.is_empty()
    }

    /// Returns for each input whether it is donated; empty if no input is donated.
    pub(crate) fn marks(&self) -> &[bool] {
        &self.donations.marks
    }

    /// Checks the inputs of a call.
    ///
    /// # Errors
    /// Returns an error if a donated tensor is passed twice, or if a tensor that the program needs was
    /// released or donated before.
    pub(crate) fn check(&self, function: &str, inputs: &[&RawTensor]) -> Result<()> {
        let mut first_uses: FxHashMap<usize, usize> = FxHashMap::default();
        for (input, tensor) in inputs.iter().enumerate() {
            let Some(buffer) = tensor.buffer() else { continue };
            if self.needed[input] && buffer.is_deleted()? {
                // The state of a deleted buffer is an error that names the owner of the memory.
                buffer.is_ready()?;
            }
            let first = *first_uses.entry(buffer.address()).or_insert(input);
            if first != input && (self.marks()[first] || self.marks()[input]) {
                return Err(self.passed_twice(function, first, input));
            }
        }
        Ok(())
    }

    fn passed_twice(&self, function: &str, first: usize, second: usize) -> Error {
        let (donated, other) = if self.marks()[first] { (first, second) } else { (second, first) };
        let name = |input: usize| match self.donations.names.get(input) {
            Some(name) => name.as_str(),
            None => "a tensor that the function captures",
        };
        let (donated, other) = (name(donated), name(other));
        let why = format!(
            "{donated}: a donated tensor must be passed once; got the same tensor as {other}; pass a copy"
        );
        Error::Arguments { function: function.into(), why }
    }

    /// Marks the tensors of an accepted call as donated to `caller`, and frees unused memory.
    ///
    /// # Errors
    /// Returns the error of the plugin.
    pub(crate) fn donate_inputs(
        &self,
        caller: &str,
        inputs: &[&RawTensor],
        outcome: &Result<Vec<RawTensor>>,
    ) -> Result<()> {
        // An interrupted program may run on, and freeing its inputs would wait for it.
        let may_run = matches!(outcome, Err(Error::Eval(EvalError::Interrupted)));
        for (input, tensor) in inputs.iter().enumerate() {
            match tensor.buffer().filter(|_| self.needed[input] && self.marks()[input]) {
                Some(buffer) if may_run => buffer.mark_donated(caller),
                Some(buffer) => buffer.donate(caller)?,
                None => {}
            }
        }
        Ok(())
    }
}

/// The donated inputs whose memory no output can reuse: inputs without a remaining output of their
/// type, and inputs that the program does not need.
pub fn unusable_donations(program: &Program, donated: &[bool]) -> Vec<usize> {
    if !donated.contains(&true) {
        return Vec::new();
    }
    let needed = program.used_inputs();
    let mut free: Vec<&TensorType> = program.output_types().collect();
    let mut takes = |input: usize| {
        let ty = &program.inputs()[input];
        let fits = |output: &&TensorType| output.dtype == ty.dtype && output.shape == ty.shape;
        let found = free.iter().position(fits);
        found.map(|output| free.remove(output)).is_some()
    };
    let marked = donated.iter().enumerate().filter(|(_, is_donated)| **is_donated);
    let unusable = marked.filter(|&(input, _)| !(needed[input] && takes(input)));
    unusable.map(|(input, _)| input).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nxla_expr::Graph;
    use nxla_tensor::DType;

    #[test]
    fn outputs_reuse_one_input_of_their_type() {
        let inputs = [[2], [2], [3], [2]].map(|shape| TensorType::new(DType::F32, shape));
        let mut graph = Graph::new();
        let parameters: Vec<_> =
            inputs.iter().enumerate().map(|(at, ty)| graph.parameter(at, ty.clone())).collect();
        let sum = graph.add(parameters[0], parameters[1]).unwrap();
        let far = graph.exp(parameters[2]).unwrap();
        let program = Program::new(&graph, inputs.to_vec(), &[sum, far]).unwrap();
        assert_eq!(unusable_donations(&program, &[true; 4]), [1, 3]);
        assert_eq!(unusable_donations(&program, &[false, true, true, false]), []);
        assert_eq!(unusable_donations(&program, &[]), []);
    }
}
