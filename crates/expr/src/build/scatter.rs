//! Scatters that combine all updates of an element by an op other than a sum.

use nxla_tensor::{DType, Scalar};

use super::SliceStart;
use crate::graph::{BlockKind, Combine, ExprId, Graph, Op, Result};

impl Graph {
    /// Each element of the vector `x` combined with all elements of `updates` whose index is its place;
    /// `indices` has a last axis of one, as in [`Graph::indexed_add`]. Indices out of range update nothing. A block, whose default sorts.
    pub(crate) fn scatter(
        &mut self,
        x: ExprId,
        indices: ExprId,
        updates: ExprId,
        op: Combine,
    ) -> Result<ExprId> {
        if self.dtype(x).is_pred() {
            return self.scattered_runs(x, indices, updates, op);
        }
        let kind = BlockKind::Scatter { op };
        let results = self.known_block(kind, &[x, indices, updates], |graph, parameters| {
            let &[x, indices, updates] = parameters else {
                unreachable!("there are three operands")
            };
            Ok::<_, crate::Error>(vec![graph.scattered_runs(x, indices, updates, op)?])
        })?;
        Ok(results[0])
    }

    /// Brings updates of one place together: in the order of their places, each becomes the
    /// combination of those before it at the same place (W. D. Hillis and G. L. Steele, Data parallel
    /// algorithms, 1986), and the last of each place is written.
    fn scattered_runs(
        &mut self,
        x: ExprId,
        indices: ExprId,
        updates: ExprId,
        op: Combine,
    ) -> Result<ExprId> {
        let places = self.flatten(indices, None)?;
        let order = self.argsort(places, 0, false, true, DType::S32)?;
        let (places, mut value) = (self.take(places, order, 0)?, self.take(updates, order, 0)?);
        let count = self.shape(places)[0];
        let mut distance = 1;
        while distance < count {
            let rest = count - distance;
            let here = self.slice_along_axis(places, SliceStart::at(distance), rest, 0, 1)?;
            let before = self.slice_along_axis(places, 0, rest, 0, 1)?;
            let same = self.equal(here, before)?;
            let later = self.slice_along_axis(value, SliceStart::at(distance), rest, 0, 1)?;
            let earlier = self.slice_along_axis(value, 0, rest, 0, 1)?;
            let combined = self.binary(op.binary(), earlier, later)?;
            let combined = self.select(same, combined, later)?;
            let first = self.slice_along_axis(value, 0, distance, 0, 1)?;
            value = self.concatenate(&[first, combined], 0)?;
            distance *= 2;
        }
        let old = self.take(x, places, 0)?;
        let new = self.binary(op.binary(), old, value)?;
        let new = self.as_type(new, self.dtype(x))?;
        // Those that are not the last of their place are sent where nothing is written.
        let next = self.slice_along_axis(places, 1, count - 1, 0, 1)?;
        let nowhere = i64::try_from(self.shape(x)[0]).expect("an axis has below 2^63 elements");
        let nowhere = self.scalar_constant(Scalar::Int(nowhere), self.dtype(places))?;
        let one = self.broadcast(nowhere, [1], None)?;
        let next = self.concatenate(&[next, one], 0)?;
        let is_last = self.not_equal(places, next)?;
        let target = self.select(is_last, places, nowhere)?;
        let target = self.new_axis(target, -1, None)?;
        self.make(Op::IndexedPut([0].into()), &[x, target, new])
    }
}
