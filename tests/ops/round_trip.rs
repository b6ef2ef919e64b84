//! Tests that the importer restores the ops that the package writes as StableHLO.

use std::collections::BTreeMap;

use nxla::DType;
use nxla::graph::{Op, Program};
use nxla::import::stablehlo::{Module, ReadOptions};
use nxla::stablehlo::{LowerOptions, lower};

use crate::samples::{self, Draft};
use crate::words;

const BITS: &str = "a pred has one bit in StableHLO and one byte in nxla";
const COUNTED: &str = "a loop counts in s64, and an iota counts in s32 or s64";
const CONSTANT: &str = "the result is a constant";
const CALL: &str = "the body of a block becomes a function, and the reader inlines functions";
const FACTORS: &str =
    "StableHLO has no factorizations, and an operand of these dtypes is converted";
const HOST: &str = "only a host function computes the result";
const IDENTITY: &str = "the op leaves the value unchanged, except for its dtype";
const LOGICAL: &str = "the bits of pred are combined by the logical ops";
const LOOP: &str = "the function is applied to halves of the rows, or in a loop";
const MARKED: &str = "a boolean tells the elements of a window from the initial value";
const PARTS: &str = "the real functions of both parts are exact at their limits";
const POSITIONS: &str = "the positions of the extrema are reduced, and the updates are scattered";
const POWER: &str =
    "powers of integers are repeated products, and powers of complex zeros are chosen";
const REAL: &str = "a transform of real numbers is half of a complex one";
const RESHAPE: &str = "StableHLO has no squeeze";
const SPLAT: &str = "a tensor of equal elements becomes a constant";
const TRUTH: &str = "the elements are compared with zero, floats of 16 bits by their bits";
const SIGN: &str =
    "the sign of an unsigned integer is a minimum, and of a complex number a quotient";
const WHOLE: &str = "each element has a whole byte, whose dtype has larger and smaller numbers";

/// The ops that come back as other ops, with their dtypes and the reason. All other ops come back
/// with an equal digest, or with conversions that the op implies or that XLA needs.
const COMPOSED: &[(&str, &str, &str)] = &[
    ("abs", "pred, complex", PARTS),
    ("acos", "complex", PARTS),
    ("acosh", "complex", PARTS),
    ("all", "bf16 f16, complex", TRUTH),
    ("any", "bf16 f16, complex", TRUTH),
    ("asin", "complex", PARTS),
    ("asinh", "complex", PARTS),
    ("atan", "complex", PARTS),
    ("atanh", "complex", PARTS),
    ("bitcast", "pred", BITS),
    ("bitwise_and", "pred", LOGICAL),
    ("bitwise_not", "pred", LOGICAL),
    ("bitwise_or", "pred", LOGICAL),
    ("bitwise_xor", "pred", LOGICAL),
    ("block", "all", CALL),
    ("cbrt", "complex", PARTS),
    ("ceil", "pred", IDENTITY),
    ("cholesky", "all", FACTORS),
    ("cond", "pred, u2 u4 s2 s4, f8_e4m3fn", WHOLE),
    ("cos", "complex", PARTS),
    ("cosh", "complex", PARTS),
    ("eigh", "all", FACTORS),
    ("elem", "all", FACTORS),
    ("exp", "complex", PARTS),
    ("expm1", "complex", PARTS),
    ("fft", "real", REAL),
    ("floor", "pred", IDENTITY),
    ("ifft", "real", REAL),
    ("io_call", "all", HOST),
    ("iota", "u2 u4 u8 u16 s2 s4 s8 s16, f8_e5m2 f8_e4m3fn bf16 f16, complex", COUNTED),
    ("is_infinity", "integers, f8_e4m3fn, complex", CONSTANT),
    ("is_nan", "integers, complex", CONSTANT),
    ("log", "complex", PARTS),
    ("log1p", "complex", PARTS),
    ("logical_and", "bf16 f16, complex", TRUTH),
    ("logical_not", "bf16 f16, complex", TRUTH),
    ("logical_or", "bf16 f16, complex", TRUTH),
    ("logical_xor", "bf16 f16, complex", TRUTH),
    ("lu", "all", FACTORS),
    ("metadata", "all", IDENTITY),
    ("pow", "pred, u8 u16 u32 u64 s8 s16 s32 s64, complex", POWER),
    ("qr", "all", FACTORS),
    ("real", "integers", IDENTITY),
    ("reduce", "all", LOOP),
    ("reduce_max", "pred, s2 s4", WHOLE),
    ("reduce_min", "pred, u2 u4 s2 s4", WHOLE),
    ("round", "pred", IDENTITY),
    ("round_half_even", "pred, complex", PARTS),
    ("runtime_call", "all", HOST),
    ("sign", "pred, u2 u4 u8 u16 u32 u64, complex", SIGN),
    ("sin", "complex", PARTS),
    ("sinh", "complex", PARTS),
    ("sqrt", "complex", PARTS),
    ("squeeze", "all", RESHAPE),
    ("svd", "all", FACTORS),
    ("tan", "complex", PARTS),
    ("tanh", "complex", PARTS),
    ("tensor", "all", SPLAT),
    ("while", "pred, u2 u4 u8 u16 u32 u64 s2 s4 s8 s16, f8_e4m3fn", COUNTED),
    ("window_max", "pred, s2 s4", WHOLE),
    ("window_min", "pred, u2 u4 s2 s4", WHOLE),
    ("window_reduce", "all", MARKED),
    ("window_scatter_max", "real", POSITIONS),
    ("window_scatter_min", "real", POSITIONS),
];

