//! Code generation for element-wise nodes: the conversions and kernels of each op.
//!
//! Operands are converted to the promoted dtype, then to the dtype of its kernels ([`Compute`]), and the result
//! is rounded to the dtype of the node, so that each op rounds once.

use nxla_expr::{BinaryClass, BinaryOp, ExprId, Graph, Op, UnaryClass, UnaryOp};
use nxla_tensor::{DType, HostTensor, Scalar, Shape, promote};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::combine::{Kind, combine};
use crate::kernels::elementwise::{
    Access, BodyCode, Compute, Input, Instruction, Kernel, Loc, PairFunction, Target,
    binary_kernel, clip_kernel, convert_kernels, copy_kernel, known_divisor_kernel,
    known_power_kernel, select_kernel, sign_kernel, unary_kernel,
};

/// A value during code generation: its location and dtype.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct TypedLoc {
    loc: Loc,
    dtype: DType,
}

/// The code generator of one group. Instructions do not share registers until [`Writer::finish`].
#[derive(Default)]
pub(crate) struct Writer {
    inputs: Vec<Input>,
    constants: Vec<(Scalar, DType)>,
    once: Vec<Instruction>,
    instructions: Vec<Instruction>,
    /// The operation of each instruction.
    kinds: Vec<Kind>,
    /// Conversions that the code contains already.
    converted: FxHashMap<(TypedLoc, DType), TypedLoc>,
    widest: usize,
    /// See [`BodyCode::cost`].
    cost: usize,
}

impl Writer {
    /// Adds an input.
    pub(crate) fn input(&mut self, input: Input) -> TypedLoc {
        let dtype = input.dtype;
        self.widest = self.widest.max(dtype.size());
        if matches!(input.access, Access::Strided(_)) {
            // A strided input is copied.
            self.cost += dtype.size().div_ceil(4);
        }
        let loc = Loc::Input(index(self.inputs.len()));
        self.inputs.push(input);
        TypedLoc { loc, dtype }
    }

    /// Adds a constant, which is rounded to its dtype.
    pub(crate) fn constant(&mut self, value: Scalar, dtype: DType) -> TypedLoc {
        let value = value.cast(dtype);
        let found = self.constants.iter().position(|&constant| constant == (value, dtype));
        let at = found.unwrap_or_else(|| {
            self.constants.push((value, dtype));
            self.constants.len() - 1
        });
        TypedLoc { loc: Loc::Constant(index(at)), dtype }
    }

    /// Generates code for one element-wise node.
    pub(crate) fn node(&mut self, graph: &Graph, id: ExprId, operands: &[TypedLoc]) -> TypedLoc {
        let result = graph.dtype(id);
        match (graph.op(id), operands) {
            (Op::Unary(op), &[x]) => self.unary(*op, x, result),
            (Op::Binary(op), &[x, y]) => self.binary(*op, x, y, result),
            (Op::Select, &[predicate, x, y]) => {
                let predicate = self.convert(predicate, DType::Pred);
                let (x, y) = (self.convert(x, result), self.convert(y, result));
                self.emit(select_kernel(result.size()), &[predicate, x, y], result)
            }
            (Op::Clip, &[x, low, high]) => {
                let compute = Compute::of(result);
                let operands = [x, low, high].map(|operand| {
                    let operand = self.convert(operand, result);
                    self.convert(operand, compute.dtype())
                });
                let clipped = self.emit(clip_kernel(compute), &operands, compute.dtype());
                self.convert(clipped, result)
            }
            (Op::AsType(dtype), &[x]) => self.convert(x, *dtype),
            (Op::Bitcast(dtype), &[x]) => self.bitcast(x, *dtype),
            (
                op @ (Op::Unary(_)
                | Op::Binary(_)
                | Op::Select
                | Op::Clip
                | Op::AsType(_)
                | Op::Bitcast(_)),
                operands,
            ) => unreachable!("{} of {} operands", op.name(), operands.len()),
            (op @ nxla_expr::outside!(elementwise), _) => {
                unreachable!("{} is of another family", op.name())
            }
        }
    }

