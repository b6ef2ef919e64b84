//! Results of operations that the golden exports lack, against closed forms and differences.

use nxla_expr::{ExprId, Graph, Program, TensorType};
use nxla_import::stablehlo::{Module, ReadOptions};
use nxla_tensor::{DType, HostTensor};

fn main_of(parameters: &str, result: &str, body: &str) -> String {
    format!("func.func @main({parameters}) -> {result} {{\n{body}\n}}")
}

/// The results of a module for inputs of f64 without an axis or with one axis.
fn results_of(text: &str, inputs: &[(&[f64], &[usize], DType)]) -> Vec<Vec<f64>> {
    let module = Module::from_bytes(text.as_bytes(), &ReadOptions::default())
        .unwrap_or_else(|error| panic!("{error}"));
    let tensor = |&(values, shape, dtype): &(&[f64], &[usize], DType)| {
        let tensor = HostTensor::from_slice(values, shape.to_vec()).unwrap();
        tensor.cast(dtype)
    };
    let inputs: Vec<HostTensor> = inputs.iter().map(tensor).collect();
    let results = nxla_reference::run(module.program(), &inputs).unwrap();
    let values = |x: &HostTensor| (0..x.size()).map(|at| x.get(at).as_f64()).collect();
    results.iter().map(values).collect()
}

/// The sum of these numbers in `f32` is 2^24, because 2^24 + 1 is not an `f32`.
const WIDE: [f64; 3] = [16_777_216.0, 1.0, 1.0];

/// A reduction of `f32` to `f64` whose initial value has this dtype.
fn reduction_of(initial: &str, region: &str) -> String {
    main_of(
        &format!("%x: tensor<3xf32>, %i: tensor<{initial}>"),
        "tensor<f64>",
        &format!(
            "%0 = \"stablehlo.reduce\"(%x, %i) {region} {{dimensions = array<i64: 0>}} : \
             (tensor<3xf32>, tensor<{initial}>) -> tensor<f64>\nreturn %0 : tensor<f64>"
        ),
    )
}

#[test]
fn reductions_accumulate_in_the_dtype_of_the_result() {
    let region = "({ ^bb0(%a: tensor<f64>, %b: tensor<f64>):\n\
        %s = stablehlo.add %a, %b : tensor<f64>\nstablehlo.return %s : tensor<f64> })";
    let reduce = reduction_of("f32", region);
    let inputs: [(&[f64], &[usize], DType); 2] =
        [(&WIDE, &[3], DType::F32), (&[0.0], &[], DType::F32)];
    assert_eq!(results_of(&reduce, &inputs), [[16_777_218.0]]);
    let window = main_of(
        "%x: tensor<3xf32>, %i: tensor<f32>",
        "tensor<1xf64>",
        &format!(
            "%0 = \"stablehlo.reduce_window\"(%x, %i) {region} {{window_dimensions = array<i64: 3>}} : \
             (tensor<3xf32>, tensor<f32>) -> tensor<1xf64>\nreturn %0 : tensor<1xf64>"
        ),
    );
    assert_eq!(results_of(&window, &inputs), [[16_777_218.0]]);
    // The function converts its second parameter itself.
    let region = "({ ^bb0(%a: tensor<f64>, %b: tensor<f32>):\n\
        %c = stablehlo.convert %b : (tensor<f32>) -> tensor<f64>\n\
        %s = stablehlo.add %a, %c : tensor<f64>\nstablehlo.return %s : tensor<f64> })";
    let reduce = reduction_of("f64", region);
    let inputs: [(&[f64], &[usize], DType); 2] =
        [(&WIDE, &[3], DType::F32), (&[0.0], &[], DType::F64)];
    assert_eq!(results_of(&reduce, &inputs), [[16_777_218.0]]);
}

