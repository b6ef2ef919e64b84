//! A custom compiler, which wraps the evaluator, accepts a setting, and counts the runs of its programs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use nxla::prelude::*;
use nxla::{
    CompileRequest, Compiler, Device, Error, Evaluator, Executable, Options, RunContext, Setting,
    Settings, runtime,
};

/// Counts the runs of all its executables. The setting `max_nodes` limits the size of programs.
#[derive(Default)]
struct Counting {
    runs: Arc<AtomicUsize>,
}

impl Compiler for Counting {
    fn name(&self) -> &str {
        "counting"
    }

    fn check_settings(&self, settings: &Settings) -> nxla::Result<()> {
        match settings.iter().find(|(name, _)| *name != "max_nodes") {
            None => Ok(()),
            Some((name, _)) => Err(Error::Options(format!("counting: no setting {name:?}"))),
        }
    }

    fn check_device(&self, device: &Device) -> nxla::Result<()> {
        Evaluator.check_device(device)
    }

    fn compile(&self, request: &CompileRequest<'_>) -> nxla::Result<Arc<dyn Executable>> {
        let nodes = request.program.graph().len();
        match request.settings.get("max_nodes") {
            Some(Setting::Int(most)) if nodes as i64 > *most => {
                return Err(Error::Options(format!("counting: a program of {nodes} nodes")));
            }
            _ => {}
        }
        // The evaluator has no settings.
        let (mut inner, none) = (*request, Settings::new());
        inner.settings = &none;
        let inner = Evaluator.compile(&inner)?;
        Ok(Arc::new(Counted { inner, runs: self.runs.clone() }))
    }
}

/// An executable of the evaluator, with a counter.
struct Counted {
    inner: Arc<dyn Executable>,
    runs: Arc<AtomicUsize>,
}

impl Executable for Counted {
    fn run(
        &self,
        inputs: &[&runtime::RawTensor],
        context: &RunContext<'_>,
    ) -> nxla::Result<Vec<runtime::RawTensor>> {
        self.runs.fetch_add(1, Ordering::Relaxed);
        self.inner.run(inputs, context)
    }

    fn byte_size(&self) -> usize {
        self.inner.byte_size()
    }
}

/// Returns the difference between the number of runs and the number of calls.
pub fn run(_: &str) -> nxla::Result<f32> {
    let compiler = Arc::new(Counting::default());
    let counting: Arc<dyn Compiler> = compiler.clone();
    let norm = jit(|x: Expr| (&x * &x).sum().sqrt()).compiler(counting.clone());
    for _ in 0..3 {
        assert_eq!(norm.call(Tensor::from([3f32, 4.0]))?.item::<f32>()?, 5.0);
    }
    let small = jit(|x: Expr| x.sin().cos()).compiler(counting.clone()).set("max_nodes", 2);
    let error = small.call(1f32).expect_err("the program has three nodes");
    assert_eq!(error.to_string(), "counting: a program of 3 nodes");
    let options = Options::new().compiler(counting).set("color", 3);
    assert_eq!(
        options.results_device().expect_err("the compiler has another setting").to_string(),
        "counting: no setting \"color\""
    );
    Ok((compiler.runs.load(Ordering::Relaxed) as f32 - 3.0).abs())
}

fn main() -> nxla::Result<()> {
    assert_eq!(run("counting")?, 0.0);
    Ok(())
}
