//! Round trips of serialized programs, rejected bytes, and dependencies of digests.

use std::sync::Arc;

use nxla_tensor::{DType, HostTensor, Names, Number, Scalar};
use rustc_hash::FxHashMap;

use super::{FORMAT, HEADER, SerializeError, Writer, checksum, from_bytes, to_bytes};
use crate::build::{ConvOptions, FftNorm, SliceStart, WindowOptions};
use crate::graph::encode::NoteHead;
use crate::graph::{
    Cond, ExprId, Graph, Iota, Line, MAX_NESTING, MAX_NOTE_DEPTH, Metadata, Note, Notes, Op,
    Padding, Parameter, Program, Result, Source, TensorType, Transform, TriangularSolve, UnaryOp,
};
use crate::make::verify::verify_program;
use crate::text::print::{GraphPrintOptions, lines};

fn ty() -> TensorType {
    TensorType::new(DType::F32, [2, 3])
}

fn single(result: Result<ExprId>) -> Result<Vec<ExprId>> {
    result.map(|id| vec![id])
}

/// A program with all kinds of attributes: names, literals, starts, regions and hooks.
fn program_with_all_attributes() -> Program {
    let mut graph = Graph::new();
    let line = Line { file: "model.py".into(), line: 12 };
    let source = graph.add_source(Source::Line(line));
    let x = graph.parameter(0, ty());
    let named = TensorType { names: Some(Names::from([Some("row"), None])), ..ty() };
    let named = graph.parameter(1, named);
    let index = graph.parameter(2, TensorType::scalar(DType::S32));
    graph.parameter(3, TensorType::scalar(DType::C128));
    graph.set_source(source);
    let literal = HostTensor::from_slice(&[1.0_f32, f32::NAN, -0.0], [3]).unwrap();
    let literal = graph.tensor(literal).unwrap();
    let sum = graph.add(x, literal).unwrap();
    let sum = graph.add(sum, named).unwrap();
    let starts = [SliceStart::Dynamic(index), 1.into()];
    let slice = graph.slice(sum, &starts, &[1, 2], None).unwrap();
    let seen = graph.hook(&[slice], Some("seen"), None).unwrap()[0];
    let total = graph.sum(seen, Some(&[1]), true).unwrap();
    let block = |graph: &mut Graph, x: &[ExprId]| single(graph.cumulative_exp(x[0]));
    let attributes = vec![("axis".into(), "0".into())];
    let total = graph.block("cumulative", attributes, &[total], block).unwrap()[0];
    let looped = double_until(&mut graph, total, index);
    Program::close_all(&graph, &[looped, sum])
}

/// A program with the ops that [`program_with_all_attributes`] does not contain.
fn program_with_other_ops() -> Result<Program> {
    let mut graph = Graph::new();
    let g = &mut graph;
    let (x, vector) = (g.parameter(0, ty()), g.parameter(1, TensorType::new(DType::F32, [4])));
    let indices = g.parameter(2, TensorType::new(DType::S32, [2, 1]));
    let half = g.scalar_constant(Scalar::Float(0.5), DType::F32)?;
    let options = WindowOptions { strides: Some(vec![2]), ..WindowOptions::default() };
    let add = |g: &mut Graph, x, y| g.add(x, y);
    let pad = [Padding { low: -1, high: 2, interior: 1 }];
    let solve = TriangularSolve { lower: true, left_side: true, transform: Transform::None };
    let (transposed, image) = (g.transpose(x, None)?, g.reshape(x, [1, 1, 2, 3])?);
    let two = g.slice(vector, &[1.into()], &[2], None)?;
    let square = g.eye([2, 2], DType::F32)?;
    let custom = g.custom_grad(&[x, vector], &[x], |g, cotangents| {
        Ok::<_, crate::Error>(vec![g.multiply(cotangents[0], half)?])
    })?;
    let mut outputs = vec![
        g.dot(x, transposed)?,
        g.conv(image, image, &ConvOptions::default())?,
        g.window_max(vector, &[2], &options)?,
        g.window_scatter_max(vector, two, half, &[2], &options)?,
        g.window_reduce(vector, half, &[2], &options, add)?,
        g.reduce_fun(x, half, Some(&[1]), false, add)?,
        g.argmax(x, Some(1), true, false, DType::S32)?,
        g.sort(x, 0, true, false)?,
        g.argsort(vector, 0, false, true, DType::S64)?,
        g.gather(vector, indices, None)?,
        g.indexed_add(vector, indices, two, None)?,
        g.indexed_put(vector, indices, two, None)?,
        g.put_slice(vector, &[1.into()], two)?,
        g.pad(vector, half, &pad)?,
        g.reverse(x, None)?,
        g.broadcast(vector, [2, 4], None)?,
        g.stack(&[vector, vector], 0, None)?,
        g.concatenate(&[vector, two], 0)?,
        g.squeeze(indices, Some(&[1]))?,
        g.ifft(vector, Some(8), 0, FftNorm::Backward)?,
        g.triangular_solve(square, x, solve)?,
        g.cholesky(square)?,
        g.iota([2, 3], Some(1), DType::U8)?,
        g.clip(x, half, half)?,
        g.select(indices, two, half)?,
        g.as_type(vector, DType::C64)?,
        g.bitcast(vector, DType::S32)?,
        g.population_count(indices)?,
        g.stop_grad(vector)?,
    ];
    outputs.extend(custom);
    Ok(Program::close_all(&graph, &outputs))
}

