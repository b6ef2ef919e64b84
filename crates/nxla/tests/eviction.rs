//! What the cache drops is gone, and comes back when it is needed. Apart from other tests, since the
//! limit is that of the process.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod common;

use std::sync::Arc;

use common::{compilers, numbers};
use nxla::{DType, Expr, Options, Tensor, TensorType, compile_program, executables, jit};

#[test]
fn what_is_dropped_is_compiled_again() {
    for compiler in compilers() {
        let options = Options::new().compiler(*compiler);
        let function = jit(|x: Expr| x.sin() + 1);
        let (program, _) = function.trace(TensorType::scalar(DType::F32)).unwrap();
        let executable = compile_program(&Arc::new(program), &options, &[]).unwrap();
        assert!(executable.is_loaded() && executable.byte_size() > 0, "{compiler}");
        let function = function.compiler(compiler);
        assert_eq!(numbers(&function.call(0.0f32).unwrap()), [1.0]);

        let before = executables().report();
        executables().set_limit(0);
        assert!(!executable.is_loaded());
        assert_eq!(executable.byte_size(), 0);
        let after = executables().report();
        assert_eq!((after.entries, after.bytes), (0, 0));
        assert!(after.evictions > before.evictions);

        let zero = Tensor::from(0.0f32);
        let results = executable.run(&[&zero], &Default::default()).unwrap();
        assert_eq!(numbers(&results[0]), [1.0]);
        assert!(executable.is_loaded());
        assert_eq!(executables().report().entries, 1);
        executables().clear();
        assert!(!executable.is_loaded());
        assert_eq!(numbers(&function.call(0.0f32).unwrap()), [1.0]);
        // An equal program has brought it back.
        let misses = executables().report().misses;
        executable.run(&[&zero], &Default::default()).unwrap();
        assert_eq!(executables().report().misses, misses);
        executables().set_limit(512 << 20);
    }
}
