//! The places of a loaded library where addresses of functions of other libraries are written.
//!
//! The dynamic linker fills them in from tables of the library, which stay in memory: the System V
//! ABI, chapter 5, <https://refspecs.linuxfoundation.org/elf/gabi4+/ch5.dynamic.html>. Those that the
//! linker has made read-only are made writable for as long as it takes.

use std::ffi::{CStr, OsStr, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A function of another library, and what is to be called in its place.
pub(super) struct Redirect {
    pub(super) name: &'static CStr,
    pub(super) function: usize,
}

/// Leads calls that a library makes elsewhere: all of them, or none if it does not call the first
/// function that returns memory, none that takes any, or if the places cannot be written to.
pub(super) fn redirect(library: &Path, returning: &[Redirect], taking: &[Redirect]) {
    let Some(object) = Object::find(library) else { return };
    let imports = object.imports();
    let slots = |redirects: &[Redirect]| -> Vec<(Slot, usize)> {
        let slots = |redirect: &Redirect| {
            let (name, function) = (redirect.name, redirect.function);
            imports
                .iter()
                .filter(move |import| import.0 == name)
                .map(move |&(_, slot)| (slot, function))
        };
        redirects.iter().flat_map(slots).collect()
    };
    let (first, taken) = (slots(&returning[..1]), slots(taking));
    if first.is_empty() || taken.is_empty() {
        return;
    }
    let all: Vec<_> = first.into_iter().chain(slots(&returning[1..])).chain(taken).collect();
    if all.iter().all(|(slot, _)| object.open(slot)) {
        for (slot, function) in &all {
            slot.write(*function);
        }
    }
    all.iter().for_each(|(slot, _)| object.close(slot));
}

/// Where the address of a function is written.
#[derive(Clone, Copy)]
struct Slot(*mut usize);

impl Slot {
    fn write(&self, function: usize) {
        // SAFETY: the place is aligned, writable, and lives as long as the library, which is never
        // unloaded. Other threads may call the function meanwhile, and read the one or the other.
        unsafe { AtomicUsize::from_ptr(self.0) }.store(function, Ordering::SeqCst);
    }
}

/// A library in memory.
struct Object {
    /// What is to be added to its own addresses.
    base: usize,
    dynamic: *const Entry,
    /// What the linker has made read-only, as a range of addresses.
    protected: (usize, usize),
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Entry {
    tag: i64,
    value: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Relocation {
    offset: usize,
    info: u64,
    addend: i64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: usize,
    size: usize,
}

// Tags of the dynamic section.
const PLT_SIZE: i64 = 2;
const STRINGS: i64 = 5;
const SYMBOLS: i64 = 6;
const RELOCATIONS: i64 = 7;
const RELOCATIONS_SIZE: i64 = 8;
const PLT_RELOCATIONS: i64 = 23;

/// Relocations that write the address of a symbol: for a call, for a pointer to a function, and for
/// one in a table.
#[cfg(target_arch = "x86_64")]
const KINDS: [u32; 3] = [7, 6, 1];
#[cfg(target_arch = "aarch64")]
const KINDS: [u32; 3] = [1026, 1025, 257];

impl Object {
    /// A library that is loaded, by the path that the file system resolves its name to.
    fn find(library: &Path) -> Option<Self> {
        let mut search = (library, None);
        // SAFETY: `visit` takes what it is called with for what it is given here, which lives until
        // the call returns.
        unsafe { libc::dl_iterate_phdr(Some(visit), ptr::from_mut(&mut search).cast()) };
        search.1
    }

    /// The address in an entry of the dynamic section; the linker has added the base to it.
    fn entry(&self, tag: i64) -> Option<usize> {
        let mut entry = self.dynamic;
        loop {
            // SAFETY: the section ends with an entry whose tag is zero.
            let Entry { tag: found, value } = unsafe { *entry };
            match found {
                0 => return None,
                found if found == tag => return Some(value),
                // SAFETY: this was not the last one.
                _ => entry = unsafe { entry.add(1) },
            }
        }
    }

    /// The functions of other libraries, by name, with each place where the address of one is
    /// written.
    fn imports(&self) -> Vec<(&'static CStr, Slot)> {
        let tables = [(RELOCATIONS, RELOCATIONS_SIZE), (PLT_RELOCATIONS, PLT_SIZE)];
        let (Some(symbols), Some(strings)) = (self.entry(SYMBOLS), self.entry(STRINGS)) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for (table, size) in tables {
            let (Some(table), Some(size)) = (self.entry(table), self.entry(size)) else { continue };
            // SAFETY: the table has so many entries, and stays as long as the library, which is for
            // ever.
            let table = unsafe {
                let table = ptr::with_exposed_provenance::<Relocation>(table);
                std::slice::from_raw_parts(table, size / size_of::<Relocation>())
            };
            let named = |relocation: &&Relocation| {
                KINDS.contains(&(relocation.info as u32)) && relocation.addend == 0
            };
            for relocation in table.iter().filter(named) {
                // SAFETY: the tables have the symbols that relocations name, and the strings that
                // symbols name.
                let name = unsafe {
                    let symbol = ptr::with_exposed_provenance::<Symbol>(symbols);
                    let name = (*symbol.add((relocation.info >> 32) as usize)).name;
                    CStr::from_ptr(ptr::with_exposed_provenance(strings + name as usize))
                };
                let slot = ptr::with_exposed_provenance_mut(self.base + relocation.offset);
                found.push((name, Slot(slot)));
            }
        }
        found
    }

    /// Makes the page of a place writable; whether it is.
    fn open(&self, slot: &Slot) -> bool {
        !self.is_protected(slot) || protect(slot, libc::PROT_READ | libc::PROT_WRITE)
    }

    /// Makes it read-only again, if that is what the linker had made of it.
    fn close(&self, slot: &Slot) {
        if self.is_protected(slot) {
            protect(slot, libc::PROT_READ);
        }
    }

    fn is_protected(&self, slot: &Slot) -> bool {
        let (first, end) = self.protected;
        (first..end).contains(&slot.0.addr())
    }
}

/// The bytes of a page.
fn page() -> usize {
    // SAFETY: it only asks for a number.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(page).unwrap_or(4096)
}

fn protect(slot: &Slot, protection: c_int) -> bool {
    let within = slot.0.addr() % page();
    // SAFETY: the page is one of the library's data, none of which is executed; it stays readable.
    unsafe { libc::mprotect(slot.0.wrapping_byte_sub(within).cast(), page(), protection) == 0 }
}

/// Keeps the library with the path that is looked for.
unsafe extern "C" fn visit(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    search: *mut c_void,
) -> c_int {
    // SAFETY: the linker gives a library that stays loaded meanwhile; `Object::find` the rest.
    let (info, (path, found)) = unsafe { (&*info, &mut *search.cast::<(&Path, Option<Object>)>()) };
    if info.dlpi_name.is_null() {
        return 0;
    }
    // SAFETY: the name is a string of C.
    let name = unsafe { CStr::from_ptr(info.dlpi_name) };
    // It has the name by which it was loaded first, which may be one of several.
    let name = Path::new(OsStr::from_bytes(name.to_bytes()));
    if name.file_name() != path.file_name() || name.canonicalize().ok().as_deref() != Some(*path) {
        return 0;
    }
    // SAFETY: a library has so many headers.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let base = info.dlpi_addr as usize;
    let header = |kind| headers.iter().find(|header| header.p_type == kind);
    if let Some(dynamic) = header(libc::PT_DYNAMIC) {
        let dynamic = ptr::with_exposed_provenance(base + dynamic.p_vaddr as usize);
        let protected = header(libc::PT_GNU_RELRO).map_or((0, 0), |header| {
            let first = base + header.p_vaddr as usize;
            // A page that it shares with other data stays writable.
            let whole = |address: usize| address - address % page();
            (whole(first), whole(first + header.p_memsz as usize))
        });
        *found = Some(Object { base, dynamic, protected });
    }
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A library that every program of Rust has loaded.
    fn library() -> Object {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let path = maps.split_whitespace().find(|word| word.contains("libgcc_s")).unwrap();
        Object::find(Path::new(path)).unwrap()
    }

    #[test]
    fn a_library_that_is_not_loaded_is_not_found() {
        assert!(Object::find(Path::new("/no/such/library.so")).is_none());
    }

    #[test]
    fn the_places_of_a_function_hold_its_address() {
        let object = library();
        let imports = object.imports();
        let slots: Vec<Slot> =
            imports.iter().filter(|(name, _)| *name == c"free").map(|&(_, slot)| slot).collect();
        assert!(!slots.is_empty() && imports.iter().all(|(name, _)| *name != c"no_such_function"));
        for slot in slots {
            // SAFETY: the place is one of a library that stays loaded.
            let known = unsafe { AtomicUsize::from_ptr(slot.0) }.load(Ordering::SeqCst);
            assert!(known != 0);
            // Writing what is there changes nothing, and needs that it can be written to.
            assert!(object.open(&slot));
            slot.write(known);
            object.close(&slot);
        }
    }
}
