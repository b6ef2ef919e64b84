//! Jitted functions that run on all devices of a mesh.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use nxla_expr::TensorType;
use nxla_runtime::{Divided, Error, Mesh, Options, Result, Settings, Sharding};

use super::shardings::Shardings;
use super::tensor::{ShardedArgument, ShardedTensor};
use crate::containers::{
    Arguments, Container, Function, Leaves, Structure, Tree, leaves_of_arguments, relative_path,
};
use crate::jit::{Jit, template_of};

/// Returns the sharding of a result, by its path and its type.
type Rule = dyn Fn(&str, &TensorType) -> Result<Sharding> + Send + Sync;

/// A function that runs on all devices of a mesh; created by [`Jit::over`].
///
/// ```no_run
/// use nxla::{Expr, Mesh, ShardedFunction, Tensor, jit};
///
/// let double: ShardedFunction<_, _> = jit(|x: Expr| x * 2).over(&Mesh::new([("data", 2)])?);
/// assert_eq!(double.call(Tensor::from([1, 2]))?.gather()?.to_vec::<i32>()?, [2, 4]);
/// # Ok::<(), nxla::Error>(())
/// ```
pub struct ShardedFunction<F, Inputs> {
    jit: Jit<F, Inputs>,
    mesh: Mesh,
    rule: Option<Box<Rule>>,
    known: Mutex<Vec<Arc<CompiledVariant>>>,
}

/// A compiled program for these settings, argument types and shardings.
struct CompiledVariant {
    settings: Settings,
    types: Leaves<TensorType>,
    inputs: Vec<Sharding>,
    program: Divided,
    outputs: Vec<(TensorType, Sharding)>,
    structure: Structure,
}

impl<F, Inputs> Jit<F, Inputs> {
    /// Runs the function on all devices of a mesh. Each combination of signature and argument
    /// shardings is compiled once. Tensors without a sharding are copied to every device, and
    /// results are replicated unless [`ShardedFunction::results`] sets their shardings.
    ///
    /// ```no_run
    /// use nxla::{Expr, Mesh, jit, sharding::shard, Tensor};
    ///
    /// let mesh = Mesh::new([("data", 2)])?;
    /// let rows = mesh.sharding(["data"])?;
    /// let double = jit(|x: Expr| x * 2).over(&mesh).results(rows.clone());
    /// let x = double.call(shard(&Tensor::from([1, 2]), &rows)?)?;
    /// assert_eq!(double.call(&x)?.parts()[1].to_vec::<i32>()?, [8]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn over(self, mesh: &Mesh) -> ShardedFunction<F, Inputs> {
        ShardedFunction { jit: self, mesh: mesh.clone(), rule: None, known: Mutex::default() }
    }
}

impl<F, Inputs> ShardedFunction<F, Inputs> {
    /// Sets the shardings of the results, see [`Shardings`].
    ///
    /// ```no_run
    /// use nxla::{Expr, Mesh, Tensor, jit};
    ///
    /// let mesh = Mesh::new([("data", 2)])?;
    /// let shardings = (mesh.replicated(), mesh.sharding(["data"])?);
    /// let f = jit(|x: Expr| (x.sum(), x * 2)).over(&mesh).results(shardings);
    /// let (total, doubled) = f.call(Tensor::from([1, 2, 3, 4]))?;
    /// assert_eq!(total.gather()?.item::<i32>()?, 10);
    /// assert_eq!(doubled.parts()[1].to_vec::<i32>()?, [6, 8]);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    #[must_use]
    pub fn results<Kind>(self, shardings: impl Shardings<Kind> + Send + Sync + 'static) -> Self {
        let rule = move |path: &str, ty: &TensorType| shardings.sharding_of(path, ty);
        Self { rule: Some(Box::new(rule)), known: Mutex::default(), ..self }
    }

    /// Returns the mesh.
    ///
    /// ```no_run
    /// use nxla::{Expr, Mesh, jit};
    ///
    /// let double = jit(|x: Expr| x * 2).over(&Mesh::new([("data", 2)])?);
    /// assert_eq!(double.mesh().size(), 2);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    pub fn mesh(&self) -> &Mesh {
        &self.mesh
    }

    fn lock_known(&self) -> std::sync::MutexGuard<'_, Vec<Arc<CompiledVariant>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the current options, without options that have no meaning here.
    fn options(&self) -> Result<Options> {
        self.jit.call_mode()?;
        let refused = [
            (self.jit.donates(), "arguments: must not be donated to a function over a mesh"),
            (self.jit.interrupt.is_some(), "interrupt: not supported for a function over a mesh"),
        ];
        if let Some((_, why)) = refused.into_iter().find(|(is_set, _)| *is_set) {
            return Err(Error::Options(format!("over: {why}")));
        }
        self.jit.options().of_a_mesh()
    }
}

