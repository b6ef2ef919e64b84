//! Executables by the digest of their program.
//!
//! The digest does not depend on which function object was traced, so two equal functions, or a
//! function that each iteration of a loop defines again, share an executable. Concurrent callers of
//! the same program wait for the first instead of compiling it again; callers of other programs
//! proceed.
//!
//! The cache alone keeps executables alive. Handles hold them weakly, so that eviction frees their
//! memory, and find or compile them again for the next run.

mod store;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use nxla_expr::Digest;
use nxla_split::Policy;

use store::{Claim, Store};

pub use store::CacheReport;
pub(crate) use store::Used;

use crate::background::{self, Interrupt};
use crate::compiler::{Compiler, Executable};
use crate::device::Device;
use crate::error::Result;
use crate::options::Settings;
use crate::thresholds::CACHE_BYTES;

/// The key of an executable.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CacheKey {
    /// The program.
    pub digest: Digest,
    /// The compiler, which lives as long as the key.
    pub compiler: CompilerKey,
    /// The compiler's settings.
    pub settings: Settings,
    /// The device, unless the settings select one.
    pub device: Option<Device>,
    /// The hooks with a listener, see [`DetachedProgram::pattern`](nxla_expr::DetachedProgram::pattern).
    pub hooks: Vec<u32>,
    /// The addresses of the functions of hooks, for compilers whose executables hold them. The
    /// executables keep the functions alive, so an address in a key stays valid.
    pub functions: Vec<usize>,
    /// Donated inputs.
    pub donated: Vec<bool>,
    /// The policy of stages, if the program is split.
    pub stages: Option<Policy>,
}

/// A compiler as part of a key: equal only to itself, also among compilers of the same name.
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

/// A least-recently-used cache of executables with a limit in bytes.
pub struct ExecutableCache(Store<CacheKey, Arc<dyn Executable>>);

impl fmt::Debug for ExecutableCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecutableCache").finish_non_exhaustive()
    }
}

/// An executable from the cache.
pub(crate) type Found = store::Found<Arc<dyn Executable>>;

/// The cache of the process.
///
/// ```
/// let report = nxla::executables().report();
/// assert!(report.evictions <= report.misses);
/// ```
pub fn executables() -> &'static ExecutableCache {
    static CACHE: OnceLock<ExecutableCache> = OnceLock::new();
    CACHE.get_or_init(|| ExecutableCache(Store::new(CACHE_BYTES)))
}

impl ExecutableCache {
    /// The executable of a key, compiled if it is missing. A failure is not cached.
    ///
    /// With `interrupt`, another thread compiles, and all waiting callers poll `interrupt`. When it
    /// answers `true` they return, and the compiler continues.
    ///
    /// # Errors
    /// Returns errors of `compile` and an error for an interrupt of the caller.
    pub fn get_or_compile(
        &'static self,
        key: &CacheKey,
        compile: impl FnOnce() -> Result<Arc<dyn Executable>> + Send + 'static,
        interrupt: Option<&Interrupt<'_>>,
    ) -> Result<Arc<dyn Executable>> {
        self.find(key, compile, interrupt).map(|found| found.value)
    }

    /// Like [`ExecutableCache::get_or_compile`], and returns the handle that records later uses.
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
        background::run_watched("nxla compile", make, interrupt)
    }

    /// Notes that an executable is used now.
    pub(crate) fn touch(&self, used: &Used) {
        self.0.touch(used);
    }

    /// Returns the limit in bytes.
    pub(crate) fn limit(&self) -> u64 {
        self.0.limit()
    }

    /// Sets the limit in bytes and evicts executables beyond it. The newest executable stays until the
    /// next compilation.
    ///
    /// ```
    /// nxla::executables().set_limit(1 << 30);
    /// ```
    pub fn set_limit(&self, bytes: u64) {
        self.0.set_limit(bytes);
    }

    /// Removes executables in construction; the next caller makes them.
    pub(crate) fn forget_makers(&self) {
        self.0.forget_makers();
    }

    /// Removes all executables. Functions compile again at their next call; current runs continue.
    ///
    /// ```
    /// nxla::executables().clear();
    /// assert_eq!(nxla::executables().report().entries, 0);
    /// ```
    pub fn clear(&self) {
        self.0.clear();
    }

    /// Statistics of the cache.
    ///
    /// ```
    /// println!("{:?}", nxla::executables().report());
    /// ```
    pub fn report(&self) -> CacheReport {
        self.0.report()
    }
}