#[test]
fn scatters_accumulate_in_the_dtype_of_the_result() {
    let text = main_of(
        "%x: tensor<2xf32>, %u: tensor<2xf32>",
        "tensor<2xf64>",
        "%i = stablehlo.constant dense<[[1], [1]]> : tensor<2x1xi32>\n\
         %0 = \"stablehlo.scatter\"(%x, %i, %u) ({ ^bb0(%a: tensor<f64>, %b: tensor<f64>):\n\
         %s = stablehlo.add %a, %b : tensor<f64>\nstablehlo.return %s : tensor<f64> }) \
         {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], \
         scatter_dims_to_operand_dims = [0], index_vector_dim = 1>} : \
         (tensor<2xf32>, tensor<2x1xi32>, tensor<2xf32>) -> tensor<2xf64>\nreturn %0 : tensor<2xf64>",
    );
    let inputs: [(&[f64], &[usize], DType); 2] =
        [(&[0.0, WIDE[0]], &[2], DType::F32), (&WIDE[1..], &[2], DType::F32)];
    assert_eq!(results_of(&text, &inputs), [[0.0, 16_777_218.0]]);
}

/// The rows of the normalization tests, one value per feature and row.
const ROWS: usize = 4;
const FEATURES: usize = 2;
const EPSILON: f64 = 0.125;

/// The means and variances of features.
fn moments(x: &[f64]) -> [Vec<f64>; 2] {
    let feature = |f: usize| x.iter().skip(f).step_by(FEATURES).copied();
    let mean: Vec<f64> = (0..FEATURES).map(|f| feature(f).sum::<f64>() / ROWS as f64).collect();
    let variance = |f: usize| feature(f).map(|x| (x - mean[f]).powi(2)).sum::<f64>() / ROWS as f64;
    let variance = (0..FEATURES).map(variance).collect();
    [mean, variance]
}

/// The formula of the specification for `batch_norm_inference`.
fn normalize(x: &[f64], [scale, offset, mean, variance]: [&[f64]; 4]) -> Vec<f64> {
    let value = |(at, x): (usize, &f64)| {
        let f = at % FEATURES;
        (x - mean[f]) / (variance[f] + EPSILON).sqrt() * scale[f] + offset[f]
    };
    x.iter().enumerate().map(value).collect()
}

fn assert_close(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    for (x, y) in found.iter().zip(expected) {
        assert!((x - y).abs() <= tolerance * y.abs().max(1.0), "{found:?} {expected:?}");
    }
}

fn rows(values: &[f64]) -> (&[f64], &[usize], DType) {
    (values, &[ROWS, FEATURES], DType::F64)
}

fn feature(values: &[f64]) -> (&[f64], &[usize], DType) {
    (values, &[FEATURES], DType::F64)
}