impl Graph {
    fn cumulative_exp(&mut self, x: ExprId) -> Result<ExprId> {
        let exp = self.exp(x)?;
        let mark = self.mark();
        let zero = self.number(Number::Int(0))?;
        let first = self.sum(exp, None, false)?;
        let predicate = self.greater(first, zero)?;
        let predicate = self.traced(mark, vec![predicate]);
        let twice = self.add(exp, exp)?;
        self.hook(&[twice], Some("inner"), None)?;
        let on_true = self.traced(mark, vec![twice]);
        let on_false = self.traced(mark, vec![exp]);
        Ok(self.cond(mark, vec![(predicate, on_true)], on_false)?[0])
    }
}

impl Program {
    /// Creates the program of some outputs, with all parameters of the graph as inputs.
    fn close_all(graph: &Graph, outputs: &[ExprId]) -> Program {
        let parameters = graph.ids().filter_map(|id| match graph.op(id) {
            Op::Parameter(parameter) if parameter.scope == 0 => Some(parameter.ty.clone()),
            _ => None,
        });
        Program::new(graph, parameters.collect(), outputs).unwrap()
    }
}

fn double_until(graph: &mut Graph, x: ExprId, limit: ExprId) -> ExprId {
    let mark = graph.mark();
    let scope = graph.open_scope("while", &[graph.tensor_type(x).clone()]);
    let state = scope.parameters[0];
    let sum = graph.sum(state, None, false).unwrap();
    let condition = graph.less(sum, limit).unwrap();
    let condition = graph.traced(mark, vec![condition]);
    let body = graph.add(state, state).unwrap();
    let body = graph.traced(mark, vec![body]);
    graph.while_loop(mark, &scope, &[x], condition, body).unwrap()[0]
}

fn text(program: &Program) -> Vec<String> {
    lines(program.graph(), &program.roots(), &GraphPrintOptions::default())
}

#[test]
fn programs_round_trip() {
    for program in [program_with_all_attributes(), program_with_other_ops().unwrap()] {
        let bytes = to_bytes(&program);
        let restored = from_bytes(&bytes).unwrap();
        assert_eq!(restored.digest(), program.digest());
        assert_eq!(restored.digest(), restored.computed_digest());
        assert_eq!(text(&restored), text(&program));
        assert_eq!(restored.inputs(), program.inputs());
        assert_eq!(restored.effects(), program.effects());
        assert_eq!(verify_program(&restored), Ok(()));
        assert_eq!(to_bytes(&restored), bytes);
    }
}

#[test]
fn source_lines_are_kept_but_not_hashed() {
    let mut graph = Graph::new();
    let program = |graph: &mut Graph, file: &str, line| {
        let x = graph.parameter(0, ty());
        let source = graph.add_source(Source::Line(Line { file: file.into(), line }));
        graph.set_source(source);
        let exp = graph.exp(x).unwrap();
        Program::close_all(graph, &[exp])
    };
    let first = program(&mut graph, "here.py", 3);
    let second = program(&mut Graph::new(), "there.py", 4);
    assert_eq!(first.digest(), second.digest());
    let restored = from_bytes(&to_bytes(&second)).unwrap();
    let exp = restored.outputs()[0];
    assert_eq!(restored.graph().line(exp), Some(Line { file: "there.py".into(), line: 4 }));
    assert_eq!(restored.graph().line(restored.parameters()[0]), None);
}

