//! The requirements for the arguments of a call: names, containers, static values and types.

use nxla_runtime::{Inputs, Program, Signature, VectorAxes};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::containers::{Tree, flatten};
use crate::difference::{Differences, Typed};
use crate::errors::{OrRaise, argument_error};
use crate::signature::{Arguments, StaticValue, is_leaf, leaf_type};
use crate::template::{LeafType, PyTemplate};

/// The required types of arguments.
pub(crate) struct Expected {
    /// A hash that identifies matching calls quickly; missing after unpickling.
    signature: Option<Signature<StaticValue>>,
    slots: Vec<Slot>,
    /// True if only the axes of the data matter, vectorized or not.
    by_data: bool,
}

/// The requirement for one argument.
struct Slot {
    name: String,
    /// True if the argument can be passed by name.
    by_name: bool,
    tree: Tree,
    leaves: Vec<LeafType>,
}

/// The name of an argument, and whether it can be passed by that name.
type Name = (String, bool);

/// The pickled form of an argument: its name, whether it can be passed by name, and the container
/// with templates for its tensors.
type PickledSlot = (String, bool, Py<PyAny>);

/// The pickled form of all arguments.
pub(crate) type Pickled = (Vec<PickledSlot>, bool);

impl Slot {
    /// Describes an argument or a template.
    fn of(value: &Bound<'_, PyAny>, (name, by_name): Name) -> PyResult<Self> {
        let mut leaves = Vec::new();
        let tree = flatten(value, &name, &mut |item, _| {
            let ty = leaf_type(item)?;
            let is_leaf = ty.is_some();
            leaves.extend(ty);
            Ok(is_leaf)
        })?;
        Ok(Self { name, by_name, tree, leaves })
    }

    /// A value that must be passed unchanged.
    fn of_static(value: Py<PyAny>, (name, by_name): Name) -> Self {
        Self { name, by_name, tree: Tree::Static(value), leaves: Vec::new() }
    }

    /// One tensor.
    fn leaf(ty: LeafType, name: String) -> Self {
        Self { name, by_name: false, tree: Tree::Leaf, leaves: vec![ty] }
    }

    fn as_typed(&self) -> Typed<'_> {
        Typed { tree: &self.tree, leaves: &self.leaves }
    }

    /// The value, if it contains no tensors.
    fn value(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        if !self.leaves.is_empty() {
            return Ok(None);
        }
        self.tree.rebuild(py, &mut std::iter::empty()).map(Some)
    }

    fn to_pickled(&self, py: Python<'_>) -> PyResult<PickledSlot> {
        let mut templates =
            self.leaves.iter().map(|leaf| Ok(Py::new(py, PyTemplate(leaf.clone()))?.into_any()));
        Ok((self.name.clone(), self.by_name, self.tree.rebuild(py, &mut templates)?))
    }

    fn from_pickled(py: Python<'_>, (name, by_name, value): PickledSlot) -> PyResult<Self> {
        let mut leaves = Vec::new();
        let tree = flatten(value.bind(py), &name, &mut |item, _| {
            let Ok(template) = item.cast::<PyTemplate>() else { return Ok(false) };
            leaves.push(template.get().0.clone());
            Ok(true)
        })?;
        Ok(Self { name, by_name, tree, leaves })
    }
}

/// The names of the positional arguments of a function.
pub(crate) fn names_of(function: &Bound<'_, PyAny>, count: usize) -> PyResult<Vec<Name>> {
    function
        .py()
        .import("nxla._arguments")?
        .getattr("names_of")?
        .call1((function, count))?
        .extract()
}

/// Describes positional arguments to the runtime.
pub(crate) fn describe_positional(
    mut arguments: Arguments,
    name: &str,
    args: &Bound<'_, PyTuple>,
) -> PyResult<Arguments> {
    for (position, arg) in args.iter().enumerate() {
        arguments.argument(&arg, &|| format!("{name}: argument {position}"))?;
    }
    Ok(arguments)
}

impl Expected {
    /// The type of an argument or a template, with its name in errors.
    pub(crate) fn like(function: &str, name: &str, arg: &Bound<'_, PyAny>) -> PyResult<Self> {
        let args = PyTuple::new(arg.py(), [arg])?;
        Self::of_templates(function, &args, vec![(name.to_owned(), false)])
    }

    /// The types of templates, one for each argument.
    pub(crate) fn of_templates(
        function: &str,
        templates: &Bound<'_, PyTuple>,
        names: Vec<Name>,
    ) -> PyResult<Self> {
        let arguments = describe_positional(Arguments::of_types(), function, templates)?;
        Self::from_arguments(arguments, templates, names)
    }

