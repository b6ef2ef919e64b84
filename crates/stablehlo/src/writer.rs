//! The text as it grows: SSA names, operations and their regions.
//!
//! The writer only appends to one string. The operations of a region are written between
//! [`Writer::begin_region`] and [`Writer::end_region`] of the operation that contains the region.

use std::fmt::{self, Write};

use smallvec::SmallVec;

use crate::types::{Ty, Types};

/// An SSA value: `%7`, or `%7#1` for one of several results.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Value {
    name: u32,
    /// The number of the result, counted from one; zero for a single result.
    part: u32,
    pub(crate) ty: Ty,
}

/// A few values.
pub(crate) type Values = SmallVec<[Value; 4]>;

/// An operation with regions whose beginning has been written.
#[must_use = "the operation has to be closed"]
pub(crate) struct Open {
    operands: SmallVec<[Ty; 4]>,
    results: Values,
    regions: usize,
    location: Option<Box<str>>,
}

/// A module under construction.
#[derive(Default)]
pub(crate) struct Writer {
    pub(crate) types: Types,
    text: String,
    depth: usize,
    names: u32,
    /// ` loc("file.py":3:1)` for the operations of the current node.
    location: Option<Box<str>>,
}

/// Formatting into a string has no way to fail.
const INFALLIBLE: &str = "writing to a string cannot fail";

impl Writer {
    /// The finished text.
    pub(crate) fn finish(self) -> String {
        self.text
    }

    /// Sets the location of the following operations to a line of the user.
    pub(crate) fn set_location(&mut self, location: Option<Box<str>>) {
        self.location = location;
    }

    /// A name that no value has yet.
    pub(crate) fn new_value(&mut self, ty: Ty) -> Value {
        let name = self.names;
        self.names += 1;
        Value { name, part: 0, ty }
    }

    /// An operation: `%2 = "name"(%0, %1) {attributes} : (types) -> type`.
    pub(crate) fn operation(
        &mut self,
        name: &str,
        operands: &[Value],
        attributes: fmt::Arguments<'_>,
        result: Ty,
    ) -> Value {
        self.operations(name, operands, attributes, &[result])[0]
    }

    /// An operation with several results: `%4:2 = "name"(%0) {attributes} : (types) -> (types)`.
    pub(crate) fn operations(
        &mut self,
        name: &str,
        operands: &[Value],
        attributes: fmt::Arguments<'_>,
        results: &[Ty],
    ) -> Values {
        let values = self.begin_operation(name, operands, results);
        self.attributes(attributes);
        self.signature(operands.iter().map(|operand| operand.ty), results);
        self.end_line();
        values
    }

    /// An operation whose operands and result have one type: `%2 = name %0, %1 : type`.
    pub(crate) fn uniform(&mut self, name: &str, operands: &[Value]) -> Value {
        let ty = operands[0].ty;
        let value = self.new_value(ty);
        self.begin_line();
        self.push(format_args!("{value} = {name} "));
        self.values(operands);
        self.text.push_str(" : ");
        self.ty(ty);
        if name.starts_with("chlo.") {
            // CHLO requires all types, even if they follow from the first one.
            for _ in 1..operands.len() {
                self.text.push_str(", ");
                self.ty(ty);
            }
            self.text.push_str(" -> ");
            self.ty(ty);
        }
        self.end_line();
        value
    }

    /// `%2 = stablehlo.constant literal : type`.
    pub(crate) fn constant(&mut self, literal: fmt::Arguments<'_>, ty: Ty) -> Value {
        let value = self.new_value(ty);
        self.begin_line();
        self.push(format_args!("{value} = stablehlo.constant {literal} : "));
        self.ty(ty);
        self.end_line();
        value
    }

    /// `%2 = sdy.sharding_constraint %1 <@mesh, layout> : type`.
    pub(crate) fn constrain(&mut self, value: Value, layout: &str) -> Value {
        let constrained = self.new_value(value.ty);
        self.begin_line();
        self.push(format_args!(
            "{constrained} = sdy.sharding_constraint {value} <@mesh, {layout}> : "
        ));
        self.ty(value.ty);
        self.end_line();
        constrained
    }