/// The normalizations that PyTorch/XLA writes. The gradients are compared with central differences.
#[test]
fn batches_are_normalized() {
    let x = [0.5, -1.0, 2.0, 0.25, -0.75, 1.5, 1.0, 3.0];
    let (scale, offset) = ([1.5, -0.5], [0.25, 2.0]);
    let cotangent = [1.0, -2.0, 0.5, 0.75, -1.25, 1.0, 2.0, 0.5];
    let [mean, variance] = moments(&x);
    let (matrix, vector) = ("tensor<4x2xf64>", "tensor<2xf64>");
    let attributes = "{epsilon = 0.125 : f32, feature_index = 1 : i64}";
    let text = main_of(
        &format!("%x: {matrix}, %s: {vector}, %o: {vector}, %m: {vector}, %v: {vector}"),
        matrix,
        &format!(
            "%0 = \"stablehlo.batch_norm_inference\"(%x, %s, %o, %m, %v) {attributes} : \
             ({matrix}, {vector}, {vector}, {vector}, {vector}) -> {matrix}\nreturn %0 : {matrix}"
        ),
    );
    let inputs = [rows(&x), feature(&scale), feature(&offset), feature(&mean), feature(&variance)];
    let expected = normalize(&x, [&scale, &offset, &mean, &variance]);
    assert_close(&results_of(&text, &inputs)[0], &expected, 1e-12);

    let text = main_of(
        &format!("%x: {matrix}, %s: {vector}, %o: {vector}"),
        &format!("({matrix}, {vector}, {vector})"),
        &format!(
            "%0:3 = \"stablehlo.batch_norm_training\"(%x, %s, %o) {attributes} : \
             ({matrix}, {vector}, {vector}) -> ({matrix}, {vector}, {vector})\n\
             return %0#0, %0#1, %0#2 : {matrix}, {vector}, {vector}"
        ),
    );
    let found = results_of(&text, &inputs[..3]);
    for (found, expected) in found.iter().zip([&expected, &mean, &variance]) {
        assert_close(found, expected, 1e-12);
    }

    let text = main_of(
        &format!("%x: {matrix}, %s: {vector}, %m: {vector}, %v: {vector}, %g: {matrix}"),
        &format!("({matrix}, {vector}, {vector})"),
        &format!(
            "%0:3 = \"stablehlo.batch_norm_grad\"(%x, %s, %m, %v, %g) {attributes} : \
             ({matrix}, {vector}, {vector}, {vector}, {matrix}) -> ({matrix}, {vector}, {vector})\n\
             return %0#0, %0#1, %0#2 : {matrix}, {vector}, {vector}"
        ),
    );
    let loss = |x: &[f64], scale: &[f64], offset: &[f64]| -> f64 {
        let [mean, variance] = moments(x);
        let y = normalize(x, [scale, offset, &mean, &variance]);
        y.iter().zip(cotangent).map(|(y, g)| y * g).sum()
    };
    let slope = |values: &[f64], of: &dyn Fn(&[f64]) -> f64| -> Vec<f64> {
        let moved = |at: usize, step: f64| {
            let mut moved = values.to_vec();
            moved[at] += step;
            of(&moved)
        };
        let step = 1e-5;
        (0..values.len()).map(|at| (moved(at, step) - moved(at, -step)) / (2.0 * step)).collect()
    };
    let expected = [
        slope(&x, &|x| loss(x, &scale, &offset)),
        slope(&scale, &|scale| loss(&x, scale, &offset)),
        slope(&offset, &|offset| loss(&x, &scale, offset)),
    ];
    let inputs = [rows(&x), feature(&scale), feature(&mean), feature(&variance), rows(&cotangent)];
    let found = results_of(&text, &inputs);
    for (found, expected) in found.iter().zip(&expected) {
        assert_close(found, expected, 1e-8);
    }
}

/// The results of one operation on a list of numbers.
fn apply_operation(operation: &str, from: DType, to: DType, x: &[f64]) -> Vec<f64> {
    let size = x.len();
    let [from_type, to_type] =
        [from, to].map(|dtype| format!("tensor<{size}x{}>", dtype.mlir_name()));
    let (op, attributes) = operation.split_once(' ').unwrap_or((operation, "{}"));
    let body = format!(
        "%0 = \"stablehlo.{op}\"(%x) {attributes} : ({from_type}) -> {to_type}\nreturn %0 : {to_type}"
    );
    let text = main_of(&format!("%x: {from_type}"), &to_type, &body);
    results_of(&text, &[(x, &[size], from)]).remove(0)
}

/// Compares numbers and the signs of zeros; NaN equals NaN.
fn assert_same(found: &[f64], expected: &[f64], of: &str) {
    let is_same = |(x, y): (&f64, &f64)| x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan();
    let is_equal = found.len() == expected.len() && found.iter().zip(expected).all(is_same);
    assert!(is_equal, "{of}: {found:?}, expected {expected:?}");
}

#[test]
fn sign_of_zero_keeps_its_sign() {
    let x = [-0.0, 0.0, -2.5, 2.5, f64::NEG_INFINITY, f64::INFINITY, f64::NAN];
    let expected = [-0.0, 0.0, -1.0, 1.0, -1.0, 1.0, f64::NAN];
    for dtype in [DType::F64, DType::F32, DType::BF16, DType::F16, DType::F8E5M2] {
        assert_same(&apply_operation("sign", dtype, dtype, &x), &expected, &dtype.to_string());
    }
    assert_eq!(
        apply_operation("sign", DType::S32, DType::S32, &[-7.0, 0.0, 7.0]),
        [-1.0, 0.0, 1.0]
    );
}

