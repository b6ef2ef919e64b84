//! Eviction from the executable cache, and recompilation. A separate test binary, since the limit
//! applies to the process.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use common::{compilers, numbers};
use nxla::runtime::{CompilerKey, RawTensor};
use nxla::{
    CacheKey, CacheReport, DType, Digest, Error, Evaluator, Executable, Expr, Options, Result,
    RunContext, Settings, Tensor, TensorType, compile_program, executables, jit,
};
use proptest::prelude::*;

/// One test at a time: all tests share the cache of the process.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn evicted_executables_are_recompiled() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for compiler in compilers() {
        let options = Options::new().compiler(*compiler);
        let function = jit(|x: Expr| x.sin() + 1);
        let (program, _) = function.trace(TensorType::scalar(DType::F32)).unwrap();
        let executable = compile_program(&program, &options, &[]).unwrap();
        assert!(executable.is_loaded() && executable.byte_size() > 0, "{compiler}");
        let function = function.compiler(compiler);
        assert_eq!(numbers(&function.call(0.0f32).unwrap()), [1.0]);

        let before = executables().report();
        executables().set_limit(0);
        assert!(!executable.is_loaded());
        assert_eq!(executable.byte_size(), 0);
        let after = executables().report();
        assert_eq!((after.entries, after.bytes), (0, 0));
        assert!(after.evictions > before.evictions);

        let zero = Tensor::from(0.0f32);
        let results = executable.run(&[&zero], &Default::default()).unwrap();
        assert_eq!(numbers(&results[0]), [1.0]);
        assert!(executable.is_loaded());
        assert_eq!(executables().report().entries, 1);
        executables().clear();
        assert!(!executable.is_loaded());
        assert_eq!(numbers(&function.call(0.0f32).unwrap()), [1.0]);
        // The call above compiled an equal program, so this run needs no compilation.
        let misses = executables().report().misses;
        executable.run(&[&zero], &Default::default()).unwrap();
        assert_eq!(executables().report().misses, misses);
        executables().set_limit(512 << 20);
    }
}

/// A value with a size.
struct ExecutableOfSize(usize);

impl Executable for ExecutableOfSize {
    fn run(&self, _: &[&RawTensor], _: &RunContext<'_>) -> Result<Vec<RawTensor>> {
        Ok(Vec::new())
    }

    fn byte_size(&self) -> usize {
        self.0
    }
}

/// An operation on the cache.
#[derive(Clone, Copy, Debug)]
enum Action {
    /// Requests the executable of a number, with this size in bytes.
    Ask(u8),
    /// Requests the executable, and the compiler fails if it is missing.
    Fail(u8),
    Limit(u16),
    Clear,
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let action = prop_oneof![
        12 => (0..12_u8).prop_map(Action::Ask),
        2 => (0..12_u8).prop_map(Action::Fail),
        2 => (0..2000_u16).prop_map(Action::Limit),
        1 => Just(Action::Clear),
    ];
    prop::collection::vec(action, 1..60)
}

fn bytes_of(number: u8) -> usize {
    usize::from(number) * 37 % 400
}

/// The model of the cache: its entries, the most recently used entry last.
struct Model {
    entries: Vec<u8>,
    limit: usize,
    report: CacheReport,
}

impl Model {
    fn bytes(&self) -> usize {
        self.entries.iter().map(|&number| bytes_of(number).max(1)).sum()
    }

    /// Drops the least recently used entries, an eighth more than necessary; the newest entry
    /// remains.
    fn evict(&mut self, newest: Option<u8>) {
        if self.bytes() <= self.limit {
            return;
        }
        while self.bytes() > self.limit - self.limit / 8 {
            let oldest = self.entries.iter().position(|&number| Some(number) != newest);
            let Some(oldest) = oldest else { break };
            self.entries.remove(oldest);
            self.report.evictions += 1;
        }
    }

    /// Returns whether the entry exists, and marks it as most recently used.
    fn ask(&mut self, number: u8, fails: bool) -> bool {
        let index = self.entries.iter().position(|&entry| entry == number);
        if let Some(index) = index {
            self.entries.remove(index);
            self.report.hits += 1;
        } else {
            self.report.misses += 1;
        }
        let found = index.is_some();
        if found || !fails {
            self.entries.push(number);
        }
        if !found && !fails {
            self.evict(Some(number));
        }
        found
    }

    fn report(&self) -> CacheReport {
        CacheReport { entries: self.entries.len(), bytes: self.bytes(), ..self.report }
    }
}

fn key(number: u8) -> CacheKey {
    CacheKey {
        digest: Digest([number; 32]),
        compiler: CompilerKey(Arc::new(Evaluator)),
        settings: Settings::new(),
        device: None,
        hooks: Vec::new(),
        functions: Vec::new(),
        donated: Vec::new(),
        stages: None,
    }
}

/// Requests an entry, and returns whether it existed.
fn ask(key: &CacheKey, number: u8, fails: bool) -> bool {
    let compiled = Arc::new(AtomicBool::new(false));
    let seen = compiled.clone();
    let compile = move || -> Result<Arc<dyn Executable>> {
        seen.store(true, Ordering::Relaxed);
        if fails {
            Err(Error::Internal("the compiler fails".into()))
        } else {
            Ok(Arc::new(ExecutableOfSize(bytes_of(number))))
        }
    };
    let executable = executables().get_or_compile(key, compile, None);
    let found = !compiled.load(Ordering::Relaxed);
    assert_eq!(executable.is_ok(), found || !fails);
    if let Ok(executable) = executable {
        assert_eq!(executable.byte_size(), bytes_of(number));
    }
    found
}

/// A value that consists of other values, which the same cache holds, and does not fit in the limit.
#[test]
fn large_entries_do_not_evict_their_parts() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let cache = executables();
    cache.clear();
    cache.set_limit(1000);
    let compile_whole = || -> Result<Arc<dyn Executable>> {
        for number in [2, 3] {
            let part = || -> Result<Arc<dyn Executable>> { Ok(Arc::new(ExecutableOfSize(2000))) };
            executables().get_or_compile(&key(number), part, None)?;
        }
        Ok(Arc::new(ExecutableOfSize(10)))
    };
    cache.get_or_compile(&key(1), compile_whole, None).unwrap();
    // The first part was not in use when the second was made.
    assert_eq!(cache.report().bytes, 2010);
    assert!(!ask(&key(4), 4, false));
    assert!(cache.report().bytes <= 1000);
    cache.set_limit(512 << 20);
    cache.clear();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn cache_behaves_like_an_lru_list(actions in actions()) {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let cache = executables();
        // All keys have the same compiler.
        let keys: Vec<CacheKey> = (0..12).map(key).collect();
        cache.clear();
        cache.set_limit(1000);
        let mut model = Model { entries: Vec::new(), limit: 1000, report: cache.report() };
        for action in actions {
            match action {
                Action::Ask(number) | Action::Fail(number) => {
                    let fails = matches!(action, Action::Fail(_));
                    let found = ask(&keys[usize::from(number)], number, fails);
                    prop_assert_eq!(found, model.ask(number, fails), "{:?}", action);
                }
                Action::Limit(bytes) => {
                    cache.set_limit(bytes.into());
                    model.limit = bytes.into();
                    model.evict(None);
                }
                Action::Clear => {
                    cache.clear();
                    model.entries.clear();
                }
            }
            prop_assert_eq!(cache.report(), model.report(), "after {:?}", action);
        }
        cache.clear();
        cache.set_limit(512 << 20);
    }
}
