//! Compiling and executing programs.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[macro_use]
mod common;

use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use common::{INCREMENT, buffer, client, compile, donating_program, plugin, run, tensor, values};
use nxla_pjrt::{
    Client, CompileOptions, Error, ErrorCode, ExecuteOptions, HostCallFrame, HostCallTable,
    NamedValue,
};
use nxla_tensor::{DType, HostTensor, Shape};

#[test]
fn programs_run_and_report_metadata() {
    require_plugin!();
    let program = compile(INCREMENT);
    assert!(program.name().contains("increment"), "{}", program.name());
    assert_eq!(program.num_args(), Some(1));
    assert_eq!(program.num_devices(), 1);
    assert_eq!(program.outputs(), [(DType::F32, Shape::scalar())]);
    let y = run(&program, &[&buffer(&[41.0_f32], [])]);
    assert_eq!(y.len(), 1);
    assert_eq!(values::<f32>(&y[0]), [42.0]);
    // A result is passed as an argument.
    let z = run(&program, &[&y[0]]);
    assert_eq!(values::<f32>(&z[0]), [43.0]);
}

#[test]
fn results_of_several_types_and_ranks_keep_their_order() {
    require_plugin!();
    let program = compile(
        "func.func @main(%x: tensor<2x3xf32>) -> (tensor<f32>, tensor<0x4xi8>, tensor<3x2xf32>) {
           %a = stablehlo.constant dense<7.0> : tensor<f32>
           %b = stablehlo.constant dense<> : tensor<0x4xi8>
           %c = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
           return %a, %b, %c : tensor<f32>, tensor<0x4xi8>, tensor<3x2xf32>
         }",
    );
    let expected = [
        (DType::F32, Shape::scalar()),
        (DType::S8, Shape::from([0, 4])),
        (DType::F32, Shape::from([3, 2])),
    ];
    assert_eq!(program.outputs(), expected);
    let results = run(&program, &[&buffer(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3])]);
    for (result, (dtype, shape)) in results.iter().zip(&expected) {
        assert_eq!((result.dtype(), result.shape()), (*dtype, shape));
    }
    assert_eq!(values::<f32>(&results[0]), [7.0]);
    assert!(values::<i8>(&results[1]).is_empty());
    assert_eq!(values::<f32>(&results[2]), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
}

#[test]
fn programs_without_arguments_and_results_run() {
    require_plugin!();
    let program = compile("func.func @main() { return }");
    assert_eq!((program.num_args(), program.outputs().len()), (Some(0), 0));
    let (results, event) = program.execute_with_event(&[], &ExecuteOptions::default()).unwrap();
    assert!(results.is_empty());
    event.wait().unwrap();
}

#[test]
fn compile_errors_are_explained() {
    require_plugin!();
    let compile = |text: &str| client().compile(text, &CompileOptions::default()).unwrap_err();
    let error = compile("no program");
    assert!(matches!(error, Error::Compile { .. }), "{error:?}");
    let error =
        compile(&INCREMENT.replace("stablehlo.add %x, %one : tensor<f32>", "stablehlo.nope %x"));
    let text = error.to_string();
    assert!(text.starts_with("compilation failed: ") && text.contains("nope"), "{text}");
}

#[test]
fn argument_counts_and_sizes_are_checked() {
    require_plugin!();
    let program = compile(INCREMENT);
    let x = buffer(&[1.0_f32], []);
    for args in [&[][..], &[&x, &x]] {
        let error = program.execute(args, &ExecuteOptions::default()).unwrap_err();
        let Error::ArgumentCount { expected: 1, actual, .. } = error else { panic!("{error}") };
        assert_eq!(actual, args.len());
    }
    // The size is wrong.
    let x = buffer(&[1.0_f32, 2.0], [2]);
    let error = program.execute(&[&x], &ExecuteOptions::default()).unwrap_err();
    assert!(matches!(error, Error::Plugin { code: ErrorCode::INVALID_ARGUMENT, .. }), "{error}");
}

#[test]
fn donated_arguments_are_deleted() {
    require_plugin!();
    let program = donating_program(1000);
    let step = |x: &nxla_pjrt::Buffer| run(&program, &[x]).remove(0);
    let x = step(&buffer(&[1.0_f32; 1000], [1000]));
    let y = step(&x);
    assert!(x.is_deleted().unwrap());
    assert_eq!(x.delete(), Ok(false));
    assert_eq!(values::<f32>(&y), [3.0; 1000]);
    assert!(x.to_host().is_err());
    let error = program.execute(&[&x], &ExecuteOptions::default()).unwrap_err();
    assert!(error.to_string().contains("donated"), "{error}");
}