/// The gradient of the sign is zero at all numbers, also at zeros.
#[test]
fn gradients_of_signs_are_zero() {
    let text = main_of(
        "%x: tensor<3xf64>",
        "tensor<3xf64>",
        "%0 = stablehlo.sign %x : tensor<3xf64>\nreturn %0 : tensor<3xf64>",
    );
    let module = Module::from_bytes(text.as_bytes(), &ReadOptions::default()).unwrap();
    let ty = module.program().inputs()[0].clone();
    let mut graph = Graph::new();
    let x = graph.parameter(0, ty.clone());
    let signs = module.program().inline(&mut graph, &[x]).unwrap();
    let sum = graph.sum(signs[0], None, false).unwrap();
    let found = nxla_grad::gradients(&mut graph, sum, &[x]).unwrap();
    let program = Program::new(&graph, vec![ty], &found).unwrap();
    let x = HostTensor::from_slice(&[-0.0, 0.0, 2.0], [3]).unwrap();
    let gradient = nxla_reference::run(&program, &[x]).unwrap().remove(0);
    assert_eq!(gradient.to_vec::<f64>().unwrap(), [0.0; 3]);
}

/// Returns whether a module that nxla writes for a function of `x` comes back as the same program.
fn round_trips(dtype: DType, function: impl Fn(&mut Graph, ExprId) -> ExprId) -> bool {
    let ty = TensorType::new(dtype, [3]);
    let mut graph = Graph::new();
    let x = graph.parameter(0, ty.clone());
    let result = function(&mut graph, x);
    let program = Program::new(&graph, vec![ty], &[result]).unwrap();
    let options = nxla_stablehlo::LowerOptions::default();
    let text = nxla_stablehlo::lower(&program, &options).unwrap().text;
    let module = Module::from_bytes(text.as_bytes(), &ReadOptions::default()).unwrap();
    module.program().digest() == program.digest()
}

#[test]
fn lowered_signs_round_trip() {
    for dtype in [DType::F64, DType::F32, DType::F16] {
        assert!(round_trips(dtype, |graph, x| graph.sign(x).unwrap()), "{dtype}");
    }
}

#[test]
fn lowered_conversions_to_8_bit_floats_round_trip() {
    for from in [DType::F64, DType::F32, DType::F16] {
        for to in [DType::F8E4M3FN, DType::F8E5M2] {
            assert!(round_trips(from, |graph, x| graph.as_type(x, to).unwrap()), "{from} to {to}");
        }
    }
}

#[test]
fn conversions_to_8_bit_floats_do_not_saturate() {
    let (infinity, nan) = (f64::INFINITY, f64::NAN);
    let x = [448.0, 464.0, 464.5, -1e6, infinity, -infinity, nan, -0.0, 0.3];
    let expected = [448.0, 448.0, nan, nan, nan, nan, nan, -0.0, 0.3125];
    for from in [DType::F64, DType::F32] {
        assert_same(
            &apply_operation("convert", from, DType::F8E4M3FN, &x),
            &expected,
            &from.to_string(),
        );
    }
    let integers = [448.0, 464.0, 465.0, -1e6];
    let expected = [448.0, 448.0, nan, nan];
    assert_same(
        &apply_operation("convert", DType::S32, DType::F8E4M3FN, &integers),
        &expected,
        "s32",
    );
    let x = [448.0, 57_344.0, -57_344.0, nan, 0.5];
    let expected = [448.0, nan, nan, nan, 0.5];
    assert_same(
        &apply_operation("convert", DType::F8E5M2, DType::F8E4M3FN, &x),
        &expected,
        "f8_e5m2",
    );
    // This format has infinities.
    let x = [57_344.0, 61_439.0, 61_440.0, -1e9, infinity, nan];
    let expected = [57_344.0, 57_344.0, infinity, -infinity, infinity, nan];
    assert_same(
        &apply_operation("convert", DType::F32, DType::F8E5M2, &x),
        &expected,
        "f32 to f8_e5m2",
    );
}

