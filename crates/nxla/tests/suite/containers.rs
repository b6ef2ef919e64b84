//! User-defined containers: the derive macro, and functions over leaves.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{compilers, numbers};
use nxla::{
    Container, DType, Expr, Tensor, TensorType, Tree, cond, grad, jit, named_hook, scan,
    value_and_grad,
};

#[derive(Container, Clone, Debug)]
struct Dense<T> {
    weights: T,
    bias: Option<T>,
    #[container(skip)]
    activation: Activation,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Activation {
    Identity,
    Tanh,
}

#[derive(Container, Clone, Debug)]
struct Network<T> {
    layers: Vec<Dense<T>>,
    scales: BTreeMap<String, T>,
    last: Box<(T, [T; 2])>,
}

#[derive(Container, Clone)]
struct Pair<T>(T, Vec<T>);

#[derive(Container)]
struct Nothing;

/// Two kinds of leaves, and a constant.
#[derive(Container)]
struct Moments<C, T, const N: usize> {
    means: [C; N],
    steps: T,
}

fn dense(start: f32, bias: bool, activation: Activation) -> Dense<Tensor> {
    let weights = Tensor::from([[start, start + 1.0], [start + 2.0, start + 3.0]]);
    Dense { weights, bias: bias.then(|| Tensor::from([start, start])), activation }
}

fn network() -> Network<Tensor> {
    let layers = vec![dense(1.0, true, Activation::Tanh), dense(2.0, false, Activation::Identity)];
    let scales = BTreeMap::from([("in".into(), 1.0f32.into()), ("out".into(), 2.0f32.into())]);
    Network { layers, scales, last: Box::new((5.0f32.into(), [6.0f32.into(), 7.0f32.into()])) }
}

impl Dense<Expr> {
    fn apply(&self, x: &Expr) -> Expr {
        let y = x.dot(&self.weights);
        let y = self.bias.as_ref().map_or_else(|| y.clone(), |bias| &y + bias);
        match self.activation {
            Activation::Identity => y,
            Activation::Tanh => y.tanh(),
        }
    }
}

#[test]
fn paths_omit_prefixes_of_raw_identifiers() {
    #[derive(Container)]
    struct Node<T> {
        r#type: T,
    }
    let mut paths = Vec::new();
    Node { r#type: Tensor::from(1) }.paths("node", &mut paths);
    assert_eq!(paths, ["node.type"]);
}

#[test]
fn derived_containers_are_arguments_and_results() {
    for compiler in compilers() {
        let double = jit(|n: Network<Expr>| n.map(|x| x * 2)).compiler(compiler);
        let network = network();
        let found = double.call(&network).unwrap();
        assert_eq!(found.layers[0].activation, Activation::Tanh);
        assert!(found.layers[0].bias.is_some() && found.layers[1].bias.is_none());
        assert_eq!(found.scales.keys().collect::<Vec<_>>(), ["in", "out"]);
        let doubled: Vec<f64> =
            network.leaves().iter().flat_map(|x| numbers(x)).map(|x| 2.0 * x).collect();
        let found: Vec<f64> = found.leaves().iter().flat_map(|x| numbers(x)).collect();
        assert_eq!(found, doubled, "{compiler}");
        let Pair(first, rest) =
            jit(|p: Pair<Expr>| p).compiler(compiler).call(Pair(1, vec![2, 3])).unwrap();
        assert_eq!((numbers(&first), rest.len()), (vec![1.0], 2));
        let Nothing = jit(|n: Nothing| n).call(Nothing).unwrap();
    }
}

#[test]
fn derived_containers_work_in_gradients_and_control_flow() {
    let loss = |n: Network<Expr>| {
        let x = Expr::of(Tensor::from([1.0f32, -1.0]));
        n.layers.iter().fold(x, |x, layer| layer.apply(&x)).sum() * &n.scales["out"]
    };
    let (value, slopes) = jit(value_and_grad(loss)).call(network()).unwrap();
    assert_eq!(numbers(&slopes.scales["in"]), [0.0]);
    assert_eq!(2.0 * numbers(&slopes.scales["out"])[0], numbers(&value)[0]);
    assert_eq!(slopes.layers[0].weights.shape()[..], [2, 2]);
    let looped = jit(|d: Dense<Expr>, xs: Expr| {
        scan(d, xs, |d, x| (d.map(|leaf| leaf + &x), d.apply(&Expr::ones([2], DType::F32))))
    });
    let (last, outputs) =
        looped.call((dense(0.0, true, Activation::Identity), Tensor::from([1.0f32, 2.0]))).unwrap();
    assert_eq!(numbers(&last.weights), [3.0, 4.0, 5.0, 6.0]);
    assert_eq!(outputs.shape()[..], [2, 2]);
    let chosen = jit(|d: Dense<Expr>| {
        cond(d.weights.sum().greater(0), || d.map(|x| x + 1), || d.map(|x| x - 1))
    });
    let chosen = chosen.call(dense(1.0, false, Activation::Tanh)).unwrap();
    assert_eq!(numbers(&chosen.weights), [2.0, 3.0, 4.0, 5.0]);
}

#[test]
fn static_fields_are_part_of_the_signature() {
    let traced = Arc::new(AtomicUsize::new(0));
    let count = traced.clone();
    let f = jit(move |d: Dense<Expr>, x: Expr| {
        count.fetch_add(1, Ordering::Relaxed);
        d.apply(&x)
    });
    let x = Tensor::from([1.0f32, 0.0]);
    let call = |activation, bias| numbers(&f.call((dense(1.0, bias, activation), &x)).unwrap());
    assert_eq!(call(Activation::Identity, false), [1.0, 2.0]);
    assert!(call(Activation::Tanh, false)[0] < 1.0);
    assert_eq!(call(Activation::Identity, true), [2.0, 3.0]);
    assert_eq!(traced.load(Ordering::Relaxed), 3);
    call(Activation::Identity, false);
    call(Activation::Tanh, false);
    assert_eq!(traced.load(Ordering::Relaxed), 3);
    let maps = jit(|m: BTreeMap<&'static str, Expr>| {
        m.into_iter().map(|(key, x)| (key, x * key.len())).collect::<BTreeMap<_, _>>()
    });
    assert_eq!(numbers(&maps.call(BTreeMap::from([("ab", 3)])).unwrap()["ab"]), [6.0]);
    assert_eq!(numbers(&maps.call(BTreeMap::from([("abc", 3)])).unwrap()["abc"]), [9.0]);
}

#[test]
fn several_type_parameters_are_several_containers() {
    let f = jit(|m: Moments<Pair<Expr>, Expr, 2>, x: Expr| Moments {
        means: m.means.map(|mean| mean.map(|leaf| leaf * &x)),
        steps: m.steps + 1,
    });
    let means = [Pair(1, vec![]), Pair(2, vec![3])];
    let found = f.call((Moments { means, steps: 0 }, 10)).unwrap();
    assert_eq!(numbers(&found.steps), [1.0]);
    assert_eq!(
        (numbers(&found.means[1].0), numbers(&found.means[1].1[0])),
        (vec![20.0], vec![30.0])
    );
}

#[test]
fn zip_pairs_leaves_and_reports_differences() {
    let left = network();
    let sums = left.zip(&left, |x, y| (x + y).unwrap()).unwrap();
    assert_eq!(numbers(&sums.last.1[1]), [14.0]);
    let mut right = network();
    right.layers[1].bias = Some(Tensor::from(0.0f32));
    let error = left.zip(&right, |x, _| x.clone()).err().unwrap().to_string();
    let expected = "zip: other: must have the structure of self; got other.layers[1].bias instead \
                    of other.scales[\"in\"]";
    assert_eq!(error, expected);
    let mut right = network();
    right.layers[0].activation = Activation::Identity;
    let error = left.zip(&right, |x, _| x.clone()).err().unwrap().to_string();
    assert!(error.contains("Tanh") && error.contains("Identity"), "{error}");
    let failed: Result<_, String> = left.try_map(|_| Err("no".to_owned()));
    assert_eq!(failed.err().unwrap(), "no");
}

#[test]
fn errors_name_the_path_of_a_leaf() {
    let ty = TensorType::scalar(DType::F32);
    let types = Pair(&ty, vec![&ty]);
    let compiled = jit(|p: Pair<Expr>| p.0 + &p.1[0]).compile(types).unwrap();
    let error =
        compiled.call(Pair(Tensor::from(1.0f32), vec![Tensor::from(1)])).unwrap_err().to_string();
    assert_eq!(error, "call: argument.1[0]: must be f32; got s32");
    let slope =
        jit(grad(|d: Dense<Expr>| d.weights.sum())).call(dense(1.0, true, Activation::Tanh));
    assert_eq!(numbers(&slope.unwrap().bias.unwrap()), [0.0, 0.0]);
}

#[test]
fn tuples_have_up_to_twelve_parts() {
    let f = jit(|t: (Expr, Expr, Expr, Expr, Expr, Expr, Expr, Expr, Expr, Expr, Expr, Expr)| {
        t.11 - t.0
    });
    assert_eq!(numbers(&f.call((1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)).unwrap()), [11.0]);
}

#[test]
fn jacobians_of_containers_are_containers_of_containers() {
    let dense = dense(1.0, true, Activation::Tanh);
    let x = Tensor::from([0.5f32, -1.0]);
    for compiler in compilers() {
        // Two results in a list: each is a struct with an optional leaf and a constant.
        let function = |dense: Dense<Expr>| {
            let bias = dense.bias.expect("there is one");
            vec![&dense.weights * 2 + &bias, bias.pow(2)]
        };
        let found = jit(nxla::jacobian(function)).compiler(compiler).call(&dense).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].weights.shape().as_slice(), [2, 2, 2, 2]);
        assert_eq!(numbers(found[1].bias.as_ref().unwrap()), [2.0, 0.0, 0.0, 2.0]);
        assert_eq!(numbers(&found[1].weights), [0.0; 8]);
        assert_eq!(found[0].activation, Activation::Tanh);
        for other in [
            jit(nxla::jacfwd(function)).compiler(compiler).call(&dense).unwrap(),
            jit(nxla::jacrev(function)).compiler(compiler).call(&dense).unwrap(),
        ] {
            for (one, other) in found.leaves().iter().zip(other.leaves()) {
                assert_eq!((one.shape(), numbers(one)), (other.shape(), numbers(&other)));
            }
        }

