//! The content of a drawing of an expression, for all output formats.
//!
//! Scalar constants are written inside their users, because a shared `2` with edges to everywhere
//! is not informative. Regions are not drawn; a node with regions shows their number. Of a large
//! graph, only the nodes nearest to the roots are drawn, and one box represents the other nodes.

use std::borrow::Cow;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::graph::{ExprId, Family, Graph, IdSet, Op};

/// The maximum number of drawn nodes; a larger drawing is not readable.
const LIMIT: usize = 200;

/// The kind of a box, which determines its color.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Kind {
    Input,
    Of(Family),
    More,
}

impl Kind {
    fn of(op: &Op) -> Self {
        match op {
            Op::Parameter(_) | Op::Tensor(_) | Op::Constant(_) => Kind::Input,
            op => Kind::Of(op.family()),
        }
    }

    /// Returns the name of the kind, which is usable as a CSS class.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Input => "input",
            Kind::Of(Family::Create) => "create",
            Kind::Of(Family::Elementwise) => "elementwise",
            Kind::Of(Family::Movement) => "movement",
            Kind::Of(Family::Reduce) => "reduce",
            Kind::Of(Family::Window) => "window",
            Kind::Of(Family::Contract) => "contract",
            Kind::Of(Family::Index) => "index",
            Kind::Of(Family::Linalg) => "linalg",
            Kind::Of(Family::Control) => "control",
            Kind::More => "more",
        }
    }

    /// Returns the fill color.
    pub(crate) fn fill(self) -> &'static str {
        match self {
            Kind::Input => "#ffffff",
            Kind::Of(Family::Create) => "#e3e8ef",
            Kind::Of(Family::Elementwise) => "#d3e5fb",
            Kind::Of(Family::Movement) => "#f9e6c4",
            Kind::Of(Family::Reduce) => "#fbd5d5",
            Kind::Of(Family::Window) => "#f6d3ec",
            Kind::Of(Family::Contract) => "#d2efd8",
            Kind::Of(Family::Index) => "#e5daf8",
            Kind::Of(Family::Linalg) => "#cfeeee",
            Kind::Of(Family::Control) => "#f3eec0",
            Kind::More => "#f4f4f4",
        }
    }
}

/// A box.
pub(crate) struct PictureNode {
    pub(crate) lines: Vec<String>,
    pub(crate) kind: Kind,
    /// The user's source line.
    pub(crate) line: Option<String>,
    pub(crate) is_root: bool,
}

/// Boxes and arrows; an arrow goes from an operand to its user, in operand order for each user.
pub(crate) struct Picture {
    pub(crate) nodes: Vec<PictureNode>,
    pub(crate) edges: Vec<(usize, usize)>,
}

impl Picture {
    pub(crate) fn new(graph: &Graph, roots: &[ExprId]) -> Self {
        let shown = nearest(graph, roots);
        let mut place: FxHashMap<ExprId, usize> = FxHashMap::default();
        let mut nodes: Vec<PictureNode> = Vec::with_capacity(shown.len() + 1);
        let hidden = hidden_count(graph, roots, shown.len());
        if hidden > 0 {
            let text = if hidden == 1 {
                "… 1 more node".into()
            } else {
                format!("… {hidden} more nodes")
            };
            nodes.push(PictureNode {
                lines: vec![text],
                kind: Kind::More,
                line: None,
                is_root: false,
            });
        }
        let mut edges = Vec::new();
        for &id in &shown {
            let user = nodes.len();
            place.insert(id, user);
            let operands =
                graph.operands(id).iter().filter(|&&operand| !is_inlined(graph, operand));
            // Operands that are not drawn are represented by the box at index 0.
            let sources: SmallVec<[usize; 4]> =
                operands.map(|operand| place.get(operand).copied().unwrap_or(0)).collect();
            edges.extend(sources.into_iter().map(|source| (source, user)));
            nodes.push(PictureNode {
                lines: vec![label(graph, id), graph.ty(id).to_string()],
                kind: Kind::of(graph.op(id)),
                line: graph.line(id).map(|line| line.to_string()),
                is_root: roots.contains(&id),
            });
        }
        Self { nodes, edges }
    }
}

/// Returns the drawn nodes in id order: breadth first from the roots, up to the limit.
fn nearest(graph: &Graph, roots: &[ExprId]) -> Vec<ExprId> {
    let mut seen = IdSet::default();
    let mut shown: Vec<ExprId> = Vec::new();
    let mut take = |shown: &mut Vec<ExprId>, id: ExprId| {
        if shown.len() < LIMIT && seen.insert(id) {
            shown.push(id);
        }
    };
    roots.iter().for_each(|&root| take(&mut shown, root));
    let mut next = 0;
    while let Some(&id) = shown.get(next) {
        next += 1;
        for &operand in graph.operands(id) {
            if !is_inlined(graph, operand) {
                take(&mut shown, operand);
            }
        }
    }
    shown.sort_unstable();
    shown
}

fn hidden_count(graph: &Graph, roots: &[ExprId], shown: usize) -> usize {
    let reachable = graph.reachable(roots);
    let drawn =
        |id: &ExprId| reachable.contains(*id) && (roots.contains(id) || !is_inlined(graph, *id));
    graph.ids().filter(drawn).count() - shown
}

fn is_inlined(graph: &Graph, id: ExprId) -> bool {
    matches!(graph.op(id), Op::Constant(_))
}

/// Returns the op with its inlined constants: `multiply 2, ·`.
fn label(graph: &Graph, id: ExprId) -> String {
    let node = graph.node(id);
    let name = match node.op {
        Op::Parameter(parameter) => return format!("parameter {}", parameter.index),
        Op::Constant(constant) => return constant.literal().to_string(),
        Op::Elem(index) => return format!("elem {index}"),
        Op::Block(block) => Cow::Owned(format!("block {}", block.name())),
        Op::Hook(hook) => match &hook.name {
            Some(name) => Cow::Owned(format!("io_call {name}")),
            None => Cow::Borrowed(node.op.name()),
        },
        op => Cow::Borrowed(op.name()),
    };
    let regions = match node.op.regions().len() {
        0 => String::new(),
        1 => " (1 region)".into(),
        count => format!(" ({count} regions)"),
    };
    if !node.operands.iter().any(|&operand| is_inlined(graph, operand)) {
        return format!("{name}{regions}");
    }
    let operand = |&id: &ExprId| match graph.op(id) {
        Op::Constant(constant) => constant.literal().to_string(),
        _ => "·".into(),
    };
    let operands: Vec<String> = node.operands.iter().map(operand).collect();
    format!("{name} {}{regions}", operands.join(", "))
}
