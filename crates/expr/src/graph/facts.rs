//! Facts that results inherit from operands, such as whether a value depends on a given input.
//!
//! An analysis of a loop needs the facts after any number of iterations. Visiting the body once for
//! each new fact would take a time that is exponential in the depth of nested loops. The body is
//! therefore visited once to find the [`Sources`] of its outputs, and [`close_over_iterations`] then
//! uses the sources only.

use std::rc::Rc;

/// A fact about a value. The default is that nothing is known.
pub trait Fact: Clone + Default {
    /// Adds the fact about another value, and returns whether this fact changed.
    fn merge(&mut self, other: &Self) -> bool;

    /// Returns whether nothing is known.
    fn is_empty(&self) -> bool;

    /// Returns the fact about a value that inherits from several values.
    fn union<'a>(facts: impl IntoIterator<Item = &'a Self>) -> Self
    where
        Self: 'a,
    {
        let mut union = Self::default();
        for fact in facts {
            union.merge(fact);
        }
        union
    }
}

impl Fact for bool {
    fn merge(&mut self, other: &Self) -> bool {
        let grows = *other && !*self;
        *self |= other;
        grows
    }

    fn is_empty(&self) -> bool {
        !*self
    }
}

/// The inputs of a program on which a value depends.
#[derive(Clone, Default, Debug)]
pub struct Sources(Option<Rc<[bool]>>);

impl Sources {
    /// Returns the sources of the inputs of a program: each depends on itself.
    pub fn of_inputs(count: usize) -> Vec<Self> {
        let only = |input| (0..count).map(|other| other == input).collect();
        (0..count).map(|input| Self(Some(only(input)))).collect()
    }

    /// Returns whether the value depends on an input.
    pub fn contains(&self, input: usize) -> bool {
        self.0.as_ref().is_some_and(|inputs| inputs[input])
    }

    /// Returns the fact that the value inherits from the inputs.
    pub fn inherit<F: Fact>(&self, inputs: &[F]) -> F {
        F::union(inputs.iter().enumerate().filter(|(at, _)| self.contains(*at)).map(|(_, it)| it))
    }
}

impl Fact for Sources {
    fn merge(&mut self, other: &Self) -> bool {
        let Some(added) = &other.0 else { return false };
        let Some(own) = &mut self.0 else {
            *self = other.clone();
            return true;
        };
        if Rc::ptr_eq(own, added) || own.iter().zip(&**added).all(|(own, added)| own >= added) {
            return false;
        }
        Rc::make_mut(own).iter_mut().zip(&**added).for_each(|(own, added)| *own |= added);
        true
    }

    fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

/// Adds the facts that the states of a loop inherit in any number of iterations. `inputs` are the
/// facts about the initial states and the captures, and `body` are the sources of the outputs of the
/// body.
pub fn close_over_iterations<F: Fact>(body: &[Sources], inputs: &mut [F]) {
    loop {
        let mut grew = false;
        for (state, sources) in body.iter().enumerate() {
            let inherited = sources.inherit(inputs);
            grew |= inputs[state].merge(&inherited);
        }
        if !grew {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_propagate_one_state_per_iteration() {
        let inputs = Sources::of_inputs(4);
        // The states are (a, b, c), and the body returns (capture, a, b).
        let body = [inputs[3].clone(), inputs[0].clone(), inputs[1].clone()];
        let mut facts = [false, false, false, true];
        close_over_iterations(&body, &mut facts);
        assert_eq!(facts, [true; 4]);
        let mut facts = [false, true, false, false];
        close_over_iterations(&body, &mut facts);
        assert_eq!(facts, [false, true, true, false]);
        let mut sources = inputs;
        close_over_iterations(&body, &mut sources);
        assert!((0..4).all(|input| sources[2].contains(input)));
        assert!(!sources[0].contains(1));
    }
}
