//! Conditionals, loops, hooks, annotations and blocks.
//!
//! A region is traced in steps, so that a caller in another language can run the user's function
//! between them: take a [`Mark`], open a [`Scope`] if the region has parameters, build the nodes,
//! and pass the results to [`Graph::traced`].

use std::fmt;
use std::sync::Arc;

use nxla_tensor::{broadcast_shapes, promote_keep_pred};

use crate::graph::{
    Block, BlockKind, ClosedBody, Cond, CustomGrad, Difference, ErrorKind, ExprId, Graph, HookOp,
    HostFn, Invariants, Keep, Mark, Metadata, Misfit, Op, Operands, Region, Replay, Result,
    RuleFor, Scope, TensorType, Traced, While,
};

/// A custom rule that is being traced, see [`Graph::open_rule`].
#[derive(Clone, Debug)]
pub struct OpenRule {
    rule: RuleFor,
    mark: Mark,
    scope: Scope,
}

impl OpenRule {
    /// Returns the mark where the rule starts.
    pub fn mark(&self) -> Mark {
        self.mark
    }

    /// Returns the parameters for the cotangents of the outputs, or for the tangents of the inputs.
    pub fn changes(&self) -> &[ExprId] {
        &self.scope.parameters
    }
}

/// A block that is being traced, see [`Graph::open_block`].
#[derive(Debug)]
pub struct OpenBlock {
    mark: Mark,
    scope: Scope,
    operands: Operands,
}

impl OpenBlock {
    /// Returns the parameters of the body, one for each operand.
    pub fn parameters(&self) -> &[ExprId] {
        &self.scope.parameters
    }
}

impl Graph {
    /// Returns one element of a tuple node.
    ///
    /// # Errors
    /// Returns an error for a node that is not a tuple or has no such part.
    pub fn elem(&mut self, tuple: ExprId, index: usize) -> Result<ExprId> {
        self.make(Op::Elem(index), &[tuple])
    }

    /// Returns the results of a node: the elements of a tuple, or the node itself.
    ///
    /// # Errors
    /// Returns the error of [`Graph::make`], which accepts every element of a tuple.
    pub fn parts(&mut self, id: ExprId) -> Result<Vec<ExprId>> {
        if self.ty(id).as_tensor().is_some() {
            return Ok(vec![id]);
        }
        (0..self.ty(id).parts().len()).map(|index| self.elem(id, index)).collect()
    }

    /// Annotates `values`; several values become a tuple (see [`Graph::parts`]).
    ///
    /// # Errors
    /// Returns an error for values that are tuples.
    pub fn metadata(&mut self, values: &[ExprId], metadata: Metadata) -> Result<ExprId> {
        self.make(Op::Metadata(Box::new(metadata)), values)
    }

    /// Returns `x` as a constant for gradients.
    ///
    /// # Errors
    /// Returns an error for a tuple.
    pub fn stop_grad(&mut self, x: ExprId) -> Result<ExprId> {
        let inspect = Some("stop_grad".into());
        self.metadata(&[x], Metadata { stop_grad: true, inspect, ..Metadata::default() })
    }

    /// Returns `outputs` with a custom derivative: `rule` maps their cotangents to the cotangents
    /// of `inputs`.
    ///
    /// # Errors
    /// Returns an error if the rule does not return one cotangent for each input. Also returns the
    /// errors of the rule.
    pub fn custom_grad<E: From<crate::Error>>(
        &mut self,
        outputs: &[ExprId],
        inputs: &[ExprId],
        rule: impl FnOnce(&mut Graph, &[ExprId]) -> Result<Vec<ExprId>, E>,
    ) -> Result<Vec<ExprId>, E> {
        let open = self.open_rule(RuleFor::Cotangents, outputs);
        let cotangents = rule(self, open.changes())?;
        Ok(self.close_rule(open, outputs, inputs, cotangents)?)
    }

