//! Contributions to what a loop captures, where they are products of matrices.
//!
//! The sum over all trips of products is one product of all trips' operands, in which the trips are one
//! more axis that is summed: weights get their cotangents from one large product after the loop rather
//! than from a small one, and a sum, in each trip. The operands have to be kept for it. Those that the
//! loop forwards stored are there; of others the loop backwards keeps rows, if those of a trip are no
//! larger than the sum. Where they are, adding up in each trip moves less memory.

use std::sync::Arc;

use nxla_expr::{Axes, BinaryOp, Dot, ExprId, Graph, Op, Program, TensorType};
use nxla_tensor::{Scalar, Shape};

use crate::error::Result;
use crate::maps::part;

/// How many products a contribution may be the sum of. Sums of sums can have any number of terms.
const MOST_TERMS: usize = 16;

/// How the loop that goes back leaves products to what comes after it.
pub(super) struct Products {
    /// `(what is known…, cotangents…) -> (cotangents…, sums' contributions…, what is kept…)`.
    pub(super) trip: Arc<Program>,
    /// The contributions that are summed in each trip, by position among all of them.
    pub(super) summed: Vec<usize>,
    /// The types of what is kept of each trip.
    pub(super) kept: Vec<TensorType>,
    /// The others, by position, with the products that they are a sum of.
    products: Vec<(usize, Vec<Product>)>,
}

/// What there is of something that the derivative of a trip has to know.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// A row for each trip.
    Rows,
    /// It is found again in each trip.
    EachTrip,
    /// It is the same in all.
    Same,
}

/// Where the rows of an operand are.
#[derive(Clone, Copy)]
enum Rows {
    /// What is known, by position among it.
    Known(usize),
    /// What the loop backwards keeps, by position.
    Kept(usize),
}

struct Product {
    dot: Dot,
    operands: [Rows; 2],
    /// What moves the elements of the product, the last one first.
    moves: Vec<Op>,
}

/// A product that an output is a sum of, before it is known where its operands are.
struct Term {
    dot: ExprId,
    moves: Vec<Op>,
}

impl Products {
    /// The products among the outputs of a trip's derivative behind the cotangents of `carried` states.
    /// `known` says what there is of what is known, and `room` is how many bytes the rows of a trip may
    /// take.
    pub(super) fn new(
        rest: &Program,
        carried: usize,
        known: &[Known],
        room: usize,
    ) -> Result<Option<Self>> {
        let graph = rest.graph();
        let (cotangents, contributions) = rest.outputs().split_at(carried);
        let mut kept: Vec<ExprId> = Vec::new();
        let (mut summed, mut products) = (Vec::new(), Vec::new());
        for (position, &output) in contributions.iter().enumerate() {
            let before = kept.len();
            let found =
                terms(graph, output).and_then(|terms| located(rest, terms, known, &mut kept));
            let grown = bytes(graph, &kept[before..]);
            match found {
                Some(found) if grown <= bytes(graph, &[output]) && bytes(graph, &kept) <= room => {
                    products.push((position, found));
                }
                _ => {
                    kept.truncate(before);
                    summed.push(position);
                }
            }
        }
        if products.is_empty() {
            return Ok(None);
        }
        let sums = summed.iter().map(|&position| &contributions[position]);
        let outputs: Vec<ExprId> = cotangents.iter().chain(sums).chain(&kept).copied().collect();
        let trip = part(graph, rest.parameters(), rest.inputs().to_vec(), &outputs)?;
        let kept = kept.iter().map(|&id| graph.tensor_type(id).clone()).collect();
        Ok(Some(Self { trip: Arc::new(trip), summed, kept, products }))
    }

    /// The contributions of all trips, by position, from the rows of what is known (where there are
    /// any) and of what was kept.
    pub(super) fn emit(
        &self,
        graph: &mut Graph,
        known: &[Option<ExprId>],
        kept: &[ExprId],
    ) -> Result<Vec<(usize, ExprId)>> {
        let mut found = Vec::with_capacity(self.products.len());
        for (position, products) in &self.products {
            let mut sum = None;
            for Product { dot, operands, moves } in products {
                let operands = operands.map(|rows| match rows {
                    Rows::Known(at) => known[at].expect("it has rows"),
                    Rows::Kept(at) => kept[at],
                });
                let over_trips = Dot {
                    left_contract: with_trips(&dot.left_contract),
                    left_batch: Axes::default(),
                    right_contract: with_trips(&dot.right_contract),
                    right_batch: Axes::default(),
                };
                let mut product = graph.make(Op::Dot(Box::new(over_trips)), &operands)?;
                for op in moves.iter().rev() {
                    product = graph.make(op.clone(), &[product])?;
                }
                sum = Some(match sum {
                    Some(sum) => graph.add(sum, product)?,
                    None => product,
                });
            }
            found.push((*position, sum.expect("a sum has terms")));
        }
        Ok(found)
    }
}

