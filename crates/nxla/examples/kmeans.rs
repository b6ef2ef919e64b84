//! Groups points by k-means: S. P. Lloyd, "Least squares quantization in PCM" (1982). The iteration is
//! a loop of the program, which ends when no point changes its group.

use nxla::prelude::*;
use nxla::{Draw, Index, Norm, while_loop};

const GROUPS: usize = 3;

/// Returns the group of each point, the one with the nearest center.
fn assign(points: &Expr, centers: &Expr) -> Expr {
    let offsets = points.new_axis(1) - centers.new_axis(0);
    offsets.pow(2).sum_over(-1).argmin(1)
}

/// Returns the mean of each group. An empty group has its center at the origin.
fn means(points: &Expr, groups: &Expr) -> Expr {
    let members = groups.new_axis(1).equal(Expr::iota([GROUPS], None, DType::S32));
    let members = members.as_type(DType::F32);
    let counts = members.sum_over(0).max(1);
    members.transpose(()).dot(points) / counts.new_axis(1)
}

/// Returns the final centers and groups.
fn cluster(points: Expr, centers: Expr) -> (Expr, Expr) {
    let groups = assign(&points, &centers);
    let state = (centers, groups, Expr::of(true));
    let (centers, groups, _) = while_loop(
        state,
        |(_, _, has_changed)| has_changed.clone(),
        |(_, groups, _)| {
            let centers = means(&points, &groups);
            let next = assign(&points, &centers);
            let has_changed = next.not_equal(&groups).any();
            (centers, next, has_changed)
        },
    );
    (centers, groups)
}

/// Returns the largest distance of a center from the point around which its group was drawn.
pub fn run(compiler: &str) -> nxla::Result<f32> {
    let origins = Tensor::from([[0f32, 4.0], [4.0, 0.0], [-4.0, -4.0]]);
    let (noise, _) = Tensor::random_key(1)?.random_normal(0.0, 0.5, Draw::new([3, 200, 2]))?;
    let points = (noise.chain() + origins.new_axis(1)?).then(|x| x.reshape([600, 2])).done()?;
    let start = points.at((Index::from(..).step(200), ..))?;
    let (centers, _) = jit(cluster).compiler(compiler).call((&points, &start))?;
    let distances = (centers.chain() - &origins).then(|x| x.norm(Norm::Euclid, 1)).done()?;
    distances.reduce_max()?.item()
}

fn main() -> nxla::Result<()> {
    assert!(run("evaluator")? < 0.1);
    Ok(())
}
