//! Names of other libraries, by which the search of the documentation finds functions.

#[test]
fn names_of_other_libraries_are_documented_aliases() {
    let containers = include_str!("../../src/containers/mod.rs");
    let control = include_str!("../../src/ops/control.rs");
    let create = include_str!("../../src/ops/create.rs");
    let elementwise = include_str!("../../src/ops/elementwise.rs");
    let hooks = include_str!("../../src/ops/hooks.rs");
    let initializers = include_str!("../../src/initializers.rs");
    let linalg = include_str!("../../src/ops/linalg.rs");
    let movement = include_str!("../../src/ops/movement.rs");
    let reduce = include_str!("../../src/ops/reduce.rs");
    for (alias, function, source) in [
        ("pytree", "pub trait Tree<", containers),
        ("pytree", "pub trait Container:", containers),
        ("composite", "pub fn block<", control),
        ("remat", "pub fn checkpoint<", control),
        ("custom_vjp", "pub fn custom_grad<", control),
        ("stop_gradient", "fn stop_grad(", control),
        ("identity", "fn eye(", create),
        ("astype", "fn as_type(", elementwise),
        ("where", "pub fn select(", elementwise),
        ("pure_callback", "pub fn runtime_call<", hooks),
        ("debug_callback", "pub fn hook<", hooks),
        ("kaiming", "pub fn he_normal(", initializers),
        ("inv", "fn invert(", linalg),
        ("det", "fn determinant(", linalg),
        ("unsqueeze", "fn new_axis(", movement),
        ("concat", "fn concatenate(", movement),
        ("std", "fn standard_deviation(", reduce),
        ("var", "fn variance(", reduce),
    ] {
        let at = source.find(function).unwrap_or_else(|| panic!("no {function}"));
        // The alias belongs to the function if no other item ends in between.
        let attributes = &source[source[..at].rfind("\n\n").unwrap_or(0)..at];
        let alias = format!("#[doc(alias = \"{alias}\")]");
        assert!(attributes.contains(&alias), "{function} has no {alias}");
    }
}
