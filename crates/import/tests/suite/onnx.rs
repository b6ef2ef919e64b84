//! Reads ONNX models and corrupt copies of them. `tests/formats/onnx_nodes.py` writes the models.

use std::path::Path;

use crate::common::{Damage, readers};

/// Returns the contents of all fields with a number, in a message whose fields have lengths.
fn fields(mut message: &[u8], number: u64) -> Vec<&[u8]> {
    let mut found = Vec::new();
    while !message.is_empty() {
        let key = varint(&mut message) >> 3;
        let length = usize::try_from(varint(&mut message)).unwrap();
        let (content, rest) = message.split_at(length);
        message = rest;
        found.extend((key == number).then_some(content));
    }
    found
}

/// Removes an integer of variable length from the start of a message.
fn varint(message: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = message.split_first().unwrap();
        *message = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            break;
        }
    }
    value
}

#[test]
fn corrupt_models_are_read_or_rejected() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/formats");
    let cases = std::fs::read(folder.join("onnx_nodes.bin")).unwrap();
    let perceptron = std::fs::read(folder.join("mlp.onnx")).unwrap();
    let mut models: Vec<&[u8]> = vec![&perceptron];
    models.extend(fields(&cases, 1).into_iter().flat_map(|case| fields(case, 2)));
    let mut damage = Damage::new();
    let mut traced = 0;
    for model in &models {
        traced += usize::from(readers::onnx(model));
        for _ in 0..500 {
            readers::onnx(&damage.copy(model));
        }
    }
    assert!(traced > models.len() / 2, "{traced} of {} models are traced", models.len());
}