#[test]
fn donation_can_be_declined() {
    require_plugin!();
    let program = donating_program(1000);
    let x = buffer(&[1.0_f32; 1000], [1000]);
    let options = ExecuteOptions { non_donatable: &[0], ..ExecuteOptions::default() };
    let y = program.execute(&[&x], &options).unwrap();
    assert!(!x.is_deleted().unwrap());
    assert_eq!((values::<f32>(&x), values::<f32>(&y[0])), (vec![1.0; 1000], vec![2.0; 1000]));
}

#[test]
fn donation_does_not_overwrite_host_memory() {
    require_plugin!();
    let (client, tensor) =
        (client(), HostTensor::from_vec(vec![1.0_f32; 100_000], [100_000]).unwrap());
    let program = donating_program(100_000);
    let x = client.buffer_from_host(&tensor, &client.devices()[0]).unwrap();
    let y = run(&program, &[&x]);
    assert_eq!(values::<f32>(&y[0]), vec![2.0; 100_000]);
    assert_eq!(tensor.as_slice::<f32>().unwrap(), vec![1.0; 100_000]);
}

#[test]
fn mapped_memory_is_not_overwritten_by_donation() {
    require_plugin!();
    let program = donating_program(1000);
    let x = run(&program, &[&buffer(&[1.0_f32; 1000], [1000])]).remove(0);
    let view = x.share().unwrap();
    assert_eq!(values::<f32>(&run(&program, &[&x])[0]), [3.0; 1000]);
    let expected: Vec<u8> =
        [2.0_f32; 1000].iter().flat_map(|element| element.to_ne_bytes()).collect();
    assert_eq!(view.bytes(), expected);
}

/// Builds a product of matrices that is repeated, because XLA runs short programs on the caller's
/// thread.
const LONG: &str = "
  func.func @main(%x: tensor<400x400xf32>) -> tensor<400x400xf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %count = stablehlo.constant dense<40> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %r:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<400x400xf32>
    cond {
      %c = stablehlo.compare LT, %i, %count : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %j = stablehlo.add %i, %one : tensor<i32>
      %z = stablehlo.dot_general %y, %x, contracting_dims = [1] x [0]
        : (tensor<400x400xf32>, tensor<400x400xf32>) -> tensor<400x400xf32>
      stablehlo.return %j, %z : tensor<i32>, tensor<400x400xf32>
    }
    return %r#1 : tensor<400x400xf32>
  }";

/// The identity matrix, so that products with it are known.
fn identity() -> HostTensor {
    let mut elements = vec![0.0_f32; 400 * 400];
    elements.iter_mut().step_by(401).for_each(|element| *element = 1.0);
    HostTensor::from_vec(elements, [400, 400]).unwrap()
}

#[test]
fn execution_is_asynchronous() {
    require_plugin!();
    // The program must not end before the test allows it, so its host function waits for a message.
    // It blocks a thread of its client, so the test creates a separate client.
    let waiting = LONG.replacen(
        "%zero =",
        "%x = stablehlo.custom_call @nxla_host_call(%given) {
           api_version = 4 : i32, backend_config = {id = 200 : i64}
         } : (tensor<400x400xf32>) -> tensor<400x400xf32>
         %zero =",
        1,
    );
    let client = Client::new(&plugin(), &[]).unwrap();
    let compile = |text: &str| client.compile(text, &CompileOptions::default()).unwrap();
    let (program, next) = (compile(&waiting.replacen("%x: ", "%given: ", 1)), compile(LONG));
    let (allow, allowed) = mpsc::channel();
    let allowed = Mutex::new(allowed);
    let wait_and_copy = move |call: &mut HostCallFrame<'_>| {
        let wait = allowed.lock().unwrap().recv_timeout(Duration::from_secs(20));
        call.results[0].bytes.copy_from_slice(call.args[0].bytes);
        wait.map_err(|error| error.to_string())
    };
    let table = Arc::new(HostCallTable::new());
    table.insert(200, Arc::new(wait_and_copy));
    let x = client.buffer_from_host(&identity(), &client.devices()[0]).unwrap();
    let options = ExecuteOptions { host_calls: Some(&table), ..ExecuteOptions::default() };
    let y = program.execute(&[&x], &options).unwrap().remove(0);
    assert!(!y.is_ready().unwrap());
    // Arguments and the program may be dropped during the run, and results may be used before they
    // are ready.
    x.delete().unwrap();
    drop((x, program));
    let z = run(&next, &[&y]).remove(0);
    assert!(!z.is_ready().unwrap());
    allow.send(()).unwrap();
    assert!(z.to_host().unwrap().same_bits(&identity()));
    assert!(y.is_ready().unwrap() && z.is_ready().unwrap());
}

