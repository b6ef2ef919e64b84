//! The search for a plugin without an explicit path.
//!
//! A Rust program cannot query Python for packages, so this module searches the folders in which `pip`
//! installs the CPU plugins. The Python package finds the same packages by Python's import system, and
//! passes an explicit path.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// The environment variable that names a plugin's file.
pub const PLUGIN_VARIABLE: &str = "NXLA_PJRT_PLUGIN";

/// The Python packages that bring a plugin for the CPU: the folder below `site-packages`, and the
/// file in it. The first is what `nxla[xla]` installs; the last has a [known
/// fault](crate::FAULTS_VARIABLE), and is found so that its refusal can say what to do.
///
/// `python/nxla/plugins.py` has the same table, which a test below compares.
const CPU_PACKAGES: &[(&str, &str)] = &[
    ("fastatomstruct_xla_cpu", "libpjrt_cpu.so"),
    ("lammps_jax_pjrt_cpu", "pjrt_c_api_cpu_plugin.so"),
    ("xla_plugins/xla_cpu_pjrt", "xla_cpu_pjrt.so"),
];

/// The folders of `site-packages` in which packages for other platforms put their plugins, such as
/// `jax_plugins/xla_cuda13/xla_cuda_plugin.so`.
const PLUGIN_FOLDERS: [&str; 2] = ["jax_plugins", "xla_plugins"];

/// The suffixes of shared libraries.
const LIBRARIES: [&str; 3] = ["so", "dylib", "dll"];

/// Finds a plugin: `explicit`, else the file that `NXLA_PJRT_PLUGIN` names, else the CPU plugin
/// of a Python environment (`$VIRTUAL_ENV`, `$CONDA_PREFIX`, a `.venv` in the current directory
/// or above it, or the user's own packages).
///
/// `explicit` and the variable contain a path, or the name of a platform: `cpu`, `cuda`, `rocm`. A
/// plugin for the platform is then searched in the same environments. A path that was given is not
/// replaced by another when it is wrong.
///
/// # Errors
/// Returns [`Error::PluginMissing`] if the given path has no file, or [`Error::NoPlugin`] or
/// [`Error::NoPluginFor`] with all searched locations.
///
/// ```no_run
/// # fn main() -> Result<(), nxla_pjrt::Error> {
/// let plugin = nxla_pjrt::Plugin::load(nxla_pjrt::discover(None)?)?;
/// # Ok(()) }
/// ```
pub fn discover(explicit: Option<&Path>) -> Result<PathBuf, Error> {
    let current = std::env::current_dir().unwrap_or_default();
    discover_in(explicit, |name| std::env::var_os(name), &current)
}

/// [`discover`] with the environment and the current directory given.
fn discover_in(
    explicit: Option<&Path>,
    variable: impl Fn(&str) -> Option<OsString>,
    current: &Path,
) -> Result<PathBuf, Error> {
    let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
    let given = explicit.map(Path::to_owned).or_else(|| variable(PLUGIN_VARIABLE).map(Into::into));
    let mut searched = match given {
        Some(_) => Vec::new(),
        None => vec![format!("${PLUGIN_VARIABLE} (not set)")],
    };
    let named = match given {
        Some(path) if path.is_file() => return Ok(path),
        Some(path) => match platform_name(&path) {
            Some(name) => Some(name.to_owned()),
            None => return Err(Error::PluginMissing { path }),
        },
        None => None,
    };
    let platform = named.as_deref().unwrap_or("cpu");
    let mut prefix = |name: &str| {
        let found = variable(name).map(PathBuf::from);
        if found.is_none() {
            searched.push(format!("${name} (not set)"));
        }
        found
    };
    let mut prefixes: Vec<PathBuf> = prefix("VIRTUAL_ENV").into_iter().collect();
    prefixes.extend(prefix("CONDA_PREFIX"));
    prefixes.extend(current.ancestors().map(|dir| dir.join(".venv")).filter(|dir| dir.is_dir()));
    // The packages of the user come last, because an environment is a more deliberate choice.
    prefixes.extend(prefix("HOME").map(|home| home.join(".local")));
    for prefix in prefixes {
        if let Some(path) = plugin_below(&prefix, platform) {
            return Ok(path);
        }
        let names: Vec<String> = match platform {
            "cpu" => CPU_PACKAGES.iter().map(|(folder, file)| format!("{folder}/{file}")).collect(),
            _ => PLUGIN_FOLDERS.iter().map(|folder| format!("{folder}/*{platform}*")).collect(),
        };
        let pattern = prefix.join("lib/python*/site-packages");
        searched.push(format!("{}/{{{}}}", pattern.display(), names.join(",")));
    }
    searched.push(format!(".venv in {} and above", current.display()));
    Err(match named {
        Some(platform) if platform != "cpu" => Error::NoPluginFor { platform, searched },
        Some(_) | None => Error::NoPlugin { searched },
    })
}

