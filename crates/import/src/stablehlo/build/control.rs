//! Calls, conditionals, loops, tuples and annotations.

use super::operand::as_array;
use super::{Builder, Built, Fail, Slot, Values, malformed, nodes_of, slots_of, unsupported};
use crate::numbers::to_i64;
use crate::stablehlo::syntax::{Attribute, Operation, Region};
use nxla_expr::{ExprId, Mark, Op, Traced, UnaryOp};
use nxla_tensor::{DType, Scalar};

/// The reason why a conditional or loop is not supported.
const NOT_TENSORS: &str =
    "the values of branches and loops must be tensors, without tokens of ordered side effects";

impl Builder<'_> {
    /// Builds an operation with control flow; `None` for other operations.
    pub(super) fn control(
        &mut self,
        operation: &Operation,
        slots: &[Slot],
        values: &mut Values,
    ) -> Result<Option<Option<Vec<Slot>>>, Fail> {
        let name = operation.name.as_str();
        let short = ["stablehlo.", "mhlo.", "sdy.", "func.", "builtin."]
            .iter()
            .find_map(|dialect| name.strip_prefix(dialect))
            .unwrap_or(name);
        let built = match short {
            "call" => self.call(operation, slots, &["callee"])?,
            "composite" => self.composite(operation, slots, values)?,
            "custom_call" => self.custom_call(operation, slots)?,
            "after_all" | "create_token" => Some(vec![Slot::Token]),
            "while" => self.while_loop(operation, slots, values)?,
            "if" | "case" => self.branches(operation, slots, values, short == "if")?,
            // Portable artifacts convert the operands of annotations by a cast.
            "optimization_barrier"
            | "sharding_constraint"
            | "propagation_barrier"
            | "unrealized_conversion_cast" => Some(slots.to_vec()),
            // Tuples of tuples could describe values of any size in a few bytes.
            "tuple" if slots.iter().any(|slot| matches!(slot, Slot::Tuple(_))) => {
                return unsupported("a tuple that contains a tuple");
            }
            "tuple" => Some(vec![Slot::Tuple(slots.into())]),
            "get_tuple_element" => Some(vec![tuple_element(operation, slots)?]),
            "return" => return malformed("must end a region"),
            _ => return Ok(None),
        };
        Ok(Some(built))
    }

    fn call(&mut self, operation: &Operation, slots: &[Slot], names: &[&str]) -> Built {
        let Some(name) = operation.text(names) else {
            return malformed("the function is missing");
        };
        let function = self.function_named(name)?;
        let results = self.function(function, slots)?;
        let is_known = results.iter().all(|slot| !matches!(slot, Slot::Unsupported));
        Ok(is_known.then_some(results))
    }

    /// Builds an operation of CHLO, which portable artifacts hold as a composition with the name of the
    /// operation, or the decomposition of another composition.
    fn composite(&mut self, operation: &Operation, slots: &[Slot], values: &mut Values) -> Built {
        let name = operation.text(&["name", ""]).unwrap_or_default();
        if name.starts_with("chlo.") {
            let mut named = Operation::new(name, operation.position);
            named.result_types.clone_from(&operation.result_types);
            if let Some(Attribute::Dictionary(entries)) =
                operation.attribute(&["composite_attributes"])
            {
                named.attributes.clone_from(entries);
            }
            match self.dispatch(&named, slots, values) {
                Err(Fail::Unsupported(_)) => {}
                built => return built,
            }
        }
        self.call(operation, slots, &["decomposition"])
    }

    fn while_loop(&mut self, operation: &Operation, slots: &[Slot], values: &mut Values) -> Built {
        let (condition, body) = (operation.region(0)?, operation.region(1)?);
        let Some(initial) = nodes_of(slots) else {
            return unsupported(NOT_TENSORS);
        };
        if [condition.parameters.len(), body.parameters.len()] != [initial.len(); 2] {
            return malformed("the regions must have one parameter per operand");
        }
        let types: Vec<_> = initial.iter().map(|&id| self.graph.tensor_type(id).clone()).collect();
        let mark = self.graph.mark();
        let scope = self.graph.open_scope("while", &types);
        let parameters = slots_of(&scope.parameters);
        let Some(condition) = self.traced_region(mark, condition, values, &parameters)? else {
            // Both regions report their unsupported operations.
            self.region(body, values, &parameters)?;
            return Ok(None);
        };
        let Some(body) = self.traced_region(mark, body, values, &parameters)? else {
            return Ok(None);
        };
        if body.outputs().len() != initial.len() {
            return malformed("the body must return one value per operand");
        }
        let results = self.graph.while_loop(mark, &scope, &initial, condition, body)?;
        Ok(Some(slots_of(&results)))
    }

    /// Traces a region; `None` if it has an operation that is not supported.
    fn traced_region(
        &mut self,
        mark: Mark,
        region: &Region,
        values: &mut Values,
        parameters: &[Slot],
    ) -> Result<Option<Traced>, Fail> {
        let outputs = self.region(region, values, parameters)?;
        let nodes = nodes_of(&outputs);
        if nodes.is_none() && !outputs.iter().any(|slot| matches!(slot, Slot::Unsupported)) {
            return unsupported(NOT_TENSORS);
        }
        Ok(nodes.map(|nodes| self.graph.traced(mark, nodes)))
    }

    /// Builds a conditional, or only the branch that a constant selects. Branch 0 of `if` is taken for
    /// true; branch `i` of `case` for the index `i`, the last one for every other index.
    fn branches(
        &mut self,
        operation: &Operation,
        slots: &[Slot],
        values: &mut Values,
        is_if: bool,
    ) -> Built {
        let Some(operands) = nodes_of(slots) else {
            return malformed("the index must be a tensor");
        };
        let [index] = as_array(&operands)?;
        let Some((mut last, mut first)) = operation.regions.split_last() else {
            return malformed("needs at least one branch");
        };
        if is_if && first.len() != 1 {
            return malformed("needs two branches");
        }
        if let Some(branch) = self.known_branch(operation, index, is_if) {
            return Ok(Some(self.region(branch, values, &[])?));
        }
        // The first predicate is computed in every case, so it is a value outside the conditional.
        let first_predicate = if is_if {
            let (predicate, then, otherwise) = self.without_negation(index, &first[0], last);
            (first, last) = (std::slice::from_ref(then), otherwise);
            predicate
        } else {
            self.is_branch(index, 0)?
        };
        let mark = self.graph.mark();
        let mut clauses = Vec::new();
        let mut is_known = true;
        for (number, region) in first.iter().enumerate() {
            let predicate =
                if number == 0 { first_predicate } else { self.is_branch(index, number)? };
            let predicate = self.graph.traced(mark, vec![predicate]);
            match self.traced_region(mark, region, values, &[])? {
                Some(branch) => clauses.push((predicate, branch)),
                None => is_known = false,
            }
        }
        // An `if` whose results are the results of the last branch is a further clause.
        while let Some((next, before)) = last_if(last) {
            for operation in before {
                self.operation(operation, values)?;
            }
            let [Slot::Node(predicate)] = self.operands(next, values)?[..] else {
                is_known = false;
                break;
            };
            let (predicate, then, otherwise) =
                self.without_negation(predicate, &next.regions[0], &next.regions[1]);
            let predicate = self.graph.traced(mark, vec![predicate]);
            match self.traced_region(mark, then, values, &[])? {
                Some(branch) => clauses.push((predicate, branch)),
                None => is_known = false,
            }
            last = otherwise;
        }
        let otherwise = self.traced_region(mark, last, values, &[])?;
        let Some(otherwise) = otherwise.filter(|_| is_known) else { return Ok(None) };
        let results = self.graph.cond(mark, clauses, otherwise)?;
        Ok(Some(slots_of(&results)))
    }

    /// Returns the predicate and the branches of an `if`, exchanged if the predicate is a negation.
    /// Exporters negate predicates to choose the order of the branches.
    fn without_negation<'o>(
        &self,
        predicate: ExprId,
        then: &'o Region,
        otherwise: &'o Region,
    ) -> (ExprId, &'o Region, &'o Region) {
        match self.graph.op(predicate) {
            Op::Unary(UnaryOp::LogicalNot) => (self.graph.operands(predicate)[0], otherwise, then),
            _ => (predicate, then, otherwise),
        }
    }

    /// Returns the branch of a conditional whose index is a constant.
    fn known_branch<'o>(
        &self,
        operation: &'o Operation,
        index: ExprId,
        is_if: bool,
    ) -> Option<&'o Region> {
        let Op::Constant(constant) = self.graph.op(index) else { return None };
        let index = usize::try_from(constant.value.as_i64()?).unwrap_or(usize::MAX);
        let last = operation.regions.len() - 1;
        let branch = if is_if { usize::from(index == 0) } else { index.min(last) };
        operation.regions.get(branch)
    }

    fn is_branch(&mut self, index: ExprId, number: usize) -> Result<ExprId, Fail> {
        let number = Scalar::Int(to_i64(number));
        let number = self.graph.scalar_constant(number, DType::S32)?;
        Ok(self.graph.equal(index, number)?)
    }
}

/// Returns the `if` whose results a region returns, and the operations before the `if`.
fn last_if(region: &Region) -> Option<(&Operation, &[Operation])> {
    let [before @ .., next, end] = &region.operations[..] else { return None };
    let results = next.first_result..next.first_result + next.result_types.len();
    let is_if = matches!(&*next.name, "stablehlo.if" | "mhlo.if");
    let is_last = is_if
        && next.operands.len() == 1
        && next.regions.len() == 2
        && end.name.ends_with("return")
        && end.operands.iter().copied().eq(results);
    is_last.then_some((next, before))
}

fn tuple_element(operation: &Operation, slots: &[Slot]) -> Result<Slot, Fail> {
    let index = operation.size(&["index", ""])?;
    match slots {
        [Slot::Tuple(elements)] if index < elements.len() => Ok(elements[index].clone()),
        _ => malformed("the operand must be a tuple with this element"),
    }
}