    /// Starts the tracing of a rule, with a parameter for the cotangent of each output or the tangent
    /// of each input. [`Graph::close_rule`] ends the tracing.
    pub fn open_rule(&mut self, rule: RuleFor, values: &[ExprId]) -> OpenRule {
        let mark = self.mark();
        let types: Vec<TensorType> = values
            .iter()
            .map(|&id| {
                let ty = self.tensor_type(id);
                TensorType::new(ty.dtype.to_floating(), ty.shape.clone())
            })
            .collect();
        OpenRule { rule, mark, scope: self.open_scope(rule.function_name(), &types) }
    }

    /// Ends the tracing of a rule that returned the cotangents of the inputs, or the tangents of the
    /// outputs. Returns the outputs with the rule.
    ///
    /// # Errors
    /// Returns an error for another number of results than of inputs or outputs, or a result that
    /// does not broadcast to its input or output.
    pub fn close_rule(
        &mut self,
        open: OpenRule,
        outputs: &[ExprId],
        inputs: &[ExprId],
        results: Vec<ExprId>,
    ) -> Result<Vec<ExprId>> {
        let rule = open.rule;
        let (kind, place, values) = match rule {
            RuleFor::Cotangents => ("cotangent", "input", inputs),
            RuleFor::Tangents => ("tangent", "result", outputs),
        };
        if results.len() != values.len() {
            let (expected, found) = (values.len(), results.len());
            let why = format!("must return {expected} {kind}s, one for each {place}; got {found}");
            return Err(self.invalid(rule.function_name(), "rule", why));
        }
        for (position, (&result, &value)) in results.iter().zip(values).enumerate() {
            let (found, expected) = (self.tensor_type(result), self.tensor_type(value));
            let common = broadcast_shapes(&found.shape, &expected.shape);
            if !common.is_ok_and(|common| common == expected.shape) {
                let why = format!(
                    "must return a {kind} of type {expected} for {place} {position}; got {found}"
                );
                return Err(self.invalid(rule.function_name(), "rule", why));
            }
        }
        let traced = self.traced(open.mark, results);
        // Copying lets the rule capture the outputs themselves instead of nodes that it computes
        // from them, so that a derivative can replace them by the results of this node.
        let closed = self.close(open.mark, Some(&open.scope), &[traced], Invariants::Copy)?;
        let program = closed.programs[0].clone();
        let custom = CustomGrad { rule, outputs: outputs.len(), inputs: inputs.len(), program };
        let operands: Operands =
            outputs.iter().chain(inputs).chain(&closed.captures).copied().collect();
        let inspect = Some(rule.function_name().into());
        let custom_grad = Some(custom);
        let metadata = Metadata { inspect, custom_grad, ..Metadata::default() };
        let node = self.metadata(&operands, metadata)?;
        self.parts(node)
    }

    /// Passes values to a host function whenever they are computed, and returns the values.
    ///
    /// A caller can attach a listener to a named hook for each call of the program; an unnamed hook
    /// always calls `default`.
    ///
    /// # Errors
    /// Returns an error if there is neither a name nor a function, or no values.
    pub fn hook(
        &mut self,
        values: &[ExprId],
        name: Option<&str>,
        default: Option<Arc<dyn HostFn>>,
    ) -> Result<Vec<ExprId>> {
        if values.is_empty() {
            return Err(self.invalid("io_call", "value", "must contain a tensor"));
        }
        if name.is_none() && default.as_ref().is_none_or(|own| own.is_silent()) {
            return Err(self.invalid("io_call", "name, function", "one of them must be passed"));
        }
        let name = name.map(Into::into);
        let hook = HookOp { name, default, slot: None, results: None };
        let node = self.make(Op::Hook(Box::new(hook)), values)?;
        self.parts(node)
    }

