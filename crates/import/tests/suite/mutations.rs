//! Reads models and modules in which fields and numbers are replaced. Unlike the copies of
//! [`Damage::copy`], most of them are well formed, so that they reach the checks of operators.

use crate::common::wire::{Field, Value, parse, varint, write};
use crate::common::{Damage, readers};
use crate::{onnx, stablehlo};

/// Integers at the limits of axes, sizes, counts and bit widths.
const INTEGERS: [i64; 22] = [
    0,
    1,
    2,
    3,
    5,
    7,
    16,
    63,
    64,
    65,
    255,
    -1,
    -2,
    -3,
    1 << 20,
    1 << 31,
    1 << 32,
    1 << 40,
    1 << 62,
    i64::MAX - 1,
    i64::MAX,
    i64::MIN,
];

const FLOATS: [f32; 7] = [0.0, 1.0, -1.0, 0.5, 1e30, f32::INFINITY, f32::NAN];

fn integer(damage: &mut Damage) -> i64 {
    INTEGERS[damage.below(INTEGERS.len())]
}

/// Removes, repeats or replaces a field of a message or of a nested message.
fn mutate_fields(fields: &mut Vec<Field>, damage: &mut Damage) {
    if fields.is_empty() {
        return;
    }
    let at = damage.below(fields.len());
    if let Value::Message(nested) = &mut fields[at].1
        && damage.below(8) > 0
    {
        return mutate_fields(nested, damage);
    }
    match damage.below(6) {
        0 => drop(fields.remove(at)),
        1 => fields.insert(at, fields[at].clone()),
        _ => match &mut fields[at].1 {
            Value::Int(value) => *value = integer(damage).cast_unsigned(),
            Value::Fixed(bytes) => {
                bytes[..4].copy_from_slice(&FLOATS[damage.below(FLOATS.len())].to_le_bytes());
            }
            Value::Bytes(bytes) => mutate_bytes(bytes, damage),
            Value::Message(nested) => nested.clear(),
        },
    }
}

/// Changes a name, the data of a tensor, or a list of integers.
fn mutate_bytes(bytes: &mut Vec<u8>, damage: &mut Damage) {
    match damage.below(4) {
        0 => bytes.clear(),
        1 if bytes.len() >= 8 => {
            let at = damage.below(bytes.len() / 8) * 8;
            bytes[at..at + 8].copy_from_slice(&integer(damage).to_le_bytes());
        }
        1 | 2 => {
            let count = 1 + damage.below(4);
            *bytes = varint(integer(damage).cast_unsigned()).repeat(count);
        }
        _ if bytes.is_empty() => {}
        _ => drop(bytes.remove(damage.below(bytes.len()))),
    }
}

#[test]
fn mutated_models_are_read_or_rejected() {
    let mut damage = Damage::new();
    for model in onnx::models() {
        let fields = parse(&model, 8).unwrap();
        assert!(write(&fields) == model, "a message is written as it was read");
        for _ in 0..100 {
            let mut mutated = fields.clone();
            for _ in 0..=damage.below(2) {
                mutate_fields(&mut mutated, &mut damage);
            }
            readers::onnx(&write(&mutated));
        }
    }
}

/// Returns the ranges of the integers in a text, with their signs.
fn integers(text: &str) -> Vec<(usize, usize)> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(digit) = bytes[at..].iter().position(u8::is_ascii_digit) {
        let first = at + digit;
        let length = bytes[first..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let is_negative = first > 0 && bytes[first - 1] == b'-';
        at = first + length;
        found.push((first - usize::from(is_negative), at));
    }
    found
}

/// Replaces up to two integers of a module.
fn mutate_integers(text: &str, damage: &mut Damage) -> String {
    let mut mutated = text.to_owned();
    for _ in 0..=damage.below(2) {
        let found = integers(&mutated);
        let (start, end) = found[damage.below(found.len())];
        mutated.replace_range(start..end, &integer(damage).to_string());
    }
    mutated
}

/// Removes, repeats or exchanges lines of a module.
fn mutate_lines(text: &str, damage: &mut Damage) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    let (at, other) = (damage.below(lines.len()), damage.below(lines.len()));
    match damage.below(3) {
        0 => drop(lines.remove(at)),
        1 => lines[at] = lines[other],
        _ => lines.swap(at, other),
    }
    lines.join("\n")
}

#[test]
fn mutated_modules_are_read_or_rejected() {
    let mut damage = Damage::new();
    for path in stablehlo::modules() {
        let text = std::fs::read_to_string(path).unwrap();
        for _ in 0..40 {
            let mutated = match damage.below(4) {
                0 => mutate_lines(&text, &mut damage),
                _ => mutate_integers(&text, &mut damage),
            };
            readers::stablehlo(mutated.as_bytes());
        }
    }
}
