//! The functions that make, drop and align vectorized axes, of traced values and of data.

use nxla_expr::{ExprId, Graph, Source, TensorType};

use super::VectorAxes;
use super::control::Vectorized;
use super::moves::{EntryAxes, Move, NewVector, align_vectors, select_own_entries, separate};
use crate::apply::{Ids, called_once};
use crate::eager::EagerOp;
use crate::error::{Error, Result};
use crate::expr::RawExpr;
use crate::operand::Value;
use crate::tensor::RawTensor;
use crate::tracers::is_entry_axis;

impl RawExpr {
    /// The first axes, one for each name, become vectorized: functions leave them alone and work
    /// on each entry. A name can come with the size that the axis must have.
    ///
    /// # Errors
    /// Returns an error for fewer axes than names, other sizes, or names that exist already.
    pub fn vectorize(&self, axes: &[NewVector]) -> Result<RawExpr> {
        let mut x = self.trace().safe(self)?;
        for (position, axis) in
            axes.iter().enumerate().filter(|(_, axis)| is_entry_axis(&axis.name))
        {
            let node = x.id()?;
            let (id, vectors) = x.trace().build(|graph| {
                select_own_entries(graph, node, x.vectors(), &axis.name, position)
            })?;
            x = RawExpr::with_vectors(x.trace().clone(), id, vectors);
        }
        x.apply_move(|own, ty| Move::vectorize(own, ty, axes))
    }

    /// Vectorized axes become ordinary ones again, in front of the others; with `keep_names`
    /// their names become names of axes.
    ///
    /// # Errors
    /// Returns an error for a value of a finished trace.
    pub fn devectorize(&self, keep_names: bool) -> Result<RawExpr> {
        self.apply_move(|own, ty| Ok(Move::devectorize(own, ty, keep_names)))
    }

    /// Reshapes all elements, in row-major order, to other vectorized axes and another shape. One
    /// size among all of them may be inferred.
    ///
    /// # Errors
    /// Returns an error for sizes whose product differs from the number of elements or several
    /// unknown sizes.
    pub fn revectorize(&self, axes: &[NewVector], target: &EntryAxes) -> Result<RawExpr> {
        self.apply_move(|own, ty| Move::revectorize(own, ty, axes, target))
    }

    /// The values with the same vectorized axes, in the order of their first use. Axes that a
    /// value lacks have size 1. With `align_ranks`, entries get axes of size 1 in front
    /// until all have as many.
    ///
    /// # Errors
    /// Returns an error for values of several traces or axes of equal names and different sizes.
    pub fn reshape_vectors(exprs: &[RawExpr], align_ranks: bool) -> Result<Vec<RawExpr>> {
        Self::align_handles(exprs, "reshape_vectors", align_ranks, false)
    }

    /// [`RawExpr::reshape_vectors`], and then repeated to the full size of each axis.
    ///
    /// # Errors
    /// Returns the errors of [`RawExpr::reshape_vectors`].
    pub fn broadcast_vectors(exprs: &[RawExpr], align_ranks: bool) -> Result<Vec<RawExpr>> {
        Self::align_handles(exprs, "broadcast_vectors", align_ranks, true)
    }

    /// Makes a vectorized axis the first axis of the entries. A value without this axis is repeated
    /// along it.
    ///
    /// # Errors
    /// Returns an error for a value of a finished trace.
    pub(crate) fn devectorize_axis(&self, name: &str, size: usize) -> Result<RawExpr> {
        let node = self.id()?;
        let (id, vectors) =
            self.trace().build(|graph| separate(graph, node, self.vectors(), name, size))?;
        Ok(RawExpr::with_vectors(self.trace().clone(), id, vectors))
    }

    fn apply_move(
        &self,
        plan: impl FnOnce(&VectorAxes, &TensorType) -> Result<Move>,
    ) -> Result<RawExpr> {
        let node = self.id()?;
        let (id, vectors) = self.trace().build(|graph| {
            let entry = self.vectors().entry_type(graph.tensor_type(node));
            let plan = plan(self.vectors(), &entry)?;
            Ok::<_, Error>((plan.build(graph, node)?, plan.vectors))
        })?;
        Ok(RawExpr::with_vectors(self.trace().clone(), id, vectors))
    }

