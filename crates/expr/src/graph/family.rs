//! The ops of each family, as patterns.
//!
//! Every layer dispatches an op to the file of its family. The match in that file must also mention
//! the ops of all other families, which cannot occur. A `_` arm would also match a new op of the
//! same family. [`outside!`](crate::outside) lists the other ops instead, so a new op does not
//! compile until each layer handles it.

/// The ops of a family, as a pattern.
#[macro_export]
macro_rules! family_ops {
    (create) => {
        $crate::Op::Iota(_) | $crate::Op::Eye(_)
    };
    (elementwise) => {
        $crate::Op::Unary(_)
            | $crate::Op::Binary(_)
            | $crate::Op::Select
            | $crate::Op::Clip
            | $crate::Op::AsType(_)
            | $crate::Op::Bitcast(_)
    };
    (movement) => {
        $crate::Op::Reshape(_)
            | $crate::Op::Squeeze(_)
            | $crate::Op::Transpose(_)
            | $crate::Op::Reverse(_)
            | $crate::Op::Broadcast(_)
            | $crate::Op::Pad(_)
            | $crate::Op::Concatenate(_)
            | $crate::Op::Stack(_)
    };
    (reduce) => {
        $crate::Op::Reduce(..) | $crate::Op::ArgReduce(..) | $crate::Op::ReduceFun(_)
    };
    (window) => {
        $crate::Op::Window(..) | $crate::Op::WindowFun(_) | $crate::Op::WindowScatter(..)
    };
    (contract) => {
        $crate::Op::Dot(_) | $crate::Op::Conv(_)
    };
    (index) => {
        $crate::Op::Slice(_)
            | $crate::Op::PutSlice(_)
            | $crate::Op::Gather(_)
            | $crate::Op::IndexedAdd(_)
            | $crate::Op::IndexedPut(_)
            | $crate::Op::Sort(_)
            | $crate::Op::Argsort(..)
    };
    (linalg) => {
        $crate::Op::Fft(_)
            | $crate::Op::TriangularSolve(_)
            | $crate::Op::Cholesky
            | $crate::Op::Factorize(_)
    };
    (control) => {
        $crate::Op::Parameter(_)
            | $crate::Op::Constant(_)
            | $crate::Op::Tensor(_)
            | $crate::Op::Metadata(_)
            | $crate::Op::Elem(_)
            | $crate::Op::Cond(_)
            | $crate::Op::While(_)
            | $crate::Op::Hook(_)
            | $crate::Op::Block(_)
    };
}

/// The ops of all other families, as a pattern for the last arm of a family's rules.
#[macro_export]
macro_rules! outside {
    (create) => { $crate::outside!(@ elementwise movement reduce window contract index linalg control) };
    (elementwise) => { $crate::outside!(@ create movement reduce window contract index linalg control) };
    (movement) => { $crate::outside!(@ create elementwise reduce window contract index linalg control) };
    (reduce) => { $crate::outside!(@ create elementwise movement window contract index linalg control) };
    (window) => { $crate::outside!(@ create elementwise movement reduce contract index linalg control) };
    (contract) => { $crate::outside!(@ create elementwise movement reduce window index linalg control) };
    (index) => { $crate::outside!(@ create elementwise movement reduce window contract linalg control) };
    (linalg) => { $crate::outside!(@ create elementwise movement reduce window contract index control) };
    (control) => { $crate::outside!(@ create elementwise movement reduce window contract index linalg) };
    (@ $($family:ident)+) => { $($crate::family_ops!($family))|+ };
}
