//! Dot products and convolutions.

use nxla_tensor::{AxisName, Names, Shape, broadcast_shapes, to_i64};

use super::WindowPadding;
use super::options::options;
use crate::graph::{Axes, Conv, Dot, ErrorKind, ExprId, Graph, Op, Result};

options! {
    /// Options of [`Graph::conv`]. The defaults are strides and dilations of 1 without padding, and
    /// axes in the order batch, channel, spatial axes.
    pub struct ConvOptions {
        /// The strides of the kernel along each spatial axis; 1 for `None`.
        strides(Vec<usize>): Option<Vec<usize>> = None,
        /// The padding of the input along each spatial axis.
        padding(WindowPadding): WindowPadding = WindowPadding::Valid,
        /// The distance between elements of the input, with zeros in between; 1 for `None`.
        input_dilation(Vec<usize>): Option<Vec<usize>> = None,
        /// The distance between elements of the kernel, with zeros in between; 1 for `None`.
        kernel_dilation(Vec<usize>): Option<Vec<usize>> = None,
        /// The number of independent groups of input and output channels.
        feature_groups(usize): usize = 1,
        /// The number of groups of the batch with separate output channels.
        batch_groups(usize): usize = 1,
        /// The batch axis, the channel axis and the spatial axes of the input.
        input_permutation(Vec<i64>): Option<Vec<i64>> = None,
        /// The output channel axis, the input channel axis and the spatial axes of the kernel.
        kernel_permutation(Vec<i64>): Option<Vec<i64>> = None,
        /// The batch axis, the channel axis and the spatial axes of the result.
        output_permutation(Vec<i64>): Option<Vec<i64>> = None,
    }
}

impl ConvOptions {
    /// Creates options without padding.
    #[must_use]
    pub fn valid() -> Self {
        Self::default()
    }

    /// Creates options with the padding that makes the result as large as the input for strides of
    /// 1.
    #[must_use]
    pub fn same() -> Self {
        Self::default().padding(WindowPadding::Same)
    }

    /// Creates options with explicit padding before and after each spatial axis.
    #[must_use]
    pub fn with_padding(around: impl Into<Vec<(i64, i64)>>) -> Self {
        Self::default().padding(WindowPadding::Explicit(around.into()))
    }
}

impl Graph {
    /// Returns the dot product: contracts the last axis of `x` with the second-to-last axis of `y`
    /// (the only axis of a vector). A scalar multiplies. The dtypes are promoted.
    ///
    /// ```
    /// # use nxla_expr::{Graph, TensorType};
    /// # use nxla_tensor::DType;
    /// let mut graph = Graph::new();
    /// let x = graph.parameter(0, TensorType::new(DType::F32, [2, 3]));
    /// let y = graph.parameter(1, TensorType::new(DType::F32, [3, 4]));
    /// let dot = graph.dot(x, y)?;
    /// assert_eq!(graph.tensor_type(dot).to_string(), "f32[2][4]");
    /// assert_eq!(
    ///     graph.dot(y, x).unwrap_err().to_string(),
    ///     "dot: axis 1 of left and axis 0 of right: must have equal sizes; got 4 and 2 (left \
    ///      is f32[3][4], right is f32[2][3])"
    /// );
    /// # Ok::<(), nxla_expr::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error for contracted axes of different sizes or a name that two axes of the
    /// result would share.
    pub fn dot(&mut self, x: ExprId, y: ExprId) -> Result<ExprId> {
        let (x_rank, y_rank) = (self.shape(x).rank(), self.shape(y).rank());
        if x_rank == 0 || y_rank == 0 {
            return self.multiply(x, y);
        }
        let right = if y_rank == 1 { -1 } else { -2 };
        self.dot_general(x, &[-1], &[], y, &[right], &[])
    }

    /// Multiplies and sums over pairs of contracted axes, separately for each index of the batch
    /// axes, which must lead. The axes of the result are the batch axes, the free axes of `x` and
    /// the free axes of `y`. The dtypes are promoted.
    ///
    /// # Errors
    /// Returns an error for axes out of range or used twice, different numbers or sizes of paired
    /// axes, batch axes that do not lead, or a name that two axes of the result would share.
    pub fn dot_general(
        &mut self,
        x: ExprId,
        x_contract: &[i64],
        x_batch: &[i64],
        y: ExprId,
        y_contract: &[i64],
        y_batch: &[i64],
    ) -> Result<ExprId> {
        let dot = Dot {
            left_contract: self.axes("dot", x, x_contract)?.into(),
            left_batch: self.axes("dot", x, x_batch)?.into(),
            right_contract: self.axes("dot", y, y_contract)?.into(),
            right_batch: self.axes("dot", y, y_batch)?.into(),
        };
        self.make(Op::Dot(Box::new(dot)), &[x, y])
    }