    /// `%4:2 = call @name(%0, %1) : (types) -> (types)`, with attributes before the colon.
    pub(crate) fn call(
        &mut self,
        function: &str,
        operands: &[Value],
        results: &[Ty],
        attributes: &str,
    ) -> Values {
        let values = self.new_results(results);
        self.begin_line();
        self.results(&values);
        self.push(format_args!("call @{function}("));
        self.values(operands);
        self.text.push(')');
        self.text.push_str(attributes);
        self.signature(operands.iter().map(|operand| operand.ty), results);
        self.end_line();
        values
    }

    /// Begins an operation that holds regions.
    pub(crate) fn open(&mut self, name: &str, operands: &[Value], results: &[Ty]) -> Open {
        let values = self.begin_operation(name, operands, results);
        self.text.push_str(" (");
        Open {
            operands: operands.iter().map(|operand| operand.ty).collect(),
            results: values,
            regions: 0,
            location: self.location.clone(),
        }
    }

    /// Begins the next region of an operation; returns the arguments of the region.
    pub(crate) fn begin_region(&mut self, open: &mut Open, arguments: &[Ty]) -> Values {
        self.text.push_str(if open.regions == 0 { "{\n" } else { ", {\n" });
        open.regions += 1;
        let arguments: Values = arguments.iter().map(|&ty| self.new_value(ty)).collect();
        if !arguments.is_empty() {
            self.begin_line();
            self.text.push_str("^bb0");
            self.typed_values(&arguments, |_| None);
            self.text.push_str(":\n");
        }
        self.depth += 1;
        arguments
    }

    /// Ends a region with its results.
    pub(crate) fn end_region(&mut self, results: &[Value]) {
        self.write_return("stablehlo.return", results);
        self.depth -= 1;
        self.begin_line();
        self.text.push('}');
    }

    /// Ends an operation after its last region.
    pub(crate) fn close(&mut self, open: Open, attributes: fmt::Arguments<'_>) -> Values {
        self.text.push(')');
        self.attributes(attributes);
        let results: SmallVec<[Ty; 4]> = open.results.iter().map(|value| value.ty).collect();
        self.signature(open.operands.iter().copied(), &results);
        self.location = open.location;
        self.end_line();
        open.results
    }

    /// Begins a module with attributes and, for several devices, with the mesh.
    pub(crate) fn begin_module(&mut self, header: Option<(String, String)>) {
        self.depth = 1;
        match header {
            None => self.text.push_str("module @nxla {\n"),
            Some((attributes, first)) => {
                self.push(format_args!("module @nxla attributes {{{attributes}}} {{\n"));
                self.begin_line();
                self.push(format_args!("{first}\n"));
            }
        }
    }

    /// Ends a module.
    pub(crate) fn end_module(&mut self) {
        self.text.push_str("}\n");
        self.depth = 0;
    }

