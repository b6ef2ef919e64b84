//! Readers of untrusted bytes: the result is a valid object or an error. The targets of `cargo
//! fuzz` call these functions too.
#![allow(dead_code, unreachable_pub, reason = "each target uses one")]

use std::borrow::Cow;

use nxla_expr::serialize;
use nxla_expr::verify::verify_program;
use nxla_split::{Stage, StageGraph};

/// The length of the bytes of a program before its checksum: magic bytes and version.
const BEFORE: usize = 6;

/// Reads a program after correcting its checksum, which would otherwise reject nearly all bytes.
pub fn program(bytes: &[u8]) {
    let Ok(program) = serialize::from_bytes(&with_checksum(bytes)) else { return };
    verify_program(&program).expect("a program that is read is valid");
    let restored = serialize::from_bytes(&serialize::to_bytes(&program));
    assert_eq!(restored.expect("a value that was read can be written").digest(), program.digest());
}

/// Reads a stage.
pub fn stage(bytes: &[u8]) {
    let Ok(stage) = Stage::from_bytes(bytes) else { return };
    verify_program(&stage.program).expect("a program that is read is valid");
    assert_eq!(
        Stage::from_bytes(&stage.to_bytes()).expect("a value that was read can be written"),
        stage
    );
}

/// Reads a graph of stages.
pub fn stages(bytes: &[u8]) {
    let Ok(graph) = StageGraph::from_bytes(bytes) else { return };
    graph.verify().expect("a program that is read is valid");
    let restored =
        StageGraph::from_bytes(&graph.to_bytes()).expect("a value that was read can be written");
    assert_eq!(restored.to_bytes(), graph.to_bytes());
}

/// Returns the bytes of a program with a correct checksum.
fn with_checksum(bytes: &[u8]) -> Cow<'_, [u8]> {
    const HEADER: usize = BEFORE + blake3::OUT_LEN;
    let Some(body) = bytes.get(HEADER..) else { return Cow::Borrowed(bytes) };
    let mut corrected = bytes.to_vec();
    corrected[BEFORE..HEADER].copy_from_slice(blake3::hash(body).as_bytes());
    Cow::Owned(corrected)
}
