//! Dot products and convolutions.

use nxla_tensor::{AxisName, Names, Shape, broadcast_shapes};

use super::WindowPadding;
use super::of_op;
use super::options::options;
use crate::graph::{Axes, Conv, Dot, ErrorKind, ExprId, Graph, Op, Result};

options! {
    /// How a kernel slides over an input: see [`Graph::conv`]. By default it moves by 1 over an input
    /// without anything around it, and the axes are batch, channel and space.
    pub struct ConvOptions {
        /// By how much the kernel moves along each axis of space; 1 for `None`.
        strides(Vec<usize>): Option<Vec<usize>> = None,
        /// What is around the input along each axis of space.
        padding(WindowPadding): WindowPadding = WindowPadding::Valid,
        /// How far elements of the input are apart, zeros in between; 1 for `None`.
        input_dilation(Vec<usize>): Option<Vec<usize>> = None,
        /// How far elements of the kernel are apart, zeros in between; 1 for `None`.
        kernel_dilation(Vec<usize>): Option<Vec<usize>> = None,
        /// Groups of channels of the input and of the result that do not mix.
        feature_groups(usize): usize = 1,
        /// Groups of the batch, each with channels of the result of its own.
        batch_groups(usize): usize = 1,
        /// Which axes of the input are batch, channel and space, in this order.
        input_permutation(Vec<i64>): Option<Vec<i64>> = None,
        /// Which axes of the kernel are output channel, input channel and space, in this order.
        kernel_permutation(Vec<i64>): Option<Vec<i64>> = None,
        /// Which axes of the result are batch, channel and space, in this order.
        output_permutation(Vec<i64>): Option<Vec<i64>> = None,
    }
}

impl ConvOptions {
    /// Without padding: only where the kernel fits.
    #[must_use]
    pub fn valid() -> Self {
        Self::default()
    }

    /// With as much around the input as makes the result as large as the input, for strides of 1.
    #[must_use]
    pub fn same() -> Self {
        Self::default().padding(WindowPadding::Same)
    }

    /// With so much before and after the input along each axis of space.
    #[must_use]
    pub fn padded(around: impl Into<Vec<(i64, i64)>>) -> Self {
        Self::default().padding(WindowPadding::Explicit(around.into()))
    }
}

impl Graph {
    /// The dot product: contracts the last axis of `x` with the last but one axis of `y` (its only
    /// one if `y` is a vector). A scalar multiplies. The dtypes promote.
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
    ///     "dot: axis 1 of left has size 4, axis 0 of right has size 2 (left is f32[3][4], right \
    ///      is f32[2][3])"
    /// );
    /// # Ok::<(), nxla_expr::Error>(())
    /// ```
    ///
    /// # Errors
    /// Contracted axes of different sizes; a name that two axes of the result would share.
    pub fn dot(&mut self, x: ExprId, y: ExprId) -> Result<ExprId> {
        let (x_rank, y_rank) = (self.shape(x).rank(), self.shape(y).rank());
        if x_rank == 0 || y_rank == 0 {
            return self.multiply(x, y);
        }
        let right = if y_rank == 1 { -1 } else { -2 };
        self.dot_general(x, &[-1], &[], y, &[right], &[])
    }

    /// Multiplies and sums over pairs of contracted axes, separately for each index of the batch
    /// axes, which must lead. The result has the batch axes, then the free axes of `x`, then
    /// those of `y`. The dtypes promote.
    ///
    /// # Errors
    /// Axes out of range or used twice; different numbers or sizes of paired axes; batch axes
    /// that do not lead; a name that two axes of the result would share.
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

    /// The sum of products along an axis of the result of multiplying, which has one size in both;
    /// the others broadcast. Complex numbers of `x` are conjugated. The dtypes promote.
    ///
    /// # Errors
    /// Shapes that do not broadcast; an axis out of range, or of another size in each.
    pub fn vecdot(&mut self, x: ExprId, y: ExprId, axis: i64) -> Result<ExprId> {
        let op = "vecdot";
        let left = if self.dtype(x).is_complex() { self.conjugate(x)? } else { x };
        let products = self.multiply(left, y).map_err(of_op(op))?;
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
        let axis = i64::try_from(at).expect("an axis is small");
        let sum = self.sum(products, Some(&[axis]), false)?;
        self.as_type(sum, self.dtype(products))
    }

