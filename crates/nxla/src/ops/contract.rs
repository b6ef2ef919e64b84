//! Contractions and convolutions.

use nxla_expr::ErrorKind;
use nxla_tensor::to_i64;

use super::axes::Axis;
use super::{Convolution, joiners, methods};

methods! {
    /// Returns the Kronecker product.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let product = Tensor::from(vec![1, 10]).kron(Tensor::from(vec![1, 2]))?;
    /// assert_eq!(product.to_vec::<i32>()?, [1, 2, 10, 20]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn kron(x, other) one |graph| graph.kron(x, other);

    /// Returns the dot product: contracts the last axis with the second-to-last axis of the other
    /// (the only axis of a vector). A scalar multiplies. The dtypes are promoted.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::new(vec![1, 2, 3, 4], [2, 2])?;
    /// assert_eq!(x.dot(Tensor::from(vec![1, 10]))?.to_vec::<i32>()?, [21, 43]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn dot(x, other) one |graph| graph.dot(x, other);

    /// Contracts the axes `contract` of the left and right operand, pair by pair. The result has
    /// the axes `batch` in front, then the other axes of the left operand, then the other axes of
    /// the right operand.
    ///
    /// ```
    /// use nxla::{DType, Tensor};
    ///
    /// let x = Tensor::iota([5, 2, 3], None, DType::F32)?;
    /// let y = Tensor::iota([5, 3, 4], None, DType::F32)?;
    /// let products = x.dot_general(&y, [&[2], &[1]], [&[0], &[0]])?;
    /// assert_eq!(products.shape()[..], [5, 2, 4]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn dot_general(x, other; contract: [&[i64]; 2], batch: [&[i64]; 2]) one |graph|
        graph.dot_general(x, contract[0], batch[0], other, contract[1], batch[1]);

    /// Contracts the last `count` axes with the first `count` axes of the other.
    ///
    /// ```
    /// use nxla::{DType, Tensor};
    ///
    /// let (x, y) = (Tensor::ones([2, 3, 4], DType::F32)?, Tensor::ones([3, 4, 5], DType::F32)?);
    /// assert_eq!(x.tensordot(y, 2)?.shape()[..], [2, 5]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn tensordot(x, other; count: usize) one |graph| {
        let shared = graph.shape(x).rank().min(graph.shape(other).rank());
        if count > shared {
            let why = format!("must be at most {shared}, the smaller rank; got {count}");
            return Err(graph.error("tensordot", ErrorKind::invalid("count", why)).into());
        }
        let count = to_i64(count);
        let (left, right): (Vec<i64>, Vec<i64>) = ((-count..0).collect(), (0..count).collect());
        graph.dot_general(x, &left, &[], other, &right, &[])
    };

    /// Returns matrix products over the last two axes; leading axes are batches, which broadcast.
    ///
    /// ```
    /// use nxla::{DType, Tensor};
    ///
    /// let batch = Tensor::ones([7, 2, 3], DType::F32)?;
    /// let matrix = Tensor::ones([3, 4], DType::F32)?;
    /// assert_eq!(batch.matmul(&matrix)?.shape()[..], [7, 2, 4]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn matmul(x, other) one |graph| graph.matmul(x, other);

    /// Returns the sum of products along an axis of both; complex numbers on the left are
    /// conjugated.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let (x, y) = (Tensor::from([[1, 2], [3, 4]]), Tensor::from([1, 10]));
    /// assert_eq!(x.vecdot(y, -1)?.to_vec::<i32>()?, [21, 43]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn vecdot(x, other; axis into Axis) one |graph|
        graph.vecdot(x, other, axis.of_operands(graph, [x, other])?);

    /// Returns all products of an element of this and an element of the other; the result has the
    /// axes of both.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let product = Tensor::from([1, 2]).outer(Tensor::from([1, 10]))?;
    /// assert_eq!(product.to_vec::<i32>()?, [1, 10, 2, 20]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn outer(x, other) one |graph| graph.outer(x, other);

    /// Returns a convolution with a kernel, whose axes are output channel, input channel and
    /// spatial axes. The axes of the operand are batch, channel and spatial axes; [`Convolution`]
    /// supports other layouts.
    ///
    /// ```
    /// use nxla::{Convolution, DType, Tensor};
    ///
    /// let image = Tensor::ones([1, 3, 8, 8], DType::F32)?;
    /// let kernel = Tensor::ones([16, 3, 3, 3], DType::F32)?;
    /// let features = image.conv(&kernel, &Convolution::same().strides([2, 2]))?;
    /// assert_eq!(features.shape()[..], [1, 16, 4, 4]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn conv(x, kernel; options: &Convolution) one |graph| graph.conv(x, kernel, options);
}

joiners! {
    /// Returns the sum of products for Einstein subscripts: `ij,jk->ik` is a matrix product.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::new(vec![1, 2, 3, 4], [2, 2])?;
    /// assert_eq!(Tensor::einsum("ij,jk->ik", &[&x, &x])?.to_vec::<i32>()?, [7, 10, 15, 22]);
    /// assert_eq!(Tensor::einsum("ii", &[&x])?.to_vec::<i32>()?, [5]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn einsum(operands | subscripts: &str) one |graph| graph.einsum(subscripts, operands, None);
}