/// The results of `reduce_precision`.
fn reduce_precision(dtype: DType, exponent: u32, mantissa: u32, x: &[f64]) -> Vec<f64> {
    let operation = format!(
        "reduce_precision {{exponent_bits = {exponent} : i32, mantissa_bits = {mantissa} : i32}}"
    );
    apply_operation(&operation, dtype, dtype, x)
}

#[test]
fn reduced_precision_has_no_subnormal_numbers() {
    let (infinity, nan) = (f64::INFINITY, f64::NAN);
    let power = |exponent: i32| 2_f64.powi(exponent);
    for dtype in [DType::F64, DType::F32] {
        let of = dtype.to_string();
        let x = [1e-5, -3e-8, power(-14), 65_504.0, -65_520.0, infinity, nan, -0.0, 1.0 / 3.0];
        let third = 0.333_251_953_125;
        let expected = [0.0, -0.0, power(-14), 65_504.0, -infinity, infinity, nan, -0.0, third];
        assert_same(&reduce_precision(dtype, 5, 10, &x), &expected, &of);
        // The mantissa rounds numbers slightly below the smallest normal number to this number.
        let [kept, lost] = [1.0 - power(-12), 1.0 - power(-11)].map(|factor| factor * power(-14));
        assert_same(&reduce_precision(dtype, 5, 10, &[kept, -lost]), &[power(-14), -0.0], &of);
        let x = [power(-15), -power(-16), power(-14), 57_344.0, 61_440.0, nan];
        let expected = [0.0, -0.0, power(-14), 57_344.0, infinity, nan];
        assert_same(&reduce_precision(dtype, 5, 2, &x), &expected, &of);
    }
    // Numbers of `bf16` have the exponents of `f32`, so subnormal numbers remain.
    let x = [power(-133), -power(-140), 3e38, 3.4e38, nan, 1.0 + power(-8)];
    let large = f64::from(3e38_f32);
    let found = reduce_precision(DType::F32, 8, 7, &x);
    assert!((found[2] - large).abs() <= large * power(-8), "{found:?}");
    let expected = [power(-133), -0.0, found[2], infinity, nan, 1.0];
    assert_same(&found, &expected, "e8m7 of f32");
    let x = [power(-126), -power(-127), 1e39, nan, 1.0 + power(-24)];
    let expected = [power(-126), -0.0, infinity, nan, 1.0];
    assert_same(&reduce_precision(DType::F64, 8, 23, &x), &expected, "e8m23 of f64");
    let x = [power(-126), -power(-130), -1e39, 1.0 + power(-8)];
    assert_same(
        &reduce_precision(DType::F64, 8, 7, &x),
        &[power(-126), -0.0, -infinity, 1.0],
        "e8m7 of f64",
    );
}

/// Formats of 16 bits that do not contain each other.
#[test]
fn reduced_precision_of_16_bit_floats_has_fewer_exponents_or_digits() {
    let power = |exponent: i32| 2_f64.powi(exponent);
    let x = [1.0 + power(-7), 1.0 + power(-9), 65_504.0, -0.0, f64::NAN];
    let expected = [1.0 + power(-7), 1.0, f64::INFINITY, -0.0, f64::NAN];
    assert_same(&reduce_precision(DType::F16, 8, 7, &x), &expected, "e8m7 of f16");
    let x = [power(-14), -power(-15), power(16), 1.0 + power(-7)];
    let expected = [power(-14), -0.0, f64::INFINITY, 1.0 + power(-7)];
    assert_same(&reduce_precision(DType::BF16, 5, 10, &x), &expected, "e5m10 of bf16");
    let x = [power(-14), power(-16), power(-24), 65_504.0];
    // The exponents of `f16` and of e5m2 are equal, so subnormal numbers remain.
    let expected = [power(-14), power(-16), 0.0, f64::INFINITY];
    assert_same(&reduce_precision(DType::F16, 5, 2, &x), &expected, "e5m2 of f16");
}

