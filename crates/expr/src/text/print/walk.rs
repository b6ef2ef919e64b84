//! The walk that assigns variables and writes lines.
//!
//! A node is visited in a *frame*: its graph and the values of its parameters. The root's graph is
//! one frame. Each branch of a `cond` is another frame, whose parameters are nodes of the enclosing
//! frame. Nodes of different frames share a line if their ops are equal and their operands have the
//! same variables, so a value that was copied into several branches is printed once.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::line::{arguments, letters, number, printed_operands, single_or_braces, type_text};
use super::{Blocks, GraphPrintOptions, Row};
use crate::graph::{Block, Cond, ExprId, Graph, Node, Op, Program, Type};

/// A node in a frame.
type FrameNode = (u32, ExprId);

/// The frame of the root's graph.
const OUTERMOST: u32 = 0;

/// The name of a node as an operand.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Name {
    /// A variable, by index.
    Variable(u32),
    /// A constant, or several names in braces.
    Text(Rc<str>),
}

impl Name {
    fn text(&self) -> String {
        match self {
            Name::Variable(index) => letters(*index),
            Name::Text(text) => text.to_string(),
        }
    }
}

type Names = SmallVec<[Name; 4]>;

/// The key of a line; nodes with equal keys share a line.
#[derive(PartialEq, Eq, Hash)]
enum Key<'g> {
    /// An op and the names of all its operands.
    Node(&'g Op, Names),
    /// The result type of a `cond` and the names of its predicates and results.
    Branches(&'g Type, Names),
}

struct Frame<'g> {
    graph: &'g Graph,
    /// The values of the parameters; unused in the outermost frame.
    arguments: Rc<[FrameNode]>,
}

/// The remaining work, as a stack.
enum Task {
    Visit(FrameNode),
    /// A node with the name of another node, which is visited first.
    Alias(FrameNode, FrameNode),
    /// A node whose name is the group of its operands, which are visited first.
    Group(FrameNode),
    /// A block whose name is the results of its body, which is this frame and is visited first.
    Results(FrameNode, u32),
    /// A line, after all printed operands are visited.
    Line(FrameNode),
    /// A `cond` that was entered before with other operands, after its operands are visited.
    Compare(FrameNode),
    /// A `cond`, after its clauses are visited in consecutive frames from this one.
    Cond(FrameNode, u32),
}

pub(super) struct Walk<'g> {
    frames: Vec<Frame<'g>>,
    names: FxHashMap<FrameNode, Name>,
    lines: FxHashMap<Key<'g>, Name>,
    /// The `cond` ops whose branches have been entered.
    conds: FxHashSet<&'g Cond>,
    /// True if each block is printed as its body.
    opens_blocks: bool,
    bodies: FxHashMap<FrameNode, u32>,
    tasks: Vec<Task>,
    variables: u32,
    /// The number of further lines; negative after the ellipsis was written.
    room: Option<i64>,
    inputs: Vec<Row>,
    rows: Vec<Row>,
}