    /// Calls a host function on values whenever they are computed, and returns its results, which
    /// must have these types.
    ///
    /// Like a hook, the call is never merged, dropped, or moved past another hook. A derivative
    /// that flows through it is an error.
    ///
    /// # Errors
    /// Returns an error if there are no results.
    pub fn runtime_call(
        &mut self,
        values: &[ExprId],
        results: Vec<TensorType>,
        function: Arc<dyn HostFn>,
    ) -> Result<Vec<ExprId>> {
        self.named_runtime_call(None, values, results, function)
    }

    /// Calls a host function as [`Graph::runtime_call`] does. Errors of programs without the function
    /// contain the name.
    ///
    /// # Errors
    /// Returns an error if `results` is empty.
    pub fn named_runtime_call(
        &mut self,
        name: Option<Arc<str>>,
        values: &[ExprId],
        results: Vec<TensorType>,
        function: Arc<dyn HostFn>,
    ) -> Result<Vec<ExprId>> {
        if results.is_empty() {
            return Err(self.invalid("runtime_call", "template", "must contain a tensor"));
        }
        let (default, results) = (Some(function), Some(results.into()));
        let hook = HookOp { name, default, slot: None, results };
        let node = self.make(Op::Hook(Box::new(hook)), values)?;
        self.parts(node)
    }

    /// Creates a named block: `body` builds its default from parameters for `operands`. A backend
    /// may have a faster implementation.
    ///
    /// # Errors
    /// Returns the errors of `body`.
    pub fn block<E: From<crate::Error>>(
        &mut self,
        name: &str,
        attributes: Vec<(Arc<str>, String)>,
        operands: &[ExprId],
        body: impl FnOnce(&mut Graph, &[ExprId]) -> Result<Vec<ExprId>, E>,
    ) -> Result<Vec<ExprId>, E> {
        let open = self.open_block(operands);
        let results = body(self, open.parameters())?;
        Ok(self.close_block(open, name, attributes, results)?)
    }

    /// Creates a block whose kind and operand types determine its body, which depends on no value but its parameters.
    /// The body is built once for each source line.
    pub(crate) fn known_block(
        &mut self,
        kind: BlockKind,
        operands: &[ExprId],
        body: impl FnOnce(&mut Graph, &[ExprId]) -> Result<Vec<ExprId>>,
    ) -> Result<Vec<ExprId>> {
        let key = self.body_key(&kind, operands);
        if let Some(known) = self.bodies.get(&key).cloned() {
            return self.make_block(kind, known, operands);
        }
        let open = self.open_block(operands);
        let results = body(self, open.parameters())?;
        let body = self.close_body(&open, results)?;
        self.bodies.insert(key, body.clone());
        self.make_block(kind, body, operands)
    }

    /// Creates a [`Graph::known_block`] with one result; `attributes` must determine what `body` builds.
    pub(super) fn composite<const N: usize>(
        &mut self,
        name: &str,
        attributes: &[(&str, &dyn fmt::Display)],
        operands: [ExprId; N],
        body: impl FnOnce(&mut Graph, [ExprId; N]) -> Result<ExprId>,
    ) -> Result<ExprId> {
        let attributes =
            attributes.iter().map(|(name, value)| ((*name).into(), value.to_string())).collect();
        self.single_block(BlockKind::Named { name: name.into(), attributes }, operands, body)
    }

    /// Creates a [`Graph::known_block`] with one result.
    pub(super) fn single_block<const N: usize>(
        &mut self,
        kind: BlockKind,
        operands: [ExprId; N],
        body: impl FnOnce(&mut Graph, [ExprId; N]) -> Result<ExprId>,
    ) -> Result<ExprId> {
        let results = self.known_block(kind, &operands, |graph, parameters| {
            let parameters = parameters.try_into().expect("one parameter for each operand");
            Ok(vec![body(graph, parameters)?])
        })?;
        Ok(results[0])
    }

