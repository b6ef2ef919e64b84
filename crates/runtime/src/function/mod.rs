//! Compiled functions: traced once for each signature, and found by it.
//!
//! A function here is untyped. The front end describes a call ([`Call`]) and traces the function
//! ([`Tracing`]). It chooses the types of static values `S` and of the containers of results `R`.

mod call;
mod entry;

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nxla_eval::Interrupt;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

pub use call::{Call, Inputs, Signature, Static};
pub use entry::{Entry, ResultVectors, TracedFunction, Tracing};

use crate::cache::executables;
use crate::compiler::{Purpose, registry_generation};
use crate::donation::Donations;
use crate::error::{Error, Result};
use crate::forks::no_fork;
use crate::options::{Options, default_options, graph_options, has_default_options};
use crate::tensor::RawTensor;
use crate::trace::Trace;

/// The behavior of a function that is called while another one is traced on the thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Conflict {
    /// Returns an error.
    #[default]
    Raise,
    /// Runs separately.
    Force,
    /// Joins the trace.
    Reuse,
}

impl Conflict {
    /// Returns the policy that joins a trace, or an error if the function has its own options.
    pub fn without_loss(options: &Options) -> Self {
        let Options { compiler, settings, device, hooks, stages, progress: _ } = options;
        let none = compiler.is_none() && device.is_none() && stages.is_none();
        if none && settings.is_empty() && hooks.is_empty() {
            Conflict::Reuse
        } else {
            Conflict::Raise
        }
    }

    /// Returns the continuation of a call in a trace of the function `name`.
    ///
    /// # Errors
    /// Returns an error if the function does not allow such calls, except in
    /// [`inlining_all`].
    pub fn call_mode(self, name: &str) -> Result<CallMode> {
        match self {
            Conflict::Force => Ok(CallMode::Run),
            Conflict::Reuse => Ok(CallMode::Inline),
            Conflict::Raise if INLINES_ALL.get() => Ok(CallMode::Inline),
            Conflict::Raise => Err(Error::Usage(format!(
                "{name}: must not be called in a trace, because it has its own options; pass \
                 on_conflict=\"reuse\" to nx.jit to inline it without the options, or \"force\" \
                 to run it separately"
            ))),
        }
    }
}

thread_local! {
    /// True while functions with their own options join the traces of this thread.
    static INLINES_ALL: Cell<bool> = const { Cell::new(false) };
}

/// Calls a function in which traces inline every function with its own options, except for
/// [`Conflict::Force`]. The caller uses only the types of the inlined parts, on which options have no
/// effect.
pub fn inlining_all<T>(trace: impl FnOnce() -> T) -> T {
    /// Restores the previous value, also after a panic.
    struct Restore(bool);

    impl Drop for Restore {
        fn drop(&mut self) {
            INLINES_ALL.set(self.0);
        }
    }

    let _restore = Restore(INLINES_ALL.replace(true));
    trace()
}

/// The continuation of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallMode {
    /// Run the function, compiled.
    Run,
    /// Inline the function into the current trace.
    Inline,
}

/// Checks that a function that is compiled for fixed types is not called in a trace.
///
/// # Errors
/// Returns an error that names the function in a trace.
pub fn refuse_trace(name: &str) -> Result<()> {
    if !Trace::is_entered() {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "{name}: must not be called in a trace, because it is compiled; call the original function"
    )))
}

/// Statistics of a function: its compilations and the calls that found an executable.
#[derive(Clone, Debug, Default)]
pub struct FunctionReport {
    /// Signatures whose executables are in memory.
    pub entries: usize,
    /// Calls that found one.
    pub hits: u64,
    /// Calls that compiled.
    pub misses: u64,
    /// Bytes of the executables.
    pub bytes: usize,
    /// The digests of the programs as strings, sorted.
    pub digests: Vec<String>,
    /// The backend that runs the next call of each program, in the order of `digests`.
    pub backends: Vec<String>,
}

/// A function that runs compiled.
pub struct JitFunction<S, R> {
    name: String,
    options: Options,
    conflict: Conflict,
    entries: Mutex<Entries<S, R>>,
    /// The fingerprint of the options, computed once; see [`Options::fingerprint`].
    own_fingerprint: u64,
    /// A number that no other function of the process has.
    number: u64,
}

impl<S, R> fmt::Debug for JitFunction<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JitFunction")
            .field("name", &self.name)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// Everything that selects a program besides the signature of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Variant {
    /// A number for everything about options that programs depend on.
    fingerprint: u64,
    purpose: Purpose,
}

struct CachedEntry<S, R> {
    signature: Signature<S>,
    variant: Variant,
    entry: Arc<Entry<R>>,
}

/// The entries whose signatures have one hash.
type Candidates<S, R> = SmallVec<[Arc<CachedEntry<S, R>>; 1]>;

type ByHash<S, R> = FxHashMap<u64, Candidates<S, R>>;