    /// Returns the sum of products along an axis, which must have equal sizes; the other axes
    /// broadcast. Complex numbers of `x` are conjugated. The dtypes are promoted.
    ///
    /// # Errors
    /// Returns an error for shapes that do not broadcast; for an axis out of range, or of another
    /// size in each.
    pub fn vecdot(&mut self, x: ExprId, y: ExprId, axis: i64) -> Result<ExprId> {
        let op = "vecdot";
        let left = self.conjugate_complex(x)?;
        let products = self.multiply(left, y)?;
        let at = self.axis(op, products, axis)?;
        let from_end = self.shape(products).rank() - at;
        let size = |id: ExprId| {
            let shape = self.shape(id);
            shape.rank().checked_sub(from_end).map(|at| shape[at])
        };
        if size(x) != size(y) {
            let found = self.tensor_type(y).to_string();
            let expected = format!("the size of axis {axis} of {}", self.tensor_type(x));
            return Err(self.error(op, ErrorKind::Shape { argument: "other", found, expected }));
        }
        let axis = to_i64(at);
        let sum = self.sum(products, Some(&[axis]), false)?;
        self.as_type(sum, self.dtype(products))
    }

    /// Returns matrix products over the last two axes; leading axes are batches, which broadcast. A
    /// vector on the left is a row and a vector on the right is a column; the result does not have
    /// this axis. The dtypes are promoted.
    ///
    /// If only the left operand has a batch, it is contracted directly with the single right
    /// operand: `[8][64][384]` by `[384][384]` is a product of 512 rows.
    ///
    /// # Errors
    /// Returns an error for a scalar, shapes that do not fit, or a name that two axes of the result
    /// would share.
    pub fn matmul(&mut self, x: ExprId, y: ExprId) -> Result<ExprId> {
        let (x_rank, y_rank) = (self.shape(x).rank(), self.shape(y).rank());
        if x_rank == 0 || y_rank == 0 {
            let (found, expected) = ("a scalar".into(), "at least one axis".into());
            let argument = if x_rank == 0 { "left" } else { "right" };
            return Err(self.error("matmul", ErrorKind::Shape { argument, found, expected }));
        }
        // With vectors or a single right operand for all rows, there is no batch to pair.
        if x_rank == 1 || y_rank <= 2 {
            return self.dot(x, y);
        }
        let batch = |graph: &Graph, id: ExprId| -> Shape {
            let shape = graph.shape(id);
            shape[..shape.rank() - 2].iter().copied().collect()
        };
        let (own, other) = (batch(self, x), batch(self, y));
        let common = broadcast_shapes(&own, &other)
            .map_err(|error| self.error("matmul", ErrorKind::from(error)))?;
        let shared = if own == common { shared_prefix(&common, &other) } else { None };
        let (left, right, shared) = match shared {
            Some(shared) => {
                (x, self.without_ones(y, common.rank() - other.rank(), shared)?, shared)
            }
            None => (self.spread(x, &common)?, self.spread(y, &common)?, common.rank()),
        };
        let batch: Vec<i64> = (0..).take(shared).collect();
        self.dot_general(left, &[-1], &batch, right, &[-2], &batch)
    }

    /// Broadcasts the matrices of `x` to a batch.
    fn spread(&mut self, x: ExprId, batch: &Shape) -> Result<ExprId> {
        let own = self.shape(x);
        let matrix = &own[own.rank() - 2..];
        let shape: Shape = batch.iter().chain(matrix).copied().collect();
        self.broadcast(x, shape, None)
    }

    /// Removes from `y` the batch axes of size 1 after the first `shared` axes of a batch that has
    /// `added` more leading axes.
    fn without_ones(&mut self, y: ExprId, added: usize, shared: usize) -> Result<ExprId> {
        let batch = self.shape(y).rank() - 2;
        let ones: Axes = (shared.saturating_sub(added)..batch).collect();
        if ones.is_empty() { Ok(y) } else { self.make(Op::Squeeze(ones), &[y]) }
    }

    /// Multiplies every element of `x` with every element of `y` (conjugated if complex), both
    /// flattened. The result is a matrix of `x.size` rows and `y.size` columns.
    ///
    /// # Errors
    /// Returns an error for invalid operands.
    pub fn outer(&mut self, x: ExprId, y: ExprId) -> Result<ExprId> {
        let (rows, columns) = (self.shape(x).size(), self.shape(y).size());
        let (row_name, column_name) = (self.vector_name(x), self.vector_name(y));
        let x = self.reshape_named(x, [rows, 1], Some(Names::new([row_name, None])))?;
        let y = self.conjugate_complex(y)?;
        let y = self.reshape_named(y, [1, columns], Some(Names::new([None, column_name])))?;
        self.multiply(x, y)
    }