    fn unary(&mut self, op: UnaryOp, x: TypedLoc, result: DType) -> TypedLoc {
        let compute = match op.class() {
            UnaryClass::Float | UnaryClass::RealFloat => Compute::of_function(result),
            UnaryClass::Same if op == UnaryOp::Sign => Compute::of_function(result),
            UnaryClass::Complex => Compute::of(result),
            UnaryClass::Part if !x.dtype.is_complex() => Compute::of(result),
            UnaryClass::Part
            | UnaryClass::Same
            | UnaryClass::SameReal
            | UnaryClass::Bits
            | UnaryClass::Int
            | UnaryClass::Predicate
            | UnaryClass::Magnitude => Compute::of(x.dtype),
        };
        if op == UnaryOp::BitwiseNot && x.dtype.is_pred() {
            let not = unary_kernel(UnaryOp::LogicalNot, Compute::U8);
            return self.emit(not, &[x], DType::Pred);
        }
        let bits = x.dtype.bits();
        if matches!(op, UnaryOp::PopulationCount | UnaryOp::CountLeadingZeros) && bits < 8 {
            return self.count_narrow_bits(op, x, result);
        }
        let is_narrow_float = x.dtype.is_float() && bits < 32;
        if matches!(op, UnaryOp::Abs | UnaryOp::Negate) && is_narrow_float {
            return self.emit(sign_kernel(op, x.dtype.size()), &[x], result);
        }
        let x = self.convert(x, compute.dtype());
        let computed = match op.class() {
            UnaryClass::Predicate => DType::Pred,
            UnaryClass::Magnitude | UnaryClass::Part if compute.dtype().is_complex() => {
                compute.dtype().to_real()
            }
            UnaryClass::Magnitude
            | UnaryClass::Part
            | UnaryClass::Float
            | UnaryClass::RealFloat
            | UnaryClass::Complex
            | UnaryClass::Same
            | UnaryClass::SameReal
            | UnaryClass::Bits
            | UnaryClass::Int => compute.dtype(),
        };
        self.add_cost(op.operations(), compute);
        let y = self.emit(unary_kernel(op, compute), &[x], computed);
        self.convert(y, result)
    }

    /// Counts the bits of a sub-byte integer, which is stored in a byte.
    fn count_narrow_bits(&mut self, op: UnaryOp, x: TypedLoc, result: DType) -> TypedLoc {
        let unsigned = if x.dtype.bits() == 2 { DType::U2 } else { DType::U4 };
        let bits = self.convert(x, unsigned);
        let mut count = self.emit(unary_kernel(op, Compute::U8), &[bits], DType::U8);
        if op == UnaryOp::CountLeadingZeros {
            let missing = self.constant(Scalar::UInt(u64::from(8 - unsigned.bits())), DType::U8);
            let subtract = binary_kernel(BinaryOp::Subtract, Compute::U8);
            count = self.emit(subtract, &[count, missing], DType::U8);
        }
        self.convert(count, result)
    }

    fn binary(&mut self, op: BinaryOp, x: TypedLoc, y: TypedLoc, result: DType) -> TypedLoc {
        let operand = match op.class() {
            BinaryClass::Arithmetic
            | BinaryClass::Ordered
            | BinaryClass::Float
            | BinaryClass::Int
            | BinaryClass::Bits => result,
            BinaryClass::Equality | BinaryClass::Order => promote(x.dtype, y.dtype),
            BinaryClass::Logical => DType::Pred,
            BinaryClass::Parts => result.to_real(),
        };
        let compute = match op.class() {
            BinaryClass::Float => Compute::of_function(operand),
            BinaryClass::Arithmetic if op == BinaryOp::Pow => Compute::of_function(operand),
            BinaryClass::Arithmetic
            | BinaryClass::Ordered
            | BinaryClass::Int
            | BinaryClass::Bits
            | BinaryClass::Equality
            | BinaryClass::Order
            | BinaryClass::Logical
            | BinaryClass::Parts => Compute::of(operand),
        };
        let [x, y] = [x, y].map(|value| {
            let value = self.convert(value, operand);
            self.convert(value, compute.dtype())
        });
        let computed = match op.class() {
            BinaryClass::Parts => result,
            _ if result.is_pred() => DType::Pred,
            _ => compute.dtype(),
        };
        let z = match self.by_constant(op, x, y, compute) {
            Some(z) => z,
            None => self.emit_binary(op, x, y, compute, computed),
        };
        self.convert(z, result)
    }

