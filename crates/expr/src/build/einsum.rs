//! Einstein summation: products over labeled axes, summed along labels that the result does not
//! have.

use std::collections::BTreeMap;
use std::fmt;

use nxla_tensor::{promote, to_i64};

use crate::graph::{Error, ExprId, Graph, Result};

/// The label of an axis: a letter, or a position under the ellipsis, counted from its end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Label {
    Covered(usize),
    Letter(char),
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Label::Covered(0) => f.write_str("the last axis of the ellipsis"),
            Label::Covered(after) => write!(f, "the axis of the ellipsis with {after} after it"),
            Label::Letter(letter) => write!(f, "'{letter}'"),
        }
    }
}

/// An operand or an intermediate product.
#[derive(Clone, Debug)]
struct Term {
    id: ExprId,
    labels: Vec<Label>,
}

/// The subscripts of one operand or of the result.
struct Subscripts {
    /// The letters; `None` is the ellipsis.
    places: Vec<Option<char>>,
}

impl Subscripts {
    fn has_ellipsis(&self) -> bool {
        self.places.contains(&None)
    }

    /// Returns the labels, with `covered` axes under the ellipsis.
    fn labels(&self, covered: usize) -> Vec<Label> {
        let mut labels = Vec::new();
        for place in &self.places {
            match place {
                Some(letter) => labels.push(Label::Letter(*letter)),
                None => labels.extend((0..covered).rev().map(Label::Covered)),
            }
        }
        labels
    }
}

impl Graph {
    /// Returns the sum of products for `subscripts` in the notation of `numpy.einsum`: `ij,jk->ik`
    /// is a matrix product. Without an arrow, the result has the axes under an ellipsis, then the
    /// labels that occur once, in alphabetical order. Axes of size 1 broadcast. The dtypes are
    /// promoted.
    ///
    /// `order` lists the terms to multiply by position: these terms are removed, and their product
    /// is appended. By default, the pair whose product frees the most memory comes first.
    ///
    /// # Errors
    /// Returns an error for subscripts that cannot be read or do not fit the operands, or an `order`
    /// that does not multiply each term once.
    pub fn einsum(
        &mut self,
        subscripts: &str,
        operands: &[ExprId],
        order: Option<&[Vec<usize>]>,
    ) -> Result<ExprId> {
        let (inputs, output) = self.read_subscripts(subscripts)?;
        if inputs.len() != operands.len() {
            let (terms, count) = (inputs.len(), operands.len());
            let why = format!(
                "must have one term for each of {count} operands; got {terms} in {subscripts:?}"
            );
            return Err(self.invalid("einsum", "subscripts", why));
        }
        let mut terms = Vec::with_capacity(operands.len());
        let mut covered = 0;
        for (term, &id) in inputs.iter().zip(operands) {
            let own = self.covered_by_ellipsis(term, id)?;
            covered = covered.max(own);
            terms.push(Term { id: self.rename(id, None)?, labels: term.labels(own) });
        }
        let result = self.result_labels(output.as_ref(), &terms, covered)?;
        let dtypes = operands.iter().map(|&id| self.dtype(id));
        let dtype = dtypes.reduce(promote).expect("there is a term, so there is an operand");
        // Sums of booleans are numbers.
        let is_kept = |label: &Label| result.contains(label);
        let is_summed = terms.iter().any(|term| !term.labels.iter().all(is_kept));
        let dtype = if is_summed { promote(dtype, dtype) } else { dtype };
        let sizes = self.sizes_of_labels(&terms)?;
        for term in &mut terms {
            self.one_axis_a_label(term, &sizes)?;
        }
        for label in &result {
            if !terms.iter().any(|term| term.labels.contains(label)) {
                let why = format!(
                    "must use labels of operands in the result; got {label} in {subscripts:?}"
                );
                return Err(self.invalid("einsum", "subscripts", why));
            }
        }
        let last = self.multiply_terms(terms, &result, order)?;
        let last = self.sum_labels_except(last, &result)?;
        let axes: Vec<i64> = result.iter().map(|label| axis_of(&last, *label)).collect();
        let placed = self.transpose(last.id, Some(&axes))?;
        self.as_type(placed, dtype)
    }

