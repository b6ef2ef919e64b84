//! Attributes of an operation as numbers, and the types of its results.

use nxla_expr::TensorType;
use nxla_tensor::HostTensor;

use super::{Fail, malformed, unsupported};
use crate::Result;
use crate::numbers::to_i64;
use crate::stablehlo::syntax::{Attribute, Dense, Operation, Region, Type};

/// The most entries of a list of numbers.
const MAX_ENTRIES: usize = 1 << 16;

/// Appends the numbers of an attribute.
fn flatten(attribute: &Attribute, found: &mut Vec<i64>) -> Result<(), Fail> {
    match attribute {
        Attribute::Int(value) => match i64::try_from(*value) {
            Ok(value) => found.push(value),
            Err(_) => return malformed("a number must fit in 64 bits"),
        },
        Attribute::Bool(value) => found.push(i64::from(*value)),
        Attribute::List(entries) => entries.iter().try_for_each(|entry| flatten(entry, found))?,
        Attribute::Dense(Dense::Splat(element, ty)) => {
            if ty.shape.size() > MAX_ENTRIES {
                return malformed("a list of numbers is too long");
            }
            let value = integer(element, 0)?;
            found.extend(std::iter::repeat_n(value, ty.shape.size()));
        }
        Attribute::Dense(Dense::Tensor(tensor)) => {
            for index in 0..tensor.size() {
                found.push(integer(tensor, index)?);
            }
        }
        _ => return malformed("an attribute must be a list of integers"),
    }
    Ok(())
}

fn integer(tensor: &HostTensor, index: usize) -> Result<i64, Fail> {
    let value = tensor.get(index).as_i64();
    value.ok_or_else(|| Fail::Malformed("an attribute must be a list of integers".into()))
}

/// Returns the numbers of an attribute.
pub(super) fn numbers(attribute: &Attribute) -> Result<Vec<i64>, Fail> {
    let mut found = Vec::new();
    flatten(attribute, &mut found)?;
    Ok(found)
}

/// Converts numbers to sizes or positions.
pub(super) fn sizes_of(numbers: &[i64]) -> Result<Vec<usize>, Fail> {
    let convert = |&number: &i64| usize::try_from(number).ok();
    let sizes: Option<Vec<usize>> = numbers.iter().map(convert).collect();
    sizes.ok_or_else(|| Fail::Malformed("a size or axis must not be negative".into()))
}

/// Returns positions as axes of the methods of graphs.
pub(super) fn axes(positions: &[usize]) -> Vec<i64> {
    positions.iter().copied().map(to_i64).collect()
}

impl Operation {
    /// Returns a list of integers; the names are of the generic and of the short form.
    pub(super) fn integers(&self, names: &[&str]) -> Result<Vec<i64>, Fail> {
        match self.attribute(names) {
            Some(attribute) => numbers(attribute),
            None => malformed(format!("the attribute {} is missing", names[0])),
        }
    }

    /// Returns a list of integers, or `None` if the attribute is missing.
    pub(super) fn optional(&self, names: &[&str]) -> Result<Option<Vec<i64>>, Fail> {
        self.attribute(names).map(numbers).transpose()
    }

    /// Returns a list of sizes or axes.
    pub(super) fn sizes(&self, names: &[&str]) -> Result<Vec<usize>, Fail> {
        sizes_of(&self.integers(names)?)
    }

    /// Returns one integer.
    pub(super) fn integer(&self, names: &[&str]) -> Result<i64, Fail> {
        match self.integers(names)?[..] {
            [value] => Ok(value),
            _ => malformed(format!("the attribute {} must be one integer", names[0])),
        }
    }

    /// Returns one size or axis.
    pub(super) fn size(&self, names: &[&str]) -> Result<usize, Fail> {
        Ok(sizes_of(&[self.integer(names)?])?[0])
    }

    /// Returns a boolean, false if the attribute is missing.
    pub(super) fn flag(&self, names: &[&str]) -> bool {
        matches!(self.attribute(names), Some(Attribute::Bool(true) | Attribute::Unit))
    }

    /// Returns a keyword, a string or the name of a function.
    pub(super) fn text(&self, names: &[&str]) -> Option<&str> {
        match self.attribute(names) {
            Some(Attribute::Keyword(word) | Attribute::String(word) | Attribute::Symbol(word)) => {
                Some(word)
            }
            _ => None,
        }
    }

    /// Returns the keywords without a key, in order.
    pub(super) fn keywords<'a>(&'a self) -> Vec<&'a str> {
        let word = |(key, value): &'a (String, Attribute)| match value {
            Attribute::Keyword(word) if key.is_empty() => Some(word.as_str()),
            _ => None,
        };
        self.attributes.iter().filter_map(word).collect()
    }

    /// Returns an entry of an attribute that is a dictionary. Bytecode has the entries of dimension
    /// numbers as attributes.
    pub(super) fn entry(&self, names: &[&str], key: &str) -> Option<&Attribute> {
        match self.attribute(names) {
            Some(Attribute::Dictionary(entries)) => {
                entries.iter().find(|(name, _)| name == key).map(|(_, value)| value)
            }
            Some(_) => None,
            None => self.attribute(&[key]),
        }
    }

    /// Returns the integers of an entry of a dictionary; none if the entry is missing.
    pub(super) fn entry_sizes(&self, names: &[&str], key: &str) -> Result<Vec<usize>, Fail> {
        match self.entry(names, key) {
            Some(attribute) => sizes_of(&numbers(attribute)?),
            None => Ok(Vec::new()),
        }
    }

    /// Returns the type of a result.
    pub(super) fn result(&self, index: usize) -> Result<&TensorType, Fail> {
        match self.result_types.get(index) {
            Some(Type::Tensor(ty)) => Ok(ty),
            Some(Type::Other(name)) => unsupported(format!("the type {name} is not supported")),
            _ => malformed("a result must be a tensor"),
        }
    }

    /// Returns a region.
    pub(super) fn region(&self, index: usize) -> Result<&Region, Fail> {
        let found = self.regions.get(index);
        found.ok_or_else(|| Fail::Malformed(format!("region {index} is missing")))
    }
}

/// Returns the operands as an array. Another number of operands is an error.
pub(super) fn as_array<T: Copy, const N: usize>(operands: &[T]) -> Result<[T; N], Fail> {
    let count = operands.len();
    let array = operands.try_into();
    array.map_err(|_| Fail::Malformed(format!("needs {N} operands; got {count}")))
}