/// Axes of a trip's value as axes of all trips' rows, of which the first is summed too.
fn with_trips(axes: &[usize]) -> Axes {
    std::iter::once(0).chain(axes.iter().map(|axis| axis + 1)).collect()
}

fn bytes(graph: &Graph, ids: &[ExprId]) -> usize {
    let types = ids.iter().map(|&id| graph.tensor_type(id));
    types.map(|ty| ty.shape.size() * ty.dtype.size()).sum()
}

/// Whether an op multiplies matrices, and not one for each entry of a batch, whose axes must lead.
fn is_sum_of_products(op: &Op) -> bool {
    matches!(op, Op::Dot(dot) if dot.left_batch.is_empty())
}

/// The products that an output is a sum of, if it is nothing else.
fn terms(graph: &Graph, output: ExprId) -> Option<Vec<Term>> {
    let mut open = vec![(output, Vec::new())];
    let mut terms = Vec::new();
    while let Some((id, mut moves)) = open.pop() {
        if terms.len() + open.len() > MOST_TERMS {
            return None;
        }
        let (op, operands) = (graph.op(id), graph.operands(id));
        let fits = || operands.iter().all(|&operand| graph.ty(operand) == graph.ty(id));
        // Names would have to be told of the trips' axis too.
        let plain = || operands.iter().all(|&it| graph.tensor_type(it).names.is_none());
        if *op == Op::Binary(BinaryOp::Add) && fits() {
            open.extend(operands.iter().map(|&operand| (operand, moves.clone())));
        } else if matches!(op, Op::Transpose(_) | Op::Reshape(_) | Op::Squeeze(_)) {
            moves.push(op.clone());
            open.push((operands[0], moves));
        } else if is_sum_of_products(op) && plain() {
            terms.push(Term { dot: id, moves });
        } else {
            return None;
        }
    }
    Some(terms)
}

/// Where the operands of products are; what is to be kept for them is added to that. `None` if one is
/// the same in all trips: that is cheaper to add up first.
fn located(
    rest: &Program,
    terms: Vec<Term>,
    known: &[Known],
    kept: &mut Vec<ExprId>,
) -> Option<Vec<Product>> {
    let graph = rest.graph();
    let mut products = Vec::with_capacity(terms.len());
    for Term { dot: id, moves } in terms {
        let Op::Dot(dot) = graph.op(id) else { unreachable!("a term is a product") };
        let mut places = [Rows::Kept(0); 2];
        for (place, &operand) in places.iter_mut().zip(graph.operands(id)) {
            *place = match graph.op(operand) {
                Op::Parameter(parameter) => match known.get(parameter.index as usize) {
                    Some(Known::Rows) => Rows::Known(parameter.index as usize),
                    Some(Known::Same) => return None,
                    Some(Known::EachTrip) | None => keep(kept, operand),
                },
                _ if graph.operands(operand).is_empty() => return None,
                _ => keep(kept, operand),
            };
        }
        products.push(Product { dot: (**dot).clone(), operands: places, moves });
    }
    Some(products)
}

fn keep(kept: &mut Vec<ExprId>, id: ExprId) -> Rows {
    let at = kept.iter().position(|&it| it == id).unwrap_or_else(|| {
        kept.push(id);
        kept.len() - 1
    });
    Rows::Kept(at)
}

/// Rows for so many trips, of zeros.
pub(super) fn no_rows(graph: &mut Graph, trips: usize, ty: &TensorType) -> Result<ExprId> {
    let shape: Shape = std::iter::once(trips).chain(ty.shape.iter().copied()).collect();
    Ok(graph.constant(Scalar::zero(ty.dtype), TensorType::new(ty.dtype, shape))?)
}
