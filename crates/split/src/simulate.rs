//! Simulation of stages on a cluster by list scheduling.
//!
//! Stages with the longest path to the end are assigned first, each to the worker on which it ends
//! first, including the transfer of its arguments. This is the heuristic of Topcuoglu, Hariri and
//! Wu, *Performance-effective and low-complexity task scheduling for heterogeneous computing*, IEEE
//! TPDS 13 (2002), for identical workers.

use std::cmp::Reverse;
use std::fmt;

use crate::cost::{Speed, cost_of};
use crate::stage::{StageGraph, StageId, bytes_of};

/// Identical workers. Each worker runs one stage at a time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cluster {
    /// The number of workers.
    pub workers: usize,
    /// The bandwidth between workers in bytes per second.
    pub bandwidth: f64,
    /// The latency of a transfer in seconds.
    pub latency: f64,
}

/// The run of a stage on a worker, in seconds from the start.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct Run {
    /// The stage.
    pub stage: StageId,
    /// The worker, starting at 0.
    pub worker: usize,
    /// The time at which its arguments are available and it starts.
    pub start: f64,
    /// The time at which it ends.
    pub end: f64,
    /// The bytes of arguments that other workers sent.
    pub received: u64,
}

/// The runs of all stages.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Timeline {
    /// The runs in the order of the stages.
    pub runs: Vec<Run>,
    /// The end of the last run in seconds.
    pub makespan: f64,
}

/// The width of the chart of a timeline in characters.
const WIDTH: usize = 60;
/// The maximum number of workers in a chart.
const SHOWN: usize = 32;

/// Writes a chart with a line for each worker: the last digit of the running stage, or a dot while
/// the worker waits.
impl fmt::Display for Timeline {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positions in a chart"
    )]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let column = |time: f64| match self.makespan {
            0.0 => 0,
            makespan => ((time / makespan * WIDTH as f64) as usize).min(WIDTH - 1),
        };
        let workers = self.runs.iter().map(|run| run.worker + 1).max().unwrap_or(0);
        for worker in 0..workers.min(SHOWN) {
            let mut line = [b'.'; WIDTH];
            for run in self.runs.iter().filter(|run| run.worker == worker) {
                let digit = b"0123456789"[run.stage.index() % 10];
                line[column(run.start)..=column(run.end)].fill(digit);
            }
            writeln!(f, "worker {worker:2} {}", line.map(char::from).iter().collect::<String>())?;
        }
        if workers > SHOWN {
            writeln!(f, "… and {} more workers", workers - SHOWN)?;
        }
        write!(f, "{:.3e} s", self.makespan)
    }
}

impl StageGraph {
    /// Returns the estimated time of each stage on a processor of this speed in seconds.
    pub fn seconds(&self, speed: &Speed) -> Vec<f64> {
        self.stages().iter().map(|stage| speed.seconds(cost_of(&stage.program))).collect()
    }

    /// Simulates the stages on a cluster, where stage `s` takes `seconds[s]`. Inputs are available
    /// on every worker.
    ///
    /// # Panics
    /// Panics if there are no workers, or if the number of times differs from the number of stages.
    pub fn simulate(&self, cluster: &Cluster, seconds: &[f64]) -> Timeline {
        assert!(cluster.workers > 0, "a cluster has at least one worker");
        assert_eq!(seconds.len(), self.stages().len(), "one time for each stage");
        let mut simulation = Simulation {
            graph: self,
            cluster,
            // A stage runs on one worker, so further workers stay idle.
            free: vec![0.0; cluster.workers.min(seconds.len())],
            places: vec![Vec::new(); self.dependencies.first_slot[self.stages().len()]],
            runs: vec![None; self.stages().len()],
        };
        for stage in self.by_urgency(seconds) {
            simulation.place(stage, seconds[stage]);
        }
        let runs: Vec<Run> = simulation.runs.into_iter().flatten().collect();
        let makespan = runs.iter().map(|run| run.end).fold(0.0, f64::max);
        Timeline { runs, makespan }
    }

    /// Returns the rank of each stage in an order for several workers: stages with the most
    /// remaining work come first. This is the order of [`StageGraph::simulate`] with estimated
    /// times.
    pub fn ranks(&self) -> &[usize] {
        self.dependencies.ranks.get_or_init(|| {
            let order = self.by_urgency(&self.seconds(&Speed::default()));
            let mut ranks = vec![0; order.len()];
            for (rank, stage) in order.into_iter().enumerate() {
                ranks[stage] = rank;
            }
            ranks
        })
    }

