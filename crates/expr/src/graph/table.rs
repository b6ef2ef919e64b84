//! The op table: one row per element-wise op.
//!
//! A row holds all one-line facts about an op: its name in expression text, its operand and result
//! dtypes, its StableHLO form, and the interval of test samples. Macros generate enums, names,
//! builders, lists for tests, and the functions of Rust and Python with their documentation. A new
//! row is therefore known everywhere. The semantics and the derivative of an op are arms of
//! exhaustive matches in `nxla-eval` and `nxla-grad`.

/// The dtypes that a unary op accepts, and the dtype of its result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnaryClass {
    /// Integers become `f32`; floats and complex numbers stay.
    Float,
    /// Like [`UnaryClass::Float`], but complex numbers are rejected.
    RealFloat,
    /// Any dtype, unchanged (`pred` counts as `u8`).
    Same,
    /// Any dtype but complex, unchanged.
    SameReal,
    /// Integers only, unchanged; `pred` stays `pred` where the op is defined on booleans.
    Bits,
    /// Integers only, unchanged.
    Int,
    /// Any dtype; the result is `pred`.
    Predicate,
    /// Complex numbers become floats of half their width; other dtypes are unchanged.
    Magnitude,
    /// Complex numbers become floats of half their width, integers become `f32`, floats are
    /// unchanged.
    Part,
    /// All dtypes become complex.
    Complex,
}

/// The dtypes that a binary op accepts, and the dtype of its result.
///
/// The promoted dtype is [`nxla_tensor::promote`] of the operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BinaryClass {
    /// Any dtypes; the result has the promoted dtype.
    Arithmetic,
    /// Any dtypes but complex; the result has the promoted dtype.
    Ordered,
    /// Any dtypes; the result has the promoted dtype as a float.
    Float,
    /// Integers only; the result has the promoted dtype.
    Int,
    /// Integers with the promoted dtype as result; `pred` for two `pred` operands.
    Bits,
    /// Any dtypes; the result is `pred`.
    Equality,
    /// Any dtypes but complex; the result is `pred`.
    Order,
    /// Any dtypes (zero is false); the result is `pred`.
    Logical,
    /// Any dtypes but complex; the result is the complex dtype for the promoted dtype.
    Parts,
}

/// Docstring fragments for a class of unary ops: the parameters (`takes`), the result (`returns`) and
/// the section on errors (`raises`).
#[macro_export]
macro_rules! unary_class {
    (takes Float) => {
        "Numbers; integers count as ``float32``."
    };
    (takes RealFloat) => {
        "Real numbers; integers count as ``float32``."
    };
    (takes RealPredicate) => {
        "Real numbers."
    };
    (takes SameReal) => {
        "Real numbers; integers stay as they are."
    };
    (takes Bits) => {
        "Integers or booleans."
    };
    (takes Int) => {
        "Integers."
    };
    (takes $any:ident) => {
        "Numbers of any dtype."
    };
    (returns Float) => {
        "Floats or complex numbers of the shape of `x`."
    };
    (returns RealFloat) => {
        "Floats of the shape of `x`."
    };
    (returns Part) => {
        "Floats of the shape of `x`."
    };
    (returns Magnitude) => {
        "Numbers of the shape of `x`; floats of half the width for complex numbers."
    };
    (returns RealPredicate) => {
        "Booleans of the shape of `x`."
    };
    (returns Predicate) => {
        "Booleans of the shape of `x`."
    };
    (returns Complex) => {
        "Complex numbers of the shape of `x`."
    };
    (returns Bits) => {
        "Integers of the shape and dtype of `x`."
    };
    (returns Int) => {
        "Integers of the shape and dtype of `x`."
    };
    (returns $any:ident) => {
        "Numbers of the shape and dtype of `x`."
    };
    (raises RealFloat) => {
        "\n\nRaises\n------\nDTypeError\n    If `x` is complex."
    };
    (raises RealPredicate) => {
        "\n\nRaises\n------\nDTypeError\n    If `x` is complex."
    };
    (raises SameReal) => {
        "\n\nRaises\n------\nDTypeError\n    If `x` is complex."
    };
    (raises Bits) => {
        "\n\nRaises\n------\nDTypeError\n    If `x` is not an integer."
    };
    (raises Int) => {
        "\n\nRaises\n------\nDTypeError\n    If `x` is not an integer."
    };
    (raises $any:ident) => {
        ""
    };
}

