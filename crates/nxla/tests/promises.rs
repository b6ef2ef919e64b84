//! Promises about functions, compilers and containers, one test for each. Their twins in Python are
//! in `tests/python/test_promises_*.py`.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod common;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use common::{compilers, has_plugin, numbers};
use nxla::graph::{HostNote, HostValue, Note, Op, serialize};
use nxla::prelude::*;
use nxla::split::{Decision, split_with};
use nxla::{
    CompileRequest, Compiler, Conflict, DType, Device, Error, Evaluator, Executable, ListsRequest,
    Options, Program, Result, RunContext, Setting, Settings, TensorType, Trace, backend_copy,
    backend_deallocate, backend_transfer, compile_program, current_compiler, default_options,
    devices, is_tracing, metadata, named_hook, register_compiler, set_default_options,
    value_and_grad, while_loop,
};

fn f32s(shape: &[usize]) -> TensorType {
    TensorType::new(DType::F32, shape)
}

#[test]
fn accumulator_splits_after_a_count_of_ops() {
    let chain = |x: Expr| x.sin().cos().tanh().exp().negate().abs().sqrt();
    let (program, _) = jit(chain).trace(f32s(&[])).unwrap();
    for every in [1usize, 2, 3, 5] {
        let (stages, count) = split_with(&program, 1, |_, count: usize| {
            let ends = count.is_multiple_of(every);
            (if ends { Decision::After } else { Decision::None }, count + 1)
        })
        .unwrap();
        let sizes = stages.stages().iter().map(|stage| {
            let graph = stage.program.graph();
            graph.ids().filter(|&id| !matches!(graph.op(id), Op::Parameter(_))).count()
        });
        let sizes: Vec<usize> = sizes.collect();
        assert_eq!(sizes.iter().sum::<usize>(), 7);
        assert!(sizes[..sizes.len() - 1].iter().all(|&size| size == every), "{sizes:?}");
        assert_eq!(count, 8);
    }
}

#[test]
fn is_tracing_is_true_only_in_traces() {
    let f = jit(|x: Expr| {
        assert!(is_tracing());
        assert_eq!(current_compiler().as_deref(), Some("evaluator"));
        x + 1
    });
    assert!(!is_tracing());
    assert_eq!(numbers(&f.call(1).unwrap()), [2.0]);
    assert!(!is_tracing() && current_compiler().is_none());
}

#[test]
fn on_conflict_has_three_values_and_a_default() {
    for compiler in compilers() {
        let double = |x: Expr| x * 2;
        // A function without options joins a trace. A function with options raises an error, because
        // joining would ignore them.
        let joins = jit(double);
        let outer = jit(move |x: Expr| joins.join(x).map(|x| x + 1)).compiler(compiler);
        assert_eq!(numbers(&outer.call(3).unwrap()), [7.0]);
        let refuses = jit(double).compiler(compiler);
        let error = jit(move |x: Expr| refuses.join(x)).call(3).unwrap_err().to_string();
        assert!(error.contains("on_conflict"), "{error}");
        let reuses = jit(double).compiler(compiler).on_conflict(Conflict::Reuse);
        let outer = jit(move |x: Expr| reuses.join(x).map(|x| x + 1));
        assert_eq!(numbers(&outer.call(3).unwrap()), [7.0]);
        let forcing = jit(double).compiler(compiler).on_conflict(Conflict::Force);
        let outer = jit(move |x: Expr| Ok::<_, Error>(x + Expr::of(&forcing.call(4)?)));
        assert_eq!(numbers(&outer.call(3).unwrap()), [11.0]);
        // The choice takes precedence over options that are set later.
        let forcing = jit(double).on_conflict(Conflict::Force).compiler(compiler);
        let outer = jit(move |x: Expr| Ok::<_, Error>(x + Expr::of(&forcing.call(4)?)));
        assert_eq!(numbers(&outer.call(3).unwrap()), [11.0]);
    }
    let outside = jit(|x: Expr| {
        let forcing = jit(|x: Expr| x * 2).on_conflict(Conflict::Force);
        forcing.join(x)
    });
    let error = outside.call(1).unwrap_err().to_string();
    assert!(error.starts_with("join: on_conflict: must be Conflict::Reuse"), "{error}");
}

#[test]
fn call_hooks_receive_containers() {
    for compiler in compilers() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (pairs, lists) = (seen.clone(), seen.clone());
        let f = |x: Expr| {
            let (x, _) = named_hook((&x * 2, [&x * 3, &x * 4]), "pair");
            named_hook(vec![x.clone(), x + 1], "list")[1].clone()
        };
        let f = jit(f)
            .compiler(compiler)
            .hook("pair", move |(a, [b, c]): (Tensor, [Tensor; 2])| {
                pairs.lock().unwrap().extend([a, b, c].map(|x| numbers(&x)[0]));
            })
            .hook("list", move |list: Vec<Tensor>| {
                lists.lock().unwrap().extend(list.iter().map(|x| numbers(x)[0]));
            });
        assert_eq!(numbers(&f.call(1).unwrap()), [3.0]);
        assert_eq!(*seen.lock().unwrap(), [2.0, 3.0, 4.0, 2.0, 3.0], "{compiler}");
        let hooked = |x: Expr| named_hook((x.clone(), x), "h").0;
        for wrong in
            [jit(hooked).hook("h", |_: Tensor| ()), jit(hooked).hook("h", |_: [Tensor; 3]| ())]
        {
            let error = wrong.compiler(compiler).call(1).unwrap_err().to_string();
            assert!(error.contains("container: must hold the 2 values"), "{error}");
        }
    }
}