    fn emit_binary(
        &mut self,
        op: BinaryOp,
        x: TypedLoc,
        y: TypedLoc,
        compute: Compute,
        computed: DType,
    ) -> TypedLoc {
        self.add_cost(op.operations(), compute);
        let z = self.emit(binary_kernel(op, compute), &[x, y], computed);
        if let Loc::Register(register) = z.loc {
            self.kinds[usize::from(register)] = Kind::Binary(op, compute);
        }
        z
    }

    /// Cheaper code for a constant `y`, if there is any. It rounds as the op does, or once.
    fn by_constant(
        &mut self,
        op: BinaryOp,
        x: TypedLoc,
        y: TypedLoc,
        compute: Compute,
    ) -> Option<TypedLoc> {
        use BinaryOp::{Divide, Multiply, Pow, Quotient, Remainder};
        let (constant, dtype) = (self.constant_value(y)?, compute.dtype());
        match op {
            Pow if constant == 2.0 && !dtype.is_complex() => {
                Some(self.emit_binary(Multiply, x, x, compute, dtype))
            }
            Pow if constant == -1.0 && dtype.is_float() => {
                let one = self.constant(Scalar::Float(1.0), dtype);
                Some(self.emit_binary(Divide, one, x, compute, dtype))
            }
            Pow => {
                let kernel = known_power_kernel(constant, compute)?;
                Some(self.emit(kernel, &[x], dtype))
            }
            Divide => {
                let inverse = inverse_of_power_of_two(constant, dtype)?;
                let inverse = self.constant(Scalar::Float(inverse), dtype);
                Some(self.emit_binary(Multiply, x, inverse, compute, dtype))
            }
            Quotient | Remainder if constant != 0.0 => {
                let kernel = known_divisor_kernel(op, compute)?;
                let inverse = self.constant(Scalar::Float(constant.recip()), DType::F64);
                Some(self.emit(kernel, &[x, y, inverse], dtype))
            }
            _ => None,
        }
    }

    /// Adds the cost of a function beyond the cost of moving its operands, see [`BodyCode::cost`].
    fn add_cost(&mut self, operations: u64, compute: Compute) {
        self.cost += (operations as usize - 1) * compute.dtype().size() / 4;
    }

    /// The number of a constant.
    fn constant_value(&self, value: TypedLoc) -> Option<f64> {
        let Loc::Constant(constant) = value.loc else { return None };
        Some(self.constants[usize::from(constant)].0.as_f64())
    }

    fn bitcast(&mut self, x: TypedLoc, to: DType) -> TypedLoc {
        let integers = x.dtype.is_integer() && to.is_integer();
        if x.dtype == to || integers || to.is_pred() {
            // Integers of one width wrap to the same bits, and every non-zero byte is true.
            let x = if to.is_pred() { self.bitcast(x, DType::U8) } else { x };
            return self.convert(x, to);
        }
        self.emit(copy_kernel(to.size()), &[x], to)
    }

    /// The value in another dtype; the same location if the bytes stay the same.
    fn convert(&mut self, x: TypedLoc, to: DType) -> TypedLoc {
        if x.dtype == to {
            return x;
        }
        if same_bytes(x.dtype, to) {
            return TypedLoc { loc: x.loc, dtype: to };
        }
        if let Loc::Constant(constant) = x.loc {
            let (value, _) = self.constants[usize::from(constant)];
            return self.constant(value.cast(x.dtype), to);
        }
        if let Some(&value) = self.converted.get(&(x, to)) {
            return value;
        }
        let value = convert_kernels(x.dtype, to)
            .into_iter()
            .fold(x, |x, (kernel, dtype)| self.emit(kernel, &[x], dtype));
        self.converted.insert((x, to), value);
        value
    }

