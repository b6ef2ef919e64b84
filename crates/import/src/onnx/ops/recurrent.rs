//! Recurrent layers: loops over time whose input products are computed for all steps at once.

use nxla_expr::build::SliceStart;
use nxla_expr::{BinaryOp, ExprId};
use nxla_tensor::{DType, Scalar};

use super::activation::{hard_sigmoid, relu, thresholded_relu};
use super::control::{LoopResults, element_at, run_counted_loop};
use super::movement::reversed_places;
use super::{Operator, operator};
use crate::onnx::error::{Built, invalid, unsupported};
use crate::onnx::node::Call;

/// The operators of this family.
pub(super) const OPERATORS: &[Operator] = &[
    operator("GRU", |call| layer(call, Cell::Gru)),
    operator("LSTM", |call| layer(call, Cell::Lstm)),
    operator("RNN", |call| layer(call, Cell::Rnn)),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cell {
    Gru,
    Lstm,
    Rnn,
}

impl Cell {
    /// Returns the number of gates.
    fn gates(self) -> usize {
        match self {
            Cell::Gru => 3,
            Cell::Lstm => 4,
            Cell::Rnn => 1,
        }
    }

    /// Returns the activation functions of a direction, unless the node has others.
    fn activations(self) -> &'static [&'static str] {
        match self {
            Cell::Gru => &["Sigmoid", "Tanh"],
            Cell::Lstm => &["Sigmoid", "Tanh", "Tanh"],
            Cell::Rnn => &["Tanh"],
        }
    }
}

/// An activation function with its parameters.
#[derive(Clone, Copy)]
enum Activation {
    Affine { alpha: f64, beta: f64 },
    Elu { alpha: f64 },
    HardSigmoid { alpha: f64, beta: f64 },
    LeakyRelu { alpha: f64 },
    Relu,
    ScaledTanh { alpha: f64, beta: f64 },
    Sigmoid,
    Softplus,
    Softsign,
    Tanh,
    ThresholdedRelu { alpha: f64 },
}

/// The properties that the directions of a layer share.
struct Layer {
    kind: Cell,
    batch: usize,
    /// The size of the hidden state.
    size: usize,
    is_batch_first: bool,
    /// The activation functions of all directions.
    activations: Vec<Activation>,
    clip: Option<f64>,
    input_forget: bool,
    linear_before_reset: bool,
    /// The length of each sequence.
    lengths: Option<ExprId>,
}

/// The operands of one direction.
struct Direction<'l> {
    layer: &'l Layer,
    activations: &'l [Activation],
    /// The products of inputs and weights with the bias, `[time, batch, gates * size]`.
    inputs: ExprId,
    /// The weights of the hidden state, `[gates * size, size]`.
    recurrent: ExprId,
    /// The bias of the hidden state, `[gates * size]`.
    bias: Option<ExprId>,
    peepholes: Option<ExprId>,
    hidden: ExprId,
    cell: ExprId,
}

/// Reads the activation functions of all directions. A function that has a parameter takes the next
/// value of the list of the parameter.
fn activations(call: &Call<'_, '_, '_>, kind: Cell, directions: usize) -> Built<Vec<Activation>> {
    let default = || kind.activations().repeat(directions).into_iter().map(str::to_owned).collect();
    let names: Vec<String> = call.texts("activations")?.unwrap_or_else(default);
    let (expected, found) = (kind.activations().len() * directions, names.len());
    if found != expected {
        return invalid(format!("activations: must have {expected} entries; got {found}"));
    }
    let mut alphas = call.floats("activation_alpha")?.unwrap_or_default().into_iter();
    let mut betas = call.floats("activation_beta")?.unwrap_or_default().into_iter();
    let mut alpha = |default: f64| alphas.next().unwrap_or(default);
    let mut beta = |default: f64| betas.next().unwrap_or(default);
    let mut activations = Vec::with_capacity(names.len());
    for name in names {
        activations.push(match name.to_lowercase().as_str() {
            "affine" => Activation::Affine { alpha: alpha(1.0), beta: beta(0.0) },
            "elu" => Activation::Elu { alpha: alpha(1.0) },
            "hardsigmoid" => Activation::HardSigmoid { alpha: alpha(0.2), beta: beta(0.5) },
            "leakyrelu" => Activation::LeakyRelu { alpha: alpha(0.01) },
            "relu" => Activation::Relu,
            "scaledtanh" => Activation::ScaledTanh { alpha: alpha(1.0), beta: beta(1.0) },
            "sigmoid" => Activation::Sigmoid,
            "softplus" => Activation::Softplus,
            "softsign" => Activation::Softsign,
            "tanh" => Activation::Tanh,
            "thresholdedrelu" => Activation::ThresholdedRelu { alpha: alpha(1.0) },
            _ => {
                let why = format!("must be activations of recurrent layers; got {name:?}");
                return unsupported(format!("activations: {why}"));
            }
        });
    }
    Ok(activations)
}