    /// The types of the described arguments.
    pub(crate) fn from_arguments(
        arguments: Arguments,
        args: &Bound<'_, PyTuple>,
        names: Vec<Name>,
    ) -> PyResult<Self> {
        let slots = args.iter().zip(names).map(|(arg, name)| Slot::of(&arg, name));
        let slots = slots.collect::<PyResult<_>>()?;
        let signature = Some(arguments.call.into_signature());
        Ok(Self { signature, slots, by_data: false })
    }

    /// The arguments of a traced call; `is_static` contains whether each is static.
    pub(crate) fn from_trace<'py>(
        arguments: impl Iterator<Item = PyResult<(Bound<'py, PyAny>, Name, bool)>>,
    ) -> PyResult<Self> {
        let slots = arguments.map(|argument| match argument? {
            (value, name, true) => Ok(Slot::of_static(value.unbind(), name)),
            (value, name, false) => Slot::of(&value, name),
        });
        Ok(Self::of_slots(slots.collect::<PyResult<_>>()?, false))
    }

    fn of_slots(slots: Vec<Slot>, by_data: bool) -> Self {
        Self { signature: None, slots, by_data }
    }

    /// Expects one tensor for each input of a program.
    pub(crate) fn of_program(program: &Program) -> Self {
        Self::of_inputs(program, 0, &[])
    }

    /// Expects one tensor for each input of a program except the last `left_out` inputs, with these
    /// vectorized axes.
    pub(crate) fn of_inputs(program: &Program, left_out: usize, vectors: &[VectorAxes]) -> Self {
        let inputs = program.inputs();
        let own = inputs[..inputs.len() - left_out].iter().enumerate();
        let slots = own.map(|(input, ty)| {
            let vectors = vectors.get(input).cloned().unwrap_or_default();
            let leaf = LeafType { ty: vectors.entry_type(ty), vectors };
            Slot::leaf(leaf, format!("argument {input}"))
        });
        Self::of_slots(slots.collect(), true)
    }

    /// Returns the pickled form.
    pub(crate) fn to_pickled(&self, py: Python<'_>) -> PyResult<Pickled> {
        let slots = self.slots.iter().map(|slot| slot.to_pickled(py));
        Ok((slots.collect::<PyResult<_>>()?, self.by_data))
    }

    /// Rebuilds the requirements from the pickled form.
    pub(crate) fn from_pickled(py: Python<'_>, pickled: Pickled) -> PyResult<Self> {
        let (slots, by_data) = pickled;
        let slots = slots.into_iter().map(|slot| Slot::from_pickled(py, slot));
        Ok(Self::of_slots(slots.collect::<PyResult<_>>()?, by_data))
    }

    /// The static values.
    pub(crate) fn statics(&self) -> &[StaticValue] {
        self.signature.as_ref().map_or(&[], Signature::statics)
    }

    /// The required tensors.
    pub(crate) fn leaf_count(&self) -> usize {
        self.slots.iter().map(|slot| slot.leaves.len()).sum()
    }

    /// The types of all tensors.
    pub(crate) fn leaf_types(&self) -> impl Iterator<Item = &LeafType> {
        self.slots.iter().flat_map(|slot| &slot.leaves)
    }

    /// The types of all tensors, as strings.
    pub(crate) fn types(&self) -> Vec<String> {
        self.leaf_types().map(ToString::to_string).collect()
    }

    /// The positional arguments, and the keywords that are not arguments.
    pub(crate) fn bind<'py>(
        &self,
        name: &str,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<(Bound<'py, PyTuple>, Option<Bound<'py, PyDict>>)> {
        let py = args.py();
        let Some(kwargs) = kwargs.filter(|kwargs| !kwargs.is_empty()) else {
            return Ok((args.clone(), None));
        };
        let rest = kwargs.copy()?;
        let mut values: Vec<Option<Bound<'py, PyAny>>> = args.iter().map(Some).collect();
        let mut any = false;
        for (position, slot) in self.slots.iter().enumerate() {
            let given = if slot.by_name { kwargs.get_item(&slot.name)? } else { None };
            let Some(value) = given else { continue };
            any = true;
            rest.del_item(&slot.name)?;
            if values.get(position).is_some_and(Option::is_some) {
                let why = format!("got multiple values for argument {}", slot.name);
                return Err(argument_error(name, why));
            }
            values.resize(values.len().max(position + 1), None);
            values[position] = Some(value);
        }
        if !any {
            return Ok((args.clone(), Some(rest)));
        }
        let mut bound = Vec::with_capacity(values.len());
        for (value, slot) in values.into_iter().zip(&self.slots) {
            match (value, slot.value(py)?) {
                (Some(value), _) => bound.push(value),
                (None, Some(known)) => bound.push(known.into_bound(py)),
                (None, None) => {
                    return Err(argument_error(name, format!("{}: is required", slot.name)));
                }
            }
        }
        Ok((PyTuple::new(py, bound)?, Some(rest)))
    }

