//! Memory of graphs: bytes and allocations per node, counted by the allocator.
//!
//! The program reports the allocations during construction, which load the allocator, separately from
//! the memory of the finished graph, which limits its size.
#![forbid(unsafe_code)]

use std::alloc::System;

use nxla::Program;
use nxla_benches::{LENGTHS, chain, scalar};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, Stats, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[expect(clippy::print_stdout, reason = "printing a table is what this program is for")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{:>10}  {:<8} {:>12} {:>12}", "nodes", "what", "bytes held", "allocations");
    for nodes in LENGTHS {
        let region = Region::new(ALLOCATOR);
        let (graph, _, output) = chain(nodes)?;
        println!("{}", row(nodes, "graph", &region.change()));
        let region = Region::new(ALLOCATOR);
        let program = Program::new(&graph, vec![scalar()], &[output])?;
        println!("{}", row(nodes, "program", &region.change()));
        drop((graph, program));
    }
    println!("\nfor each node; a program is a copy of what it needs of its graph");
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn row(nodes: usize, what: &str, change: &Stats) -> String {
    let retained = change.bytes_allocated as f64 - change.bytes_deallocated as f64;
    let allocations = (change.allocations + change.reallocations) as f64;
    let per_node = |count: f64| count / nodes as f64;
    format!("{nodes:>10}  {what:<8} {:>12.1} {:>12.4}", per_node(retained), per_node(allocations))
}