    /// Starts a [`Graph::block`], for callers that build the body outside of a closure.
    pub fn open_block(&mut self, operands: &[ExprId]) -> OpenBlock {
        let mark = self.mark();
        let types: Vec<TensorType> =
            operands.iter().map(|&id| self.tensor_type(id).clone()).collect();
        OpenBlock { mark, scope: self.open_scope("block", &types), operands: operands.into() }
    }

    /// Ends a [`Graph::block`] whose body returned `results`.
    ///
    /// # Errors
    /// Returns an error for a result that is not of this trace.
    pub fn close_block(
        &mut self,
        open: OpenBlock,
        name: &str,
        attributes: Vec<(Arc<str>, String)>,
        results: Vec<ExprId>,
    ) -> Result<Vec<ExprId>> {
        self.close_known(open, BlockKind::Named { name: name.into(), attributes }, results)
    }

    /// Ends a [`Graph::block`] as a checkpoint, whose derivative recomputes the values that are not
    /// stored.
    ///
    /// # Errors
    /// Returns an error for a result that is not of this trace.
    pub fn close_checkpoint(
        &mut self,
        open: OpenBlock,
        keep: Keep,
        results: Vec<ExprId>,
    ) -> Result<Vec<ExprId>> {
        self.close_known(open, BlockKind::Checkpoint { keep, again: false }, results)
    }

    fn close_known(
        &mut self,
        open: OpenBlock,
        kind: BlockKind,
        results: Vec<ExprId>,
    ) -> Result<Vec<ExprId>> {
        let body = self.close_body(&open, results)?;
        self.make_block(kind, body, &open.operands)
    }

    /// Returns the body of a block that returned `results`.
    fn close_body(&mut self, open: &OpenBlock, results: Vec<ExprId>) -> Result<ClosedBody> {
        let (program, captures) = self.close_function(open.mark, &open.scope, results)?;
        Ok(ClosedBody { program, captures })
    }

    fn make_block(
        &mut self,
        kind: BlockKind,
        body: ClosedBody,
        operands: &[ExprId],
    ) -> Result<Vec<ExprId>> {
        let block = Block { kind, batch_axes: 0, body: body.program };
        let operands: Operands = operands.iter().chain(&body.captures).copied().collect();
        let node = self.make(Op::Block(Arc::new(block)), &operands)?;
        self.parts(node)
    }

    /// Returns the value of a constant predicate.
    pub fn known_truth(&self, predicate: ExprId) -> Option<bool> {
        match self.op(predicate) {
            Op::Constant(constant) => Some(!constant.value.is_zero()),
            _ => None,
        }
    }

    /// Returns the value of a constant integer.
    pub(super) fn known_integer(&self, id: ExprId) -> Option<i128> {
        match self.op(id) {
            Op::Constant(constant) if constant.ty.rank() == 0 && constant.ty.dtype.is_integer() => {
                constant.value.as_i128()
            }
            _ => None,
        }
    }

    /// Creates a conditional: the body of the first clause whose predicate is nonzero, otherwise
    /// `otherwise`.
    ///
    /// `mark` is the position before the first branch was traced. All later nodes become part of
    /// the branches and are computed only there. The results of the branches are unified: dtypes
    /// are promoted and shapes broadcast. A clause with a constant predicate is resolved
    /// immediately.
    ///
    /// # Errors
    /// Returns an error for a predicate that is not a scalar; for branches with different numbers
    /// of results, or whose results do not broadcast ([`ErrorKind::Misfit`]).
    pub fn cond(
        &mut self,
        mark: Mark,
        clauses: Vec<(Traced, Traced)>,
        otherwise: Traced,
    ) -> Result<Vec<ExprId>> {
        let (mut open, mut last) = (Vec::new(), (clauses.len(), otherwise));
        for (number, (predicate, body)) in clauses.into_iter().enumerate() {
            match self.known_truth(self.predicate_of(&predicate)?) {
                Some(false) => {}
                Some(true) => {
                    last = (number, body);
                    break;
                }
                None => open.push((predicate, (number, body))),
            }
        }
        if open.is_empty() {
            self.return_effects(&last.1.effects);
            return Ok(last.1.outputs);
        }
        let branches = open.iter_mut().map(|(_, branch)| branch).chain(std::iter::once(&mut last));
        self.unify(&mut branches.collect::<Vec<_>>())?;
        let regions: Vec<Traced> = open
            .into_iter()
            .flat_map(|(predicate, (_, body))| [predicate, body])
            .chain(std::iter::once(last.1))
            .collect();
        let closed = self.close(mark, None, &regions, Invariants::Copy)?;
        let (otherwise, clauses) = closed.programs.split_last().expect("there is a last branch");
        let clauses =
            clauses.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
        let cond = Cond { clauses, otherwise: otherwise.clone() };
        let node = self.make(Op::Cond(Arc::new(cond)), &closed.captures)?;
        self.parts(node)
    }