    /// Matrix products over the last two axes; those before are batches, which broadcast. A vector
    /// counts as one row on the left and as one column on the right, which the result loses. The
    /// dtypes promote.
    ///
    /// A batch that only the left operand has is contracted as it is, with one right operand for
    /// all: `[8][64][384]` by `[384][384]` is a product of 512 rows.
    ///
    /// # Errors
    /// A scalar; shapes that do not fit; a name that two axes of the result would share.
    pub fn matmul(&mut self, x: ExprId, y: ExprId) -> Result<ExprId> {
        let (x_rank, y_rank) = (self.shape(x).rank(), self.shape(y).rank());
        if x_rank == 0 || y_rank == 0 {
            let (found, expected) = ("a scalar".into(), "at least one axis".into());
            let argument = if x_rank == 0 { "left" } else { "right" };
            return Err(self.error("matmul", ErrorKind::Shape { argument, found, expected }));
        }
        // Vectors, and one right operand for all rows, leave no batch to pair.
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

    /// The matrices of `x` for each index of a batch that its own broadcasts to.
    fn spread(&mut self, x: ExprId, batch: &Shape) -> Result<ExprId> {
        let own = self.shape(x);
        let matrix = &own[own.rank() - 2..];
        let shape: Shape = batch.iter().chain(matrix).copied().collect();
        self.broadcast(x, shape, None)
    }

    /// `y` without the batch axes, all of size 1, that follow the first `shared` ones of a batch
    /// which has `added` more axes in front.
    fn without_ones(&mut self, y: ExprId, added: usize, shared: usize) -> Result<ExprId> {
        let batch = self.shape(y).rank() - 2;
        let ones: Axes = (shared.saturating_sub(added)..batch).collect();
        if ones.is_empty() { Ok(y) } else { self.make(Op::Squeeze(ones), &[y]) }
    }

    /// Every element of `x` times every element of `y` (conjugated if complex), both flattened:
    /// a matrix of `x.size` rows and `y.size` columns.
    ///
    /// # Errors
    /// None for tensors; the result is fallible like that of every builder.
    pub fn outer(&mut self, x: ExprId, y: ExprId) -> Result<ExprId> {
        let (rows, columns) = (self.shape(x).size(), self.shape(y).size());
        let (row_name, column_name) = (self.vector_name(x), self.vector_name(y));
        let x = self.reshape_named(x, [rows, 1], Some(Names::new([row_name, None])))?;
        let y = if self.dtype(y).is_complex() { self.conjugate(y)? } else { y };
        let y = self.reshape_named(y, [1, columns], Some(Names::new([None, column_name])))?;
        self.multiply(x, y)
    }

    /// The product of Kronecker: each element of `x` times all of `y`, in a block at its place. The
    /// operand with fewer axes gets leading ones; names are dropped.
    ///
    /// # Errors
    /// A result too large to count.
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

    /// The name of the only axis.
    fn vector_name(&self, x: ExprId) -> Option<AxisName> {
        match self.tensor_type(x).names.as_deref() {
            Some([name]) => name.clone(),
            _ => None,
        }
    }

    /// The convolution (in fact cross-correlation: the kernel is not flipped) over all axes but
    /// batch and channel. The dtypes promote to a float.
    ///
    /// # Errors
    /// Fewer than three axes or different ranks; channels that do not fit; groups that do not
    /// divide, or groups of both kinds; permutations that are none; strides or dilations of 0.
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

    /// A permutation of the axes of `x`; the identity for `None`.
    fn permutation(&self, argument: &'static str, x: ExprId, axes: Option<&[i64]>) -> Result<Axes> {
        match axes {
            Some(axes) => nxla_tensor::normalize_axes(axes, self.shape(x).rank())
                .map(|axes| axes.into_iter().collect())
                .map_err(|error| self.invalid("conv", argument, error.to_string())),
            None => Ok((0..self.shape(x).rank()).collect()),
        }
    }
}

/// How many leading axes of `common` an operand has in full whose batch is `own`, if it repeats
/// along all the others.
fn shared_prefix(common: &Shape, own: &Shape) -> Option<usize> {
    let added = common.rank() - own.rank();
    let has = |axis: usize| axis >= added && own[axis - added] == common[axis];
    let shared = (0..common.rank()).take_while(|&axis| has(axis)).count();
    (shared..common.rank()).all(|axis| axis < added || own[axis - added] == 1).then_some(shared)
}
