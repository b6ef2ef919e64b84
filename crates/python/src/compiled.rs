//! Functions compiled for the types of templates, and for no others.

use std::collections::BTreeMap;
use std::sync::Arc;

use nxla_runtime::{Inputs, Options, Signature, Trace};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};

use crate::containers::{Tree, flatten};
use crate::difference::{Differences, LeafType, Typed};
use crate::errors::{OrRaise, argument_error, exception};
use crate::function::{Borrowings, Entry, PyFunction, generic_alias, run_entry};
use crate::signature::{Arguments, StaticValue, leaf_type};

/// A function compiled for certain types of arguments. Made by ``nx.compile``.
#[pyclass(name = "Compiled", module = "nxla", frozen, dict, weakref)]
pub(crate) struct PyCompiled {
    /// What it was compiled from, which owns what hooks call. Always there; the interpreter may
    /// collect garbage while it makes the object, and then finds zeros, which are `None`.
    pub(crate) function: Option<Py<PyFunction>>,
    pub(crate) name: String,
    pub(crate) entry: Arc<Entry>,
    pub(crate) options: Options,
    pub(crate) expected: Expected,
    /// Whether results must be finite.
    pub(crate) check: bool,
}

/// The types that arguments must be of.
pub(crate) struct Expected {
    signature: Signature<StaticValue>,
    arguments: Vec<Argument>,
}

/// What an argument must be.
pub(crate) struct Argument {
    tree: Tree,
    leaves: Vec<LeafType>,
}

impl Argument {
    /// Describes an argument or a template.
    pub(crate) fn of(value: &Bound<'_, PyAny>, position: usize) -> PyResult<Self> {
        let mut leaves = Vec::new();
        let tree = flatten(value, &format!("argument {position}"), &mut |item, _| {
            let ty = leaf_type(item)?;
            let is_leaf = ty.is_some();
            leaves.extend(ty);
            Ok(is_leaf)
        })?;
        Ok(Self { tree, leaves })
    }

    fn typed(&self) -> Typed<'_> {
        Typed { tree: &self.tree, leaves: &self.leaves }
    }
}

#[pymethods]
impl PyCompiled {
    /// ``nx.Compiled[nx.Tensor]`` is a type for annotations.
    #[classmethod]
    fn __class_getitem__<'py>(
        cls: &Bound<'py, PyType>,
        types: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        generic_alias(cls, types)
    }

    /// What it holds, for the garbage collector.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.function)
    }

    #[pyo3(signature = (*args))]
    fn __call__(&self, py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        if Trace::current().is_some() {
            return Err(exception(nxla_runtime::Error::Usage(format!(
                "{}: a compiled function cannot be called while another function is traced; \
                 call the function that it was compiled from",
                self.name
            ))));
        }
        let inputs = self.expected.inputs(py, &self.name, args)?;
        let inputs: Borrowings<'_> = inputs.iter().collect();
        run_entry(py, &self.name, &self.entry, &inputs, &self.options, self.check)
    }

    /// Raises what a call with these arguments would raise about their types.
    #[pyo3(signature = (*args))]
    fn check(&self, py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.expected.inputs(py, &self.name, args).map(drop)
    }

    /// What the compiler expects it to cost: numbers by name, such as ``flops`` and ``bytes
    /// accessed``. None where the compiler does not say.
    fn cost_analysis(&self, py: Python<'_>) -> PyResult<Option<BTreeMap<String, f64>>> {
        let analysis = py.detach(|| self.entry.analysis()).or_raise()?;
        Ok(analysis.cost.map(|cost| cost.into_iter().collect()))
    }

    /// The bytes that a run takes: ``arguments``, ``outputs``, ``aliased`` (of the arguments, for
    /// outputs), ``temporaries``, and ``code``. None where the compiler does not say.
    fn memory_analysis(&self, py: Python<'_>) -> PyResult<Option<BTreeMap<&'static str, i64>>> {
        let analysis = py.detach(|| self.entry.analysis()).or_raise()?;
        Ok(analysis.memory.map(|memory| {
            BTreeMap::from([
                ("arguments", memory.arguments),
                ("outputs", memory.outputs),
                ("aliased", memory.aliased),
                ("temporaries", memory.temporaries),
                ("code", memory.code),
            ])
        }))
    }

    /// The digest of the program.
    #[getter]
    fn digest(&self) -> String {
        self.entry.program().digest().to_string()
    }

    fn __repr__(&self) -> String {
        let types = self.expected.arguments.iter().flat_map(|argument| &argument.leaves);
        let types: Vec<String> = types.map(ToString::to_string).collect();
        format!("<nxla function {} compiled for ({})>", self.name, types.join(", "))
    }
}

/// Adds positional arguments to what the runtime is told.
fn signed(mut arguments: Arguments, name: &str, args: &Bound<'_, PyTuple>) -> PyResult<Arguments> {
    for (position, arg) in args.iter().enumerate() {
        arguments.argument(&arg, &|| format!("{name}: argument {position}"))?;
    }
    Ok(arguments)
}

impl Expected {
    /// The types of arguments like these, or of templates.
    pub(crate) fn like(name: &str, args: &Bound<'_, PyTuple>) -> PyResult<Self> {
        Self::signed(signed(Arguments::of_types(), name, args)?, args)
    }

    /// The types of arguments that have been told to the runtime.
    pub(crate) fn signed(signed: Arguments, args: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let arguments = args.iter().enumerate();
        let arguments = arguments.map(|(position, arg)| Argument::of(&arg, position));
        let arguments = arguments.collect::<PyResult<_>>()?;
        Ok(Self { signature: signed.call.into_signature(), arguments })
    }

    /// The static values in it.
    pub(crate) fn statics(&self) -> &[StaticValue] {
        self.signature.statics()
    }

    /// The tensors of arguments, if they are of these types.
    pub(crate) fn inputs(
        &self,
        py: Python<'_>,
        name: &str,
        args: &Bound<'_, PyTuple>,
    ) -> PyResult<Inputs> {
        let arguments = signed(Arguments::default(), name, args)?;
        arguments.call.refuse_templates(name).or_raise()?;
        if !self.signature.matches(arguments.call.signature()).or_raise()? {
            self.compare(py, name, args)?;
        }
        Ok(arguments.call.into_inputs())
    }

    /// Says how arguments differ from the templates. Names of axes that one side leaves open are
    /// no difference.
    fn compare(&self, py: Python<'_>, name: &str, args: &Bound<'_, PyTuple>) -> PyResult<()> {
        let (expected, found) = (self.arguments.len(), args.len());
        if found != expected {
            let why = format!("takes {expected} arguments, got {found}");
            return Err(argument_error(name, why));
        }
        let mut differences = Differences::new(&fits);
        for (position, arg) in args.iter().enumerate() {
            let found = Argument::of(&arg, position)?;
            let expected = self.arguments[position].typed();
            differences.compare(py, &format!("argument {position}"), found.typed(), expected)?;
        }
        match differences.text() {
            None => Ok(()),
            Some(text) => Err(argument_error(name, text)),
        }
    }
}

fn fits(found: &LeafType, expected: &LeafType) -> bool {
    found.vectors == expected.vectors && expected.ty.accepts(&found.ty)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyCompiled>()
}