impl<'g> Walk<'g> {
    pub(super) fn new(graph: &'g Graph, options: &GraphPrintOptions) -> Self {
        Self {
            frames: vec![Frame { graph, arguments: Rc::new([]) }],
            names: FxHashMap::default(),
            lines: FxHashMap::default(),
            conds: FxHashSet::default(),
            tasks: Vec::new(),
            variables: 0,
            opens_blocks: options.blocks == Blocks::Body,
            bodies: FxHashMap::default(),
            room: options.limit.map(|limit| i64::try_from(limit).unwrap_or(i64::MAX)),
            inputs: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// Writes the lines that a root needs. Returns the string for a root without its own line.
    pub(super) fn print(&mut self, root: ExprId) -> Option<String> {
        match self.write(root) {
            Name::Variable(_) => None,
            Name::Text(text) => Some(text.to_string()),
        }
    }

    /// Writes the lines that a root needs, and returns the name of the root.
    pub(super) fn name(&mut self, root: ExprId) -> String {
        self.write(root).text()
    }

    fn write(&mut self, root: ExprId) -> Name {
        let root = (OUTERMOST, root);
        self.tasks.push(Task::Visit(root));
        while let Some(task) = self.tasks.pop() {
            match task {
                Task::Visit(frame_node) => self.visit(frame_node),
                Task::Alias(frame_node, other) => {
                    let name = self.names[&other].clone();
                    self.names.insert(frame_node, name);
                }
                Task::Group(frame_node) => {
                    let node = self.node(frame_node);
                    let texts = self.texts(frame_node.0, &printed_operands(node.op, node.operands));
                    self.names.insert(frame_node, Name::Text(single_or_braces(&texts).into()));
                }
                Task::Results(frame_node, body) => {
                    let texts = self.texts(body, self.block(frame_node).body.outputs());
                    self.names.insert(frame_node, Name::Text(single_or_braces(&texts).into()));
                }
                Task::Line(frame_node) => self.line(frame_node),
                Task::Compare(frame_node) => self.compare(frame_node),
                Task::Cond(frame_node, first) => self.cond_line(frame_node, first),
            }
        }
        self.names[&root].clone()
    }

    /// Returns the lines, inputs first.
    pub(super) fn finish(self) -> Vec<Row> {
        let mut rows = self.inputs;
        rows.extend(self.rows);
        rows
    }

    fn node(&self, (frame, id): FrameNode) -> Node<'g> {
        self.frames[frame as usize].graph.node(id)
    }

    fn visit(&mut self, frame_node: FrameNode) {
        if self.names.contains_key(&frame_node) || self.is_named_without_line(frame_node) {
            return;
        }
        if !self.take_room() {
            let name = self.fresh();
            self.names.insert(frame_node, name);
            return;
        }
        let node = self.node(frame_node);
        match node.op {
            Op::Parameter(parameter) => {
                let index = parameter.index;
                self.input(frame_node, |letter| format!("parameter {letter}:{index}"));
            }
            Op::Tensor(_) => self.input(frame_node, |letter| format!("tensor {letter}")),
            Op::Cond(cond) if frame_node.0 != OUTERMOST && self.conds.contains(&**cond) => {
                self.tasks.push(Task::Compare(frame_node));
                self.visit_all(frame_node.0, node.operands);
            }
            Op::Cond(_) => self.enter(frame_node),
            op => {
                self.tasks.push(Task::Line(frame_node));
                self.visit_all(frame_node.0, &printed_operands(op, node.operands));
            }
        }
    }

    /// Handles nodes without a line: constants, parameters of branches, and metadata that is not
    /// printed.
    fn is_named_without_line(&mut self, frame_node: FrameNode) -> bool {
        let (frame, _) = frame_node;
        let node = self.node(frame_node);
        let alias = match node.op {
            Op::Constant(constant) => {
                self.names.insert(frame_node, Name::Text(number(constant.literal()).into()));
                return true;
            }
            Op::Parameter(parameter) if frame != OUTERMOST => {
                self.frames[frame as usize].arguments[parameter.index as usize]
            }
            Op::Metadata(op) if op.inspect.is_none() => {
                match printed_operands(node.op, node.operands)[..] {
                    [operand] => (frame, operand),
                    ref operands => {
                        self.tasks.push(Task::Group(frame_node));
                        self.visit_all(frame, operands);
                        return true;
                    }
                }
            }
            Op::Elem(index) => match self.part((frame, node.operands[0]), *index) {
                Some(part) => part,
                None => return false,
            },
            Op::Block(block) if self.opens_blocks => {
                let (body, program) = (self.body(frame_node), &block.body);
                if let &[output] = program.outputs() {
                    self.visit_all(body, program.effects());
                    (body, output)
                } else {
                    self.tasks.push(Task::Results(frame_node, body));
                    self.visit_all(body, program.effects());
                    self.visit_all(body, program.outputs());
                    return true;
                }
            }
            _ => return false,
        };
        self.tasks.push(Task::Alias(frame_node, alias));
        self.tasks.push(Task::Visit(alias));
        true
    }

    /// Returns the node for an element of a tuple without a line: of metadata that is not printed,
    /// or of a block that is printed as its body.
    fn part(&mut self, tuple: FrameNode, index: usize) -> Option<FrameNode> {
        let node = self.node(tuple);
        match node.op {
            Op::Metadata(op) if op.inspect.is_none() => Some((tuple.0, *node.operands.get(index)?)),
            Op::Block(block) if self.opens_blocks => {
                let output = *block.body.outputs().get(index)?;
                Some((self.body(tuple), output))
            }
            _ => None,
        }
    }

    fn block(&self, frame_node: FrameNode) -> &'g Block {
        let Op::Block(block) = self.node(frame_node).op else {
            unreachable!("only blocks are opened")
        };
        block
    }