#[test]
fn different_programs_have_different_digests() {
    let mut graph = Graph::new();
    let x = graph.parameter(0, ty());
    let y = graph.parameter(1, ty());
    let (exp, sum) = (graph.exp(x).unwrap(), graph.add(x, y).unwrap());
    let difference = graph.subtract(x, y).unwrap();
    let reversed = graph.subtract(y, x).unwrap();
    let negative = graph.scalar_constant(Scalar::Float(-0.0), DType::F32).unwrap();
    let positive = graph.scalar_constant(Scalar::Float(0.0), DType::F32).unwrap();
    let roots: [&[ExprId]; 9] =
        [&[], &[x], &[y], &[exp], &[sum], &[difference], &[reversed], &[negative], &[positive]];
    let mut seen = FxHashMap::default();
    for roots in roots {
        let program = Program::close_all(&graph, roots);
        if let Some(other) = seen.insert(program.digest(), roots) {
            panic!("{roots:?} and {other:?} have one digest");
        }
        let other_inputs = Program::new(&graph, vec![ty(), ty(), ty()], roots).unwrap();
        assert_ne!(other_inputs.digest(), program.digest(), "the digest includes unused inputs");
    }
}

#[test]
fn digests_are_equal_in_every_process() {
    let mut graph = Graph::new();
    let x = graph.parameter(0, ty());
    let exp = graph.exp(x).unwrap();
    let program = Program::close_all(&graph, &[exp]);
    // A new digest requires a new FORMAT and new DIGESTS.
    assert_eq!((FORMAT, program.digest().to_string().as_str()), (6, DIGEST_OF_EXP));
}

const DIGEST_OF_EXP: &str = "49814c603d4e4227fbc6162eb1e61c825ed7b85d2815e3af816d978c8f1892a5";

#[test]
fn shared_regions_are_written_once() {
    // Each level contains the lower level twice, so the tree has 2^40 leaves.
    let mut graph = Graph::new();
    let x = graph.parameter(0, ty());
    let exp = graph.exp(x).unwrap();
    let mut program = Arc::new(Program::close_all(&graph, &[exp]));
    for _ in 0..40 {
        let mut graph = Graph::new();
        let x = graph.parameter(0, ty());
        let first = call(&mut graph, &program, x);
        let second = call(&mut graph, &program, first);
        program = Arc::new(Program::close_all(&graph, &[second]));
    }
    let bytes = to_bytes(&program);
    assert!(bytes.len() < 5000, "{}", bytes.len());
    assert_eq!(from_bytes(&bytes).unwrap().digest(), program.digest());
}

fn call(graph: &mut Graph, program: &Arc<Program>, x: ExprId) -> ExprId {
    let kind = crate::graph::BlockKind::Named { name: "call".into(), attributes: vec![] };
    let block = crate::graph::Block { kind, batch_axes: 0, body: program.clone() };
    // Bypasses the checks of `Graph::make`, to test that reading makes the same checks.
    let from = graph.clone();
    graph.adopt((&from, x), Op::Block(Arc::new(block)), &[x], &mut FxHashMap::default())
}

#[test]
fn deeply_nested_regions_are_rejected() {
    let nested = |depth: usize| {
        let mut program = Arc::new(Program::from_parts(
            Graph::new(),
            Vec::new(),
            Vec::new(),
            Vec::new(),
            Vec::new(),
        ));
        for _ in 0..depth {
            let mut graph = Graph::new();
            let x = graph.parameter(0, ty());
            let y = if program.graph().is_empty() {
                graph.exp(x).unwrap()
            } else {
                call(&mut graph, &program, x)
            };
            program = Arc::new(Program::close_all(&graph, &[y]));
        }
        to_bytes(&program)
    };
    assert!(from_bytes(&nested(MAX_NESTING + 1)).is_ok());
    let error = from_bytes(&nested(MAX_NESTING + 2)).unwrap_err();
    assert!(matches!(error, SerializeError::Region { .. }), "{error}");
}

#[cfg_attr(miri, ignore = "it takes too long")]
#[test]
fn long_chains_round_trip() {
    let mut graph = Graph::new();
    let mut x = graph.parameter(0, TensorType::scalar(DType::F32));
    for _ in 0..300_000 {
        x = graph.sin(x).unwrap();
    }
    let program = Program::close_all(&graph, &[x]);
    let bytes = to_bytes(&program);
    assert!(bytes.len() < 7 * 300_000, "a node takes few bytes: {}", bytes.len());
    assert_eq!(from_bytes(&bytes).unwrap().digest(), program.digest());
}

