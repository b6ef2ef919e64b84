//! Functions that are split into stages, with containers as arguments and results.

use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::panic;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nxla_expr::TensorType;
use nxla_runtime::{self as runtime, StageExecutor};
use nxla_split::{Cluster, Speed, StageGraph, Timeline};

use crate::containers::{
    Arguments, Container, Leaves, Structure, container_of_tensors, leaves_of_arguments,
};
use crate::jit::{InterruptFn, as_interrupt};
use crate::tensor::Tensor;
use crate::{Error, Result};

/// A function that is split into stages, created by [`Jit::stages`](crate::Jit::stages) or
/// [`Jit::split`](crate::Jit::split). Independent stages run in parallel. Clones share the stages.
///
/// ```
/// use nxla::split::Decision;
/// use nxla::{DType, Expr, TensorType, jit};
///
/// let f = jit(|x: Expr, [y, z]: [Expr; 2]| (x.negate().sin().cos() + y, z));
/// let scalar = TensorType::scalar(DType::S32);
/// let stages = f.split((&scalar, [&scalar, &scalar]), |node| match node.op.name() {
///     "cos" => Decision::Before,
///     _ => Decision::None,
/// })?;
/// assert_eq!(stages.graph().stages().len(), 2);
/// let (sum, z) = stages.run((1, [2, 3]))?;
/// let (expected, _) = f.call((1, [2, 3]))?;
/// assert_eq!((sum.item::<f64>()?, z.to_vec::<i32>()?), (expected.item::<f64>()?, vec![3]));
/// # Ok::<(), nxla::Error>(())
/// ```
pub struct Stages<Inputs, Results> {
    inner: Arc<Inner>,
    containers: PhantomData<fn(Inputs) -> Results>,
}

/// The stages, and the argument types for which they were created.
struct Inner {
    core: runtime::StageRunner,
    types: Leaves<TensorType>,
    traced: runtime::TracedFunction<Structure>,
    interrupt: Option<Arc<InterruptFn>>,
}

impl<Inputs, Results> Clone for Stages<Inputs, Results> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), containers: PhantomData }
    }
}

impl<Inputs, Results> fmt::Debug for Stages<Inputs, Results> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stages = self.graph().stages().len();
        f.debug_struct("Stages").field("stages", &stages).finish_non_exhaustive()
    }
}

impl<Inputs, Results> Stages<Inputs, Results> {
    pub(crate) fn new(
        core: runtime::StageRunner,
        types: Leaves<TensorType>,
        traced: runtime::TracedFunction<Structure>,
        interrupt: Option<Arc<InterruptFn>>,
    ) -> Self {
        let inner = Arc::new(Inner { core, types, traced, interrupt });
        Self { inner, containers: PhantomData }
    }

    /// Returns the stages. Large tensors that the function captures are the last inputs of the
    /// program.
    ///
    /// ```
    /// use nxla::split::Decision;
    /// use nxla::{DType, Expr, TensorType, jit};
    ///
    /// let f = jit(|x: Expr| x.sin().cos());
    /// let stages = f.split(&TensorType::scalar(DType::F32), |_| Decision::None)?;
    /// assert_eq!(stages.graph().stages().len(), 1);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    pub fn graph(&self) -> &StageGraph {
        self.inner.core.graph()
    }

    /// Returns a table of the stages: operations, arguments, results, bytes, and the estimated
    /// time; see [`StageGraph::explain`].
    ///
    /// ```
    /// use nxla::split::Policy;
    /// use nxla::{DType, Expr, TensorType, jit};
    ///
    /// let f = jit(|x: Expr| x.sin().cos());
    /// let stages = f.stages(&TensorType::scalar(DType::F32), &Policy::EveryOps(1))?;
    /// assert!(stages.explain().contains("2 stages on 2 levels"));
    /// # Ok::<(), nxla::Error>(())
    /// ```
    pub fn explain(&self) -> String {
        self.graph().explain()
    }

    /// Estimates when each stage would run on a cluster with processors of this speed; see
    /// [`StageGraph::simulate`] for measured times.
    ///
    /// ```
    /// use nxla::split::{Cluster, Policy, Speed};
    /// use nxla::{DType, Expr, TensorType, jit};
    ///
    /// let f = jit(|x: Expr| x.sin().cos());
    /// let stages = f.stages(&TensorType::scalar(DType::F32), &Policy::EveryOps(1))?;
    /// let cluster = Cluster { workers: 2, bandwidth: 1e9, latency: 1e-6 };
    /// assert_eq!(stages.simulate(&cluster, &Speed::default())?.runs.len(), 2);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the cluster has no workers, if a bandwidth or a speed is not positive, or
    /// if a latency or an overhead is negative or NaN.
    pub fn simulate(&self, cluster: &Cluster, speed: &Speed) -> Result<Timeline> {
        let wrong = |why: String| Err(Error::Arguments { function: "simulate".into(), why });
        let Cluster { workers, bandwidth, latency } = *cluster;
        let Speed { flops, bytes, overhead } = *speed;
        if workers == 0 {
            return wrong("cluster: must have a worker; got 0".into());
        }
        if !(bandwidth > 0.0 && latency >= 0.0) {
            return wrong(format!(
                "cluster: bandwidth must be positive and latency must not be negative; got \
                 {bandwidth} and {latency}"
            ));
        }
        if !(flops > 0.0 && bytes > 0.0 && overhead >= 0.0) {
            return wrong(format!(
                "speed: flops and bytes must be positive and overhead must not be negative; got \
                 {flops}, {bytes} and {overhead}"
            ));
        }
        let graph = self.graph();
        Ok(graph.simulate(cluster, &graph.seconds(speed)))
    }
}

