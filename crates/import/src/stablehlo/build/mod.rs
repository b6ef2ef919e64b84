//! From the syntax tree of a module to nodes of a graph, one file per family of ops.

mod bits;
mod call;
mod contract;
mod control;
mod create;
mod elementwise;
mod factor;
mod gather;
mod index;
mod linalg;
mod movement;
mod operand;
mod random;
mod recognize;
mod reduce;
mod scatter;
mod sort;
mod window;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use nxla_expr::{ExprId, Graph, Line, Program, Source, SourceId, TensorType};
use nxla_tensor::{HostTensor, Scalar};
use rustc_hash::FxHashMap;

use super::syntax::{Function, Operation, Position, Region, Syntax, Type, ValueId};
use super::{FORMAT, MAX_DEPTH, Module, Weights, malformed_at};
use crate::numbers::to_i64;
use crate::{ImportError, ImportErrorKind, Place, Result, Unsupported};

/// The most operations that a module may expand to: functions are inlined, so a short file can describe
/// exponentially many operations.
const MAX_OPERATIONS: usize = 1 << 22;

/// The reason why one operation was not built.
#[derive(Debug)]
pub(super) enum Fail {
    Unsupported(String),
    Malformed(String),
    Graph(Box<nxla_expr::Error>),
    /// An error inside of a region or function, which has a place already.
    Inside(Box<ImportError>),
}

impl From<nxla_expr::Error> for Fail {
    fn from(error: nxla_expr::Error) -> Self {
        Fail::Graph(Box::new(error))
    }
}

impl From<ImportError> for Fail {
    fn from(error: ImportError) -> Self {
        Fail::Inside(Box::new(error))
    }
}

/// The result of building one operation: its values, or `None` if a value is not supported.
pub(super) type Built = Result<Option<Vec<Slot>>, Fail>;

/// Returns an error about an operation without a counterpart.
pub(super) fn unsupported<T>(why: impl Into<String>) -> Result<T, Fail> {
    Err(Fail::Unsupported(why.into()))
}

/// Returns an error about an operation that breaks a rule of the format.
pub(super) fn malformed<T>(why: impl Into<String>) -> Result<T, Fail> {
    Err(Fail::Malformed(why.into()))
}

/// A value of a function.
#[derive(Clone, Debug)]
pub(super) enum Slot {
    /// The value is not defined yet.
    Undefined,
    /// The result of an operation that is not supported.
    Unsupported,
    Node(ExprId),
    /// The values of a tuple, without nested tuples.
    Tuple(Rc<[Slot]>),
    /// The scales of the reflectors of a QR factorization of this matrix. Only the call that expands
    /// them reads them.
    Reflectors(ExprId),
    /// The order of side effects. Calls with side effects are dropped, so a token has no value.
    Token,
}

/// The values of one call of a function.
pub(super) type Values = Vec<Slot>;

/// A region over elements, traced for scalars.
pub(super) struct TracedElements {
    pub(super) parameters: Vec<ExprId>,
    pub(super) outputs: Vec<ExprId>,
}

/// The state of an import.
pub(super) struct Builder<'a> {
    pub(super) graph: Graph,
    functions: BTreeMap<&'a str, &'a Function>,
    unsupported: Vec<Unsupported>,
    /// The position, the name and the reason of each operation in `unsupported`.
    reported: BTreeSet<(Position, String, String)>,
    operations: usize,
    depth: usize,
    /// The inputs that were constants, by the constant in the syntax tree, if constants become inputs.
    weights: Option<BTreeMap<*const HostTensor, ExprId>>,
    weight_values: Vec<HostTensor>,
    inputs: Vec<TensorType>,
    /// The sources of the graph for the lines of the user's program.
    sources: FxHashMap<Line, SourceId>,
}

