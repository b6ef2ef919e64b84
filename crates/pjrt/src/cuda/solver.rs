//! The functions of cuSOLVER that are used, and its handles.
//!
//! The declarations follow `cusolverDn.h` of CUDA 12 and 13. Matrices are stored by columns.

use std::ffi::{c_int, c_schar, c_void};
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::{Mutex, OnceLock, PoisonError};

use libloading::Library;
use nxla_tensor::DType;

use super::driver::{RawStream, Stream};
use crate::plugin::reason;

/// `cusolverStatus_t`; 0 is success.
pub(super) type Status = c_int;

/// `cusolverDnHandle_t` and `cusolverDnParams_t`.
type Handle = *mut c_void;

/// The address of matrices, vectors or a workspace on the device.
type Data = *mut c_void;

/// `CUBLAS_FILL_MODE_UPPER`: the upper triangle of matrices by columns, which is the lower triangle
/// of the same memory by rows.
pub(super) const UPPER: c_int = 1;

/// `CUSOLVER_EIG_MODE_VECTOR`.
pub(super) const WITH_VECTORS: c_int = 1;

/// `cudaDataType`.
type Kind = c_int;

/// Declares functions of the library by their types without the handle, which is the first
/// parameter of all of them.
macro_rules! functions {
    ($($field:ident = $name:literal ($($argument:ty),*);)*) => {
        /// The functions of the library.
        pub(super) struct Functions {
            $(pub(super) $field: unsafe extern "C" fn(Handle, $($argument),*) -> Status),*
        }

        impl Functions {
            /// # Safety
            /// `library` is cuSOLVER.
            unsafe fn find(library: &Library) -> Result<Functions, libloading::Error> {
                // SAFETY: the library exports the functions with these signatures.
                unsafe {
                    Ok(Functions {
                        $($field: *library.get(concat!($name, "\0").as_bytes())?),*
                    })
                }
            }
        }
    };
}

/// The functions for the four dtypes, in the order of [`Numbers::letter`].
macro_rules! by_dtype {
    ($($field:ident = $names:expr, ($($argument:ty),*);)*) => {
        /// The functions with a name for each dtype.
        pub(super) struct Typed {
            $(pub(super) $field: [unsafe extern "C" fn(Handle, $($argument),*) -> Status; 4]),*
        }

        impl Typed {
            /// # Safety
            /// `library` is cuSOLVER.
            unsafe fn find(library: &Library) -> Result<Typed, libloading::Error> {
                // SAFETY: the library exports the functions with these signatures, up to the types
                // that pointers point to.
                unsafe {
                    $(let $field = {
                        let [s, d, c, z]: [&str; 4] = $names;
                        let symbol = |name: &str| library.get(name.as_bytes()).map(|found| *found);
                        [symbol(s)?, symbol(d)?, symbol(c)?, symbol(z)?]
                    };)*
                    Ok(Typed { $($field),* })
                }
            }
        }
    };
}