    /// Emits an instruction, which runs for each block, or once if its result is the same for all elements.
    fn emit(&mut self, kernel: Kernel, operands: &[TypedLoc], dtype: DType) -> TypedLoc {
        if !operands.iter().all(|operand| self.is_single(operand.loc)) {
            return self.emit_in_blocks(kernel, operands, dtype);
        }
        let number = index(self.once.len());
        self.once.push(instruction(kernel, operands, dtype, number));
        TypedLoc { loc: Loc::Once(number), dtype }
    }

    /// Returns true if a value is the same for all elements.
    fn is_single(&self, loc: Loc) -> bool {
        match loc {
            Loc::Input(input) => matches!(self.inputs[usize::from(input)].access, Access::Single),
            Loc::Constant(_) | Loc::Once(_) | Loc::None => true,
            Loc::Register(_) | Loc::Result(_) => false,
        }
    }

    fn emit_in_blocks(&mut self, kernel: Kernel, operands: &[TypedLoc], dtype: DType) -> TypedLoc {
        let register = index(self.instructions.len());
        self.widest = self.widest.max(dtype.size());
        self.cost += dtype.size().div_ceil(4);
        self.instructions.push(instruction(kernel, operands, dtype, register));
        self.kinds.push(Kind::Other);
        TypedLoc { loc: Loc::Register(register), dtype }
    }

    /// Finishes the code with these results of one shape.
    pub(crate) fn finish(mut self, roots: &[TypedLoc], shape: &Shape) -> BodyCode {
        let mut roots = SmallVec::<[TypedLoc; 2]>::from(roots);
        self.combine_pairs(&mut roots);
        let pair_function = if roots.len() == 1 { self.pair_function() } else { None };
        for (result, &root) in roots.iter().enumerate() {
            self.write_result(root, index(result));
        }
        let registers = assign_registers(&mut self.instructions);
        let constants = self.constants.iter();
        let constants =
            constants.map(|&(value, dtype)| HostTensor::scalar(value, dtype).bytes().into());
        BodyCode {
            inputs: self.inputs.into(),
            constants: constants.collect(),
            once: self.once.into(),
            instructions: self.instructions.into(),
            registers,
            widest: self.widest,
            cost: self.cost,
            pair_function,
            results: roots.iter().map(|root| root.dtype).collect(),
            shape: shape.clone(),
        }
    }

    /// Combines pairs of instructions.
    fn combine_pairs(&mut self, roots: &mut [TypedLoc]) {
        let before = self.instructions.len();
        let numbers = combine(&mut self.instructions, &mut self.kinds, |register| {
            roots.iter().any(|root| root.loc == Loc::Register(index(register)))
        });
        self.cost = self.cost.saturating_sub(before - self.instructions.len()).max(1);
        for root in roots {
            if let Loc::Register(register) = &mut root.loc {
                *register = numbers[usize::from(*register)];
            }
        }
    }

    /// See [`BodyCode::pair_function`].
    fn pair_function(&self) -> Option<(PairFunction, [u16; 2])> {
        use BinaryOp::{Multiply, Subtract};
        let is_float = |of: Compute| matches!(of, Compute::F32 | Compute::F64);
        let function = match self.kinds[..] {
            [Kind::Binary(Multiply, of)] if is_float(of) => PairFunction::Product,
            [Kind::Square(Subtract, of)] if is_float(of) => PairFunction::SquaredDifference,
            _ => return None,
        };
        match self.instructions[0].operands {
            [Loc::Input(x), Loc::Input(y), _] => Some((function, [x, y])),
            _ => None,
        }
    }

