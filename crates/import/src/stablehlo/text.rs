//! The reader of MLIR text: modules, functions, operations in the generic and in the short form.

use std::collections::BTreeMap;

use nxla_expr::TensorType;

use super::lexer::{Lexer, Token};
use super::syntax::{
    Attribute, Dense, Function, GLOBAL_CONSTANT, Operation, Position, Region, Syntax, Type,
    ValueId, is_platform_index, string_entry,
};
use super::{MAX_DEPTH, attributes, malformed_line, types};
use crate::Result;

/// The hexadecimal text of each resource, by name.
pub(super) type Resources<'a> = BTreeMap<&'a str, &'a str>;

/// Reads a module.
pub(super) fn read(text: &str) -> Result<Syntax> {
    let (program, data) = text.rfind("{-#").map_or((text, ""), |at| text.split_at(at));
    let mut parser = Parser::new(program, resources(data)?);
    let mut syntax = Syntax::default();
    parser.top(&mut syntax)?;
    Ok(syntax)
}

/// The requirement for inputs of [`main_inputs`].
const REQUIREMENT: &str = "must be a tensor with a static shape and a known element type";

/// Reads the types of the inputs of `@main` without the operations of the module.
pub(super) fn main_inputs(text: &str) -> Result<Vec<TensorType>> {
    let mut parser = Parser::new(text, Resources::new());
    parser.seek_main()?;
    let line = parser.lexer.line();
    let types = parser.function_inputs()?.types.into_iter().enumerate();
    let tensors = types.map(|(index, ty)| match ty {
        Type::Tensor(ty) => Ok(ty),
        Type::Tuple(_) | Type::Function(..) => {
            Err(malformed_line(line, format!("@main: input {index} {REQUIREMENT}")))
        }
        Type::Other(found) => {
            Err(malformed_line(line, format!("@main: input {index} {REQUIREMENT}; got {found}")))
        }
    });
    tensors.collect()
}

/// Reads the entries `name: "0x…"` of the section with resources.
fn resources(data: &str) -> Result<Resources<'_>> {
    let mut lexer = Lexer::new(data);
    let mut found = BTreeMap::new();
    let mut name = None;
    loop {
        match lexer.next()? {
            Token::End => return Ok(found),
            Token::Word(word) => name = Some(word),
            Token::String(text) => match name.take() {
                Some(name) if text.starts_with("0x") => {
                    found.insert(name, text);
                }
                _ => name = Some(text),
            },
            _ => {}
        }
    }
}

