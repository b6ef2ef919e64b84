//! Factorizations of matrices on a CUDA device, by cuSOLVER.
//!
//! A program calls one with [`FACTORIZE_TARGET`](crate::FACTORIZE_TARGET). The attribute `routine`
//! names it. The argument and the results are batches of matrices *by columns*: shape
//! `[batch, columns, rows]`. The results are as LAPACK defines them:
//!
//! | routine | argument | results |
//! |---|---|---|
//! | `cholesky` | `a`, whose upper triangle is read | a matrix with `r` in the upper triangle, `r^H r = a`; info |
//! | `lu` | `a` | `l` without its unit diagonal and `u` in one matrix; the order of the rows of `a` in `l u` |
//! | `qr` | `a`, possibly followed by columns to fill | `q`, in the shape of the argument; `r` in the upper triangle of a matrix |
//! | `eigh` | `a`, whose upper triangle is read | the eigenvectors; the eigenvalues in increasing order; info |
//! | `svd` | `a` with at least as many rows as columns | `u`; the singular values in decreasing order; `v^H`; info |
//!
//! Info is an `s32` for each matrix, which is 0 unless the routine failed for the matrix.

use std::ffi::{c_int, c_schar, c_void};

use super::driver::Stream;
use super::scratch::Scratch;
use super::solver::{Numbers, Solver, Status, UPPER, WITH_VECTORS, check};
use crate::ffi::{RawBuffer, attributes, buffers};
use crate::host::HostAttribute;
use crate::sys::XLA_FFI_CallFrame;

/// Runs the factorization of a call in its stream.
///
/// # Safety
/// `frame` is a call frame of the execute stage on the device of `stream`. Its buffers are memory of
/// the device, and all other uses of them are ordered by the stream.
pub(crate) unsafe fn factorize(frame: &XLA_FFI_CallFrame, stream: &Stream) -> Result<(), String> {
    // SAFETY: the caller guarantees the requirements in `# Safety` above.
    let (args, results, attributes) =
        unsafe { (buffers(&frame.args)?, buffers(&frame.rets)?, attributes(&frame.attrs)) };
    let named = |(name, value): &(&str, HostAttribute<'_>)| match value {
        HostAttribute::Str(routine) if *name == "routine" => Some((*routine).to_owned()),
        _ => None,
    };
    let routine = attributes.iter().find_map(named).ok_or("the call names no routine")?;
    let [a] = &args[..] else {
        return Err(format!("{routine} has one argument, not {}", args.len()));
    };
    let a = Matrices::of(a)?;
    if a.count == 0 || a.rows == 0 || a.columns == 0 {
        return Ok(());
    }
    let numbers = Numbers::of(args[0].dtype)?;
    let call = Call { frame, stream, solver: Solver::of(stream)?, numbers, a };
    // SAFETY: the caller guarantees the requirements in `# Safety` above. The methods
    // compare the shapes of the results with the shape of the argument before they use the memory.
    unsafe {
        match (routine.as_str(), &results[..]) {
            ("cholesky", [factor, info]) => call.cholesky(factor, info),
            ("lu", [packed, order]) => call.lu(packed, order),
            ("qr", [q, r]) => call.qr(q, r),
            ("eigh", [vectors, values, info]) => call.eigh(vectors, values, info),
            ("svd", [u, s, vh, info]) => call.svd(u, s, vh, info),
            _ => Err(format!("{routine}: must be a factorization with {} results", results.len())),
        }
    }
}

/// A batch of matrices by columns in the memory of the device.
#[derive(Clone, Copy)]
struct Matrices {
    data: *mut u8,
    count: usize,
    columns: usize,
    rows: usize,
    /// Bytes of a matrix.
    bytes: usize,
}

impl Matrices {
    fn of(buffer: &RawBuffer) -> Result<Matrices, String> {
        let [count, columns, rows] = buffer.shape[..] else {
            return Err(format!(
                "matrices have shape [batch, columns, rows], not {}",
                buffer.shape
            ));
        };
        // The interface of the library counts rows and columns in 32 bits.
        if i32::try_from(columns.max(rows)).is_err() || i32::try_from(count).is_err() {
            return Err(format!("matrices of shape {} are too large for cuSOLVER", buffer.shape));
        }
        let bytes = columns * rows * buffer.dtype.size();
        Ok(Matrices { data: buffer.data, count, columns, rows, bytes })
    }

    /// The address of a matrix.
    fn at(&self, index: usize) -> *mut c_void {
        self.data.wrapping_add(index * self.bytes).cast()
    }

    /// The columns of memory of one matrix are this number of elements apart.
    fn apart(&self) -> i64 {
        self.rows as i64
    }
}

/// The workspace of a routine: device memory, then host memory, with their sizes.
type Workspace = (*mut c_void, usize, *mut c_void, usize);

