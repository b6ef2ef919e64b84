"""Write `docs/learn/nx-promises.md`: the promises of the documentation of Nx, with their tests.

Each row has a promise and the names of its tests; the script finds the files of the tests. `make
promises` writes the page, and `--check` fails if it is out of date.
"""

# ruff: noqa: E501
from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from generated import write_or_check

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/learn/nx-promises.md"

HEAD = """\
# The promises of Nx

This page lists the promises in the documentation of `Nx.Defn.Graph`, `Nx.Defn.Compiler`, `Nx.Defn.Expr`, `Nx.Defn` and `EXLA.Backend`,
with the tests of each. A test of results in Python runs on the evaluator, on XLA, and on the compiler `auto`.
[For users of Nx](nx.md) shows the corresponding names and the differences. `make promises` writes this page.
"""

#: The documents, each with its promises and the names of their tests.
DOCUMENTS: dict[str, list[tuple[str, str]]] = {
    "Nx.Defn.Graph": [
        ("`split` with a function of one node", "test_split_decisions"),
        ("`split` with an accumulator", "test_accumulator_splits_by_operation_count accumulator_splits_after_a_count_of_ops accumulator_follows_the_visits"),
        ("`split` also returns the final accumulator", "test_split_decisions_use_an_accumulator"),
        ("`:before` ends a stage with the operands", "test_split_decisions before_cuts_after_the_operands"),
        ("`:after` ends a stage with the node", "test_split_decisions after_cuts_after_the_node"),
        ("`:both` isolates the node", "test_split_decisions both_isolates_the_node"),
        ("`:none` cuts nothing", "test_split_decisions no_cut_returns_one_stage"),
        ("Any other decision is rejected", "test_invalid_decisions_are_rejected"),
        ("A decision sees operation, type and operands", "test_decision_receives_operation_type_and_operands"),
        ("Nodes are visited in post-order", "test_decisions_are_made_in_post_order visits_are_depth_first_and_skip_parameters"),
        ("A stage has `expr` with its outputs as a tuple", "test_an_expression_iterates_over_its_outputs test_the_documentation_example_prints_its_stages"),
        ("The last stage has the output of the whole", "test_the_last_stage_has_the_container_of_the_function stages_keep_the_containers_of_the_function"),
        ("Integers stay `s32`, and `sin` returns `f32`", "test_documentation_example_of_streams"),
        ("Arguments of a stage are inputs and values of stages", "test_documentation_example_of_streams inputs_precede_values_of_stages"),
        ("`run` executes the stages in order", "test_staged_results_equal_jitted_results stages_keep_program_results"),
        ("`run` takes a list of stages", "test_lists_of_stages_run_in_any_order test_run_accepts_a_list_of_stages"),
        ("A list of stages that do not match is rejected", "test_mismatched_lists_of_stages_raise inconsistent_stages_are_rejected"),
        ("`run` takes options", "test_stages_on_an_executor_use_the_default_options"),
    ],
    "Nx.Defn.Compiler": [
        ("`compile` returns a function of lists of arguments", "test_compile_callback_receives_lists_of_arguments"),
        ("A compiler needs only `compile` of an expression", "test_compile_returns_a_function_of_inputs compilers_can_override_calls_and_streams"),
        ("`jit` gets key, variables, function, arguments, options", "test_jit_callback_receives_lists_of_arguments"),
        ("`jit` runs several partitions in one call", "test_one_call_runs_several_partitions calls_run_several_partitions"),
        ("Partitions run on every compiler", "test_partitions_run_on_every_compiler partitions_run_on_every_compiler"),
        ("Lists of arguments have the same types", "test_one_call_runs_several_partitions calls_run_several_partitions"),
        ("Arguments are functions that return tensors", "test_jit_callback_receives_lists_of_arguments"),
        ("The key excludes variables: a cache adds their types", "test_jit_callback_receives_lists_of_arguments calls_run_several_partitions"),
        ("Types, shapes and names are part of the key", "test_cache_key_has_types_shapes_and_names"),
        ("Partitions have options", "test_partitions_options_select_devices options_report_backend_and_partitions"),
        ("Options of partitions are for `jit`", "test_partition_options_reach_the_jit_callback options_of_partitions_are_for_jit"),
        ("`stream` gets templates and flat arguments", "test_stream_callback_receives_flat_arguments"),
        ("Streams go through the compiler", "test_streams_use_the_compiler compilers_can_override_calls_and_streams"),
        ("`to_backend` returns the backend of results", "test_to_backend_returns_the_device_of_results options_report_backend_and_partitions"),
        ("`current` is the compiler of the trace, or none", "test_current_compiler_is_none_outside_of_a_trace is_tracing_is_true_only_in_traces"),
        ("`current` of nested traces", "test_current_compiler_of_nested_traces"),
        ("`defn?` returns whether a function is traced", "test_is_tracing_is_true_only_in_traces is_tracing_is_true_only_in_traces"),
        ("A module can be the compiler", "test_a_module_can_be_the_compiler"),
        ("An error names a missing callback", "test_compiler_without_compile_raises test_invalid_compiler_objects_raise"),
        ("Options have the same keys in a call and in the defaults", "test_call_and_default_options_have_equal_keys"),
        ("Hooks are among the options of every call", "test_call_and_default_options_have_equal_keys test_call_hooks_reach_the_delegated_compiler"),
        ("A compiler handles every node", "test_nodes_have_all_attributes"),
    ],
    "Nx.Defn.Expr": [
        ("A node has id, op, args and context", "test_a_node_has_an_operation_operands_and_attributes test_nodes_and_traced_values_have_an_id_and_a_context nodes_have_ids_and_contexts"),
        ("The context is `root` or the context of a scope", "test_nodes_and_traced_values_have_an_id_and_a_context nodes_have_ids_and_contexts"),
        ("Tracing replaces data by expressions", "test_data_of_traced_values_is_unavailable"),
        ("`parameter` by type and position", "test_parameters_have_positions test_parameters_are_inputs_in_order"),
        ("`parameter` from a tensor", "test_parameter_accepts_tensors_and_templates"),
        ("`parameter` from a template and a context", "test_a_loop_is_built_from_a_context"),
        ("`constant` contains a number", "test_constants"),
        ("`tensor` contains a literal", "test_literal_tensors"),
        ("Numbers become constants, tensors literals", "test_scalars_become_constants_and_tensors_literals"),
        ("`metadata` takes any mapping", "test_unserializable_metadata_raises_on_serialization metadata_holds_any_value_but_is_not_serialized"),
        ("`metadata` is printed only with `inspect`", "test_metadata_is_printed_only_with_inspect"),
        ("`metadata` computes nothing", "test_metadata_is_transparent annotations_are_printed_but_compute_nothing"),
        ("`elem` takes one part of a tuple", "test_elem_selects_one_result"),
        ("Tuples nest", "test_tuples_keep_their_nesting"),
        ("`tuple` has a template for each part", "test_tuples_keep_their_nesting"),
        ("`fun` has parameters and a body", "test_fun_is_traced_once"),
        ("`fun` knows the name of the function", "test_reducers_keep_the_python_function_name"),
        ("`cond` has clauses and a last branch", "test_explicit_cond_while_and_hook test_regions_are_separate_expressions"),
        ("`while` has initial, condition and body", "test_explicit_cond_while_and_hook"),
        ("`while` has a context and an argument", "test_a_loop_is_built_from_a_context"),
        ("`token` and `attach_token` order effects", "test_hooks_run_in_program_order hooks_receive_values_in_order"),
        ("A block is named and has a default", "test_blocks_have_a_name_and_a_default_body blocks_are_single_nodes_that_compute_their_bodies"),
        ("Other nodes have the names of operations", "test_nodes_have_all_attributes"),
        ("`apply_args` visits operands with a state", "test_apply_args_visits_operands_in_order"),
        ("`scope_ids` omits regions", "test_scope_ids_omit_constants_and_regions"),
        ("A node can be rebuilt with other operands", "test_put_args_rebuilds_a_node"),
        ("Nodes print as in Nx", "test_the_documentation_example_prints_its_stages"),
    ],
    "Nx.Defn": [
        ("0 is false, everything else is true", "test_nonzero_values_are_true"),
        ("`if` and `while` follow the same rule", "test_branch_and_loop_predicates_accept_numbers"),
        ("The default compiler is the evaluator", "test_the_default_compiler_is_the_evaluator"),
        ("`jit` traces for each type", "test_functions_are_traced_once_for_each_type"),
        ("Names of axes are part of the type", "test_axis_names_are_part_of_the_cache_key"),
        ("`jit` does nothing before the first call", "test_jit_does_not_trace_before_the_first_call"),
        ("Numbers become tensors", "test_scalars_become_tensors_of_default_dtypes scalars_of_every_type_combine_with_tensors"),
        ("Arguments and results may be containers", "test_container_arguments_keep_their_structure derived_containers_are_arguments_and_results"),
        ("Lazy containers produce what is used", "test_lazy_container_produces_only_used_leaves"),
        ("Lazy arrays are read if they are used", "test_unused_array_objects_are_not_read"),
        ("Lazy tensors have the type that they state", "test_lazy_tensor_checks_its_value"),
        ("Functions and options are static arguments", "test_functions_strings_and_none_are_static"),
        ("Each set of options has a separate program", "test_static_argument_values_are_traced_separately"),
        ("Default arguments and keywords", "test_defaults_and_keywords_work_as_in_python"),
        ("`compile` takes templates", "test_compile_fixes_static_arguments compiled_functions_run_and_capture"),
        ("`compile` takes options among templates", "test_compile_accepts_options_among_templates"),
        ("Calls of a compiled function omit options", "test_compile_fixes_static_arguments"),
        ("Arguments of another type are rejected with all differences", "test_compiled_function_lists_all_type_mismatches type_errors_list_all_differences"),
        ("A compiled function cannot be called in a trace", "test_compiled_function_in_a_trace_raises"),
        ("`debug_expr` returns the expression", "test_jit_apply_and_debug_expr_apply"),
        ("`debug_expr` works inside of a trace", "test_debug_expr_works_inside_of_a_trace"),
        ("`jit_apply` calls at once", "test_jit_apply_and_debug_expr_apply"),
        ("`default_options` returns the previous options", "test_default_options_return_previous_options"),
        ("`global_default_options` is for all threads", "test_thread_options_override_global_options"),
        ("Options of the call override the defaults, also for streams", "test_call_options_override_default_options"),
        ("`defnp` is inlined", "test_defn_is_inlined_and_differentiated_through"),
        ("Recursion ends while tracing", "test_static_recursion_is_unrolled"),
        ("`deftransform` runs while tracing", "test_python_functions_run_while_tracing"),
        ("`grad` of several results is the gradient of their sum", "test_gradient_of_a_vector_is_of_its_sum"),
        ("`grad` takes containers of variables", "test_gradients_for_several_arguments value_and_grad_returns_containers_of_arguments"),
        ("`value_and_grad` returns both", "test_value_and_grad_with_auxiliary_results value_and_grad_returns_containers_of_arguments"),
        ("`value_and_grad` has a transform", "test_value_and_grad_with_auxiliary_results"),
        ("Gradients inside and outside of traces", "test_gradients_inside_and_outside_of_traces"),
        ("`hooks` are found by name", "test_hooks_are_found_by_name_in_the_options call_hooks_receive_containers"),
        ("`on_conflict: :raise`", "test_on_conflict_raise_raises on_conflict_has_three_values_and_a_default"),
        ("`on_conflict: :force`", "test_on_conflict_force_runs_separately on_conflict_has_three_values_and_a_default"),
        ("`on_conflict: :reuse`", "test_on_conflict_reuse_inlines on_conflict_has_three_values_and_a_default"),
        ("`on_conflict` has a default", "test_on_conflict_has_three_values_and_a_default on_conflict_has_three_values_and_a_default"),
        ("`stream` sends, receives, and is done", "test_streams streams_return_results_in_order"),
        ("Results of a stream may be received late", "test_results_arrive_in_order"),
        ("A stream has containers and constants", "test_containers_and_constants containers_and_large_captured_tensors"),
        ("`to_backend` follows the options", "test_to_backend_follows_the_options options_determine_the_device_of_results"),
        ("Inputs that are not used are not sent", "test_unused_inputs_are_not_transferred"),
        ("Values that nothing needs are not computed", "test_unused_values_are_not_computed"),
    ],
    "EXLA.Backend": [
        ("Options `client` and `device_id`", "test_client_option_selects_the_device client_and_device_options_are_checked"),
        ("Other options are rejected", "test_options_select_client_and_device client_and_device_options_are_checked"),
        ("A call may return before its results are ready", "test_results_are_asynchronous_and_reading_blocks"),
        ("`constant` is created on the device", "test_constant_is_created_on_the_device constants_are_created_on_the_device"),
        ("`from_binary` copies bytes to the device", "test_from_binary_copies_to_the_device"),
        ("`to_binary` has a limit", "test_to_binary_reads_no_more_than_its_limit first_reads_only_the_requested_elements"),
        ("`backend_copy` on the same device", "test_copy_on_the_same_device_is_independent copies_on_the_same_device_are_independent"),
        ("`backend_copy` to another device", "test_copies_to_other_devices_and_clients copies_move_between_clients_and_the_host"),
        ("`backend_transfer` to the device of the data does nothing", "test_transfer_to_the_same_device_is_a_no_op transfers_free_the_source_unless_on_the_same_device"),
        ("`backend_transfer` frees the source, even if it fails", "test_failed_transfer_frees_the_source failed_transfers_free_the_source"),
        ("`backend_deallocate` returns a status", "test_deallocate_returns_whether_memory_was_freed deallocate_returns_whether_memory_was_freed"),
        ("Containers are copied, moved and freed", "test_containers_are_copied_transferred_and_deallocated containers_are_copied_transferred_and_deallocated"),
        ("`to_batched` is lazy, with one program", "test_batches_are_lazy_and_share_one_program batches_stay_on_the_device_and_share_programs"),
        ("`to_batched` repeats or discards", "test_partial_batches_are_padded_or_discarded last_batches_are_repeated_or_discarded"),
        ("`inspect` prints client, device and buffer", "test_repr_names_the_device_and_reads_printed_elements printing_shows_the_device_and_reads_few_elements"),
        ("The printed signature can be disabled", "test_print_options_hide_the_device"),
        ("Starts that are data are arguments", "test_traced_slice_starts_share_one_program device_copies_and_slice_starts_are_not_read"),
        ("`optional` calls a block as a whole", "test_block_runs_as_one_program test_eager_block_is_computed"),
        ("Operands choose the client", "test_operands_select_the_client functions_run_on_the_device_of_their_operands"),
        ("A call inside of a trace can be forced to run", "test_on_conflict_force_runs_inside_a_trace"),
    ],
}  # fmt: skip

