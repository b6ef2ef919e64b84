//! Programs: graphs with inputs, outputs and a digest.
//!
//! A finished trace becomes a program, and so does each region (the body of a loop, the branch of a
//! conditional). A program contains only the nodes that its outputs and hooks need, in depth-first
//! order. Two traces of the same function therefore produce equal programs, independent of other
//! nodes and of the order in which nodes were built.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashSet;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::encode::{Digest, digest_of};
use super::error::{ErrorKind, Result};
use super::ids::{ExprId, Operands, TailMap};
use super::op::Op;
use super::source::SourceMap;
use super::store::Graph;
use super::types::{TensorType, TypeMap};

/// A closed function over tensors.
#[derive(Clone)]
pub struct Program {
    graph: Graph,
    inputs: Vec<TensorType>,
    parameters: Vec<ExprId>,
    outputs: Vec<ExprId>,
    effects: Vec<ExprId>,
    digest: Digest,
    /// The name of the user's function, for people. Equality, the digest and bytes ignore it.
    name: Option<Arc<str>>,
}

impl Program {
    /// Creates the program of a trace, with the nodes that the outputs and the remaining hooks
    /// need.
    ///
    /// # Errors
    /// Returns an error if an input has too many axes, if a needed parameter of the graph has no
    /// input of its type, or if a value inside a loop or branch is used outside of it.
    pub fn new(graph: &Graph, inputs: Vec<TensorType>, outputs: &[ExprId]) -> Result<Self> {
        let roots = Roots { outputs, effects: graph.effects() };
        Self::close(graph, inputs, &roots, &TailMap::default(), (0, 0))
    }

    /// Builds the program of `roots`, with some nodes replaced by parameters.
    ///
    /// `parameter_of` holds, for each node that becomes a parameter, its input position plus one.
    /// Parameters of the scope remain parameters. `scope` is the number of the scope and the
    /// position at which its nodes start. Hooks are visited first, so that their order is
    /// preserved.
    pub(crate) fn close(
        from: &Graph,
        inputs: Vec<TensorType>,
        roots: &Roots<'_>,
        parameter_of: &TailMap<u32>,
        (scope, first): (u32, usize),
    ) -> Result<Self> {
        for ty in &inputs {
            ty.shape.check_limits().map_err(|error| ErrorKind::from(error).of("parameter"))?;
        }
        let mut graph = Graph::with_options(from.options());
        let parameters: Vec<ExprId> = inputs
            .iter()
            .enumerate()
            .map(|(index, ty)| graph.scope_parameter(0, index, ty.clone()))
            .collect();
        let mut copier = Closer {
            from,
            graph,
            parameters: &parameters,
            parameter_of,
            scope,
            new_id: TailMap::from_position(first),
            sources: SourceMap::default(),
            types: TypeMap::default(),
        };
        for &root in roots.effects.iter().chain(roots.outputs) {
            copier.copy(root)?;
        }
        let rename = |ids: &[ExprId], map: &TailMap<u32>| -> Vec<ExprId> {
            ids.iter().map(|&id| ExprId::from_index(map.get(id) as usize - 1)).collect()
        };
        let outputs = rename(roots.outputs, &copier.new_id);
        let effects = rename(roots.effects, &copier.new_id);
        let graph = copier.graph;
        Ok(Self::from_parts(graph, inputs, parameters, outputs, effects))
    }

    /// Assembles a deserialized program; see [`crate::serialize`].
    pub(crate) fn from_parts(
        graph: Graph,
        inputs: Vec<TensorType>,
        parameters: Vec<ExprId>,
        outputs: Vec<ExprId>,
        effects: Vec<ExprId>,
    ) -> Self {
        let digest = Digest([0; 32]);
        let mut program =
            Program { graph, inputs, parameters, outputs, effects, digest, name: None };
        program.digest = program.computed_digest();
        program
    }

    /// The program with the name of the function that it was traced from.
    #[must_use]
    pub fn with_name(self, name: impl Into<Arc<str>>) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    /// The name of the function that the program was traced from. Bytes do not keep it.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the graph; all nodes are needed except unused inputs.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Iterates over the program and the programs of all nested regions, each once, however many
    /// nodes share it.
    pub fn programs(&self) -> impl Iterator<Item = &Program> {
        self.programs_inside(|_| true)
    }

    /// Does the same as [`Program::programs`], without the regions of ops for which `enters`
    /// returns `false`.
    pub fn programs_inside(&self, enters: impl Fn(&Op) -> bool) -> impl Iterator<Item = &Program> {
        let mut pending = vec![self];
        let mut visited = FxHashSet::default();
        std::iter::from_fn(move || {
            let program = pending.pop()?;
            let graph = program.graph();
            let ops = graph.ids().map(|id| graph.op(id)).filter(|op| enters(op));
            let regions = ops.flat_map(Op::regions).map(|region| &**region);
            pending.extend(regions.filter(|&region| visited.insert(std::ptr::from_ref(region))));
            Some(program)
        })
    }

    /// Returns the types of the inputs.
    pub fn inputs(&self) -> &[TensorType] {
        &self.inputs
    }

    /// Returns the parameter node of each input.
    pub fn parameters(&self) -> &[ExprId] {
        &self.parameters
    }

    /// Returns the outputs.
    pub fn outputs(&self) -> &[ExprId] {
        &self.outputs
    }

    /// Returns the types of the outputs.
    pub fn output_types(&self) -> impl Iterator<Item = &TensorType> {
        self.outputs.iter().map(|&id| self.graph.tensor_type(id))
    }

