//! Serves a model asynchronously: requests that arrive together share one call, and no thread waits
//! for its results.

use nxla::prelude::*;
use nxla::{BoxedJit, ready};
use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot};

/// The number of requests that share a call at most. Short batches are padded, so that the model is
/// compiled once.
const BATCH: usize = 8;

type Request = (f32, oneshot::Sender<i32>);

/// Answers requests until all senders are gone. Returns the number of calls.
async fn serve(
    model: BoxedJit<(Expr, Expr), Expr>,
    weights: Tensor,
    mut requests: mpsc::Receiver<Request>,
) -> nxla::Result<usize> {
    let (mut batch, mut calls) = (Vec::new(), 0);
    while requests.recv_many(&mut batch, BATCH).await > 0 {
        let mut features: Vec<f32> = batch.iter().flat_map(|(x, _)| [*x, 1.0 - x]).collect();
        features.resize(2 * BATCH, 0.0);
        let classes = model.call((Tensor::new(features, [BATCH, 2])?, &weights))?;
        let classes = ready(classes).await?.to_vec::<i32>()?;
        for ((_, answer), class) in batch.drain(..).zip(classes) {
            // A client may have stopped waiting.
            let _ = answer.send(class);
        }
        calls += 1;
    }
    Ok(calls)
}

/// Sends a request and waits for the answer.
async fn ask(requests: mpsc::Sender<Request>, feature: f32) -> Option<i32> {
    let (answer, answered) = oneshot::channel();
    requests.send((feature, answer)).await.ok()?;
    answered.await.ok()
}

/// Returns the share of wrong answers, or 1 if requests did not share calls.
pub fn run(compiler: &str) -> nxla::Result<f32> {
    let score = |features: Expr, weights: Expr| features.dot(weights).argmax(1);
    let model = jit(score).compiler(compiler).boxed();
    let weights = Tensor::from([[1f32, 0.0], [0.0, 1.0]]);
    let executor = Builder::new_current_thread().build().expect("an executor of one thread");
    executor.block_on(async move {
        let (sender, receiver) = mpsc::channel(100);
        let server = tokio::spawn(serve(model, weights, receiver));
        let features: Vec<f32> = (0..40).map(|at| at as f32 / 39.0).collect();
        let clients = features.iter().map(|&x| (x, tokio::spawn(ask(sender.clone(), x))));
        let clients: Vec<_> = clients.collect();
        drop(sender);
        let mut mistakes = 0.0;
        for (x, client) in clients {
            let class = client.await.expect("a client does not panic");
            mistakes += f32::from(class != Some(i32::from(x < 0.5)));
        }
        let calls = server.await.expect("the server does not panic")?;
        Ok(if calls < features.len() { mistakes / features.len() as f32 } else { 1.0 })
    })
}

fn main() -> nxla::Result<()> {
    assert_eq!(run("evaluator")?, 0.0);
    Ok(())
}
