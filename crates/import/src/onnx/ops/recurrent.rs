//! Recurrent layers: loops over time whose input products are computed for all steps at once.

use nxla_expr::build::SliceStart;
use nxla_expr::{BinaryOp, ExprId};
use nxla_tensor::{DType, Scalar};

use super::activation::{hard_sigmoid, relu, thresholded_relu};
use super::control::{Step, element_at, run_counted_loop};
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
    /// The number of matrices, and of activation functions.
    fn counts(self) -> (usize, usize) {
        match self {
            Cell::Gru => (3, 2),
            Cell::Lstm => (4, 3),
            Cell::Rnn => (1, 1),
        }
    }
}

/// An activation function with its parameters.
#[derive(Clone, Debug)]
struct Activation {
    name: String,
    alpha: Option<f64>,
    beta: Option<f64>,
}

/// The attributes of a layer.
struct Options {
    activations: Vec<Activation>,
    clip: Option<f64>,
    input_forget: bool,
    linear_before_reset: bool,
}

/// The operands of one direction.
struct Direction {
    /// The products of inputs and weights with the bias, `[time, batch, gates * hidden]`.
    inputs: ExprId,
    /// The weights of the hidden state, `[gates * hidden, hidden]`.
    recurrent: ExprId,
    /// The bias of the hidden state, `[gates * hidden]`.
    bias: Option<ExprId>,
    peepholes: Option<ExprId>,
    hidden: ExprId,
    cell: ExprId,
}

fn activations(call: &Call<'_, '_, '_>, kind: Cell, directions: usize) -> Built<Vec<Activation>> {
    let (_, count) = kind.counts();
    let names = match call.texts("activations")? {
        Some(names) => names,
        None => {
            let default: &[&str] = match kind {
                Cell::Gru => &["Sigmoid", "Tanh"],
                Cell::Lstm => &["Sigmoid", "Tanh", "Tanh"],
                Cell::Rnn => &["Tanh"],
            };
            let all = default.iter().cycle().take(default.len() * directions);
            all.map(|&name| name.to_owned()).collect()
        }
    };
    if names.len() != count * directions {
        let (expected, found) = (count * directions, names.len());
        return invalid(format!("activations: must have {expected} entries; got {found}"));
    }
    // A function that has the parameter takes the next value of the list.
    let mut alphas = call.floats("activation_alpha")?.unwrap_or_default().into_iter();
    let mut betas = call.floats("activation_beta")?.unwrap_or_default().into_iter();
    let mut activations = Vec::with_capacity(names.len());
    for name in names {
        let (has_alpha, has_beta) = match name.to_lowercase().as_str() {
            "affine" | "hardsigmoid" | "scaledtanh" => (true, true),
            "elu" | "leakyrelu" | "thresholdedrelu" => (true, false),
            _ => (false, false),
        };
        let alpha = if has_alpha { alphas.next() } else { None };
        let beta = if has_beta { betas.next() } else { None };
        activations.push(Activation { name, alpha, beta });
    }
    Ok(activations)
}