// --- rejected bytes ---

/// Sets the checksum in the header.
fn seal(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = checksum(&[&bytes[HEADER..]]);
    bytes[6..HEADER].copy_from_slice(sum.as_bytes());
    bytes
}

#[test]
fn invalid_bytes_are_rejected() {
    let bytes = to_bytes(&program_with_all_attributes());
    assert!(matches!(from_bytes(b"\x7fELF and more"), Err(SerializeError::NotAProgram)));
    assert!(matches!(from_bytes(b""), Err(SerializeError::Truncated { length: 0 })));
    assert!(matches!(from_bytes(b"nxl"), Err(SerializeError::Truncated { length: 3 })));
    let mut newer = bytes.clone();
    newer[4] += 1;
    assert!(
        matches!(from_bytes(&newer), Err(SerializeError::Format { found }) if found == FORMAT + 1)
    );
    for length in 0..bytes.len() {
        let error = from_bytes(&bytes[..length]).unwrap_err();
        let expected = if length < HEADER {
            matches!(error, SerializeError::Truncated { .. })
        } else {
            matches!(error, SerializeError::Checksum)
        };
        assert!(expected, "{length}: {error}");
    }
    let mut more = bytes;
    more.push(0);
    assert!(matches!(from_bytes(&more), Err(SerializeError::Checksum)));
    assert!(matches!(
        from_bytes(&seal(more)),
        Err(SerializeError::Malformed { what: "the end", .. })
    ));
}

#[test]
fn every_flipped_bit_is_detected() {
    let bytes = to_bytes(&program_with_all_attributes());
    for index in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[index] ^= 1 << (index % 8);
        assert!(from_bytes(&flipped).is_err(), "byte {index}");
    }
}

/// Reads a program with a single input `f32[2][3]` and arbitrary nodes: ops with distances to
/// operands.
fn read_arbitrary_nodes(
    nodes: &[(Op, &[usize])],
    outputs: &[usize],
) -> Result<Program, SerializeError> {
    read_nodes(|writer| {
        writer.put(&nodes.len());
        for (op, operands) in nodes {
            writer.op(op);
            writer.put(operands);
            writer.put(&(0_u32, 0_u32));
        }
        writer.put(&(outputs, Vec::<usize>::new()));
    })
}

/// Reads a program with a single input and arbitrary bytes after it.
fn read_nodes(nodes: impl FnOnce(&mut Writer)) -> Result<Program, SerializeError> {
    let mut writer = Writer::default();
    writer.put(&(Vec::<String>::new(), 1_usize, false, vec![ty()], 0_usize));
    nodes(&mut writer);
    let mut bytes = b"nxla".to_vec();
    bytes.extend_from_slice(&FORMAT.to_le_bytes());
    bytes.extend_from_slice(&[0; 32]);
    bytes.extend_from_slice(&writer.bytes);
    from_bytes(&seal(bytes))
}

/// A program with one node that has these notes.
fn program_with_notes(notes: Notes) -> crate::Result<Program> {
    let mut graph = Graph::new();
    let x = graph.parameter(0, ty());
    let noted = graph.metadata(&[x], Metadata { notes, ..Metadata::default() })?;
    Ok(Program::close_all(&graph, &[noted]))
}

/// Returns a list nested `depth` times.
fn nested_list(depth: usize) -> Note {
    (0..depth).fold(Note::Null, |inner, _| Note::List(vec![inner]))
}

