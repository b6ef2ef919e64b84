//! A model that is split into stages, which run on threads of this process and in other processes.
//! A process receives the bytes of a stage and its inputs, and returns the results.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use nxla::prelude::*;
use nxla::runtime::{self, Done, run_program};
use nxla::split::{Policy, Stage};
use nxla::{Error, HostTensor, Options, StageExecutor};
use serde_json::Deserializer;

/// The environment variable with the address to which a worker connects.
const ADDRESS: &str = "STAGES_ADDRESS";

/// The message of a worker: the results, or an error.
type Reply = Result<Vec<HostTensor>, String>;

/// Connections to processes. Stages are distributed evenly.
struct Processes {
    connections: Vec<Arc<Mutex<TcpStream>>>,
    next: AtomicUsize,
}

impl StageExecutor for Processes {
    fn submit(
        &self,
        stage: &Stage,
        inputs: Vec<runtime::RawTensor>,
        done: Done,
    ) -> nxla::Result<()> {
        let inputs: nxla::Result<Vec<HostTensor>> = inputs.iter().map(|x| x.to_host()).collect();
        let request = (stage.to_bytes(), inputs?);
        let next = self.next.fetch_add(1, Ordering::Relaxed) % self.connections.len();
        let connection = self.connections[next].clone();
        thread::spawn(move || {
            let reply = exchange(&connection, &request);
            done.end(move || Ok(reply?.into_iter().map(runtime::RawTensor::from).collect()));
        });
        Ok(())
    }
}

/// Sends a request to a process and waits for the reply.
fn exchange(
    connection: &Mutex<TcpStream>,
    request: &(Vec<u8>, Vec<HostTensor>),
) -> nxla::Result<Vec<HostTensor>> {
    let stream = connection.lock().unwrap_or_else(PoisonError::into_inner);
    serde_json::to_writer(&*stream, request).map_err(Error::user)?;
    let mut replies = Deserializer::from_reader(&*stream).into_iter::<Reply>();
    let reply = replies.next().ok_or_else(|| Error::user("a process has ended"))?;
    reply.map_err(Error::user)?.map_err(Error::user)
}

/// Runs stages for the process at the address until the connection closes.
pub fn work() -> Result<(), Box<dyn std::error::Error>> {
    let mut stream = TcpStream::connect(std::env::var(ADDRESS)?)?;
    let requests = Deserializer::from_reader(stream.try_clone()?);
    for request in requests.into_iter::<(Vec<u8>, Vec<HostTensor>)>() {
        let (bytes, inputs) = request?;
        let run = || -> nxla::Result<Vec<HostTensor>> {
            let stage = Stage::from_bytes(&bytes)?;
            let inputs: Vec<runtime::RawTensor> = inputs.into_iter().map(Into::into).collect();
            let inputs: Vec<&runtime::RawTensor> = inputs.iter().collect();
            let results = run_program("stage", &stage.program, &Options::new(), &inputs, None)?;
            results.iter().map(|x| x.to_host()).collect()
        };
        let reply: Reply = run().map_err(|error| error.to_string());
        serde_json::to_writer(&mut stream, &reply)?;
        stream.flush()?;
    }
    Ok(())
}

/// Returns the largest difference between the results of the stages and of the whole function.
/// `worker` starts a process that calls [`work`].
pub fn run_with(compiler: &str, worker: impl Fn() -> Command) -> nxla::Result<f32> {
    let layer = |x: Expr, at: usize| (x.dot(Expr::eye([8, 8], DType::F32) * (at + 1)) / 9).tanh();
    let model = jit(move |x: Expr| (0..6).fold(x, layer)).compiler(compiler);
    let x = Tensor::linspace(-1.0, 1.0, 64, true, DType::F32)?.reshape([8, 8])?;
    let stages = model.stages(&x, &Policy::Balanced(3))?;
    let on_threads = stages.run(&x)?;

    let listener = TcpListener::bind("127.0.0.1:0").map_err(Error::user)?;
    let address = listener.local_addr().map_err(Error::user)?.to_string();
    let (mut processes, mut connections) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        processes.push(worker().env(ADDRESS, &address).spawn().map_err(Error::user)?);
        let (stream, _) = listener.accept().map_err(Error::user)?;
        connections.push(Arc::new(Mutex::new(stream)));
    }
    let executor = Processes { connections, next: AtomicUsize::new(0) };
    let in_processes = stages.run_on(&executor, &x)?;
    drop(executor);
    for mut process in processes {
        process.wait().map_err(Error::user)?;
    }

    let expected = model.call(&x)?;
    let differences =
        [on_threads, in_processes].map(|found| (found - &expected)?.abs()?.reduce_max()?.item());
    let [on_threads, in_processes]: [nxla::Result<f32>; 2] = differences;
    Ok(on_threads?.max(in_processes?))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::var_os(ADDRESS).is_some() {
        return work();
    }
    let program = std::env::current_exe()?;
    assert_eq!(run_with("evaluator", || Command::new(&program))?, 0.0);
    Ok(())
}
