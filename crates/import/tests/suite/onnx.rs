//! Reads ONNX models and corrupt copies of them. `tests/formats/onnx_nodes.py` writes the models.

use std::path::Path;

use crate::common::wire::contents;
use crate::common::{Damage, readers};

/// Returns a perceptron, and the models of the node tests of ONNX.
pub(crate) fn models() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/formats");
    let cases = std::fs::read(folder.join("onnx_nodes.bin")).unwrap();
    let mut models = vec![std::fs::read(folder.join("mlp.onnx")).unwrap()];
    models.extend(contents(&cases, 1).iter().flat_map(|case| contents(case, 2)));
    models
}

#[test]
fn corrupt_models_are_read_or_rejected() {
    let models = models();
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