/// Docstring fragments for a class of binary ops, as for [`unary_class`], and the description of
/// the `operands`.
#[macro_export]
macro_rules! binary_class {
    (takes Int) => { "Integers; their shapes broadcast and their dtypes promote." };
    (takes Bits) => { "Integers; their shapes broadcast and their dtypes promote." };
    (takes Equality) => { "Operands of any dtype; their shapes broadcast." };
    (takes Logical) => { "Operands of any dtype; their shapes broadcast." };
    (takes Order) => { "Real operands; their shapes broadcast." };
    (takes RealFloat) => {
        "Real numbers; their shapes broadcast and their dtypes promote."
    };
    (takes Parts) => { "Real numbers; their shapes broadcast." };
    (takes $any:ident) => { "Operands; their shapes broadcast and their dtypes promote." };
    (returns Float) => { "Floats or complex numbers of the common shape; integers count as ``float32``." };
    (returns RealFloat) => {
        "Floats of the common shape."
    };
    (returns Int) => { "Integers of the common shape and dtype." };
    (returns Bits) => { "Integers of the common shape and dtype; booleans if both are booleans." };
    (returns Equality) => { "Booleans of the common shape." };
    (returns Logical) => { "Booleans of the common shape." };
    (returns Order) => { "Booleans of the common shape." };
    (returns Parts) => { "``complex128`` if a part is ``float64``, else ``complex64``." };
    (returns $any:ident) => { "Numbers of the common shape and dtype." };
    (raises Int) => { "\n\nRaises\n------\nShapeError\n    If the shapes do not broadcast.\nDTypeError\n    If an operand is not an integer." };
    (raises Bits) => { "\n\nRaises\n------\nShapeError\n    If the shapes do not broadcast.\nDTypeError\n    If an operand is not an integer." };
    (raises RealFloat) => {
        "\n\nRaises\n------\nShapeError\n    If the shapes do not broadcast.\nDTypeError\n    If an operand is complex."
    };
    (raises Ordered) => { "\n\nRaises\n------\nShapeError\n    If the shapes do not broadcast.\nDTypeError\n    If an operand is complex." };
    (raises Order) => { "\n\nRaises\n------\nShapeError\n    If the shapes do not broadcast.\nDTypeError\n    If an operand is complex." };
    (raises Parts) => { "\n\nRaises\n------\nShapeError\n    If the shapes do not broadcast.\nDTypeError\n    If a part is complex." };
    (raises $any:ident) => { "\n\nRaises\n------\nShapeError\n    If the shapes do not broadcast." };
    (operands Parts) => { "real, imag" };
    (operands $any:ident) => { "x1, x2" };
}

