//! A Kalman filter, which estimates position and velocity from noisy positions. The filter is a
//! scan whose state is a struct, and gradient descent finds the variance of the noise.

use nxla::prelude::*;
use nxla::{Draw, scan};

#[derive(Container)]
struct Belief<T> {
    mean: T,
    covariance: T,
}

/// Updates the filter with one observation. Also returns the mean, and the negative logarithm of the
/// likelihood of the observation.
fn observe(belief: Belief<Expr>, position: Expr, noise: &Expr) -> (Belief<Expr>, (Expr, Expr)) {
    let motion = Expr::from([[1f32, 0.1], [0.0, 1.0]]);
    let drift = Expr::from([[1e-5f32, 0.0], [0.0, 1e-4]]);
    let mean = motion.dot(&belief.mean);
    let covariance = motion.dot(&belief.covariance).dot(motion.transpose(())) + drift;
    let variance = covariance.at((0, 0)) + noise;
    let innovation = position - mean.at(0);
    let loss = (variance.log() + innovation.pow(2) / &variance) / 2;
    let gain = covariance.at((.., 0)) / variance;
    let mean = &mean + &gain * innovation;
    let covariance = &covariance - gain.new_axis(-1) * covariance.at((..1, ..));
    (Belief { mean: mean.clone(), covariance }, (mean, loss))
}

/// Returns all means, and the mean loss.
fn filter(log_noise: &Expr, positions: &Expr) -> (Expr, Expr) {
    let (mean, covariance) = (Expr::zeros([2], DType::F32), Expr::eye([2, 2], DType::F32));
    let (belief, noise) = (Belief { mean, covariance }, log_noise.exp());
    let (_, (means, losses)) = scan(belief, positions.clone(), |b, x| observe(b, x, &noise));
    (means, losses.mean())
}

/// Returns the largest of the errors of the last velocity and of the deviation of the noise.
pub fn run(compiler: &str) -> nxla::Result<f32> {
    let (true_speed, true_deviation) = (0.7, 0.5);
    let draw = Draw::new([400]).dtype(DType::F32);
    let (noise, _) = Tensor::random_key(7)?.random_normal(0.0, true_deviation, draw)?;
    let times = Tensor::iota([400], None, DType::F32)?;
    let positions = (times.chain() * (0.1 * true_speed) + noise).done()?;
    let step = jit(|log_noise: Expr, positions: Expr| {
        let slope = grad(|log_noise: Expr| filter(&log_noise, &positions).1)(log_noise.clone());
        log_noise - slope
    });
    let step = step.compiler(compiler);
    let mut log_noise = Tensor::from(2f32);
    for _ in 0..30 {
        log_noise = step.call((&log_noise, &positions))?;
    }
    let means = jit(|log_noise: Expr, positions: Expr| filter(&log_noise, &positions).0);
    let speed = means.compiler(compiler).call((&log_noise, &positions))?.at((-1, 1))?;
    let deviation = (log_noise / 2)?.exp()?;
    let errors =
        [speed.item::<f32>()? - true_speed, deviation.item::<f32>()? - true_deviation as f32];
    Ok(errors.into_iter().fold(0.0, |most, error| most.max(error.abs())))
}

fn main() -> nxla::Result<()> {
    assert!(run("evaluator")? < 0.1);
    Ok(())
}