    /// Returns the hooks and the nodes that contain hooks, in the order in which they run. Regions
    /// list their own effects.
    pub fn effects(&self) -> &[ExprId] {
        &self.effects
    }

    /// Returns the effects, then the outputs: all nodes that must be computed.
    pub fn roots(&self) -> Vec<ExprId> {
        self.effects.iter().chain(&self.outputs).copied().collect()
    }

    /// Computes the digest of the current nodes, which equals the stored digest of a valid program.
    pub(crate) fn computed_digest(&self) -> Digest {
        let roots = Roots { outputs: &self.outputs, effects: &self.effects };
        digest_of(&self.graph, &self.inputs, &roots)
    }

    /// Returns the structural digest.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns the program with other functions in the hooks of the program or of its regions. The
    /// new ops must equal the replaced ops; functions are not part of equality.
    pub(crate) fn with_other_functions(&self, ops: Vec<(ExprId, Op)>) -> Self {
        let mut program = self.clone();
        for (id, op) in ops {
            program.graph.replace_equal(id, op);
        }
        program
    }
}

/// The roots of a program.
pub(crate) struct Roots<'a> {
    pub(crate) outputs: &'a [ExprId],
    pub(crate) effects: &'a [ExprId],
}

/// Copies the nodes that roots need into a new graph, depth first.
struct Closer<'a> {
    from: &'a Graph,
    graph: Graph,
    parameters: &'a [ExprId],
    parameter_of: &'a TailMap<u32>,
    scope: u32,
    /// The new id plus one of each copied node.
    new_id: TailMap<u32>,
    sources: SourceMap,
    types: TypeMap,
}

impl Closer<'_> {
    fn copy(&mut self, root: ExprId) -> Result<()> {
        let mut stack = vec![(root, 0)];
        while let Some((id, visited)) = stack.last_mut() {
            let id = *id;
            if self.new_id.get(id) != 0 {
                stack.pop();
                continue;
            }
            if let Some(parameter) = self.parameter(id)? {
                self.record(id, parameter);
                stack.pop();
                continue;
            }
            match self.from.operands(id).get(*visited) {
                Some(&operand) => {
                    *visited += 1;
                    stack.push((operand, 0));
                }
                None => {
                    let new = self.adopt(id);
                    self.record(id, new);
                    stack.pop();
                }
            }
        }
        Ok(())
    }

    fn record(&mut self, old: ExprId, new: ExprId) {
        self.new_id.set(old, u32::try_from(new.index() + 1).expect("ids fit in 32 bits"));
    }

    /// Returns the new parameter that replaces a node, if any.
    fn parameter(&self, id: ExprId) -> Result<Option<ExprId>> {
        let position = self.parameter_of.get(id);
        if position != 0 {
            return Ok(Some(self.parameters[position as usize - 1]));
        }
        match self.from.op(id) {
            Op::Parameter(parameter) if parameter.scope == self.scope => {
                let position = parameter.index as usize;
                let expected = self.from.tensor_type(id);
                let found = self.parameters.get(position).map(|&new| self.graph.tensor_type(new));
                let fits = |found: &&TensorType| {
                    (found.dtype, &found.shape) == (expected.dtype, &expected.shape)
                };
                if found.is_some_and(|found| fits(&found)) {
                    return Ok(Some(self.parameters[position]));
                }
                let found = found.map_or("no input".into(), ToString::to_string);
                let why =
                    format!("must have the type {expected} at position {position}; got {found}");
                Err(ErrorKind::invalid("inputs", why).of("program"))
            }
            Op::Parameter(_) => {
                let why = "a value from inside a loop or a branch is used outside of it; return \
                           it from there instead";
                let mut error = ErrorKind::Trace(why.into()).of("parameter");
                error.line = self.from.line(id);
                Err(error)
            }
            _ => Ok(None),
        }
    }

    fn adopt(&mut self, id: ExprId) -> ExprId {
        let operands: Operands = self
            .from
            .operands(id)
            .iter()
            .map(|&operand| ExprId::from_index(self.new_id.get(operand) as usize - 1))
            .collect();
        let op = self.from.op(id).clone();
        self.graph.copy_source(self.from, id, &mut self.sources);
        self.graph.adopt((self.from, id), op, &operands, &mut self.types)
    }
}

impl PartialEq for Program {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for Program {}

impl Hash for Program {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.digest.hash(state);
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Program({} inputs, {} nodes, ", self.inputs.len(), self.graph.len())?;
        write!(f, "{} outputs)", self.outputs.len())
    }
}

/// Returns the empty program that replaces a region in a separately encoded op.
pub(super) fn empty_program() -> Arc<Program> {
    static EMPTY: OnceLock<Arc<Program>> = OnceLock::new();
    let empty = || {
        Arc::new(Program::from_parts(Graph::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new()))
    };
    EMPTY.get_or_init(empty).clone()
}

/// The byte that replaces a region. Every region takes at least one byte, so reading a list of
/// regions needs memory proportional to the number of bytes.
const REGION: u8 = 0;

/// Accepts only the empty program, so that regions are not nested in the encoding.
impl Serialize for Program {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        if self.graph().is_empty() {
            return serializer.serialize_u8(REGION);
        }
        Err(serde::ser::Error::custom(
            "serialize: use nxla_expr::serialize::to_bytes for a program",
        ))
    }
}

/// Returns the empty program, so that regions are not nested in the encoding.
impl<'de> Deserialize<'de> for Program {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        match u8::deserialize(deserializer)? {
            REGION => Ok(Program::clone(&empty_program())),
            other => Err(serde::de::Error::custom(format!("{other} is not a region"))),
        }
    }
}