/// The entries of a function. A generation ends when its entries hold more bytes than the cache of
/// executables may. An entry is dropped if no call has used it for two generations.
struct Entries<S, R> {
    /// The entries that calls of this generation have used.
    young: ByHash<S, R>,
    /// The bytes that these entries hold.
    young_bytes: usize,
    /// The other entries of the previous generation.
    old: ByHash<S, R>,
    /// The entry of the last call of plain tensors, and the fingerprint of its options.
    recent: Option<(u64, Arc<Entry<R>>)>,
    hits: u64,
    misses: u64,
}

impl<S, R> Default for Entries<S, R> {
    fn default() -> Self {
        let (young, old) = (FxHashMap::default(), FxHashMap::default());
        Self { young, young_bytes: 0, old, recent: None, hits: 0, misses: 0 }
    }
}

impl<S, R> Entries<S, R> {
    /// Returns the entries whose signatures have a hash, and makes them young.
    fn candidates(&mut self, hash: u64) -> Candidates<S, R> {
        if let Some(found) = self.old.remove(&hash) {
            self.young_bytes += found.iter().map(|cached| cached.entry.held_bytes()).sum::<usize>();
            self.young.entry(hash).or_default().extend(found);
        }
        self.young.get(&hash).cloned().unwrap_or_default()
    }

    /// Begins a new generation if the current one is full. Returns the dropped entries: static values
    /// may run code of the user when they are dropped, which must not happen under the lock.
    fn begin_generation_if_full(&mut self) -> ByHash<S, R> {
        if self.young_bytes as u64 <= executables().limit() {
            return FxHashMap::default();
        }
        self.young_bytes = 0;
        std::mem::replace(&mut self.old, std::mem::take(&mut self.young))
    }

    fn iter(&self) -> impl Iterator<Item = &Arc<CachedEntry<S, R>>> {
        self.young.values().chain(self.old.values()).flatten()
    }

    /// Counts a call that led to an entry.
    fn count(&mut self, entry: &Entry<R>) {
        if entry.is_loaded() {
            self.hits += 1;
        } else {
            // The executable was evicted, so the program is compiled again.
            self.misses += 1;
        }
    }
}

