//! Loops that count down, written as loops that count up.
//!
//! XLA knows before a loop runs how often it will go round, but only if it counts up. Where it does not
//! know, a device of its own is asked after each trip whether there is one more, which takes longer
//! than most trips. The derivative of a loop counts down.

use nxla_expr::{Counter, ExprId, Graph, While, counter};
use nxla_tensor::{Scalar, Shape};

use crate::context::Cx;
use crate::types::Ty;
use crate::writer::Value;

/// A state that counts down over a known number of trips. In the text it is how many of them are done.
#[derive(Clone, Copy)]
pub(crate) struct Countdown(Counter);

impl Countdown {
    /// The countdown that a loop is, if it is one. Trips are counted in the counter's dtype, which is
    /// `s32` at the narrowest.
    pub(crate) fn of(graph: &Graph, op: &While, operands: &[ExprId]) -> Option<Self> {
        let found = counter(graph, op, operands)?;
        let is_counted = i32::try_from(found.trips).is_ok();
        (found.is_exact && found.step < 0 && is_counted).then_some(Self(found))
    }

    /// Which of the loop's states it is.
    pub(crate) fn place(self) -> usize {
        self.0.state
    }

    /// No trips are done.
    pub(crate) fn start(cx: &mut Cx<'_>, ty: Ty) -> Value {
        number(cx, 0, ty)
    }

    /// Whether there is one more trip.
    pub(crate) fn goes_on(self, cx: &mut Cx<'_>, done: Value) -> Value {
        let trips = number(cx, self.trips(), done.ty);
        cx.compare("LT", done, trips)
    }

    /// One more trip is done.
    pub(crate) fn next(cx: &mut Cx<'_>, done: Value) -> Value {
        let one = number(cx, 1, done.ty);
        cx.uniform("stablehlo.add", &[done, one])
    }

    /// The state as the loop's body knows it.
    pub(crate) fn state(self, cx: &mut Cx<'_>, done: Value) -> Value {
        let first = number(cx, self.0.first, done.ty);
        let way = match self.0.step {
            -1 => done,
            step => {
                let stride = number(cx, -step, done.ty);
                cx.uniform("stablehlo.multiply", &[done, stride])
            }
        };
        cx.uniform("stablehlo.subtract", &[first, way])
    }

    /// The state when the loop has ended.
    pub(crate) fn end(self, cx: &mut Cx<'_>, ty: Ty) -> Value {
        number(cx, self.0.first + self.0.step * self.trips(), ty)
    }

    fn trips(self) -> i64 {
        i64::try_from(self.0.trips).expect("it fits 32 bits")
    }
}

fn number(cx: &mut Cx<'_>, number: i64, ty: Ty) -> Value {
    let dtype = cx.dtype(ty);
    cx.splat(Scalar::Int(number), dtype, &Shape::scalar())
}