pub(super) struct Parser<'a> {
    pub(super) lexer: Lexer<'a>,
    pub(super) resources: Resources<'a>,
    /// The first value and the number of values of each name.
    names: BTreeMap<&'a str, (ValueId, usize)>,
    values: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, resources: Resources<'a>) -> Self {
        Self { lexer: Lexer::new(text), resources, names: BTreeMap::new(), values: 0 }
    }

    /// Skips everything up to the inputs of `@main`.
    fn seek_main(&mut self) -> Result<()> {
        loop {
            match self.lexer.next()? {
                Token::Word("func.func" | "func") => {}
                Token::End => {
                    let why = "the module must have a function @main";
                    return Err(malformed_line(self.lexer.line(), why));
                }
                _ => continue,
            }
            self.skip_visibility()?;
            if self.lexer.next()? == Token::Symbol("main") {
                return Ok(());
            }
        }
    }

    fn skip_visibility(&mut self) -> Result<()> {
        while matches!(self.lexer.peek()?, Token::Word("public" | "private" | "nested")) {
            self.lexer.next()?;
        }
        Ok(())
    }

    /// Reads the file: aliases, one module, or functions without a module.
    fn top(&mut self, syntax: &mut Syntax) -> Result<()> {
        loop {
            match self.lexer.peek()? {
                Token::End => return Ok(()),
                Token::Hash(_) | Token::Bang(_) => self.alias()?,
                Token::Word("module") => self.module(syntax)?,
                Token::String("builtin.module") => {
                    let module = self.operation(0)?;
                    syntax.name = module.symbol_name();
                    for operation in module.regions.into_iter().flat_map(|body| body.operations) {
                        syntax.functions.extend(Function::of_operation(operation));
                    }
                }
                _ => self.declaration(syntax)?,
            }
        }
    }

    /// Skips `#alias = attribute` and `!alias = type`.
    fn alias(&mut self) -> Result<()> {
        self.lexer.next()?;
        self.lexer.expect(b'=')?;
        if matches!(self.lexer.peek()?, Token::Punctuation(b'(')) {
            types::read(&mut self.lexer, 0)?;
        } else {
            attributes::read(&mut self.lexer, &self.resources, 0)?;
        }
        Ok(())
    }

    fn module(&mut self, syntax: &mut Syntax) -> Result<()> {
        self.lexer.next()?;
        if let Token::Symbol(name) = self.lexer.peek()? {
            self.lexer.next()?;
            syntax.name = Some(name.to_owned());
        }
        self.attribute_list()?;
        self.lexer.expect(b'{')?;
        while !self.lexer.eat(b'}')? {
            if self.lexer.peek()? == Token::End {
                return Err(self.lexer.unexpected("`}`"));
            }
            self.declaration(syntax)?;
        }
        self.location()?;
        Ok(())
    }

    /// Skips `attributes {…}`.
    fn attribute_list(&mut self) -> Result<()> {
        if self.lexer.eat_word("attributes")? {
            self.lexer.expect(b'{')?;
            attributes::dictionary(&mut self.lexer, &self.resources, 0)?;
        }
        Ok(())
    }

    /// Reads `loc(…)`, and returns the name if the location is a name.
    pub(super) fn location(&mut self) -> Result<Option<String>> {
        if !self.lexer.eat_word("loc")? {
            return Ok(None);
        }
        let mut ahead = self.lexer.clone();
        ahead.next()?;
        let name = match (ahead.next()?, ahead.next()?) {
            (Token::String(name), Token::Punctuation(b')')) => Some(attributes::unescape(name)),
            _ => None,
        };
        self.lexer.skip_brackets()?;
        Ok(name)
    }

    /// Reads a function, or skips a declaration of another dialect (`sdy.mesh @mesh = <…> {…}`).
    fn declaration(&mut self, syntax: &mut Syntax) -> Result<()> {
        match self.lexer.peek()? {
            Token::Word("func.func" | "func") => {
                let function = self.function()?;
                syntax.functions.extend(function);
                Ok(())
            }
            Token::String("func.func") => {
                let operation = self.operation(0)?;
                syntax.functions.extend(Function::of_operation(operation));
                Ok(())
            }
            Token::Word("sdy.mesh") => {
                self.lexer.next()?;
                self.lexer.next()?;
                self.lexer.expect(b'=')?;
                self.lexer.skip_brackets()?;
                if self.lexer.peek()? == Token::Punctuation(b'{') {
                    self.lexer.skip_brackets()?;
                }
                self.location().map(|_| ())
            }
            _ => Err(self.lexer.unexpected("a function")),
        }
    }

    /// Reads a function; a declaration without a body is `None`.
    fn function(&mut self) -> Result<Option<Function>> {
        self.lexer.next()?;
        self.names.clear();
        self.values = 0;
        self.skip_visibility()?;
        let line = self.lexer.line();
        let Token::Symbol(name) = self.lexer.next()? else {
            return Err(self.lexer.unexpected("the name of a function"));
        };
        let Inputs { types: inputs, names: input_names, platform, parameters } =
            self.function_inputs()?;
        let (mut outputs, mut output_names) = (Vec::new(), Vec::new());
        if self.lexer.peek()? == Token::Arrow {
            self.lexer.next()?;
            (outputs, output_names) = self.function_outputs()?;
        }
        self.attribute_list()?;
        if !self.lexer.eat(b'{')? {
            self.location()?;
            return Ok(None);
        }
        let operations = self.operations(0)?;
        self.location()?;
        Ok(Some(Function {
            name: name.to_owned(),
            inputs,
            input_names,
            platform,
            outputs,
            output_names,
            body: Region { parameters, operations, ..Region::default() },
            values: self.values,
            position: Position::Line(line),
        }))
    }

    fn function_inputs(&mut self) -> Result<Inputs> {
        let mut inputs = Inputs::default();
        self.lexer.expect(b'(')?;
        let mut is_end = self.lexer.eat(b')')?;
        while !is_end {
            if let Token::Value(name) = self.lexer.peek()? {
                self.lexer.next()?;
                self.lexer.expect(b':')?;
                inputs.parameters.push(self.define(name, 1));
            }
            inputs.types.push(types::read(&mut self.lexer, 0)?);
            let information = self.information()?;
            if is_platform_index(&string_entry(&information, GLOBAL_CONSTANT)) {
                inputs.platform = Some(inputs.names.len());
            }
            let location = self.location()?;
            inputs.names.push(string_entry(&information, "jax.arg_info").or(location));
            is_end = self.lexer.ends_list(b')')?;
        }
        Ok(inputs)
    }

    /// Reads the attributes of an input or output of a function.
    fn information(&mut self) -> Result<Vec<(String, Attribute)>> {
        if !self.lexer.eat(b'{')? {
            return Ok(Vec::new());
        }
        attributes::dictionary(&mut self.lexer, &self.resources, 0)
    }

    fn function_outputs(&mut self) -> Result<(Vec<Type>, Vec<Option<String>>)> {
        if !self.lexer.eat(b'(')? {
            return Ok((vec![types::read(&mut self.lexer, 0)?], vec![None]));
        }
        let (mut outputs, mut names) = (Vec::new(), Vec::new());
        let mut is_end = self.lexer.eat(b')')?;
        while !is_end {
            outputs.push(types::read(&mut self.lexer, 0)?);
            names.push(string_entry(&self.information()?, "jax.result_info"));
            is_end = self.lexer.ends_list(b')')?;
        }
        Ok((outputs, names))
    }

    /// Numbers the results of an operation.
    pub(super) fn define(&mut self, name: &'a str, count: usize) -> ValueId {
        let first = self.values;
        self.values += count;
        self.names.insert(name, (first, count));
        first
    }

    /// Numbers a value without a name.
    pub(super) fn fresh(&mut self) -> ValueId {
        self.values += 1;
        self.values - 1
    }

    /// Returns the number of a value.
    pub(super) fn resolve(&self, name: &str) -> Result<ValueId> {
        let (base, index) = match name.split_once('#') {
            Some((base, index)) => (base, index.parse().ok()),
            None => (name, Some(0)),
        };
        let found = self.names.get(base).zip(index).filter(|((_, count), index)| index < count);
        let why = || malformed_line(self.lexer.line(), format!("the value %{name} is not defined"));
        found.map(|((first, _), index)| first + index).ok_or_else(why)
    }

    /// Reads operations up to a closing brace.
    pub(super) fn operations(&mut self, depth: usize) -> Result<Vec<Operation>> {
        if depth > MAX_DEPTH {
            return Err(malformed_line(self.lexer.line(), "regions are nested too deep"));
        }
        let mut operations = Vec::new();
        while !self.lexer.eat(b'}')? {
            operations.push(self.operation(depth)?);
        }
        Ok(operations)
    }

    /// Reads `{ ^bb0(%a: type): operations }` after the opening brace.
    pub(super) fn region(&mut self, depth: usize) -> Result<Region> {
        let mut region = Region::default();
        if let Token::Block(_) = self.lexer.peek()? {
            self.lexer.next()?;
            if self.lexer.eat(b'(')? {
                (region.parameters, region.parameter_names) = self.parameters()?;
            }
            self.lexer.expect(b':')?;
        }
        region.operations = self.operations(depth)?;
        Ok(region)
    }

    /// Reads `%a: type, %b: type)`: the values and the names in their locations.
    pub(super) fn parameters(&mut self) -> Result<(Vec<ValueId>, Vec<Option<String>>)> {
        let (mut parameters, mut names) = (Vec::new(), Vec::new());
        let mut is_end = self.lexer.eat(b')')?;
        while !is_end {
            let Token::Value(name) = self.lexer.next()? else {
                return Err(self.lexer.unexpected("a parameter"));
            };
            self.lexer.expect(b':')?;
            types::read(&mut self.lexer, 0)?;
            names.push(self.location()?);
            parameters.push(self.define(name, 1));
            is_end = self.lexer.ends_list(b')')?;
        }
        Ok((parameters, names))
    }

    /// Reads the names of results before `=`, with the number of values of each.
    fn result_names(&mut self) -> Result<Vec<(&'a str, usize)>> {
        let mut names = Vec::new();
        while let Token::Value(name) = self.lexer.peek()? {
            self.lexer.next()?;
            let mut count = 1;
            if self.lexer.eat(b':')? {
                let Token::Number(text) = self.lexer.next()? else {
                    return Err(self.lexer.unexpected("the number of results"));
                };
                let limit = self.lexer.text().len();
                let why = "the number of results is too large";
                let parsed = text.parse().ok().filter(|&count| count <= limit);
                count = parsed.ok_or_else(|| malformed_line(self.lexer.line(), why))?;
            }
            names.push((name, count));
            if !self.lexer.eat(b',')? {
                break;
            }
        }
        if !names.is_empty() {
            self.lexer.expect(b'=')?;
        }
        Ok(names)
    }

    fn operation(&mut self, depth: usize) -> Result<Operation> {
        let names = self.result_names()?;
        let count = names.iter().map(|(_, count)| count).sum();
        self.lexer.skip_space();
        let line = self.lexer.line();
        let mut operation = match self.lexer.next()? {
            Token::String("func.func") => return self.function_operation(&names, line, depth),
            Token::String(name) => self.generic(name, line, depth)?,
            Token::Word("stablehlo.reduce" | "mhlo.reduce") => self.reduce(line, depth)?,
            Token::Word("stablehlo.while" | "mhlo.while") => self.while_loop(line, depth)?,
            Token::Word(name) => self.short(name, line, count)?,
            _ => return Err(self.lexer.unexpected("an operation")),
        };
        self.location()?;
        if count != operation.result_types.len() && !names.is_empty() {
            let (name, types) = (&operation.name, operation.result_types.len());
            let why = format!("{name} has {types} results; got names for {count}");
            return Err(malformed_line(line, why));
        }
        operation.first_result = self.values;
        for (name, count) in names {
            self.define(name, count);
        }
        if count == 0 {
            self.values += operation.result_types.len();
        }
        Ok(operation)
    }

    /// Reads the generic form of a function after the name. Values are numbered within a function;
    /// `first_result` of the operation is their number.
    fn function_operation(
        &mut self,
        results: &[(&'a str, usize)],
        line: usize,
        depth: usize,
    ) -> Result<Operation> {
        let outer = (std::mem::take(&mut self.names), std::mem::take(&mut self.values));
        let mut operation = self.generic("func.func", line, depth)?;
        if !results.is_empty() || !operation.result_types.is_empty() {
            return Err(malformed_line(line, "func.func must not have results"));
        }
        operation.first_result = self.values;
        (self.names, self.values) = outer;
        self.location()?;
        Ok(operation)
    }

    /// Reads the generic form after the name.
    fn generic(&mut self, name: &str, line: usize, depth: usize) -> Result<Operation> {
        let mut operation = Operation::new(name, Position::Line(line));
        self.lexer.expect(b'(')?;
        while let Token::Value(name) = self.lexer.peek()? {
            self.lexer.next()?;
            operation.operands.push(self.resolve(name)?);
            self.lexer.eat(b',')?;
        }
        self.lexer.expect(b')')?;
        loop {
            match self.lexer.peek()? {
                Token::Punctuation(b'<') => {
                    self.lexer.next()?;
                    self.lexer.expect(b'{')?;
                    self.dictionary(&mut operation)?;
                    self.lexer.expect(b'>')?;
                }
                Token::Punctuation(b'{') => {
                    self.lexer.next()?;
                    self.dictionary(&mut operation)?;
                }
                Token::Punctuation(b'(') => {
                    self.lexer.next()?;
                    while self.lexer.eat(b'{')? {
                        operation.regions.push(self.region(depth + 1)?);
                        self.lexer.eat(b',')?;
                    }
                    self.lexer.expect(b')')?;
                }
                _ => break,
            }
        }
        self.lexer.expect(b':')?;
        let Type::Function(_, outputs) = types::read(&mut self.lexer, 0)? else {
            return Err(self.lexer.unexpected("the type of a function"));
        };
        operation.result_types = outputs;
        Ok(operation)
    }

    /// Reads the rest of an attribute dictionary into an operation.
    pub(super) fn dictionary(&mut self, operation: &mut Operation) -> Result<()> {
        let entries = attributes::dictionary(&mut self.lexer, &self.resources, 0)?;
        operation.attributes.extend(entries);
        Ok(())
    }

    /// Reads the short form after the name: operands, keywords, `key = value` and lists in any order.
    fn short(&mut self, name: &str, line: usize, results: usize) -> Result<Operation> {
        let mut operation = Operation::new(&full_name(name), Position::Line(line));
        loop {
            let mut ahead = self.lexer.clone();
            match ahead.next()? {
                Token::Value(value) => {
                    operation.operands.push(self.resolve(value)?);
                    self.lexer = ahead;
                }
                Token::Punctuation(b'(' | b')' | b',') => self.lexer = ahead,
                Token::Punctuation(b'{') => {
                    self.lexer = ahead;
                    self.dictionary(&mut operation)?;
                }
                Token::Punctuation(b'<') => {
                    if ahead.eat(b'{')? {
                        self.lexer = ahead;
                        self.dictionary(&mut operation)?;
                        self.lexer.expect(b'>')?;
                    } else {
                        self.lexer.skip_brackets()?;
                    }
                }
                Token::Punctuation(b':') => {
                    self.lexer = ahead;
                    self.signature(&mut operation, results)?;
                    return Ok(operation);
                }
                Token::Symbol(symbol) => {
                    self.lexer = ahead;
                    let symbol = Attribute::Symbol(symbol.to_owned());
                    operation.attributes.push(("callee".into(), symbol));
                }
                Token::Word("loc") => return Ok(operation),
                Token::Word("dense" | "dense_resource") => {
                    let value = attributes::read(&mut self.lexer, &self.resources, 0)?;
                    operation.result_types = vec![type_of(&value)];
                    operation.attributes.push(("value".into(), value));
                    return Ok(operation);
                }
                Token::Word(key) if ahead.eat(b'=')? => {
                    self.lexer = ahead;
                    let value = attributes::read(&mut self.lexer, &self.resources, 0)?;
                    operation.attributes.push((key.to_owned(), value));
                }
                Token::Punctuation(b'[') | Token::Hash(_) | Token::String(_) | Token::Word(_) => {
                    let value = attributes::read(&mut self.lexer, &self.resources, 0)?;
                    operation.attributes.push((String::new(), value));
                }
                _ => return Ok(operation),
            }
        }
    }

    /// Reads the types after `:` in the short form.
    fn signature(&mut self, operation: &mut Operation, results: usize) -> Result<()> {
        let mut found = vec![types::read(&mut self.lexer, 0)?];
        while self.lexer.eat(b',')? {
            found.push(types::read(&mut self.lexer, 0)?);
        }
        if self.lexer.peek()? == Token::Arrow {
            self.lexer.next()?;
            operation.result_types = types::results(&mut self.lexer, 0)?;
            return Ok(());
        }
        operation.result_types = match found.pop() {
            Some(Type::Function(_, outputs)) => outputs,
            Some(last) if results == 1 => vec![last],
            Some(last) if results == found.len() + 1 => {
                found.push(last);
                found
            }
            _ => Vec::new(),
        };
        Ok(())
    }
}

/// The inputs of a function.
#[derive(Default)]
struct Inputs {
    types: Vec<Type>,
    names: Vec<Option<String>>,
    /// The input that is the index of the platform.
    platform: Option<usize>,
    parameters: Vec<ValueId>,
}

/// Adds the dialect to the operations that omit it.
fn full_name(name: &str) -> String {
    match name {
        "return" | "call" => format!("func.{name}"),
        _ => name.to_owned(),
    }
}

fn type_of(value: &Attribute) -> Type {
    match value {
        Attribute::Dense(Dense::Splat(_, ty)) => Type::Tensor(ty.clone()),
        Attribute::Dense(Dense::Tensor(tensor)) => {
            Type::Tensor(TensorType::new(tensor.dtype(), tensor.shape().clone()))
        }
        Attribute::Dense(Dense::Other(text)) => Type::Other(text.clone()),
        _ => Type::Other("an attribute".into()),
    }
}