    /// Returns the frame of a block's body, whose parameters are the operands.
    fn body(&mut self, frame_node: FrameNode) -> u32 {
        if let Some(&body) = self.bodies.get(&frame_node) {
            return body;
        }
        let operands = self.node(frame_node).operands;
        let body = u32::try_from(self.frames.len()).expect("fewer than 2^32 bodies and branches");
        let arguments = operands.iter().map(|&id| (frame_node.0, id)).collect();
        self.frames.push(Frame { graph: self.block(frame_node).body.graph(), arguments });
        self.bodies.insert(frame_node, body);
        body
    }

    fn visit_all(&mut self, frame: u32, ids: &[ExprId]) {
        self.tasks.extend(ids.iter().rev().map(|&id| Task::Visit((frame, id))));
    }

    /// Returns whether another line may be written; writes an ellipsis when the limit is reached.
    fn take_room(&mut self) -> bool {
        let Some(room) = &mut self.room else { return true };
        *room -= 1;
        if *room == -1 {
            self.inputs.push(Row { text: "...".into(), ty: String::new() });
        }
        // The value stays negative without counting down to an overflow.
        *room = (*room).max(-2);
        *room >= 0
    }

    fn fresh(&mut self) -> Name {
        self.variables += 1;
        Name::Variable(self.variables - 1)
    }

    fn names(&self, frame: u32, ids: &[ExprId]) -> Names {
        ids.iter().map(|&id| self.names[&(frame, id)].clone()).collect()
    }

    fn texts(&self, frame: u32, ids: &[ExprId]) -> Vec<String> {
        ids.iter().map(|&id| self.names[&(frame, id)].text()).collect()
    }

    fn input(&mut self, frame_node: FrameNode, text: impl FnOnce(&str) -> String) {
        let node = self.node(frame_node);
        let key = Key::Node(node.op, Names::new());
        let name = match self.lines.get(&key) {
            Some(name) => name.clone(),
            None => {
                let name = self.fresh();
                self.inputs.push(Row { text: text(&name.text()), ty: type_text(node.ty) });
                self.lines.insert(key, name.clone());
                name
            }
        };
        self.names.insert(frame_node, name);
    }

    fn line(&mut self, frame_node: FrameNode) {
        let node = self.node(frame_node);
        let shown = printed_operands(node.op, node.operands);
        // Operands that are not printed, such as captures, have no names.
        let key = (!is_unique(node.op) && shown.len() == node.operands.len())
            .then(|| Key::Node(node.op, self.names(frame_node.0, node.operands)));
        if let Some(name) = key.as_ref().and_then(|key| self.lines.get(key)) {
            let name = name.clone();
            self.names.insert(frame_node, name);
            return;
        }
        let arguments = arguments(node.op, &self.texts(frame_node.0, &shown));
        let name = self.row(frame_node, &arguments);
        if let Some(key) = key {
            self.lines.insert(key, name);
        }
    }

