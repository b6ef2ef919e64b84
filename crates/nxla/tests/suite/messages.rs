//! Error messages: function, requirement, value and source line.

use std::cell::RefCell;

use crate::common::{compilers, numbers};
use nxla::prelude::*;
use nxla::runtime::RawTensor;
use nxla::{
    Choice, Covariance, Device, Draw, Error, ErrorClass, FftNorm, Norm, Options, Pool, Quantile,
    cond, if_, runtime_call, when,
};

#[test]
fn debug_prints_messages_and_alternate_debug_fields() {
    let wrong = jit(|x: Expr| x.dot(Tensor::from([1.0f32; 5])));
    let errors = [
        wrong.call(Tensor::from([1.0f32, 2.0])).unwrap_err(),
        Error::Usage("of no use".into()),
        Error::Hook { name: Some("loss".into()), error: "it grows".into() },
        Error::from(RawTensor::new(vec![1, 2], [3]).unwrap_err()),
        jit(|x: Expr| x + 1).set("speed", 11).call(1).unwrap_err(),
    ];
    let names = ["Expr(", "Usage(", "Hook {", "Tensor(", "Options("];
    for (error, name) in errors.iter().zip(names) {
        assert_eq!(format!("{error:?}"), error.to_string());
        let structure = format!("{error:#?}");
        assert!(structure.starts_with(name), "{structure}");
    }
    assert!(format!("{:?}", errors[0]).contains("messages.rs:"), "{:?}", errors[0]);
}

#[test]
fn debug_output_of_device_tensors_has_the_type_and_the_device() {
    if !compilers().contains(&"xla") {
        return;
    }
    let x = Tensor::from([[1, 2]]).with_names(["row", "column"]).unwrap();
    let x = jit(|x: Expr| x + 1).compiler("xla").call(x).unwrap();
    let expected = format!("DeviceTensor(s32[row: 1][column: 2] on {})", x.device());
    assert_eq!(format!("{x:?}"), expected);
}

#[test]
fn errors_of_other_layers_print_messages() {
    fn assert_prints<T>(result: Result<T, impl std::error::Error>) {
        let error = result.err().unwrap();
        assert_eq!(format!("{error:?}"), error.to_string());
    }
    assert_prints(RawTensor::new(vec![1, 2], [3]));
    assert_prints("f33".parse::<DType>());
    assert_prints(nxla::graph::serialize::from_bytes(b"ELF"));
    assert_prints(nxla::host::Number::Int(1 << 64).default_dtype());
    #[cfg(feature = "import")]
    assert_prints(nxla::import::stablehlo::input_types("no module"));
}

#[test]
fn settings_are_checked_before_the_function_is_traced() {
    let untraced = |_: Expr| -> Expr { panic!("the function is traced") };
    let wrong = jit(untraced).compiler("evaluator").set("speed", 11);
    assert_eq!(wrong.call(4).unwrap_err().class(), ErrorClass::Options);
    let types = TensorType::scalar(DType::S32);
    assert!(wrong.compile(&types).is_err());
    assert!(wrong.stages(&types, &nxla::split::Policy::EveryOps(1)).is_err());
}

#[test]
fn options_report_backend_and_partitions() {
    let options = Options::new().compiler("evaluator");
    assert_eq!(options.results_device().unwrap(), Device::HOST);
    assert_eq!(options.partitions().unwrap().len(), 1);
    for options in [options.set("speed", 11), Options::new().compiler("unknown")] {
        assert_eq!(options.results_device().unwrap_err().class(), ErrorClass::Options);
    }
}

#[test]
fn runtime_call_errors_name_the_operation() {
    for compiler in compilers() {
        let f = jit(|x: Expr| -> Expr {
            let fail = |_: Tensor| Err::<Tensor, _>("no such table");
            runtime_call(x, TensorType::scalar(DType::F32), fail)
        });
        let error = f.compiler(compiler).call(1.0f32).unwrap_err();
        let text = error.to_string();
        let start = "runtime_call: the host function failed: no such table";
        assert!(text.starts_with(start), "{compiler}: {text}");
        assert_eq!(error.class(), ErrorClass::Runtime);
    }
}

#[test]
fn values_of_other_traces_are_reported_at_their_use() {
    let escaped = RefCell::new(None);
    jit(|x: Expr| {
        *escaped.borrow_mut() = Some(x.clone());
        x
    })
    .call(1.0f32)
    .unwrap();
    let escaped = escaped.take().unwrap();
    let error = jit(move |x: Expr| x + &escaped).call(1.0f32).unwrap_err().to_string();
    assert!(
        error.contains("a value of another trace") && error.contains("messages.rs:"),
        "{error}"
    );
}