#[test]
fn containers_are_copied_transferred_and_deallocated() {
    let tree = || (Tensor::from([1.0f32, 2.0]), vec![Tensor::from(3.0f32)]);
    let copied = backend_copy(&tree(), &Device::HOST).unwrap();
    assert_eq!(numbers(&copied.1[0]), [3.0]);
    assert!(!backend_deallocate(&copied).unwrap());
    if !has_plugin() {
        return;
    }
    let device = devices().unwrap().swap_remove(1);
    let on_device = backend_copy(&tree(), &device).unwrap();
    assert_eq!((on_device.0.device(), on_device.1[0].device()), (device.clone(), device.clone()));
    let copy = backend_copy(&on_device, &device).unwrap();
    assert!(backend_deallocate(&on_device).unwrap());
    assert!(!backend_deallocate(&on_device).unwrap());
    assert!(on_device.0.to_host().is_err() && on_device.1[0].to_host().is_err());
    let on_host = backend_transfer(copy.clone(), &Device::HOST).unwrap();
    assert_eq!(numbers(&on_host.0), [1.0, 2.0]);
    assert!(copy.0.to_host().is_err() && copy.1[0].to_host().is_err());
}

/// A compiler that runs lists of arguments itself, and records the programs that it receives.
#[derive(Default)]
struct Lists {
    traced: Mutex<BTreeMap<(u64, String), (Arc<Program>, Vec<nxla::runtime::RawTensor>)>>,
    calls: Mutex<Vec<usize>>,
}

impl Compiler for Lists {
    fn name(&self) -> &str {
        "lists"
    }

    fn compile(&self, request: &CompileRequest<'_>) -> Result<Arc<dyn Executable>> {
        Evaluator.compile(request)
    }

    fn run_lists(
        &self,
        request: &ListsRequest<'_>,
    ) -> Option<Result<Vec<Vec<nxla::runtime::RawTensor>>>> {
        self.calls.lock().unwrap().push(request.args_list.len());
        let types: Vec<String> = request.vars.iter().map(ToString::to_string).collect();
        let key = (request.key, types.join(", "));
        let known = self.traced.lock().unwrap().get(&key).cloned();
        let run = || {
            let (program, captured) = match known {
                Some(known) => known,
                None => (request.trace)()?,
            };
            self.traced.lock().unwrap().insert(key, (program.clone(), captured.clone()));
            let executable = compile_program(&program, &Options::new(), &[])?;
            let run = |args: &Vec<nxla::runtime::RawTensor>| {
                let inputs: Vec<_> = args.iter().chain(&captured).collect();
                executable.run(&inputs, &RunContext::default())
            };
            request.args_list.iter().map(run).collect()
        };
        Some(run())
    }

    fn partitions(&self, settings: &Settings) -> Result<Vec<Settings>> {
        let number = |device: i64| {
            let mut settings = settings.clone();
            settings.insert("device".into(), Setting::Int(device));
            settings
        };
        Ok((0..3).map(number).collect())
    }
}

#[test]
fn calls_run_several_partitions() {
    let lists = Arc::new(Lists::default());
    let compiler: Arc<dyn Compiler> = lists.clone();
    let f = jit(|x: Expr, [y]: [Expr; 1]| (&x * &y, [x + y])).compiler(compiler.clone());
    let args = |n: f32| (Tensor::from([n, 2.0 * n]), [Tensor::from(10.0f32)]);
    for _ in 0..2 {
        let results = f.call_each([args(1.0), args(2.0), args(3.0)]).unwrap();
        let products: Vec<_> = results.iter().map(|(product, _)| numbers(product)).collect();
        assert_eq!(products, [[10.0, 20.0], [20.0, 40.0], [30.0, 60.0]]);
        assert_eq!(numbers(&results[2].1[0]), [13.0, 16.0]);
    }
    // The key of a cache contains the types of arguments, but not their values.
    let scalars = (Tensor::from(1.0f32), [Tensor::from(2.0f32)]);
    assert_eq!(numbers(&f.call_each([scalars]).unwrap()[0].0), [2.0]);
    assert_eq!(*lists.calls.lock().unwrap(), [3, 3, 1]);
    assert_eq!(lists.traced.lock().unwrap().len(), 2);
    let mixed = [(Tensor::from([1.0f32]), [Tensor::from(1.0f32)]), args(1.0)];
    let error = f.call_each(mixed).unwrap_err().to_string();
    assert!(error.contains("list 1: must have the types"), "{error}");
    let none: [(Tensor, [Tensor; 1]); 0] = [];
    assert!(f.call_each(none).unwrap().is_empty());
    let options = Options::new().compiler(compiler);
    assert_eq!(options.partitions().unwrap().len(), 3);
}

