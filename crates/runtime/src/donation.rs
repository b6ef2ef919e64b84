//! Which donated inputs a program can make use of.

use nxla_expr::{ExprId, Program, TensorType};

/// The donated inputs whose memory no output can take over: those that have the type of no output
/// that is left, and those that the program does not need.
pub fn unusable_donations(program: &Program, donated: &[bool]) -> Vec<usize> {
    if !donated.contains(&true) {
        return Vec::new();
    }
    let graph = program.graph();
    let roots: Vec<ExprId> = program.outputs().iter().chain(graph.effects()).copied().collect();
    let needed = graph.reachable(&roots);
    let mut free: Vec<&TensorType> = program.output_types().collect();
    let mut takes = |input: usize| {
        let ty = &program.inputs()[input];
        let fits = |output: &&TensorType| output.dtype == ty.dtype && output.shape == ty.shape;
        let found = free.iter().position(fits);
        found.map(|output| free.remove(output)).is_some()
    };
    let marked = donated.iter().enumerate().filter(|(_, is_donated)| **is_donated);
    let unusable = marked.filter(|&(input, _)| {
        let is_needed = needed.contains(program.parameters()[input]);
        !(is_needed && takes(input))
    });
    unusable.map(|(input, _)| input).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nxla_expr::Graph;
    use nxla_tensor::DType;

    #[test]
    fn an_output_takes_over_one_input_of_its_type() {
        let inputs = [[2], [2], [3], [2]].map(|shape| TensorType::new(DType::F32, shape));
        let mut graph = Graph::new();
        let parameters: Vec<_> =
            inputs.iter().enumerate().map(|(at, ty)| graph.parameter(at, ty.clone())).collect();
        let sum = graph.add(parameters[0], parameters[1]).unwrap();
        let far = graph.exp(parameters[2]).unwrap();
        let program = Program::new(&graph, inputs.to_vec(), &[sum, far]).unwrap();
        assert_eq!(unusable_donations(&program, &[true; 4]), [1, 3]);
        assert_eq!(unusable_donations(&program, &[false, true, true, false]), []);
        assert_eq!(unusable_donations(&program, &[]), []);
    }
}
