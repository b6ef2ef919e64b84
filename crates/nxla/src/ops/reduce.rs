//! Functions that reduce axes.

use crate::expr::Expr;

/// Generates a reduction of all axes and one of some.
macro_rules! reductions {
    ($($(#[$doc:meta])* $all:ident $over:ident $build:ident;)*) => {
        impl Expr {
            $(
                $(#[$doc])*
                /// Over all axes, so the result is a scalar.
                #[must_use]
                #[track_caller]
                pub fn $all(&self) -> Expr {
                    self.then(|graph, x| Ok(graph.$build(x, None, false)?))
                }

                $(#[$doc])*
                /// Over these axes, negative ones counted from the end; with `keep_axes` they stay
                /// with size 1.
                #[must_use]
                #[track_caller]
                pub fn $over(&self, axes: &[i64], keep_axes: bool) -> Expr {
                    self.then(|graph, x| Ok(graph.$build(x, Some(axes), keep_axes)?))
                }
            )*
        }
    };
}

reductions! {
    /// The sum.
    sum sum_over sum;
    /// The product.
    product product_over product;
    /// The arithmetic mean.
    mean mean_over mean;
    /// The largest element.
    reduce_max reduce_max_over reduce_max;
    /// The smallest element.
    reduce_min reduce_min_over reduce_min;
    /// Whether all elements are non-zero.
    all all_over all;
    /// Whether any element is non-zero.
    any any_over any;
}
