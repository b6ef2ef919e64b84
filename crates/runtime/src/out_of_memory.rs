//! The operation that an error names when a device has no memory for a program.
//!
//! A plugin reports only the bytes of the allocation that failed. The largest values of the program
//! are the likely cause.

use std::cmp::Reverse;

use nxla_expr::{Line, Op, Program, TensorType};

use crate::error::{Error, ErrorClass};
use crate::pjrt;
use crate::xla;

/// The largest values of a program, in order of decreasing size.
#[derive(Debug)]
pub(crate) struct LargestValues(Vec<Value>);

#[derive(Clone, Debug)]
struct Value {
    op: String,
    ty: TensorType,
    bytes: usize,
    line: Option<Line>,
}

impl LargestValues {
    /// Finds the largest values of a program and of its regions.
    #[cfg_attr(not(feature = "xla"), allow(dead_code, reason = "only XLA allocates on devices"))]
    pub(crate) fn of(program: &Program) -> Self {
        let mut values = Vec::new();
        for program in program.programs() {
            let graph = program.graph();
            // The caller allocates parameters, and a part of a tuple has the memory of the tuple.
            let is_allocated = |id| !matches!(graph.op(id), Op::Parameter(_) | Op::Elem(_));
            for id in graph.ids().filter(|&id| is_allocated(id)) {
                for ty in graph.ty(id).parts() {
                    let bytes = ty.byte_size();
                    values.push((bytes, graph, id, ty));
                }
            }
        }
        values.sort_by_key(|value| Reverse(value.0));
        // Eight values are enough to explain the error; more would only lengthen the message.
        values.truncate(8);
        let described = values.into_iter().map(|(bytes, graph, id, ty)| Value {
            op: graph.op(id).name().to_string(),
            ty: ty.clone(),
            bytes,
            line: graph.line(id),
        });
        Self(described.collect())
    }

    /// Adds the operation and its line to an error about memory: the value whose size the plugin
    /// reports, else the largest value.
    pub(crate) fn explain(&self, error: pjrt::Error) -> Error {
        if xla::class_of(&error) != ErrorClass::Memory {
            return Error::Pjrt(error);
        }
        let text = error.to_string();
        let is_reported = |value: &&Value| text.contains(&format!(" {} bytes", value.bytes));
        match self.0.iter().find(is_reported).or(self.0.first()).cloned() {
            Some(Value { op, ty, bytes, line }) => {
                let (ty, error) = (Box::new(ty), Box::new(error));
                Error::DeviceMemory { op, ty, bytes, line, error }
            }
            None => Error::Pjrt(error),
        }
    }
}

#[cfg(all(test, feature = "xla"))]
mod tests {
    use nxla_expr::Graph;
    use nxla_tensor::DType;

    use super::*;

    fn allocation_error(bytes: usize, code: i32) -> pjrt::Error {
        pjrt::Error::Plugin {
            function: "PJRT_LoadedExecutable_Execute",
            code: pjrt::ErrorCode(code),
            message: format!("Out of memory allocating {bytes} bytes."),
        }
    }

    #[test]
    fn allocation_errors_name_the_value() {
        let (mut graph, ty) = (Graph::new(), TensorType::new(DType::F32, [4]));
        let x = graph.parameter(0, ty.clone());
        let wide = graph.broadcast(x, [100, 4], None).unwrap();
        let sine = graph.sin(wide).unwrap();
        let total = graph.sum(sine, Some(&[0]), false).unwrap();
        let double = graph.as_type(sine, DType::F64).unwrap();
        let program = Program::new(&graph, vec![ty], &[total, double]).unwrap();
        let values = LargestValues::of(&program);
        let named = |error| values.explain(error).to_string();
        assert!(
            named(allocation_error(3200, 8))
                .starts_with("as_type: cannot allocate 3200 bytes for f64[100][4]: ")
        );
        // The parameter has 16 bytes, too, but the program does not allocate it.
        assert!(
            named(allocation_error(16, 8))
                .starts_with("sum: cannot allocate 16 bytes for f32[4]: ")
        );
        // A plugin may allocate several values at once.
        assert!(
            named(allocation_error(4800, 8))
                .starts_with("as_type: cannot allocate 3200 bytes for f64[100][4]: ")
        );
        let other = values.explain(allocation_error(3200, 3));
        assert!(matches!(other, Error::Pjrt(_)));
        assert_eq!(values.explain(allocation_error(3200, 8)).class(), ErrorClass::Memory);
    }
}