type Complex = [f64; 2];

fn multiply([a, b]: Complex, [c, d]: Complex) -> Complex {
    [a * c - b * d, a * d + b * c]
}

fn product(x: [[Complex; 2]; 2], y: [[Complex; 2]; 2]) -> [[Complex; 2]; 2] {
    let entry = |row: usize, column: usize| {
        let [p, q] = [0, 1].map(|at| multiply(x[row][at], y[at][column]));
        [p[0] + q[0], p[1] + q[1]]
    };
    [0, 1].map(|row| [0, 1].map(|column| entry(row, column)))
}

/// A form of a triangular system, with the letters of LAPACK.
#[derive(Clone, Copy, Debug)]
struct System {
    left: bool,
    lower: bool,
    unit: bool,
    transform: char,
}

impl System {
    /// Returns the operation and the call of LAPACK that solve the system of `%a` and `%b`.
    fn operations(self, ty: &str) -> [String; 2] {
        let Self { left, lower, unit, transform } = self;
        let transpose = match transform {
            'N' => "NO_TRANSPOSE",
            'T' => "TRANSPOSE",
            _ => "ADJOINT",
        };
        let letter = |flag: bool, [yes, no]: [char; 2]| u32::from(if flag { yes } else { no });
        let [side, uplo, diag] =
            [letter(left, ['L', 'R']), letter(lower, ['L', 'U']), letter(unit, ['U', 'N'])];
        let types = format!("({ty}, {ty}) -> {ty}");
        [
            format!(
                "%x = \"stablehlo.triangular_solve\"(%a, %b) <{{left_side = {left}, lower = {lower}, \
                 transpose_a = #stablehlo<transpose {transpose}>, unit_diagonal = {unit}}}> : {types}"
            ),
            format!(
                "%x = stablehlo.custom_call @lapack_ztrsm_ffi(%a, %b) {{mhlo.backend_config = \
                 {{diag = {diag} : ui8, side = {side} : ui8, trans_x = {} : ui8, uplo = {uplo} : \
                 ui8}}}} : {types}",
                u32::from(transform)
            ),
        ]
    }

    /// Returns the matrix that the system multiplies by.
    fn matrix(self, a: [[Complex; 2]; 2]) -> [[Complex; 2]; 2] {
        let triangle = |row: usize, column: usize| match row == column {
            true if self.unit => [1.0, 0.0],
            false if (row > column) != self.lower => [0.0, 0.0],
            _ => a[row][column],
        };
        let entry = |row: usize, column: usize| match self.transform {
            'N' => triangle(row, column),
            'T' => triangle(column, row),
            _ => {
                let [re, im] = triangle(column, row);
                [re, -im]
            }
        };
        [0, 1].map(|row| [0, 1].map(|column| entry(row, column)))
    }
}