impl<S: Static, R> JitFunction<S, R> {
    /// Creates a function; `name` appears in messages and printed programs.
    pub fn new(name: impl Into<String>, options: Options, conflict: Conflict) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let own_fingerprint = options.fingerprint();
        let entries = Mutex::default();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self { name: name.into(), options, conflict, entries, own_fingerprint, number }
    }

    /// A number that no other function of the process has.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns the name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The behavior of a call during a trace.
    pub fn conflict(&self) -> Conflict {
        self.conflict
    }

    /// Returns the options of the function.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The function's options on top of the defaults, which most programs do not set.
    pub fn options_in_force(&self) -> Cow<'_, Options> {
        if has_default_options() {
            Cow::Owned(self.options.over(&default_options()))
        } else {
            Cow::Borrowed(&self.options)
        }
    }

    /// Returns the mode of a call on this thread.
    ///
    /// # Errors
    /// Returns an error in a trace if the function does not allow such calls.
    pub fn call_mode(&self) -> Result<CallMode> {
        if !Trace::is_entered() {
            return Ok(CallMode::Run);
        }
        self.conflict.call_mode(&self.name)
    }

    fn lock(&self) -> MutexGuard<'_, Entries<S, R>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number for everything about options that programs depend on.
    fn fingerprint(&self, options: &Options) -> u64 {
        let own = std::ptr::eq(options, &raw const self.options);
        let options = if own { self.own_fingerprint } else { options.fingerprint() };
        // A new registration can change the compiler with a name.
        let registered = registry_generation() << 1;
        options ^ (registered | u64::from(graph_options().reassociate_floats))
    }

    /// The entry of the last call, if this call has only tensors and the same types. Nearly all
    /// calls in a loop do, and need no signature.
    pub fn recent(&self, tensors: &[&RawTensor], options: &Options) -> Option<Arc<Entry<R>>> {
        let fingerprint = self.fingerprint(options);
        let mut entries = self.lock();
        let (known, entry) = entries.recent.as_ref()?;
        if *known != fingerprint || !entry.takes(tensors) {
            return None;
        }
        let entry = entry.clone();
        entries.count(&entry);
        Some(entry)
    }

    /// Finds the entry of a call.
    ///
    /// # Errors
    /// Returns the error of a failed comparison of static values, or an error for arguments on two
    /// devices.
    pub fn find(
        &self,
        call: &Call<S>,
        purpose: Purpose,
        options: &Options,
    ) -> Result<Option<Arc<Entry<R>>>> {
        let variant = Variant { fingerprint: self.fingerprint(options), purpose };
        let (_, entry) = self.find_entry(call, variant)?;
        if let Some(entry) = &entry {
            let mut entries = self.lock();
            entries.count(entry);
            if call.is_plain() && purpose == Purpose::Jit {
                entries.recent = Some((variant.fingerprint, entry.clone()));
            }
        }
        Ok(entry)
    }

    /// Returns the number of entries with the hash of a call, and the entry of the call.
    fn find_entry(
        &self,
        call: &Call<S>,
        variant: Variant,
    ) -> Result<(usize, Option<Arc<Entry<R>>>)> {
        // Comparing static values may run the user's code, which must not happen under the lock.
        let candidates = {
            let _no_fork = no_fork();
            self.lock().candidates(call.signature.hash())
        };
        let inputs: SmallVec<[&RawTensor; 8]> = call.inputs().iter().collect();
        for candidate in &candidates {
            let fits = candidate.variant == variant && candidate.entry.runs_on_device_of(&inputs);
            if fits && candidate.signature.matches(&call.signature)? {
                return Ok((candidates.len(), Some(candidate.entry.clone())));
            }
        }
        Ok((candidates.len(), None))
    }

    /// Compiles the trace of a call that [`JitFunction::find`] did not find, and caches the entry.
    ///
    /// # Errors
    /// Returns an error for tensors on two devices, errors of the compiler, and an error if `interrupt`
    /// returns `true`.
    pub fn compile(
        &self,
        call: Call<S>,
        traced: TracedFunction<R>,
        purpose: Purpose,
        donations: Donations,
        options: &Options,
        interrupt: Option<&Interrupt<'_>>,
    ) -> Result<(Arc<Entry<R>>, Inputs)> {
        let variant = Variant { fingerprint: self.fingerprint(options), purpose };
        let name = self.name.as_str().into();
        let arguments = call.inputs();
        let entry =
            Entry::compile(name, traced, arguments, purpose, donations, options, interrupt)?;
        self.keep(call, variant, Arc::new(entry))
    }

    /// Compiles the trace of a call for this call only. Equal programs share an executable.
    ///
    /// # Errors
    /// Returns the errors of [`JitFunction::compile`].
    pub fn compile_alone(
        &self,
        call: Call<S>,
        traced: TracedFunction<R>,
        options: &Options,
        interrupt: Option<&Interrupt<'_>>,
    ) -> Result<(Arc<Entry<R>>, Inputs)> {
        let (name, inputs) = (self.name.as_str().into(), call.into_inputs());
        let none = Donations::default();
        let entry = Entry::compile(name, traced, &inputs, Purpose::Jit, none, options, interrupt)?;
        Ok((Arc::new(entry), inputs))
    }

    /// Stores an entry, unless another thread has stored an entry for an equal call before.
    fn keep(
        &self,
        call: Call<S>,
        variant: Variant,
        entry: Arc<Entry<R>>,
    ) -> Result<(Arc<Entry<R>>, Inputs)> {
        {
            let _no_fork = no_fork();
            self.lock().misses += 1;
        }
        loop {
            let (compared, known) = self.find_entry(&call, variant)?;
            if let Some(known) = known {
                return Ok((known, call.inputs));
            }
            let no_fork = no_fork();
            let mut entries = self.lock();
            let cached = entries.young.entry(call.signature.hash()).or_default();
            if cached.len() > compared {
                // Another thread added an entry meanwhile; compare with it too.
                continue;
            }
            let (signature, kept) = (call.signature, entry.clone());
            cached.push(Arc::new(CachedEntry { signature, variant, entry: kept }));
            entries.young_bytes += entry.held_bytes();
            let dropped = entries.begin_generation_if_full();
            drop(entries);
            drop(no_fork);
            drop(dropped);
            return Ok((entry, call.inputs));
        }
    }

    /// The number of compilations of the function.
    pub fn misses(&self) -> u64 {
        self.lock().misses
    }

    /// Statistics of the function.
    pub fn report(&self) -> FunctionReport {
        let entries = self.lock();
        let loaded = entries.iter().map(|cached| &cached.entry);
        let loaded: Vec<&Arc<Entry<R>>> = loaded.filter(|entry| entry.is_loaded()).collect();
        let described =
            |entry: &&Arc<Entry<R>>| (entry.program().digest().to_string(), entry.backend());
        let mut programs: Vec<(String, String)> = loaded.iter().map(described).collect();
        programs.sort();
        let (digests, backends) = programs.into_iter().unzip();
        FunctionReport {
            entries: loaded.len(),
            hits: entries.hits,
            misses: entries.misses,
            bytes: loaded.iter().map(|entry| entry.byte_size()).sum(),
            digests,
            backends,
        }
    }

    /// Calls a function with each stored static value, unless another thread holds the lock.
    pub fn visit_statics(&self, mut visit: impl FnMut(&S)) {
        let Ok(entries) = self.entries.try_lock() else { return };
        entries.iter().flat_map(|cached| cached.signature.statics()).for_each(&mut visit);
    }

    /// Removes the compiled entries of the function.
    pub fn clear(&self) {
        // Static values may run code of the user when they are dropped.
        let dropped = std::mem::take(&mut *self.lock());
        drop(dropped);
    }
}
