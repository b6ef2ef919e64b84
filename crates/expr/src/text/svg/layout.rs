//! Layered layout of boxes and arrows.
//!
//! This is the algorithm of Sugiyama, Tagawa and Toda. It assigns each node to a layer below its
//! predecessors, and inserts a joint wherever a long arrow crosses a layer. It orders each layer by
//! the mean position of the neighbors in the previous layer. Finally, it computes horizontal
//! positions close to the neighbors: a least-squares fit with minimal distances, which pooling
//! adjacent violators solves exactly.

/// Width and height.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Size {
    pub(super) width: f64,
    pub(super) height: f64,
}

/// A point of the drawing.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
}

/// The margin around the drawing.
const MARGIN: f64 = 16.0;
/// The distance between neighbors in a layer.
const GAP: f64 = 24.0;
/// The distance between layers.
const LAYER_GAP: f64 = 44.0;
/// The width of a long arrow where it crosses a layer.
const JOINT: f64 = 8.0;
/// The fraction of a box's width over which incoming arrows are distributed.
const SPREAD: f64 = 0.8;
/// The number of downward and upward passes that improve order and positions.
const SWEEPS: usize = 12;

pub(super) struct Drawing {
    /// The center of each box.
    pub(super) centers: Vec<Point>,
    /// The points of each arrow.
    pub(super) paths: Vec<Vec<Point>>,
    pub(super) size: Size,
}

impl Drawing {
    pub(super) fn new(sizes: &[Size], edges: &[(usize, usize)]) -> Self {
        let layers = layers(sizes.len(), edges);
        let mut grid = Grid::new(sizes, edges, &layers);
        grid.order();
        let x = grid.positions();
        let (middles, bottom) = row_middles(sizes, &layers);
        let point = |node: usize| Point { x: x[node], y: middles[grid.layer_of[node]] };
        let centers: Vec<Point> = (0..sizes.len()).map(point).collect();
        let paths = edges
            .iter()
            .zip(&grid.joints)
            .zip(ports(sizes.len(), edges))
            .map(|((&(from, to), joints), port)| {
                // An arrow to a higher layer leaves its box at the top and arrives at the bottom.
                let down = if layers[from] < layers[to] { 0.5 } else { -0.5 };
                let start = centers[from].y + down * sizes[from].height;
                let mut path = vec![Point { x: centers[from].x, y: start }];
                path.extend(joints.iter().map(|&joint| point(joint)));
                let arrival = centers[to].x + port * sizes[to].width * SPREAD;
                path.push(Point { x: arrival, y: centers[to].y - down * sizes[to].height });
                path
            })
            .collect();
        let width = |node: usize| x[node] + grid.widths[node] / 2.0;
        let right = (0..x.len()).map(width).fold(0.0, f64::max);
        let size = Size { width: (right + MARGIN).max(2.0 * MARGIN), height: bottom + MARGIN };
        Self { centers, paths, size }
    }
}

/// Assigns layers: each node is one layer below its lowest predecessor. A node without predecessors
/// moves down to the layer above its first user. In a cycle, the arrow back to the first visited
/// node is ignored.
fn layers(count: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); count];
    let mut waiting = vec![0_usize; count];
    for &(from, to) in edges.iter().filter(|(from, to)| from != to) {
        users[from].push(to);
        waiting[to] += 1;
    }
    let is_source: Vec<bool> = waiting.iter().map(|&count| count == 0).collect();
    let mut layer = vec![0_usize; count];
    let mut done = vec![false; count];
    let mut ready: Vec<usize> = (0..count).filter(|&node| is_source[node]).collect();
    let mut first_left = 0;
    // If only cycles remain, one is broken at its first node.
    let mut first_of_cycles = |done: &[bool]| {
        first_left = (first_left..count).find(|&node| !done[node])?;
        Some(first_left)
    };
    while let Some(node) = ready.pop().or_else(|| first_of_cycles(&done)) {
        done[node] = true;
        for &user in &users[node] {
            if done[user] {
                continue;
            }
            layer[user] = layer[user].max(layer[node] + 1);
            waiting[user] -= 1;
            if waiting[user] == 0 {
                ready.push(user);
            }
        }
    }
    for node in (0..count).filter(|&node| is_source[node]) {
        if let Some(first) = users[node].iter().map(|&user| layer[user]).min() {
            layer[node] = first.saturating_sub(1);
        }
    }
    layer
}