functions! {
    destroy = "cusolverDnDestroy" ();
    set_stream = "cusolverDnSetStream" (RawStream);
    // Parameters, triangle, n, matrix, columns apart, compute type, bytes of the workspaces on the
    // device and on the host.
    potrf_sizes = "cusolverDnXpotrf_bufferSize" (
        Handle, c_int, i64, Kind, Data, i64, Kind, *mut usize, *mut usize
    );
    potrf = "cusolverDnXpotrf" (
        Handle, c_int, i64, Kind, Data, i64, Kind, Data, usize, Data, usize, *mut c_int
    );
    getrf_sizes = "cusolverDnXgetrf_bufferSize" (
        Handle, i64, i64, Kind, Data, i64, Kind, *mut usize, *mut usize
    );
    getrf = "cusolverDnXgetrf" (
        Handle, i64, i64, Kind, Data, i64, *mut i64, Kind, Data, usize, Data, usize, *mut c_int
    );
    geqrf_sizes = "cusolverDnXgeqrf_bufferSize" (
        Handle, i64, i64, Kind, Data, i64, Kind, Data, Kind, *mut usize, *mut usize
    );
    geqrf = "cusolverDnXgeqrf" (
        Handle, i64, i64, Kind, Data, i64, Kind, Data, Kind, Data, usize, Data, usize, *mut c_int
    );
    syevd_sizes = "cusolverDnXsyevd_bufferSize" (
        Handle, c_int, c_int, i64, Kind, Data, i64, Kind, Data, Kind, *mut usize, *mut usize
    );
    syevd = "cusolverDnXsyevd" (
        Handle, c_int, c_int, i64, Kind, Data, i64, Kind, Data, Kind, Data, usize, Data, usize,
        *mut c_int
    );
    gesvd_sizes = "cusolverDnXgesvd_bufferSize" (
        Handle, c_schar, c_schar, i64, i64, Kind, Data, i64, Kind, Data, Kind, Data, i64, Kind,
        Data, i64, Kind, *mut usize, *mut usize
    );
    gesvd = "cusolverDnXgesvd" (
        Handle, c_schar, c_schar, i64, i64, Kind, Data, i64, Kind, Data, Kind, Data, i64, Kind,
        Data, i64, Kind, Data, usize, Data, usize, *mut c_int
    );
}

by_dtype! {
    // Triangle, n, matrices, columns apart, results, number of matrices.
    potrf_batched = [
        "cusolverDnSpotrfBatched\0", "cusolverDnDpotrfBatched\0",
        "cusolverDnCpotrfBatched\0", "cusolverDnZpotrfBatched\0",
    ], (c_int, c_int, Data, c_int, *mut c_int, c_int);
    // Rows, columns, reflectors, matrix, columns apart, scales, elements of the workspace.
    orgqr_size = [
        "cusolverDnSorgqr_bufferSize\0", "cusolverDnDorgqr_bufferSize\0",
        "cusolverDnCungqr_bufferSize\0", "cusolverDnZungqr_bufferSize\0",
    ], (c_int, c_int, c_int, Data, c_int, Data, *mut c_int);
    orgqr = [
        "cusolverDnSorgqr\0", "cusolverDnDorgqr\0", "cusolverDnCungqr\0", "cusolverDnZungqr\0",
    ], (c_int, c_int, c_int, Data, c_int, Data, Data, c_int, *mut c_int);
}

/// `cusolverDnXsyevBatched_bufferSize`.
type SizesOfBatch = unsafe extern "C" fn(
    Handle,
    Handle,
    c_int,
    c_int,
    i64,
    Kind,
    Data,
    i64,
    Kind,
    Data,
    Kind,
    *mut usize,
    *mut usize,
    i64,
) -> Status;

/// `cusolverDnXsyevBatched`.
type EigenvaluesOfBatch = unsafe extern "C" fn(
    Handle,
    Handle,
    c_int,
    c_int,
    i64,
    Kind,
    Data,
    i64,
    Kind,
    Data,
    Kind,
    Data,
    usize,
    Data,
    usize,
    *mut c_int,
    i64,
) -> Status;

/// cuSOLVER as it is loaded.
pub(super) struct CuSolver {
    create: unsafe extern "C" fn(*mut Handle) -> Status,
    create_parameters: unsafe extern "C" fn(*mut Handle) -> Status,
    pub(super) functions: Functions,
    pub(super) typed: Typed,
    /// The eigenvalues of many matrices at once, since CUDA 12.6.
    pub(super) syev_batched: Option<(SizesOfBatch, EigenvaluesOfBatch)>,
}

/// The library of the process. All plugins share one library, because it works on memory of any
/// version of CUDA.
static LOADED: OnceLock<Result<CuSolver, String>> = OnceLock::new();

