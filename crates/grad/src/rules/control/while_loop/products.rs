//! Contributions to captures that are matrix products.
//!
//! The sum over all iterations of matrix products is one product over the stacked operands, in
//! which the iteration axis is contracted too. Weights thus receive their cotangents from one large
//! product after the loop instead of a small product and a sum in each iteration. This needs the
//! operands of all iterations. Some are rows that the forward loop stores; the backward loop stores
//! the others, if the rows of an iteration are not larger than the sum. Larger rows would move more
//! memory than the sums.

use std::sync::Arc;

use nxla_expr::{Axes, BinaryOp, Dot, ExprId, Graph, Op, Program, TensorType};
use nxla_tensor::{Scalar, Shape};

use super::stored::Residual;
use crate::builder::add_optional;
use crate::error::Result;
use crate::programs::extract;

/// The limit for the number of products in a sum; nested sums can have any number of terms.
const MOST_TERMS: usize = 16;

/// The products that are computed after the backward loop.
pub(super) struct Products {
    /// `(residuals…, cotangents…) -> (cotangents…, contributions of the sums…, stored values…)`.
    pub(super) trip: Arc<Program>,
    /// The contributions that are summed in the loop, by position among all contributions.
    pub(super) summed: Vec<usize>,
    /// The types of the values that the backward loop stores for each iteration.
    pub(super) kept: Vec<TensorType>,
    /// The other contributions, by position, with the products that they are a sum of.
    products: Vec<(usize, Vec<Product>)>,
}

/// The location of the rows of an operand.
#[derive(Clone, Copy)]
enum RowSource {
    /// The rows of the residual with this index.
    Residual(usize),
    /// The value with this index that the backward loop stores.
    Kept(usize),
}

struct Product {
    dot: Dot,
    operands: [RowSource; 2],
    /// Movement ops that are applied to the product, the last one first.
    moves: Vec<Op>,
}

/// A product in a sum, before the rows of its operands are located.
struct Term {
    dot: ExprId,
    moves: Vec<Op>,
}

impl Products {
    /// Sums all contributions in the loop.
    pub(super) fn none(rest: &Arc<Program>, contributions: usize) -> Self {
        let summed = (0..contributions).collect();
        Self { trip: rest.clone(), summed, kept: Vec::new(), products: Vec::new() }
    }

    /// Finds the products among the outputs of an iteration's derivative after the cotangents of
    /// `carried` states. `room` limits the bytes of stored rows per iteration.
    pub(super) fn find(
        rest: &Arc<Program>,
        carried: usize,
        residuals: &[Residual],
        room: usize,
    ) -> Result<Self> {
        let graph = rest.graph();
        let (cotangents, contributions) = rest.outputs().split_at(carried);
        let mut kept: Vec<ExprId> = Vec::new();
        let (mut summed, mut products) = (Vec::new(), Vec::new());
        for (position, &output) in contributions.iter().enumerate() {
            let before = kept.len();
            let found = terms(graph, output)
                .and_then(|terms| locate_operands(rest, terms, residuals, &mut kept));
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
            return Ok(Self::none(rest, summed.len()));
        }
        let sums = summed.iter().map(|&position| &contributions[position]);
        let outputs: Vec<ExprId> = cotangents.iter().chain(sums).chain(&kept).copied().collect();
        let trip = extract(graph, rest.parameters(), rest.inputs().to_vec(), &outputs)?;
        let kept = kept.iter().map(|&id| graph.tensor_type(id).clone()).collect();
        Ok(Self { trip: Arc::new(trip), summed, kept, products })
    }

    /// Computes the contributions over all iterations, by position, from the rows of the residuals,
    /// where they have rows, and from the stored rows.
    pub(super) fn build_products(
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
                    RowSource::Residual(at) => known[at].expect("the residual is stored"),
                    RowSource::Kept(at) => kept[at],
                });
                let over_trips = Dot {
                    left_contract: stacked_axes(&dot.left_contract),
                    left_batch: Axes::default(),
                    right_contract: stacked_axes(&dot.right_contract),
                    right_batch: Axes::default(),
                };
                let mut product = graph.make(Op::Dot(Box::new(over_trips)), &operands)?;
                for op in moves.iter().rev() {
                    product = graph.make(op.clone(), &[product])?;
                }
                sum = add_optional(graph, sum, Some(product))?;
            }
            found.push((*position, sum.expect("a sum has terms")));
        }
        Ok(found)
    }
}

/// Returns axes of a value as axes of its stacked rows, including the leading iteration axis.
fn stacked_axes(axes: &[usize]) -> Axes {
    std::iter::once(0).chain(axes.iter().map(|axis| axis + 1)).collect()
}

fn bytes(graph: &Graph, ids: &[ExprId]) -> usize {
    let types = ids.iter().map(|&id| graph.tensor_type(id));
    types.map(TensorType::byte_size).fold(0, usize::saturating_add)
}

/// Returns whether an op multiplies matrices without batch axes, which would have to lead.
fn is_sum_of_products(op: &Op) -> bool {
    matches!(op, Op::Dot(dot) if dot.left_batch.is_empty())
}

/// Returns the products whose sum is `output`, or `None` if it has other terms.
fn terms(graph: &Graph, output: ExprId) -> Option<Vec<Term>> {
    let mut open = vec![(output, Vec::new())];
    let mut terms = Vec::new();
    while let Some((id, mut moves)) = open.pop() {
        if terms.len() + open.len() > MOST_TERMS {
            return None;
        }
        let (op, operands) = (graph.op(id), graph.operands(id));
        let fits = || operands.iter().all(|&operand| graph.ty(operand) == graph.ty(id));
        // Axis names would need a name for the iteration axis.
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

/// Locates the operands of products, and adds the values to be stored to `kept`. Returns `None` if
/// an operand is the same in all iterations: summing the other operand first is cheaper.
fn locate_operands(
    rest: &Program,
    terms: Vec<Term>,
    residuals: &[Residual],
    kept: &mut Vec<ExprId>,
) -> Option<Vec<Product>> {
    let graph = rest.graph();
    let mut products = Vec::with_capacity(terms.len());
    for Term { dot: id, moves } in terms {
        let Op::Dot(dot) = graph.op(id) else { unreachable!("a term is a product") };
        let mut places = [RowSource::Kept(0); 2];
        for (place, &operand) in places.iter_mut().zip(graph.operands(id)) {
            *place = match graph.op(operand) {
                Op::Parameter(parameter) => match residuals.get(parameter.index as usize) {
                    Some(Residual::Stored) => RowSource::Residual(parameter.index as usize),
                    Some(Residual::Hoisted) => return None,
                    Some(Residual::Recomputed) | None => keep(kept, operand),
                },
                _ if graph.operands(operand).is_empty() => return None,
                _ => keep(kept, operand),
            };
        }
        products.push(Product { dot: (**dot).clone(), operands: places, moves });
    }
    Some(products)
}

fn keep(kept: &mut Vec<ExprId>, id: ExprId) -> RowSource {
    let at = kept.iter().position(|&it| it == id).unwrap_or_else(|| {
        kept.push(id);
        kept.len() - 1
    });
    RowSource::Kept(at)
}

/// Creates zero rows for `trips` iterations.
pub(super) fn zero_rows(graph: &mut Graph, trips: usize, ty: &TensorType) -> Result<ExprId> {
    let shape: Shape = std::iter::once(trips).chain(ty.shape.iter().copied()).collect();
    Ok(graph.constant(Scalar::zero(ty.dtype), TensorType::new(ty.dtype, shape))?)
}