    /// The tensors of arguments, if they are of these types. Lazy ones that `program` does not use
    /// stay unread.
    pub(crate) fn inputs(
        &self,
        py: Python<'_>,
        name: &str,
        args: &Bound<'_, PyTuple>,
        program: Option<&Program>,
    ) -> PyResult<Inputs> {
        let arguments = describe_positional(Arguments::default(), name, args)?;
        arguments.call.refuse_templates(name).or_raise()?;
        let fits = match &self.signature {
            Some(signature) => signature.matches(arguments.call.signature()).or_raise()?,
            None => false,
        };
        if !fits {
            self.compare(py, name, args)?;
        }
        arguments.into_inputs(py, program)
    }

    /// The tensors of arguments in the containers of the traced call, whose trailing static
    /// arguments may be omitted, or of one tensor for each input.
    pub(crate) fn leaves(
        &self,
        py: Python<'_>,
        name: &str,
        args: &Bound<'_, PyTuple>,
        program: Option<&Program>,
    ) -> PyResult<Inputs> {
        let plain = self.slots.iter().all(|slot| slot.tree.is_leaf());
        if !plain
            && args.len() == self.leaf_count()
            && args.iter().all(|arg| is_leaf(&arg).unwrap_or(false))
        {
            return self.one_by_one(py)?.inputs(py, name, args, program);
        }
        let mut values: Vec<Bound<'_, PyAny>> = args.iter().collect();
        for slot in self.slots.iter().skip(values.len()) {
            let Some(known) = slot.value(py)? else { break };
            values.push(known.into_bound(py));
        }
        // A static value is compared directly, so it need not be hashable.
        let inputs = values.iter().enumerate().filter(|(position, _)| {
            self.slots.get(*position).is_none_or(|slot| !slot.leaves.is_empty())
        });
        let inputs: Vec<_> = inputs.map(|(_, value)| value).collect();
        let inputs = PyTuple::new(py, inputs)?;
        let arguments = describe_positional(Arguments::default(), name, &inputs)?;
        arguments.call.refuse_templates(name).or_raise()?;
        self.compare(py, name, &PyTuple::new(py, &values)?)?;
        arguments.into_inputs(py, program)
    }

    /// The same tensors, as separate arguments.
    fn one_by_one(&self, py: Python<'_>) -> PyResult<Self> {
        let mut slots = Vec::new();
        for slot in &self.slots {
            for (leaf, ty) in slot.leaves.iter().enumerate() {
                let path = slot.tree.leaf_path(py, leaf)?.unwrap_or_default();
                slots.push(Slot::leaf(ty.clone(), format!("{}{path}", slot.name)));
            }
        }
        Ok(Self::of_slots(slots, self.by_data))
    }

    /// Describes the differences between arguments and templates. An axis name that one side omits
    /// is not a difference.
    pub(crate) fn compare(
        &self,
        py: Python<'_>,
        name: &str,
        args: &Bound<'_, PyTuple>,
    ) -> PyResult<()> {
        let (expected, found) = (self.slots.len(), args.len());
        if found != expected {
            let plural = if expected == 1 { "" } else { "s" };
            let missing = self.slots.iter().skip(found).find(|slot| !slot.leaves.is_empty());
            let missing = missing.map(|slot| format!("; {} is missing", slot.name));
            let missing = missing.unwrap_or_default();
            let why = format!("takes {expected} argument{plural}; got {found}{missing}");
            return Err(argument_error(name, why));
        }
        let fits = |found: &LeafType, expected: &LeafType| {
            if self.by_data {
                expected.full_type().accepts(&found.full_type())
            } else {
                found.vectors == expected.vectors && expected.ty.accepts(&found.ty)
            }
        };
        let mut differences = Differences::new(&fits);
        for (arg, slot) in args.iter().zip(&self.slots) {
            let found = match &slot.tree {
                Tree::Static(_) => Slot::of_static(arg.unbind(), (slot.name.clone(), false)),
                _ => Slot::of(&arg, (slot.name.clone(), false))?,
            };
            differences.compare(py, &slot.name, found.as_typed(), slot.as_typed())?;
        }
        match differences.text() {
            None => Ok(()),
            Some(text) => Err(argument_error(name, text)),
        }
    }
}
