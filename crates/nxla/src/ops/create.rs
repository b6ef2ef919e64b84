//! Functions that create tensors, and diagonals.

use nxla_expr::{ErrorKind, Graph, Result, TensorType};
use nxla_tensor::{DType, Number, Scalar, Shape};

use super::{joiners, makers, methods};

makers! {
    /// Returns the values `0, 1, 2, …` along an axis, repeated along the other axes, or over all
    /// elements in row-major order without an axis.
    ///
    /// ```
    /// use nxla::{DType, Tensor};
    ///
    /// assert_eq!(Tensor::iota([2, 2], None, DType::S32)?.to_vec::<i32>()?, [0, 1, 2, 3]);
    /// assert_eq!(Tensor::iota([2, 2], Some(0), DType::S32)?.to_vec::<i32>()?, [0, 0, 1, 1]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn iota(shape into Shape, axis: Option<i64>, dtype: DType)
        |graph| graph.iota(shape, axis, dtype);

    /// Returns ones where the last two indices are equal, and zeros elsewhere.
    ///
    /// ```
    /// use nxla::{DType, Tensor};
    ///
    /// assert_eq!(Tensor::eye([2, 2], DType::U8)?.to_vec::<u8>()?, [1, 0, 0, 1]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[doc(alias = "identity")]
    fn eye(shape into Shape, dtype: DType) |graph| graph.eye(shape, dtype);

    /// Returns a `pred` mask that is true on and below the diagonal `offset` columns right of the
    /// main diagonal.
    ///
    /// ```
    /// use nxla::{DType, Tensor};
    ///
    /// assert_eq!(Tensor::tri(2, 2, 0)?.as_type(DType::U8)?.to_vec::<u8>()?, [1, 0, 1, 1]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn tri(rows: usize, columns: usize, offset: i64) |graph| graph.tri(rows, columns, offset);

    /// Returns `steps` evenly spaced values from `start` to `stop`. With `endpoint`, the last value
    /// is `stop`; otherwise `stop` would be the next value.
    ///
    /// ```
    /// use nxla::{DType, Tensor};
    ///
    /// let x = Tensor::linspace(0.0, 1.0, 5, true, DType::F32)?;
    /// assert_eq!(x.to_vec::<f32>()?, [0.0, 0.25, 0.5, 0.75, 1.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn linspace(start: f64, stop: f64, steps: usize, endpoint: bool, dtype: DType)
        |graph| graph.linspace(start, stop, steps, endpoint, dtype);

    /// Returns `start, start + step, …` up to and excluding `stop`.
    ///
    /// ```
    /// use nxla::{DType, Tensor};
    ///
    /// assert_eq!(Tensor::arange(5.0, 0.0, -2.0, DType::S32)?.to_vec::<i32>()?, [5, 3, 1]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn arange(start: f64, stop: f64, step: f64, dtype: DType)
        |graph| graph.arange(start, stop, step, dtype);

    /// Returns a tensor filled with one value. Integer dtypes truncate floats; a number outside of
    /// the range of an integer dtype and a complex number for a real dtype are errors.
    ///
    /// ```
    /// use nxla::{DType, Tensor};
    ///
    /// assert_eq!(Tensor::full([2], 7, DType::U8)?.to_vec::<u8>()?, [7, 7]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn full(shape into Shape, number into Number, dtype: DType)
        |graph| full(graph, number, TensorType::new(dtype, shape));

    /// Returns zeros.
    ///
    /// ```
    /// use nxla::{DType, Tensor};
    ///
    /// assert_eq!(Tensor::zeros([2], DType::F32)?.to_vec::<f32>()?, [0.0, 0.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn zeros(shape into Shape, dtype: DType)
        |graph| graph.constant(Scalar::zero(dtype), TensorType::new(dtype, shape));

    /// Returns ones.
    ///
    /// ```
    /// use nxla::{DType, Tensor};
    ///
    /// assert_eq!(Tensor::ones([2], DType::F32)?.to_vec::<f32>()?, [1.0, 1.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn ones(shape into Shape, dtype: DType)
        |graph| graph.constant(Scalar::one(dtype), TensorType::new(dtype, shape));
}

/// Creates a constant of a type. An integer dtype must hold the number, and truncates floats.
fn full(graph: &mut Graph, number: Number, ty: TensorType) -> Result<nxla_expr::ExprId> {
    let refused = |graph: &Graph, error: nxla_tensor::NumberError| {
        graph.error("full", ErrorKind::invalid("value", error.to_string()))
    };
    let value = number.to_scalar().map_err(|error| refused(graph, error))?;
    if !number.fits(ty.dtype) {
        let why = format!("must fit {}; got {number}", ty.dtype);
        return Err(graph.error("full", ErrorKind::invalid("value", why)));
    }
    if matches!(number, Number::Complex(..)) && !ty.dtype.is_complex() {
        let why = format!("must be a real number for {}; got {number}", ty.dtype);
        return Err(graph.error("full", ErrorKind::invalid("value", why)));
    }
    let keeps = ty.dtype.is_float() || ty.dtype.is_complex();
    graph.constant(if keeps { value } else { value.cast(ty.dtype) }, ty)
}