    /// Assigns a variable to a node and writes its line.
    fn row(&mut self, frame_node: FrameNode, arguments: &str) -> Name {
        let node = self.node(frame_node);
        let name = self.fresh();
        let text = format!("{} = {} {arguments}", name.text(), node.op.name());
        self.rows.push(Row { text, ty: type_text(node.ty) });
        self.names.insert(frame_node, name.clone());
        name
    }

    // --- conditionals ---

    /// Visits the branches of a `cond`. Its operands are visited when the branches refer to them,
    /// which determines the order of the variables.
    fn enter(&mut self, frame_node: FrameNode) {
        let (frame, _) = frame_node;
        let node = self.node(frame_node);
        let Op::Cond(cond) = node.op else { unreachable!("only a cond has branches to enter") };
        self.conds.insert(cond);
        let arguments: Rc<[FrameNode]> = node.operands.iter().map(|&id| (frame, id)).collect();
        let first = u32::try_from(self.frames.len()).expect("fewer than 2^32 branches");
        self.tasks.push(Task::Cond(frame_node, first));
        let start = self.tasks.len();
        for program in cond.programs() {
            let inner = u32::try_from(self.frames.len()).expect("fewer than 2^32 branches");
            self.frames.push(Frame { graph: program.graph(), arguments: arguments.clone() });
            // Hooks that no output needs are printed after the outputs, because they run too.
            let roots = program.outputs().iter().chain(program.effects());
            self.tasks.extend(roots.map(|&root| Task::Visit((inner, root))));
        }
        self.tasks[start..].reverse();
    }

    /// Looks for the line of an equal `cond`, after its operands have names. Otherwise branches
    /// with equal conditionals would be walked once for each path.
    fn compare(&mut self, frame_node: FrameNode) {
        let node = self.node(frame_node);
        let key = Key::Node(node.op, self.names(frame_node.0, node.operands));
        match self.lines.get(&key).cloned() {
            Some(name) => {
                self.names.insert(frame_node, name);
            }
            None => self.enter(frame_node),
        }
    }

    fn cond_line(&mut self, frame_node: FrameNode, first: u32) {
        let node = self.node(frame_node);
        let Op::Cond(cond) = node.op else { unreachable!("only a cond has clauses") };
        let mut clauses: Vec<String> = Vec::with_capacity(cond.clauses.len() + 1);
        let mut names = Names::new();
        let mut frame = first;
        let mut result = |walk: &Self, program: &Program| {
            names.extend(walk.names(frame, program.outputs()));
            let text = single_or_braces(&walk.texts(frame, program.outputs()));
            frame += 1;
            text
        };
        for (predicate, body) in &cond.clauses {
            let predicate = result(self, predicate);
            clauses.push(format!("{predicate} -> {}", result(self, body)));
        }
        clauses.push(format!("true -> {}", result(self, &cond.otherwise)));

        let key = (!is_unique(node.op)).then_some(Key::Branches(node.ty, names));
        let name = match key.as_ref().and_then(|key| self.lines.get(key)) {
            Some(name) => {
                let name = name.clone();
                self.names.insert(frame_node, name.clone());
                name
            }
            None => self.row(frame_node, &clauses.join(", ")),
        };
        if let Some(key) = key {
            self.lines.insert(key, name.clone());
            let operands: Option<Names> = node
                .operands
                .iter()
                .map(|&id| self.names.get(&(frame_node.0, id)).cloned())
                .collect();
            // An operand that no branch uses has no name; such a node is never compared.
            if let Some(operands) = operands {
                self.lines.insert(Key::Node(node.op, operands), name);
            }
        }
    }
}

/// Returns whether equal nodes in different branches are distinct: a hook runs in its own branch.
fn is_unique(op: &Op) -> bool {
    op.has_effects()
}