    /// Returns the Kronecker product: a block `x[i] * y` for each element of `x`. The operand with
    /// fewer axes is extended by leading axes; names are dropped.
    ///
    /// # Errors
    /// Returns an error for a result too large to count.
    pub fn kron(&mut self, x: ExprId, y: ExprId) -> Result<ExprId> {
        let rank = self.shape(x).rank().max(self.shape(y).rank());
        let sizes = |graph: &Graph, id: ExprId| -> Vec<usize> {
            let shape = graph.shape(id);
            std::iter::repeat_n(1, rank - shape.rank()).chain(shape.iter().copied()).collect()
        };
        let (left, right) = (sizes(self, x), sizes(self, y));
        let blocks: Shape = left.iter().flat_map(|&size| [size, 1]).collect();
        let inside: Shape = right.iter().flat_map(|&size| [1, size]).collect();
        let result: Shape =
            left.iter().zip(&right).map(|(left, right)| left.saturating_mul(*right)).collect();
        let (x, y) = (self.rename(x, None)?, self.rename(y, None)?);
        let (x, y) = (self.reshape(x, blocks)?, self.reshape(y, inside)?);
        let product = self.multiply(x, y)?;
        self.reshape(product, result)
    }

    /// Returns the name of the only axis.
    fn vector_name(&self, x: ExprId) -> Option<AxisName> {
        match self.tensor_type(x).names.as_deref() {
            Some([name]) => name.clone(),
            _ => None,
        }
    }

    /// Returns the convolution (in fact cross-correlation: the kernel is not reversed) over all
    /// axes except batch and channel. The dtypes are promoted to a float.
    ///
    /// # Errors
    /// Returns an error for fewer than three axes or different ranks; for channels that do not fit;
    /// for groups that do not divide, or groups of both kinds; for lists that are not
    /// permutations; for strides or dilations of 0.
    pub fn conv(&mut self, input: ExprId, kernel: ExprId, options: &ConvOptions) -> Result<ExprId> {
        let spatial = self.shape(input).rank().saturating_sub(2);
        let ones = |values: &Option<Vec<usize>>| values.clone().unwrap_or_else(|| vec![1; spatial]);
        let kernel_permutation =
            self.permutation("kernel_permutation", kernel, options.kernel_permutation.as_deref())?;
        let sizes: Vec<usize> =
            kernel_permutation.iter().skip(2).map(|&axis| self.shape(kernel)[axis]).collect();
        let kernel_dilation = ones(&options.kernel_dilation);
        let input_permutation = options.input_permutation.as_deref();
        let output_permutation = options.output_permutation.as_deref();
        let conv = Conv {
            strides: ones(&options.strides).into(),
            padding: options.padding.resolve(&sizes, &kernel_dilation),
            input_dilation: ones(&options.input_dilation).into(),
            kernel_dilation: kernel_dilation.into(),
            feature_groups: options.feature_groups,
            batch_groups: options.batch_groups,
            input_permutation: self.permutation("input_permutation", input, input_permutation)?,
            kernel_permutation,
            output_permutation: self.permutation(
                "output_permutation",
                input,
                output_permutation,
            )?,
        };
        self.make(Op::Conv(Box::new(conv)), &[input, kernel])
    }

    /// Resolves a permutation of the axes of `x`; the identity for `None`.
    fn permutation(&self, argument: &'static str, x: ExprId, axes: Option<&[i64]>) -> Result<Axes> {
        match axes {
            Some(axes) => nxla_tensor::normalize_axes(axes, self.shape(x).rank())
                .map(|axes| axes.into_iter().collect())
                .map_err(|error| self.invalid("conv", argument, error.to_string())),
            None => Ok((0..self.shape(x).rank()).collect()),
        }
    }
}

/// Returns the number of leading axes of `common` that the batch `own` of an operand has in full,
/// if the operand is broadcast along all other axes.
fn shared_prefix(common: &Shape, own: &Shape) -> Option<usize> {
    let added = common.rank() - own.rank();
    let has = |axis: usize| axis >= added && own[axis - added] == common[axis];
    let shared = (0..common.rank()).take_while(|&axis| has(axis)).count();
    (shared..common.rank()).all(|axis| axis < added || own[axis - added] == 1).then_some(shared)
}
