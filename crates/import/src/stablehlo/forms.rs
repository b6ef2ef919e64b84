//! The short forms of loops and reductions in MLIR text, which contain regions.

use nxla_expr::TensorType;

use super::lexer::Token;
use super::syntax::{Operation, Position, Region, Type};
use super::text::Parser;
use super::{attributes, types};
use crate::Result;

impl Parser<'_> {
    /// Reads `(%x init: %a), (%y init: %b) applies op across dimensions = […] : types` or, instead of
    /// `applies`, a `reducer` with a region after the types.
    pub(super) fn reduce(&mut self, line: usize, depth: usize) -> Result<Operation> {
        let mut operation = Operation::new("stablehlo.reduce", Position::Line(line));
        let mut initial = Vec::new();
        loop {
            self.lexer.expect(b'(')?;
            let (Token::Value(x), Token::Word("init")) = (self.lexer.next()?, self.lexer.next()?)
            else {
                return Err(self.lexer.unexpected("`%operand init: %value`"));
            };
            self.lexer.expect(b':')?;
            let Token::Value(init) = self.lexer.next()? else {
                return Err(self.lexer.unexpected("an initial value"));
            };
            operation.operands.push(self.resolve(x)?);
            initial.push(self.resolve(init)?);
            self.lexer.expect(b')')?;
            if !self.lexer.eat(b',')? {
                break;
            }
        }
        operation.operands.append(&mut initial);
        let mut applied = None;
        if self.lexer.eat_word("applies")? {
            let Token::Word(name) = self.lexer.next()? else {
                return Err(self.lexer.unexpected("the name of an operation"));
            };
            applied = Some(name.to_owned());
        }
        if !self.lexer.eat_word("across")? {
            return Err(self.lexer.unexpected("`across dimensions`"));
        }
        self.lexer.next()?;
        self.lexer.expect(b'=')?;
        let dimensions = attributes::read(&mut self.lexer, &self.resources, 0)?;
        operation.attributes.push(("dimensions".into(), dimensions));
        if self.lexer.eat(b'{')? {
            self.dictionary(&mut operation)?;
        }
        self.lexer.expect(b':')?;
        let Type::Function(_, outputs) = types::read(&mut self.lexer, 0)? else {
            return Err(self.lexer.unexpected("the type of a function"));
        };
        operation.result_types = outputs;
        let region = match applied {
            Some(name) => self.reduction_region(&name, &operation),
            None => self.reducer(depth)?,
        };
        operation.regions.push(region);
        Ok(operation)
    }

    /// Creates the region of a reduction that applies one operation.
    fn reduction_region(&mut self, name: &str, reduce: &Operation) -> Region {
        let parameters = vec![self.fresh(), self.fresh()];
        let mut apply = Operation::new(name, reduce.position);
        apply.operands = parameters.clone();
        apply.first_result = self.fresh();
        apply.result_types = reduce
            .result_types
            .iter()
            .map(|ty| match ty {
                Type::Tensor(ty) => Type::Tensor(TensorType::scalar(ty.dtype)),
                other => other.clone(),
            })
            .collect();
        let mut end = Operation::new("stablehlo.return", reduce.position);
        end.operands = vec![apply.first_result];
        Region { parameters, operations: vec![apply, end], ..Region::default() }
    }

    /// Reads `reducer(%a: type, %b: type) (%c: type, %d: type) { operations }`. The parameters of the
    /// region are the first ones of all pairs, then the second ones.
    fn reducer(&mut self, depth: usize) -> Result<Region> {
        self.location()?;
        if !self.lexer.eat_word("reducer")? {
            return Err(self.lexer.unexpected("`reducer`"));
        }
        let (mut parameters, mut seconds) = (Vec::new(), Vec::new());
        while self.lexer.eat(b'(')? {
            for (position, id) in self.parameters()?.0.into_iter().enumerate() {
                if position == 0 { parameters.push(id) } else { seconds.push(id) }
            }
        }
        parameters.append(&mut seconds);
        self.lexer.expect(b'{')?;
        let operations = self.operations(depth + 1)?;
        Ok(Region { parameters, operations, ..Region::default() })
    }

    /// Reads `(%a = %x, …) : types cond { … } do { … }`.
    pub(super) fn while_loop(&mut self, line: usize, depth: usize) -> Result<Operation> {
        let mut operation = Operation::new("stablehlo.while", Position::Line(line));
        let mut names = Vec::new();
        self.lexer.expect(b'(')?;
        while let Token::Value(name) = self.lexer.peek()? {
            self.lexer.next()?;
            self.lexer.expect(b'=')?;
            let Token::Value(value) = self.lexer.next()? else {
                return Err(self.lexer.unexpected("an initial value"));
            };
            names.push(name);
            operation.operands.push(self.resolve(value)?);
            self.lexer.eat(b',')?;
        }
        self.lexer.expect(b')')?;
        if self.lexer.eat(b':')? {
            loop {
                operation.result_types.push(types::read(&mut self.lexer, 0)?);
                if !self.lexer.eat(b',')? {
                    break;
                }
            }
        }
        if self.lexer.eat_word("attributes")? {
            self.lexer.expect(b'{')?;
            self.dictionary(&mut operation)?;
        }
        for word in ["cond", "do"] {
            if !self.lexer.eat_word(word)? {
                return Err(self.lexer.unexpected(&format!("`{word}`")));
            }
            self.lexer.expect(b'{')?;
            let parameters = names.iter().map(|name| self.define(name, 1)).collect();
            let operations = self.operations(depth + 1)?;
            operation.regions.push(Region { parameters, operations, ..Region::default() });
        }
        Ok(operation)
    }
}