/// The nodes and joints of each layer, from left to right.
struct Grid {
    rows: Vec<Vec<usize>>,
    /// The neighbors in the layers above and below, with the relative position of the arrow on the
    /// box: 0 is the middle, ±0.5 are the ends.
    above: Vec<Vec<(usize, f64)>>,
    below: Vec<Vec<(usize, f64)>>,
    widths: Vec<f64>,
    layer_of: Vec<usize>,
    /// The joints of each arrow, from its tail to its head.
    joints: Vec<Vec<usize>>,
}

impl Grid {
    fn new(sizes: &[Size], edges: &[(usize, usize)], layers: &[usize]) -> Self {
        let count = layers.iter().max().map_or(0, |last| last + 1);
        let mut grid = Self {
            rows: vec![Vec::new(); count],
            above: vec![Vec::new(); sizes.len()],
            below: vec![Vec::new(); sizes.len()],
            widths: sizes.iter().map(|size| size.width).collect(),
            layer_of: layers.to_vec(),
            joints: Vec::with_capacity(edges.len()),
        };
        for (node, &layer) in layers.iter().enumerate() {
            grid.rows[layer].push(node);
        }
        for (&(from, to), port) in edges.iter().zip(ports(sizes.len(), edges)) {
            let joints = grid.connect(from, to, port);
            grid.joints.push(joints);
        }
        grid
    }

    /// Adds the joints of an arrow, and the links between adjacent layers.
    fn connect(&mut self, from: usize, to: usize, port: f64) -> Vec<usize> {
        let (start, end) = (self.layer_of[from], self.layer_of[to]);
        let between: Vec<usize> = if start <= end {
            (start + 1..end).collect()
        } else {
            (end + 1..start).rev().collect()
        };
        let mut joints = Vec::with_capacity(between.len());
        let mut last = from;
        for layer in between {
            let joint = self.widths.len();
            self.widths.push(JOINT);
            self.layer_of.push(layer);
            self.above.push(Vec::new());
            self.below.push(Vec::new());
            self.rows[layer].push(joint);
            self.link(last, joint, 0.0);
            joints.push(joint);
            last = joint;
        }
        self.link(last, to, port);
        joints
    }

    fn link(&mut self, from: usize, to: usize, port: f64) {
        if self.layer_of[from] < self.layer_of[to] {
            self.below[from].push((to, port));
            self.above[to].push((from, 0.0));
        } else if self.layer_of[from] > self.layer_of[to] {
            self.above[from].push((to, port));
            self.below[to].push((from, 0.0));
        }
    }

    /// Sorts each layer by the mean position of the neighbors, alternating downward and upward.
    fn order(&mut self) {
        let mut place = vec![0.0; self.widths.len()];
        for row in &self.rows {
            number(row, &mut place);
        }
        for sweep in 0..SWEEPS {
            let downward = sweep % 2 == 0;
            for step in 1..self.rows.len() {
                let layer = if downward { step } else { self.rows.len() - 1 - step };
                let neighbors = if downward { &self.above } else { &self.below };
                let keys: Vec<(f64, usize)> = self.rows[layer]
                    .iter()
                    .map(|&node| {
                        let wanted = mean(&neighbors[node], |other, port| place[other] + port);
                        (wanted.unwrap_or(place[node]), node)
                    })
                    .collect();
                let mut sorted = keys;
                sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
                self.rows[layer] = sorted.into_iter().map(|(_, node)| node).collect();
                number(&self.rows[layer], &mut place);
            }
        }
    }