    fn predicate_of(&self, traced: &Traced) -> Result<ExprId> {
        match traced.outputs[..] {
            [id] if self.shape(id).rank() == 0 => Ok(id),
            [id] => {
                let found = self.tensor_type(id).to_string();
                let expected = "a scalar (reduce it with all or any)".into();
                Err(self.error("cond", ErrorKind::Shape { argument: "predicate", found, expected }))
            }
            _ => {
                let why = format!("must be one scalar; got {} values", traced.outputs.len());
                Err(self.invalid("cond", "predicate", why))
            }
        }
    }

    /// Casts and broadcasts the results of all branches, each with its number, to common types.
    fn unify(&mut self, branches: &mut [&mut (usize, Traced)]) -> Result<()> {
        let (first, count) = (branches[0].0, branches[0].1.outputs.len());
        for (number, branch) in branches.iter().map(|branch| &**branch) {
            if branch.outputs.len() != count {
                let found = branch.outputs.len();
                let why = format!(
                    "must return {count} results like branch {first}; got {found} from branch \
                     {number}"
                );
                return Err(self.invalid("cond", "branch", why));
            }
        }
        for leaf in 0..count {
            let leaves = branches.iter().map(|branch| (branch.0, branch.1.outputs[leaf]));
            let leaves: Vec<(usize, ExprId)> = leaves.collect();
            let ty = self.common_type(&leaves, leaf)?;
            for (_, branch) in branches.iter_mut().map(|branch| &mut **branch) {
                let cast = self.as_type(branch.outputs[leaf], ty.dtype)?;
                branch.outputs[leaf] = if self.tensor_type(cast) == &ty {
                    cast
                } else {
                    self.broadcast_named(cast, ty.shape.clone(), ty.names.clone())?
                };
            }
        }
        Ok(())
    }

    /// Returns the common type of the results of all branches at one position.
    fn common_type(&self, leaves: &[(usize, ExprId)], position: usize) -> Result<TensorType> {
        let mut common = self.tensor_type(leaves[0].1).clone();
        for &(number, leaf) in &leaves[1..] {
            let ty = self.tensor_type(leaf);
            let misfit = |difference| {
                let misfit = Misfit {
                    region: Region::Branch(number),
                    result: position,
                    path: None,
                    found: ty.to_string(),
                    expected: common.to_string(),
                    difference,
                };
                self.error("cond", ErrorKind::Misfit(misfit.into()))
            };
            let shape = broadcast_shapes(&common.shape, &ty.shape)
                .map_err(|_| misfit(Difference::Shape))?;
            let dtype = promote_keep_pred(common.dtype, ty.dtype);
            let names =
                crate::infer::merge_names(&common, ty).map_err(|_| misfit(Difference::Names))?;
            common = TensorType { dtype, shape, names };
        }
        Ok(common)
    }