/// Builds the main function of a module for one of its platforms.
pub(super) fn main_function(syntax: &Syntax, weights: Weights, platform: usize) -> Result<Module> {
    let main = syntax.functions.iter().find(|function| function.name == "main");
    let Some(main) = main.or(syntax.functions.first()) else {
        return Err(malformed_at(Position::Line(1), "the module must have a function"));
    };
    let functions = syntax.functions.iter().map(|function| (&*function.name, function)).collect();
    let mut builder = Builder {
        graph: Graph::new(),
        functions,
        unsupported: Vec::new(),
        reported: BTreeSet::new(),
        operations: 0,
        depth: 0,
        weights: (weights == Weights::Inputs).then(BTreeMap::new),
        weight_values: Vec::new(),
        inputs: Vec::new(),
        sources: FxHashMap::default(),
    };
    let (arguments, input_names) = builder.main_inputs(main, platform)?;
    let outputs = builder.function(main, &arguments)?;
    if !builder.unsupported.is_empty() {
        let mut list = builder.unsupported;
        list.sort_by_key(|op| match op.place {
            Place::Line(at) | Place::Byte(at) => at,
            Place::Named(_) => 0,
        });
        return Err(ImportError { format: FORMAT, kind: ImportErrorKind::Unsupported(list) });
    }
    let outputs: Vec<Slot> =
        outputs.into_iter().filter(|slot| !matches!(slot, Slot::Token)).collect();
    let expected = || main.outputs.iter().zip(&main.output_names).filter(|(ty, _)| !ty.is_token());
    let nodes = nodes_of(&outputs).filter(|nodes| {
        let found = nodes.iter().map(|&id| Type::Tensor(builder.graph.tensor_type(id).clone()));
        found.eq(expected().map(|(ty, _)| ty.clone()))
    });
    let Some(nodes) = nodes else {
        return Err(malformed_at(
            main.position,
            "the results must have the types of the signature",
        ));
    };
    let program = Program::new(&builder.graph, builder.inputs, &nodes)
        .map_err(|error| build_error("func.func", main.position, error))?;
    let name = syntax.name.as_deref().unwrap_or(&main.name);
    let name = name.strip_prefix("jit_").unwrap_or(name);
    Ok(Module {
        program: program.with_name(name),
        input_names,
        output_names: expected().map(|(_, name)| name.clone()).collect(),
        weights: builder.weight_values,
        signature: None,
    })
}

fn build_error(op: &str, position: Position, error: nxla_expr::Error) -> ImportError {
    let (op, place, error) = (op.to_owned(), position.into(), Box::new(error));
    ImportError { format: FORMAT, kind: ImportErrorKind::Build { op, place, error } }
}

fn name_of(ty: &Type) -> String {
    match ty {
        Type::Other(text) => text.clone(),
        Type::Tensor(ty) => ty.to_string(),
        Type::Tuple(_) => "tuple".into(),
        Type::Function(..) => "function".into(),
    }
}

impl<'a> Builder<'a> {
    /// Returns a constant tensor, as an input if constants become inputs.
    pub(super) fn constant(&mut self, tensor: &HostTensor) -> Result<ExprId, Fail> {
        let is_weight = tensor.dtype().is_float() || tensor.dtype().is_complex();
        let Some(weights) = self.weights.as_mut().filter(|_| is_weight) else {
            return Ok(self.graph.tensor(tensor.clone())?);
        };
        let key = std::ptr::from_ref(tensor);
        if let Some(&known) = weights.get(&key) {
            return Ok(known);
        }
        let ty = TensorType::new(tensor.dtype(), tensor.shape().clone());
        let input = self.graph.parameter(self.inputs.len(), ty.clone());
        weights.insert(key, input);
        self.inputs.push(ty);
        self.weight_values.push(tensor.clone());
        Ok(input)
    }