    /// Begins a function; returns its parameters. `attribute` returns the attributes of a parameter;
    /// `result_attributes` has an entry for each result, or none.
    pub(crate) fn begin_function<'t>(
        &mut self,
        visibility: &str,
        name: &str,
        parameters: &[Ty],
        results: &[Ty],
        attribute: impl Fn(usize) -> Option<&'t str>,
        result_attributes: &[String],
    ) -> Values {
        let parameters: Values = parameters.iter().map(|&ty| self.new_value(ty)).collect();
        self.begin_line();
        self.push(format_args!("func.func {visibility} @{name}"));
        self.typed_values(&parameters, attribute);
        if !results.is_empty() {
            self.text.push_str(" -> ");
            match result_attributes {
                [] => self.type_list(results),
                attributes => self.results_with(results, attributes),
            }
        }
        self.text.push_str(" {\n");
        self.depth += 1;
        parameters
    }

    /// Ends a function with its results.
    pub(crate) fn end_function(&mut self, results: &[Value]) {
        self.location = None;
        self.write_return("return", results);
        self.depth -= 1;
        self.begin_line();
        self.text.push_str("}\n");
    }

    /// `%4:2 = "name"(%0)`.
    fn begin_operation(&mut self, name: &str, operands: &[Value], results: &[Ty]) -> Values {
        let values = self.new_results(results);
        self.begin_line();
        self.results(&values);
        self.push(format_args!("\"{name}\"("));
        self.values(operands);
        self.text.push(')');
        values
    }

    fn new_results(&mut self, types: &[Ty]) -> Values {
        let name = self.names;
        self.names += 1;
        let first = u32::from(types.len() > 1);
        types.iter().zip(first..).map(|(&ty, part)| Value { name, part, ty }).collect()
    }

    /// `%4 = ` or `%4:2 = `; an operation without results has neither.
    fn results(&mut self, values: &[Value]) {
        match values {
            [] => {}
            [value] => self.push(format_args!("{value} = ")),
            [first, ..] => self.push(format_args!("%{}:{} = ", first.name, values.len())),
        }
    }

    fn write_return(&mut self, name: &str, values: &[Value]) {
        self.begin_line();
        self.text.push_str(name);
        if !values.is_empty() {
            self.text.push(' ');
            self.values(values);
            self.text.push_str(" : ");
            self.list_types(values.iter().map(|value| value.ty));
        }
        self.end_line();
    }

    fn push(&mut self, text: fmt::Arguments<'_>) {
        self.text.write_fmt(text).expect(INFALLIBLE);
    }

    fn separate(&mut self, position: usize) {
        if position > 0 {
            self.text.push_str(", ");
        }
    }

    fn ty(&mut self, ty: Ty) {
        self.text.push_str(self.types.text(ty));
    }

    fn list_types(&mut self, types: impl Iterator<Item = Ty>) {
        for (position, ty) in types.enumerate() {
            self.separate(position);
            self.ty(ty);
        }
    }

    fn values(&mut self, values: &[Value]) {
        for (position, value) in values.iter().enumerate() {
            self.separate(position);
            self.push(format_args!("{value}"));
        }
    }

    /// `(%0: type {attribute}, %1: type)`.
    fn typed_values<'t>(&mut self, values: &[Value], attribute: impl Fn(usize) -> Option<&'t str>) {
        self.text.push('(');
        for (position, value) in values.iter().enumerate() {
            self.separate(position);
            self.push(format_args!("{value}: "));
            self.ty(value.ty);
            if let Some(attribute) = attribute(position) {
                self.push(format_args!(" {{{attribute}}}"));
            }
        }
        self.text.push(')');
    }

    fn attributes(&mut self, attributes: fmt::Arguments<'_>) {
        if attributes.as_str() != Some("") {
            self.push(format_args!(" {{{attributes}}}"));
        }
    }

    /// ` : (types) -> type`.
    fn signature(&mut self, operands: impl Iterator<Item = Ty>, results: &[Ty]) {
        self.text.push_str(" : (");
        self.list_types(operands);
        self.text.push_str(") -> ");
        self.type_list(results);
    }

    /// `(type {attribute}, type {attribute})`.
    fn results_with(&mut self, types: &[Ty], attributes: &[String]) {
        self.text.push('(');
        for (position, (&ty, attribute)) in types.iter().zip(attributes).enumerate() {
            self.separate(position);
            self.ty(ty);
            self.push(format_args!(" {{{attribute}}}"));
        }
        self.text.push(')');
    }

    /// Writes a type, or several types in parentheses.
    fn type_list(&mut self, types: &[Ty]) {
        if let [ty] = types {
            return self.ty(*ty);
        }
        self.text.push('(');
        self.list_types(types.iter().copied());
        self.text.push(')');
    }

    fn begin_line(&mut self) {
        for _ in 0..self.depth {
            self.text.push_str("  ");
        }
    }

    fn end_line(&mut self) {
        if let Some(location) = &self.location {
            self.text.push_str(location);
        }
        self.text.push('\n');
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.part.checked_sub(1) {
            None => write!(f, "%{}", self.name),
            Some(part) => write!(f, "%{}#{part}", self.name),
        }
    }
}