    /// Parses the subscripts of the operands, and of the result if there is an arrow.
    fn read_subscripts(&self, subscripts: &str) -> Result<(Vec<Subscripts>, Option<Subscripts>)> {
        let text: String = subscripts.chars().filter(|letter| !letter.is_whitespace()).collect();
        let (inputs, output) = match text.split_once("->") {
            Some((inputs, output)) => (inputs, Some(output)),
            None => (text.as_str(), None),
        };
        let inputs = inputs.split(',').map(|term| self.read_term(term)).collect::<Result<_>>()?;
        Ok((inputs, output.map(|term| self.read_term(term)).transpose()?))
    }

    fn read_term(&self, term: &str) -> Result<Subscripts> {
        let mut places = Vec::new();
        let mut rest = term;
        while let Some(first) = rest.chars().next() {
            if let Some(after) = rest.strip_prefix("...") {
                if places.contains(&None) {
                    let why = format!("must have at most one ellipsis in a term; got {term:?}");
                    return Err(self.invalid("einsum", "subscripts", why));
                }
                places.push(None);
                rest = after;
            } else if first.is_alphabetic() {
                places.push(Some(first));
                rest = &rest[first.len_utf8()..];
            } else {
                let why =
                    format!("must be letters and an ellipsis (...); got {first:?} in {term:?}");
                return Err(self.invalid("einsum", "subscripts", why));
            }
        }
        Ok(Subscripts { places })
    }

    /// Returns the number of axes of an operand that the ellipsis covers.
    fn covered_by_ellipsis(&self, subscripts: &Subscripts, id: ExprId) -> Result<usize> {
        let rank = self.shape(id).rank();
        let letters = subscripts.places.iter().flatten().count();
        if letters == rank || (letters < rank && subscripts.has_ellipsis()) {
            return Ok(rank - letters);
        }
        let term: String = subscripts.places.iter().flatten().collect();
        let why = format!(
            "must label each axis of {}; got {letters} labels in {term:?}",
            self.tensor_type(id)
        );
        Err(self.invalid("einsum", "subscripts", why))
    }

    fn result_labels(
        &self,
        output: Option<&Subscripts>,
        terms: &[Term],
        covered: usize,
    ) -> Result<Vec<Label>> {
        let Some(output) = output else {
            let mut counts = BTreeMap::<Label, usize>::new();
            for label in terms.iter().flat_map(|term| &term.labels) {
                *counts.entry(*label).or_default() += 1;
            }
            let once = counts.into_iter().filter(|(_, count)| *count == 1);
            let letters = once.map(|(label, _)| label).filter(|label| is_letter(*label));
            return Ok((0..covered).rev().map(Label::Covered).chain(letters).collect());
        };
        if covered > 0 && !output.has_ellipsis() {
            let why = "must have an ellipsis in the result, as in the operands";
            return Err(self.invalid("einsum", "subscripts", why));
        }
        let labels = output.labels(covered);
        for (position, label) in labels.iter().enumerate() {
            if labels[..position].contains(label) {
                let why = format!("must be distinct in the result; got {label} twice");
                return Err(self.invalid("einsum", "subscripts", why));
            }
        }
        Ok(labels)
    }

    /// Returns the size of each label; an axis of size 1 broadcasts.
    fn sizes_of_labels(&self, terms: &[Term]) -> Result<BTreeMap<Label, usize>> {
        let mut sizes = BTreeMap::<Label, usize>::new();
        for term in terms {
            for (label, &size) in term.labels.iter().zip(self.shape(term.id).iter()) {
                let known = sizes.entry(*label).or_insert(size);
                if *known == 1 {
                    *known = size;
                }
                if size != 1 && size != *known {
                    let why = format!(
                        "must label axes of equal sizes; got {known} and {size} for {label}"
                    );
                    return Err(self.invalid("einsum", "subscripts", why));
                }
            }
        }
        Ok(sizes)
    }