    /// Creates the inputs of the main function, and returns its arguments and the names of the inputs.
    /// The index of the platform is a constant instead of an input.
    fn main_inputs(
        &mut self,
        main: &Function,
        platform: usize,
    ) -> Result<(Vec<Slot>, Vec<Option<String>>)> {
        let (mut arguments, mut names) = (Vec::new(), Vec::new());
        for (index, (ty, name)) in main.inputs.iter().zip(&main.input_names).enumerate() {
            if ty.is_token() {
                arguments.push(Slot::Token);
                continue;
            }
            let Type::Tensor(ty) = ty else {
                let why = format!("input {index} has type {}", name_of(ty));
                self.report("func.func", main.position, why);
                arguments.push(Slot::Unsupported);
                continue;
            };
            arguments.push(Slot::Node(if main.platform == Some(index) {
                let platform = Scalar::Int(to_i64(platform));
                let constant = self.graph.constant(platform.cast(ty.dtype), ty.clone());
                constant.map_err(|error| build_error("func.func", main.position, error))?
            } else {
                names.push(name.clone());
                self.inputs.push(ty.clone());
                self.graph.parameter(self.inputs.len() - 1, ty.clone())
            }));
        }
        Ok((arguments, names))
    }

    fn report(&mut self, op: &str, position: Position, why: String) {
        if self.reported.insert((position, op.to_owned(), why.clone())) {
            self.unsupported.push(Unsupported { op: op.to_owned(), place: position.into(), why });
        }
    }

