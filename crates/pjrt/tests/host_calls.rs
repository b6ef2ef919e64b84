//! Host functions that compiled programs call. Ids apply to the whole process, so every test uses a
//! different id.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[macro_use]
mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use common::{buffer, client, compile, run, values};
use nxla_pjrt::{
    Error, ExecuteOptions, HostAttribute, HostCallFrame, HostCallTable, HostHandler,
    LoadedExecutable, register_host_fn,
};
use nxla_tensor::{DType, HostTensor, Shape};

/// Builds a program that passes four numbers through host function `id`.
fn host_call_program(id: i64, more: &str) -> LoadedExecutable {
    compile(&format!(
        "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
           %y = stablehlo.custom_call @nxla_host_call(%x) {{
             api_version = 4 : i32, backend_config = {{id = {id} : i64{more}}}
           }} : (tensor<4xf32>) -> tensor<4xf32>
           return %y : tensor<4xf32>
         }}"
    ))
}

/// Adds `amount` to every element.
fn add_amount(amount: f32) -> Arc<dyn HostHandler> {
    Arc::new(move |call: &mut HostCallFrame<'_>| {
        let x = call.args[0].to_tensor().to_vec::<f32>().map_err(|error| error.to_string())?;
        let y: Vec<f32> = x.iter().map(|x| x + amount).collect();
        call.results[0].write(&HostTensor::from_slice(&y, [4]).map_err(|error| error.to_string())?)
    })
}

/// Returns the error of a program's result.
fn run_error(program: &LoadedExecutable) -> Error {
    let x = buffer(&[1.0_f32; 4], [4]);
    match program.execute(&[&x], &ExecuteOptions::default()) {
        Ok(results) => results[0].to_host().unwrap_err(),
        Err(error) => error,
    }
}

#[test]
fn a_registered_function_is_called() {
    require_plugin!();
    assert!(client().calls_host());
    let program = host_call_program(100, "");
    assert!(register_host_fn(100, add_amount(0.5)).is_none());
    let x = buffer(&[1.0_f32, 2.0, 3.0, 4.0], [4]);
    assert_eq!(values::<f32>(&run(&program, &[&x])[0]), [1.5, 2.5, 3.5, 4.5]);
    // The function is looked up when the program runs.
    assert!(register_host_fn(100, add_amount(1.0)).is_some());
    assert_eq!(values::<f32>(&run(&program, &[&x])[0]), [2.0, 3.0, 4.0, 5.0]);
    let text = run_error(&host_call_program(99, "")).to_string();
    assert!(text.contains("no host function is registered with id 99"), "{text}");
}

