//! Tests that messages contain each cause once.

use super::*;
use std::error::Error as _;

/// The error of a user, whose source is another error.
#[derive(Debug, thiserror::Error)]
#[error("the table is empty")]
struct EmptyTable(#[source] io::Error);

fn user() -> Box<dyn std::error::Error + Send + Sync> {
    Box::new(EmptyTable(io::Error::other("disk failure")))
}

/// Returns the position of the variant among all variants. A new variant must be added here and
/// to [`every_variant`].
fn position(error: &Error) -> usize {
    match error {
        Error::Expr(_) => 0,
        Error::Grad(_) => 1,
        Error::Split(_) => 2,
        Error::Eval(_) => 3,
        Error::Lower(_) => 4,
        Error::Pjrt(_) => 5,
        Error::DeviceMemory { .. } => 6,
        Error::Tensor(_) => 7,
        Error::Bytes(_) => 8,
        Error::Format { .. } => 9,
        Error::File { .. } => 10,
        Error::Arguments { .. } => 11,
        Error::Vectors { .. } => 12,
        Error::Layout(_) => 13,
        Error::Options(_) => 14,
        Error::Usage(_) => 15,
        Error::Stream(_) => 16,
        Error::Internal(_) => 17,
        Error::Hook { .. } => 18,
        Error::RuntimeCall { .. } => 19,
        Error::Stage { .. } => 20,
        Error::User(_) => 21,
        Error::Operation { .. } => 22,
        Error::Number { .. } => 23,
        #[cfg(feature = "import")]
        Error::Import(_) => 24,
    }
}

fn every_variant() -> Vec<Error> {
    let expr = || ErrorKind::invalid("axis", "must be 0").of("sum");
    let damaged = || SerializeError::Truncated { length: 3 };
    let why = || "why".to_owned();
    vec![
        expr().into(),
        GradError::Build(expr()).into(),
        SplitError::from(damaged()).into(),
        EvalError::Interrupted.into(),
        LowerError::Donated { expected: 1, found: 2 }.into(),
        pjrt::Error::Tensor(TensorError::from(nxla_tensor::ShapeError::AxisOutOfRange {
            axis: 3,
            rank: 1,
        }))
        .into(),
        Error::DeviceMemory {
            op: "sort".into(),
            ty: Box::new(TensorType::scalar(nxla_tensor::DType::F32)),
            bytes: 4,
            line: None,
            error: Box::new(pjrt::Error::Forked),
        },
        TensorError::from(nxla_tensor::ShapeError::AxisOutOfRange { axis: 3, rank: 1 }).into(),
        damaged().into(),
        Error::Format { format: "npy".into(), why: why() },
        Error::File {
            function: "load".into(),
            path: "table.npy".into(),
            error: io::Error::other("disk failure"),
        },
        Error::Arguments { function: "call".into(), why: why() },
        Error::Vectors { function: "vmap".into(), why: why() },
        Error::Layout(why()),
        Error::Options(why()),
        Error::Usage(why()),
        StreamError::Failed(std::sync::Arc::new(Error::User(user()))).into(),
        Error::Internal(why()),
        Error::Hook { name: None, error: user() },
        Error::RuntimeCall { line: None, error: user() },
        Error::Stage { stage: "stage 0".into(), error: Box::new(Error::User(user())) },
        Error::User(user()),
        Error::Usage(why()).at_location(Location::caller()),
        Error::Number {
            function: "number".into(),
            error: Box::new(NumberError::OutOfRange { value: nxla_tensor::Number::LargeInt(1e40) }),
        },
        #[cfg(feature = "import")]
        Error::Import(ImportError {
            format: "ONNX",
            kind: ImportErrorKind::Build {
                op: "Sum".into(),
                place: nxla_import::Place::Line(1),
                error: Box::new(expr()),
            },
        }),
    ]
}

/// Returns the messages that `anyhow` prints: of an error and of all its sources.
fn chain(error: &Error) -> Vec<String> {
    let sources = std::iter::successors(error.source(), |error| (*error).source());
    std::iter::once(error.to_string()).chain(sources.map(ToString::to_string)).collect()
}

#[test]
fn messages_contain_each_cause_once() {
    let errors = every_variant();
    let positions: Vec<usize> = errors.iter().map(position).collect();
    assert_eq!(positions, (0..errors.len()).collect::<Vec<_>>());
    for error in errors {
        let texts = chain(&error).concat();
        let has_user = error.user_error().is_some();
        assert!(error.user_error().is_none_or(|error| error.is::<EmptyTable>()));
        for (cause, expected) in [("the table is empty", has_user), ("disk failure", has_user)] {
            let is_file = matches!(error, Error::File { .. }) && cause == "disk failure";
            let count = texts.matches(cause).count();
            assert_eq!(count, usize::from(expected || is_file), "{error:#?}");
        }
        assert!(chain(&error).len() == 1, "{error:#?}");
    }
}
