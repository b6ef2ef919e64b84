//! Executables are shared by equal programs with any listeners, and callers need not wait for the
//! compiler.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod common;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use common::{compilers, numbers};
use nxla::graph::{Graph, HostError};
use nxla::{
    CompileRequest, Compiler, Error, Evaluator, Executable, Expr, HostTensor, Options, Program,
    Purpose, Result, RunContext, Tensor, TensorType, compile_for, compile_program, fori, jit,
    register_compiler, stream_with,
};
use nxla::{DType, eval::EvalError};

/// The evaluator under another name, which counts its calls and can be delayed.
struct Counting {
    name: &'static str,
    resolves: bool,
    time: Duration,
    compiled: Arc<AtomicUsize>,
}

impl Compiler for Counting {
    fn name(&self) -> &str {
        self.name
    }

    fn compile(&self, request: &CompileRequest<'_>) -> Result<Arc<dyn Executable>> {
        std::thread::sleep(self.time);
        self.compiled.fetch_add(1, Ordering::Relaxed);
        Evaluator.compile(request)
    }

    fn resolves_hooks(&self) -> bool {
        self.resolves
    }

    fn compiles_elsewhere(&self) -> bool {
        true
    }
}

fn register_counting_compiler(
    name: &'static str,
    resolves: bool,
    time: Duration,
) -> Arc<AtomicUsize> {
    let compiled = Arc::new(AtomicUsize::new(0));
    let compiler = Counting { name, resolves, time, compiled: compiled.clone() };
    register_compiler(Arc::new(compiler)).unwrap();
    compiled
}

/// Builds `x + x`, which is passed to a function under a name in each of several iterations.
fn program(seen: &Arc<Mutex<Vec<String>>>, label: &'static str) -> Arc<Program> {
    let seen = seen.clone();
    let look = move |_: &[HostTensor]| -> Result<(), HostError> {
        seen.lock().unwrap().push(label.to_owned());
        Ok(())
    };
    let ty = TensorType::scalar(DType::S32);
    let mut graph = Graph::new();
    let x = graph.parameter(0, ty.clone());
    let shown = graph.hook(&[x], Some("x"), Some(Arc::new(look))).unwrap()[0];
    let doubled = graph.add(shown, shown).unwrap();
    Arc::new(Program::new(&graph, vec![ty], &[doubled]).unwrap())
}

fn run(program: &Arc<Program>, options: &Options) {
    let executable = compile_program(program, options, &[]).unwrap();
    let context = RunContext::with_hooks(&options.hooks);
    let results = executable.run(&[&Tensor::from(3i32)], &context).unwrap();
    assert_eq!(results[0].item().unwrap().as_f64(), 6.0);
}

#[test]
fn executables_do_not_own_hook_functions() {
    let compiled = register_counting_compiler("late", true, Duration::ZERO);
    let seen = Arc::default();
    let (first, second) = (program(&seen, "first"), program(&seen, "second"));
    let options = Options::new().compiler("late");
    let sink = seen.clone();
    let other = options.clone().hook("x", move |_: &[HostTensor]| {
        sink.lock().unwrap().push("other".into());
        Ok(())
    });
    run(&first, &options);
    run(&second, &options);
    run(&first, &other);
    run(&first, &options);
    assert_eq!(*seen.lock().unwrap(), ["first", "second", "other", "first"]);
    assert_eq!(compiled.load(Ordering::Relaxed), 1);
    // The executable does not own the functions.
    let weak = Arc::downgrade(&seen);
    drop((first, second, other, seen));
    assert!(weak.upgrade().is_none());
}

#[test]
fn unresolved_hooks_are_compiled_separately() {
    let compiled = register_counting_compiler("early", false, Duration::ZERO);
    let seen = Arc::default();
    let (first, second) = (program(&seen, "first"), program(&seen, "second"));
    let options = Options::new().compiler("early");
    run(&first, &options);
    run(&second, &options);
    run(&first, &options);
    assert_eq!(*seen.lock().unwrap(), ["first", "second", "first"]);
    assert_eq!(compiled.load(Ordering::Relaxed), 2);
}

