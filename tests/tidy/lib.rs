//! The project's rules about its own sources, as tests.
//!
//! Rust files are parsed, so that comments, strings and macros do not mislead the rules. A rule
//! returns a list of complaints, each with a file and a line; an empty list passes. If a rule does not
//! fit, change the rule and state the reason instead of adding an exception. Two rules have lists: the
//! rule about thresholds lists the constants that are not thresholds, since only their meaning
//! distinguishes them, and the rule about names has a ceiling for each folder, which may only be
//! lowered.
#![forbid(unsafe_code)]
#![cfg(test)]

mod dependencies;
mod layout;
mod length;
mod modules;
mod rules;
mod source;
mod text;
mod thresholds;
mod types;
mod wording;

use crate::source::Tree;

fn expect_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn crate_dependencies_match_the_architecture() {
    expect_none(&dependencies::complaints(&Tree::load()));
}

#[test]
fn tests_use_dependency_features_of_the_module() {
    expect_none(&dependencies::built_twice(&Tree::load()));
}

#[test]
fn cargo_bench_runs_only_benches() {
    expect_none(&dependencies::benched_libraries(&Tree::load()));
}

#[test]
fn module_dependencies_match_the_architecture() {
    let tree = Tree::load();
    for checked in &modules::CHECKED_CRATES {
        expect_none(&modules::complaints(&tree, checked));
        let cycle = modules::largest_cycle(&tree, checked);
        report_cycle(&cycle);
        let length = cycle.len();
        assert!(length <= checked.largest_cycle, "{length} files import each other: {cycle:?}");
    }
}

#[expect(clippy::print_stdout, reason = "a figure to watch, shown with --nocapture")]
fn report_cycle(cycle: &[String]) {
    println!("{} files import each other in a cycle: {}", cycle.len(), cycle.join(", "));
}

#[test]
fn evaluator_thresholds_are_in_one_file_per_module() {
    expect_none(&rules::scattered_limits(&Tree::load()));
}

#[test]
fn stablehlo_does_not_depend_on_devices_or_costs() {
    expect_none(&thresholds::devices_in_stablehlo(&Tree::load()));
}

#[test]
fn compiler_thresholds_are_few_and_in_one_file() {
    let tree = Tree::load();
    expect_none(&thresholds::unlisted(&tree));
    let listed = thresholds::listed(&tree);
    assert!(listed.len() <= thresholds::MOST, "{} thresholds: {listed:?}", listed.len());
}

#[test]
fn every_layer_has_the_nine_families() {
    expect_none(&layout::missing_families(&Tree::load()));
}

#[test]
fn every_file_is_part_of_a_crate() {
    expect_none(&layout::dead_files(&Tree::load()));
}

#[test]
fn files_and_functions_are_short() {
    let tree = Tree::load();
    report_lengths(&tree);
    expect_none(&length::complaints(&tree));
}

#[expect(clippy::print_stdout, reason = "a figure to watch, shown with --nocapture")]
fn report_lengths(tree: &Tree) {
    let (files, median) = length::median(tree);
    println!("{files} Rust and Python files, median length {median} lines");
}

#[test]
fn every_module_has_docs() {
    expect_none(&rules::missing_module_docs(&Tree::load()));
}

#[test]
fn unsafe_code_is_in_listed_files() {
    expect_none(&rules::misplaced_unsafe(&Tree::load()));
}

#[test]
fn bindings_delegate_caching_and_scheduling_to_the_runtime() {
    expect_none(&rules::deciding_bindings(&Tree::load()));
}

#[test]
fn rules_name_every_op() {
    expect_none(&rules::swallowed_ops(&Tree::load()));
}

#[test]
fn texts_have_no_external_references() {
    expect_none(&text::foreign_references(&Tree::load()));
}

#[test]
fn paths_in_docs_exist() {
    expect_none(&text::broken_paths(&Tree::load()));
}

#[test]
fn links_of_the_front_page_are_absolute() {
    expect_none(&text::relative_links(&Tree::load()));
}

#[test]
fn comments_are_not_too_wide() {
    expect_none(&text::wide_comments(&Tree::load()));
}

#[test]
fn error_sections_are_sentences() {
    expect_none(&text::error_fragments(&Tree::load()));
}

#[test]
fn sentences_are_plain() {
    let tree = Tree::load();
    report_densities(&tree);
    expect_none(&wording::complaints(&tree));
}

#[expect(clippy::print_stdout, reason = "figures to watch, shown with --nocapture")]
fn report_densities(tree: &Tree) {
    for (folder, density) in wording::densities(tree) {
        println!("{folder}: {density} marked lines in 1,000");
    }
}

#[test]
fn names_of_functions_are_verbs_or_nouns() {
    expect_none(&wording::participles(&Tree::load()));
}

#[test]
fn names_of_public_types_have_one_meaning() {
    expect_none(&types::repeated_types(&Tree::load()));
}