/// The form of an element-wise op in StableHLO.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lowering {
    /// One operation whose operands and result share a dtype.
    Direct(&'static str),
    /// `stablehlo.compare` with this direction.
    Compare(&'static str),
    /// A short composition of several operations.
    Composed(Composed),
}

/// The element-wise ops without a single StableHLO or CHLO operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "each is the op of the same name")]
pub enum Composed {
    Sign,
    Abs,
    IsNan,
    IsInfinity,
    Real,
    Imag,
    Conjugate,
    LogicalNot,
    LogicalAnd,
    LogicalOr,
    LogicalXor,
    RightShift,
    Pow,
    Negate,
    Floor,
    Ceil,
    Round,
    RoundEven,
    Quotient,
    Remainder,
    Complex,
}

/// Calls a macro with every unary op: `doc, Variant, method, "name", Class, Lowering, operations for an
/// element, (low, high) of test samples, "public name" [lines of examples in Python]`.
///
/// Documentation in Rust and in Python is composed of the doc, the class and the examples.
#[macro_export]
macro_rules! for_each_unary {
    ($callback:ident) => {
        $callback! {
            /// Return e to the power of each element.
            Exp exp "exp" Float (Direct("stablehlo.exponential")) 10 (-3.0, 3.0)
                "exp" [">>> nx.exp([0.0, 1.0]).tolist()" "[1.0, 2.7182817459106445]"];
            /// Return ``exp(x) - 1``, which is accurate also near zero.
            Expm1 expm1 "expm1" Float (Direct("stablehlo.exponential_minus_one")) 10 (-3.0, 3.0)
                "expm1" [">>> nx.expm1([0.0, 1e-7]).tolist()" "[0.0, 1.000000082740371e-07]"];
            /// Return the natural logarithm of each element.
            ///
            /// The result is NaN for negative real numbers, and minus infinity for zero.
            Log log "log" Float (Direct("stablehlo.log")) 10 (0.1, 5.0)
                "log" [">>> nx.log([1.0, 2.0]).tolist()" "[0.0, 0.6931471824645996]"];
            /// Return the natural logarithm of ``1 + x``, which is accurate also near zero.
            Log1p log1p "log1p" Float (Direct("stablehlo.log_plus_one")) 10 (-0.9, 5.0)
                "log1p" [">>> nx.log1p([0.0, 1e-7]).tolist()" "[0.0, 9.999999406318238e-08]"];
            /// Return 1 / (1 + exp(-x)) of each element.
            Sigmoid sigmoid "sigmoid" Float (Direct("stablehlo.logistic")) 10 (-4.0, 4.0)
                "sigmoid" [">>> nx.sigmoid([0.0, 100.0]).tolist()" "[0.5, 1.0]"];
            /// Return the sine of each element, in radians.
            Sin sin "sin" Float (Direct("stablehlo.sine")) 10 (-3.0, 3.0)
                "sin" [">>> nx.sin([0.0, 1.0]).tolist()" "[0.0, 0.8414709568023682]"];
            /// Return the cosine of each element, in radians.
            Cos cos "cos" Float (Direct("stablehlo.cosine")) 10 (-3.0, 3.0)
                "cos" [">>> nx.cos([0.0, 1.0]).tolist()" "[1.0, 0.5403022766113281]"];
            /// Return the tangent of each element, in radians.
            Tan tan "tan" Float (Direct("chlo.tan")) 20 (-1.2, 1.2)
                "tan" [">>> nx.tan([0.0, 1.0]).tolist()" "[0.0, 1.5574077367782593]"];
            /// Return the angle in radians whose sine is each element.
            ///
            /// The result is NaN for real numbers outside [-1, 1].
            Asin asin "asin" Float (Direct("chlo.asin")) 20 (-0.9, 0.9)
                "asin" [">>> nx.asin([0.0, 1.0]).tolist()" "[0.0, 1.5707963705062866]"];
            /// Return the angle in radians whose cosine is each element.
            ///
            /// The result is NaN for real numbers outside [-1, 1].
            Acos acos "acos" Float (Direct("chlo.acos")) 20 (-0.9, 0.9)
                "acos" [">>> nx.acos([1.0, 0.0]).tolist()" "[0.0, 1.5707963705062866]"];
            /// Return the angle in radians whose tangent is each element.
            Atan atan "atan" Float (Direct("chlo.atan")) 20 (-3.0, 3.0)
                "atan" [">>> nx.atan([0.0, 1.0]).tolist()" "[0.0, 0.7853981852531433]"];
            /// Return the hyperbolic sine of each element.
            Sinh sinh "sinh" Float (Direct("chlo.sinh")) 20 (-3.0, 3.0)
                "sinh" [">>> nx.sinh([0.0, 1.0]).tolist()" "[0.0, 1.175201177597046]"];
            /// Return the hyperbolic cosine of each element.
            Cosh cosh "cosh" Float (Direct("chlo.cosh")) 20 (-3.0, 3.0)
                "cosh" [">>> nx.cosh([0.0, 1.0]).tolist()" "[1.0, 1.5430806875228882]"];
            /// Return the hyperbolic tangent of each element.
            Tanh tanh "tanh" Float (Direct("stablehlo.tanh")) 10 (-3.0, 3.0)
                "tanh" [">>> nx.tanh([0.0, 1.0]).tolist()" "[0.0, 0.7615941762924194]"];
            /// Return the number whose hyperbolic sine is each element.
            Asinh asinh "asinh" Float (Direct("chlo.asinh")) 20 (-3.0, 3.0)
                "asinh" [">>> nx.asinh([0.0, 1.0]).tolist()" "[0.0, 0.8813735842704773]"];
            /// Return the number whose hyperbolic cosine is each element.
            ///
            /// The result is NaN for real numbers below 1.
            Acosh acosh "acosh" Float (Direct("chlo.acosh")) 20 (1.2, 5.0)
                "acosh" [">>> nx.acosh([1.0, 2.0]).tolist()" "[0.0, 1.316957950592041]"];
            /// Return the number whose hyperbolic tangent is each element.
            ///
            /// The result is NaN for real numbers outside [-1, 1].
            Atanh atanh "atanh" Float (Direct("chlo.atanh")) 20 (-0.9, 0.9)
                "atanh" [">>> nx.atanh([0.0, 0.5]).tolist()" "[0.0, 0.5493061542510986]"];
            /// Return the square root of each element.
            ///
            /// The result is NaN for negative real numbers.
            Sqrt sqrt "sqrt" Float (Direct("stablehlo.sqrt")) 4 (0.1, 5.0)
                "sqrt" [">>> nx.sqrt([4.0, 2.0]).tolist()" "[2.0, 1.4142135381698608]"];
            /// Return one divided by the square root of each element.
            Rsqrt rsqrt "rsqrt" Float (Direct("stablehlo.rsqrt")) 4 (0.1, 5.0)
                "rsqrt" [">>> nx.rsqrt([4.0, 16.0]).tolist()" "[0.5, 0.25]"];
            /// Return the cube root of each element, also of negative ones.
            Cbrt cbrt "cbrt" Float (Direct("stablehlo.cbrt")) 20 (0.1, 5.0)
                "cbrt" [">>> nx.cbrt([8.0, -27.0]).tolist()" "[2.0, -3.0]"];
            /// Return the error function of each element.
            ///
            /// ``2 / sqrt(pi)`` times the integral of ``exp(-t^2)`` from 0 to ``x``.
            Erf erf "erf" RealFloat (Direct("chlo.erf")) 10 (-2.0, 2.0)
                "erf" [">>> nx.erf([0.0, 1.0]).tolist()" "[0.0, 0.8427007794380188]"];
            /// Return ``1 - erf(x)``, which is accurate also where ``erf(x)`` is near 1.
            Erfc erfc "erfc" RealFloat (Direct("chlo.erfc")) 20 (-2.0, 2.0)
                "erfc" [">>> nx.erfc([0.0, 3.0]).tolist()" "[1.0, 2.2090496713644825e-05]"];
            /// Return the number whose error function is each element.
            ///
            /// Defined between -1 and 1; NaN elsewhere.
            ErfInv erf_inv "erf_inv" RealFloat (Direct("chlo.erf_inv")) 10 (-0.9, 0.9)
                "erf_inv" [">>> nx.erf_inv([0.0, 0.5]).tolist()" "[0.0, 0.4769362807273865]"];
            /// Negate each element; the operator ``-``.
            ///
            /// Unsigned integers wrap.
            Negate negate "negate" Same (Composed(Composed::Negate)) 1 (-3.0, 3.0)
                "negative" [">>> nx.negative([1, -2]).tolist()" "[-1, 2]"];
            /// Return -1, 0 or 1, with the sign of each element.
            ///
            /// A complex number that is not zero is divided by its magnitude. NaN stays NaN.
            Sign sign "sign" Same (Composed(Composed::Sign)) 1 (-3.0, 3.0)
                "sign" [">>> nx.sign([-3, 0, 5]).tolist()" "[-1, 0, 1]"];
            /// Return the distance of each element from zero.
            Abs abs "abs" Magnitude (Composed(Composed::Abs)) 1 (-3.0, 3.0)
                "abs" [">>> nx.abs([1.5, -2.0]).tolist()" "[1.5, 2.0]"];
            /// Return the largest whole number that is not above each element.
            Floor floor "floor" SameReal (Composed(Composed::Floor)) 1 (-3.0, 3.0)
                "floor" [">>> nx.floor([1.5, -1.5]).tolist()" "[1.0, -2.0]"];
            /// Return the smallest whole number that is not below each element.
            Ceil ceil "ceil" SameReal (Composed(Composed::Ceil)) 1 (-3.0, 3.0)
                "ceil" [">>> nx.ceil([1.5, -1.5]).tolist()" "[2.0, -1.0]"];
            /// Return the nearest whole number, of two equally near the one farther from zero.
            Round round "round" SameReal (Composed(Composed::Round)) 1 (-3.0, 3.0)
                "round_half_away" [
                    ">>> nx.round_half_away([0.5, 1.5, -2.5]).tolist()"
                    "[1.0, 2.0, -3.0]"
                ];
            /// Round to the nearest integer; ties round to the even one.
            ///
            /// The real and imaginary parts of complex numbers are rounded separately.
            RoundEven round_half_even "round_half_even" Same (Composed(Composed::RoundEven)) 1 (-3.0, 3.0)
                "round" [">>> nx.round([0.5, 1.5, 2.5]).tolist()" "[0.0, 2.0, 2.0]"];
            /// Return whether each element is NaN.
            IsNan is_nan "is_nan" Predicate (Composed(Composed::IsNan)) 1 (-3.0, 3.0)
                "isnan" [">>> nx.isnan([1.0, float(\"nan\")]).tolist()" "[False, True]"];
            /// Return whether each element is infinite.
            IsInfinity is_infinity "is_infinity" Predicate (Composed(Composed::IsInfinity)) 1 (-3.0, 3.0)
                "isinf" [">>> nx.isinf([1.0, float(\"-inf\")]).tolist()" "[False, True]"];
            /// Return whether each element is zero.
            LogicalNot logical_not "logical_not" Predicate (Composed(Composed::LogicalNot)) 1 (-3.0, 3.0)
                "logical_not" [">>> nx.logical_not([0, 1, 2]).tolist()" "[True, False, False]"];
            /// Invert every bit; the operator ``~``.
            ///
            /// A boolean is negated.
            BitwiseNot bitwise_not "bitwise_not" Bits (Direct("stablehlo.not")) 1 (-3.0, 3.0)
                "bitwise_invert" [">>> nx.bitwise_invert([0, 1]).tolist()" "[-1, -2]"];
            /// Count the bits that are one.
            PopulationCount population_count "population_count" Int (Direct("stablehlo.popcnt")) 1 (-3.0, 3.0)
                "population_count" [">>> nx.population_count([0, 7, 8]).tolist()" "[0, 3, 1]"];
            /// Count the zero bits above the highest one bit.
            CountLeadingZeros count_leading_zeros "count_leading_zeros" Int (Direct("stablehlo.count_leading_zeros")) 1 (-3.0, 3.0)
                "count_leading_zeros" [
                    ">>> nx.count_leading_zeros([0, 1, -1]).tolist()"
                    "[32, 31, 0]"
                ];
            /// Return the real part of each element.
            Real real "real" Part (Composed(Composed::Real)) 1 (-3.0, 3.0)
                "real" [">>> nx.real([1 + 2j, 3 - 4j]).tolist()" "[1.0, 3.0]"];
            /// Return the imaginary part of each element.
            ///
            /// The result is zero for real numbers.
            Imag imag "imag" Part (Composed(Composed::Imag)) 1 (-3.0, 3.0)
                "imag" [">>> nx.imag([1 + 2j, 3 - 4j]).tolist()" "[2.0, -4.0]"];
            /// Return the complex conjugate of each element.
            Conjugate conjugate "conjugate" Complex (Composed(Composed::Conjugate)) 1 (-3.0, 3.0)
                "conj" [">>> nx.conj([1 + 2j]).tolist()" "[(1-2j)]"];
        }
    };
}

/// Calls a macro with every binary op: `doc, Variant, method, "name", Class, Lowering, operations for an
/// element, "public name" [lines of examples in Python]`.
#[macro_export]
macro_rules! for_each_binary {
    ($callback:ident) => {
        $callback! {
            /// Add element by element; the operator ``+``.
            Add add "add" Arithmetic (Direct("stablehlo.add")) 1
                "add" [">>> nx.add([1, 2], 0.5).tolist()" "[1.5, 2.5]"];
            /// Subtract element by element; the operator ``-``.
            Subtract subtract "subtract" Arithmetic (Direct("stablehlo.subtract")) 1
                "subtract" [">>> nx.subtract([3, 4], [1, 2]).tolist()" "[2, 2]"];
            /// Multiply element by element; the operator ``*``.
            Multiply multiply "multiply" Arithmetic (Direct("stablehlo.multiply")) 1
                "multiply" [">>> nx.multiply([[1], [2]], [3, 4]).tolist()" "[[3, 4], [6, 8]]"];
            /// Raise to a power; the operator ``**``.
            ///
            /// An integer raised to a negative power is 1 for 1, ±1 for -1, else 0: convert one of
            /// the two to floats for fractions.
            Pow pow "pow" Arithmetic (Composed(Composed::Pow)) 20
                "pow" [">>> nx.pow([1, 2, 3], 2).tolist()" "[1, 4, 9]"];
            /// Divide element by element; the operator ``/``.
            Divide divide "divide" Float (Direct("stablehlo.divide")) 4
                "divide" [">>> nx.divide([1, 2], 4).tolist()" "[0.25, 0.5]"];
            /// Return the angle in radians of the point (x2, x1).
            ///
            /// For complex numbers, the result is ``-i log((x2 + i x1) / sqrt(x1^2 + x2^2))``.
            Atan2 atan2 "atan2" Float (Direct("stablehlo.atan2")) 20
                "atan2" [
                    ">>> nx.atan2([1.0, -1.0], [-1.0, 1.0]).tolist()"
                    "[2.356194496154785, -0.7853981852531433]"
                ];
            /// Return the remainder of the division rounded toward zero.
            ///
            /// A result that is not zero has the sign of the dividend, as in C.
            Remainder remainder "remainder" Ordered (Composed(Composed::Remainder)) 8
                "fmod" [">>> nx.fmod([7, -7], 3).tolist()" "[1, -1]"];
            /// Divide integers and round toward zero.
            Quotient quotient "quotient" Int (Composed(Composed::Quotient)) 4
                "quotient" [">>> nx.quotient([7, -7], 2).tolist()" "[3, -3]"];
            /// Return the larger of two elements; NaN if one of them is NaN.
            Max max "max" Ordered (Direct("stablehlo.maximum")) 1
                "maximum" [">>> nx.maximum([1, 5], 3).tolist()" "[3, 5]"];
            /// Return the smaller of two elements; NaN if one of them is NaN.
            Min min "min" Ordered (Direct("stablehlo.minimum")) 1
                "minimum" [">>> nx.minimum([1, 5], 3).tolist()" "[1, 3]"];
            /// Keep the bits that both have; the operator ``&``.
            BitwiseAnd bitwise_and "bitwise_and" Bits (Direct("stablehlo.and")) 1
                "bitwise_and" [">>> nx.bitwise_and(12, 10).item()" "8"];
            /// Join the bits of both; the operator ``|``.
            BitwiseOr bitwise_or "bitwise_or" Bits (Direct("stablehlo.or")) 1
                "bitwise_or" [">>> nx.bitwise_or(12, 10).item()" "14"];
            /// Keep the bits that one of the two has; the operator ``^``.
            BitwiseXor bitwise_xor "bitwise_xor" Bits (Direct("stablehlo.xor")) 1
                "bitwise_xor" [">>> nx.bitwise_xor(12, 10).item()" "6"];
            /// Shift bits to the left; the operator ``<<``.
            ///
            /// Zero once all bits have been shifted out.
            LeftShift left_shift "left_shift" Int (Direct("stablehlo.shift_left")) 1
                "bitwise_left_shift" [
                    ">>> nx.bitwise_left_shift(1, [0, 1, 4]).tolist()"
                    "[1, 2, 16]"
                ];
            /// Shift bits to the right; the operator ``>>``.
            ///
            /// Signed integers keep their sign.
            RightShift right_shift "right_shift" Int (Composed(Composed::RightShift)) 1
                "bitwise_right_shift" [">>> nx.bitwise_right_shift([-8, 8], 1).tolist()" "[-4, 4]"];
            /// Return whether the elements are equal; the operator ``==``.
            ///
            /// NaN is not equal to any number, including NaN.
            Equal equal "equal" Equality (Compare("EQ")) 1
                "equal" [">>> nx.equal([1, 2], 2).tolist()" "[False, True]"];
            /// Return whether the elements differ; the operator ``!=``.
            NotEqual not_equal "not_equal" Equality (Compare("NE")) 1
                "not_equal" [">>> nx.not_equal([1, 2], 2).tolist()" "[True, False]"];
            /// Return whether the first element is larger; the operator ``>``.
            Greater greater "greater" Order (Compare("GT")) 1
                "greater" [">>> nx.greater([1, 2], 1).tolist()" "[False, True]"];
            /// Return whether the first element is smaller; the operator ``<``.
            Less less "less" Order (Compare("LT")) 1
                "less" [">>> nx.less([1, 2], 2).tolist()" "[True, False]"];
            /// Return whether the first element is larger or equal; the operator ``>=``.
            GreaterEqual greater_equal "greater_equal" Order (Compare("GE")) 1
                "greater_equal" [">>> nx.greater_equal([1, 2], 2).tolist()" "[False, True]"];
            /// Return whether the first element is smaller or equal; the operator ``<=``.
            LessEqual less_equal "less_equal" Order (Compare("LE")) 1
                "less_equal" [">>> nx.less_equal([1, 2], 1).tolist()" "[True, False]"];
            /// Return whether both elements are nonzero.
            LogicalAnd logical_and "logical_and" Logical (Composed(Composed::LogicalAnd)) 1
                "logical_and" [">>> nx.logical_and([0, 1, 2], 1).tolist()" "[False, True, True]"];
            /// Return whether at least one of the elements is nonzero.
            LogicalOr logical_or "logical_or" Logical (Composed(Composed::LogicalOr)) 1
                "logical_or" [">>> nx.logical_or([0, 1], 0).tolist()" "[False, True]"];
            /// Return whether exactly one of the elements is nonzero.
            LogicalXor logical_xor "logical_xor" Logical (Composed(Composed::LogicalXor)) 1
                "logical_xor" [">>> nx.logical_xor([0, 1], 1).tolist()" "[True, False]"];
            /// Make complex numbers of their parts.
            ///
            /// Infinities and NaN of one part leave the other alone.
            Complex complex "complex" Parts (Composed(Composed::Complex)) 1
                "complex" [">>> nx.complex([1.0, 2.0], -1.0).tolist()" "[(1-1j), (2-1j)]"];
        }
    };
}

/// Calls a macro with every function of one operand that is composed of ops: `doc, method, Class,
/// "public name" [lines of examples in Python]`. The class is for documentation only.
#[macro_export]
macro_rules! for_each_composed_unary {
    ($callback:ident) => {
        $callback! {
            /// Return the square of each element.
            square Same "square" [">>> nx.square([1, -2, 3]).tolist()" "[1, 4, 9]"];
            /// Divide one by each element.
            reciprocal Float "reciprocal" [">>> nx.reciprocal([2.0, 4.0]).tolist()" "[0.5, 0.25]"];
            /// Return whether each element is neither infinite nor NaN.
            is_finite Predicate "isfinite" [
                ">>> nx.isfinite([1.0, float(\"inf\"), float(\"nan\")]).tolist()"
                "[True, False, False]"
            ];
            /// Return whether the sign bit of each element is set, including zeros and NaN.
            sign_bit RealPredicate "signbit" [
                ">>> nx.signbit([1.0, -0.0]).tolist()"
                "[False, True]"
            ];
            /// Return the logarithm to base 2 of each element.
            log2 Float "log2" [">>> nx.log2([1.0, 8.0]).tolist()" "[0.0, 3.0]"];
            /// Return the logarithm to base 10 of each element.
            log10 Float "log10" [">>> nx.log10([1.0, 100.0]).tolist()" "[0.0, 2.0]"];
            /// Return the logarithm of the absolute value of the gamma function of each element.
            ///
            /// It is infinite at zero and at negative whole numbers. Computed by Lanczos' approximation
            /// (SIAM Journal on Numerical Analysis, 1964), and by a Taylor series from 0.5 to 2.5, around
            /// the zeros at 1 and 2. The zeros at negative numbers have only an absolute accuracy.
            log_gamma RealFloat "lgamma" [
                ">>> [round(x, 4) for x in nx.lgamma([0.5, 5.0]).tolist()]"
                "[0.5724, 3.1781]"
            ];
            /// Return the derivative of `lgamma` of each element.
            ///
            /// It is infinite at zero, and NaN at negative whole numbers. Computed by Lanczos'
            /// approximation, as `lgamma` is.
            digamma RealFloat "digamma" [
                ">>> [round(x, 4) for x in nx.digamma([1.0, 5.0]).tolist()]"
                "[-0.5772, 1.5061]"
            ];
            /// Return the angle in radians of each complex element.
            phase Part "phase" [
                ">>> nx.phase([1j, -1 + 0j]).tolist()"
                "[1.5707963705062866, 3.1415927410125732]"
            ];
            /// Round each element toward zero.
            truncate SameReal "trunc" [">>> nx.trunc([1.5, -1.5]).tolist()" "[1.0, -1.0]"];
        }
    };
}

/// Calls a macro with every function of two operands that is composed of ops, as
/// [`for_each_composed_unary`] does.
#[macro_export]
macro_rules! for_each_composed_binary {
    ($callback:ident) => {
        $callback! {
            /// Divide and round toward minus infinity; the operator ``//``.
            ///
            /// The quotient of an integer by zero is unspecified, and not an error.
            floor_divide Ordered "floor_divide" [
                ">>> nx.floor_divide([7, -7], 2).tolist()"
                "[3, -4]"
            ];
            /// Return the remainder of `floor_divide`; the operator ``%``.
            ///
            /// A result that is not zero has the sign of the divisor, as in Python. `fmod` is the
            /// remainder with the sign of the dividend.
            floor_remainder Ordered "remainder" [">>> nx.remainder([7, -7], 3).tolist()" "[1, 2]"];
            /// Return the magnitude of the first with the sign of the second.
            copy_sign RealFloat "copysign" [
                ">>> nx.copysign([1.0, -2.0], -0.0).tolist()"
                "[-1.0, -2.0]"
            ];
            /// Return log(exp(x1) + exp(x2)) without overflow.
            log_add_exp RealFloat "logaddexp" [
                ">>> nx.logaddexp(1000.0, 1000.0).item()"
                "1000.6931762695312"
            ];
            /// Return the distance of the point (x1, x2) from the origin without overflow.
            hypot RealFloat "hypot" [">>> nx.hypot(3.0, 4.0).item()" "5.0"];
            /// Return the next representable number after the first operand toward the second.
            ///
            /// If the operands are equal, the result is the second one.
            next_after RealFloat "nextafter" [
                ">>> nx.nextafter(1.0, [0.0, 2.0]).tolist()"
                "[0.9999999403953552, 1.0000001192092896]"
            ];
        }
    };
}

macro_rules! define_elementwise {
    ($op:ident $classes:ident $doc:literal;
     $($(#[$variant_doc:meta])* $variant:ident $name:literal $class:ident ($($lowering:tt)*) $operations:literal $public:literal;)*) => {
        #[doc = $doc]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, serde::Serialize, serde::Deserialize)]
        pub enum $op { $($(#[$variant_doc])* $variant,)* }

        impl $op {
            /// Every op of the table, in its order.
            pub const ALL: &[$op] = &[$($op::$variant),*];

            /// The name in printed expressions, which is the name in Nx.
            pub const fn name(self) -> &'static str {
                match self { $($op::$variant => $name),* }
            }

            /// The name of the Python function, which follows the Array API standard if the standard
            /// has the function.
            pub const fn public_name(self) -> &'static str {
                match self { $($op::$variant => $public),* }
            }

            /// The class of the operand dtypes and of the result dtype.
            pub const fn class(self) -> $classes {
                match self { $($op::$variant => $classes::$class),* }
            }

            /// How StableHLO spells it.
            pub const fn lowering(self) -> Lowering {
                match self { $($op::$variant => Lowering::$($lowering)*),* }
            }

            /// The operations of one element: 1 for an instruction of a vector unit, 4 for a
            /// division or a root, 10 for a library function without branches, and 20 for one that is
            /// composed of two.
            pub const fn operations(self) -> u64 {
                match self { $($op::$variant => $operations),* }
            }
        }
    };
}

macro_rules! define_unary {
    ($($(#[$doc:meta])* $variant:ident $method:ident $name:literal $class:ident ($($lowering:tt)*) $operations:literal $domain:tt $public:literal [$($example:literal)*];)*) => {
        define_elementwise! {
            UnaryOp UnaryClass "An element-wise op of one operand.";
            $($(#[$doc])* $variant $name $class ($($lowering)*) $operations $public;)*
        }

        impl UnaryOp {
            /// An interval of the real line on which the op is smooth and well conditioned;
            /// tests draw their samples from it.
            pub const fn domain(self) -> (f64, f64) {
                match self { $(UnaryOp::$variant => $domain),* }
            }
        }
    };
}
for_each_unary!(define_unary);

macro_rules! define_binary {
    ($($(#[$doc:meta])* $variant:ident $method:ident $name:literal $class:ident ($($lowering:tt)*) $operations:literal $public:literal [$($example:literal)*];)*) => {
        define_elementwise! {
            BinaryOp BinaryClass "An element-wise op of two operands, which broadcast against each other.";
            $($(#[$doc])* $variant $name $class ($($lowering)*) $operations $public;)*
        }
    };
}
for_each_binary!(define_binary);

impl BinaryOp {
    /// Returns the op that is equal to this one with exchanged operands: `>` for `<`, and a
    /// commutative op itself.
    pub fn swap_operands(self) -> Option<BinaryOp> {
        match self {
            BinaryOp::Less => Some(BinaryOp::Greater),
            BinaryOp::LessEqual => Some(BinaryOp::GreaterEqual),
            BinaryOp::Greater => Some(BinaryOp::Less),
            BinaryOp::GreaterEqual => Some(BinaryOp::LessEqual),
            BinaryOp::Add
            | BinaryOp::Multiply
            | BinaryOp::Max
            | BinaryOp::Min
            | BinaryOp::BitwiseAnd
            | BinaryOp::BitwiseOr
            | BinaryOp::BitwiseXor
            | BinaryOp::Equal
            | BinaryOp::NotEqual
            | BinaryOp::LogicalAnd
            | BinaryOp::LogicalOr
            | BinaryOp::LogicalXor => Some(self),
            BinaryOp::Subtract
            | BinaryOp::Pow
            | BinaryOp::Divide
            | BinaryOp::Atan2
            | BinaryOp::Remainder
            | BinaryOp::Quotient
            | BinaryOp::LeftShift
            | BinaryOp::RightShift
            | BinaryOp::Complex => None,
        }
    }
}
