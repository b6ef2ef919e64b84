//! Positions of nodes, labels and tooltips of drawn graphs.

use nxla_tensor::DType;

use super::layout::{Drawing, Size};
use super::{SvgNode, layered_svg, to_svg};
use crate::graph::{Graph, Line, Source, TensorType};

/// Returns the values of an attribute in order of appearance.
fn attributes(svg: &str, element: &str, name: &str) -> Vec<f64> {
    svg.split(&format!("<{element} "))
        .skip(1)
        .map(|rest| {
            let (_, value) = rest.split_once(&format!(" {name}=\"")).unwrap_or_else(|| {
                rest.split_once(&format!("{name}=\"")).expect("the element has the attribute")
            });
            value.split('"').next().unwrap().parse().unwrap()
        })
        .collect()
}

/// Returns whether every opened element is closed, in order.
fn is_balanced(svg: &str) -> bool {
    let mut open = Vec::new();
    for tag in svg.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').expect("a tag ends");
        if let Some(name) = tag.strip_prefix('/') {
            if open.pop() != Some(name) {
                return false;
            }
        } else if !tag.ends_with('/') {
            open.push(tag.split(' ').next().unwrap());
        }
    }
    open.is_empty()
}

#[test]
fn expressions_are_drawn() {
    let mut graph = Graph::new();
    let line = graph.add_source(Source::Line(Line { file: "dir/train.py".into(), line: 31 }));
    let x = graph.parameter(0, TensorType::new(DType::F32, [2, 3]));
    let y = graph.parameter(1, TensorType::new(DType::F32, [3]));
    graph.set_source(line);
    let exp = graph.exp(x).unwrap();
    let sum = graph.add(exp, y).unwrap();
    let root = graph.multiply(sum, exp).unwrap();
    let svg = to_svg(&graph, &[root]);
    assert!(is_balanced(&svg), "{svg}");
    for text in ["parameter 0", "f32[2][3]", "exp", "<title>train.py:31</title>"] {
        assert!(svg.contains(text), "{text} is missing in {svg}");
    }
    assert_eq!(svg.matches("<rect ").count(), 5);
    assert_eq!(svg.matches("marker-end").count(), 5);
    assert_eq!(svg.matches("stroke-width=\"2.5\"").count(), 1, "one root");
}

#[test]
fn text_is_escaped() {
    let mut node = SvgNode::new(["</text><script>\"'&\u{1}"]);
    node.fill = "\"/><script>".into();
    node.tooltip = Some("a<b".into());
    let svg = layered_svg(&[node.clone(), node], &[(0, 1, Some("<i>".into()))]);
    assert!(is_balanced(&svg), "{svg}");
    assert!(!svg.contains("<script") && !svg.contains("<i>") && !svg.contains('\u{1}'), "{svg}");
    assert!(svg.contains("a&lt;b"));
}

#[test]
fn long_lines_are_truncated_except_in_tooltips() {
    let long = "x".repeat(300);
    let svg = layered_svg(&[SvgNode::new([long.clone()])], &[]);
    assert!(svg.contains(&format!("<title>{long}</title>")));
    assert!(svg.contains(&format!(">{}…</tspan>", "x".repeat(47))));
}

#[test]
fn empty_and_cyclic_graphs_are_drawn() {
    assert!(is_balanced(&layered_svg(&[], &[])));
    let nodes: Vec<SvgNode> = ["a", "b", "c"].map(|name| SvgNode::new([name])).into();
    let edges = [(0, 1, None), (1, 2, None), (2, 0, None), (1, 1, None)];
    let svg = layered_svg(&nodes, &edges);
    assert!(is_balanced(&svg));
    assert_eq!(svg.matches("marker-end").count(), 4);
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
}

#[test]
#[should_panic(expected = "no box 0 or 5")]
fn arrows_to_missing_nodes_panic() {
    layered_svg(&[SvgNode::new(["a"])], &[(0, 5, None)]);
}

#[test]
fn boxes_do_not_overlap_and_arrows_point_down() {
    // A grid of nodes, each with arrows from three nodes of the row above, and one arrow across all
    // rows.
    let sizes: Vec<Size> =
        (0..30_u8).map(|i| Size { width: 40.0 + f64::from(i), height: 20.0 }).collect();
    let mut edges = Vec::new();
    for node in 6..30 {
        for step in [0, 1, 4] {
            edges.push((node / 6 * 6 - 6 + (node + step) % 6, node));
        }
    }
    edges.push((0, 29));
    let layout = Drawing::new(&sizes, &edges);
    for a in 0..30 {
        assert!(layout.centers[a].x - sizes[a].width / 2.0 >= 0.0);
        assert!(layout.centers[a].x + sizes[a].width / 2.0 <= layout.size.width);
        for b in 0..a {
            let apart_x = (layout.centers[a].x - layout.centers[b].x).abs();
            let apart_y = (layout.centers[a].y - layout.centers[b].y).abs();
            let room = (sizes[a].width + sizes[b].width) / 2.0;
            assert!(apart_x >= room || apart_y >= 20.0, "{a} and {b} overlap");
        }
    }
    for path in &layout.paths {
        assert!(path.windows(2).all(|pair| pair[0].y < pair[1].y));
    }
    assert_eq!(layout.paths.last().unwrap().len(), 5, "the edge passes three joints");
}

#[test]
fn arrows_end_in_operand_order() {
    let sizes = [Size { width: 40.0, height: 20.0 }; 3];
    for edges in [[(0, 2), (1, 2)], [(1, 2), (0, 2)]] {
        let layout = Drawing::new(&sizes, &edges);
        let arrival = |edge: usize| layout.paths[edge].last().unwrap().x;
        assert!(arrival(0) < arrival(1));
    }
}

#[cfg_attr(miri, ignore = "it takes too long")]
#[test]
fn large_graphs_are_truncated() {
    let nodes: Vec<SvgNode> = (0..10_000).map(|i: i32| SvgNode::new([i.to_string()])).collect();
    let edges: Vec<_> = (1..10_000).map(|i| (i - 1, i, None)).collect();
    let svg = layered_svg(&nodes, &edges);
    assert!(svg.contains("… 9600 more nodes"));
    assert_eq!(svg.matches("<rect ").count(), 401);
    assert_eq!(svg.matches("marker-end").count(), 400);

    let mut graph = Graph::new();
    let mut x = graph.parameter(0, TensorType::scalar(DType::F32));
    for _ in 0..100_000 {
        x = graph.sin(x).unwrap();
    }
    let svg = to_svg(&graph, &[x]);
    assert!(svg.contains("… 99801 more nodes"));
    let tops = attributes(&svg, "rect", "y");
    assert_eq!(tops.len(), 201);
    assert!(tops.is_sorted(), "the box for the rest is on top");
}
