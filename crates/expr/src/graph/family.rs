//! The ops of each family, as patterns.
//!
//! Every layer dispatches an op to the file of its family. The match in that file must also mention
//! the ops of all other families, which cannot occur. A `_` arm would also match a new op of the
//! same family. [`outside!`](crate::outside) lists the other ops instead, so a new op does not
//! compile until each layer handles it.

/// The ops of a family, or of several families after `@`, as a pattern.
///
/// A match that names a whole family accepts the family's later ops too. Use it only where an arm
/// is correct for every op of the family, and list the ops where each op is owed a rule.
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
    (@ $($family:ident)+) => {
        $($crate::family_ops!($family))|+
    };
}

/// The ops of all other families, as a pattern for the last arm of a family's rules.
#[macro_export]
macro_rules! outside {
    (create) => { $crate::family_ops!(@ elementwise movement reduce window contract index linalg control) };
    (elementwise) => { $crate::family_ops!(@ create movement reduce window contract index linalg control) };
    (movement) => { $crate::family_ops!(@ create elementwise reduce window contract index linalg control) };
    (reduce) => { $crate::family_ops!(@ create elementwise movement window contract index linalg control) };
    (window) => { $crate::family_ops!(@ create elementwise movement reduce contract index linalg control) };
    (contract) => { $crate::family_ops!(@ create elementwise movement reduce window index linalg control) };
    (index) => { $crate::family_ops!(@ create elementwise movement reduce window contract linalg control) };
    (linalg) => { $crate::family_ops!(@ create elementwise movement reduce window contract index control) };
    (control) => { $crate::family_ops!(@ create elementwise movement reduce window contract index linalg) };
}
