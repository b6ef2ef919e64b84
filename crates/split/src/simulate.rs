//! How long a cluster takes for the stages: a schedule worked out ahead.
//!
//! Stages are placed one by one, those with the longest way to the end first, each where it ends
//! soonest, counting the time that its arguments need to get there: the heuristic of Topcuoglu,
//! Hariri and Wu, *Performance-effective and low-complexity task scheduling for heterogeneous
//! computing*, IEEE TPDS 13 (2002), for workers that are alike.

use std::cmp::Reverse;
use std::fmt;

use crate::cost::{Speed, cost_of};
use crate::stage::{StageGraph, StageId, bytes_of};

/// Workers that are alike, each of which runs one stage at a time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cluster {
    /// How many there are.
    pub workers: usize,
    /// How many bytes go from one to another in a second.
    pub bandwidth: f64,
    /// Seconds until the first of them arrives.
    pub latency: f64,
}

/// One stage on one worker, in seconds from the beginning.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Run {
    /// The stage.
    pub stage: StageId,
    /// The worker, counted from 0.
    pub worker: usize,
    /// When its arguments are there and it begins.
    pub start: f64,
    /// When it ends.
    pub end: f64,
    /// The bytes of arguments that came from other workers.
    pub received: u64,
}

/// What every worker does, and when.
#[derive(Clone, PartialEq, Debug)]
pub struct Timeline {
    /// One entry for each stage, in their order.
    pub runs: Vec<Run>,
    /// When the last one ends, in seconds.
    pub makespan: f64,
}

/// How many characters wide the chart of a timeline is.
const WIDTH: usize = 60;
/// The most workers in a chart.
const SHOWN: usize = 32;

/// A chart: a line for each worker, with the last digit of its stages where they run and a dot where
/// it waits.
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
    /// How long each stage takes on a processor of this speed, in seconds, by the estimate of its
    /// work.
    pub fn seconds(&self, speed: &Speed) -> Vec<f64> {
        self.stages().iter().map(|stage| speed.seconds(cost_of(&stage.program))).collect()
    }

    /// When each stage would run where, if stage `s` takes `seconds[s]`. Inputs are taken to be on
    /// every worker.
    ///
    /// # Panics
    /// If there is no worker, or not one time for each stage.
    pub fn simulate(&self, cluster: &Cluster, seconds: &[f64]) -> Timeline {
        assert!(cluster.workers > 0, "somebody has to work");
        assert_eq!(seconds.len(), self.stages().len(), "one time for each stage");
        let mut simulation = Simulation {
            graph: self,
            cluster,
            free: vec![0.0; cluster.workers],
            places: vec![Vec::new(); self.plan.first_slot[self.stages().len()]],
            runs: vec![None; self.stages().len()],
        };
        for stage in self.by_urgency(seconds) {
            simulation.place(stage, seconds[stage]);
        }
        let runs: Vec<Run> = simulation.runs.into_iter().flatten().collect();
        let makespan = runs.iter().map(|run| run.end).fold(0.0, f64::max);
        Timeline { runs, makespan }
    }

    /// The place of each stage in an order for several workers: stages first after which most is to be
    /// done, by the estimate of their work. It is that of [`StageGraph::simulate`] with such estimates.
    pub fn ranks(&self) -> &[usize] {
        self.plan.ranks.get_or_init(|| {
            let order = self.by_urgency(&self.seconds(&Speed::default()));
            let mut ranks = vec![0; order.len()];
            for (rank, stage) in order.into_iter().enumerate() {
                ranks[stage] = rank;
            }
            ranks
        })
    }

    /// The stages, those first after which most is to be done. Each comes after those it needs.
    fn by_urgency(&self, seconds: &[f64]) -> Vec<usize> {
        let count = self.stages().len();
        let mut left = vec![0.0_f64; count];
        for stage in (0..count).rev() {
            let after = self.plan.dependents.of(stage).iter();
            let after = after.map(|&next| left[next]).fold(0.0, f64::max);
            left[stage] = after + seconds[stage];
        }
        let mut order: Vec<usize> = (0..count).collect();
        // Where stages take no time the numbers decide, which are in an order that can run.
        order.sort_by(|&one, &other| left[other].total_cmp(&left[one]).then(one.cmp(&other)));
        order
    }
}

struct Simulation<'g> {
    graph: &'g StageGraph,
    cluster: &'g Cluster,
    /// When each worker is done with what it was given so far.
    free: Vec<f64>,
    /// For each value the workers that have it, and since when.
    places: Vec<Vec<(usize, f64)>>,
    runs: Vec<Option<Run>>,
}

impl Simulation<'_> {
    /// Places a stage where it ends soonest.
    fn place(&mut self, stage: usize, seconds: f64) {
        let plan = &self.graph.plan;
        let arguments = plan.arguments.of(stage).iter().filter(|&&slot| slot >= plan.inputs);
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
        // Of equal ones that which has most of the arguments, so that little travels.
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
        for slot in plan.first_slot[stage]..plan.first_slot[stage + 1] {
            self.places[slot].push((worker, end));
        }
        let stage = StageId::from_index(stage);
        self.runs[stage.index()] = Some(Run { stage, worker, start, end, received });
    }

    /// When a stage may begin at the earliest because of one that it follows.
    fn earliest(&self, stage: usize) -> f64 {
        let before = self.graph.stages()[stage].follows;
        before.and_then(|before| self.runs[before.index()]).map_or(0.0, |run| run.end)
    }

    /// When a worker can have a value, and how many bytes have to travel for that.
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
    /// The size of the value in a slot, which an output of a stage has.
    fn slot_bytes(&self, slot: usize) -> u64 {
        let firsts = &self.plan.first_slot;
        let stage = firsts.partition_point(|&first| first <= slot) - 1;
        let program = &self.stages()[stage].program;
        let output = program.outputs()[slot - firsts[stage]];
        bytes_of(program.graph().tensor_type(output))
    }
}