impl<Inputs: Container, Results: Container> Stages<Inputs, Results> {
    /// Runs all stages on threads of this process, on the device of the arguments unless the
    /// options set another device. A value is freed after the last stage that needs it.
    ///
    /// ```
    /// use nxla::split::Decision;
    /// use nxla::{DType, Expr, TensorType, jit};
    ///
    /// let f = jit(|x: Expr| (x * 2).abs());
    /// let stages = f.split(&TensorType::scalar(DType::S32), |node| match node.op.name() {
    ///     "abs" => Decision::Before,
    ///     _ => Decision::None,
    /// })?;
    /// assert_eq!(stages.run(-4)?.item::<i32>()?, 8);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error for arguments of other types than the traced types, and the first error of
    /// a stage.
    pub fn run(&self, arguments: impl Arguments<Inputs, Tensor>) -> Result<Results::Tensors> {
        self.run_anywhere(arguments, None)
    }

    /// Runs stages on an executor. Stages with hooks that have listeners run in this process.
    ///
    /// ```
    /// use nxla::runtime::Done;
    /// use nxla::split::{Decision, Stage};
    /// use nxla::{DType, Expr, Result, StageExecutor, TensorType, jit, runtime};
    ///
    /// /// Reads each stage from its bytes, as another machine would.
    /// struct FromBytes;
    ///
    /// impl StageExecutor for FromBytes {
    ///     fn submit(&self, stage: &Stage, inputs: Vec<runtime::RawTensor>, done: Done) -> Result<()> {
    ///         let stage = Stage::from_bytes(&stage.to_bytes())?;
    ///         let inputs: Vec<_> = inputs.iter().collect();
    ///         let options = nxla::default_options();
    ///         let results = runtime::run_program("stage", &stage.program, &options, &inputs, None);
    ///         done.end(move || results);
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let f = jit(|x: Expr| (x * 2).abs());
    /// let stages = f.split(&TensorType::scalar(DType::S32), |node| match node.op.name() {
    ///     "abs" => Decision::Before,
    ///     _ => Decision::None,
    /// })?;
    /// assert_eq!(stages.run_on(&FromBytes, -4)?.item::<i32>()?, 8);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`Stages::run`] and of the executor.
    pub fn run_on(
        &self,
        executor: &dyn StageExecutor,
        arguments: impl Arguments<Inputs, Tensor>,
    ) -> Result<Results::Tensors> {
        self.run_anywhere(arguments, Some(executor))
    }