/// A call of a factorization.
struct Call<'a> {
    frame: &'a XLA_FFI_CallFrame,
    stream: &'a Stream,
    solver: Solver,
    numbers: Numbers,
    a: Matrices,
}

/// The methods are unsafe for one reason: the results must be buffers of the frame. The arguments of
/// the library's functions are in the order of its header, which `rustfmt` would spread over lines.
impl Call<'_> {
    #[rustfmt::skip]
    unsafe fn cholesky(&self, factor: &RawBuffer, info: &RawBuffer) -> Result<(), String> {
        let (numbers, (handle, parameters)) = (self.numbers, self.solver.handles());
        let (kind, library) = (numbers.kind, self.solver.library);
        let f = &library.functions;
        // SAFETY: `copied` checks that the result has the shape of the argument. Each call has the
        // address of one matrix, and the workspace that the library asks for.
        unsafe {
            let x = self.copy_argument(factor)?;
            let info = self.info(info)?;
            let n = x.rows as i64;
            if x.count > 1 {
                let addresses: Vec<u8> =
                    (0..x.count).flat_map(|index| (x.at(index) as u64).to_ne_bytes()).collect();
                let list = Scratch::new(self.frame, addresses.len())?;
                self.stream.write(&addresses, list.data().cast())?;
                let run = library.typed.potrf_batched[numbers.letter];
                let (n, count) = (x.rows as c_int, x.count as c_int);
                let status = run(handle, UPPER, n, list.data(), n, info, count);
                return check("compute Cholesky factors", status);
            }
            let sizes = |device, host| {
                (f.potrf_sizes)(handle, parameters, UPPER, n, kind, x.at(0), n, kind, device, host)
            };
            self.each("compute a Cholesky factor", sizes, |_, (device, size, host, length)| {
                (f.potrf)(
                    handle, parameters, UPPER, n, kind, x.at(0), n, kind,
                    device, size, host, length, info,
                )
            })
        }
    }

    #[rustfmt::skip]
    unsafe fn lu(&self, packed: &RawBuffer, order: &RawBuffer) -> Result<(), String> {
        let (kind, (handle, parameters)) = (self.numbers.kind, self.solver.handles());
        let f = &self.solver.library.functions;
        // SAFETY: as for `cholesky`. The exchanges are one number for each row of each matrix.
        unsafe {
            let x = self.copy_argument(packed)?;
            let (n, apart) = (x.rows as i64, x.apart());
            let exchanges = Scratch::new(self.frame, x.count * x.rows * size_of::<i64>())?;
            let exchanged =
                |index: usize| exchanges.data().cast::<i64>().wrapping_add(index * x.rows);
            let info = Scratch::new(self.frame, x.count * size_of::<c_int>())?;
            let info_of = |index: usize| info.data().cast::<c_int>().wrapping_add(index);
            let sizes = |device, host| {
                (f.getrf_sizes)(handle, parameters, n, n, kind, x.at(0), apart, kind, device, host)
            };
            self.each("compute LU factors", sizes, |index, (device, size, host, length)| {
                (f.getrf)(
                    handle, parameters, n, n, kind, x.at(index), apart, exchanged(index), kind,
                    device, size, host, length, info_of(index),
                )
            })?;
            let mut bytes = vec![0; x.count * x.rows * size_of::<i64>()];
            self.stream.read(exchanges.data().cast(), &mut bytes)?;
            let orders = orders(&bytes, x.rows);
            if order.len != orders.len() {
                return Err(format!("the order of rows has shape {}", order.shape));
            }
            self.stream.write(&orders, order.data)
        }
    }

    #[rustfmt::skip]
    unsafe fn qr(&self, q: &RawBuffer, r: &RawBuffer) -> Result<(), String> {
        let (numbers, (handle, parameters)) = (self.numbers, self.solver.handles());
        let (kind, library) = (numbers.kind, self.solver.library);
        let f = &library.functions;
        // SAFETY: as for `cholesky`. The first columns of `x` are copied to `r` before they are
        // overwritten; the scales of reflectors are one number for each of them.
        unsafe {
            let x = self.copy_argument(q)?;
            let r = Matrices::of(r)?;
            if r.count != x.count || r.rows != x.rows || r.columns > x.columns {
                return Err("the triangle of qr does not have the rows of the matrix".to_owned());
            }
            let (rows, columns, apart) = (x.rows as i64, r.columns as i64, x.apart());
            let reflectors = r.rows.min(r.columns);
            let scales = Scratch::new(self.frame, reflectors * numbers.size)?;
            let tau = scales.data();
            let info = Scratch::new(self.frame, size_of::<c_int>())?;
            let info = info.data().cast::<c_int>();
            let sizes = |device, host| {
                (f.geqrf_sizes)(
                    handle, parameters, rows, columns, kind, x.at(0), apart, kind, tau, kind,
                    device, host,
                )
            };
            let (m, wanted) = (x.rows as c_int, x.columns.min(x.rows) as c_int);
            let k = reflectors as c_int;
            let mut elements = 0;
            let size = library.typed.orgqr_size[numbers.letter];
            let asked = size(handle, m, wanted, k, x.at(0), m, tau, &raw mut elements);
            check("size the workspace of QR factors", asked)?;
            let work = Scratch::new(self.frame, elements as usize * numbers.size)?;
            let generate = library.typed.orgqr[numbers.letter];
            self.each_with("compute QR factors", sizes, |index, (device, size, host, length)| {
                let packed = (f.geqrf)(
                    handle, parameters, rows, columns, kind, x.at(index), apart, kind, tau, kind,
                    device, size, host, length, info,
                );
                check("compute QR factors", packed)?;
                self.stream.copy(x.at(index).cast(), r.at(index).cast(), r.bytes)?;
                let work = work.data();
                let made = generate(handle, m, wanted, k, x.at(index), m, tau, work, elements, info);
                check("compute the orthonormal QR factor", made)
            })
        }
    }

    #[rustfmt::skip]
    unsafe fn eigh(
        &self,
        vectors: &RawBuffer,
        values: &RawBuffer,
        info: &RawBuffer,
    ) -> Result<(), String> {
        let Numbers { kind, real, .. } = self.numbers;
        let (library, (handle, parameters)) = (self.solver.library, self.solver.handles());
        let (f, jobs) = (&library.functions, WITH_VECTORS);
        // SAFETY: as for `cholesky`. `vector` checks that there is a value for each row.
        unsafe {
            let x = self.copy_argument(vectors)?;
            let info = self.info(info)?;
            let (n, w) = (x.rows as i64, self.vector(values, x.rows)?);
            if let Some((sizes, run)) = library.syev_batched.filter(|_| x.count > 1) {
                let (a, w, count) = (x.at(0), w(0), x.count as i64);
                let sizes = |device, host| {
                    sizes(
                        handle, parameters, jobs, UPPER, n, kind, a, n, real, w, kind,
                        device, host, count,
                    )
                };
                let what = "compute eigenvalues";
                return self.with_workspace(what, sizes, |(device, size, host, length)| {
                    check(what, run(
                        handle, parameters, jobs, UPPER, n, kind, a, n, real, w, kind,
                        device, size, host, length, info, count,
                    ))
                });
            }
            let sizes = |device, host| {
                (f.syevd_sizes)(
                    handle, parameters, jobs, UPPER, n, kind, x.at(0), n, real, w(0), kind,
                    device, host,
                )
            };
            self.each("compute eigenvalues", sizes, |index, (device, size, host, length)| {
                (f.syevd)(
                    handle, parameters, jobs, UPPER, n, kind, x.at(index), n, real, w(index), kind,
                    device, size, host, length, info.wrapping_add(index),
                )
            })
        }
    }

    #[rustfmt::skip]
    unsafe fn svd(
        &self,
        u: &RawBuffer,
        s: &RawBuffer,
        vh: &RawBuffer,
        info: &RawBuffer,
    ) -> Result<(), String> {
        let Numbers { kind, real, .. } = self.numbers;
        let (library, (handle, parameters)) = (self.solver.library, self.solver.handles());
        let f = &library.functions;
        // SAFETY: as for `cholesky`. The routine overwrites the copy of the argument.
        unsafe {
            let copy = Scratch::new(self.frame, self.a.count * self.a.bytes)?;
            let x = Matrices { data: copy.data().cast(), ..self.a };
            self.stream.copy(self.a.data, x.data, x.count * x.bytes)?;
            let (u, vh, info) = (Matrices::of(u)?, Matrices::of(vh)?, self.info(info)?);
            let s = self.vector(s, x.columns)?;
            let fits = u.count == x.count && vh.count == x.count && u.rows == x.rows;
            let is_square = vh.rows == x.columns && vh.columns == x.columns;
            let (few, many) = (x.columns, x.rows);
            if !fits || !is_square || ![few, many].contains(&u.columns) || few > many {
                return Err("the factors of svd do not have the shapes of the matrix".to_owned());
            }
            let (m, n) = (x.rows as i64, x.columns as i64);
            let jobs = if u.columns > few { b'A' } else { b'S' } as c_schar;
            let sizes = |device, host| {
                (f.gesvd_sizes)(
                    handle, parameters, jobs, jobs, m, n, kind, x.at(0), m, real, s(0),
                    kind, u.at(0), m, kind, vh.at(0), n, kind, device, host,
                )
            };
            self.each("compute singular values", sizes, |i, (device, size, host, length)| {
                (f.gesvd)(
                    handle, parameters, jobs, jobs, m, n, kind, x.at(i), m, real, s(i),
                    kind, u.at(i), m, kind, vh.at(i), n, kind,
                    device, size, host, length, info.wrapping_add(i),
                )
            })
        }
    }

    /// Copies the argument to a result, which routines overwrite.
    unsafe fn copy_argument(&self, result: &RawBuffer) -> Result<Matrices, String> {
        let to = Matrices::of(result)?;
        if (to.count, to.columns, to.bytes) != (self.a.count, self.a.columns, self.a.bytes) {
            return Err(format!("the factors have shape {}, the matrices another", result.shape));
        }
        // SAFETY: both have the same size, and the caller guarantees that they are buffers of the
        // frame, which do not overlap.
        unsafe { self.stream.copy(self.a.data, to.data, to.count * to.bytes)? };
        Ok(to)
    }

    /// The address of the results that tell failures.
    fn info(&self, info: &RawBuffer) -> Result<*mut c_int, String> {
        if info.len == self.a.count * size_of::<c_int>() {
            Ok(info.data.cast())
        } else {
            Err(format!("info has shape {} for {} matrices", info.shape, self.a.count))
        }
    }

    /// The addresses of a vector of real numbers for each matrix.
    fn vector(
        &self,
        vectors: &RawBuffer,
        length: usize,
    ) -> Result<impl Fn(usize) -> *mut c_void + use<>, String> {
        let bytes = length * vectors.dtype.size();
        if vectors.len != self.a.count * bytes {
            return Err(format!("{length} values do not have shape {}", vectors.shape));
        }
        let data = vectors.data;
        Ok(move |index| data.wrapping_add(index * bytes).cast())
    }

    /// Calls a function with a workspace of the size that a routine asks for.
    unsafe fn with_workspace(
        &self,
        what: &str,
        sizes: impl FnOnce(*mut usize, *mut usize) -> Status,
        run: impl FnOnce(Workspace) -> Result<(), String>,
    ) -> Result<(), String> {
        let (mut size, mut length) = (0, 0);
        check(what, sizes(&raw mut size, &raw mut length))?;
        // SAFETY: the frame belongs to this call.
        let device = unsafe { Scratch::new(self.frame, size)? };
        let mut host = vec![0u8; length];
        run((device.data(), size, host.as_mut_ptr().cast(), length))
    }

    /// Runs a routine for each matrix, with one workspace of the size that it asks for.
    unsafe fn each(
        &self,
        what: &str,
        sizes: impl FnOnce(*mut usize, *mut usize) -> Status,
        run: impl Fn(usize, Workspace) -> Status,
    ) -> Result<(), String> {
        // SAFETY: the caller guarantees the requirements of `each_with`.
        unsafe { self.each_with(what, sizes, |index, work| check(what, run(index, work))) }
    }

    /// As [`each`](Call::each), for routines of several steps.
    unsafe fn each_with(
        &self,
        what: &str,
        sizes: impl FnOnce(*mut usize, *mut usize) -> Status,
        run: impl Fn(usize, Workspace) -> Result<(), String>,
    ) -> Result<(), String> {
        let each = |work| (0..self.a.count).try_for_each(|index| run(index, work));
        // SAFETY: the caller guarantees the requirements of `with_workspace`.
        unsafe { self.with_workspace(what, sizes, each) }
    }
}

