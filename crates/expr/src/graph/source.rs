//! The source line and the named scope of the user's program for each node.
//!
//! Lines are stored in a side table of the graph and are not part of a node's identity: if two
//! lines build the same node, the first line is stored. Finding a line can be slow (Python decodes
//! it from a compressed table), so a source can be resolved lazily.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use rustc_hash::FxHashMap;

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Line {
    /// The file name in the convention of the user's language.
    pub file: Arc<str>,
    /// The line number, starting at 1.
    pub line: u32,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.file.rsplit(['/', '\\']).next().unwrap_or(&self.file);
        write!(f, "{name}:{}", self.line)
    }
}

/// The end of an error message: the source line in parentheses, or nothing if it is unknown.
///
/// ```
/// use nxla_expr::{AtLine, Line};
///
/// let line = Line { file: "models/train.py".into(), line: 12 };
/// assert_eq!(format!("add: failed{}", AtLine(Some(&line))), "add: failed (train.py:12)");
/// assert_eq!(format!("add: failed{}", AtLine(None)), "add: failed");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct AtLine<'a>(pub Option<&'a Line>);

impl fmt::Display for AtLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |line| write!(f, " ({line})"))
    }
}

/// A source line that is resolved on demand.
pub trait Locate: Send + Sync {
    /// Returns the line, or `None` if it is not available any more.
    fn locate(&self) -> Option<Line>;
}

/// The source of a node.
#[derive(Clone, Default)]
pub enum Source {
    /// Unknown.
    #[default]
    Unknown,
    /// A known line.
    Line(Line),
    /// Resolved on demand.
    Lazy(Arc<dyn Locate>),
    /// A source inside a named scope of the user's program.
    Scoped(Arc<(Arc<str>, Source)>),
}

impl Source {
    /// Returns the line if it is available.
    pub fn line(&self) -> Option<Line> {
        match self {
            Source::Unknown => None,
            Source::Line(line) => Some(line.clone()),
            Source::Lazy(locate) => locate.locate(),
            Source::Scoped(scoped) => scoped.1.line(),
        }
    }

    /// Returns the source inside a named scope. Nested scopes are separated by slashes.
    ///
    /// ```
    /// use nxla_expr::Source;
    ///
    /// let source = Source::Unknown.in_scope("encoder/layer_0".into());
    /// assert_eq!(source.scope().as_deref(), Some("encoder/layer_0"));
    /// ```
    #[must_use]
    pub fn in_scope(self, scope: Arc<str>) -> Self {
        Source::Scoped(Arc::new((scope, self)))
    }

    /// Returns the named scope.
    pub fn scope(&self) -> Option<Arc<str>> {
        match self {
            Source::Scoped(scoped) => Some(scoped.0.clone()),
            Source::Unknown | Source::Line(_) | Source::Lazy(_) => None,
        }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line() {
            Some(line) => line.fmt(f),
            None => f.write_str("unknown"),
        }
    }
}

/// A source within one graph. The highest bit marks nodes of a derivative, so that the flag needs
/// no additional memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SourceId(u32);

/// The bit that marks nodes of a derivative.
const DERIVED: u32 = 1 << 31;

impl SourceId {
    /// Returns the same source for nodes that reverse-mode differentiation creates.
    #[must_use]
    pub fn mark_derived(self) -> Self {
        Self(self.0 | DERIVED)
    }

    /// Returns whether the source is for nodes of a derivative.
    pub fn is_derived(self) -> bool {
        self.0 & DERIVED != 0
    }

    /// Returns this source, marked as a derivative if `other` is.
    pub(crate) fn mark_derived_like(self, other: Self) -> Self {
        Self(self.0 | other.0 & DERIVED)
    }
}

/// The sources of one graph, and the source for new nodes.
#[derive(Clone, Debug)]
pub(crate) struct Sources {
    entries: Vec<Source>,
    rust: FxHashMap<usize, SourceId>,
    pub(crate) current: SourceId,
}

impl Default for Sources {
    fn default() -> Self {
        Self {
            entries: vec![Source::Unknown],
            rust: FxHashMap::default(),
            current: SourceId::default(),
        }
    }
}

impl Sources {
    pub(crate) fn add(&mut self, source: Source) -> SourceId {
        let id = u32::try_from(self.entries.len()).ok().filter(|id| id & DERIVED == 0);
        let id = SourceId(id.expect("fewer than 2^31 lines"));
        self.entries.push(source);
        id
    }

    /// Makes a location in Rust code the current source. Each location has one static `Location`,
    /// whose address identifies it.
    pub(crate) fn enter_rust(&mut self, location: &'static Location<'static>) {
        let key = std::ptr::from_ref(location) as usize;
        if let Some(&id) = self.rust.get(&key) {
            self.current = id;
            return;
        }
        let line = Line { file: location.file().into(), line: location.line() };
        self.current = self.add(Source::Line(line));
        self.rust.insert(key, self.current);
    }

    pub(crate) fn get(&self, id: SourceId) -> &Source {
        &self.entries[(id.0 & !DERIVED) as usize]
    }
}

/// A map from sources of one graph to sources of another graph.
pub type SourceMap = FxHashMap<SourceId, SourceId>;