/// The name of a platform: a word, while the path of a library has a suffix.
fn platform_name(path: &Path) -> Option<&str> {
    let name = path.to_str()?;
    let is_word = name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_');
    (is_word && !name.is_empty()).then_some(name)
}

/// Returns the plugin for a platform in the Python environment at `prefix`. If several Python
/// versions have one, the newest version is used.
fn plugin_below(prefix: &Path, platform: &str) -> Option<PathBuf> {
    let pythons = sorted_entries(&prefix.join("lib"));
    let mut pythons = pythons.into_iter().rev().filter(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("python"))
    });
    pythons.find_map(|python| {
        let packages = python.join("site-packages");
        if platform != "cpu" {
            return plugin_for(&packages, platform);
        }
        let mut files = CPU_PACKAGES.iter().map(|(folder, file)| packages.join(folder).join(file));
        files.find(|file| file.is_file())
    })
}

/// The library of the newest package whose name contains the name of the platform.
fn plugin_for(packages: &Path, platform: &str) -> Option<PathBuf> {
    let folders = PLUGIN_FOLDERS.iter().flat_map(|folder| {
        let mut found = sorted_entries(&packages.join(folder));
        found.reverse();
        found
    });
    let named = |path: &Path| {
        path.file_name().is_some_and(|name| {
            name.to_string_lossy().to_lowercase().contains(&platform.to_lowercase())
        })
    };
    let is_library = |path: &PathBuf| {
        let suffix = path.extension().unwrap_or_default();
        LIBRARIES.iter().any(|library| suffix == *library)
    };
    folders.filter(|folder| named(folder)).find_map(|folder| {
        let libraries: Vec<PathBuf> =
            sorted_entries(&folder).into_iter().filter(is_library).collect();
        // Packages also contain libraries with kernels for the plugin.
        let plugin = libraries.iter().find(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.contains("pjrt") || name.contains("plugin")
        });
        plugin.or_else(|| libraries.first()).cloned()
    })
}

