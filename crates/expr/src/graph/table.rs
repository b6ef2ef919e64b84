//! The op table: one row per element-wise op and per uniform reduction.
//!
//! Everything that can be said about such an op in one line is said here, once: its name in
//! expression text, which dtypes it takes and gives, how StableHLO spells it, and where test
//! samples are drawn from. The enums, their names, the builder methods and the lists that tests
//! iterate are generated from these rows, so a new row is known everywhere at once. What needs
//! more than a word (the meaning of an op, its derivative) is an arm of an exhaustive match in
//! `nxla-eval` and `nxla-grad`, which the compiler asks for.

/// Which dtypes a unary op accepts, and which one it gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnaryClass {
    /// Integers become `f32`; floats and complex numbers stay.
    Float,
    /// Like [`UnaryClass::Float`], but complex numbers are refused.
    RealFloat,
    /// Any dtype, unchanged (`pred` counts as `u8`).
    Same,
    /// Any dtype but complex, unchanged.
    SameReal,
    /// Integers only, unchanged; `pred` stays `pred` where the op has a meaning on truth values.
    Bits,
    /// Integers only, unchanged.
    Int,
    /// Any dtype, giving `pred`.
    Predicate,
    /// Complex numbers give the float of half their width, everything else is unchanged.
    Magnitude,
    /// Complex numbers give the float of half their width, integers `f32`, floats themselves.
    Part,
    /// Everything becomes complex.
    Complex,
}

/// Which dtypes a binary op accepts, and which one it gives.
///
/// "Promoted" is [`nxla_tensor::promote`] of the two operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BinaryClass {
    /// Any dtypes, giving the promoted one.
    Arithmetic,
    /// Any dtypes but complex, giving the promoted one.
    Ordered,
    /// Any dtypes, giving the promoted one as a float.
    Float,
    /// Integers only, giving the promoted one.
    Int,
    /// Integers, giving the promoted one; two `pred` operands give `pred`.
    Bits,
    /// Any dtypes, giving `pred`.
    Equality,
    /// Any dtypes but complex, giving `pred`.
    Order,
    /// Any dtypes (zero is false), giving `pred`.
    Logical,
    /// Any dtypes but complex, giving the complex one that holds the promoted one.
    Parts,
}

/// How an element-wise op is written in StableHLO.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lowering {
    /// One operation whose operands and result share a dtype.
    Direct(&'static str),
    /// `stablehlo.compare` with this direction.
    Compare(&'static str),
    /// A short composition, written out by the lowering.
    Composed(Composed),
}

/// The element-wise ops that StableHLO and CHLO have no single operation for.
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
    Quotient,
    Remainder,
    Complex,
}