impl Activation {
    fn apply(self, call: &mut Call<'_, '_, '_>, x: ExprId) -> Built<ExprId> {
        Ok(match self {
            Activation::Affine { alpha, beta } => {
                let (alpha, beta) = (call.scalar(alpha, x)?, call.scalar(beta, x)?);
                let scaled = call.graph().multiply(x, alpha)?;
                call.graph().add(scaled, beta)?
            }
            Activation::Elu { alpha } => call.graph().elu(x, alpha)?,
            Activation::HardSigmoid { alpha, beta } => hard_sigmoid(call, x, alpha, beta)?,
            Activation::LeakyRelu { alpha } => call.graph().leaky_relu(x, alpha)?,
            Activation::Relu => relu(call, x)?,
            Activation::ScaledTanh { alpha, beta } => {
                let (alpha, beta) = (call.scalar(alpha, x)?, call.scalar(beta, x)?);
                let graph = call.graph();
                let scaled = graph.multiply(x, beta)?;
                let curve = graph.tanh(scaled)?;
                graph.multiply(curve, alpha)?
            }
            Activation::Sigmoid => call.graph().sigmoid(x)?,
            Activation::Softplus => call.graph().softplus(x)?,
            Activation::Softsign => call.graph().soft_sign(x)?,
            Activation::Tanh => call.graph().tanh(x)?,
            Activation::ThresholdedRelu { alpha } => {
                thresholded_relu(call, x, alpha, BinaryOp::GreaterEqual)?
            }
        })
    }
}

/// Returns one entry of the first axis.
fn entry(call: &mut Call<'_, '_, '_>, x: ExprId, index: usize) -> Built<ExprId> {
    let graph = call.graph();
    let one = graph.slice_along_axis(x, SliceStart::at(index), 1, 0, 1)?;
    Ok(graph.squeeze(one, Some(&[0]))?)
}

/// Returns a part of the last axis.
fn part(call: &mut Call<'_, '_, '_>, x: ExprId, index: usize, size: usize) -> Built<ExprId> {
    Ok(call.graph().slice_along_axis(x, SliceStart::at(index * size), size, -1, 1)?)
}

fn layer(call: &mut Call<'_, '_, '_>, kind: Cell) -> Built<Vec<ExprId>> {
    let [mut x, weights, recurrent] = call.inputs()?;
    let is_batch_first = call.flag("layout", false)?;
    if is_batch_first {
        x = call.graph().swap_axes(x, 0, 1)?;
    }
    let ([time, batch, _], [directions, rows, size]) = (
        call.shape(x)[..].try_into().unwrap_or([0; 3]),
        call.shape(recurrent)[..].try_into().unwrap_or([0; 3]),
    );
    if call.rank(x) != 3
        || size.checked_mul(kind.gates()) != Some(rows)
        || !(1..=2).contains(&directions)
    {
        let (x, recurrent) = (call.ty(x), call.ty(recurrent));
        return invalid(format!("X, R: have shapes that do not fit; got {x} and {recurrent}"));
    }
    let direction = call.text("direction", "forward")?;
    let expected = match direction.as_str() {
        "forward" | "reverse" => 1,
        "bidirectional" => 2,
        other => {
            let names = "forward, reverse or bidirectional";
            return invalid(format!("direction: must be {names}; got {other:?}"));
        }
    };
    if directions != expected {
        let why = format!("must have {expected} entries for {direction}; got {directions}");
        return invalid(format!("R: first axis {why}"));
    }
    let layer = Layer {
        kind,
        batch,
        size,
        is_batch_first,
        activations: activations(call, kind, directions)?,
        clip: call.maybe_float("clip")?,
        input_forget: call.flag("input_forget", false)?,
        linear_before_reset: call.flag("linear_before_reset", false)?,
        lengths: call.optional(4),
    };
    let (mut all, mut last, mut cells) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..directions {
        let is_reverse = number == 1 || direction == "reverse";
        let source = if is_reverse { reverse_sequences(call, x, layer.lengths)? } else { x };
        let direction = direction_of(call, &layer, number, source, [weights, recurrent])?;
        let LoopResults { state, stacked } = run(call, &direction, time)?;
        let mut outputs = stacked[0];
        if is_reverse {
            outputs = reverse_sequences(call, outputs, layer.lengths)?;
        }
        all.push(call.graph().new_axis(outputs, 1, None)?);
        last.push(call.graph().new_axis(state[0], 0, None)?);
        cells.push(call.graph().new_axis(state[1], 0, None)?);
    }
    let graph = call.graph();
    let mut y = graph.concatenate(&all, 1)?;
    let (mut hidden, mut cell) = (graph.concatenate(&last, 0)?, graph.concatenate(&cells, 0)?);
    if is_batch_first {
        y = graph.transpose(y, Some(&[2, 0, 1, 3]))?;
        (hidden, cell) = (graph.swap_axes(hidden, 0, 1)?, graph.swap_axes(cell, 0, 1)?);
    }
    Ok(match kind {
        Cell::Lstm => vec![y, hidden, cell],
        Cell::Gru | Cell::Rnn => vec![y, hidden],
    })
}

