//! Functions of whole tensors that are defined for the parts of each device.

use std::panic::Location;

use nxla_expr::Graph;
use nxla_runtime::{Error, Mesh, Result, Sharding, VectorAxes};
use nxla_tensor::to_i64;

use super::shardings::Shardings;
use super::varying::{
    AxisScope, Value, annotate_layout, axis_size, build_value, devices_to_axis, names_of, wrong,
};
use crate::containers::{Container, Leaves, Outputs, leaves_of, paths_of, relative_path};
use crate::expr::Expr;

/// Converts a function of parts to a function of whole tensors. Inside, tensors have the shapes of
/// parts, and collectives combine the values of all devices. [`Shardings`] define how arguments are
/// divided and results are assembled. A result may vary only along mesh axes in its sharding.
///
/// The result is an ordinary function: [`jit`](crate::jit()) runs it on one device, and
/// [`Jit::over`](crate::Jit::over) on the whole mesh. A gradient inside is the gradient of each
/// device's result; a gradient of the returned function is the gradient of the whole.
///
/// ```
/// # use nxla::{Expr, Result, grad, jit, Tensor};
/// # use nxla::sharding::{Mesh, collectives::pmean, shard_map};
/// # fn example(mesh: &Mesh) -> Result<()> {
/// let (rows, everywhere) = (mesh.sharding(["data"])?, mesh.replicated());
/// let loss = |(w, x): (Expr, Expr)| pmean(&(x * w).pow(2).mean(), "data");
/// let whole = shard_map(loss, mesh, (everywhere.clone(), rows), everywhere);
/// let x = Tensor::from([1.0f32, 2.0, 3.0, 4.0]);
/// let slope = jit(move |w: Expr, x: Expr| grad(|w: Expr| whole((w, x.clone())))(w));
/// assert_eq!(slope.call((2.0f32, &x))?.item::<f32>()?, 30.0);
/// assert_eq!(slope.over(mesh).call((2.0f32, &x))?.gather()?.item::<f32>()?, 30.0);
/// # Ok(())
/// # }
/// # if nxla::devices()?.len() > 1 {
/// #     example(&Mesh::new([("data", 2)])?)?;
/// # }
/// # Ok::<(), nxla::Error>(())
/// ```
///
/// Arguments that cannot be divided into equal parts, and results that vary along an axis that
/// their sharding does not name, are errors.
#[track_caller]
pub fn shard_map<F, A, R, In, Out, InKind, OutKind>(
    function: F,
    mesh: &Mesh,
    inputs: In,
    outputs: Out,
) -> impl Fn(A) -> R::Return<R::Container>
where
    F: Fn(A) -> R,
    A: Container,
    R: Outputs,
    In: Shardings<InKind>,
    Out: Shardings<OutKind>,
{
    let (mesh, location) = (mesh.clone(), Location::caller());
    move |argument| {
        let _entered = AxisScope::into(&mesh);
        let parts = map_leaves(argument, |x, path| {
            build_value(&x, location, |graph, value| {
                let sharding = inputs.sharding_of(path, graph.tensor_type(value.id))?;
                part(graph, value, &check_mesh(&sharding, &mesh)?)
            })
        });
        let assemble = |x: Expr, path: &str| {
            build_value(&x, location, |graph, value| {
                let sharding = outputs
                    .sharding_of(path, &value.vectors.entry_type(graph.tensor_type(value.id)))?;
                assemble_parts(graph, value, &check_mesh(&sharding, &mesh)?)
            })
        };
        let results = function(parts).into_container();
        R::from_result(results.map(|results| map_leaves(results, assemble)))
    }
}

/// Replaces the leaves of a container; `change` receives each leaf and its path.
fn map_leaves<C: Container>(container: C, change: impl Fn(Expr, &str) -> Expr) -> C {
    let (leaves, paths) = (leaves_of(&container), paths_of(&container, ""));
    let items =
        leaves.items.into_iter().zip(&paths).map(|(leaf, path)| change(leaf, relative_path(path)));
    let items: Vec<Expr> = items.collect();
    C::rebuild(&mut Leaves::new(items, leaves.structure))
}

