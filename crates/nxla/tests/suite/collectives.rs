//! Functions of parts: the results on one device and on a mesh are equal.

use crate::common::{assert_close, compilers, numbers};
use nxla::sharding::collectives::{
    all_gather, all_to_all, axis_index, axis_size, pmax, pmean, pmin, ppermute, psum, psum_scatter,
    pvary,
};
use nxla::sharding::shard_map;
use nxla::{DType, ErrorClass, Expr, Mesh, Sharding, Tensor, fori, grad, jit};

fn mesh() -> Option<Mesh> {
    compilers().contains(&"xla").then(|| Mesh::new([("data", 2), ("model", 2)]).unwrap())
}

/// Checks a function of parts on the evaluator, on one device of XLA and on a mesh.
#[track_caller]
fn check(
    mesh: &Mesh,
    function: impl Fn(Expr) -> Expr + Clone,
    [input, output]: [&Sharding; 2],
    x: &Tensor,
    expected: &[f64],
) {
    let whole = || shard_map(function.clone(), mesh, input.clone(), output.clone());
    for compiler in compilers() {
        let found = jit(whole()).compiler(*compiler).call(x).unwrap();
        assert_close(&numbers(&found), expected, compiler);
    }
    let found = jit(whole()).over(mesh).results(output.clone()).call(x).unwrap();
    assert_close(&numbers(&found.gather().unwrap()), expected, "a mesh");
}

#[test]
fn collectives_match_operations_on_whole_tensors() {
    let Some(mesh) = mesh() else { return };
    let (rows, all) = (mesh.sharding(["data"]).unwrap(), mesh.replicated());
    let both = mesh.sharding(["data", "model"]).unwrap();
    let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]);
    let collected = [&rows, &all];
    check(&mesh, |x| psum(&x, "data"), collected, &x, &[6.0, 8.0, 10.0, 12.0]);
    check(&mesh, |x| pmean(&x, "data"), collected, &x, &[3.0, 4.0, 5.0, 6.0]);
    check(&mesh, |x| pmax(&x, "data"), collected, &x, &[5.0, 6.0, 7.0, 8.0]);
    check(&mesh, |x| pmin(&x, "data"), collected, &x, &[1.0, 2.0, 3.0, 4.0]);
    check(&mesh, |x| psum(&psum(&x, "model"), "data"), [&both, &all], &x, &[14.0, 22.0]);
    let in_order: Vec<f64> = (1..=8).map(f64::from).collect();
    check(&mesh, |x| all_gather(&x, "data", 0, true), collected, &x, &in_order);
    let gathered = [1.0, 2.0, 5.0, 6.0, 3.0, 4.0, 7.0, 8.0];
    check(&mesh, |x| all_gather(&x, "data", -2, false), collected, &x, &gathered);
    check(&mesh, |x| psum_scatter(&x, "data", 0), [&rows, &rows], &x, &[6.0, 8.0, 10.0, 12.0]);
    let columns = mesh.sharding([None, Some("data")]).unwrap();
    check(&mesh, |x| all_to_all(&x, "data", 1, 0), [&rows, &columns], &x, &in_order);
    let axis_coordinates = |x: Expr| x.zeros_like() + axis_index("data") * 10 + axis_index("model");
    let coordinates = [0.0, 1.0, 0.0, 1.0, 10.0, 11.0, 10.0, 11.0];
    check(&mesh, axis_coordinates, [&both, &both], &x, &coordinates);
    let times_axis_size = |x: Expr| x * i32::try_from(axis_size("model").unwrap()).unwrap();
    let twice: Vec<f64> = in_order.iter().map(|number| number * 2.0).collect();
    check(&mesh, times_axis_size, [&rows, &rows], &x, &twice);
    let in_a_loop = |x: Expr| {
        let start = pvary(&Expr::of(Tensor::from([[0.0f32, 0.0], [0.0, 0.0]])), "data");
        fori(0, 2, start, |_, total| total + psum(&x, "data") + &x)
    };
    let expected = [14.0, 20.0, 26.0, 32.0, 22.0, 28.0, 34.0, 40.0];
    check(&mesh, in_a_loop, [&rows, &rows], &x, &expected);
}

#[test]
fn means_of_narrow_dtypes_do_not_overflow() {
    let Some(mesh) = mesh() else { return };
    let (rows, all) = (mesh.sharding(["data"]).unwrap(), mesh.replicated());
    let x = Tensor::from([0.0f32, 0.0]);
    let largest = [
        (DType::U8, 255.0),
        (DType::S8, 127.0),
        (DType::U16, 65_535.0),
        (DType::S16, 32_767.0),
        (DType::U32, 4_294_967_040.0),
        (DType::S32, 2_147_483_520.0),
        (DType::F16, 65_504.0),
    ];
    for (dtype, number) in largest {
        let mean = move |x: Expr| pmean(&(x + number).as_type(dtype), "data").as_type(DType::F32);
        check(&mesh, mean, [&rows, &all], &x, &[number]);
        let shared = move |_: Expr| pmean(&Expr::of(number).as_type(dtype), "data");
        let found = jit(shard_map(shared, &mesh, rows.clone(), all.clone())).call(&x).unwrap();
        assert_eq!(found.dtype(), if dtype == DType::F16 { dtype } else { DType::F32 });
        assert_close(&numbers(&found), &[number], "a value that does not vary");
    }
}

