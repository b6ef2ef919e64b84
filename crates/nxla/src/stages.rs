//! Functions cut into stages, which take and give containers.

use std::marker::PhantomData;
use std::sync::Arc;

use nxla_expr::TensorType;
use nxla_runtime::{self as runtime, StageExecutor};
use nxla_split::StageGraph;

use crate::containers::{Arguments, Container, Leaves, Structure, Tree};
use crate::jit::{Asked, asked};
use crate::tensor::Tensor;
use crate::{Error, Result};

/// A function cut into stages; made by [`Jit::split`](crate::Jit::split). Independent stages run at
/// the same time.
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
    core: runtime::Stages,
    types: Leaves<TensorType>,
    traced: runtime::Traced<Structure>,
    interrupt: Option<Arc<Asked>>,
    containers: PhantomData<fn(Inputs) -> Results>,
}

impl<Inputs, Results> Stages<Inputs, Results> {
    pub(crate) fn new(
        core: runtime::Stages,
        types: Leaves<TensorType>,
        traced: runtime::Traced<Structure>,
        interrupt: Option<Arc<Asked>>,
    ) -> Self {
        Self { core, types, traced, interrupt, containers: PhantomData }
    }

    /// The stages. Large tensors that the function mentions are the last inputs of the whole.
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
        self.core.graph()
    }
}

impl<Inputs: Container, Results: Container> Stages<Inputs, Results> {
    /// Runs all stages on threads of this process, where the arguments live unless the options say
    /// where. A value is freed after the last stage that needs it.
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
    /// Arguments of other types than the function was traced for; the first error of a stage.
    pub fn run(&self, arguments: impl Arguments<Inputs, Tensor>) -> Result<Results::Tensors> {
        self.run_anywhere(arguments, None)
    }

    /// Runs stages on an executor. Those whose hooks call somebody run in this process.
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
    ///     fn submit(&self, stage: &Stage, inputs: Vec<runtime::Tensor>, done: Done) -> Result<()> {
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
    /// As for [`Stages::run`]; what goes wrong where a stage runs.
    pub fn run_on(
        &self,
        executor: &dyn StageExecutor,
        arguments: impl Arguments<Inputs, Tensor>,
    ) -> Result<Results::Tensors> {
        self.run_anywhere(arguments, Some(executor))
    }

    fn run_anywhere(
        &self,
        arguments: impl Arguments<Inputs, Tensor>,
        executor: Option<&dyn StageExecutor>,
    ) -> Result<Results::Tensors> {
        let mut leaves = Leaves::default();
        arguments.append(&mut leaves);
        self.check(&leaves)?;
        let inputs = leaves.items.into_iter().map(Tensor::into_inner);
        let inputs = inputs.chain(self.traced.captured.iter().cloned()).collect();
        let results = self.core.run_leaves(inputs, executor, asked(self.interrupt.as_deref()))?;
        let results = self.traced.vectors.put(results).into_iter().map(Tensor::from);
        Ok(Tree::rebuild(&mut Leaves::new(results, self.traced.results.clone())))
    }

    fn check(&self, found: &Leaves<Tensor>) -> Result<()> {
        let types = &self.types;
        let mut pairs = found.items.iter().zip(&types.items);
        let fits = found.structure == types.structure
            && pairs.all(|(tensor, ty)| tensor.vectors().is_empty() && ty.accepts(&tensor.ty()));
        if fits {
            return Ok(());
        }
        let list = |types: Vec<String>| types.join(", ");
        let expected = list(types.items.iter().map(ToString::to_string).collect());
        let found = list(found.items.iter().map(|tensor| tensor.ty().to_string()).collect());
        let why = format!("the arguments are ({found}), the function was split for ({expected})");
        Err(Error::Arguments { function: "stages".into(), why })
    }
}