fn check_mesh(sharding: &Sharding, mesh: &Mesh) -> Result<Sharding> {
    if sharding.mesh() == mesh {
        Ok(sharding.clone())
    } else {
        wrong("shard_map", format!("shardings must use the mesh {mesh}; got {sharding:?}"))
    }
}

/// Returns the parts of a whole tensor; the result varies along the axes that divide it.
fn part(graph: &mut Graph, x: Value, sharding: &Sharding) -> Result<Value> {
    if !x.vectors.is_empty() {
        let why = "shard_map: arguments must not have vectorized axes";
        return Err(Error::Layout(why.into()));
    }
    let sizes = sharding.part(graph.shape(x.id))?;
    let names = names_of(graph, x.id);
    let (mut shape, mut named, mut vectors) = (Vec::new(), Vec::new(), VectorAxes::NONE);
    let (mut front, mut behind) = (Vec::new(), Vec::new());
    for (axis, name) in names.into_iter().enumerate() {
        for along in sharding.layout().get(axis).into_iter().flatten() {
            let size = axis_size(along)?;
            vectors = vectors.with(along, size);
            front.push(to_i64(shape.len()));
            shape.push(size);
            named.push(None);
        }
        behind.push(to_i64(shape.len()));
        shape.push(sizes[axis]);
        named.push(name);
    }
    if front.is_empty() {
        return Ok(x);
    }
    let id = graph.reshape_named(x.id, shape, Some(named.into_iter().collect()))?;
    front.extend(behind);
    let id = graph.transpose(id, Some(&front))?;
    annotate_layout(graph, Value { id, vectors })
}

/// Assembles a whole tensor from the parts of the devices.
fn assemble_parts(graph: &mut Graph, mut x: Value, sharding: &Sharding) -> Result<Value> {
    let named: Vec<&String> = sharding.layout().iter().flatten().collect();
    let mesh = sharding.mesh().axes();
    let strays = x.vectors.iter().find(|axis| {
        let is_own = mesh.iter().any(|(name, _)| **name == *axis.name);
        is_own && !named.iter().any(|name| ***name == *axis.name)
    });
    if let Some(axis) = strays {
        let name = &axis.name;
        return wrong(
            "shard_map",
            format!(
                "shardings of results must name {name:?}, along which a result varies; name the \
                 axis, or combine the values by psum or another collective"
            ),
        );
    }
    for name in named.iter().rev() {
        x = devices_to_axis(graph, x, name)?;
    }
    if !x.vectors.is_empty() {
        let why = "shard_map: results must not have vectorized axes";
        return Err(Error::Layout(why.into()));
    }
    let parts: Vec<usize> = graph.shape(x.id)[named.len()..].to_vec();
    if sharding.layout().len() > parts.len() {
        let (axes, rank) = (sharding.layout().len(), parts.len());
        let why = format!("tensor must have at least {axes} axes for {sharding}; got {rank}");
        return Err(Error::Layout(why));
    }
    let names = names_of(graph, x.id).split_off(named.len());
    let (mut order, mut shape, mut next) = (Vec::new(), Vec::new(), 0);
    for (axis, size) in parts.iter().enumerate() {
        let along = sharding.layout().get(axis).map_or(0, Vec::len);
        let counts: usize = graph.shape(x.id)[next..next + along].iter().product();
        order.extend((next..next + along).map(to_i64));
        order.push(to_i64(named.len() + axis));
        shape.push(size * counts);
        next += along;
    }
    let id = graph.transpose(x.id, Some(&order))?;
    let id = graph.reshape_named(id, shape, Some(names.into_iter().collect()))?;
    Ok(Value { id, ..x })
}
