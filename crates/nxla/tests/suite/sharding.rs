//! Functions over several devices: results equal the results of one device, and data has the
//! requested shardings.

use crate::common::{assert_close, compilers, numbers};
use nxla::sharding::{shard, with_sharding_constraint};
use nxla::{
    Container, Device, ErrorClass, Expr, Mesh, Options, Shape, ShardedTensor, Sharding, Tensor,
    TensorType, Tree, grad, jit, value_and_grad, with_default_options,
};

/// Returns a mesh of two by two devices if there is a plugin.
fn mesh() -> Option<Mesh> {
    compilers().contains(&"xla").then(|| Mesh::new([("data", 2), ("model", 2)]).unwrap())
}

#[track_caller]
fn grid(rows: u16, columns: u16, scale: f32) -> Tensor {
    let count = rows * columns;
    let elements = (0..count).map(|i| (f32::from(i) * scale).sin()).collect();
    Tensor::new(elements, [usize::from(rows), usize::from(columns)]).unwrap()
}

#[track_caller]
fn assert_error<T>(result: nxla::Result<T>, class: ErrorClass, text: &str) {
    let Err(error) = result else { panic!("no error with {text:?}") };
    assert!(error.to_string().contains(text), "{error}");
    assert_eq!(error.class(), class, "{error}");
}

#[test]
fn mesh_functions_cannot_be_interrupted() {
    let Some(mesh) = mesh() else { return };
    let f = jit(|x: Expr| x * 2).interrupt(|| true).over(&mesh);
    let expected = "over: interrupt: not supported for a function over a mesh";
    assert_error(f.call(1), ErrorClass::Options, expected);
}

#[derive(Container)]
struct Net<T> {
    hidden: Layer<T>,
    last: Vec<Layer<T>>,
    #[container(skip)]
    rate: f32,
}

#[derive(Container)]
struct Layer<T> {
    weights: T,
    offset: T,
}

fn net() -> Net<Tensor> {
    let layer = |rows, columns| Layer {
        weights: grid(rows, columns, 0.7),
        offset: grid(1, columns, 1.3).reshape([usize::from(columns)]).unwrap(),
    };
    Net { hidden: layer(6, 8), last: vec![layer(8, 4)], rate: 0.1 }
}

fn step(net: Net<Expr>, x: Expr, y: Expr) -> nxla::Result<(Expr, Net<Expr>)> {
    let loss = |net: Net<Expr>| {
        let hidden = (x.dot(&net.hidden.weights) + &net.hidden.offset).tanh();
        let last = &net.last[0];
        (hidden.dot(&last.weights) + &last.offset - &y).pow(2).mean()
    };
    let (value, slopes) = value_and_grad(loss)(net.map(Expr::clone));
    let rate = net.rate;
    Ok((value, net.zip(&slopes, |weights, slope| weights - slope * rate)?))
}

/// Returns shardings of weights along the axis `model`, as a function of their path.
fn columns(mesh: &Mesh, path: &str) -> nxla::Result<Sharding> {
    match path.rsplit_once("hidden.").map_or(path, |(_, field)| field) {
        "weights" => mesh.sharding([None, Some("model")]),
        "offset" => mesh.sharding(["model"]),
        other if other.ends_with("weights") => mesh.sharding(["model"]),
        _ => Ok(mesh.replicated()),
    }
}

