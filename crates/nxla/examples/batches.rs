//! Asynchronous requests to a model: many tasks wait for results without blocking a thread.

use std::sync::Arc;

use nxla::prelude::*;
use nxla::{Jit, ready};

type Scores = (Expr, Expr);

/// Returns the scores of one request and the index of the best score.
async fn answer<F>(
    model: Arc<Jit<F, (Expr, Expr)>>,
    weights: Tensor,
    request: f32,
) -> nxla::Result<i32>
where
    F: nxla::Function<(Expr, Expr), Arguments = (Expr, Expr), Results = Scores>,
{
    let features = Tensor::from([request, 1.0 - request]);
    let (_, best) = ready(model.call((&weights, &features))?).await?;
    best.item()
}

/// Returns the number of wrong answers.
pub fn run(compiler: &str) -> nxla::Result<f32> {
    let score = |weights: Expr, features: Expr| {
        let scores = weights.dot(features);
        let best = scores.argmax(());
        (scores, best)
    };
    let model = Arc::new(jit(score).compiler(compiler));
    let weights = Tensor::from([[1f32, 0.0], [0.0, 1.0]]);
    let requests = [0.9, 0.1, 0.7, 0.2];
    let answers: Vec<_> =
        requests.iter().map(|&request| answer(model.clone(), weights.clone(), request)).collect();
    let mut wrong = 0.0;
    for (request, pending) in requests.into_iter().zip(answers) {
        let best = pollster::block_on(pending)?;
        wrong += f32::from(best != i32::from(request < 0.5));
    }
    Ok(wrong)
}

fn main() -> nxla::Result<()> {
    assert_eq!(run("evaluator")?, 0.0);
    Ok(())
}
