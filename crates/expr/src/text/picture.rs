//! What a picture of an expression shows, whatever draws it.
//!
//! Scalar constants are written inside the node that uses them, since one shared `2` with edges
//! to everywhere says nothing. Regions are not drawn; a node that holds one says how many. Of a
//! large graph only the nodes nearest to the roots are shown, and one box stands for the rest.

use std::borrow::Cow;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::graph::{ExprId, Family, Graph, IdSet, Op};

/// The most nodes of a graph that are drawn; beyond, a picture is no help.
const LIMIT: usize = 200;

/// What a box stands for, which decides its colour.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Kind {
    Input,
    Of(FamilyOrder),
    More,
}

/// Position of a family among [`FAMILIES`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct FamilyOrder(usize);

/// Name and fill colour of each family.
const FAMILIES: [(Family, &str, &str); 9] = [
    (Family::Create, "create", "#e3e8ef"),
    (Family::Elementwise, "elementwise", "#d3e5fb"),
    (Family::Movement, "movement", "#f9e6c4"),
    (Family::Reduce, "reduce", "#fbd5d5"),
    (Family::Window, "window", "#f6d3ec"),
    (Family::Contract, "contract", "#d2efd8"),
    (Family::Index, "index", "#e5daf8"),
    (Family::Linalg, "linalg", "#cfeeee"),
    (Family::Control, "control", "#f3eec0"),
];

impl Kind {
    fn of(op: &Op) -> Self {
        match op {
            Op::Parameter(_) | Op::Tensor(_) | Op::Constant(_) => Kind::Input,
            op => {
                let family = op.family();
                let order = FAMILIES.iter().position(|(other, ..)| *other == family);
                Kind::Of(FamilyOrder(order.expect("every family is listed")))
            }
        }
    }

    /// A word for the kind, usable as a class name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Input => "input",
            Kind::Of(FamilyOrder(order)) => FAMILIES[order].1,
            Kind::More => "more",
        }
    }

    /// The colour of its boxes.
    pub(crate) fn fill(self) -> &'static str {
        match self {
            Kind::Input => "#ffffff",
            Kind::Of(FamilyOrder(order)) => FAMILIES[order].2,
            Kind::More => "#f4f4f4",
        }
    }
}

/// One box.
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
            // What is not shown lies behind the box in front.
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

/// The nodes that are drawn, in id order: breadth first from the roots, up to the limit.
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

/// The op, with inlined numbers in their place: `multiply 2, ·`.
fn label(graph: &Graph, id: ExprId) -> String {
    let node = graph.node(id);
    let name = match node.op {
        Op::Parameter(parameter) => return format!("parameter {}", parameter.index),
        Op::Constant(constant) => return constant.value.to_string(),
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
        Op::Constant(constant) => constant.value.to_string(),
        _ => "·".into(),
    };
    let operands: Vec<String> = node.operands.iter().map(operand).collect();
    format!("{name} {}{regions}", operands.join(", "))
}
