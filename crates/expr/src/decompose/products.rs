//! Matrix products that read transposed or broadcast operands directly.
//!
//! Users write `x.T @ v`, and the derivative for each entry of a batch broadcasts a weight along
//! the batch. A product can contract any axes without a transposed copy. A batch of products with
//! one shared operand is one product with a larger matrix.

use super::rebuild::Rewrite;
use crate::graph::{Axes, Dot, ExprId, Graph, Op, Program, Result, TensorType};

/// Returns the program with products that read the sources of transposed or broadcast operands, or
/// `None` if there are no such products in the program and its regions.
///
/// # Errors
/// Returns the error of [`Graph::make`], which accepts every node of a well-typed program.
///
/// ```
/// use nxla_expr::{Graph, Op, Program, TensorType, merge_transposes};
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
/// let direct = merge_transposes(&program)?.expect("there is such a product");
/// let product = direct.outputs()[0];
/// assert_eq!(direct.graph().operands(product), direct.parameters());
/// assert!(merge_transposes(&direct)?.is_none());
/// # Ok::<(), nxla_expr::Error>(())
/// ```
pub fn merge_transposes(program: &Program) -> Result<Option<Program>> {
    let rewrite = Rewrite {
        changes: &|graph: &Graph, id| match (graph.op(id), graph.operands(id)) {
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

/// Creates the product of the same type that reads other operands.
fn make(graph: &mut Graph, product: Product) -> Result<ExprId> {
    let ty = product.ty(graph)?;
    let Some(direct) = product.direct(graph) else {
        unreachable!("the caller has checked that the product can read the operands")
    };
    let made = direct.build(graph)?;
    let made = match direct.order {
        Some(order) => graph.make(Op::Transpose(order), &[made])?,
        None => made,
    };
    if *graph.tensor_type(made) == ty { Ok(made) } else { graph.rename(made, ty.names) }
}

/// An operand, and the role of its axes in a product. Batch axes come first.
#[derive(Clone)]
struct Side {
    id: ExprId,
    contract: Axes,
}

/// A product with the number of its batch axes.
#[derive(Clone)]
struct Product {
    left: Side,
    right: Side,
    batch: usize,
    /// Axis `i` of the result is axis `order[i]` of the computed product.
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

    fn build(&self, graph: &mut Graph) -> Result<ExprId> {
        let batch: Axes = (0..self.batch).collect();
        let dot = Dot {
            left_contract: self.left.contract.clone(),
            left_batch: batch.clone(),
            right_contract: self.right.contract.clone(),
            right_batch: batch,
        };
        graph.make(Op::Dot(Box::new(dot)), &[self.left.id, self.right.id])
    }

    /// Returns the type of the result. Creating the product again is cheap, because it is interned.
    fn ty(&self, graph: &mut Graph) -> Result<TensorType> {
        let made = self.build(graph)?;
        Ok(graph.tensor_type(made).clone())
    }

    /// Returns the equivalent product of the operands' sources, or `None` if there is none.
    fn direct(&self, graph: &Graph) -> Option<Self> {
        let turned = self.skip_transpose(graph);
        let before = turned.as_ref().unwrap_or(self);
        let single = before.single(graph);
        let last = single.as_ref().and_then(|single| single.skip_transpose(graph));
        last.or(single).or(turned)
    }

    /// Returns the product without transposed operands.
    fn skip_transpose(&self, graph: &Graph) -> Option<Self> {
        let (left, right) = (
            self.left.skip_transpose(graph, self.batch),
            self.right.skip_transpose(graph, self.batch),
        );
        if left.is_none() && right.is_none() {
            return None;
        }
        let (left, right) = (
            left.unwrap_or_else(|| self.left.clone()),
            right.unwrap_or_else(|| self.right.clone()),
        );
        Some(Self { left, right, ..self.clone() })
    }

    /// Returns the product without an operand that is broadcast along the last batch axes. These
    /// axes become free axes of the other operand.
    fn single(&self, graph: &Graph) -> Option<Self> {
        if let Some((right, added)) = self.right.single(graph, self.batch) {
            return Some(Self { right, batch: self.batch - added, ..self.clone() });
        }
        let (left, added) = self.left.single(graph, self.batch)?;
        let batch = self.batch - added;
        let left_free = left.free(graph, batch);
        let right_free = self.right.free(graph, batch);
        if left_free == 0 || right_free == added {
            // The axes that become free axes are then already at their position in the result.
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
    /// Returns the source of a transposed operand, if its batch and free axes have the same order.
    fn skip_transpose(&self, graph: &Graph, batch: usize) -> Option<Self> {
        let Op::Transpose(order) = graph.op(self.id) else { return None };
        let free = (batch..order.len()).filter(|axis| !self.contract.contains(axis));
        let keeps_batch = order[..batch].iter().copied().eq(0..batch);
        (keeps_batch && free.map(|axis| order[axis]).is_sorted()).then(|| Self {
            id: graph.operands(self.id)[0],
            contract: self.contract.iter().map(|&axis| order[axis]).collect(),
        })
    }

    /// Returns the source of an operand that is broadcast along its last batch axes only, and their
    /// number.
    fn single(&self, graph: &Graph, batch: usize) -> Option<(Self, usize)> {
        let Op::Broadcast(broadcast) = graph.op(self.id) else { return None };
        let id = graph.operands(self.id)[0];
        let rank = broadcast.shape.rank();
        let added = rank - broadcast.axes.len();
        let kept = (0..batch.checked_sub(added)?).chain(batch..rank);
        let mut sizes = broadcast.axes.iter().zip(graph.shape(id).iter());
        // The names of the source might conflict with the names of the other operand.
        let fits = added > 0
            && graph.tensor_type(id).names.is_none()
            && broadcast.axes.iter().copied().eq(kept)
            && sizes.all(|(&axis, &size)| size == broadcast.shape[axis]);
        let contract = || self.contract.iter().map(|axis| axis - added).collect();
        fits.then(|| (Self { id, contract: contract() }, added))
    }

    /// Returns the number of axes that are neither contracted nor batch axes.
    fn free(&self, graph: &Graph, batch: usize) -> usize {
        graph.shape(self.id).rank() - batch - self.contract.len()
    }
}
