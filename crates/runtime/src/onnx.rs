//! ONNX models: files with their weights, and the evaluator that folds values during the trace.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use nxla_expr::{ExprId, Graph};
use nxla_import::onnx::{External, Model, NoExternal};

use crate::error::{Error, Result};

/// Files beside a model. The last file stays open, because a model reads many parts of it.
struct Folder {
    path: PathBuf,
    last: Option<(String, File)>,
}

impl Folder {
    fn file(&mut self, location: &str) -> std::io::Result<&mut File> {
        if self.last.as_ref().is_none_or(|(name, _)| name != location) {
            let path = self.path.join(location);
            // Opening a pipe waits for a writer, so the kind is checked before.
            if !path.metadata()?.is_file() {
                return Err(std::io::Error::other("must be a regular file"));
            }
            self.last = Some((location.to_owned(), File::open(path)?));
        }
        Ok(&mut self.last.as_mut().expect("a file was opened").1)
    }
}

impl External for Folder {
    fn size(&mut self, location: &str) -> Result<u64, String> {
        let metadata = self.file(location).and_then(|file| file.metadata());
        Ok(metadata.map_err(|error| format!("{location:?}: {error}"))?.len())
    }

    fn read(&mut self, location: &str, offset: u64, bytes: &mut [u8]) -> Result<(), String> {
        let read = |file: &mut File| {
            file.seek(SeekFrom::Start(offset))?;
            file.read_exact(bytes)
        };
        self.file(location).and_then(read).map_err(|error| format!("{location:?}: {error}"))
    }
}

/// Reads an ONNX model. Files with weights are searched in its folder.
///
/// # Errors
/// Returns an error if a file cannot be read or the model cannot be imported.
pub fn load_onnx(path: &Path) -> Result<Model> {
    let bytes = std::fs::read(path).map_err(|error| Error::Format {
        format: "ONNX".into(),
        why: format!("{}: {error}", path.display()),
    })?;
    let folder = path.parent().map_or_else(PathBuf::new, Path::to_path_buf);
    Ok(Model::read(&bytes, &mut Folder { path: folder, last: None })?)
}

/// Reads an ONNX model whose weights are all in these bytes.
///
/// # Errors
/// Returns an error if the model cannot be imported.
pub fn read_onnx(bytes: &[u8]) -> Result<Model> {
    Ok(Model::read(bytes, &mut NoExternal)?)
}

/// Adds the nodes of a model to a graph; see [`Model::build`].
///
/// # Errors
/// Returns the errors of [`Model::build`].
pub fn build_onnx(
    model: &Model,
    graph: &mut Graph,
    weights: &[ExprId],
    inputs: &[ExprId],
) -> Result<Vec<ExprId>> {
    let evaluate = |program: &nxla_expr::Program| {
        nxla_eval::evaluate(program, Vec::new()).map_err(|error| error.to_string())
    };
    Ok(model.build(graph, weights, inputs, &evaluate)?)
}