/// Calls a macro with every unary op:
/// `doc, Variant, method, "name", Class, Lowering, (low, high) of test samples`.
#[macro_export]
macro_rules! for_each_unary {
    ($callback:ident) => {
        $callback! {
            /// `e^x`.
            Exp exp "exp" Float (Direct("stablehlo.exponential")) (-3.0, 3.0);
            /// `e^x - 1`, exact near zero.
            Expm1 expm1 "expm1" Float (Direct("stablehlo.exponential_minus_one")) (-3.0, 3.0);
            /// Natural logarithm.
            Log log "log" Float (Direct("stablehlo.log")) (0.1, 5.0);
            /// `log(1 + x)`, exact near zero.
            Log1p log1p "log1p" Float (Direct("stablehlo.log_plus_one")) (-0.9, 5.0);
            /// The logistic function `1 / (1 + e^-x)`.
            Sigmoid sigmoid "sigmoid" Float (Direct("stablehlo.logistic")) (-4.0, 4.0);
            /// Sine of an angle in radians.
            Sin sin "sin" Float (Direct("stablehlo.sine")) (-3.0, 3.0);
            /// Cosine of an angle in radians.
            Cos cos "cos" Float (Direct("stablehlo.cosine")) (-3.0, 3.0);
            /// Tangent of an angle in radians.
            Tan tan "tan" Float (Direct("chlo.tan")) (-1.2, 1.2);
            /// Inverse sine, in radians.
            Asin asin "asin" Float (Direct("chlo.asin")) (-0.9, 0.9);
            /// Inverse cosine, in radians.
            Acos acos "acos" Float (Direct("chlo.acos")) (-0.9, 0.9);
            /// Inverse tangent, in radians.
            Atan atan "atan" Float (Direct("chlo.atan")) (-3.0, 3.0);
            /// Hyperbolic sine.
            Sinh sinh "sinh" Float (Direct("chlo.sinh")) (-3.0, 3.0);
            /// Hyperbolic cosine.
            Cosh cosh "cosh" Float (Direct("chlo.cosh")) (-3.0, 3.0);
            /// Hyperbolic tangent.
            Tanh tanh "tanh" Float (Direct("stablehlo.tanh")) (-3.0, 3.0);
            /// Inverse hyperbolic sine.
            Asinh asinh "asinh" Float (Direct("chlo.asinh")) (-3.0, 3.0);
            /// Inverse hyperbolic cosine, for `x >= 1`.
            Acosh acosh "acosh" Float (Direct("chlo.acosh")) (1.2, 5.0);
            /// Inverse hyperbolic tangent, for `|x| <= 1`.
            Atanh atanh "atanh" Float (Direct("chlo.atanh")) (-0.9, 0.9);
            /// Square root.
            Sqrt sqrt "sqrt" Float (Direct("stablehlo.sqrt")) (0.1, 5.0);
            /// Reciprocal of the square root.
            Rsqrt rsqrt "rsqrt" Float (Direct("stablehlo.rsqrt")) (0.1, 5.0);
            /// Cube root, also of negative numbers.
            Cbrt cbrt "cbrt" Float (Direct("stablehlo.cbrt")) (0.1, 5.0);
            /// The error function, `2/sqrt(pi)` times the integral of `e^(-t^2)` from 0 to `x`.
            Erf erf "erf" RealFloat (Direct("chlo.erf")) (-2.0, 2.0);
            /// `1 - erf(x)`, exact for large `x`.
            Erfc erfc "erfc" RealFloat (Direct("chlo.erfc")) (-2.0, 2.0);
            /// Inverse of the error function, for `|x| <= 1`.
            ErfInv erf_inv "erf_inv" RealFloat (Direct("chlo.erf_inv")) (-0.9, 0.9);
            /// `-x`; unsigned integers wrap.
            Negate negate "negate" Same (Composed(Composed::Negate)) (-3.0, 3.0);
            /// -1, 0 or 1 by the sign of `x`; `x / |x|` for complex numbers.
            Sign sign "sign" Same (Composed(Composed::Sign)) (-3.0, 3.0);
            /// Absolute value.
            Abs abs "abs" Magnitude (Composed(Composed::Abs)) (-3.0, 3.0);
            /// Largest integer not above `x`.
            Floor floor "floor" SameReal (Composed(Composed::Floor)) (-3.0, 3.0);
            /// Smallest integer not below `x`.
            Ceil ceil "ceil" SameReal (Composed(Composed::Ceil)) (-3.0, 3.0);
            /// Nearest integer, halves away from zero.
            Round round "round" SameReal (Composed(Composed::Round)) (-3.0, 3.0);
            /// Whether `x` is not a number.
            IsNan is_nan "is_nan" Predicate (Composed(Composed::IsNan)) (-3.0, 3.0);
            /// Whether `x` is positive or negative infinity.
            IsInfinity is_infinity "is_infinity" Predicate (Composed(Composed::IsInfinity)) (-3.0, 3.0);
            /// Whether `x` is zero.
            LogicalNot logical_not "logical_not" Predicate (Composed(Composed::LogicalNot)) (-3.0, 3.0);
            /// Every bit flipped; the negation of a truth value.
            BitwiseNot bitwise_not "bitwise_not" Bits (Direct("stablehlo.not")) (-3.0, 3.0);
            /// How many bits are set.
            PopulationCount population_count "population_count" Int (Direct("stablehlo.popcnt")) (-3.0, 3.0);
            /// How many leading bits are zero.
            CountLeadingZeros count_leading_zeros "count_leading_zeros" Int (Direct("stablehlo.count_leading_zeros")) (-3.0, 3.0);
            /// The real part.
            Real real "real" Part (Composed(Composed::Real)) (-3.0, 3.0);
            /// The imaginary part; zero for real numbers.
            Imag imag "imag" Part (Composed(Composed::Imag)) (-3.0, 3.0);
            /// The complex conjugate.
            Conjugate conjugate "conjugate" Complex (Composed(Composed::Conjugate)) (-3.0, 3.0);
        }
    };
}