        // A struct of structs, and a map of maps.
        let energy = |pair: Pair<Expr>| (&pair.0 * &pair.1[0]).sum() + pair.1[1].pow(3);
        let pair = Pair(x.clone(), vec![x.clone(), 2.0f32.into()]);
        let second = jit(nxla::hessian(energy)).compiler(compiler).call(&pair).unwrap();
        assert_eq!(numbers(&second.0.1[0]), [1.0, 0.0, 0.0, 1.0]);
        assert_eq!(numbers(&second.1[0].0), [1.0, 0.0, 0.0, 1.0]);
        assert_eq!(numbers(&second.1[1].1[1]), [12.0]);
        let product = |map: BTreeMap<String, Expr>| &map["a"] * map["b"].pow(2);
        let map = BTreeMap::from([("a".to_owned(), 3.0f32), ("b".to_owned(), 5.0)]);
        let second: BTreeMap<String, BTreeMap<String, Tensor>> =
            jit(nxla::hessian(product)).compiler(compiler).call(map).unwrap();
        assert_eq!(numbers(&second["a"]["b"]), [10.0]);
        assert_eq!(numbers(&second["b"]["b"]), [6.0]);
    }

    // A failure is an error of the call, for all containers.
    let complex = jit(nxla::jacrev(|x: Expr| vec![x.as_type(DType::C64); 2])).call(&x);
    assert!(complex.unwrap_err().to_string().contains("a result is c64"));
    let missing = jit(nxla::hessian(|(x, y): (Expr, Expr)| x.dot(&y).sum()));
    assert!(missing.call((&x, Tensor::from([1.0f32, 2.0, 3.0]))).is_err());
    let nothing = jit(nxla::jacfwd(|(): ()| ())).call(());
    assert!(nothing.is_ok());
}