#[test]
fn triangular_systems_of_all_forms_are_solved() {
    let real = [[2.0, -1.0, 0.5, 1.5], [1.0, 3.0, -2.0, 0.25]];
    let imag = [[1.0, 0.5, -1.5, -0.5], [0.75, -1.0, 2.0, 1.25]];
    let flags = [false, true];
    let forms = flags.into_iter().flat_map(|left| flags.map(|lower| (left, lower)));
    let forms = forms.flat_map(|(left, lower)| flags.map(|unit| (left, lower, unit)));
    for (left, lower, unit) in forms {
        for (transform, is_complex) in
            ['N', 'T', 'C'].into_iter().flat_map(|t| [(t, false), (t, true)])
        {
            let system = System { left, lower, unit, transform };
            let ty = if is_complex { "tensor<2x2xcomplex<f64>>" } else { "tensor<2x2xf64>" };
            let f64s = "tensor<2x2xf64>";
            for operation in system.operations(ty) {
                let body = if is_complex {
                    format!(
                        "%a = stablehlo.complex %0, %1 : {ty}\n%b = stablehlo.complex %2, %3 : {ty}\n\
                     {operation}\n%re = stablehlo.real %x : ({ty}) -> {f64s}\n\
                     %im = stablehlo.imag %x : ({ty}) -> {f64s}\nreturn %re, %im : {f64s}, {f64s}"
                    )
                } else {
                    format!(
                        "%a = stablehlo.add %0, %1 : {ty}\n%b = stablehlo.add %2, %3 : {ty}\n\
                     {operation}\n%zero = stablehlo.subtract %x, %x : {ty}\n\
                     return %x, %zero : {f64s}, {f64s}"
                    )
                };
                let parameters = [0, 1, 2, 3].map(|at| format!("%{at}: {f64s}")).join(", ");
                let text = main_of(&parameters, &format!("({f64s}, {f64s})"), &body);
                let part = |values: &[f64; 4]| if is_complex { *values } else { [0.0; 4] };
                let parts = [real[0], part(&imag[0]), real[1], part(&imag[1])];
                let inputs = [0, 1, 2, 3].map(|at| (&parts[at][..], &[2, 2][..], DType::F64));
                let found = results_of(&text, &inputs);
                let matrix = |re: &[f64], im: &[f64]| {
                    [0, 1].map(|row| [0, 1].map(|at| [re[2 * row + at], im[2 * row + at]]))
                };
                let [a, b] = [0, 2].map(|at| matrix(&parts[at], &parts[at + 1]));
                let (a, x) = (system.matrix(a), matrix(&found[0], &found[1]));
                let y = if left { product(a, x) } else { product(x, a) };
                assert_close(&y.concat().concat(), &b.concat().concat(), 1e-12);
            }
        }
    }
}

/// The calls of `jnp.linalg.svd(a, compute_uv=False)`, whose other results are unused.
#[test]
fn singular_values_need_no_vectors() {
    let text = main_of(
        "%a: tensor<2x2xf64>",
        "tensor<2xf64>",
        "%0:5 = stablehlo.custom_call @lapack_dgesdd_ffi(%a) {mhlo.backend_config = \
         {mode = 78 : ui8}} : (tensor<2x2xf64>) -> (tensor<2x2xf64>, tensor<2xf64>, \
         tensor<2x2xf64>, tensor<2x2xf64>, tensor<i32>)\nreturn %0#1 : tensor<2xf64>",
    );
    let found = results_of(&text, &[(&[0.0, -3.0, 2.0, 0.0], &[2, 2], DType::F64)]);
    assert_close(&found[0], &[3.0, 2.0], 1e-12);
}

/// An entry is true if any pair of elements is true, for any number of pairs.
#[test]
fn products_of_booleans_are_disjunctions() {
    for count in [1, 2, 256, 65_536] {
        let text = main_of(
            &format!("%x: tensor<2x{count}xi1>, %y: tensor<{count}xi1>"),
            "tensor<2xi1>",
            &format!(
                "%0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : \
                 (tensor<2x{count}xi1>, tensor<{count}xi1>) -> tensor<2xi1>\nreturn %0 : tensor<2xi1>"
            ),
        );
        let x = [vec![0.0; count], vec![1.0; count]].concat();
        let y = vec![1.0; count];
        let inputs: [(&[f64], &[usize], DType); 2] =
            [(&x, &[2, count], DType::Pred), (&y, &[count], DType::Pred)];
        assert_eq!(results_of(&text, &inputs), [[0.0, 1.0]], "{count}");
    }
}

#[test]
fn digamma_is_nan_at_its_poles() {
    let text = main_of(
        "%x: tensor<5xf64>",
        "tensor<5xf64>",
        "%0 = chlo.digamma %x : tensor<5xf64> -> tensor<5xf64>\nreturn %0 : tensor<5xf64>",
    );
    let found = results_of(&text, &[(&[0.0, -0.0, -1.0, -2.0, 1.0], &[5], DType::F64)]);
    assert!(found[0][..4].iter().all(|x| x.is_nan()), "{found:?}");
    // The negative of Euler's constant.
    assert_close(&found[0][4..], &[-0.577_215_664_901_532_9], 1e-14);
}
