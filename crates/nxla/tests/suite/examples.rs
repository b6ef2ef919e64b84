//! The programs in `examples`, run on every compiler.

use std::process::{Command, Stdio};

use crate::common::compilers;

macro_rules! examples {
    ($($name:ident $path:literal below $most:literal;)*) => {
        $(
            #[path = $path]
            #[allow(dead_code, unreachable_pub, reason = "they are programs of their own")]
            mod $name;
        )*

        mod runs {
            $(
                #[test]
                fn $name() {
                    for compiler in super::compilers() {
                        let found = super::$name::run(compiler).unwrap();
                        assert!(found < $most, "{compiler}: {found}");
                    }
                }
            )*
        }
    };
}

examples! {
    compiler "../../examples/compiler.rs" below 0.5;
    heat "../../examples/heat.rs" below 0.001;
    kalman "../../examples/kalman.rs" below 0.1;
    kernel "../../examples/kernel.rs" below 1e-12;
    kmeans "../../examples/kmeans.rs" below 0.1;
    mlp "../../examples/mlp.rs" below 0.01;
    newton "../../examples/newton.rs" below 1e-06;
    optimizer "../../examples/optimizer.rs" below 0.05;
    running_mean "../../examples/running_mean.rs" below 1e-06;
    serving "../../examples/serving.rs" below 0.001;
}

#[path = "../../examples/stages.rs"]
#[allow(dead_code, unreachable_pub, reason = "it is also a program")]
mod stages;

/// Becomes a worker in the processes that `stages_on_threads_and_in_processes` starts.
#[test]
#[ignore = "it waits for the process that starts it"]
fn stage_worker() {
    stages::work().unwrap();
}

#[test]
fn stages_on_threads_and_in_processes() {
    let worker = || {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--ignored", "--exact", "examples::stage_worker"]).stdout(Stdio::null());
        command
    };
    for compiler in compilers() {
        let found = stages::run_with(compiler, worker).unwrap();
        assert!(found < 1e-6, "{compiler}: {found}");
    }
}

#[test]
fn guide_states_the_length_of_each_program() {
    let guide = include_str!("../../../../docs/guide/rust.md");
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/examples");
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let lines = std::fs::read_to_string(&path).unwrap().lines().count();
        let start = format!("| `{name}` |");
        let row = guide.lines().find(|row| row.starts_with(&start));
        let row = row.unwrap_or_else(|| panic!("the guide has no row for {name}"));
        assert!(row.ends_with(&format!("| {lines} |")), "{name} has {lines} lines: {row}");
    }
}

#[test]
fn example_programs_stay_short() {
    assert!(include_str!("../../examples/mlp.rs").lines().count() <= 50);
    let optimizer = include_str!("../../examples/optimizer.rs");
    let lines = optimizer.lines().skip_while(|line| !line.contains("derive"));
    let lines = lines.take_while(|line| !line.starts_with("///"));
    assert!(lines.filter(|line| !line.is_empty()).count() <= 25);
}
