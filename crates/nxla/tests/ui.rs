//! Compiler messages for common errors, each with a way to fix it.
//!
//! `TRYBUILD=overwrite cargo test -p nxla --test ui` writes the current messages.

#[test]
fn compile_errors_name_a_way_out() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/*.rs");
}
