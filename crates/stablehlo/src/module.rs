//! Modules: the function `@main`, the private functions, and the properties for the caller.

use std::collections::VecDeque;

use nxla_expr::{Graph, HookOp, Program, TensorType};
use nxla_tensor::{DType, Scalar, Shape};
use rustc_hash::FxHashMap;

use crate::context::{Cx, Function};
use crate::error::{LowerError, Result};
use crate::options::LowerOptions;
use crate::partition;
use crate::region::{self, Source};
use crate::writer::Values;

/// A program as StableHLO text, and how to run it.
#[derive(Clone, Debug)]
pub struct LoweredModule {
    /// The module in MLIR's syntax. Equal programs and options produce equal modules.
    pub text: String,
    /// The inputs of the program that `@main` takes, in order. It does not need the other inputs.
    pub used_inputs: Vec<usize>,
    /// The host functions that the text calls.
    pub host_calls: Vec<HostCall>,
    /// The inputs that a run of the module takes over.
    pub donations: Vec<DonatedInput>,
}

/// A call of a host function in the module, by `stablehlo.custom_call @nxla_host_call(%token, %x…)
/// {id = …}`. The further results belong to a runtime call.
#[derive(Clone, Debug)]
pub struct HostCall {
    /// The attribute `id` of the call: the position in [`LoweredModule::host_calls`].
    pub id: i64,
    /// The hook or the runtime call, whose function receives the values.
    pub hook: HookOp,
    /// The types of the values: the arguments after `%token`, a `u32` that orders the calls. The first result is the
    /// token of the next call.
    pub arguments: Vec<TensorType>,
}

/// An input whose memory the program may overwrite.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DonatedInput {
    /// The position of the input in the program.
    pub input: usize,
    /// The output that reuses the memory of the input; `None` allows intermediate results to use the
    /// memory.
    pub output: Option<usize>,
}

impl DonatedInput {
    /// The attribute of the parameter for XLA.
    fn attribute(self) -> String {
        match self.output {
            Some(output) => format!("tf.aliasing_output = {output} : i32"),
            None => "jax.buffer_donor = true".to_owned(),
        }
    }
}

/// Writes a program as StableHLO.
///
/// # Errors
/// Returns [`LowerError::Donated`] for a list of another length than the inputs,
/// [`LowerError::HostCalls`] for an active hook if the plugin cannot call the host, and
/// [`LowerError::TooLarge`] for a value of 2^63 bytes or more.
pub fn lower(program: &Program, options: &LowerOptions<'_>) -> Result<LoweredModule> {
    let built = "the decomposition of a valid program is valid";
    let is_call = |graph: &Graph, id| options.library_call.is_some_and(|calls| calls(graph, id));
    let decomposed = match options.custom_call {
        Some(_) => None,
        None => nxla_expr::decompose(program, is_call).expect(built),
    };
    let program = decomposed.as_ref().unwrap_or(program);
    let direct = nxla_expr::merge_transposes(program).expect(built);
    let program = direct.as_ref().unwrap_or(program);
    let mut cx = Cx::new(options);
    let uses = region::uses(&mut cx, program);
    let is_used = |input: &usize| uses[program.parameters()[*input].index()] > 0;
    let used_inputs: Vec<usize> = (0..program.inputs().len()).filter(is_used).collect();
    let donations = donations(program, &used_inputs, options)?;

    cx.writer.begin_module(options.partition.as_ref().map(partition::header));
    main(&mut cx, program, &used_inputs, &donations)?;
    while let Some(next) = cx.next_function() {
        function(&mut cx, &next)?;
    }
    cx.write_materializers();
    cx.writer.end_module();
    if let Some((dtype, shape)) = cx.writer.types.too_large() {
        return Err(LowerError::TooLarge { dtype, shape: shape.clone() });
    }
    let (text, host_calls) = cx.finish();
    Ok(LoweredModule { text, used_inputs, host_calls, donations })
}