#[test]
fn errors_of_host_functions_are_raised_on_read() {
    require_plugin!();
    register_host_fn(101, Arc::new(|_: &mut HostCallFrame<'_>| Err("grün \0 and bad".to_owned())));
    let program = host_call_program(101, "");
    let text = run_error(&program).to_string();
    assert!(text.contains("grün  and bad"), "{text}");
    // The program is still usable afterwards.
    register_host_fn(101, add_amount(1.0));
    assert_eq!(values::<f32>(&run(&program, &[&buffer(&[0.0_f32; 4], [4])])[0]), [1.0; 4]);
}

#[test]
fn a_panic_becomes_an_error() {
    require_plugin!();
    register_host_fn(102, Arc::new(|_: &mut HostCallFrame<'_>| panic!("out of {}", "cheese")));
    let text = run_error(&host_call_program(102, "")).to_string();
    assert!(text.contains("a host function panicked: out of cheese"), "{text}");
}

#[test]
fn calls_without_id_are_errors() {
    require_plugin!();
    let program = compile(
        "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
           %y = stablehlo.custom_call @nxla_host_call(%x) {api_version = 4 : i32}
             : (tensor<4xf32>) -> tensor<4xf32>
           return %y : tensor<4xf32>
         }",
    );
    let text = run_error(&program).to_string();
    assert!(text.contains("no integer attribute `id`"), "{text}");
}

#[test]
fn attributes_are_passed_on() {
    require_plugin!();
    let seen: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
    let record = seen.clone();
    let function = move |call: &mut HostCallFrame<'_>| {
        assert_eq!(call.attribute("word"), Some(HostAttribute::Str("grün")));
        let each =
            call.attributes.iter().map(|(name, value)| ((*name).to_owned(), format!("{value:?}")));
        record.lock().unwrap().extend(each);
        let bytes = call.args[0].bytes.to_vec();
        call.results[0].bytes.copy_from_slice(&bytes);
        Ok(())
    };
    register_host_fn(103, Arc::new(function));
    let more = ", word = \"grün\", small = -3 : i32, half = 0.5 : f64, yes = true";
    let x = buffer(&[1.0_f32; 4], [4]);
    assert_eq!(values::<f32>(&run(&host_call_program(103, more), &[&x])[0]), [1.0; 4]);
    let expected = [
        ("half", "Float(0.5)"),
        ("id", "Int(103)"),
        ("small", "Int(-3)"),
        ("word", "Str(\"grün\")"),
        ("yes", "Bool(true)"),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(*seen.lock().unwrap(), expected);
}

#[test]
fn host_functions_support_every_dtype() {
    require_plugin!();
    let function = |call: &mut HostCallFrame<'_>| {
        let arg = call.args[0].to_tensor();
        assert_eq!((arg.dtype(), arg.shape()), (call.args[0].dtype, &call.args[0].shape));
        call.results[0].write(&arg)?;
        // The size of the first argument. The second argument is empty.
        assert!(call.args[1].bytes.is_empty() && call.args[1].shape == [2, 0]);
        let size = call.args[0].shape.size() as i64;
        call.results[1].bytes.copy_from_slice(&size.to_ne_bytes());
        Ok(())
    };
    register_host_fn(104, Arc::new(function));
    let client = client();
    for dtype in [
        DType::Pred,
        DType::U2,
        DType::S2,
        DType::U4,
        DType::S4,
        DType::U8,
        DType::S16,
        DType::U64,
        DType::F8E4M3FN,
        DType::BF16,
        DType::F64,
        DType::C64,
        DType::C128,
    ] {
        let name = dtype.mlir_name();
        // Reversing the elements makes the compiler store the argument in its own layout.
        let program = compile(&format!(
            "func.func @main(%x: tensor<7x{name}>, %e: tensor<2x0xf32>)
                 -> (tensor<7x{name}>, tensor<i64>) {{
               %r = stablehlo.reverse %x, dims = [0] : tensor<7x{name}>
               %y:2 = stablehlo.custom_call @nxla_host_call(%r, %e) {{
                 api_version = 4 : i32, backend_config = {{id = 104 : i64}}
               }} : (tensor<7x{name}>, tensor<2x0xf32>) -> (tensor<7x{name}>, tensor<i64>)
               %z = stablehlo.reverse %y#0, dims = [0] : tensor<7x{name}>
               return %z, %y#1 : tensor<7x{name}>, tensor<i64>
             }}"
        ));
        let low =
            if dtype.is_signed() { (1_u8 << (dtype.bits().min(8) - 1)).wrapping_neg() } else { 0 };
        let values_of = 1_u16 << dtype.bits().min(7);
        let limit = if dtype.is_pred() { 2 } else { values_of };
        let bytes: Vec<u8> = (0..7 * dtype.size() as u16)
            .map(|index| low.wrapping_add((index * 5 % limit) as u8))
            .collect();
        let x = HostTensor::from_bytes(dtype, [7], &bytes).unwrap();
        let device = &client.devices()[0];
        let arg = client.buffer_from_host(&x, device).unwrap();
        let results = run(&program, &[&arg, &buffer::<f32>(&[], [2, 0])]);
        assert!(results[0].to_host().unwrap().same_bits(&x), "{dtype}");
        assert_eq!(values::<i64>(&results[1]), [7]);
    }
}

#[test]
fn results_of_wrong_shape_are_rejected() {
    require_plugin!();
    let function = |call: &mut HostCallFrame<'_>| {
        call.results[0].write(&HostTensor::zeros(DType::F32, Shape::from([3])).unwrap())
    };
    register_host_fn(105, Arc::new(function));
    let text = run_error(&host_call_program(105, "")).to_string();
    assert!(text.contains("returned f32[3] where the program expects f32[4]"), "{text}");
}

#[test]
fn executions_have_separate_host_functions() {
    require_plugin!();
    let program = host_call_program(106, "");
    register_host_fn(106, add_amount(1.0));
    thread::scope(|scope| {
        for amount in 2..6 {
            let program = &program;
            scope.spawn(move || {
                let table = Arc::new(HostCallTable::new());
                table.insert(106, add_amount(amount as f32));
                let options =
                    ExecuteOptions { host_calls: Some(&table), ..ExecuteOptions::default() };
                let x = buffer(&[0.0_f32; 4], [4]);
                for _ in 0..50 {
                    let y = program.execute(&[&x], &options).unwrap();
                    assert_eq!(values::<f32>(&y[0]), [amount as f32; 4]);
                }
            });
        }
    });
    // Without a table, and with one that lacks the id, the function of the process is called.
    let empty = Arc::new(HostCallTable::new());
    let x = buffer(&[0.0_f32; 4], [4]);
    for host_calls in [None, Some(&empty)] {
        let options = ExecuteOptions { host_calls, ..ExecuteOptions::default() };
        assert_eq!(values::<f32>(&program.execute(&[&x], &options).unwrap()[0]), [1.0; 4]);
    }
}

/// Builds a program that only has an effect.
fn effect_program(id: i64) -> LoadedExecutable {
    compile(&format!(
        "func.func @main(%x: tensor<4xf32>) {{
           stablehlo.custom_call @nxla_host_call(%x) {{
             api_version = 4 : i32, has_side_effect = true, backend_config = {{id = {id} : i64}}
           }} : (tensor<4xf32>) -> ()
           return
         }}"
    ))
}