    /// Returns a function of the module.
    pub(super) fn function_named(&self, name: &str) -> Result<&'a Function, Fail> {
        let found = self.functions.get(name).copied();
        found.ok_or_else(|| Fail::Malformed(format!("the function @{name} does not exist")))
    }

    /// Builds the body of a function for these arguments.
    pub(super) fn function(
        &mut self,
        function: &Function,
        arguments: &[Slot],
    ) -> Result<Vec<Slot>> {
        if arguments.len() != function.body.parameters.len() {
            let why = format!(
                "@{} has {} parameters; got {} arguments",
                function.name,
                function.body.parameters.len(),
                arguments.len()
            );
            return Err(malformed_at(function.position, why));
        }
        self.count(function.values, function.position)?;
        let mut values = vec![Slot::Undefined; function.values];
        self.region(&function.body, &mut values, arguments)
    }

    /// Counts operations, so that the expansion of a module is limited.
    fn count(&mut self, operations: usize, position: Position) -> Result<()> {
        self.operations += operations;
        if self.operations > MAX_OPERATIONS {
            let why =
                format!("the module must have at most {MAX_OPERATIONS} operations after inlining");
            return Err(malformed_at(position, why));
        }
        Ok(())
    }

    /// Builds the operations of a region for these parameters, and returns its results.
    pub(super) fn region(
        &mut self,
        region: &Region,
        values: &mut Values,
        arguments: &[Slot],
    ) -> Result<Vec<Slot>> {
        for (&parameter, argument) in region.parameters.iter().zip(arguments) {
            values[parameter] = argument.clone();
        }
        let Some((last, operations)) = region.operations.split_last() else {
            return Ok(Vec::new());
        };
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(malformed_at(last.position, "calls and regions are nested too deep"));
        }
        let source = self.graph.current_source();
        for operation in operations {
            self.operation(operation, values)?;
        }
        self.graph.set_source(source);
        self.depth -= 1;
        if !last.name.ends_with("return") {
            return Err(malformed_at(
                last.position,
                "a region must end with an operation that returns",
            ));
        }
        self.operands(last, values)
    }

    /// Returns the operands of an operation.
    pub(super) fn operands(&self, operation: &Operation, values: &Values) -> Result<Vec<Slot>> {
        let read = |&id: &ValueId| match &values[id] {
            Slot::Undefined => {
                Err(malformed_at(operation.position, "an operand is not defined at this position"))
            }
            slot => Ok(slot.clone()),
        };
        operation.operands.iter().map(read).collect()
    }

    /// Builds an operation and stores its results.
    pub(super) fn operation(&mut self, operation: &Operation, values: &mut Values) -> Result<()> {
        self.count(1, operation.position)?;
        let slots = self.operands(operation, values)?;
        self.enter(operation.line.as_ref());
        let count = operation.result_types.len();
        let built = if slots.iter().any(|slot| matches!(slot, Slot::Unsupported)) {
            Ok(None)
        } else {
            self.dispatch(operation, &slots, values)
                .and_then(|built| self.check_results(operation, built))
        };
        let built = match built {
            Ok(built) => built,
            Err(Fail::Unsupported(why)) => {
                self.report(&operation.name, operation.position, why);
                None
            }
            Err(Fail::Malformed(why)) => {
                return Err(malformed_at(operation.position, format!("{}: {why}", operation.name)));
            }
            Err(Fail::Graph(error)) => {
                return Err(build_error(&operation.name, operation.position, *error));
            }
            Err(Fail::Inside(error)) => return Err(*error),
        };
        let built = built.unwrap_or_else(|| vec![Slot::Unsupported; count]);
        for (offset, slot) in built.into_iter().enumerate() {
            values[operation.first_result + offset] = slot;
        }
        Ok(())
    }

    /// Makes a line the source of new nodes.
    fn enter(&mut self, line: Option<&Line>) {
        let source = match line {
            None => SourceId::default(),
            Some(line) => match self.sources.get(line) {
                Some(&known) => known,
                None => {
                    let source = self.graph.add_source(Source::Line(line.clone()));
                    self.sources.insert(line.clone(), source);
                    source
                }
            },
        };
        self.graph.set_source(source);
    }

    /// Compares the results of an operation with their types in the file.
    fn check_results(&self, operation: &Operation, built: Option<Vec<Slot>>) -> Built {
        let Some(slots) = built else { return Ok(None) };
        let types = &operation.result_types;
        if slots.len() != types.len() {
            return malformed(format!("has {} results; got {} types", slots.len(), types.len()));
        }
        for (slot, ty) in slots.iter().zip(types) {
            if let (Slot::Node(id), Type::Tensor(expected)) = (slot, ty) {
                let found = self.graph.tensor_type(*id);
                if found != expected {
                    return malformed(format!("the result has type {found}; got {expected}"));
                }
            }
        }
        Ok(Some(slots))
    }

    /// Builds an operation by the file of its family.
    pub(super) fn dispatch(
        &mut self,
        operation: &Operation,
        slots: &[Slot],
        values: &mut Values,
    ) -> Built {
        if let Some(built) = self.control(operation, slots, values)? {
            return Ok(built);
        }
        let nodes = slots.iter().map(|slot| match slot {
            Slot::Node(id) => Ok(*id),
            Slot::Reflectors(_) => unsupported("the reflectors of a QR factorization as numbers"),
            Slot::Undefined | Slot::Unsupported | Slot::Tuple(_) | Slot::Token => {
                malformed("operands must be tensors")
            }
        });
        let nodes = nodes.collect::<Result<Vec<_>, Fail>>()?;
        let name = operation.name.as_str();
        let short = ["stablehlo.", "mhlo."].iter().find_map(|dialect| name.strip_prefix(dialect));
        let short = short.unwrap_or(name);
        let families =
            [Self::elementwise, Self::create, Self::movement, Self::contract, Self::index];
        for family in families {
            if let Some(id) = family(self, short, operation, &nodes)? {
                return Ok(Some(vec![Slot::Node(id)]));
            }
        }
        for family in [Self::linalg, Self::random] {
            if let Some(results) = family(self, short, operation, &nodes)? {
                return Ok(Some(slots_of(&results)));
            }
        }
        self.regional(short, operation, &nodes, values)
    }

    /// Builds an operation with a region over elements, or reports that the operation is unknown.
    fn regional(
        &mut self,
        name: &str,
        operation: &Operation,
        nodes: &[ExprId],
        values: &mut Values,
    ) -> Built {
        let results = match name {
            "reduce" => self.reduce(operation, nodes, values)?,
            "map" => self.map(operation, nodes, values)?,
            "sort" => self.sort(operation, nodes, values)?,
            "scatter" => self.scatter(operation, nodes, values)?,
            "reduce_window" => self.reduce_window(operation, nodes, values)?,
            "select_and_scatter" => self.select_and_scatter(operation, nodes, values)?,
            _ if name.starts_with("chlo.") => {
                return unsupported(
                    "the operation has no counterpart in expressions: jax.export writes it as \
                     simpler operations",
                );
            }
            _ => return unsupported("the operation has no counterpart in expressions"),
        };
        Ok(results.as_deref().map(slots_of))
    }

    /// Traces a region over scalars, and applies it to tensors of one shape. Returns `None` if the
    /// region has an operation that is not supported.
    pub(super) fn apply_to_elements(
        &mut self,
        region: &Region,
        values: &mut Values,
        tensors: &[ExprId],
    ) -> Result<Option<Vec<ExprId>>, Fail> {
        match self.trace_elements(region, values, tensors)? {
            Some(traced) => self.apply_elementwise(&traced, tensors).map(Some),
            None => Ok(None),
        }
    }

    /// Applies a traced region over scalars to tensors of one shape.
    pub(super) fn apply_elementwise(
        &mut self,
        traced: &TracedElements,
        tensors: &[ExprId],
    ) -> Result<Vec<ExprId>, Fail> {
        let shape = match tensors.first() {
            Some(&first) => self.graph.shape(first).clone(),
            None => return malformed("needs at least one operand"),
        };
        let mut results = Vec::new();
        for result in self.substitute(&traced.outputs, &traced.parameters, tensors)? {
            let scalar_result = self.graph.shape(result) != &shape;
            results.push(if scalar_result {
                self.graph.broadcast(result, shape.clone(), None)?
            } else {
                result
            });
        }
        Ok(results)
    }

    /// Traces a region on scalar parameters with the dtypes of tensors. Returns `None` if the region has
    /// an operation that is not supported.
    pub(super) fn trace_elements(
        &mut self,
        region: &Region,
        values: &mut Values,
        tensors: &[ExprId],
    ) -> Result<Option<TracedElements>, Fail> {
        if region.parameters.len() != tensors.len() {
            return malformed(format!(
                "the region has {} parameters; got {} operands",
                region.parameters.len(),
                tensors.len()
            ));
        }
        let types: Vec<TensorType> =
            tensors.iter().map(|&id| TensorType::scalar(self.graph.dtype(id))).collect();
        let scope = self.graph.open_scope("region", &types);
        let outputs = self.region(region, values, &slots_of(&scope.parameters))?;
        let traced = |outputs| TracedElements { parameters: scope.parameters, outputs };
        Ok(nodes_of(&outputs).map(traced))
    }

    /// Returns nodes with tensors in the place of scalar parameters.
    pub(super) fn substitute(
        &mut self,
        roots: &[ExprId],
        parameters: &[ExprId],
        tensors: &[ExprId],
    ) -> Result<Vec<ExprId>, Fail> {
        let pairs = parameters.iter().copied().zip(tensors.iter().copied());
        let mut substitution = nxla_expr::rewrite::Substitution::from_iter(pairs);
        let replaced = self.graph.substitute(roots, &mut substitution);
        replaced
            .map_err(|error| Fail::Unsupported(format!("the region is not element-wise: {error}")))
    }
}

pub(super) fn slots_of(nodes: &[ExprId]) -> Vec<Slot> {
    nodes.iter().copied().map(Slot::Node).collect()
}

/// Returns the nodes of slots, unless a slot is not supported.
pub(super) fn nodes_of(slots: &[Slot]) -> Option<Vec<ExprId>> {
    let node = |slot: &Slot| match slot {
        Slot::Node(id) => Some(*id),
        _ => None,
    };
    slots.iter().map(node).collect()
}