/// Calls a macro with every binary op: `doc, Variant, method, "name", Class, Lowering`.
#[macro_export]
macro_rules! for_each_binary {
    ($callback:ident) => {
        $callback! {
            /// `x + y`.
            Add add "add" Arithmetic (Direct("stablehlo.add"));
            /// `x - y`.
            Subtract subtract "subtract" Arithmetic (Direct("stablehlo.subtract"));
            /// `x * y`.
            Multiply multiply "multiply" Arithmetic (Direct("stablehlo.multiply"));
            /// `x ^ y`; an integer raised to a negative power is 1 for 1, ±1 for -1, else 0.
            Pow pow "pow" Arithmetic (Composed(Composed::Pow));
            /// `x / y` as a float.
            Divide divide "divide" Float (Direct("stablehlo.divide"));
            /// The angle of the point `(y, x)`, in radians; `-i log((x + iy) / sqrt(x^2 + y^2))` of
            /// complex numbers.
            Atan2 atan2 "atan2" Float (Direct("stablehlo.atan2"));
            /// Remainder of the division truncated toward zero; it has the sign of `x`.
            Remainder remainder "remainder" Ordered (Composed(Composed::Remainder));
            /// Integer division truncated toward zero.
            Quotient quotient "quotient" Int (Composed(Composed::Quotient));
            /// The larger of the two; NaN if either is.
            Max max "max" Ordered (Direct("stablehlo.maximum"));
            /// The smaller of the two; NaN if either is.
            Min min "min" Ordered (Direct("stablehlo.minimum"));
            /// Bits set in both.
            BitwiseAnd bitwise_and "bitwise_and" Bits (Direct("stablehlo.and"));
            /// Bits set in either.
            BitwiseOr bitwise_or "bitwise_or" Bits (Direct("stablehlo.or"));
            /// Bits set in exactly one.
            BitwiseXor bitwise_xor "bitwise_xor" Bits (Direct("stablehlo.xor"));
            /// `x` shifted left by `y` bits; zero once `y` reaches the width.
            LeftShift left_shift "left_shift" Int (Direct("stablehlo.shift_left"));
            /// `x` shifted right by `y` bits, keeping the sign of signed integers.
            RightShift right_shift "right_shift" Int (Composed(Composed::RightShift));
            /// `x == y`; false if either is NaN.
            Equal equal "equal" Equality (Compare("EQ"));
            /// `x != y`; true if either is NaN.
            NotEqual not_equal "not_equal" Equality (Compare("NE"));
            /// `x > y`.
            Greater greater "greater" Order (Compare("GT"));
            /// `x < y`.
            Less less "less" Order (Compare("LT"));
            /// `x >= y`.
            GreaterEqual greater_equal "greater_equal" Order (Compare("GE"));
            /// `x <= y`.
            LessEqual less_equal "less_equal" Order (Compare("LE"));
            /// Whether both are non-zero.
            LogicalAnd logical_and "logical_and" Logical (Composed(Composed::LogicalAnd));
            /// Whether either is non-zero.
            LogicalOr logical_or "logical_or" Logical (Composed(Composed::LogicalOr));
            /// Whether exactly one is non-zero.
            LogicalXor logical_xor "logical_xor" Logical (Composed(Composed::LogicalXor));
            /// `x + iy`; infinities and NaN of one part leave the other alone.
            Complex complex "complex" Parts (Composed(Composed::Complex));
        }
    };
}

macro_rules! define_unary {
    ($($(#[$doc:meta])* $variant:ident $method:ident $name:literal $class:ident ($($lowering:tt)*) $domain:tt;)*) => {
        /// An element-wise op of one operand.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, serde::Serialize, serde::Deserialize)]
        pub enum UnaryOp { $($(#[$doc])* $variant,)* }

        impl UnaryOp {
            /// Every unary op, in table order.
            pub const ALL: &[UnaryOp] = &[$(UnaryOp::$variant),*];

            /// The name in expression text, which is Nx's.
            pub const fn name(self) -> &'static str {
                match self { $(UnaryOp::$variant => $name),* }
            }

            /// The dtypes it accepts and gives.
            pub const fn class(self) -> UnaryClass {
                match self { $(UnaryOp::$variant => UnaryClass::$class),* }
            }

            /// How StableHLO spells it.
            pub const fn lowering(self) -> Lowering {
                match self { $(UnaryOp::$variant => Lowering::$($lowering)*),* }
            }

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
    ($($(#[$doc:meta])* $variant:ident $method:ident $name:literal $class:ident ($($lowering:tt)*);)*) => {
        /// An element-wise op of two operands, which broadcast against each other.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, serde::Serialize, serde::Deserialize)]
        pub enum BinaryOp { $($(#[$doc])* $variant,)* }

        impl BinaryOp {
            /// Every binary op, in table order.
            pub const ALL: &[BinaryOp] = &[$(BinaryOp::$variant),*];

            /// The name in expression text, which is Nx's.
            pub const fn name(self) -> &'static str {
                match self { $(BinaryOp::$variant => $name),* }
            }

            /// The dtypes it accepts and gives.
            pub const fn class(self) -> BinaryClass {
                match self { $(BinaryOp::$variant => BinaryClass::$class),* }
            }

            /// How StableHLO spells it.
            pub const fn lowering(self) -> Lowering {
                match self { $(BinaryOp::$variant => Lowering::$($lowering)*),* }
            }
        }
    };
}
for_each_binary!(define_binary);