impl<F: Function<Types>, Types> ShardedFunction<F, Types> {
    /// Runs the function on tensors, scalars, [`ShardedTensor`]s, and containers of them. Programs
    /// run asynchronously: reading a result waits for it.
    ///
    /// ```no_run
    /// use nxla::sharding::shard;
    /// use nxla::{Expr, Mesh, Tensor, jit};
    ///
    /// let mesh = Mesh::new([("data", 2)])?;
    /// let x = shard(&Tensor::from([1, 2, 3, 4]), mesh.sharding(["data"])?)?;
    /// let scaled = jit(|x: Expr, rate: Expr| (x * rate).sum()).over(&mesh);
    /// assert_eq!(scaled.call((&x, 10))?.gather()?.item::<i32>()?, 100);
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of the function, its compilation and its run. Returns an error for a
    /// tensor that is sharded over another mesh, for captured large tensors, which must be
    /// arguments here, and for hooks with listeners.
    pub fn call<A>(&self, arguments: A) -> Result<<F::Results as Container>::Sharded>
    where
        A: Arguments<F::Arguments, ShardedArgument>,
    {
        let leaves = leaves_of_arguments(arguments);
        let known = self.find_or_compile(&leaves)?;
        let mut lists = vec![Vec::with_capacity(leaves.items.len()); self.mesh.size()];
        for leaf in leaves.items {
            let divided = leaf.over(&self.mesh)?;
            lists.iter_mut().zip(divided.parts()).for_each(|(list, part)| list.push(part.clone()));
        }
        let results = known.program.run(&lists)?;
        let sharded = known.outputs.iter().enumerate().map(|(number, (ty, sharding))| {
            let parts = results.iter().map(|list| list[number].clone()).collect();
            ShardedTensor::new(ty.clone(), sharding.clone(), parts)
        });
        Ok(Tree::rebuild(&mut Leaves::new(sharded, known.structure.clone())))
    }

    /// Returns the StableHLO module for these arguments with its shardings, before XLA partitions
    /// it.
    ///
    /// ```no_run
    /// use nxla::{Expr, Mesh, Tensor, jit};
    ///
    /// let double = jit(|x: Expr| x * 2).over(&Mesh::new([("data", 2)])?);
    /// assert!(double.text(Tensor::from([1, 2]))?.contains("stablehlo.multiply"));
    /// # Ok::<(), nxla::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`ShardedFunction::call`], except errors while the program runs.
    pub fn text<A>(&self, arguments: A) -> Result<String>
    where
        A: Arguments<F::Arguments, ShardedArgument>,
    {
        let leaves = leaves_of_arguments(arguments);
        Ok(self.find_or_compile(&leaves)?.program.text().to_owned())
    }

    /// Returns the compiled program for these arguments. Two threads may compile the same program;
    /// the first one is used.
    fn find_or_compile(&self, given: &Leaves<ShardedArgument>) -> Result<Arc<CompiledVariant>> {
        let options = self.options()?;
        let is_like = |known: &&Arc<CompiledVariant>| {
            let mut like = known.types.items.iter().zip(&known.inputs).zip(&given.items);
            known.settings == options.settings
                && known.types.structure == given.structure
                && known.inputs.len() == given.items.len()
                && like.all(|((ty, sharding), leaf)| leaf.is_like(ty, sharding))
        };
        if let Some(known) = self.lock_known().iter().find(is_like) {
            return Ok(known.clone());
        }
        let types =
            Leaves::new(given.items.iter().map(ShardedArgument::ty), given.structure.clone());
        let inputs = given.items.iter().map(|leaf| leaf.sharding(&self.mesh)).collect();
        let made = Arc::new(self.compile_for(types, inputs, &options)?);
        let mut all = self.lock_known();
        if let Some(known) = all.iter().find(is_like) {
            return Ok(known.clone());
        }
        all.push(made.clone());
        Ok(made)
    }

    fn compile_for(
        &self,
        types: Leaves<TensorType>,
        inputs: Vec<Sharding>,
        options: &Options,
    ) -> Result<CompiledVariant> {
        let traced = self.jit.trace_call(&template_of(&types), types.structure.clone(), options)?;
        if !traced.captured.is_empty() {
            let why = "the function must not capture a large tensor or a tensor on a device; pass it as \
                       an argument";
            return Err(Error::Arguments { function: "over".into(), why: why.into() });
        }
        if !traced.vectors.are_none() {
            return Err(Error::Layout("results must not have vectorized axes".into()));
        }
        let results = traced.program.output_types().cloned();
        let tree = Leaves::new(results, traced.results.clone());
        let paths = tree.paths::<F::Results>("")?;
        let mut outputs = Vec::with_capacity(paths.len());
        for (path, ty) in paths.iter().zip(&tree.items) {
            let sharding = match &self.rule {
                Some(rule) => rule(relative_path(path), ty)?,
                None => self.mesh.replicated(),
            };
            outputs.push((ty.clone(), sharding));
        }
        let wanted: Vec<Sharding> = outputs.iter().map(|(_, sharding)| sharding.clone()).collect();
        let program =
            Divided::compile("over", &traced.program, options, &self.mesh, &inputs, Some(&wanted))?;
        let (settings, structure) = (options.settings.clone(), tree.structure);
        Ok(CompiledVariant { settings, types, inputs, program, outputs, structure })
    }
}

impl<F, Inputs> fmt::Debug for ShardedFunction<F, Inputs> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardedFunction")
            .field("jit", &self.jit)
            .field("mesh", &self.mesh)
            .finish_non_exhaustive()
    }
}
