//! Products of operands as they lie in memory.
//!
//! Users write `x.T @ v`, and the derivative for each entry of a batch repeats a weight along the batch, so that
//! there is one derivative of it for each entry. A product can say itself which axes it contracts, and of a
//! batch with one operand for all it makes one product of a larger matrix.

use super::rebuild::Rewrite;
use crate::graph::{Axes, Dot, ExprId, Graph, Op, Program, Result, TensorType};

/// The same program without products of what was transposed or repeated, as far as the products can say
/// that themselves; `None` if it has none, in its regions neither.
///
/// # Errors
/// None for programs that were built by [`Graph::make`]; the result is fallible like that of
/// every builder.
///
/// ```
/// use nxla_expr::{Graph, Op, Program, TensorType, direct_products};
/// use nxla_tensor::DType;
///
/// let types = vec![TensorType::new(DType::F32, [5, 3]), TensorType::new(DType::F32, [5])];
/// let mut graph = Graph::new();
/// let x = graph.parameter(0, types[0].clone());
/// let v = graph.parameter(1, types[1].clone());
/// let turned = graph.transpose(x, None)?;
/// let product = graph.dot(turned, v)?;
/// let program = Program::new(&graph, types, &[product])?;
///
/// let direct = direct_products(&program)?.expect("there is such a product");
/// let product = direct.outputs()[0];
/// assert_eq!(direct.graph().operands(product), direct.parameters());
/// assert!(direct_products(&direct)?.is_none());
/// # Ok::<(), nxla_expr::Error>(())
/// ```
pub fn direct_products(program: &Program) -> Result<Option<Program>> {
    let rewrite = Rewrite {
        changes: |graph, id| match (graph.op(id), graph.operands(id)) {
            (Op::Dot(dot), &[left, right]) => Product::of(dot, left, right).direct(graph).is_some(),
            _ => false,
        },
        make: |graph, op, operands| match (op, operands) {
            (Op::Dot(dot), &[left, right]) => make(graph, Product::of(dot, left, right)),
            (op, _) => unreachable!("{} is no product", op.name()),
        },
    };
    rewrite.apply(program)
}

/// A product of the same type that reads other operands.
fn make(graph: &mut Graph, product: Product) -> Result<ExprId> {
    let ty = product.ty(graph)?;
    let Some(direct) = product.direct(graph) else { unreachable!("its operands can be read") };
    let made = direct.made(graph)?;
    let made = match direct.order {
        Some(order) => graph.make(Op::Transpose(order), &[made])?,
        None => made,
    };
    if *graph.tensor_type(made) == ty { Ok(made) } else { graph.rename(made, ty.names) }
}

/// One operand, and what a product does with its axes. Those of the batch come first.
#[derive(Clone)]
struct Side {
    id: ExprId,
    contract: Axes,
}

/// A product with so many batch axes.
#[derive(Clone)]
struct Product {
    left: Side,
    right: Side,
    batch: usize,
    /// Axis `i` of the result is axis `order[i]` of what is computed.
    order: Option<Axes>,
}

impl Product {
    fn of(dot: &Dot, left: ExprId, right: ExprId) -> Self {
        Self {
            left: Side { id: left, contract: dot.left_contract.clone() },
            right: Side { id: right, contract: dot.right_contract.clone() },
            batch: dot.left_batch.len(),
            order: None,
        }
    }

    fn made(&self, graph: &mut Graph) -> Result<ExprId> {
        let batch: Axes = (0..self.batch).collect();
        let dot = Dot {
            left_contract: self.left.contract.clone(),
            left_batch: batch.clone(),
            right_contract: self.right.contract.clone(),
            right_batch: batch,
        };
        graph.make(Op::Dot(Box::new(dot)), &[self.left.id, self.right.id])
    }

    /// The type of the result. Making a product again costs nothing, since it is interned.
    fn ty(&self, graph: &mut Graph) -> Result<TensorType> {
        let made = self.made(graph)?;
        Ok(graph.tensor_type(made).clone())
    }

    /// The product that computes the same from what its operands were made of, if that is another one.
    fn direct(&self, graph: &Graph) -> Option<Self> {
        let turned = self.turned(graph);
        let before = turned.as_ref().unwrap_or(self);
        let single = before.single(graph);
        let last = single.as_ref().and_then(|single| single.turned(graph));
        last.or(single).or(turned)
    }

    /// Without transposed operands.
    fn turned(&self, graph: &Graph) -> Option<Self> {
        let (left, right) =
            (self.left.turned(graph, self.batch), self.right.turned(graph, self.batch));
        if left.is_none() && right.is_none() {
            return None;
        }
        let (left, right) = (
            left.unwrap_or_else(|| self.left.clone()),
            right.unwrap_or_else(|| self.right.clone()),
        );
        Some(Self { left, right, ..self.clone() })
    }

    /// Without an operand that is repeated along the last batch axes, which become axes of the other.
    fn single(&self, graph: &Graph) -> Option<Self> {
        if let Some((right, added)) = self.right.single(graph, self.batch) {
            return Some(Self { right, batch: self.batch - added, ..self.clone() });
        }
        let (left, added) = self.left.single(graph, self.batch)?;
        let batch = self.batch - added;
        let left_free = left.free(graph, batch);
        let right_free = self.right.free(graph, batch);
        if left_free == 0 || right_free == added {
            // Then nothing is between the axes that change sides and their place in the result.
            let (left, right) = if left_free == 0 {
                (left, self.right.clone())
            } else {
                (self.right.clone(), left)
            };
            return Some(Self { left, right, batch, order: None });
        }
        let first = batch + left_free;
        let order = (0..batch)
            .chain(first..first + added)
            .chain(batch..first)
            .chain(first + added..first + right_free);
        Some(Self { left, batch, order: Some(order.collect()), ..self.clone() })
    }
}

impl Side {
    /// What was transposed, if the batch and the free axes are in the same order there.
    fn turned(&self, graph: &Graph, batch: usize) -> Option<Self> {
        let Op::Transpose(order) = graph.op(self.id) else { return None };
        let free = (batch..order.len()).filter(|axis| !self.contract.contains(axis));
        let keeps_batch = order[..batch].iter().copied().eq(0..batch);
        (keeps_batch && free.map(|axis| order[axis]).is_sorted()).then(|| Self {
            id: graph.operands(self.id)[0],
            contract: self.contract.iter().map(|&axis| order[axis]).collect(),
        })
    }

    /// What is repeated along the last of the batch axes and nowhere else, and along how many.
    fn single(&self, graph: &Graph, batch: usize) -> Option<(Self, usize)> {
        let Op::Broadcast(broadcast) = graph.op(self.id) else { return None };
        let id = graph.operands(self.id)[0];
        let rank = broadcast.shape.rank();
        let added = rank - broadcast.axes.len();
        let kept = (0..batch.checked_sub(added)?).chain(batch..rank);
        let mut sizes = broadcast.axes.iter().zip(graph.shape(id).iter());
        // Names of its own might not go with those of the other operand.
        let fits = added > 0
            && graph.tensor_type(id).names.is_none()
            && broadcast.axes.iter().copied().eq(kept)
            && sizes.all(|(&axis, &size)| size == broadcast.shape[axis]);
        let contract = || self.contract.iter().map(|axis| axis - added).collect();
        fits.then(|| (Self { id, contract: contract() }, added))
    }

    /// How many axes are neither contracted nor of the batch.
    fn free(&self, graph: &Graph, batch: usize) -> usize {
        graph.shape(self.id).rank() - batch - self.contract.len()
    }
}
