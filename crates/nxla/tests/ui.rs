//! What the compiler says of common mistakes: each names its remedy.
//!
//! `TRYBUILD=overwrite cargo test -p nxla --test ui` writes what it says now.

#[test]
fn mistakes_are_told_with_their_remedy() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/*.rs");
}