    fn align_handles(
        exprs: &[RawExpr],
        function: &str,
        align_ranks: bool,
        repeat: bool,
    ) -> Result<Vec<RawExpr>> {
        let Some(first) = exprs.first() else { return Ok(Vec::new()) };
        let trace = first.trace();
        let mut operands: Vec<Vectorized> = Vec::with_capacity(exprs.len());
        for expr in exprs {
            let expr = trace.safe(expr)?;
            operands.push((expr.id()?, expr.vectors().clone()));
        }
        let results =
            trace.build(|graph| align_vectors(graph, function, &operands, align_ranks, repeat))?;
        let expr = |(id, vectors)| RawExpr::with_vectors(trace.clone(), id, vectors);
        Ok(results.into_iter().map(expr).collect())
    }
}

impl RawTensor {
    /// The first axes, one for each name, become vectorized, as for [`RawExpr::vectorize`]. The data
    /// stays where it is.
    ///
    /// # Errors
    /// Returns an error for fewer axes than names, other sizes, or names that exist already.
    pub fn vectorize(&self, axes: &[NewVector]) -> Result<RawTensor> {
        self.apply_move(Move::vectorize(self.vectors(), &self.ty(), axes)?)
    }

    /// Vectorized axes become ordinary ones again, as for [`RawExpr::devectorize`].
    ///
    /// # Errors
    /// Returns an error if the tensor cannot be read or a device fails to reshape it.
    pub fn devectorize(&self, keep_names: bool) -> Result<RawTensor> {
        self.apply_move(Move::devectorize(self.vectors(), &self.ty(), keep_names))
    }

    /// All elements under other vectorized axes and another shape, as for [`RawExpr::revectorize`].
    ///
    /// # Errors
    /// Returns an error for sizes whose product differs from the number of elements or several
    /// unknown sizes.
    pub fn revectorize(&self, axes: &[NewVector], target: &EntryAxes) -> Result<RawTensor> {
        self.apply_move(Move::revectorize(self.vectors(), &self.ty(), axes, target)?)
    }

    /// The tensors with the same vectorized axes, as for [`RawExpr::reshape_vectors`].
    ///
    /// # Errors
    /// Returns an error for vectorized axes of equal names and different sizes.
    pub fn reshape_vectors(tensors: &[RawTensor], align_ranks: bool) -> Result<Vec<RawTensor>> {
        Self::align_handles(tensors, "reshape_vectors", align_ranks, false)
    }

    /// The tensors repeated to the same vectorized axes, as for [`RawExpr::broadcast_vectors`].
    ///
    /// # Errors
    /// Returns an error for vectorized axes of equal names and different sizes.
    pub fn broadcast_vectors(tensors: &[RawTensor], align_ranks: bool) -> Result<Vec<RawTensor>> {
        Self::align_handles(tensors, "broadcast_vectors", align_ranks, true)
    }

    fn apply_move(&self, plan: Move) -> Result<RawTensor> {
        let full = plan.full();
        let data = match self.data() {
            data if *data.shape() == full.shape => data.clone().with_names(full.names)?,
            RawTensor::Host(host) => {
                RawTensor::Host(host.reshape(full.shape)?.with_names(full.names)?)
            }
            data => {
                let built = compute("vectorize", std::slice::from_ref(data), |graph, ids| {
                    Ok(vec![(plan.build(graph, ids[0])?, VectorAxes::NONE)])
                });
                built?.remove(0)
            }
        };
        Ok(data.with_vectors(plan.vectors))
    }

    fn align_handles(
        tensors: &[RawTensor],
        function: &str,
        align_ranks: bool,
        repeat: bool,
    ) -> Result<Vec<RawTensor>> {
        compute(function, tensors, |graph, ids| {
            let vectors = tensors.iter().map(|tensor| tensor.vectors().clone());
            let operands: Vec<Vectorized> = ids.iter().copied().zip(vectors).collect();
            align_vectors(graph, function, &operands, align_ranks, repeat)
        })
    }
}

/// Computes with data, whose vectorized axes are ordinary ones, where it is.
fn compute(
    function: &str,
    tensors: &[RawTensor],
    build: impl FnOnce(&mut Graph, &[ExprId]) -> Result<Vec<Vectorized>>,
) -> Result<Vec<RawTensor>> {
    let data: Vec<Value> = tensors.iter().map(|x| Value::Tensor(x.data().clone())).collect();
    let mut vectors = Vec::new();
    let operation = EagerOp::new(
        &data,
        Source::default,
        &mut called_once(|graph, ids| {
            let (ids, own): (Ids, Vec<VectorAxes>) = build(graph, ids)?.into_iter().unzip();
            vectors = own;
            Ok(ids)
        }),
    )?;
    let results = operation.run(|| function, None)?.into_iter().zip(vectors);
    Ok(results.map(|(data, own)| data.with_vectors(own)).collect())
}