#[test]
fn hooks_accept_containers_without_static_fields() {
    #[derive(nxla::Container)]
    struct Named<T> {
        value: T,
        #[container(skip)]
        name: u8,
    }
    let seen = Arc::new(AtomicUsize::new(0));
    let count = seen.clone();
    let f = || jit(|x: Expr| named_hook([x.clone(), x], "both")[0].clone());
    let assert_rejected = |result: nxla::Result<Tensor>| {
        let error = result.unwrap_err().to_string();
        assert!(error.contains("container: must hold the 2 values"), "{error}");
    };
    assert_rejected(f().hook("both", |_: BTreeMap<String, Tensor>| ()).call(1));
    assert_rejected(f().hook("both", |_: [Named<Tensor>; 2]| ()).call(1));
    assert_rejected(
        f().hook("both", |list: Vec<Box<Named<Tensor>>>| {
            assert_eq!(usize::from(list[0].name), list[0].value.shape().rank());
        })
        .call(1),
    );
    assert_rejected(f().hook("both", |_: Vec<Vec<Tensor>>| ()).call(1));
    assert_rejected(f().hook("both", |_: (Vec<Tensor>, Vec<Tensor>)| ()).call(1));
    let add = move |list: Vec<Tensor>| {
        count.fetch_add(list.len(), Ordering::Relaxed);
    };
    f().hook("both", add).call(1).unwrap();
    assert_eq!(seen.load(Ordering::Relaxed), 2);
}

#[test]
fn static_nan_is_traced_once() {
    #[derive(nxla::Container)]
    struct Scaled<T> {
        value: T,
        #[container(skip)]
        scale: f32,
    }
    let traces = Arc::new(AtomicUsize::new(0));
    let count = traces.clone();
    let f = jit(move |x: Scaled<Expr>| {
        count.fetch_add(1, Ordering::Relaxed);
        x.value * x.scale
    });
    for scale in [f32::NAN, f32::NAN, 1.0, f32::NAN] {
        f.call(Scaled { value: Tensor::from(1.0f32), scale }).unwrap();
    }
    assert_eq!(traces.load(Ordering::Relaxed), 2);
}
