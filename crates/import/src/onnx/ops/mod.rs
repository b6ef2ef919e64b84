//! The table of operators, in one file per family.
//!
//! An entry is a function that builds the nodes of an operator, or the reason why the operator has
//! no counterpart.

mod activation;
mod blockwise;
mod contract;
mod control;
mod create;
mod deformable;
mod elementwise;
mod fourier;
mod fused;
mod fused_attention;
mod group_query;
mod index;
mod loss;
mod movement;
mod neural;
mod padding;
mod quantize;
mod quantized;
mod recurrent;
mod reduce;
mod region;
mod resize;
mod rotary;
mod sampling;
mod scatter;
mod sequence;
mod window;

use std::sync::LazyLock;

use nxla_expr::ExprId;
use rustc_hash::FxHashMap;

use super::error::Built;
use super::importer::TracedValue;
use super::node::Call;

/// A function that builds the outputs of a node.
pub(super) type Build = fn(&mut Call<'_, '_, '_>) -> Built<Vec<ExprId>>;

/// A function that builds the outputs of a node from values. The inputs of the call contain only the
/// tensors.
pub(super) type BuildValues =
    fn(&mut Call<'_, '_, '_>, &[Option<TracedValue>]) -> Built<Vec<TracedValue>>;

/// The function of an operator.
#[derive(Clone, Copy)]
pub(super) enum Builder {
    /// The inputs and outputs are tensors.
    Tensors(Build),
    /// Inputs and outputs may be sequences.
    Values(BuildValues),
}

/// An operator of the default domain, or of the domain before a colon.
struct Operator {
    name: &'static str,
    builder: Builder,
}

const fn operator(name: &'static str, build: Build) -> Operator {
    Operator { name, builder: Builder::Tensors(build) }
}

const fn value_operator(name: &'static str, build: BuildValues) -> Operator {
    Operator { name, builder: Builder::Values(build) }
}

const FAMILIES: &[&[Operator]] = &[
    activation::OPERATORS,
    blockwise::OPERATORS,
    contract::OPERATORS,
    control::OPERATORS,
    create::OPERATORS,
    deformable::OPERATORS,
    elementwise::UNARY,
    elementwise::BINARY,
    elementwise::OTHER,
    fourier::OPERATORS,
    fused::OPERATORS,
    fused_attention::OPERATORS,
    group_query::OPERATORS,
    index::OPERATORS,
    loss::OPERATORS,
    movement::OPERATORS,
    neural::OPERATORS,
    padding::OPERATORS,
    quantize::OPERATORS,
    quantized::OPERATORS,
    recurrent::OPERATORS,
    reduce::OPERATORS,
    region::OPERATORS,
    resize::OPERATORS,
    rotary::OPERATORS,
    sampling::OPERATORS,
    scatter::OPERATORS,
    sequence::OPERATORS,
    window::OPERATORS,
];

const STRINGS: &str = "strings are not tensors";
const RANDOM: &str = "nxla needs a key for random numbers, and an ONNX model has none";
const DATA_SHAPE: &str = "the shape of the result depends on the data";
const SEQUENCES: &str = "sequences and optional values are not tensors";

/// Operators that cannot be imported, with the reason.
const REFUSED: &[(&str, &str)] = &[
    ("StringConcat", STRINGS),
    ("StringNormalizer", STRINGS),
    ("StringSplit", STRINGS),
    ("RegexFullMatch", STRINGS),
    ("TfIdfVectorizer", STRINGS),
    ("Unique", DATA_SHAPE),
    ("NonMaxSuppression", DATA_SHAPE),
    ("SequenceMap", SEQUENCES),
    ("Optional", SEQUENCES),
    ("OptionalGetElement", SEQUENCES),
    ("OptionalHasElement", SEQUENCES),
    ("ImageDecoder", "images are not decoded"),
    ("Bernoulli", RANDOM),
    ("Multinomial", RANDOM),
    ("RandomNormal", RANDOM),
    ("RandomNormalLike", RANDOM),
    ("RandomUniform", RANDOM),
    ("RandomUniformLike", RANDOM),
];

static TABLE: LazyLock<FxHashMap<&'static str, Builder>> = LazyLock::new(|| {
    FAMILIES
        .iter()
        .flat_map(|family| family.iter())
        .map(|entry| (entry.name, entry.builder))
        .collect()
});

/// Returns the function that builds an operator.
///
/// # Errors
/// Returns the reason if the operator cannot be imported.
pub(super) fn find(domain: &str, name: &str) -> Result<Builder, String> {
    let found = match domain {
        "" => TABLE.get(name),
        domain => TABLE.get(format!("{domain}:{name}").as_str()),
    };
    if let Some(&builder) = found {
        return Ok(builder);
    }
    let why = match domain {
        "" => REFUSED.iter().find(|(own, _)| *own == name).map(|(_, why)| *why),
        "ai.onnx.ml" => Some("classical models have no counterpart"),
        "com.microsoft.nchwc" => {
            Some("the layout is for one processor; optimize at the level ORT_ENABLE_EXTENDED")
        }
        "ai.onnx.preview.training" => Some("optimizers are functions of nxla.optim"),
        _ => None,
    };
    Err(why.unwrap_or("the operator is not implemented").into())
}

/// Returns the names of the supported operators. An operator outside the default domain starts with
/// its domain and a colon.
#[must_use]
pub fn operators() -> Vec<&'static str> {
    let mut names: Vec<&str> = TABLE.keys().copied().collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operator_has_one_row() {
        let rows: usize = FAMILIES.iter().map(|family| family.len()).sum();
        assert_eq!(rows, TABLE.len());
        assert_eq!(operators().len(), rows);
        for (name, _) in REFUSED {
            assert!(!TABLE.contains_key(name), "{name} is supported and refused");
        }
    }

    #[test]
    fn an_operator_belongs_to_its_domain() {
        assert!(find("", "Gelu").is_ok());
        assert!(find("com.microsoft", "FastGelu").is_ok());
        assert!(find("", "FastGelu").is_err());
        assert!(find("org.example", "Gelu").is_err());
        assert_eq!(find("", "Unique").err().as_deref(), Some(DATA_SHAPE));
    }
}