#[test]
fn branches_have_the_same_shapes() {
    let x = Tensor::from([[1.0f32, 2.0, 3.0]]);
    let assert_branch_error = |result: nxla::Result<Tensor>, branch: usize, found: &str| {
        let error = result.unwrap_err();
        assert_eq!(error.class(), ErrorClass::Shape);
        let start = format!(
            "cond: branch: expected f32[1][3] as in the first branch (use `broadcast_to`); got \
             {found} in result of branch {branch}"
        );
        assert!(error.to_string().starts_with(&start), "{error}");
    };
    assert_branch_error(
        jit(|x: Expr| cond(x.sum(), || x.clone(), || x.at(0))).call(&x),
        1,
        "f32[3]",
    );
    assert_branch_error(jit(|x: Expr| cond(x.sum(), || x.clone(), || x.sum())).call(&x), 1, "f32");
    let three = |x: Expr| {
        when(x.sum(), || x.clone()).or_when(x.at((0, 0)), || x.clone()).otherwise(|| x.sum())
    };
    assert_branch_error(jit(three).call(&x), 2, "f32");
    // Dtypes are promoted, and `if_` creates zeros of the shape of its branch.
    let mixed = jit(|x: Expr| cond(x.sum(), || x.clone(), || x.as_type(DType::F64)));
    assert_eq!(mixed.call(&x).unwrap().dtype(), DType::F64);
    assert_eq!(
        numbers(&jit(|x: Expr| if_(x.sum(), || x.clone())).call(&x).unwrap()),
        [1.0, 2.0, 3.0]
    );
}

#[test]
fn empty_random_ranges_are_errors() {
    let key = Tensor::random_key(0).unwrap();
    for range in [1.0..0.0, 0.5..0.5, 0.0..f64::NAN] {
        let eager = key.random_uniform(range.clone(), Draw::new([2])).unwrap_err().to_string();
        let traced = jit(move |key: Expr| key.random_uniform(range.clone(), Draw::new([2])).0);
        for error in [eager, traced.call(&key).unwrap_err().to_string()] {
            let start = "random_uniform: range: must have a start below its end; got ";
            assert!(error.starts_with(start), "{error}");
        }
    }
}

#[test]
fn random_key_errors_name_the_called_function() {
    let draw = || Draw::new([2]);
    let choice = || Choice { axis: Some(0), ..Choice::new(2) };
    macro_rules! errors {
        ($($name:ident($($argument:expr),*);)*) => {
            [$((
                stringify!($name),
                Tensor::from([1.0f32; 3]).$name($($argument),*).err().unwrap().to_string(),
                jit(|key: Expr| drop(key.$name($($argument),*)))
                    .call(Tensor::from([1.0f32; 3]))
                    .unwrap_err()
                    .to_string(),
            )),*]
        };
    }
    let cases = errors! {
        random_split(2);
        random_fold_in(3);
        initialize(nxla::initializers::glorot_uniform(), Draw::new([2, 2]));
        random_uniform(0.0..1.0, draw());
        random_normal(0.0, 1.0, draw());
        random_integers(0..3, draw());
        random_gumbel(draw());
        random_bernoulli(0.5, draw());
        random_exponential(1.0, draw());
        random_laplace(0.0, 1.0, draw());
        random_truncated_normal(0.0, 1.0, draw());
        random_gamma(1.0, draw());
        random_beta(1.0, 1.0, draw());
        random_poisson(1.0, draw());
        random_dirichlet(Tensor::from([1.0f32, 2.0]), draw());
        random_categorical(Tensor::from([1.0f32, 2.0]), 0, draw());
        random_multivariate_normal(
            Tensor::from([0.0f32]),
            Tensor::from([[1.0f32]]),
            Covariance::Cholesky,
            draw()
        );
        random_shuffle(Tensor::from([1, 2]), 0, false);
        random_choice(Tensor::from([1, 2]), choice());
        random_weighted_choice(Tensor::from([1, 2]), Tensor::from([0.5f32, 0.5]), choice());
        dropout(Tensor::from([1.0f32, 2.0]), 0.5);
    };
    let source = include_str!("../../src/ops/random.rs");
    let methods = source.lines().filter_map(|line| line.trim().strip_prefix("fn "));
    let with_key = methods.filter_map(|line| line.split_once("(key").map(|(name, _)| name));
    let tested: Vec<&str> = cases.iter().map(|(name, ..)| *name).collect();
    assert_eq!(with_key.collect::<Vec<_>>(), tested[..tested.len() - 1]);
    for (name, eager, traced) in cases {
        for error in [eager, traced] {
            let start = format!("{name}: key: expected a key, which is u32[2]; got f32[3]");
            assert!(error.starts_with(&start), "{name}: {error}");
        }
    }
}