    /// Computes the horizontal center of every node and joint.
    fn positions(&self) -> Vec<f64> {
        let mut x = vec![0.0; self.widths.len()];
        for row in &self.rows {
            self.settle(row, &mut x, |_, _| None);
        }
        for sweep in 0..SWEEPS {
            let downward = sweep % 2 == 0;
            for step in 0..self.rows.len() {
                let layer = if downward { step } else { self.rows.len() - 1 - step };
                self.settle(&self.rows[layer], &mut x, |node, x| {
                    let at =
                        |other: usize, port: f64| x[other] + port * self.widths[other] * SPREAD;
                    let side = if downward { &self.above[node] } else { &self.below[node] };
                    mean(side, at)
                        .or_else(|| mean(self.above[node].iter().chain(&self.below[node]), at))
                });
            }
        }
        let left = |node: usize| x[node] - self.widths[node] / 2.0;
        let edge = (0..x.len()).map(left).fold(f64::INFINITY, f64::min);
        x.iter().map(|x| x - edge + MARGIN).collect()
    }

    /// Moves the nodes of a layer as close as possible to their wanted positions, preserving their
    /// order and distances.
    fn settle(&self, row: &[usize], x: &mut [f64], wanted: impl Fn(usize, &[f64]) -> Option<f64>) {
        // After subtracting the distances, only the order remains as a constraint.
        let mut offset = 0.0;
        let mut offsets = Vec::with_capacity(row.len());
        // Pooled runs: the sum of the wanted positions, and the number of nodes that share the
        // mean.
        let mut runs: Vec<(f64, f64)> = Vec::new();
        let mut lengths: Vec<usize> = Vec::new();
        for (index, &node) in row.iter().enumerate() {
            if index > 0 {
                offset += (self.widths[row[index - 1]] + self.widths[node]) / 2.0 + GAP;
            }
            offsets.push(offset);
            let mut run = (wanted(node, x).unwrap_or(x[node]) - offset, 1.0);
            let mut length = 1;
            while let Some(&(sum, weight)) = runs.last()
                && sum / weight >= run.0 / run.1
            {
                runs.pop();
                run = (run.0 + sum, run.1 + weight);
                length += lengths.pop().expect("each run has a length");
            }
            runs.push(run);
            lengths.push(length);
        }
        let means = runs.iter().zip(&lengths);
        let settled =
            means.flat_map(|(&(sum, weight), &length)| std::iter::repeat_n(sum / weight, length));
        for ((&node, offset), base) in row.iter().zip(offsets).zip(settled) {
            x[node] = base + offset;
        }
    }
}

/// Records the index of each node of a layer.
fn number(row: &[usize], place: &mut [f64]) {
    let mut next = 0.0;
    for &node in row {
        place[node] = next;
        next += 1.0;
    }
}

fn mean<'a>(
    neighbors: impl IntoIterator<Item = &'a (usize, f64)>,
    place: impl Fn(usize, f64) -> f64,
) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0.0);
    for &(node, port) in neighbors {
        sum += place(node, port);
        count += 1.0;
    }
    (count > 0.0).then(|| sum / count)
}

/// Returns the center of each layer, and the bottom of the last layer.
fn row_middles(sizes: &[Size], layers: &[usize]) -> (Vec<f64>, f64) {
    let count = layers.iter().max().map_or(0, |last| last + 1);
    let mut heights = vec![0.0_f64; count];
    for (size, &layer) in sizes.iter().zip(layers) {
        heights[layer] = heights[layer].max(size.height);
    }
    let mut bottom = MARGIN;
    let mut middles = Vec::with_capacity(count);
    for (layer, height) in heights.into_iter().enumerate() {
        let top = if layer == 0 { bottom } else { bottom + LAYER_GAP };
        middles.push(top + height / 2.0);
        bottom = top + height;
    }
    (middles, bottom)
}

/// Returns the position of each arrow on its box, from -0.5 to 0.5, in the order of the arrows.
fn ports(count: usize, edges: &[(usize, usize)]) -> Vec<f64> {
    let mut total = vec![0.0; count];
    for &(_, to) in edges {
        total[to] += 1.0;
    }
    let mut met = vec![0.0; count];
    let port = |&(_, to): &(usize, usize)| {
        met[to] += 1.0;
        met[to] / (total[to] + 1.0) - 0.5
    };
    edges.iter().map(port).collect()
}