#[test]
fn notes_are_serialized_and_hashed() {
    let inner = Notes::from([("z", Note::Float(f64::NAN)), ("a", Note::Int(i64::MIN))]);
    let values = [true.into(), Note::Null, "text".into(), Note::Float(-0.0), inner.clone().into()];
    let mut all = Notes::from([("list", Note::from(values)), ("", Note::Map(inner))]);
    all.insert("deep", nested_list(MAX_NOTE_DEPTH));
    let program = program_with_notes(all).unwrap();
    let restored = from_bytes(&to_bytes(&program)).unwrap();
    assert_eq!(restored, program);
    assert_eq!(restored.digest(), program.digest());
    let output = restored.outputs()[0];
    assert_eq!(restored.graph().op(output), program.graph().op(program.outputs()[0]));

    let notes = [
        Notes::default(),
        [("a", 1)].into(),
        [("a", 2)].into(),
        [("b", 1)].into(),
        [("a", 1.0)].into(),
        [("a", true)].into(),
        [("a", Note::List(vec![]))].into(),
        [("a", Note::Map(Notes::default()))].into(),
        [("a", 0.0)].into(),
        [("a", -0.0)].into(),
    ];
    let digests: std::collections::BTreeSet<_> =
        notes.iter().map(|notes| program_with_notes(notes.clone()).unwrap().digest()).collect();
    assert_eq!(digests.len(), notes.len());

    let mut graph = Graph::new();
    let x = graph.parameter(0, ty());
    let mut note = |notes: &Notes| {
        let metadata = Metadata { notes: notes.clone(), ..Metadata::default() };
        graph.metadata(&[x], metadata).unwrap()
    };
    assert_ne!(note(&notes[1]), note(&notes[2]));
    assert_eq!(note(&notes[9]), note(&notes[9]));
}

#[test]
fn nesting_of_notes_is_limited() {
    let error = program_with_notes([("deep", nested_list(MAX_NOTE_DEPTH + 1))].into()).unwrap_err();
    assert!(error.to_string().contains("at most 32 deep; got 33"), "{error}");
    // Bytes with deeper notes are rejected before the notes are built.
    let lists = 100_000_usize;
    let mut writer = Writer::default();
    writer.put(&(Vec::<String>::new(), 1_usize, false, vec![ty()], 1_usize, 1_usize, 1_usize, ""));
    for _ in 0..lists {
        writer.put(&NoteHead::List(1));
    }
    let mut bytes = b"nxla".to_vec();
    bytes.extend_from_slice(&FORMAT.to_le_bytes());
    bytes.extend_from_slice(&[0; 32]);
    bytes.extend_from_slice(&writer.bytes);
    let error = from_bytes(&seal(bytes)).unwrap_err().to_string();
    assert!(error.contains("it nests too deep"), "{error}");
}

#[test]
fn notes_of_other_nodes_are_rejected() {
    let program = program_with_notes([("a", 1)].into()).unwrap();
    let bytes = to_bytes(&program);
    // The index of the node follows the number of nodes with notes.
    let mut writer = Writer::default();
    writer.notes(program.graph());
    let at = bytes.windows(writer.bytes.len()).position(|part| part == writer.bytes).unwrap();
    for index in [0, 2, 100] {
        let mut other = bytes.clone();
        other[at + 1] = index;
        let error = from_bytes(&seal(other)).unwrap_err().to_string();
        assert!(error.contains(&format!("node {index} must not have notes")), "{error}");
    }
}

fn parameter(scope: u32, index: u32, ty: TensorType) -> Op {
    Op::Parameter(Box::new(Parameter { scope, index, ty }))
}

