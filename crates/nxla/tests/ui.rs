//! Compiler messages for common errors, each with a way to fix it.
//!
//! `TRYBUILD=overwrite cargo test -p nxla --test ui` writes the current messages.

#[test]
fn mistakes_are_told_with_their_remedy() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/*.rs");
}