/// The entries of a directory, in order of name; none if it cannot be read.
fn sorted_entries(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::ScratchFolder;

    impl ScratchFolder {
        /// Creates a file that looks like an installed plugin of the default package below
        /// `prefix`.
        fn install(&self, prefix: &str) -> PathBuf {
            self.install_package(prefix, CPU_PACKAGES[0])
        }

        fn install_package(&self, prefix: &str, (folder, file): (&str, &str)) -> PathBuf {
            let dir = self.0.join(prefix).join("lib/python3.12/site-packages");
            let path = dir.join(folder).join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            path
        }
    }

    fn find(scratch: &ScratchFolder, variables: &[(&str, &str)]) -> Result<PathBuf, Error> {
        let lookup = |name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| scratch.0.join(value).into_os_string())
        };
        discover_in(None, lookup, &scratch.0.join("project/src"))
    }

    #[test]
    fn search_order_is_variable_environment_project_user() {
        let scratch = ScratchFolder::new("order");
        let user = scratch.install("home/.local");
        let everywhere = [("HOME", "home"), ("VIRTUAL_ENV", "env"), (PLUGIN_VARIABLE, "chosen.so")];
        assert_eq!(find(&scratch, &everywhere[..1]), Ok(user));
        let local = scratch.install("project/.venv");
        assert_eq!(find(&scratch, &everywhere[..1]), Ok(local));
        let active = scratch.install("env");
        assert_eq!(find(&scratch, &everywhere[..2]), Ok(active));
        let chosen = scratch.0.join("chosen.so");
        // If the variable is set to a wrong path, return an error instead of searching further.
        let missing = Error::PluginMissing { path: chosen.clone() };
        assert_eq!(find(&scratch, &everywhere), Err(missing));
        std::fs::write(&chosen, "").unwrap();
        assert_eq!(find(&scratch, &everywhere), Ok(chosen.clone()));
        let explicit = discover_in(Some(&chosen), |_| None, &scratch.0);
        assert_eq!(explicit, Ok(chosen));
    }

    #[test]
    fn plugins_of_other_platforms_are_found_by_name() {
        let scratch = ScratchFolder::new("platforms");
        let cpu = scratch.install("env");
        let old = ("jax_plugins/xla_cuda12", "xla_cuda_plugin.so");
        scratch.install_package("env", old);
        let new = ("jax_plugins/xla_cuda13", "xla_cuda_plugin.so");
        let cuda = scratch.install_package("env", new);
        scratch.install_package("env", ("jax_plugins/xla_cuda13", "_triton.so"));
        scratch.install_package("env", ("jax_plugins/xla_cuda13", "notes.txt"));
        let rocm = scratch.install_package("home/.local", ("xla_plugins/rocm", "pjrt_rocm.so"));
        let lookup = |name: &str| {
            let found = [("VIRTUAL_ENV", "env"), ("HOME", "home")];
            let found = found.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| scratch.0.join(value).into_os_string())
        };
        let named = |name: &str| discover_in(Some(Path::new(name)), lookup, &scratch.0);
        assert_eq!(named("cpu"), Ok(cpu));
        assert_eq!(named("cuda"), Ok(cuda.clone()));
        assert_eq!(named("CUDA"), Ok(cuda.clone()));
        assert_eq!(named("rocm"), Ok(rocm));
        let text = named("tpu").unwrap_err().to_string();
        assert!(text.starts_with("no PJRT plugin found for tpu"), "{text}");
        assert!(text.contains("env/lib/python*/site-packages/{jax_plugins/*tpu*,"), "{text}");
        let missing = Error::PluginMissing { path: "no/plugin".into() };
        assert_eq!(named("no/plugin"), Err(missing));
        let variable = |name: &str| match name {
            PLUGIN_VARIABLE => Some("cuda".into()),
            name => lookup(name),
        };
        assert_eq!(discover_in(None, variable, &scratch.0), Ok(cuda));
        let variable = |name: &str| match name {
            PLUGIN_VARIABLE => Some("tpu".into()),
            name => lookup(name),
        };
        let text = discover_in(None, variable, &scratch.0).unwrap_err().to_string();
        assert!(!text.contains("(not set), env/"), "{text}");
    }

    #[test]
    fn not_found_error_lists_paths_and_remedy() {
        let scratch = ScratchFolder::new("nothing");
        std::fs::create_dir_all(scratch.0.join("project/.venv")).unwrap();
        let text = find(&scratch, &[("VIRTUAL_ENV", "env")]).unwrap_err().to_string();
        for part in [
            "$NXLA_PJRT_PLUGIN (not set)",
            "$CONDA_PREFIX (not set)",
            "env/lib/python*/site-packages/{fastatomstruct_xla_cpu/libpjrt_cpu.so,",
            "project/.venv/lib/python*",
            "pip install \"nxla[xla]\"",
            "pip install fastatomstruct-xla-cpu",
        ] {
            assert!(text.contains(part), "{part} is not in: {text}");
        }
    }

    #[test]
    fn first_package_of_the_table_has_priority() {
        let scratch = ScratchFolder::new("packages");
        for &package in CPU_PACKAGES.iter().rev() {
            let path = scratch.install_package("env", package);
            assert_eq!(find(&scratch, &[("VIRTUAL_ENV", "env")]), Ok(path));
        }
    }

    #[test]
    fn python_package_table_is_equal() {
        let python = include_str!("../../../python/nxla/plugins.py");
        let table = CPU_PACKAGES.iter().map(|(folder, file)| {
            let module = folder.replace('/', ".");
            format!("    (\"{module}\", \"{file}\"),\n")
        });
        let table = format!("CPU_PACKAGES = (\n{})\n", table.collect::<String>());
        assert!(python.contains(&table), "python/nxla/plugins.py does not have\n{table}");
    }
}
