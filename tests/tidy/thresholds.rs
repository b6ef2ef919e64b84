//! Thresholds of the crates around XLA: few, in one file, and none in the crate that writes
//! StableHLO.

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Expr, Ident, ItemConst, Type};

use crate::source::{File, Tree};

/// The file of the thresholds.
const LIST: &str = "crates/runtime/src/thresholds.rs";

/// The most thresholds that the file may hold.
pub(crate) const MOST: usize = 12;

/// The crates whose thresholds are in the file.
const CRATES: [&str; 3] = ["crates/pjrt/src/", "crates/runtime/src/", "crates/stablehlo/src/"];

/// Numbers that are not thresholds, by their place: formats of files and interfaces, alignments,
/// capacities of buffers and caches, waiting times, and estimates of the memory that a value takes.
const OTHER_NUMBERS: [(&str, &[&str]); 30] = [
    ("crates/pjrt/src/cuda/driver.rs", &["DEVICE_MEMORY", "DEVICE_ORDINAL", "MEMORY_TYPE"]),
    ("crates/pjrt/src/cuda/scratch.rs", &["ALIGNMENT"]),
    ("crates/pjrt/src/float_mode.rs", &["FLUSHES"]),
    ("crates/pjrt/src/foreign.rs", &["CPU_ALIGNMENT", "DEVICE_ALIGNMENT"]),
    ("crates/pjrt/src/malloc.rs", &["MMAP_BYTES", "TRIM_BYTES"]),
    ("crates/pjrt/src/maps.rs", &["RESERVE"]),
    ("crates/pjrt/src/plugin.rs", &["MIN_MINOR"]),
    ("crates/pjrt/src/private_folder.rs", &["GROUP_OR_OTHERS_WRITE", "MAX_LINKS", "STICKY"]),
    (
        "crates/pjrt/src/probe.rs",
        &["CLASS", "HEADER", "MAX_LIST_BYTES", "ORDER", "PROBE_TIMEOUT", "SEGMENT"],
    ),
    ("crates/pjrt/src/in_flight.rs", &["EXIT_TIMEOUT"]),
    ("crates/pjrt/src/serialized.rs", &["VERSION"]),
    ("crates/pjrt/src/transfer.rs", &["LENT_BYTES"]),
    ("crates/runtime/src/eager.rs", &["BYTES_PER_NODE"]),
    ("crates/runtime/src/auto/explain.rs", &["MEASURED_RUNS"]),
    ("crates/runtime/src/background.rs", &["ASK_EVERY", "STACK_BYTES"]),
    ("crates/runtime/src/evaluator.rs", &["BYTES_PER_NODE"]),
    ("crates/runtime/src/forks.rs", &["MAX_FORK_WAIT"]),
    ("crates/runtime/src/profile.rs", &["MOST_EVENTS"]),
    ("crates/runtime/src/stages/mod.rs", &["LINES"]),
    ("crates/runtime/src/stages/staged.rs", &["NODE_BYTES"]),
    ("crates/runtime/src/trace.rs", &["MAX_POSITIONS"]),
    ("crates/runtime/src/xla/tests.rs", &["LIBRARY"]),
    ("crates/runtime/src/xla/calls.rs", &["MAX_ROOM_WAIT"]),
    ("crates/runtime/src/xla/disk/entry.rs", &["HEADER", "VERSION"]),
    ("crates/runtime/src/xla/disk/folder.rs", &["STALE"]),
    ("crates/runtime/src/xla/executable.rs", &["BYTES_PER_CODE_BYTE", "LEAST_BYTES"]),
    ("crates/runtime/src/xla/hooks.rs", &["LEADING_ARGUMENTS"]),
    ("crates/runtime/src/xla/kernels.rs", &["PLANS"]),
    ("crates/stablehlo/src/options.rs", &["KERNEL_ID"]),
    ("crates/stablehlo/src/power.rs", &["DIGIT_BITS"]),
];