/// Writes `@main`.
fn main<'a>(
    cx: &mut Cx<'a>,
    program: &'a Program,
    used_inputs: &[usize],
    donations: &[DonatedInput],
) -> Result<()> {
    let parameters: Vec<_> =
        used_inputs.iter().map(|&input| cx.tensor_ty(&program.inputs()[input])).collect();
    let results: Vec<_> = program.output_types().map(|ty| cx.tensor_ty(ty)).collect();

    let mut attributes: FxHashMap<usize, String> =
        donations.iter().map(|donation| (donation.input, donation.attribute())).collect();
    let mut result_attributes = Vec::new();
    if let Some(partition) = &cx.options.partition {
        for &input in used_inputs {
            let shape = &program.inputs()[input].shape;
            let sharding = partition::attribute(&partition.inputs[input], shape);
            let all = attributes.entry(input).or_default();
            let separator = if all.is_empty() { "" } else { ", " };
            all.push_str(separator);
            all.push_str(&sharding);
        }
        let outputs = partition.outputs.unwrap_or_default().iter().zip(program.output_types());
        let attribute = |(layout, ty): (_, &TensorType)| partition::attribute(layout, &ty.shape);
        result_attributes = outputs.map(attribute).collect();
    }
    let attribute = |parameter: usize| attributes.get(&used_inputs[parameter]).map(String::as_str);
    let parameters = cx.writer.begin_function(
        "public",
        "main",
        &parameters,
        &results,
        attribute,
        &result_attributes,
    );
    if cx.active_hooks.are_in(program) {
        cx.hook_token = Some(cx.splat(Scalar::UInt(0), DType::U32, &Shape::scalar()));
    }
    let mut inputs: Vec<Option<Source>> = vec![None; program.inputs().len()];
    for (&input, &parameter) in used_inputs.iter().zip(&parameters) {
        inputs[input] = Some(parameter.into());
    }
    body(cx, program, &inputs)
}

/// Writes the function of the body of a block without active hooks.
fn function<'a>(cx: &mut Cx<'a>, function: &Function<'a>) -> Result<()> {
    let Function { name, body: program, precision } = function;
    cx.precision = *precision;
    let parameters: Vec<_> = program.inputs().iter().map(|ty| cx.tensor_ty(ty)).collect();
    let results: Vec<_> = program.output_types().map(|ty| cx.tensor_ty(ty)).collect();
    let parameters =
        cx.writer.begin_function("private", name, &parameters, &results, |_| None, &[]);
    cx.begin_function_body();
    let inputs: Vec<Option<Source>> = parameters.iter().map(|&value| Some(value.into())).collect();
    body(cx, program, &inputs)
}

fn body<'a>(cx: &mut Cx<'a>, program: &'a Program, inputs: &[Option<Source>]) -> Result<()> {
    let outputs = region::lower(cx, program, inputs)?;
    let outputs: Values = outputs.iter().map(|&output| cx.value(output)).collect();
    cx.writer.end_function(&outputs);
    Ok(())
}

/// Pairs each donated input that is used with the first free output of its type.
fn donations(
    program: &Program,
    used_inputs: &[usize],
    options: &LowerOptions<'_>,
) -> Result<Vec<DonatedInput>> {
    let expected = program.inputs().len();
    let donated = match options.donated {
        [] => return Ok(Vec::new()),
        donated if donated.len() == expected => donated,
        donated => return Err(LowerError::Donated { expected, found: donated.len() }),
    };
    let mut free: FxHashMap<(DType, &Shape), VecDeque<usize>> = FxHashMap::default();
    for (output, ty) in program.output_types().enumerate() {
        free.entry((ty.dtype, &ty.shape)).or_default().push_back(output);
    }
    let pair = |&input: &usize| {
        let ty = &program.inputs()[input];
        let output = free.get_mut(&(ty.dtype, &ty.shape)).and_then(VecDeque::pop_front);
        DonatedInput { input, output }
    };
    Ok(used_inputs.iter().filter(|&&input| donated[input]).map(pair).collect())
}