/// Writes a program as a StableHLO module and imports the module. Returns `None` for a program that
/// only a host function computes.
fn round_trip(program: &Program) -> Option<Program> {
    let options = LowerOptions { active_hooks: &|_| false, ..LowerOptions::default() };
    let text = lower(program, &options).ok()?.text;
    let module = Module::from_bytes(text.as_bytes(), &ReadOptions::default())
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    Some(module.program().clone())
}

/// Returns the ops of a program except conversions, in order. A conversion to `f8_e4m3fn`, which has
/// no infinity, clips its operand.
fn ops_of(program: &Program, dtype: DType) -> Vec<&Op> {
    let graph = program.graph();
    let reachable = graph.reachable(program.outputs());
    let ops = graph.ids().filter(|&id| reachable.contains(id)).map(|id| graph.op(id));
    let is_conversion = |op: &Op| match op {
        Op::AsType(_) | Op::Parameter(_) => true,
        Op::Clip | Op::Constant(_) => dtype == DType::F8E4M3FN,
        _ => false,
    };
    ops.filter(|op| !is_conversion(op)).collect()
}

#[test]
fn ops_round_trip_through_stablehlo() {
    let mut changed = BTreeMap::new();
    for sample in samples::all() {
        let mut dtypes = Vec::new();
        for &dtype in &DType::ALL {
            let mut draft = Draft::new(dtype);
            let Ok(output) = (sample.build)(&mut draft) else { continue };
            let program = Program::new(&draft.graph, draft.types.clone(), &[output]).unwrap();
            let is_equal = round_trip(&program).is_some_and(|read| {
                read.digest() == program.digest() || ops_of(&read, dtype) == ops_of(&program, dtype)
            });
            if !is_equal {
                dtypes.push(dtype);
            }
        }
        if !dtypes.is_empty() {
            changed.insert(sample.op, words(&dtypes));
        }
    }
    let expected: BTreeMap<&str, String> =
        COMPOSED.iter().map(|&(op, dtypes, _)| (op, dtypes.to_owned())).collect();
    let list = |ops: &BTreeMap<&str, String>, others: &BTreeMap<&str, String>| -> String {
        let new = ops.iter().filter(|(op, dtypes)| others.get(*op) != Some(dtypes));
        new.map(|(op, dtypes)| format!("\n{op}: {dtypes}")).collect()
    };
    assert!(
        changed == expected,
        "ops that come back as other ops, and are not in the table:{}\nstale entries:{}",
        list(&changed, &expected),
        list(&expected, &changed)
    );
}