/// Words that a crate without devices and speeds must not use in code.
const OF_DEVICES: [&str; 10] =
    ["cpu", "cuda", "device", "flops", "gpu", "platform", "seconds", "speed", "threads", "tpu"];

/// Constants with numbers outside of the list that are not among [`OTHER_NUMBERS`].
pub(crate) fn unlisted(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    let of_crates = |file: &&File| CRATES.iter().any(|folder| file.path.starts_with(folder));
    for file in tree.rust().filter(of_crates).filter(|file| file.path != LIST) {
        // The constants of a C interface are declared there.
        if file.path.starts_with("crates/pjrt/src/sys/") {
            continue;
        }
        let known = OTHER_NUMBERS.iter().find(|(path, _)| *path == file.path);
        let known = known.map_or(&[][..], |(_, names)| names);
        for name in numbers(file).iter().filter(|name| !known.contains(&name.as_str())) {
            complaints.push(format!("{}: the threshold {name} belongs into {LIST}", file.path));
        }
    }
    complaints
}

/// The thresholds of the list.
pub(crate) fn listed(tree: &Tree) -> Vec<String> {
    let file = tree.rust().find(|file| file.path == LIST).expect("the list of thresholds");
    numbers(file)
}

/// The constants of a file that are numbers, durations or ranges.
fn numbers(file: &File) -> Vec<String> {
    #[derive(Default)]
    struct Numbers(Vec<String>);
    impl<'ast> Visit<'ast> for Numbers {
        fn visit_item_const(&mut self, item: &'ast ItemConst) {
            if is_number(&item.ty) && !matches!(*item.expr, Expr::Call(_) | Expr::MethodCall(_))
                || is_duration(&item.ty)
            {
                self.0.push(item.ident.to_string());
            }
            visit::visit_item_const(self, item);
        }

        fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
            if item.ident != "tests" {
                visit::visit_item_mod(self, item);
            }
        }
    }
    let mut numbers = Numbers::default();
    numbers.visit_file(&file.parse());
    numbers.0
}

fn is_number(ty: &Type) -> bool {
    const NUMBERS: [&str; 11] = [
        "u8",
        "u32",
        "u64",
        "usize",
        "i32",
        "i64",
        "f32",
        "f64",
        "RangeInclusive",
        "Room",
        "Speed",
    ];
    last_segment(ty).is_some_and(|name| NUMBERS.iter().any(|number| name == number))
}

fn is_duration(ty: &Type) -> bool {
    last_segment(ty).is_some_and(|name| name == "Duration")
}

fn last_segment(ty: &Type) -> Option<&Ident> {
    match ty {
        Type::Path(path) => path.path.segments.last().map(|segment| &segment.ident),
        _ => None,
    }
}

/// Words about devices and speed in the code of `stablehlo`; its comments may explain what XLA
/// does.
pub(crate) fn devices_in_stablehlo(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in tree.rust().filter(|file| file.path.starts_with("crates/stablehlo/src/")) {
        for word in code_words(file.token_stream()) {
            if OF_DEVICES.contains(&word.as_str()) {
                complaints.push(format!("{}: `{word}` is about a device or a speed", file.path));
            }
        }
    }
    complaints
}

/// The words of identifiers and strings, in lower case. Comments are left out.
fn code_words(tokens: TokenStream) -> Vec<String> {
    let (mut streams, mut words) = (vec![tokens], Vec::new());
    while let Some(tokens) = streams.pop() {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let is_doc = tokens.first().is_some_and(|token| token.to_string() == "doc");
        for token in tokens {
            match token {
                TokenTree::Group(group) => streams.push(group.stream()),
                TokenTree::Ident(word) => words.push(word.to_string()),
                TokenTree::Literal(literal) if !is_doc => words.push(literal.to_string()),
                TokenTree::Literal(_) | TokenTree::Punct(_) => {}
            }
        }
    }
    let parts = words.iter().flat_map(|word| word.split(|c: char| !c.is_ascii_alphanumeric()));
    parts.map(str::to_lowercase).collect()
}
