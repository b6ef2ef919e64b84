//! Loading plugins and creating clients, and the messages of failures.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[macro_use]
mod common;

use std::path::{Path, PathBuf};

use common::{client, plugin};
use nxla_pjrt::{Client, Error, NamedValue, Plugin};

/// A shared library that every Linux process has mapped, and that is not a plugin.
fn some_shared_library() -> PathBuf {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let paths = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    paths.map(PathBuf::from).find(|path| path.to_string_lossy().contains("/libc.so")).unwrap()
}

#[test]
fn a_missing_file_is_named() {
    let path = Path::new("/nowhere/plugin.so");
    let error = Plugin::load(path).unwrap_err();
    assert_eq!(error, Error::PluginMissing { path: path.to_owned() });
    let text = error.to_string();
    assert!(text.contains("/nowhere/plugin.so does not exist"), "{text}");
    assert!(text.contains("pip install fastatomstruct-xla-cpu"), "{text}");
}

#[test]
fn text_files_are_not_libraries() {
    let path = std::env::temp_dir().join(format!("nxla-not-a-library-{}", std::process::id()));
    std::fs::write(&path, "not a library").unwrap();
    let error = Plugin::load(&path).unwrap_err();
    std::fs::remove_file(&path).unwrap();
    let Error::NotALibrary { path: named, reason } = error else { panic!("{error}") };
    assert_eq!(named.file_name(), path.file_name());
    assert!(!reason.is_empty());
}

#[cfg(target_os = "linux")]
#[test]
fn other_libraries_are_not_plugins() {
    let path = some_shared_library();
    let error = Plugin::load(&path).unwrap_err();
    assert!(matches!(error, Error::NotAPlugin { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("libc.so") && text.contains("GetPjrtApi"), "{text}");
}

#[test]
fn plugins_are_loaded_once_for_all_paths() {
    require_plugin!();
    let first = plugin();
    let parent = first.path().parent().unwrap();
    let other_path = parent.join("..").join(parent.file_name().unwrap());
    let reloaded = Plugin::load(other_path.join(first.path().file_name().unwrap())).unwrap();
    assert_eq!(first, reloaded);
}

#[test]
fn plugins_report_their_versions() {
    require_plugin!();
    let plugin = plugin();
    let (major, minor) = plugin.api_version();
    assert_eq!(major, 0);
    assert!(minor >= 57, "{minor}");
    let version = plugin.attribute("stablehlo_current_version");
    let Some(NamedValue::Int64List(numbers)) = version else { panic!("{version:?}") };
    assert_eq!(numbers.len(), 3);
    assert_eq!(plugin.attribute("no such attribute"), None);
}

#[test]
fn cpu_clients_have_one_device_by_default() {
    require_plugin!();
    let client = client();
    assert_eq!(client.platform_name(), "cpu");
    assert!(!client.platform_version().is_empty());
    assert!(client.calls_host());
    assert_eq!(client.devices().len(), 1);
    let device = &client.devices()[0];
    assert_eq!((device.index(), device.id(), device.kind()), (0, 0, "cpu"));
    assert!(!device.debug_string().is_empty());
    assert!(client.fingerprint().starts_with("cpu "), "{}", client.fingerprint());

    let three = Client::new(&plugin(), &[("cpu_device_count", NamedValue::Int64(3))]).unwrap();
    assert_eq!(three.devices().len(), 3);
    assert_eq!(three.fingerprint(), client.fingerprint());
    assert_ne!(three, client);
}

#[test]
fn options_that_crash_the_plugin_are_rejected() {
    require_plugin!();
    for value in [
        NamedValue::from("two"),
        NamedValue::Int64(0),
        NamedValue::Int64(-1),
        NamedValue::Bool(true),
    ] {
        let error = Client::new(&plugin(), &[("cpu_device_count", value)]).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("cpu_device_count: must be an integer of at least 1"), "{text}");
    }
}

/// The tests install the faulty package in addition to the default one. An environment variable of
/// the process can allow the faulty package; the Python tests set the variable.
#[test]
#[allow(clippy::print_stderr, reason = "tells that there was nothing to test")]
fn plugins_with_known_faults_are_rejected() {
    require_plugin!();
    let packages = plugin().path().ancestors().find(|path| path.ends_with("site-packages"));
    let path = packages.map(|path| path.join("xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so"));
    let Some(path) = path.filter(|path| path.is_file()) else {
        eprintln!("not tested: the package xla-cpu-pjrt 0.0.1 is not installed");
        return;
    };
    let error = Client::new(&Plugin::load(&path).unwrap(), &[]).unwrap_err();
    assert!(matches!(error, Error::KnownFault { .. }), "{error}");
    let text = error.to_string();
    for part in [
        "xla_cpu_pjrt.so (API 0.81) is rejected",
        "writes outside of its buffers",
        "pip install fastatomstruct-xla-cpu",
        "NXLA_PJRT_ALLOW_FAULTS=1",
    ] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
}
