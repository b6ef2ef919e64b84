//! Tests of executables on the disk, imported StableHLO, and donated tensors, from Rust.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../../nxla/tests/common/mod.rs"]
mod common;

use std::collections::HashMap;
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use common::require_plugin;
use nxla::{Error, Expr, Tensor, jit};
use nxla_runtime::xla::{clear_disk_cache, disk_entries, disk_report};
use nxla_runtime::{executables, finish_profile, start_profile};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// A temporary folder, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let folder = format!("nxla-xla-{name}-{}", std::process::id());
        Self(std::env::temp_dir().join(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A lock for the test that clears the executables and for the test that counts compilations.
fn lock_executables() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn compute(scratch: &Scratch, x: f32) -> f32 {
    // Executables in memory are found before executables on the disk.
    executables().clear();
    let f = jit(|x: Expr| x.sin() * 3.5 + 1).compiler("xla");
    let f = f.set("cache_dir", scratch.0.to_str().unwrap());
    f.call(x).unwrap().to_vec::<f32>().unwrap()[0]
}

#[test]
fn executables_are_loaded_from_disk() {
    require_plugin!();
    let _alone = lock_executables();
    let scratch = Scratch::new("disk");
    assert_eq!(compute(&scratch, 0.0), 1.0);
    let entries = disk_entries(&scratch.0).unwrap();
    assert_eq!(entries.len(), 1);
    let before = disk_report();
    assert_eq!(compute(&scratch, 0.0), 1.0);
    assert_eq!(disk_report().hits, before.hits + 1);

    let file = scratch.0.join(format!("{}.nxlaexec", entries[0].key));
    std::fs::write(&file, b"rubbish").unwrap();
    assert_eq!(compute(&scratch, 0.0), 1.0);
    let after = disk_report();
    assert!(after.failed > before.failed);
    assert!(after.last_failure.unwrap().contains("not an executable of this cache"));
    assert_eq!(clear_disk_cache(&scratch.0).unwrap().0, 1);
}

#[cfg(feature = "import")]
#[test]
fn imported_text_runs() {
    require_plugin!();
    let text = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
        %y = stablehlo.add %x, %x : tensor<2xf32>
        return %y : tensor<2xf32>
    }";
    let imported = nxla_runtime::xla::Imported::new(text).unwrap();
    let x = Tensor::from(vec![1.5_f32, 2.0]);
    let results = imported.run(&[&x], &nxla_runtime::Options::new(), None).unwrap();
    assert_eq!(results[0].to_vec::<f32>().unwrap(), [3.0, 4.0]);
    let wrong = Tensor::from(vec![1.5_f32]);
    assert!(imported.run(&[&wrong], &nxla_runtime::Options::new(), None).is_err());
}

#[test]
fn use_of_donated_tensors_names_the_function() {
    require_plugin!();
    let step = jit(|x: Expr| x + 1).compiler("xla").donate([0]);
    let x = jit(|x: Expr| x * 2).compiler("xla").call(Tensor::from(vec![1_i32, 2])).unwrap();
    let y = step.call(x.clone()).unwrap();
    assert_eq!(y.to_vec::<i32>().unwrap(), [3, 5]);
    let error = x.to_vec::<i32>().unwrap_err();
    assert!(matches!(error, Error::Pjrt(nxla_runtime::pjrt::Error::Donated { .. })), "{error}");
    assert!(error.to_string().contains("donated to"), "{error}");
    assert!(x.is_released().unwrap());
}

#[test]
fn a_profile_is_written_as_json() {
    require_plugin!();
    assert!(start_profile());
    jit(|x: Expr| x - 2.25).compiler("xla").call(3.0_f32).unwrap();
    let text = finish_profile().unwrap();
    assert!(text.contains("\"cat\": \"call\""), "{text}");
    assert!(text.contains("compile by XLA"), "{text}");
}

/// Records the names and fields of spans, and the open spans of each thread, because other tests
/// run at the same time.
#[derive(Default)]
struct Recorded {
    spans: Mutex<Vec<(ThreadId, String)>>,
    open: Mutex<HashMap<ThreadId, Vec<u64>>>,
}

struct Shared(Arc<Recorded>);

/// Records the fields of a span.
struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.push_str(&format!(" {field}={value:?}"));
    }
}

impl Subscriber for Shared {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "nxla"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut spans = self.0.spans.lock().unwrap();
        spans.push((thread::current().id(), span.metadata().name().to_owned()));
        Id::from_u64(spans.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut spans = self.0.spans.lock().unwrap();
        values.record(&mut Fields(&mut spans[span.into_u64() as usize - 1].1));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, span: &Id) {
        let mut open = self.0.open.lock().unwrap();
        open.entry(thread::current().id()).or_default().push(span.into_u64());
    }

    fn exit(&self, span: &Id) {
        let mut open = self.0.open.lock().unwrap();
        let innermost = open.get_mut(&thread::current().id()).unwrap().pop();
        assert_eq!(innermost, Some(span.into_u64()));
    }
}

#[test]
fn subscribers_receive_traces_compilations_and_calls() {
    require_plugin!();
    let _alone = lock_executables();
    // A global subscriber, because a subscriber of one thread can miss events that other threads
    // register at the same time.
    let recorded = Arc::new(Recorded::default());
    tracing::subscriber::set_global_default(Shared(recorded.clone())).unwrap();
    let f = jit(|x: Expr| x.tan() - 7.25).compiler("xla");
    f.call(3.0_f32).unwrap();
    f.call(4.0_f32).unwrap();
    let this = thread::current().id();
    // Copy the list before the assertions, so that a failure does not poison the lock, which other
    // tests use.
    let all = recorded.spans.lock().unwrap().clone();
    let spans: Vec<&String> =
        all.iter().filter(|(thread, _)| *thread == this).map(|(_, span)| span).collect();
    let count_spans = |what: &str| spans.iter().filter(|span| span.starts_with(what)).count();
    assert_eq!(
        (count_spans("trace what="), count_spans("call what="), count_spans("run what=")),
        (1, 2, 2),
        "{spans:?}"
    );
    let compiled = spans.iter().find(|span| span.contains("compiler=")).unwrap();
    assert!(compiled.starts_with("compile what=") && compiled.contains("nodes="), "{compiled}");
    assert!(
        count_spans("transfer") == 2 && spans.iter().any(|span| span.contains("bytes=")),
        "{spans:?}"
    );
    let open = recorded.open.lock().unwrap()[&this].clone();
    assert!(open.is_empty(), "{open:?}");
}