#: The number of promises in the documentation; each row is one promise.
COUNT = 131


def tests() -> dict[str, list[str]]:
    """Return the file of every test, relative to the root; several for one name that is not unique."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests/python").glob("test_*.py")):
        for name in re.findall(
            r"^ *def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE
        ):
            found.setdefault(name, []).append(path.relative_to(ROOT).as_posix())
    for path in sorted((ROOT / "crates").glob("*/tests/**/*.rs")):
        code = path.read_text(encoding="utf-8")
        for name in re.findall(r"#\[test\]\s+(?:#\[.*\]\s+)*fn (\w+)", code):
            found.setdefault(name, []).append(path.relative_to(ROOT).as_posix())
    return found


def page() -> str:
    """Return the text of the page."""
    known, lines, number = tests(), [HEAD], 0
    for document, promises in DOCUMENTS.items():
        lines += [f"## {document}", "| | promise | tests |", "|---|---|---|"]
        for promise, names in promises:
            number += 1
            references = []
            for name in names.split():
                files = known.get(name)
                if files is None or len(files) > 1:
                    raise SystemExit(f"{promise}: {name} must be one test; found {files}")
                references.append(f"`{files[0]}::{name}`")
            lines.append(f"| {number} | {promise} | {', '.join(references)} |")
        lines.append("")
    if number != COUNT:
        raise SystemExit(f"expected {COUNT} rows; found {number}")
    duplicates = [
        p for p, n in Counter(p for rows in DOCUMENTS.values() for p, _ in rows).items() if n > 1
    ]
    if duplicates:
        raise SystemExit(f"promises must differ; found twice: {duplicates}")
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    write_or_check({PAGE: page()}, "make promises")
