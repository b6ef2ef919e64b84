//! Dot-product attention.

use nxla_tensor::{Scalar, Shape};

use crate::graph::{ErrorKind, ExprId, Graph, Result};

/// Options of [`Graph::dot_product_attention`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Attention {
    /// A tensor that is added to the scaled products.
    pub bias: Option<ExprId>,
    /// A tensor that is zero where a query must not attend to a key.
    pub mask: Option<ExprId>,
    /// The factor of the products; by default one over the root of the head size.
    pub scale: Option<f64>,
    /// True if a query attends only to keys at its own position and at earlier positions.
    pub causal: bool,
}

impl Graph {
    /// Returns means of the values, weighted by the softmax of the products of queries and keys.
    /// Source: A. Vaswani et al., "Attention is all you need" (2017). Queries have the shape `[..,
    /// T, N, H]`, keys and values `[.., S, K, H]`. Each of the `K` heads serves `N / K` query heads
    /// (J. Ainslie et al., "GQA", 2023). Bias and mask broadcast to `[.., N, T, S]`. A query
    /// without any permitted key attends to all.
    ///
    /// # Errors
    /// Returns an error for shapes that do not fit or complex numbers.
    pub fn dot_product_attention(
        &mut self,
        [query, key, value]: [ExprId; 3],
        options: Attention,
    ) -> Result<ExprId> {
        let (shape, heads) = self.attention_shape([query, key, value])?;
        let names = self.tensor_type(query).names.clone();
        let (query, dtype) = self.widen_to_float(query)?;
        let ((key, _), (value, _)) = (self.widen_to_float(key)?, self.widen_to_float(value)?);
        let rank = shape.rank();
        let (batch, [queries, all, size]) =
            (&shape[..rank - 3], [shape[rank - 3], shape[rank - 2], shape[rank - 1]]);
        let keys = self.shape(key)[rank - 3];
        let grouped: Shape =
            batch.iter().copied().chain([queries, heads, all / heads, size]).collect();
        let query = self.rename(query, None)?;
        let query = self.reshape(query, grouped)?;
        let scale = options.scale.unwrap_or_else(|| one_over_root(size));
        let scale = self.weak_number(scale.into(), query)?;
        let query = self.multiply(query, scale)?;
        let products = self.einsum("...tkgh,...skh->...kgts", &[query, key], None)?;
        let spread: Shape = batch.iter().copied().chain([all, queries, keys]).collect();
        let mut logits = self.reshape(products, spread.clone())?;
        if let Some(bias) = options.bias {
            let bias = self.check_broadcast("bias", bias, &spread)?;
            let bias = self.as_type(bias, self.dtype(logits))?;
            logits = self.add(logits, bias)?;
        }
        logits = self.mask_logits(logits, options, &spread)?;
        let weights = self.softmax(logits, -1)?;
        let groups: Shape =
            batch.iter().copied().chain([heads, all / heads, queries, keys]).collect();
        let weights = self.reshape(weights, groups)?;
        let means = self.einsum("...kgts,...skh->...tkgh", &[weights, value], None)?;
        let last = self.shape(value)[rank - 1];
        let result: Shape = batch.iter().copied().chain([queries, all, last]).collect();
        let means = self.reshape_named(means, result, names)?;
        self.as_type(means, dtype)
    }

    /// Returns the shape of the queries and the number of key heads.
    fn attention_shape(&self, [query, key, value]: [ExprId; 3]) -> Result<(Shape, usize)> {
        let shape = self.shape(query).clone();
        let rank = shape.rank();
        let wrong = |argument: &'static str, id: ExprId, expected: String| {
            let found = self.tensor_type(id).to_string();
            self.error("dot_product_attention", ErrorKind::Shape { argument, found, expected })
        };
        if rank < 3 {
            return Err(wrong("query", query, "axes for queries, heads and features".into()));
        }
        let of_key = self.shape(key);
        let (batch, own) = (&shape[..rank - 3], &shape[rank - 3..]);
        let fits = of_key.rank() == rank
            && of_key[..rank - 3] == *batch
            && of_key[rank - 1] == own[2]
            && of_key[rank - 2] > 0
            && own[1].is_multiple_of(of_key[rank - 2]);
        if !fits {
            let why = format!(
                "the shape (…, keys, heads, features) with the leading sizes {batch:?}, a number of \
                 heads that divides {}, and {} features",
                own[1], own[2]
            );
            return Err(wrong("key", key, why));
        }
        let of_value = self.shape(value);
        if of_value.rank() != rank || of_value[..rank - 1] != of_key[..rank - 1] {
            return Err(wrong("value", value, format!("{:?} and features", &of_key[..rank - 1])));
        }
        Ok((shape.clone(), of_key[rank - 2]))
    }

    /// Checks that a tensor broadcasts to a shape.
    fn check_broadcast(
        &mut self,
        argument: &'static str,
        x: ExprId,
        shape: &Shape,
    ) -> Result<ExprId> {
        let x = self.rename(x, None)?;
        let common = nxla_tensor::broadcast_shapes(self.shape(x), shape);
        if common.is_ok_and(|common| common == *shape) {
            return Ok(x);
        }
        let found = self.tensor_type(x).to_string();
        let expected = format!("a shape that broadcasts to {:?}", &shape[..]);
        Err(self.error("dot_product_attention", ErrorKind::Shape { argument, found, expected }))
    }

    /// Replaces masked logits by a large negative finite value, so that the softmax of a fully
    /// masked row is not NaN.
    fn mask_logits(&mut self, logits: ExprId, options: Attention, shape: &Shape) -> Result<ExprId> {
        let mut seen = match options.mask {
            Some(mask) => {
                let mask = self.check_broadcast("mask", mask, shape)?;
                let zero = self.zero_like(mask)?;
                Some(self.not_equal(mask, zero)?)
            }
            None => None,
        };
        if options.causal {
            let rank = shape.rank();
            let before = self.tri(shape[rank - 2], shape[rank - 1], 0)?;
            seen = Some(match seen {
                Some(seen) => self.logical_and(seen, before)?,
                None => before,
            });
        }
        let Some(seen) = seen else { return Ok(logits) };
        let dtype = self.dtype(logits);
        let largest = dtype.float_limits().expect("products are floats").max;
        let low = self.scalar_constant(Scalar::Float(-0.7 * largest), dtype)?;
        self.select(seen, logits, low)
    }
}

#[expect(clippy::cast_precision_loss, reason = "it is a factor")]
fn one_over_root(size: usize) -> f64 {
    1.0 / (size.max(1) as f64).sqrt()
}
