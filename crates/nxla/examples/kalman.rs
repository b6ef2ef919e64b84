//! A Kalman filter, which estimates position and velocity from noisy positions. The filter is a
//! scan whose state is a struct.

use nxla::prelude::*;
use nxla::{Draw, scan};

#[derive(Container)]
struct Belief<T> {
    mean: T,
    covariance: T,
}

/// Updates the filter with one observation.
fn observe(belief: Belief<Expr>, place: Expr) -> (Belief<Expr>, Expr) {
    let motion = Expr::of(Tensor::from([[1f32, 0.1], [0.0, 1.0]]));
    let drift = Expr::of(Tensor::from([[1e-5f32, 0.0], [0.0, 1e-4]]));
    let mean = motion.dot(&belief.mean);
    let covariance = motion.dot(&belief.covariance).dot(motion.transpose(())) + drift;
    let gain = covariance.at((.., 0)) / (covariance.at((0, 0)) + 0.25);
    let mean = &mean + &gain * (place - mean.at(0));
    let covariance = &covariance - gain.new_axis(-1) * covariance.at((..1, ..));
    (Belief { mean: mean.clone(), covariance }, mean)
}

/// Returns the difference between the last and the true velocity.
pub fn run(compiler: &str) -> nxla::Result<f32> {
    let true_speed = 0.7;
    let (noise, _) =
        Tensor::random_key(7)?.random_normal(0.0, 0.5, Draw::new([400]).dtype(DType::F32))?;
    let times = Tensor::iota([400], None, DType::F32)?;
    let places = (times.chain() * (0.1 * true_speed) + noise).done()?;
    let filter = jit(|belief: Belief<Expr>, places: Expr| scan(belief, places, observe).1);
    let covariance = Tensor::from([[1f32, 0.0], [0.0, 1.0]]);
    let belief = Belief { mean: Tensor::from([0f32, 0.0]), covariance };
    let means = filter.compiler(compiler).call((&belief, &places))?;
    Ok((means.at((-1, 1))?.item::<f32>()? - true_speed).abs())
}

fn main() -> nxla::Result<()> {
    assert!(run("evaluator")? < 0.1);
    Ok(())
}