#[test]
fn ill_formed_programs_are_rejected() {
    let input = || parameter(0, 0, ty());
    let exp = || Op::Unary(UnaryOp::Exp);
    let rejection = |nodes: &[(Op, &[usize])], outputs: &[usize]| {
        read_arbitrary_nodes(nodes, outputs).expect_err("the program is ill-formed").to_string()
    };
    assert!(read_arbitrary_nodes(&[(input(), &[]), (exp(), &[1])], &[1]).is_ok());
    let malformed = rejection(&[], &[]);
    assert!(malformed.starts_with("the nodes cannot be read; at byte "), "{malformed}");
    assert!(malformed.ends_with(", 0 nodes cannot hold 1 inputs"), "{malformed}");
    let operand = "%1 uses a node 0 places before it, which does not exist";
    assert_eq!(rejection(&[(input(), &[]), (exp(), &[0])], &[]), operand);
    let operand = "%1 uses a node 2 places before it, which does not exist";
    assert_eq!(rejection(&[(input(), &[]), (exp(), &[2])], &[]), operand);
    let root = "output 0 must be one of 1 nodes; got 1";
    assert_eq!(rejection(&[(input(), &[])], &[1]), root);
    let arity = rejection(&[(input(), &[]), (exp(), &[1, 1])], &[]);
    assert!(arity.starts_with("%1 is ill-typed: exp: "), "{arity}");
    let repeated = rejection(&[(input(), &[]), (exp(), &[1]), (exp(), &[2])], &[]);
    assert_eq!(repeated, "%2 repeats another node or is not in simplified form");
    let no_op = rejection(&[(input(), &[]), (Op::AsType(DType::F32), &[1])], &[]);
    assert_eq!(no_op, "%1 repeats another node or is not in simplified form");
    let open = rejection(&[(parameter(1, 0, ty()), &[])], &[]);
    assert_eq!(open, "%0: the parameter belongs to an unfinished region");
    let other = TensorType::scalar(DType::F32);
    let mismatch = rejection(&[(parameter(0, 0, other), &[])], &[]);
    assert_eq!(mismatch, "%0: the parameter does not match an input");
    let missing = Op::Iota(Box::new(Iota { axis: None, ty: ty() }));
    assert_eq!(rejection(&[(missing, &[])], &[]), "%0: the node must be a parameter");
    for (shape, expected) in
        [([1 << 62, 4], "is too large"), ([usize::MAX, 0], "elements; got 18446744073709551615")]
    {
        let ty = TensorType::new(DType::F32, shape);
        let huge = Op::Iota(Box::new(Iota { axis: None, ty }));
        let error = rejection(&[(input(), &[]), (huge, &[])], &[]);
        assert!(error.ends_with(expected), "{error}");
    }
    let deep = Op::Iota(Box::new(Iota { axis: None, ty: TensorType::new(DType::F32, [1; 65]) }));
    let error = rejection(&[(input(), &[]), (deep, &[])], &[]);
    assert!(error.ends_with("a tensor must have at most 64 axes; got 65"), "{error}");
    let names = TensorType { names: Some(Names::from([None])), ..ty() };
    let names = Op::Iota(Box::new(Iota { axis: None, ty: names }));
    let error = rejection(&[(input(), &[]), (names, &[])], &[]);
    assert!(error.ends_with("does not have one name for each axis"), "{error}");
}

/// A small random number generator (SplitMix64) for reproducible failures.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }
}

#[cfg_attr(miri, ignore = "it takes too long")]
#[test]
fn corrupt_bytes_with_valid_checksum_do_not_panic() {
    let mut accepted = 0;
    for (bytes, count) in [
        (to_bytes(&program_with_all_attributes()), 20_000),
        (to_bytes(&program_with_other_ops().unwrap()), 40_000),
    ] {
        let mut random = Random(1);
        for _ in 0..count {
            let Ok(program) = from_bytes(&seal(damage(&bytes, &mut random))) else { continue };
            accepted += 1;
            assert_eq!(verify_program(&program), Ok(()));
            assert_eq!(from_bytes(&to_bytes(&program)).unwrap().digest(), program.digest());
        }
    }
    assert!(accepted > 1000, "mutations of numbers yield other valid programs: {accepted}");
}

/// Changes, removes or inserts a few bytes after the header.
fn damage(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut damaged = bytes.to_vec();
    for _ in 0..=random.below(3) {
        let at = HEADER + random.below(damaged.len() - HEADER);
        let any = u8::try_from(random.below(256)).unwrap();
        match random.below(6) {
            0 => damaged[at] = 0xff,
            1 => damaged[at] = any,
            2 => damaged[at] = damaged[at].wrapping_add(1),
            3 => damaged[at] = damaged[at].wrapping_sub(1),
            4 if damaged.len() > HEADER + 8 => drop(damaged.remove(at)),
            _ => damaged.insert(at, any),
        }
    }
    damaged
}

#[test]
fn serde_rejects_programs_without_the_writer() {
    let empty = Program::from_parts(Graph::new(), vec![], vec![], vec![], vec![]);
    assert!(postcard::to_stdvec(&empty).is_ok());
    assert!(postcard::to_stdvec(&program_with_all_attributes()).is_err());
}

#[test]
fn region_counts_do_not_allocate_memory() {
    let region = Arc::new(program_with_all_attributes());
    let clauses = vec![(region.clone(), region.clone())];
    let op = Op::Cond(Arc::new(Cond { clauses, otherwise: region }));
    let mut conditional = Writer::default();
    conditional.op(&op);
    let found = read_nodes(|writer| {
        writer.put(&1_usize);
        // The number of the op, then the number of its clauses.
        writer.bytes.push(conditional.bytes[0]);
        writer.put(&(1_u64 << 40));
    });
    assert!(matches!(found, Err(SerializeError::Malformed { what: "an operation", .. })));
}