#[test]
fn functions_take_up_to_twelve_arguments() {
    let seven = jit(|a: Expr, b: Expr, c: Expr, d: Expr, e: Expr, f: Expr, g: Expr| {
        a + b + c + d + e + f + g
    });
    assert_eq!(numbers(&seven.call((1, 2, 3, 4, 5, 6, 7)).unwrap()), [28.0]);
    #[rustfmt::skip]
    let twelve = jit(
        |a: Expr, b: Expr, c: Expr, d: Expr, e: Expr, f: Expr,
         g: Expr, h: Expr, i: Expr, j: Expr, k: Expr, l: Expr| {
            [a, b, c, d, e, f, g, h, i, j, k, l].into_iter().reduce(|x, y| x + y).unwrap()
        },
    );
    let found = twelve.call((1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)).unwrap();
    assert_eq!(numbers(&found), [78.0]);
}

#[test]
fn scalars_are_printed_on_one_line() {
    assert_eq!(Tensor::from(1.5f64).to_string(), "#nxla.Tensor<f64 1.5>");
    assert_eq!(Tensor::from(true).to_string(), "#nxla.Tensor<pred true>");
    assert_eq!(Tensor::from([7]).to_string(), "#nxla.Tensor<\n  s32[1]\n  [7]\n>");
}

/// Calls methods of `Tensor` and of `Expr` with an axis that the operand lacks, and checks that the
/// error starts with the name of the method.
macro_rules! reject_axis {
    ($x:ident: $($method:ident($($argument:expr),*);)*) => {
        $(
            let eager = $x.$method($($argument),*).err().expect(stringify!($method)).to_string();
            let f = jit(|x: Expr| {
                let _ = x.$method($($argument),*);
                x
            });
            let traced = f.call(&$x).err().expect(stringify!($method)).to_string();
            for error in [eager, traced] {
                assert!(error.starts_with(concat!(stringify!($method), ": ")), "{error}");
            }
        )*
    };
}

#[test]
fn axis_errors_start_with_the_called_method() {
    let x = Tensor::from([[4.0f32, 1.0, 1.0], [1.0, 5.0, 1.0], [1.0, 1.0, 6.0]]);
    let row = Tensor::from([1.0f32, 2.0, 3.0]);
    let index = Tensor::from([[0, 1, 2]; 3]);
    reject_axis! { x:
        sum_over(9); product_over(9); reduce_max_over(9); reduce_min_over(9); mean_over(9);
        all_over(9); any_over(9); count_nonzero(9); weighted_mean(&x, 9); variance(9, 0);
        standard_deviation(9, 0); logsumexp(9); scaled_logsumexp(&x, 9); median(9); mode(9);
        argmax(9); argmin(9); nan_sum(9); nan_mean(9); nan_variance(9, 0.0); nan_argmax(9);
        nan_argmin(9); quantile(0.5, 9, Quantile::default()); cumulative_sum(9);
        cumulative_sum_reverse(9); norm(Norm::Euclid, 9); fft(None, 9, FftNorm::Backward); ifft(None, 9, FftNorm::Backward);
        irfft(None, 9, FftNorm::Backward); rfft(None, 9, FftNorm::Backward); fftn(None, 9, FftNorm::Backward); ifftn(None, 9, FftNorm::Backward); rfftn(None, 9, FftNorm::Backward);
        irfftn(None, 9, FftNorm::Backward); fftshift(9); ifftshift([0, 9]); cross(&x, 9); flatten(9); squeeze(9); new_axis(9); swap_axes(0, 9);
        transpose([0, 9]); reverse(9); split(1, 9); repeat(&[2], 9); roll(1, 9); unstack(9);
        take(0, 9); take(&index, 9); take_along_axis(&index, 9); gather(&index, 9);
        indexed_add(&index, &x, 9); indexed_put(&index, &x, 9); diff(1, 9); sort(9); argsort(9);
        at_axis(0, 9); slice_along_axis(0, 1, 9); put_slice_along_axis(0, &x, 9); vecdot(&x, 9);
        nan_cumulative_sum(9); nan_cumulative_product(9); nan_standard_deviation(9, 0.0);
        hfft(None, 9, FftNorm::Backward); ihfft(None, 9, FftNorm::Backward);
        softmax(9); log_softmax(9); glu(9); one_hot(3, 9, DType::F32); layer_norm(9, 1e-5);
        affine_layer_norm(&row, &row, 9, 1e-5); rms_norm(&row, 9, 1e-5);
        group_norm(&row, &row, 3, 9, 1e-5); batch_norm(&row, &row, &row, &row, 9, 1e-5);
        softmax_cross_entropy(&x, 9); integer_cross_entropy(&index, 9); kl_divergence(&x, 9);
        cosine_similarity(&x, 9, 1e-8);
    }
    let key = Tensor::random_key(0).unwrap();
    reject_axis! { key:
        random_shuffle(&x, 9, false); random_categorical(&x, 9, Draw::new([3]));
        random_choice(&x, Choice { axis: Some(9), ..Choice::new(1) });
    }
}