    /// Writes a value to a result: the instruction that computes the value does so unless it writes to another
    /// result, and then the value is copied.
    fn write_result(&mut self, root: TypedLoc, result: u16) {
        let loc = match root.loc {
            Loc::Register(register) => match self.instructions[usize::from(register)].target {
                Target::Register(_) => root.loc,
                Target::Result(other) => Loc::Result(other),
            },
            elsewhere => elsewhere,
        };
        let value = match loc {
            Loc::Register(_) => root,
            _ => {
                let copy = copy_kernel(root.dtype.size());
                self.emit_in_blocks(copy, &[TypedLoc { loc, ..root }], root.dtype)
            }
        };
        let Loc::Register(register) = value.loc else {
            unreachable!("a value in blocks is in a register")
        };
        self.instructions[usize::from(register)].target = Target::Result(result);
        for operand in self.instructions.iter_mut().flat_map(|next| &mut next.operands) {
            if *operand == Loc::Register(register) {
                *operand = Loc::Result(result);
            }
        }
    }
}

fn instruction(kernel: Kernel, operands: &[TypedLoc], dtype: DType, register: u16) -> Instruction {
    let mut locs = [Loc::None; 3];
    for (loc, operand) in locs.iter_mut().zip(operands) {
        *loc = operand.loc;
    }
    Instruction { kernel, operands: locs, target: Target::Register(register), size: dtype.size() }
}

/// `1 / y` for a power of two: the product by it has the same bits as the quotient and takes a fraction of the time.
fn inverse_of_power_of_two(y: f64, dtype: DType) -> Option<f64> {
    let is_normal = |number: f64| {
        if dtype == DType::F32 { (number as f32).is_normal() } else { number.is_normal() }
    };
    // The significand of a power of two is zero.
    let is_power = y.to_bits().trailing_zeros() >= f64::MANTISSA_DIGITS - 1;
    let has_inverse = dtype.is_float() && is_power && is_normal(y) && is_normal(y.recip());
    has_inverse.then(|| y.recip())
}

/// Returns true if every element of `from` is stored by the bytes of the equal element of `to`.
fn same_bytes(from: DType, to: DType) -> bool {
    matches!(
        (from, to),
        (DType::Pred, DType::U2 | DType::U4 | DType::U8)
            | (DType::U2, DType::U4 | DType::U8)
            | (DType::U4, DType::U8)
            | (DType::S2, DType::S4 | DType::S8)
            | (DType::S4, DType::S8)
    )
}

fn index(position: usize) -> u16 {
    u16::try_from(position).expect("a group is cut long before it has 2^16 parts")
}

/// Assigns registers by live ranges, and returns the number of registers. The register of a result differs from
/// the registers of its operands.
fn assign_registers(instructions: &mut [Instruction]) -> u16 {
    let mut last_use = vec![0; instructions.len()];
    for (at, instruction) in instructions.iter().enumerate() {
        for operand in instruction.operands {
            if let Loc::Register(register) = operand {
                last_use[usize::from(register)] = at;
            }
        }
    }
    let mut assigned = vec![0; instructions.len()];
    let mut free = Vec::new();
    let mut count = 0;
    for (at, instruction) in instructions.iter_mut().enumerate() {
        if let Target::Register(register) = &mut instruction.target {
            let to = &mut assigned[usize::from(*register)];
            *to = free.pop().unwrap_or_else(|| {
                count += 1;
                count - 1
            });
            *register = *to;
        }
        for position in 0..instruction.operands.len() {
            let operand = instruction.operands[position];
            let Loc::Register(register) = operand else { continue };
            let register = usize::from(register);
            // An instruction may read a register twice, but frees it only once.
            let again = instruction.operands[position + 1..].contains(&operand);
            if last_use[register] == at && !again {
                free.push(assigned[register]);
            }
        }
        for operand in &mut instruction.operands {
            if let Loc::Register(register) = operand {
                *register = assigned[usize::from(*register)];
            }
        }
    }
    count
}