/// Returns true if cuSOLVER can be loaded for a plugin that was built for a version of CUDA, such
/// as 13000.
pub(crate) fn is_installed(plugin: &Path, cuda_version: i64) -> bool {
    LOADED.get_or_init(|| CuSolver::load(&candidates(plugin, cuda_version / 1000))).is_ok()
}

/// The names of the library: files in the NVIDIA wheels that are installed with the plugin, and the
/// bare name, for which the dynamic linker searches.
fn candidates(plugin: &Path, cuda: i64) -> Vec<PathBuf> {
    // cuSOLVER 11 belongs to CUDA 12, cuSOLVER 12 to CUDA 13.
    let name = format!("libcusolver.so.{}", cuda - 1);
    let packages = plugin.ancestors().nth(3);
    let wheels = [format!("nvidia/cu{cuda}/lib"), "nvidia/cusolver/lib".to_owned()];
    let beside = packages
        .into_iter()
        .flat_map(|packages| wheels.iter().map(move |folder| packages.join(folder)));
    let mut all: Vec<PathBuf> = beside.map(|folder| folder.join(&name)).collect();
    all.retain(|path| path.exists());
    all.push(name.into());
    all
}

impl CuSolver {
    /// Loads the first library that can be loaded.
    fn load(names: &[PathBuf]) -> Result<CuSolver, String> {
        let mut refused = String::new();
        for name in names {
            // SAFETY: the caller names cuSOLVER, whose initializers have no requirements.
            let found = unsafe {
                Library::new(name).and_then(|library| {
                    let solver = CuSolver::find(&library)?;
                    // The library must stay loaded, because its functions are used until the
                    // process ends.
                    std::mem::forget(library);
                    Ok(solver)
                })
            };
            match found {
                Ok(solver) => return Ok(solver),
                Err(error) => refused = format!("{}: {}", name.display(), reason(&error)),
            }
        }
        Err(refused)
    }

    /// # Safety
    /// `library` is cuSOLVER.
    unsafe fn find(library: &Library) -> Result<CuSolver, libloading::Error> {
        // SAFETY: the library exports the functions with these signatures.
        unsafe {
            let sizes = library.get(b"cusolverDnXsyevBatched_bufferSize\0");
            let run = library.get(b"cusolverDnXsyevBatched\0");
            Ok(CuSolver {
                create: *library.get(b"cusolverDnCreate\0")?,
                create_parameters: *library.get(b"cusolverDnCreateParams\0")?,
                functions: Functions::find(library)?,
                typed: Typed::find(library)?,
                syev_batched: sizes.ok().map(|it| *it).zip(run.ok().map(|it| *it)),
            })
        }
    }
}

/// A handle of cuSOLVER for a stream, with its parameters.
struct RawSolver {
    handle: Handle,
    parameters: Handle,
    stream: RawStream,
}

// SAFETY: a handle may be used on any thread, by one at a time.
unsafe impl Send for RawSolver {}

/// The handles that no call uses. Each stays with its stream, because it has memory on the device
/// that the kernels in the stream use.
static IDLE: Mutex<Vec<RawSolver>> = Mutex::new(Vec::new());

/// A handle of cuSOLVER that this call uses.
pub(super) struct Solver {
    pub(super) library: &'static CuSolver,
    raw: Option<RawSolver>,
}

impl Solver {
    /// Takes a handle for a stream, or creates one.
    pub(super) fn of(stream: &Stream) -> Result<Solver, String> {
        let library = LOADED.get().ok_or("cuSOLVER is not loaded")?.as_ref()?;
        let idle = || IDLE.lock().unwrap_or_else(PoisonError::into_inner);
        let known = {
            let mut idle = idle();
            let index = idle.iter().position(|solver| solver.stream == stream.raw());
            index.map(|index| idle.swap_remove(index))
        };
        let raw = match known {
            Some(raw) => raw,
            None => create(library, stream.raw())?,
        };
        Ok(Solver { library, raw: Some(raw) })
    }