/// Reverses sequences `[time, batch, features]`, each up to its length.
fn reverse_sequences(
    call: &mut Call<'_, '_, '_>,
    x: ExprId,
    lengths: Option<ExprId>,
) -> Built<ExprId> {
    let Some(lengths) = lengths else { return Ok(call.graph().reverse(x, Some(&[0]))?) };
    let shape = call.shape(x);
    let places = reversed_places(call, lengths, &shape, 1, 0)?;
    Ok(call.graph().take_along_axis(x, places, 0)?)
}

fn direction_of<'l>(
    call: &mut Call<'_, '_, '_>,
    layer: &'l Layer,
    number: usize,
    x: ExprId,
    [weights, recurrent]: [ExprId; 2],
) -> Built<Direction<'l>> {
    let (weights, recurrent) = (entry(call, weights, number)?, entry(call, recurrent, number)?);
    let mut inputs = call.graph().dot_general(x, &[2], &[], weights, &[1], &[])?;
    let mut bias = None;
    if let Some(both) = call.optional(3) {
        let both = entry(call, both, number)?;
        let length = layer.kind.gates() * layer.size;
        let own = part(call, both, 0, length)?;
        inputs = call.graph().add(inputs, own)?;
        bias = Some(part(call, both, 1, length)?);
    }
    let is_lstm = layer.kind == Cell::Lstm;
    let zero = call.scalar(0.0, x)?;
    let start = |call: &mut Call<'_, '_, '_>, state: Option<ExprId>| -> Built<ExprId> {
        let Some(mut state) = state else {
            return call.broadcast(zero, &[layer.batch, layer.size]);
        };
        if layer.is_batch_first {
            state = call.graph().swap_axes(state, 0, 1)?;
        }
        entry(call, state, number)
    };
    let (hidden, cell) = (call.optional(5), call.optional(6).filter(|_| is_lstm));
    let (hidden, cell) = (start(call, hidden)?, start(call, cell)?);
    let peepholes = call.optional(7).filter(|_| is_lstm);
    let peepholes = peepholes.map(|all| entry(call, all, number)).transpose()?;
    let count = layer.kind.activations().len();
    let activations = &layer.activations[number * count..][..count];
    Ok(Direction { layer, activations, inputs, recurrent, bias, peepholes, hidden, cell })
}

/// Runs one direction. The stacked results are the outputs.
fn run<'c, 'm, 'e>(
    call: &mut Call<'c, 'm, 'e>,
    at: &Direction<'_>,
    time: usize,
) -> Built<LoopResults> {
    run_counted_loop(call, time, &[at.hidden, at.cell], &[], &mut |call, iteration, state| {
        let now = element_at(call, at.inputs, iteration)?;
        let [hidden, cell] = [state[0], state[1]];
        let [mut new, mut new_cell] = match at.layer.kind {
            Cell::Lstm => lstm(call, at, now, [hidden, cell])?,
            Cell::Gru => [gru(call, at, now, hidden)?, cell],
            Cell::Rnn => {
                let sum = recurrent_sum(call, at, now, hidden)?;
                let sum = clip_gate(call, at.layer, sum)?;
                [at.activations[0].apply(call, sum)?, cell]
            }
        };
        let mut shown = new;
        if let Some(lengths) = at.layer.lengths {
            // A sequence that has ended keeps its state, and its outputs are zero.
            let zero = call.scalar(0.0, new)?;
            let graph = call.graph();
            let lengths = graph.as_type(lengths, DType::S64)?;
            let goes_on = graph.less(iteration, lengths)?;
            let goes_on = graph.new_axis(goes_on, -1, None)?;
            shown = graph.select(goes_on, new, zero)?;
            new = graph.select(goes_on, new, hidden)?;
            new_cell = graph.select(goes_on, new_cell, cell)?;
        }
        Ok(LoopResults { state: vec![new, new_cell], stacked: vec![shown] })
    })
}