#[test]
fn values_are_sent_to_other_devices() {
    let Some(mesh) = mesh() else { return };
    let rows = mesh.sharding([["data", "model"]]).unwrap();
    let x = Tensor::from([1.0f32, 2.0, 3.0, 4.0]);
    let ring = |x: Expr| ppermute(&x, "data", &[(0, 1), (1, 0)]);
    check(&mesh, ring, [&rows, &rows], &x, &[3.0, 4.0, 1.0, 2.0]);
    let one_way = |x: Expr| ppermute(&x, "model", &[(0, 1)]);
    check(&mesh, one_way, [&rows, &rows], &x, &[0.0, 1.0, 0.0, 3.0]);
    let to_itself = |x: Expr| ppermute(&x, "model", &[(1, 1)]);
    check(&mesh, to_itself, [&rows, &rows], &x, &[0.0, 2.0, 0.0, 4.0]);
    let to_no_device = |x: Expr| ppermute(&x, "model", &[]);
    check(&mesh, to_no_device, [&rows, &rows], &x, &[0.0; 4]);
}

#[test]
fn collectives_are_differentiable() {
    let Some(mesh) = mesh() else { return };
    let (rows, all) = (mesh.sharding(["data"]).unwrap(), mesh.replicated());
    let loss = |(w, x): (Expr, Expr)| pmean(&(x * w).pow(2).mean(), "data");
    let x = Tensor::from([1.0f32, 2.0, 3.0, 4.0]);
    let whole = shard_map(loss, &mesh, (all.clone(), rows.clone()), all.clone());
    let slope = jit(move |w: Expr, x: Expr| grad(|w: Expr| whole((w, x.clone())))(w));
    assert_close(&numbers(&slope.call((2.0f32, &x)).unwrap()), &[30.0], "one device");
    let sharded = slope.over(&mesh);
    let x = nxla::sharding::shard(&x, &rows).unwrap();
    assert_close(&numbers(&sharded.call((2.0f32, &x)).unwrap().gather().unwrap()), &[30.0], "mesh");
    assert!(sharded.text((2.0f32, &x)).unwrap().contains("sdy.sharding_constraint"));
}

#[test]
fn invalid_arguments_are_errors() {
    let Some(mesh) = mesh() else { return };
    use ErrorClass::{Argument, Shape};
    let (rows, all) = (mesh.sharding(["data"]).unwrap(), mesh.replicated());
    let x = Tensor::from([1.0f32, 2.0, 3.0, 4.0]);
    #[track_caller]
    fn assert_error(result: nxla::Result<Tensor>, class: ErrorClass, text: &str) {
        let error = result.unwrap_err();
        assert!(error.to_string().contains(text), "{error}");
        assert_eq!(error.class(), class, "{error}");
    }
    let run = |f: fn(Expr) -> Expr, output: &Sharding| {
        jit(shard_map(f, &mesh, rows.clone(), output.clone())).call(&x)
    };
    assert_error(jit(|x: Expr| psum(&x, "data")).call(&x), Argument, "outside shard_map");
    assert_error(run(|x| psum(&x, "rows"), &all), Argument, "got \"rows\"");
    assert_error(run(|x| x, &all), Argument, "must name \"data\"");
    assert_error(run(|x| psum(&x, "data").sum(), &rows), Shape, "at least 1 axes");
    assert_error(run(|x| all_gather(&x, "data", 3, true), &all), Shape, "axes; got 3");
    assert_error(run(|x| all_to_all(&x, "data", 2, 0), &rows), Shape, "axes; got 2");
    assert_error(run(|x| psum_scatter(&x.at(0), "data", 0), &rows), Shape, "axes; got 0");
    let odd = |x: Expr| psum_scatter(&x.at(0..1), "data", 0);
    assert_error(run(odd, &rows), Shape, "must be a multiple of 2; got 1");
    assert_error(run(|x| ppermute(&x, "data", &[(0, 2)]), &rows), Argument, "each of 2 devices");
    let twice = |x: Expr| ppermute(&x, "data", &[(0, 1), (1, 1)]);
    assert_error(run(twice, &rows), Argument, "at most once");
    let three = Tensor::from([1.0f32, 2.0, 3.0]);
    let f = jit(shard_map(|x: Expr| x, &mesh, rows.clone(), rows.clone()));
    assert_error(f.call(&three), Shape, "must be divisible into 2");
    let devices = mesh.devices().unwrap();
    let other = Mesh::with_devices([("data", 2)], &devices[..2]).unwrap().replicated();
    assert_error(
        jit(shard_map(|x: Expr| x, &mesh, other, all)).call(&x),
        Argument,
        "must use the mesh",
    );
}