#[test]
fn partitions_run_on_every_compiler() {
    for compiler in compilers().iter().chain(&["auto"]) {
        let f = jit(|x: Expr| x.sum()).compiler(*compiler);
        let lists = (0..5).map(|n| Tensor::from([n as f32, 1.0]));
        let results = f.call_each(lists).unwrap();
        let sums: Vec<f64> = results.iter().map(|sum| numbers(sum)[0]).collect();
        assert_eq!(sums, [1.0, 2.0, 3.0, 4.0, 5.0], "{compiler}");
    }
}

#[test]
fn options_of_partitions_are_for_jit() {
    for compiler in compilers() {
        let f = jit(|x: Expr| x + 1);
        let parts = Options::new().compiler(*compiler).partitions().unwrap();
        assert!(!parts.is_empty());
        for part in parts {
            let before = set_default_options(Some(part));
            assert_eq!(numbers(&f.call(1).unwrap()), [2.0]);
            assert!(before.is_none());
            set_default_options(before);
        }
        assert!(default_options().compiler.is_none());
    }
}

#[test]
fn registered_compilers_are_selected_by_name() {
    register_compiler(Arc::new(Lists::default())).unwrap();
    assert_eq!(numbers(&jit(|x: Expr| x + 1).compiler("lists").call(1).unwrap()), [2.0]);
    let error = register_compiler(Arc::new(Evaluator)).unwrap_err().to_string();
    assert!(error.contains("name of a built-in compiler"), "{error}");
}

/// A value that cannot be serialized.
struct Opaque(u8);

impl HostValue for Opaque {
    fn identity(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }
}

#[test]
fn metadata_holds_any_value_but_is_not_serialized() {
    let note = HostNote::new(Opaque(7));
    let shared = note.clone();
    let f = move |x: Expr| metadata(x * 2, [("layer", Note::from(shared.clone()))]) + 1;
    for compiler in compilers() {
        assert_eq!(numbers(&jit(f.clone()).compiler(compiler).call(3).unwrap()), [7.0]);
    }
    let (program, _) = jit(f.clone()).trace(f32s(&[])).unwrap();
    let (retraced, _) = jit(f).trace(f32s(&[])).unwrap();
    assert_eq!(program.digest(), retraced.digest());
    let graph = program.graph();
    let found = graph.ids().find_map(|id| match graph.op(id) {
        Op::Metadata(metadata) => metadata.notes.get("layer").cloned(),
        _ => None,
    });
    let Some(Note::Host(found)) = found else { panic!("the note is missing") };
    assert_eq!(found.get::<Opaque>().unwrap().0, 7);
    assert_eq!(serialize::host_note(&program).as_deref(), Some("layer"));
    let error = serialize::from_bytes(&serialize::to_bytes(&program)).unwrap_err().to_string();
    assert!(error.contains("its value cannot be serialized"), "{error}");
    let plain = jit(|x: Expr| metadata(x, [("layer", Note::from(3))])).trace(f32s(&[])).unwrap().0;
    assert_eq!(serialize::host_note(&plain), None);
}

#[test]
fn nodes_have_ids_and_contexts() {
    let f = jit(|x: Expr| {
        let y = x.sin();
        let context = |value: &Expr| {
            let id = value.id().unwrap();
            Trace::current().unwrap().read(|graph| graph.context(id)).unwrap()
        };
        assert_eq!((context(&x), context(&y)), (Some("root"), Some("root")));
        assert_eq!(x.sin().id().unwrap(), y.id().unwrap());
        let outer = y.clone();
        while_loop(
            y,
            |s| s.less(0.1),
            move |s| {
                assert_eq!(context(&s), Some("while"));
                assert_eq!(
                    (context(&(&s + &outer)), context(&outer)),
                    (Some("while"), Some("root"))
                );
                s * 2
            },
        )
    });
    f.call(0.5f32).unwrap();
}

#[test]
fn value_and_grad_returns_containers_of_arguments() {
    for compiler in compilers() {
        let loss = |((w, [b]), x): ((Expr, [Expr; 1]), Expr)| ((w * x + b).pow(2)).sum();
        let f = jit(value_and_grad(loss)).compiler(compiler);
        let (w, b) = (Tensor::from(2.0f32), Tensor::from(1.0f32));
        let (value, ((dw, [db]), dx)) = f.call(((w, [b]), Tensor::from([1.0f32, 2.0]))).unwrap();
        assert_eq!(numbers(&value), [34.0]);
        assert_eq!((numbers(&dw), numbers(&db)), (vec![26.0], vec![16.0]));
        assert_eq!(numbers(&dx), [12.0, 20.0]);
    }
}