    /// Takes diagonals for repeated labels, and removes axes of size 1 that broadcast.
    fn one_axis_a_label(&mut self, term: &mut Term, sizes: &BTreeMap<Label, usize>) -> Result<()> {
        let broadcast: Vec<usize> = (0..term.labels.len())
            .filter(|&axis| self.shape(term.id)[axis] == 1 && sizes[&term.labels[axis]] != 1)
            .collect();
        let squeezed: Vec<i64> = broadcast.iter().map(|&axis| to_i64(axis)).collect();
        term.id = self.squeeze(term.id, Some(&squeezed))?;
        for axis in broadcast.into_iter().rev() {
            term.labels.remove(axis);
        }
        let repeated = |labels: &[Label]| {
            (0..labels.len()).find_map(|axis| {
                let first = labels[..axis].iter().position(|label| *label == labels[axis])?;
                Some((first, axis))
            })
        };
        while let Some((first, second)) = repeated(&term.labels) {
            term.id = self.diagonal_of_axes(term.id, [first, second])?;
            let label = term.labels[first];
            term.labels.remove(second);
            term.labels.remove(first);
            term.labels.insert(0, label);
        }
        Ok(())
    }

    /// Multiplies terms until one remains.
    fn multiply_terms(
        &mut self,
        mut terms: Vec<Term>,
        result: &[Label],
        order: Option<&[Vec<usize>]>,
    ) -> Result<Term> {
        for positions in order.unwrap_or(&[]) {
            let mut sorted = positions.clone();
            sorted.sort_unstable();
            sorted.dedup();
            let fits = sorted.last().is_some_and(|&last| last < terms.len());
            if !fits || sorted.len() != positions.len() {
                let why = format!("must be positions of {} terms; got {positions:?}", terms.len());
                return Err(self.invalid("einsum", "order", why));
            }
            let mut taken: Vec<Term> =
                sorted.into_iter().rev().map(|at| terms.remove(at)).collect();
            let mut product = taken.pop().expect("there is a position");
            while let Some(next) = taken.pop() {
                let others = || terms.iter().chain(&taken).flat_map(|term| &term.labels);
                let kept: Vec<Label> = others().chain(result).copied().collect();
                product = self.product_of(product, next, &kept)?;
            }
            terms.push(product);
        }
        while terms.len() > 1 {
            let (first, second) = self.best_pair(&terms, result);
            let (second, first) = (terms.remove(second), terms.remove(first));
            let others = terms.iter().flat_map(|term| &term.labels);
            let kept: Vec<Label> = others.chain(result).copied().collect();
            let product = self.product_of(first, second, &kept)?;
            terms.push(product);
        }
        Ok(terms.pop().expect("there is a term"))
    }

    /// Returns the pair whose product needs the least additional memory.
    fn best_pair(&self, terms: &[Term], result: &[Label]) -> (usize, usize) {
        let elements = |labels: &[(Label, usize)]| -> f64 {
            #[expect(clippy::cast_precision_loss, reason = "it is an estimate")]
            labels.iter().map(|(_, size)| *size as f64).product()
        };
        let sized = |at: usize| -> Vec<(Label, usize)> {
            let shape = self.shape(terms[at].id);
            terms[at].labels.iter().copied().zip(shape.iter().copied()).collect()
        };
        let pairs =
            (1..terms.len()).flat_map(|second| (0..second).map(move |first| (first, second)));
        let cost = |&(first, second): &(usize, usize)| {
            let (left, right) = (sized(first), sized(second));
            let kept = |label: &Label| {
                let others = (0..terms.len()).filter(|at| *at != first && *at != second);
                result.contains(label)
                    || others.into_iter().any(|at| terms[at].labels.contains(label))
            };
            let mut product: BTreeMap<Label, usize> = left.iter().copied().collect();
            product.extend(right.iter().copied());
            let product: Vec<_> = product.into_iter().filter(|(label, _)| kept(label)).collect();
            elements(&product) - elements(&left) - elements(&right)
        };
        let costs = pairs.map(|pair| (cost(&pair), pair));
        costs.min_by(|left, right| left.0.total_cmp(&right.0)).expect("there are two terms").1
    }