/// Returns the order of the rows of each matrix, as bytes of `s32`, after exchanges as LAPACK numbers
/// them: row `i` is exchanged with row `exchanges[i]`, counted from 1.
fn orders(exchanges: &[u8], rows: usize) -> Vec<u8> {
    let (numbers, _) = exchanges.as_chunks::<8>();
    let mut bytes = Vec::with_capacity(numbers.len() * size_of::<i32>());
    for exchanges in numbers.chunks(rows) {
        let mut order: Vec<i32> = (0..).take(rows).collect();
        for (row, other) in exchanges.iter().enumerate() {
            let other = usize::try_from(i64::from_ne_bytes(*other)).unwrap_or_default();
            // A matrix with NaN has no largest element, and no rule for its exchanges.
            if (1..=rows).contains(&other) {
                order.swap(row, other - 1);
            }
        }
        bytes.extend(order.iter().flat_map(|row| row.to_ne_bytes()));
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::orders;

    #[test]
    fn pivots_are_converted_to_permutations() {
        let exchanges = [3_i64, 3, 3, 1, 2, 3, 0, 9, -1];
        let bytes: Vec<u8> = exchanges.iter().flat_map(|number| number.to_ne_bytes()).collect();
        let expected = [2_i32, 0, 1, 0, 1, 2, 0, 1, 2];
        let expected: Vec<u8> = expected.iter().flat_map(|row| row.to_ne_bytes()).collect();
        assert_eq!(orders(&bytes, 3), expected);
    }
}