    /// Returns the stages in decreasing order of remaining work, after their dependencies.
    fn by_urgency(&self, seconds: &[f64]) -> Vec<usize> {
        let count = self.stages().len();
        let mut left = vec![0.0_f64; count];
        for stage in (0..count).rev() {
            let after = self.dependencies.dependents.of(stage).iter();
            let after = after.map(|&next| left[next]).fold(0.0, f64::max);
            left[stage] = after + seconds[stage];
        }
        let mut order: Vec<usize> = (0..count).collect();
        // Among stages without time, the stage with the smallest number runs first, because a stage
        // depends only on earlier stages.
        order.sort_by(|&one, &other| left[other].total_cmp(&left[one]).then(one.cmp(&other)));
        order
    }
}

struct Simulation<'g> {
    graph: &'g StageGraph,
    cluster: &'g Cluster,
    /// The time at which each worker has finished its assigned stages.
    free: Vec<f64>,
    /// For each value, the workers that have it and since when.
    places: Vec<Vec<(usize, f64)>>,
    runs: Vec<Option<Run>>,
}

impl Simulation<'_> {
    /// Assigns a stage to the worker on which it ends first.
    fn place(&mut self, stage: usize, seconds: f64) {
        let dependencies = &self.graph.dependencies;
        let arguments =
            dependencies.arguments.of(stage).iter().filter(|&&slot| slot >= dependencies.inputs);
        let arguments: Vec<usize> = arguments.copied().collect();
        let idle = (0..self.free.len()).min_by(|&one, &other| {
            self.free[one].total_cmp(&self.free[other]).then(one.cmp(&other))
        });
        let holders = arguments.iter().flat_map(|&slot| &self.places[slot]);
        let workers = holders.map(|&(worker, _)| worker).chain(idle);
        let begins = |worker: usize| {
            let arrived = arguments.iter().map(|&slot| self.arrival(slot, worker).0);
            arrived.fold(self.free[worker].max(self.earliest(stage)), f64::max)
        };
        // Among equal workers, choose the worker that has most of the arguments, to reduce
        // transfers.
        let (start, Reverse(_), worker) = workers
            .map(|worker| {
                let here = arguments.iter().filter(|&&slot| self.arrival(slot, worker).1 == 0);
                (begins(worker), Reverse(here.count()), worker)
            })
            .min_by(|one, other| {
                one.0.total_cmp(&other.0).then((one.1, one.2).cmp(&(other.1, other.2)))
            })
            .expect("there is a worker");
        let mut received = 0;
        for &slot in &arguments {
            let (arrived, bytes) = self.arrival(slot, worker);
            if bytes > 0 {
                received += bytes;
                self.places[slot].push((worker, arrived));
            }
        }
        let end = start + seconds;
        self.free[worker] = end;
        for slot in dependencies.first_slot[stage]..dependencies.first_slot[stage + 1] {
            self.places[slot].push((worker, end));
        }
        let stage = StageId::from_index(stage);
        self.runs[stage.index()] = Some(Run { stage, worker, start, end, received });
    }

    /// Returns the earliest start of a stage after the stage that it follows.
    fn earliest(&self, stage: usize) -> f64 {
        let before = self.graph.stages()[stage].follows;
        before.and_then(|before| self.runs[before.index()]).map_or(0.0, |run| run.end)
    }

    /// Returns the time at which a worker can have a value, and the bytes to transfer.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn arrival(&self, slot: usize, worker: usize) -> (f64, u64) {
        let places = &self.places[slot];
        if let Some(&(_, since)) = places.iter().find(|&&(place, _)| place == worker) {
            return (since, 0);
        }
        let since = places.iter().map(|&(_, since)| since).fold(f64::INFINITY, f64::min);
        let bytes = self.graph.slot_bytes(slot);
        (since + self.cluster.latency + bytes as f64 / self.cluster.bandwidth, bytes.max(1))
    }
}

impl StageGraph {
    /// Returns the size of the value in a slot, which is an output of a stage.
    fn slot_bytes(&self, slot: usize) -> u64 {
        let firsts = &self.dependencies.first_slot;
        let stage = firsts.partition_point(|&first| first <= slot) - 1;
        let program = &self.stages()[stage].program;
        let output = program.outputs()[slot - firsts[stage]];
        bytes_of(program.graph().tensor_type(output))
    }
}