#[test]
fn training_matches_one_device() {
    let Some(mesh) = mesh() else { return };
    let (x, y) = (grid(16, 6, 0.3), grid(16, 4, 0.9));
    let one = jit(step).compiler("xla");
    let mut alone = net();
    let mut expected = Vec::new();
    for _ in 0..3 {
        let (value, next) = one.call((&alone, &x, &y)).unwrap();
        expected.push(value.item::<f32>().unwrap());
        alone = next;
    }
    for (over_data, over_model) in [(true, false), (false, true), (true, true)] {
        let weights =
            |path: &str| if over_model { columns(&mesh, path) } else { Ok(mesh.replicated()) };
        let batch = if over_data { mesh.sharding(["data"]).unwrap() } else { mesh.replicated() };
        let mut net = shard(net(), |path: &str, _: &TensorType| weights(path)).unwrap();
        let (x, y) = (shard(&x, &batch).unwrap(), shard(&y, &batch).unwrap());
        let of_results = mesh.clone();
        let of_weights = move |path: &str, _: &TensorType| {
            if over_model { columns(&of_results, path) } else { Ok(of_results.replicated()) }
        };
        let sharded = jit(step).over(&mesh).results((mesh.replicated(), of_weights));
        for expected in &expected {
            let (value, next) = sharded.call((&net, &x, &y)).unwrap();
            assert_close(&numbers(&value.gather().unwrap()), &[f64::from(*expected)], "loss");
            net = next;
        }
        for (found, alone) in net.leaves().iter().zip(alone.leaves()) {
            assert_close(&numbers(&found.gather().unwrap()), &numbers(&alone), "weights");
        }
        let part = net.hidden.weights.parts()[0].shape();
        assert_eq!(part[..], if over_model { [6, 4] } else { [6, 8] });
        let text = sharded.text((&net, &x, &y)).unwrap();
        assert!(text.contains(r#"sdy.mesh @mesh = <["data"=2, "model"=2]>"#), "{text}");
        assert_eq!(text.contains(r#"[{}, {"model"}]"#), over_model);
    }
}

#[test]
fn tensors_are_sharded_and_gathered() {
    let Some(mesh) = mesh() else { return };
    let x = grid(4, 6, 1.0);
    let shardings = [
        (mesh.replicated(), [4, 6]),
        (mesh.sharding(["data"]).unwrap(), [2, 6]),
        (mesh.sharding([None, Some("model")]).unwrap(), [4, 3]),
        (mesh.sharding(["data", "model"]).unwrap(), [2, 3]),
        (mesh.sharding([["model", "data"]]).unwrap(), [1, 6]),
    ];
    for (sharding, part) in shardings {
        let divided: ShardedTensor = shard(&x, &sharding).unwrap();
        let starts = sharding.starts(x.shape()).unwrap();
        let devices: Vec<Device> = divided.parts().iter().map(|part| part.device()).collect();
        assert_eq!(devices, mesh.devices().unwrap());
        for (found, start) in divided.parts().iter().zip(starts) {
            let at = |axis: usize| {
                let first = i64::try_from(start[axis]).unwrap();
                first..first + i64::from(part[axis])
            };
            let expected = x.at((at(0), at(1))).unwrap();
            assert_close(&numbers(found), &numbers(&expected), &sharding.to_string());
        }
        assert_eq!(divided.gather().unwrap().to_vec::<f32>().unwrap(), x.to_vec::<f32>().unwrap());
    }
    let empty = Tensor::new(Vec::<f32>::new(), [0, 4]).unwrap();
    let rows = mesh.sharding(["data", "model"]).unwrap();
    assert_eq!(shard(&empty, &rows).unwrap().gather().unwrap().shape()[..], [0, 4]);
    let shown = format!("{:?}", shard(&x, &rows).unwrap());
    assert!(shown.contains(r#"Sharding("data", "model") over Mesh(data=2, model=2)"#), "{shown}");
    assert!(shown.contains("[2:4, 0:3]"), "{shown}");
}

#[test]
fn each_signature_and_layout_is_compiled_once() {
    let Some(mesh) = mesh() else { return };
    let count = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let traced = count.clone();
    let sharded = jit(move |x: Expr| {
        traced.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        x * 2
    })
    .over(&mesh);
    let rows = mesh.sharding(["data"]).unwrap();
    let (short, long) = (Tensor::from([1, 2]), Tensor::from([1, 2, 3, 4]));
    for _ in 0..2 {
        assert_eq!(
            sharded.call(&short).unwrap().gather().unwrap().to_vec::<i32>().unwrap(),
            [2, 4]
        );
        sharded.call(&long).unwrap();
        sharded.call(shard(&long, &rows).unwrap()).unwrap();
    }
    assert_eq!(count.load(std::sync::atomic::Ordering::Relaxed), 3);
    let exact = Options::new().compiler("xla").set("precision", "highest");
    let guard = with_default_options(&exact);
    sharded.call(&short).unwrap();
    drop(guard);
    assert_eq!(count.load(std::sync::atomic::Ordering::Relaxed), 4, "settings are part of the key");
    assert_eq!(sharded.call(4).unwrap().parts().len(), 4);
}

#[test]
fn constraints_do_not_change_results() {
    let Some(mesh) = mesh() else { return };
    let rows = mesh.sharding(["data"]).unwrap();
    let inner = rows.clone();
    let f = move |x: Expr| with_sharding_constraint(x.sin() * 2, &inner).sum();
    let x = grid(4, 6, 1.0);
    let expected = jit(f.clone()).call(&x).unwrap();
    let sharded = jit(f.clone()).over(&mesh);
    assert_close(
        &numbers(&sharded.call(&x).unwrap().gather().unwrap()),
        &numbers(&expected),
        "sum",
    );
    assert_eq!(sharded.text(&x).unwrap().matches("sdy.sharding_constraint").count(), 1);
    let slope = jit(grad(f.clone())).over(&mesh).results(rows.clone()).call(&x).unwrap();
    assert_eq!(slope.parts()[0].shape()[..], [2, 6]);
    let wrong = jit(f).over(&mesh).call(grid(3, 2, 1.0));
    assert_error(
        wrong,
        ErrorClass::Shape,
        "axis 0 of shape [3][2] must be divisible into 2 equal parts",
    );
}

#[test]
fn invalid_arguments_are_errors() {
    let Some(mesh) = mesh() else { return };
    use ErrorClass::{Argument, Options, Shape as OfShape};
    let rows = mesh.sharding(["data"]).unwrap();
    let devices = mesh.devices().unwrap();
    let double = || jit(|x: Expr| x * 2).over(&mesh);
    assert_error(
        Mesh::new([("a b", 1)]),
        Options,
        "must consist of letters, digits and _; got \"a b\"",
    );
    assert_error(Mesh::new([("a", 1), ("a", 1)]), Options, "names must be distinct");
    assert_error(Mesh::new([("a", 0)]), Options, "must be at least 1; got 0");
    assert_error(
        Mesh::new([("a", usize::MAX), ("b", 2)]),
        Options,
        "product of the sizes must fit",
    );
    let axes = |size| vec![("a".to_owned(), size)];
    assert_error(
        Mesh::with_devices(axes(3), &devices),
        Options,
        "devices: must be 3, the product of the axis sizes; got 4",
    );
    assert_error(
        Mesh::with_devices(axes(1), &[Device::HOST]),
        Options,
        "must be devices of XLA, as in nx.devices(); got the host",
    );
    let twice = [devices[0].clone(), devices[0].clone()];
    assert_error(Mesh::with_devices(axes(2), &twice), Options, "devices: must be distinct");
    assert_error(
        mesh.sharding(["rows"]),
        Options,
        "must be axes of the mesh (data, model); got \"rows\"",
    );
    assert_error(mesh.sharding(["data", "data"]), Options, "must be distinct; got");
    assert_error(shard(Tensor::from(1), &rows), OfShape, "at least 1 axes");
    assert_error(shard(Tensor::from([1, 2, 3]), &rows), OfShape, "must be divisible into 2");
    let vectors = Tensor::from([[1], [2]]).vectorize(["row"]).unwrap();
    assert_error(shard(&vectors, mesh.replicated()), OfShape, "vectorized");
    assert_error(double().results(rows.clone()).call(1), OfShape, "at least 1 axes");
    let other = Mesh::with_devices(axes(2), &devices[..2]).unwrap();
    let elsewhere = shard(Tensor::from([1, 2]), other.sharding(["a"]).unwrap()).unwrap();
    assert_error(double().call(&elsewhere), Argument, "must use the mesh");
    let evaluator = jit(|x: Expr| x).compiler("evaluator").over(&mesh);
    assert_error(evaluator.call(1), Options, "must be \"xla\" for a program over several devices");
    assert_error(jit(|x: Expr| x).device(Device::HOST).over(&mesh).call(1), Options, "\"device\"");
    for name in ["compile_after", "compile_above"] {
        let evaluated = jit(|x: Expr| x).set(name, 1).over(&mesh);
        assert_error(evaluated.call(1), Options, name);
    }
    let kernels = jit(|x: Expr| x).set("kernels", true).over(&mesh);
    assert_error(kernels.call(1), Options, "\"kernels\": not supported");
    jit(|x: Expr| x).set("kernels", false).over(&mesh).call(1).unwrap();
    assert_error(jit(|x: Expr| x).donate([0]).over(&mesh).call(1), Options, "donated");
    let numbers: Vec<f32> = (0..10_000_u16).map(f32::from).collect();
    let large = Tensor::new(numbers, [10_000]).unwrap();
    assert_error(jit(move |x: Expr| x + &large).over(&mesh).call(1), Argument, "as an argument");
    let noisy = jit(|x: Expr| nxla::hook(x, |_| Ok::<(), nxla::Error>(()))).over(&mesh);
    assert_error(noisy.call(1), Argument, "over: function: must not contain a hook");
    let part = Shape::from([2]);
    assert_error(rows.gather(&[], &part), OfShape, "parts: must be 4");
}