    /// Multiplies two terms and sums along labels that are not needed.
    fn product_of(&mut self, left: Term, right: Term, kept: &[Label]) -> Result<Term> {
        let needed = |other: &Term| -> Vec<Label> { [kept, &other.labels].concat() };
        let left = self.sum_labels_except(left.clone(), &needed(&right))?;
        let right = self.sum_labels_except(right, &needed(&left))?;
        let both = |label: &&Label| right.labels.contains(label);
        let (shared, left_free): (Vec<Label>, Vec<Label>) =
            left.labels.iter().partition(|label| both(label));
        let (batch, summed): (Vec<Label>, Vec<Label>) =
            shared.into_iter().partition(|label| kept.contains(label));
        let right_free: Vec<Label> =
            right.labels.iter().filter(|label| !left.labels.contains(label)).copied().collect();
        if summed.is_empty() {
            let mut labels = Vec::new();
            for &label in kept {
                let is_needed = left.labels.contains(&label) || right.labels.contains(&label);
                if is_needed && !labels.contains(&label) {
                    labels.push(label);
                }
            }
            let (x, y) = (self.arrange(&left, &labels)?, self.arrange(&right, &labels)?);
            return Ok(Term { id: self.multiply(x, y)?, labels });
        }
        let ordered = |term: &Term, groups: [&[Label]; 3]| -> Vec<i64> {
            groups.concat().into_iter().map(|label| axis_of(term, label)).collect()
        };
        let axes = ordered(&left, [&batch, &left_free, &summed]);
        let x = self.transpose(left.id, Some(&axes))?;
        let axes = ordered(&right, [&batch, &right_free, &summed]);
        let y = self.transpose(right.id, Some(&axes))?;
        let labels = [&batch[..], &left_free, &right_free].concat();
        let leading: Vec<i64> = (0..batch.len()).map(to_i64).collect();
        let last = |rank: usize| -> Vec<i64> { (rank - summed.len()..rank).map(to_i64).collect() };
        let (x_last, y_last) = (last(left.labels.len()), last(right.labels.len()));
        let id = self.dot_general(x, &x_last, &leading, y, &y_last, &leading)?;
        Ok(Term { id, labels })
    }

    /// Arranges the axes of a term in the order of `labels`, with size 1 for labels that it does not
    /// have.
    fn arrange(&mut self, term: &Term, labels: &[Label]) -> Result<ExprId> {
        let (own, missing): (Vec<usize>, Vec<usize>) =
            (0..labels.len()).partition(|&at| term.labels.contains(&labels[at]));
        let axes: Vec<i64> = own.iter().map(|&at| axis_of(term, labels[at])).collect();
        let missing: Vec<i64> = missing.into_iter().map(to_i64).collect();
        let arranged = self.transpose(term.id, Some(&axes))?;
        self.new_axes(arranged, &missing)
    }

    /// Sums a term along the labels that are not needed.
    fn sum_labels_except(&mut self, term: Term, kept: &[Label]) -> Result<Term> {
        let (labels, summed): (Vec<Label>, Vec<Label>) =
            term.labels.iter().partition(|label| kept.contains(label));
        if summed.is_empty() {
            return Ok(term);
        }
        let axes: Vec<i64> = summed.iter().map(|label| axis_of(&term, *label)).collect();
        let dtype = self.dtype(term.id);
        let sum = self.sum(term.id, Some(&axes), false)?;
        // Sums of narrow integers are wider; products keep their dtype.
        let id = if dtype.is_pred() { sum } else { self.as_type(sum, dtype)? };
        Ok::<_, Error>(Term { id, labels })
    }
}

fn is_letter(label: Label) -> bool {
    matches!(label, Label::Letter(_))
}

fn axis_of(term: &Term, label: Label) -> i64 {
    let axis = term.labels.iter().position(|own| *own == label);
    to_i64(axis.expect("the term has the label"))
}