#[test]
fn handles_may_be_dropped_while_a_program_runs() {
    require_plugin!();
    let client = Client::new(&plugin(), &[]).unwrap();
    let program = client.compile(LONG, &CompileOptions::default()).unwrap();
    let x = client.buffer_from_host(&identity(), &client.devices()[0]).unwrap();
    drop(run(&program, &[&x]));
    drop((x, program, client));
}

#[test]
fn callbacks_may_drop_the_last_handle() {
    require_plugin!();
    let client = Client::new(&plugin(), &[]).unwrap();
    let program = client.compile(LONG, &CompileOptions::default()).unwrap();
    let x = client.buffer_from_host(&identity(), &client.devices()[0]).unwrap();
    let y = run(&program, &[&x]).remove(0);
    drop((x, program));
    let (sender, receiver) = mpsc::channel();
    let handle = y.clone();
    // The callback on a thread of the client drops the last handle.
    y.on_ready(move |_| sender.send(handle.client().clone() == client).unwrap()).unwrap();
    drop(y);
    assert!(receiver.recv_timeout(Duration::from_secs(20)).unwrap());
}

/// Run by the next test in a separate process.
#[test]
#[ignore = "ends the process"]
fn end_the_process_while_a_program_runs() {
    require_plugin!();
    let client = client();
    let program = compile(LONG);
    let x = client.buffer_from_host(&identity(), &client.devices()[0]).unwrap();
    // XLA creates global objects when it first runs a program, and exit handlers destroy them
    // first.
    run(&program, &[&x])[0].wait().unwrap();
    let results = run(&program, &[&x]);
    assert!(!results[0].is_ready().unwrap());
    std::process::exit(0);
}

/// The command that runs an ignored test in a separate process.
fn command_for_test(test: &str) -> std::process::Command {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored"]);
    command
}

#[test]
fn the_process_may_end_while_a_program_runs() {
    require_plugin!();
    let child = command_for_test("end_the_process_while_a_program_runs").output().unwrap();
    assert!(child.status.success(), "{child:?}");
}

/// Run by the next test in a separate process.
#[test]
#[ignore = "ends the process"]
fn end_the_process_while_a_thread_compiles() {
    require_plugin!();
    thread::spawn(|| {
        loop {
            drop(compile(INCREMENT))
        }
    });
    let delay = std::env::var(DELAY).unwrap().parse().unwrap();
    thread::sleep(Duration::from_millis(delay));
}

/// The environment variable with the time that a thread has.
const DELAY: &str = "NXLA_TEST_DELAY";

#[test]
fn the_process_may_end_while_a_thread_loads_the_plugin_or_compiles() {
    require_plugin!();
    for delay in (0..48).step_by(6).chain([100, 200, 400]) {
        // The main thread of the child, which calls no plugin, ends the process after the test.
        let mut child = command_for_test("end_the_process_while_a_thread_compiles");
        let child = child.env(DELAY, delay.to_string()).output().unwrap();
        assert!(child.status.success(), "after {delay} ms: {child:?}");
    }
}

/// Run by the next test in a separate process.
#[test]
#[ignore = "ends the process"]
fn end_the_process_before_a_thread_compiles() {
    require_plugin!();
    drop(compile(INCREMENT));
    let delay = Duration::from_micros(std::env::var(DELAY).unwrap().parse().unwrap());
    thread::spawn(move || {
        thread::sleep(delay);
        loop {
            drop(compile(INCREMENT));
        }
    });
}

#[test]
fn no_call_starts_during_process_exit() {
    require_plugin!();
    for delay in (0..4000).step_by(200) {
        let mut child = command_for_test("end_the_process_before_a_thread_compiles");
        let child = child.env(DELAY, delay.to_string()).output().unwrap();
        assert!(child.status.success(), "after {delay} µs: {child:?}");
    }
}

#[test]
fn threads_read_one_buffer_at_once() {
    require_plugin!();
    let x = buffer(&[1.0_f32], []);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..2000 {
                    assert_eq!(values::<f32>(&x), [1.0]);
                }
            });
        }
    });
}

#[test]
fn clients_can_be_waited_for() {
    require_plugin!();
    let client = Client::new(&plugin(), &[]).unwrap();
    let program = client.compile(LONG, &CompileOptions::default()).unwrap();
    let x = client.buffer_from_host(&identity(), &client.devices()[0]).unwrap();
    let results: Vec<_> = (0..3).flat_map(|_| run(&program, &[&x])).collect();
    client.wait_until_idle();
    assert!(results.iter().all(|result| result.is_ready().unwrap()));
    nxla_pjrt::wait_until_all_idle();
}

#[test]
fn many_threads_share_a_program() {
    require_plugin!();
    let program = compile(INCREMENT);
    thread::scope(|scope| {
        for start in 0..8 {
            let program = &program;
            scope.spawn(move || {
                let mut x = buffer(&[start as f32], []);
                for _ in 0..500 {
                    x = run(program, &[&x]).remove(0);
                }
                assert_eq!(values::<f32>(&x), [start as f32 + 500.0]);
            });
        }
    });
}