/// Adds the product of the hidden state and its weights.
fn recurrent_sum(
    call: &mut Call<'_, '_, '_>,
    at: &Direction<'_>,
    now: ExprId,
    hidden: ExprId,
) -> Built<ExprId> {
    let graph = call.graph();
    let product = graph.dot_general(hidden, &[1], &[], at.recurrent, &[1], &[])?;
    let mut sum = graph.add(now, product)?;
    if let Some(bias) = at.bias {
        sum = graph.add(sum, bias)?;
    }
    Ok(sum)
}

fn clip_gate(call: &mut Call<'_, '_, '_>, layer: &Layer, x: ExprId) -> Built<ExprId> {
    let Some(limit) = layer.clip else { return Ok(x) };
    let (low, high) = (call.scalar(-limit, x)?, call.scalar(limit, x)?);
    Ok(call.graph().clip(x, low, high)?)
}

/// The gates are input, output, forget and cell.
fn lstm(
    call: &mut Call<'_, '_, '_>,
    at: &Direction<'_>,
    now: ExprId,
    [hidden, cell]: [ExprId; 2],
) -> Built<[ExprId; 2]> {
    let Direction { layer, activations, .. } = at;
    let sum = recurrent_sum(call, at, now, hidden)?;
    // Peepholes are in the order input, output, forget.
    let gate = |call: &mut Call<'_, '_, '_>, index: usize, cell: Option<ExprId>| -> Built<ExprId> {
        let mut x = part(call, sum, index, layer.size)?;
        if let (Some(peepholes), Some(cell)) = (at.peepholes, cell) {
            let factor = part(call, peepholes, index, layer.size)?;
            let seen = call.graph().multiply(factor, cell)?;
            x = call.graph().add(x, seen)?;
        }
        clip_gate(call, layer, x)
    };
    let input = gate(call, 0, Some(cell))?;
    let input = activations[0].apply(call, input)?;
    let forget = if layer.input_forget {
        let one = call.scalar(1.0, input)?;
        call.graph().subtract(one, input)?
    } else {
        let forget = gate(call, 2, Some(cell))?;
        activations[0].apply(call, forget)?
    };
    let candidate = gate(call, 3, None)?;
    let candidate = activations[1].apply(call, candidate)?;
    let graph = call.graph();
    let (kept, added) = (graph.multiply(forget, cell)?, graph.multiply(input, candidate)?);
    let new_cell = graph.add(kept, added)?;
    let output = gate(call, 1, Some(new_cell))?;
    let output = activations[0].apply(call, output)?;
    let shown = activations[2].apply(call, new_cell)?;
    Ok([call.graph().multiply(output, shown)?, new_cell])
}

/// The gates are update, reset and hidden.
fn gru(
    call: &mut Call<'_, '_, '_>,
    at: &Direction<'_>,
    now: ExprId,
    hidden: ExprId,
) -> Built<ExprId> {
    let Direction { layer, activations, .. } = at;
    let size = layer.size;
    let sum = recurrent_sum(call, at, now, hidden)?;
    let mut gates = [sum; 2];
    for (index, gate) in gates.iter_mut().enumerate() {
        let x = part(call, sum, index, size)?;
        let x = clip_gate(call, layer, x)?;
        *gate = activations[0].apply(call, x)?;
    }
    let [update, reset] = gates;
    let own = part(call, now, 2, size)?;
    let weights =
        call.graph().slice_along_axis(at.recurrent, SliceStart::at(2 * size), size, 0, 1)?;
    let bias = at.bias.map(|bias| part(call, bias, 2, size)).transpose()?;
    let graph = call.graph();
    let mut product =
        if layer.linear_before_reset { hidden } else { graph.multiply(reset, hidden)? };
    product = graph.dot_general(product, &[1], &[], weights, &[1], &[])?;
    if let Some(bias) = bias {
        product = graph.add(product, bias)?;
    }
    if layer.linear_before_reset {
        product = graph.multiply(reset, product)?;
    }
    let candidate = graph.add(own, product)?;
    let candidate = clip_gate(call, layer, candidate)?;
    let candidate = activations[1].apply(call, candidate)?;
    let graph = call.graph();
    let one = graph.scalar_constant(Scalar::Float(1.0), graph.dtype(update))?;
    let rest = graph.subtract(one, update)?;
    let (new, kept) = (graph.multiply(rest, candidate)?, graph.multiply(update, hidden)?);
    Ok(graph.add(new, kept)?)
}
