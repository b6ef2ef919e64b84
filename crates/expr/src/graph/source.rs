//! The user's source line behind each node.
//!
//! Lines live in a side table of the graph and are no part of a node's identity: when two lines
//! build the same node, the first one is remembered. Finding a line can be slow (Python decodes
//! it from a compressed table), so a source may be looked up only when somebody asks.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use rustc_hash::FxHashMap;

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Line {
    /// The file as the user's language names it.
    pub file: Arc<str>,
    /// Counted from 1.
    pub line: u32,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.file.rsplit(['/', '\\']).next().unwrap_or(&self.file);
        write!(f, "{name}:{}", self.line)
    }
}

/// Finds a line when asked.
pub trait Locate: Send + Sync {
    /// The line, or `None` if it cannot be told any more.
    fn locate(&self) -> Option<Line>;
}

/// Where a node comes from.
#[derive(Clone, Default)]
pub enum Source {
    /// Not known.
    #[default]
    Unknown,
    /// A known line.
    Line(Line),
    /// Looked up when asked.
    Lazy(Arc<dyn Locate>),
}

impl Source {
    /// The line, if it can be told.
    pub fn line(&self) -> Option<Line> {
        match self {
            Source::Unknown => None,
            Source::Line(line) => Some(line.clone()),
            Source::Lazy(locate) => locate.locate(),
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

/// A source within one graph, and whether nodes come from it as parts of a derivative: the highest
/// bit says that, so that it takes no room.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SourceId(u32);

/// The bit of derivatives.
const DERIVED: u32 = 1 << 31;

impl SourceId {
    /// The same source, for nodes that a derivative in reverse mode is made of.
    #[must_use]
    pub fn derived(self) -> Self {
        Self(self.0 | DERIVED)
    }

    /// Whether it is for nodes of a derivative.
    pub fn is_derived(self) -> bool {
        self.0 & DERIVED != 0
    }

    /// This source, for nodes of a derivative if `other` is.
    pub(crate) fn derived_as(self, other: Self) -> Self {
        Self(self.0 | other.0 & DERIVED)
    }
}

/// The sources of one graph, and the one that new nodes get.
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

    /// Makes a place in Rust code the current source. Each place has one static `Location`, so
    /// its address stands for it.
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

/// Which source of one graph is which of another.
pub(crate) type SourceMap = FxHashMap<SourceId, SourceId>;