#[test]
fn failed_effects_are_reported_by_the_event() {
    require_plugin!();
    register_host_fn(108, Arc::new(|_: &mut HostCallFrame<'_>| Err("no effect".to_owned())));
    let x = buffer(&[0.0_f32; 4], [4]);
    let outcome = effect_program(108).execute_with_event(&[&x], &ExecuteOptions::default());
    let error = outcome.and_then(|(_, event)| event.wait()).unwrap_err();
    assert!(error.to_string().contains("no effect"), "{error}");
}

#[test]
fn host_functions_outlive_their_execution() {
    require_plugin!();
    /// Counts its calls, and records when it is dropped.
    struct Hook(Arc<AtomicUsize>, Arc<AtomicUsize>);

    impl HostHandler for Hook {
        fn call(&self, _: &mut HostCallFrame<'_>) -> Result<(), String> {
            thread::sleep(std::time::Duration::from_millis(20));
            self.0.fetch_add(1, Ordering::SeqCst);
            Ok(())
        }
    }

    impl Drop for Hook {
        fn drop(&mut self) {
            self.1.fetch_add(1, Ordering::SeqCst);
        }
    }

    let program = effect_program(107);
    let (calls, drops) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let table = Arc::new(HostCallTable::new());
    table.insert(107, Arc::new(Hook(calls.clone(), drops.clone())));
    let options = ExecuteOptions { host_calls: Some(&table), ..ExecuteOptions::default() };
    let x = buffer(&[0.0_f32; 4], [4]);
    let (_, event) = program.execute_with_event(&[&x], &options).unwrap();
    drop(table);
    event.wait().unwrap();
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    // The end of the execution is reported to several waiters, in any order.
    for _ in 0..1000 {
        if drops.load(Ordering::SeqCst) == 1 {
            return;
        }
        thread::sleep(std::time::Duration::from_millis(1));
    }
    panic!("the functions of the execution were never dropped");
}
