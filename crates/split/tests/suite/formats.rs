//! Golden files of all format versions: supported versions are read, and other versions are
//! rejected.

use std::fs;
use std::path::Path;

use crate::common::readers;
use nxla_expr::serialize;
use nxla_split::{SplitError, Stage, StageGraph};

/// A golden file.
struct File {
    /// The versions in its name: of the stages, and of the contained programs.
    versions: Vec<u32>,
    bytes: Vec<u8>,
    /// The expected contents of files of these versions, as a string.
    facts: String,
}

/// Returns the files with a name prefix.
fn files(kind: &str) -> Vec<File> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/formats");
    let entries = fs::read_dir(&folder).expect("the golden files exist");
    let names: Vec<String> = entries
        .map(|entry| entry.expect("the folder can be listed").file_name())
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    let read = |name: &str| fs::read(folder.join(name)).expect("a golden file can be read");
    let mut found = Vec::new();
    for name in &names {
        let Some(middle) = name.strip_prefix(kind).and_then(|rest| rest.strip_suffix(".bin"))
        else {
            continue;
        };
        let versions: Vec<u32> = middle.split('-').filter_map(|part| part.parse().ok()).collect();
        let end = format!("-of-{}.json", versions.last().expect("the name has a version"));
        let facts = names.iter().filter(|name| name.ends_with(&end)).map(|name| read(name));
        let facts = facts.map(|text| String::from_utf8_lossy(&text).into_owned()).collect();
        found.push(File { versions, bytes: read(name), facts });
    }
    assert!(!found.is_empty(), "there are no files of {kind}");
    found
}

#[test]
fn golden_programs_are_accepted_by_version() {
    for File { versions, bytes, facts } in files("program-") {
        let read = serialize::from_bytes(&bytes);
        let version = versions[0];
        if version >= u32::from(serialize::OLDEST) {
            let program = read.expect("a file of this version is read");
            let is_present = version == u32::from(serialize::FORMAT);
            assert_eq!(serialize::to_bytes(&program) == bytes, is_present);
            assert!(facts.contains(&program.digest().to_string()));
        } else {
            let error = read.expect_err("another version is rejected").to_string();
            assert!(error.contains(&format!("has format {version}")), "{error}");
        }
    }
}

#[test]
fn golden_stages_are_accepted_by_version() {
    for File { versions, bytes, facts } in files("stage-") {
        match Stage::from_bytes(&bytes) {
            Ok(stage) => {
                assert_eq!(stage, Stage::from_bytes(&stage.to_bytes()).expect("it is written"));
                assert!(facts.contains(&stage.digest().to_string()), "{versions:?}");
            }
            Err(error) => assert!(is_version_error(&error), "{versions:?}: {error}"),
        }
    }
}

#[test]
fn golden_stage_graphs_are_accepted_by_version() {
    let mut read = 0;
    for File { versions, bytes, facts } in files("stages-") {
        match StageGraph::from_bytes(&bytes) {
            Ok(graph) => {
                // The file that an independent Python script wrote equals the bytes that nxla
                // writes.
                read += usize::from(graph.to_bytes() == bytes);
                assert!(graph.stages().iter().all(|s| facts.contains(&s.digest().to_string())));
                graph.verify().expect("the stages are consistent");
            }
            Err(error) => assert!(is_version_error(&error), "{versions:?}: {error}"),
        }
    }
    assert_eq!(read, 1, "there is one file of the present version");
}

fn is_version_error(error: &SplitError) -> bool {
    matches!(error, SplitError::Format { .. }) || error.to_string().contains("has format")
}

#[test]
fn corrupt_files_are_read_or_rejected() {
    let readers: [(&str, fn(&[u8])); 3] =
        [("program-", readers::program), ("stage-", readers::stage), ("stages-", readers::stages)];
    for (kind, read) in readers {
        for File { bytes, .. } in files(kind) {
            read(&bytes);
            for place in 0..bytes.len() {
                read(&bytes[..place]);
                for change in [1, 0x80, 0xff] {
                    let mut damaged = bytes.clone();
                    damaged[place] ^= change;
                    read(&damaged);
                }
            }
        }
    }
}
