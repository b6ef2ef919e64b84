//! Calls of one function on several lists of arguments, one for each partition of a compiler.

use std::cell::RefCell;

use nxla_expr::TensorType;
use nxla_runtime::{self as runtime, CallMode, Error, ListsRequest, Options, Purpose, Result};
use smallvec::SmallVec;

use crate::containers::{
    Arguments, Container, Function, Leaves, container_of_tensors, leaves_of_arguments,
};
use crate::jit::{Jit, as_interrupt, call_of, call_of_types};
use crate::tensor::Tensor;

/// The results of a call in their container.
type Results<F, Types> = <<F as Function<Types>>::Results as Container>::Tensors;

impl<F: Function<Types>, Types> Jit<F, Types> {
    /// Runs the function on several lists of arguments, each on a partition of the compiler. A
    /// compiler with [`run_lists`](crate::Compiler::run_lists) gets all lists in one call. For every
    /// other compiler, list `k` runs with the options of partition `k`
    /// ([`Options::partitions`](crate::Options::partitions)), which begin anew when there are more
    /// lists than partitions.
    ///
    /// ```
    /// use nxla::{Expr, Tensor, jit};
    ///
    /// let total = jit(|x: Expr| x.sum());
    /// let totals = total.call_each([Tensor::from([1, 2]), Tensor::from([3, 4])])?;
    /// assert_eq!((totals[0].item::<i32>()?, totals[1].item::<i32>()?), (3, 7));
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`Jit::call`], and an error for lists of different types.
    pub fn call_each<A>(
        &self,
        args_list: impl IntoIterator<Item = A>,
    ) -> Result<Vec<Results<F, Types>>>
    where
        A: Arguments<F::Arguments, Tensor>,
    {
        if self.call_mode()? == CallMode::Inline {
            let why = "call_each: must not be called in a trace; use join";
            return Err(Error::Usage(why.into()));
        }
        let lists: Vec<Leaves<Tensor>> = args_list.into_iter().map(leaves_of_arguments).collect();
        let Some(first) = lists.first() else { return Ok(Vec::new()) };
        let vars = types_of(first);
        let is_same = |leaves: &Leaves<Tensor>| {
            leaves.structure == first.structure && types_of(leaves) == vars
        };
        if let Some(number) = lists.iter().position(|leaves| !is_same(leaves)) {
            let why = format!("list {number}: must have the types and lengths of the first list");
            return Err(Error::Arguments { function: "call_each".into(), why });
        }
        let options = self.core.options_in_force();
        match self.run_lists(&lists, &vars, &options)? {
            Some(results) => Ok(results),
            None => self.run_each(lists, &options),
        }
    }

    /// Lets the compiler run all lists at once. Returns `None` if the compiler does not do so.
    fn run_lists(
        &self,
        lists: &[Leaves<Tensor>],
        vars: &[TensorType],
        options: &Options,
    ) -> Result<Option<Vec<Results<F, Types>>>> {
        let compiler = options.target(None)?.compiler;
        let structure = &lists[0].structure;
        let results = RefCell::new(None);
        let trace = || {
            let call = call_of_types(vars, [], structure);
            let traced = self.trace_call(&call, structure.clone(), options)?;
            *results.borrow_mut() = Some(traced.results);
            Ok((traced.program, traced.captured))
        };
        let tensors = |leaves: &Leaves<Tensor>| {
            leaves.items.iter().map(|tensor| tensor.clone().into_inner()).collect()
        };
        let args_list: Vec<Vec<runtime::RawTensor>> = lists.iter().map(tensors).collect();
        let request = ListsRequest::new(self.core.number(), vars, &trace, &args_list, options);
        let Some(answer) = compiler.run_lists(&request) else { return Ok(None) };
        let answer = answer?;
        if answer.len() != lists.len() {
            let (name, expected, found) = (compiler.name(), lists.len(), answer.len());
            let why =
                format!("{name}: results: must be one for each of {expected} lists; got {found}");
            return Err(Error::Usage(why));
        }
        // A compiler that found the program in its own cache did not trace.
        if results.borrow().is_none() {
            trace()?;
        }
        let structure = results.borrow_mut().take().unwrap_or_default();
        let rebuild = |tensors| container_of_tensors(tensors, &structure);
        Ok(Some(answer.into_iter().map(rebuild).collect()))
    }

    /// Runs each list of arguments with the options of its partition.
    fn run_each(
        &self,
        lists: Vec<Leaves<Tensor>>,
        options: &Options,
    ) -> Result<Vec<Results<F, Types>>> {
        let partitions = options.partitions()?;
        let interrupt = as_interrupt(self.interrupt.as_deref());
        let run = |(number, leaves): (usize, Leaves<Tensor>)| {
            let options = &partitions[number % partitions.len()];
            let structure = leaves.structure.clone();
            let (entry, inputs) = self.entry(call_of(leaves), Purpose::Jit, &structure, options)?;
            let inputs: SmallVec<[&runtime::RawTensor; 8]> = inputs.iter().collect();
            let results = entry.run(None, &inputs, options, interrupt)?;
            Ok(container_of_tensors(results, entry.results()))
        };
        lists.into_iter().enumerate().map(run).collect()
    }
}

fn types_of(leaves: &Leaves<Tensor>) -> Vec<TensorType> {
    leaves.items.iter().map(|tensor| tensor.ty()).collect()
}
