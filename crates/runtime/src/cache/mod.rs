//! Executables by the digest of their program.
//!
//! The digest does not depend on which function object was traced, so two equal functions, or one
//! that is defined anew in every turn of a loop, share an executable. Concurrent callers of the
//! same program wait for the first instead of compiling it again; others are not held up.
//!
//! The cache alone keeps executables alive: those who run one hold it weakly, so that one that is
//! dropped is gone, and find or compile it again when they need it.

mod store;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock, mpsc};

use nxla_expr::Digest;
use nxla_split::Policy;

use store::{Claim, Store};

pub use store::CacheReport;
pub(crate) use store::Used;

use crate::auto::thresholds::CACHE_BYTES;
use crate::background::{self, Interrupt};
use crate::compiler::{Compiler, Executable};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::options::Settings;

/// What makes an executable reusable.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CacheKey {
    /// The program.
    pub digest: Digest,
    /// The compiler, which lives as long as the key.
    pub compiler: CompilerKey,
    /// The compiler's settings.
    pub settings: Settings,
    /// Where it runs, unless the settings say so.
    pub device: Option<Device>,
    /// Which hooks are called, see [`Detached::pattern`](nxla_expr::Detached::pattern).
    pub hooks: Vec<u32>,
    /// The addresses of the functions of hooks, for compilers whose executables hold them. They
    /// keep them alive, so that an address means the same for as long as it is a key.
    pub functions: Vec<usize>,
    /// Donated inputs.
    pub donated: Vec<bool>,
    /// How it is cut into stages, if it is.
    pub stages: Option<Policy>,
}

/// A compiler as part of a key: equal to itself alone, whatever its name is.
#[derive(Clone)]
pub struct CompilerKey(pub Arc<dyn Compiler>);

impl PartialEq for CompilerKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.identity() == other.0.identity()
    }
}

impl Eq for CompilerKey {}

impl Hash for CompilerKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.identity().hash(state);
    }
}

impl fmt::Debug for CompilerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

/// Keeps executables up to a number of bytes, dropping those unused for longest.
pub struct ExecutableCache(Store<CacheKey, Arc<dyn Executable>>);

/// An executable that somebody asked for.
pub(crate) type Found = store::Found<Arc<dyn Executable>>;

/// The cache of the process.
pub fn executables() -> &'static ExecutableCache {
    static CACHE: OnceLock<ExecutableCache> = OnceLock::new();
    CACHE.get_or_init(|| ExecutableCache(Store::new(CACHE_BYTES)))
}

impl ExecutableCache {
    /// The executable of a key, compiled if it is not there. A failure is not remembered.
    ///
    /// With `interrupt`, compiling happens on another thread, and both who compiles and who waits
    /// for it ask now and then; if the answer is `true` they leave, and the compiler goes on.
    ///
    /// # Errors
    /// What `compile` raises; the caller was interrupted.
    pub fn get_or_compile(
        &'static self,
        key: &CacheKey,
        compile: impl FnOnce() -> Result<Arc<dyn Executable>> + Send + 'static,
        interrupt: Option<&Interrupt<'_>>,
    ) -> Result<Arc<dyn Executable>> {
        self.find(key, compile, interrupt).map(|found| found.value)
    }

    /// As [`ExecutableCache::get_or_compile`], with what tells the cache of later uses.
    pub(crate) fn find(
        &'static self,
        key: &CacheKey,
        compile: impl FnOnce() -> Result<Arc<dyn Executable>> + Send + 'static,
        interrupt: Option<&Interrupt<'_>>,
    ) -> Result<Found> {
        let duty = match Store::claim(&self.0, key, interrupt)? {
            Claim::Found(found) => return Ok(found),
            Claim::Make(duty) => duty,
        };
        let make = move || -> Result<Found> {
            let executable = compile()?;
            let bytes = executable.byte_size();
            Ok(duty.finish(executable, bytes))
        };
        let Some(interrupt) = interrupt else { return make() };
        let (give, given) = mpsc::channel();
        background::start("nxla compile", move || {
            // A caller that has left does not take it.
            let _ = give.send(make());
        })?;
        let panicked = || Error::Internal("the compiler panicked".into());
        background::wait(&given, interrupt)?.unwrap_or_else(|| Err(panicked()))
    }

    /// Notes that an executable is used now.
    pub(crate) fn touch(&self, used: &Used) {
        self.0.touch(used);
    }

    /// Sets how many bytes of executables are kept; what is beyond is dropped at once. The one that
    /// is compiled last always stays until the next.
    pub fn set_limit(&self, bytes: u64) {
        self.0.set_limit(bytes);
    }

    /// Forgets the executables that are being made, to be made by who asks next.
    pub(crate) fn forget_makers(&self) {
        self.0.forget_makers();
    }

    /// Forgets every executable. Functions that have used one compile it again when they are
    /// called; runs under way go on.
    pub fn clear(&self) {
        self.0.clear();
    }

    /// What the cache holds and did.
    pub fn report(&self) -> CacheReport {
        self.0.report()
    }
}