methods! {
    /// Returns zeros of the same dtype, shape and names.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// assert_eq!(Tensor::from([7u8, 8]).zeros_like()?.to_vec::<u8>()?, [0, 0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn zeros_like(x) one |graph| {
        let ty = graph.tensor_type(x).clone();
        graph.constant(Scalar::zero(ty.dtype), ty)
    };

    /// Returns ones of the same dtype, shape and names.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// assert_eq!(Tensor::from([7u8, 8]).ones_like()?.to_vec::<u8>()?, [1, 1]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn ones_like(x) one |graph| {
        let ty = graph.tensor_type(x).clone();
        graph.constant(Scalar::one(ty.dtype), ty)
    };

    /// Returns a tensor of the same dtype, shape and names, filled with one value.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// assert_eq!(Tensor::from([7u8, 8]).full_like(3)?.to_vec::<u8>()?, [3, 3]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn full_like(x; number into Number) one |graph| {
        let ty = graph.tensor_type(x).clone();
        full(graph, number, ty)
    };

    /// Returns `steps` evenly spaced values from each element to the corresponding element of
    /// `stop`, along a new last axis. See [`linspace`](Self::linspace).
    ///
    /// ```
    /// use nxla::{DType, Tensor};
    ///
    /// let (from, to) = (Tensor::from([0.0f32, 10.0]), Tensor::from([2.0f32, 30.0]));
    /// let x = from.linspace_to(to, 3, true, DType::F32)?;
    /// assert_eq!(x.to_vec::<f32>()?, [0.0, 1.0, 2.0, 10.0, 20.0, 30.0]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn linspace_to(x, stop; steps: usize, endpoint: bool, dtype: DType) one |graph|
        graph.linspace_between(x, stop, steps, endpoint, dtype, None);

    /// Returns the lower triangle of the last two axes, with zeros above the diagonal `offset`
    /// columns right of the main diagonal.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// assert_eq!(Tensor::from([[1, 2], [3, 4]]).tril(0)?.to_vec::<i32>()?, [1, 0, 3, 4]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn tril(x; offset: i64) one |graph| graph.tril(x, offset);

    /// Returns the upper triangle of the last two axes, with zeros below the diagonal `offset`
    /// columns right of the main diagonal.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// assert_eq!(Tensor::from([[1, 2], [3, 4]]).triu(0)?.to_vec::<i32>()?, [1, 2, 0, 4]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn triu(x; offset: i64) one |graph| graph.triu(x, offset);

    /// Returns the diagonal of the last two axes `offset` columns right of the main diagonal.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::new(vec![1, 2, 3, 4], [2, 2])?;
    /// assert_eq!(x.take_diagonal(0)?.to_vec::<i32>()?, [1, 4]);
    /// assert_eq!(x.take_diagonal(1)?.to_vec::<i32>()?, [2]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn take_diagonal(x; offset: i64) one |graph| graph.take_diagonal(x, offset);

    /// Returns a matrix of zeros with the elements of the last axis on the diagonal `offset`
    /// columns right of the main diagonal.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// assert_eq!(Tensor::from([1, 2]).make_diagonal(0)?.to_vec::<i32>()?, [1, 0, 0, 2]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn make_diagonal(x; offset: i64) one |graph| graph.make_diagonal(x, offset);

    /// Replaces the diagonal `offset` columns right of the main diagonal.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let x = Tensor::from([[1, 2], [3, 4]]).put_diagonal(Tensor::from([0, 9]), 0)?;
    /// assert_eq!(x.to_vec::<i32>()?, [0, 2, 3, 9]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn put_diagonal(x, diagonal; offset: i64) one |graph| graph.put_diagonal(x, diagonal, offset);
}

joiners! {
    /// Broadcasts vectors over a grid: result `i` has the elements of vector `i` along axis `i`,
    /// repeated along the other axes.
    ///
    /// ```
    /// use nxla::Tensor;
    ///
    /// let grid = Tensor::meshgrid(&[Tensor::from(vec![1, 2]), Tensor::from(vec![3, 4])])?;
    /// assert_eq!(grid[0].to_vec::<i32>()?, [1, 1, 2, 2]);
    /// assert_eq!(grid[1].to_vec::<i32>()?, [3, 4, 3, 4]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    fn meshgrid(vectors) many |graph| graph.meshgrid(vectors);
}