fn activate(call: &mut Call<'_, '_, '_>, by: &Activation, x: ExprId) -> Built<ExprId> {
    let (alpha, beta) = (by.alpha, by.beta);
    Ok(match by.name.to_lowercase().as_str() {
        "sigmoid" => call.graph().sigmoid(x)?,
        "tanh" => call.graph().tanh(x)?,
        "relu" => relu(call, x)?,
        "softsign" => call.graph().soft_sign(x)?,
        "softplus" => call.graph().softplus(x)?,
        "leakyrelu" => call.graph().leaky_relu(x, alpha.unwrap_or(0.01))?,
        "elu" => call.graph().elu(x, alpha.unwrap_or(1.0))?,
        "hardsigmoid" => hard_sigmoid(call, x, alpha.unwrap_or(0.2), beta.unwrap_or(0.5))?,
        "affine" => {
            let (alpha, beta) =
                (call.scalar(alpha.unwrap_or(1.0), x)?, call.scalar(beta.unwrap_or(0.0), x)?);
            let scaled = call.graph().multiply(x, alpha)?;
            call.graph().add(scaled, beta)?
        }
        "scaledtanh" => {
            let (alpha, beta) =
                (call.scalar(alpha.unwrap_or(1.0), x)?, call.scalar(beta.unwrap_or(1.0), x)?);
            let graph = call.graph();
            let scaled = graph.multiply(x, beta)?;
            let curve = graph.tanh(scaled)?;
            graph.multiply(curve, alpha)?
        }
        "thresholdedrelu" => {
            thresholded_relu(call, x, alpha.unwrap_or(1.0), BinaryOp::GreaterEqual)?
        }
        _ => {
            let why = format!("must be activations of recurrent layers; got {:?}", by.name);
            return unsupported(format!("activations: {why}"));
        }
    })
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
    let ([time, batch, _], [directions, rows, hidden]) = (
        call.shape(x)[..].try_into().unwrap_or([0; 3]),
        call.shape(recurrent)[..].try_into().unwrap_or([0; 3]),
    );
    let (gates, each) = kind.counts();
    if call.rank(x) != 3 || rows != gates * hidden || !(1..=2).contains(&directions) {
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
    let options = Options {
        activations: activations(call, kind, directions)?,
        clip: call.maybe_float("clip")?,
        input_forget: call.flag("input_forget", false)?,
        linear_before_reset: call.flag("linear_before_reset", false)?,
    };
    let lengths = call.optional(4);
    let (mut all, mut last, mut cells) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..directions {
        let is_reverse = number == 1 || direction == "reverse";
        let mut source = x;
        if is_reverse {
            source = reverse_sequences(call, x, lengths)?;
        }
        let operands =
            direction_of(call, kind, number, source, [weights, recurrent], batch, hidden)?;
        let chosen = &options.activations[number * each..(number + 1) * each];
        let (outputs, state) =
            run(call, kind, &operands, (chosen, &options), lengths, time, hidden)?;
        let outputs = if is_reverse { reverse_sequences(call, outputs, lengths)? } else { outputs };
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

fn direction_of(
    call: &mut Call<'_, '_, '_>,
    kind: Cell,
    number: usize,
    x: ExprId,
    [weights, recurrent]: [ExprId; 2],
    batch: usize,
    hidden: usize,
) -> Built<Direction> {
    let (gates, _) = kind.counts();
    let (weights, recurrent) = (entry(call, weights, number)?, entry(call, recurrent, number)?);
    let mut inputs = call.graph().dot_general(x, &[2], &[], weights, &[1], &[])?;
    let mut bias = None;
    if let Some(both) = call.optional(3) {
        let both = entry(call, both, number)?;
        let own = part(call, both, 0, gates * hidden)?;
        inputs = call.graph().add(inputs, own)?;
        bias = Some(part(call, both, 1, gates * hidden)?);
    }
    let zero = call.scalar(0.0, x)?;
    let is_batch_first = call.flag("layout", false)?;
    let start = |call: &mut Call<'_, '_, '_>, index: usize| -> Built<ExprId> {
        let Some(mut state) = call.optional(index).filter(|_| index == 5 || kind == Cell::Lstm)
        else {
            return call.broadcast(zero, &[batch, hidden]);
        };
        if is_batch_first {
            state = call.graph().swap_axes(state, 0, 1)?;
        }
        entry(call, state, number)
    };
    let (first, cell) = (start(call, 5)?, start(call, 6)?);
    let peepholes = match call.optional(7).filter(|_| kind == Cell::Lstm) {
        Some(peepholes) => Some(entry(call, peepholes, number)?),
        None => None,
    };
    Ok(Direction { inputs, recurrent, bias, peepholes, hidden: first, cell })
}

/// Runs one direction, and returns all outputs and the last state.
fn run<'c, 'm, 'e>(
    call: &mut Call<'c, 'm, 'e>,
    kind: Cell,
    at: &Direction,
    by: (&[Activation], &Options),
    lengths: Option<ExprId>,
    time: usize,
    size: usize,
) -> Built<(ExprId, Vec<ExprId>)> {
    let initial = [at.hidden, at.cell];
    let (state, stacked) =
        run_counted_loop(call, time, &initial, &[], &mut |call, iteration, state| {
            let now = element_at(call, at.inputs, iteration)?;
            let [hidden, cell] = [state[0], state[1]];
            let [mut new, mut new_cell] = match kind {
                Cell::Lstm => lstm(call, at, by, now, [hidden, cell], size)?,
                Cell::Gru => [gru(call, at, by, now, hidden, size)?, cell],
                Cell::Rnn => {
                    let sum = recurrent_sum(call, at, now, hidden)?;
                    let sum = clip_gate(call, by.1, sum)?;
                    [activate(call, &by.0[0], sum)?, cell]
                }
            };
            let mut shown = new;
            if let Some(lengths) = lengths {
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
            Ok(Step { state: vec![new, new_cell], stacked: vec![shown] })
        })?;
    Ok((stacked[0], state))
}

/// Adds the product of the hidden state and its weights.
fn recurrent_sum(
    call: &mut Call<'_, '_, '_>,
    at: &Direction,
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

fn clip_gate(call: &mut Call<'_, '_, '_>, options: &Options, x: ExprId) -> Built<ExprId> {
    let Some(limit) = options.clip else { return Ok(x) };
    let (low, high) = (call.scalar(-limit, x)?, call.scalar(limit, x)?);
    Ok(call.graph().clip(x, low, high)?)
}

/// The gates are input, output, forget and cell.
fn lstm(
    call: &mut Call<'_, '_, '_>,
    at: &Direction,
    (activations, options): (&[Activation], &Options),
    now: ExprId,
    [hidden, cell]: [ExprId; 2],
    size: usize,
) -> Built<[ExprId; 2]> {
    let sum = recurrent_sum(call, at, now, hidden)?;
    // Peepholes are in the order input, output, forget.
    let gate = |call: &mut Call<'_, '_, '_>, index: usize, cell: Option<ExprId>| -> Built<ExprId> {
        let mut x = part(call, sum, index, size)?;
        if let (Some(peepholes), Some(cell)) = (at.peepholes, cell) {
            let factor = part(call, peepholes, index, size)?;
            let seen = call.graph().multiply(factor, cell)?;
            x = call.graph().add(x, seen)?;
        }
        clip_gate(call, options, x)
    };
    let input = gate(call, 0, Some(cell))?;
    let input = activate(call, &activations[0], input)?;
    let forget = if options.input_forget {
        let one = call.scalar(1.0, input)?;
        call.graph().subtract(one, input)?
    } else {
        let forget = gate(call, 2, Some(cell))?;
        activate(call, &activations[0], forget)?
    };
    let candidate = gate(call, 3, None)?;
    let candidate = activate(call, &activations[1], candidate)?;
    let graph = call.graph();
    let (kept, added) = (graph.multiply(forget, cell)?, graph.multiply(input, candidate)?);
    let new_cell = graph.add(kept, added)?;
    let output = gate(call, 1, Some(new_cell))?;
    let output = activate(call, &activations[0], output)?;
    let shown = activate(call, &activations[2], new_cell)?;
    Ok([call.graph().multiply(output, shown)?, new_cell])
}

/// The gates are update, reset and hidden.
fn gru(
    call: &mut Call<'_, '_, '_>,
    at: &Direction,
    (activations, options): (&[Activation], &Options),
    now: ExprId,
    hidden: ExprId,
    size: usize,
) -> Built<ExprId> {
    let sum = recurrent_sum(call, at, now, hidden)?;
    let mut gates = [sum; 2];
    for (index, gate) in gates.iter_mut().enumerate() {
        let x = part(call, sum, index, size)?;
        let x = clip_gate(call, options, x)?;
        *gate = activate(call, &activations[0], x)?;
    }
    let [update, reset] = gates;
    let own = part(call, now, 2, size)?;
    let weights =
        call.graph().slice_along_axis(at.recurrent, SliceStart::at(2 * size), size, 0, 1)?;
    let bias = match at.bias {
        Some(bias) => Some(part(call, bias, 2, size)?),
        None => None,
    };
    let graph = call.graph();
    let mut product =
        if options.linear_before_reset { hidden } else { graph.multiply(reset, hidden)? };
    product = graph.dot_general(product, &[1], &[], weights, &[1], &[])?;
    if let Some(bias) = bias {
        product = graph.add(product, bias)?;
    }
    if options.linear_before_reset {
        product = graph.multiply(reset, product)?;
    }
    let candidate = graph.add(own, product)?;
    let candidate = clip_gate(call, options, candidate)?;
    let candidate = activate(call, &activations[1], candidate)?;
    let graph = call.graph();
    let one = graph.scalar_constant(Scalar::Float(1.0), graph.dtype(update))?;
    let rest = graph.subtract(one, update)?;
    let (new, kept) = (graph.multiply(rest, candidate)?, graph.multiply(update, hidden)?);
    Ok(graph.add(new, kept)?)
}