    /// Measures each stage separately: the shortest time of `repeat` runs.
    ///
    /// ```
    /// use nxla::split::Policy;
    /// use nxla::{DType, Expr, TensorType, jit};
    ///
    /// let f = jit(|x: Expr| x.sin().cos());
    /// let stages = f.stages(&TensorType::scalar(DType::F32), &Policy::EveryOps(1))?;
    /// assert_eq!(stages.measure(1.0f32, 3)?.len(), 2);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`Stages::run`].
    pub fn measure(
        &self,
        arguments: impl Arguments<Inputs, Tensor>,
        repeat: usize,
    ) -> Result<Vec<Duration>> {
        let inputs = self.inputs(arguments)?;
        self.inner.core.measure(&inputs, repeat, as_interrupt(self.inner.interrupt.as_deref()))
    }

    /// Runs the stages for each element of an iterator, several elements at the same time, and
    /// returns the results in order. While one element is in a stage, the next element is in the
    /// previous stage. Elements are taken on demand, so the iterator may be endless.
    ///
    /// ```
    /// use nxla::split::Policy;
    /// use nxla::{DType, Expr, TensorType, jit};
    ///
    /// let f = jit(|x: Expr| (x * 2).abs());
    /// let stages = f.stages(&TensorType::scalar(DType::S32), &Policy::EveryOps(1))?;
    /// let doubled = stages.pipeline([-1, 2, -3], 2).map(|result| result?.item::<i32>());
    /// assert_eq!(doubled.collect::<nxla::Result<Vec<_>>>()?, [2, 4, 6]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`Stages::run`] as elements of the iterator, which ends after an error.
    /// Returns an error if `in_flight`, the maximum number of concurrent elements, is 0.
    pub fn pipeline<A>(
        &self,
        elements: impl IntoIterator<Item = A>,
        in_flight: usize,
    ) -> impl Iterator<Item = Result<Results::Tensors>>
    where
        A: Arguments<Inputs, Tensor>,
    {
        let mut elements = elements.into_iter().fuse();
        let mut running: VecDeque<Result<Run>> = VecDeque::new();
        if in_flight == 0 {
            let why = "in_flight: must be 1 or more; got 0".into();
            running.push_back(Err(Error::Arguments { function: "pipeline".into(), why }));
        }
        let stages = self.clone();
        let mut has_failed = false;
        std::iter::from_fn(move || {
            while !has_failed && running.len() < in_flight {
                let Some(element) = elements.next() else { break };
                running.push_back(stages.inputs(element).map(|inputs| stages.start(inputs)));
            }
            let results = running.pop_front()?.and_then(join_run);
            if results.is_err() {
                has_failed = true;
                running.clear();
            }
            Some(results.map(|results| stages.rebuild(results)))
        })
    }

    /// Runs the stages on a new thread.
    fn start(&self, inputs: Vec<runtime::RawTensor>) -> Run {
        let inner = self.inner.clone();
        thread::spawn(move || {
            inner.core.run_leaves(inputs, None, as_interrupt(inner.interrupt.as_deref()))
        })
    }

    /// Returns the inputs of the program for these arguments.
    fn inputs(&self, arguments: impl Arguments<Inputs, Tensor>) -> Result<Vec<runtime::RawTensor>> {
        let leaves = leaves_of_arguments(arguments);
        self.inner.types.check::<Inputs>(&leaves, "stages", "argument")?;
        let inputs = leaves.items.into_iter().map(Tensor::into_inner);
        Ok(inputs.chain(self.inner.traced.captured.iter().cloned()).collect())
    }

    /// Returns the container of the results of the program.
    fn rebuild(&self, results: Vec<runtime::RawTensor>) -> Results::Tensors {
        let traced = &self.inner.traced;
        container_of_tensors(traced.vectors.put(results), &traced.results)
    }

    fn run_anywhere(
        &self,
        arguments: impl Arguments<Inputs, Tensor>,
        executor: Option<&dyn StageExecutor>,
    ) -> Result<Results::Tensors> {
        let inputs = self.inputs(arguments)?;
        let interrupt = as_interrupt(self.inner.interrupt.as_deref());
        Ok(self.rebuild(self.inner.core.run_leaves(inputs, executor, interrupt)?))
    }
}

/// A run of all stages in progress on a thread.
type Run = JoinHandle<Result<Vec<runtime::RawTensor>>>;

/// Waits for a run.
///
/// # Panics
/// Panics with the same payload if the run panicked.
fn join_run(run: Run) -> Result<Vec<runtime::RawTensor>> {
    run.join().unwrap_or_else(|payload| panic::resume_unwind(payload))
}
