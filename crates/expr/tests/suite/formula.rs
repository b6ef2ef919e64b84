//! Formulas: the nodes of operators, the constants of numbers, and the first error.

use nxla_expr::build::Formula;
use nxla_expr::{Graph, TensorType};
use nxla_tensor::{DType, Number};

#[test]
fn operators_create_the_nodes_of_builders() {
    let mut graph = Graph::new();
    let x = graph.parameter(0, TensorType::new(DType::F32, [3]));
    let y = graph.parameter(1, TensorType::new(DType::F32, [3]));
    let product = graph.multiply(x, y).unwrap();
    let two = graph.weak_number(Number::Float(2.0), product).unwrap();
    let difference = graph.subtract(two, product).unwrap();
    let is_less = graph.less(x, two).unwrap();
    let expected = graph.select(is_less, two, difference).unwrap();
    let count = graph.ids().count();

    let formula = Formula::new(&mut graph);
    let [a, b] = formula.terms([x, y]);
    let result = a.less(2.0).select(2.0, 2.0 - a * b).id();
    assert_eq!(result, Ok(expected));
    assert_eq!(graph.ids().count(), count);
}

#[test]
fn a_formula_returns_its_first_error_and_creates_no_later_nodes() {
    let mut graph = Graph::new();
    let x = graph.parameter(0, TensorType::new(DType::F32, [3]));
    let y = graph.parameter(1, TensorType::new(DType::F32, [4]));
    let expected = graph.add(x, y).unwrap_err();
    let count = graph.ids().count();

    let formula = Formula::new(&mut graph);
    let [a, b] = formula.terms([x, y]);
    let sum = a + b;
    assert_eq!((sum * 2.0).bitwise_not().id(), Err(expected.clone()));
    assert_eq!(formula.build(|graph| graph.exp(x)).err(), Some(expected.clone()));
    assert_eq!(formula.ids([sum, a]), Err(expected));
    assert_eq!(graph.ids().count(), count);
}