    /// The handle and its parameters, for a call of a function of the library.
    pub(super) fn handles(&self) -> (Handle, Handle) {
        let raw = self.raw.as_ref().expect("it is taken when the solver is dropped");
        (raw.handle, raw.parameters)
    }
}

impl Drop for Solver {
    fn drop(&mut self) {
        IDLE.lock().unwrap_or_else(PoisonError::into_inner).extend(self.raw.take());
    }
}

/// Creates a handle for a stream.
fn create(library: &CuSolver, stream: RawStream) -> Result<RawSolver, String> {
    let (mut handle, mut parameters) = (null_mut(), null_mut());
    // SAFETY: the outputs outlive the calls, and the stream outlives the program that runs in it. A
    // handle whose stream is gone is never used again.
    unsafe {
        check("create a handle", (library.create)(&raw mut handle))?;
        let set = (library.functions.set_stream)(handle, stream);
        let ready = check("set the stream", set).and_then(|()| {
            check("create parameters", (library.create_parameters)(&raw mut parameters))
        });
        if let Err(why) = ready {
            (library.functions.destroy)(handle);
            return Err(why);
        }
    }
    Ok(RawSolver { handle, parameters, stream })
}

/// Makes an error of a status.
pub(super) fn check(what: &str, status: Status) -> Result<(), String> {
    match status {
        0 => Ok(()),
        2 => Err(format!("cuSOLVER could not {what}: the device has too little memory")),
        _ => Err(format!("cuSOLVER could not {what}: status {status}")),
    }
}

/// How cuSOLVER names a dtype.
#[derive(Clone, Copy)]
pub(super) struct Numbers {
    /// `cudaDataType` of the elements.
    pub(super) kind: Kind,
    /// `cudaDataType` of real results: eigenvalues and singular values.
    pub(super) real: Kind,
    /// The index of the functions of [`Typed`].
    pub(super) letter: usize,
    /// Bytes of an element.
    pub(super) size: usize,
}

impl Numbers {
    /// Returns an error for dtypes that cuSOLVER does not factorize.
    pub(super) fn of(dtype: DType) -> Result<Numbers, String> {
        let (kind, real, letter) = match dtype {
            DType::F32 => (0, 0, 0),
            DType::F64 => (1, 1, 1),
            DType::C64 => (4, 0, 2),
            DType::C128 => (5, 1, 3),
            other => return Err(format!("cuSOLVER does not factorize matrices of {other}")),
        };
        Ok(Numbers { kind, real, letter, size: dtype.size() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn library_next_to_the_plugin_is_tried_first() {
        let folder = std::env::temp_dir().join(format!("nxla-cusolver-{}", std::process::id()));
        let lib = folder.join("nvidia/cu13/lib");
        std::fs::create_dir_all(&lib).unwrap();
        std::fs::write(lib.join("libcusolver.so.12"), "").unwrap();
        let plugin = folder.join("jax_plugins/xla_cuda13/xla_cuda_plugin.so");
        let found = candidates(&plugin, 13);
        assert_eq!(found, [lib.join("libcusolver.so.12"), "libcusolver.so.12".into()]);
        assert_eq!(candidates(&plugin, 12), [PathBuf::from("libcusolver.so.11")]);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn libraries_other_than_cusolver_are_rejected() {
        let error = CuSolver::load(&["libcusolver_missing.so".into()]).err().unwrap();
        assert!(error.starts_with("libcusolver_missing.so: "), "{error}");
        let error = CuSolver::load(&["libc.so.6".into()]).err().unwrap();
        assert!(error.contains("cusolverDnCreate"), "{error}");
    }

    #[test]
    fn only_f32_f64_and_complex_dtypes_are_supported() {
        let supported: Vec<DType> =
            DType::ALL.iter().copied().filter(|&dtype| Numbers::of(dtype).is_ok()).collect();
        assert_eq!(supported, [DType::F32, DType::F64, DType::C64, DType::C128]);
    }
}