    /// Checks that the results of a body have the types of the state.
    fn check_state(&self, state: &[ExprId], body: &Traced) -> Result<()> {
        for (result, (&old, &new)) in state.iter().zip(&body.outputs).enumerate() {
            let (expected, found) = (self.tensor_type(old), self.tensor_type(new));
            if let Some(difference) = Difference::between(found, expected) {
                let (found, expected) = (found.to_string(), expected.to_string());
                let region = Region::Body;
                let misfit = Misfit { region, result, path: None, found, expected, difference };
                return Err(self.error("while", ErrorKind::Misfit(misfit.into())));
            }
        }
        Ok(())
    }

    /// Creates a loop that repeats `body` while `condition` is nonzero, starting from `initial`.
    /// Outer values that the regions use are captured; nodes that depend on no state are computed
    /// once, before the loop.
    ///
    /// # Errors
    /// Returns an error for a condition that is not a scalar; for a body whose results differ in
    /// number from `initial`, or in dtype, shape or names ([`ErrorKind::Misfit`]).
    pub fn while_loop(
        &mut self,
        mark: Mark,
        scope: &Scope,
        initial: &[ExprId],
        condition: Traced,
        body: Traced,
    ) -> Result<Vec<ExprId>> {
        self.while_loop_with(mark, scope, initial, (condition, body), Replay::default())
    }

    /// Creates a [`Graph::while_loop`] with a replay method for its derivative.
    ///
    /// # Errors
    /// Returns the errors of [`Graph::while_loop`].
    pub fn while_loop_with(
        &mut self,
        mark: Mark,
        scope: &Scope,
        initial: &[ExprId],
        (condition, body): (Traced, Traced),
        replay: Replay,
    ) -> Result<Vec<ExprId>> {
        self.check_state(initial, &body)?;
        let closed = self.close(mark, Some(scope), &[condition, body], Invariants::Capture)?;
        let [condition, body] = &closed.programs[..] else { unreachable!("two regions went in") };
        let (condition, body) = (condition.clone(), body.clone());
        let op = While { state: initial.len(), condition, body, replay };
        let operands: Operands = initial.iter().chain(&closed.captures).copied().collect();
        let node = self.make(Op::While(Arc::new(op)), &operands)?;
        self.parts(node)
    }

    /// Creates a [`Graph::while_loop_with`] from functions that build the condition and the next
    /// state from the state.
    ///
    /// ```
    /// use nxla_expr::{Graph, Replay};
    /// use nxla_tensor::Number;
    ///
    /// let mut graph = Graph::new();
    /// let (one, limit) = (graph.number(Number::Int(1))?, graph.number(Number::Int(100))?);
    /// let doubled = graph.repeat_while(
    ///     &[one],
    ///     Replay::default(),
    ///     |graph, state| graph.less(state[0], limit),
    ///     |graph, state| Ok(vec![graph.add(state[0], state[0])?]),
    /// )?;
    /// assert_eq!(graph.tensor_type(doubled[0]).to_string(), "s32");
    /// # Ok::<(), nxla_expr::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of the functions and of [`Graph::while_loop`].
    pub fn repeat_while<E: From<crate::Error>>(
        &mut self,
        initial: &[ExprId],
        replay: Replay,
        condition: impl FnOnce(&mut Graph, &[ExprId]) -> Result<ExprId, E>,
        body: impl FnOnce(&mut Graph, &[ExprId]) -> Result<Vec<ExprId>, E>,
    ) -> Result<Vec<ExprId>, E> {
        let mark = self.mark();
        let types: Vec<TensorType> =
            initial.iter().map(|&id| self.tensor_type(id).clone()).collect();
        let scope = self.open_scope("while", &types);
        let goes_on = condition(self, &scope.parameters)?;
        let condition = self.traced(mark, vec![goes_on]);
        let next = body(self, &scope.parameters)?;
        let body = self.traced(mark, next);
        Ok(self.while_loop_with(mark, &scope, initial, (condition, body), replay)?)
    }
}