#[test]
fn a_serialized_program_runs_without_compiling() {
    require_plugin!();
    let program = compile(INCREMENT);
    let bytes = program.serialize().unwrap();
    // A new client, as in another process.
    let client = Client::new(&plugin(), &[]).unwrap();
    let loaded = client.deserialize(&bytes).unwrap();
    assert_eq!(loaded.outputs(), program.outputs());
    assert_eq!((loaded.name(), loaded.num_args()), (program.name(), Some(1)));
    let x = client.buffer_from_host(&tensor(&[1.0_f32], []), &client.devices()[0]).unwrap();
    assert_eq!(values::<f32>(&run(&loaded, &[&x])[0]), [2.0]);
    let error = loaded.execute(&[], &ExecuteOptions::default()).unwrap_err();
    assert!(matches!(error, Error::ArgumentCount { expected: 1, actual: 0, .. }));
}

#[test]
fn executables_of_other_compilers_are_rejected() {
    require_plugin!();
    let mut bytes = compile(INCREMENT).serialize().unwrap();
    let position = bytes.windows(3).position(|window| window == b"cpu").unwrap();
    bytes[position] = b'g';
    let error = client().deserialize(&bytes).unwrap_err();
    assert!(matches!(error, Error::SerializedElsewhere { .. }), "{error}");
    let error = client().deserialize(b"not an executable").unwrap_err();
    assert!(matches!(error, Error::SerializedDamaged { .. }), "{error}");
}

#[test]
fn programs_can_be_analysed() {
    require_plugin!();
    let program = compile(LONG);
    match program.cost_analysis() {
        Ok(cost) => {
            let flops = cost.iter().find(|(name, _)| name == "flops").map(|(_, value)| value);
            let Some(NamedValue::Float(flops)) = flops else { panic!("{cost:?}") };
            assert!(*flops >= 2.0 * 400.0_f32.powi(3), "{flops}");
        }
        // Newer CPU plugins do not support the cost analysis.
        Err(error) => {
            assert!(
                matches!(error, Error::Plugin { code: ErrorCode::UNIMPLEMENTED, .. }),
                "{error}"
            );
        }
    }
    let memory = program.memory_stats().unwrap();
    assert_eq!((memory.arguments, memory.outputs), (640_000, 640_000));
}

#[test]
fn compiler_options_are_passed_to_the_compiler() {
    require_plugin!();
    let options = |name: &str, value: NamedValue| CompileOptions {
        overrides: vec![(name.to_owned(), value)],
        ..CompileOptions::default()
    };
    let fast = options("xla_cpu_enable_fast_math", NamedValue::Bool(true));
    client().compile(INCREMENT, &fast).unwrap();
    let error = client().compile(INCREMENT, &options("xla_no_such", NamedValue::Bool(true)));
    assert!(error.unwrap_err().to_string().contains("xla_no_such"));
}

#[test]
fn partitions_run_together() {
    require_plugin!();
    let client = Client::new(&plugin(), &[("cpu_device_count", NamedValue::Int64(2))]).unwrap();
    let text = "
      module @sum attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
        sdy.mesh @mesh = <[\"d\"=2]>
        func.func public @main(
          %x: tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"d\"}]>}
        ) -> (tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, []>}) {
          %zero = stablehlo.constant dense<0.0> : tensor<f32>
          %y = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
            : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
          return %y : tensor<f32>
        }
      }";
    let options = CompileOptions {
        num_partitions: 2,
        device_ids: client.devices().iter().map(|device| device.id()).collect(),
        shardy: true,
        ..CompileOptions::default()
    };
    let program = client.compile(text, &options).unwrap();
    assert_eq!(program.num_devices(), 2);
    let args: Vec<_> = [3.0_f32, 4.0]
        .iter()
        .zip(client.devices())
        .map(|(&x, device)| client.buffer_from_host(&tensor(&[x], [1]), device).unwrap())
        .collect();
    let results =
        program.execute_on_all(&[&[&args[0]], &[&args[1]]], &ExecuteOptions::default()).unwrap();
    for (result, device) in results.iter().zip(client.devices()) {
        assert_eq!((result[0].device().id(), values::<f32>(&result[0])), (device.id(), vec![7.0]));
    }
    let error = program.execute(&[&args[0]], &ExecuteOptions::default()).unwrap_err();
    assert!(matches!(error, Error::DeviceCount { expected: 2, actual: 1, .. }), "{error}");
    let error = program.execute_on_all(&[&[&args[0]]], &ExecuteOptions::default()).unwrap_err();
    assert!(matches!(error, Error::DeviceCount { expected: 2, actual: 1, .. }), "{error}");
}
