//! Named values: options for a plugin, and attributes of a plugin.

use crate::sys::{CStruct, PJRT_NamedValue, PJRT_NamedValue_Payload, named_value};

/// The value of an option or attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum NamedValue {
    /// A string.
    String(String),
    /// An integer.
    Int64(i64),
    /// A list of integers.
    Int64List(Vec<i64>),
    /// A number.
    Float(f32),
    /// A boolean.
    Bool(bool),
}

impl From<&str> for NamedValue {
    fn from(value: &str) -> NamedValue {
        NamedValue::String(value.to_owned())
    }
}

impl From<i64> for NamedValue {
    fn from(value: i64) -> NamedValue {
        NamedValue::Int64(value)
    }
}

impl From<f32> for NamedValue {
    fn from(value: f32) -> NamedValue {
        NamedValue::Float(value)
    }
}

impl From<bool> for NamedValue {
    fn from(value: bool) -> NamedValue {
        NamedValue::Bool(value)
    }
}

/// The C form of an option. It points into `name` and `value`.
pub(crate) fn to_raw(name: &str, value: &NamedValue) -> PJRT_NamedValue {
    let mut raw = PJRT_NamedValue::new();
    raw.name = name.as_ptr();
    raw.name_size = name.len();
    (raw.kind, raw.value, raw.value_size) = match value {
        NamedValue::String(text) => {
            (named_value::STRING, PJRT_NamedValue_Payload { string: text.as_ptr() }, text.len())
        }
        NamedValue::Int64(int64) => {
            (named_value::INT64, PJRT_NamedValue_Payload { int64: *int64 }, 1)
        }
        NamedValue::Int64List(list) => {
            let payload = PJRT_NamedValue_Payload { int64_list: list.as_ptr() };
            (named_value::INT64_LIST, payload, list.len())
        }
        NamedValue::Float(float) => {
            (named_value::FLOAT, PJRT_NamedValue_Payload { float: *float }, 1)
        }
        NamedValue::Bool(bool) => (named_value::BOOL, PJRT_NamedValue_Payload { bool: *bool }, 1),
    };
    raw
}

/// Copies attributes out of a plugin. Values of unknown kinds are left out.
///
/// # Safety
/// `values` points to `len` named values as a plugin returns them.
pub(crate) unsafe fn from_raw(
    values: *const PJRT_NamedValue,
    len: usize,
) -> Vec<(String, NamedValue)> {
    let mut attributes = Vec::with_capacity(len);
    let mut next = values;
    for _ in 0..len {
        // SAFETY: `next` points to one of the `len` values. Each pointer and union field is read
        // with the length and kind that the value itself declares.
        unsafe {
            let raw = &*next;
            let value = match raw.kind {
                named_value::STRING => {
                    Some(NamedValue::String(text(raw.value.string, raw.value_size)))
                }
                named_value::INT64 => Some(NamedValue::Int64(raw.value.int64)),
                named_value::INT64_LIST => Some(NamedValue::Int64List(
                    slice(raw.value.int64_list, raw.value_size).to_vec(),
                )),
                named_value::FLOAT => Some(NamedValue::Float(raw.value.float)),
                named_value::BOOL => Some(NamedValue::Bool(raw.value.bool)),
                _ => None,
            };
            attributes.extend(value.map(|value| (text(raw.name, raw.name_size), value)));
            next = next.add(1);
        }
    }
    attributes
}

/// Copies a C string of a given length; invalid UTF-8 is replaced.
///
/// # Safety
/// `data` points to `len` readable bytes, or `len` is 0.
pub(crate) unsafe fn text(data: *const u8, len: usize) -> String {
    // SAFETY: the caller guarantees that `data` points to `len` readable bytes.
    String::from_utf8_lossy(unsafe { slice(data, len) }).into_owned()
}

/// Returns a C array as a slice. An empty array may be null, unlike the pointer of a Rust slice.
///
/// # Safety
/// `data` points to `len` initialized values that outlive `'a`, or `len` is 0.
pub(crate) unsafe fn slice<'a, T>(data: *const T, len: usize) -> &'a [T] {
    if len == 0 || data.is_null() {
        return &[];
    }
    // SAFETY: the pointer is not null, and the caller guarantees the other requirements.
    unsafe { std::slice::from_raw_parts(data, len) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_values_round_trip_through_c() {
        let values = [
            ("text", NamedValue::from("grün")),
            ("empty", NamedValue::from("")),
            ("int", NamedValue::from(-3_i64)),
            ("list", NamedValue::Int64List(vec![1, 2, 3])),
            ("float", NamedValue::from(0.5_f32)),
            ("bool", NamedValue::from(true)),
        ];
        let raw: Vec<_> = values.iter().map(|(name, value)| to_raw(name, value)).collect();
        // SAFETY: `raw` and the memory that it refers to are alive.
        let back = unsafe { from_raw(raw.as_ptr(), raw.len()) };
        let expected: Vec<_> =
            values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        assert_eq!(back, expected);
    }
}