#[test]
fn errors_inside_folds_name_the_inner_operation() {
    let x = Tensor::from([1.0f32, 2.0]);
    let error = x.reduce(0.0f32, (), |x, sum| (x + sum).softmax(7)).unwrap_err().to_string();
    assert!(error.starts_with("softmax: axis: "), "{error}");
    let error = x.reduce(0.0f32, 7, |x, sum| x + sum).unwrap_err().to_string();
    assert!(error.starts_with("reduce: axis: "), "{error}");
}

#[test]
fn eager_errors_have_the_line_of_the_caller() {
    let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
    let wide = Tensor::from([1.0f32, 2.0, 3.0]);
    let errors = [
        x.dot(&wide),
        &x + &wide,
        !&x,
        (x.chain() * 2 + &wide).done(),
        (Tensor::from([1.0f32, 2.0]) + x.chain().then(|x| x.sum_over(7))).done(),
        x.at((0, 0, 0)),
        x.slice(&nxla::Slice::new([0], [1])),
        x.put_slice(&wide, &[0, 0]),
        x.greater(0).unwrap().select(&x, &wide),
        Tensor::arange(0.0, 1.0, 0.0, DType::F32),
        Tensor::concatenate(&[&x, &wide], 0),
        x.random_normal(0.0, 1.0, Draw::new([2])).map(|(x, _)| x),
        x.reduce(0.0, 7, |x, sum| x + sum),
        x.window_reduce(0.0, &nxla::Window::new([2]), |x, sum| x + sum),
    ];
    for (at, result) in errors.into_iter().enumerate() {
        let error = result.expect_err(&at.to_string()).to_string();
        assert!(error.contains(" (messages.rs:"), "{at}: {error}");
    }
}

#[test]
fn messages_name_the_function_and_its_arguments() {
    let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
    let row = Tensor::from([1.0f32, 2.0]);
    let image = Tensor::zeros([1, 1, 4, 4], DType::F32).unwrap();
    let empty_window = Pool { window: vec![0, 2], ..Pool::default() };
    let cases: Vec<(&str, Option<Error>)> = vec![
        ("Tensor::new: elements: expected 4", Tensor::new(vec![1], [2, 2]).err()),
        ("item: expected exactly one element", x.item::<f32>().err()),
        ("to_vec: elements: must be read", x.to_vec::<u8>().err()),
        ("with_names: operation would", x.clone().with_names(["a", "a"]).err()),
        ("interpolate: fp: expected", row.interpolate(&row, Tensor::from([1.0f32])).err()),
        (
            "arange: stop: must be finite; got NaN",
            Tensor::arange(0.0, f64::NAN, 1.0, DType::F32).err(),
        ),
        ("arange: step: must not be 0", Tensor::arange(0.0, 1.0, 0.0, DType::F32).err()),
        (
            "reshape_auto: shape: must determine all sizes for f32[2][2]; got [unknown, unknown]",
            x.reshape_auto(&[None, None]).err(),
        ),
        (
            "pad: padding: must leave a valid size; got (-5, 0) for axis 0",
            x.pad(0, [(-5, 0), (0, 0)]).err(),
        ),
        ("max_pool: window: must be at least 1", image.max_pool(&empty_window).err()),
        (
            "irfft: operand: must have at least 2 elements",
            Tensor::from([1.0f32]).irfft(None, 0, FftNorm::Backward).err(),
        ),
        ("rename: names: expected 1 entry for f32[2]", row.rename(["a", "b"]).err()),
        (
            "epsilon: must not be negative; got NaN",
            nxla::optim::adam(0.1).epsilon(f64::NAN).init(&x).err(),
        ),
    ];
    for (start, error) in cases {
        let error = error.expect(start).to_string();
        assert!(error.starts_with(start), "{error}");
    }
}

#[test]
fn expressions_outside_of_a_trace_are_reported_with_one_line() {
    let outside = Expr::of(1.0);
    let error = jit(move |x: Expr| x + &outside).call(1.0f32).unwrap_err().to_string();
    assert!(error.contains("must be created in a traced function"), "{error}");
    assert_eq!(error.matches("messages.rs:").count(), 1, "{error}");
}