#[test]
fn compilation_continues_after_interrupted_calls() {
    let compiled = register_counting_compiler("slow", true, Duration::from_millis(400));
    let options = Options::new().compiler("slow");
    let program = program(&Arc::default(), "slow");
    let interrupted = AtomicBool::new(false);
    let interrupt = || interrupted.swap(true, Ordering::Relaxed);
    let start = Instant::now();
    // One thread compiles and another waits; both stop when they are cancelled.
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let left = {
                    let target = options.target(None).unwrap();
                    compile_for(
                        Purpose::Compile,
                        &program,
                        &options,
                        &target,
                        &[],
                        Some(&interrupt),
                    )
                };
                let error = left.err().unwrap();
                assert!(matches!(error, Error::Eval(EvalError::Interrupted)), "{error}");
            });
        }
    });
    assert!(start.elapsed() < Duration::from_millis(390));
    run(&program, &options);
    assert_eq!(compiled.load(Ordering::Relaxed), 1);
}

#[test]
fn calls_can_be_interrupted() {
    for compiler in compilers() {
        // Each iteration depends on the previous one, so no compiler can shorten the loop.
        let long_loop = |x: Expr| fori(0, 200_000_000, x, |_, x| (x * 3 + 1).remainder(1013));
        let long = jit(long_loop).compiler(compiler).interrupt(|| true);
        let error = long.call(1).unwrap_err();
        assert!(matches!(error, Error::Eval(EvalError::Interrupted)), "{compiler}: {error}");
        let short = jit(|x: Expr| x + 1).compiler(compiler).interrupt(|| false);
        assert_eq!(numbers(&short.call(1).unwrap()), [2.0]);
    }
}

/// The evaluator with custom methods for calls and streams, which record their use.
struct OverridingCompiler(Mutex<Vec<&'static str>>);

impl OverridingCompiler {
    fn note(
        &self,
        what: &'static str,
        request: &CompileRequest<'_>,
    ) -> Result<Arc<dyn Executable>> {
        self.0.lock().unwrap().push(what);
        Evaluator.compile(request)
    }
}

impl Compiler for OverridingCompiler {
    fn name(&self) -> &str {
        "own ways"
    }

    fn compile(&self, request: &CompileRequest<'_>) -> Result<Arc<dyn Executable>> {
        self.note("compile", request)
    }

    fn own_executable(
        &self,
        purpose: Purpose,
        request: &CompileRequest<'_>,
    ) -> Option<Result<Arc<dyn Executable>>> {
        match purpose {
            Purpose::Jit => Some(self.note("jit", request)),
            Purpose::Stream => Some(self.note("stream", request)),
            _ => None,
        }
    }
}

#[test]
fn compilers_can_override_calls_and_streams() {
    let own = Arc::new(OverridingCompiler(Mutex::default()));
    let compiler: Arc<dyn Compiler> = own.clone();
    let take_calls = || std::mem::take(&mut *own.0.lock().unwrap());

    let double = jit(|x: Expr| &x + &x).compiler(compiler.clone());
    for _ in 0..2 {
        assert_eq!(double.call(3i32).unwrap().item::<f64>().unwrap(), 6.0);
    }
    assert_eq!(take_calls(), ["jit"]);
    let ahead = double.compile(TensorType::scalar(DType::S32)).unwrap();
    assert_eq!(ahead.call(4i32).unwrap().item::<f64>().unwrap(), 8.0);
    assert_eq!(take_calls(), ["compile"]);

    let add = |x: Expr, total: Expr| (total.clone(), total + x);
    let options = Options::new().compiler(compiler);
    let mut totals = stream_with(add, TensorType::scalar(DType::S32), 0, &options).unwrap();
    totals.send(5).unwrap();
    assert_eq!(totals.recv().unwrap().to_vec::<i32>().unwrap(), [0]);
    assert_eq!(totals.done().unwrap().to_vec::<i32>().unwrap(), [5]);
    assert_eq!(take_calls(), ["stream"]);
}
