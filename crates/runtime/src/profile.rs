//! Profiles: traces, compilations, transfers and runs as events on a time line.
//!
//! Recording starts with [`start_profile`]. Without recording, a [`span`] costs one read of a flag. The
//! events are written in the trace event format of Perfetto and Chrome's `about:tracing`. Subscribers
//! of the crate [`tracing`] receive the same events with the target `nxla`.

use std::borrow::Cow;
use std::fmt;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use tracing::field::Empty;
use tracing::{debug_span, trace_span};

use crate::sync::Shared;

/// Set while events are recorded.
static ON: AtomicBool = AtomicBool::new(false);

static RECORDED: Shared<Option<Recorded>> = Shared::new(None);

/// The number of events kept; later events are only counted.
const MOST_EVENTS: usize = 1 << 20;

/// The events since the start of the profile.
struct Recorded {
    begun: Instant,
    events: Vec<Event>,
    lost: usize,
    /// The names of threads, by their number.
    threads: Vec<(u64, String)>,
}

/// The kind of an event. It is the category in the profile and the name of the span for subscribers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// A function is traced.
    Trace,
    /// A program is compiled, or a part of that.
    Compile,
    /// A transfer of data to or from a device.
    Transfer,
    /// A call of a function, as long as the caller waits.
    Call,
    /// A stage of a split program runs.
    Stage,
    /// A device is at work.
    Run,
}

impl Work {
    fn name(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Compile => "compile",
            Self::Transfer => "transfer",
            Self::Call => "call",
            Self::Stage => "stage",
            Self::Run => "run",
        }
    }

    /// Creates the span for subscribers. Work that a function does once has the level `DEBUG`, and
    /// work of every call has the level `TRACE`.
    #[inline]
    fn new_span(self) -> tracing::Span {
        match self {
            Self::Trace => debug_span!(target: "nxla", "trace", what = Empty),
            Self::Compile => {
                debug_span!(target: "nxla", "compile", what = Empty, compiler = Empty, nodes = Empty)
            }
            Self::Transfer => trace_span!(target: "nxla", "transfer", what = Empty, bytes = Empty),
            Self::Call => trace_span!(target: "nxla", "call", what = Empty, backend = Empty),
            Self::Stage => trace_span!(target: "nxla", "stage", what = Empty),
            Self::Run => trace_span!(target: "nxla", "run", what = Empty),
        }
    }
}

struct Event {
    name: Cow<'static, str>,
    work: Work,
    track: Track,
    /// Microseconds since the start of the profile.
    start: f64,
    /// Microseconds.
    duration: f64,
    details: Vec<(&'static str, String)>,
}

/// The row of a profile that shows an event.
enum Track {
    /// A thread of this process, on which one event is inside of another.
    Thread(u64),
    /// A device, on which events overlap.
    Device(String),
}

/// Returns `true` while events are recorded.
#[inline]
pub fn is_profiled() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Starts recording, and returns `true` if no recording was active.
pub fn start_profile() -> bool {
    let mut recorded = RECORDED.lock();
    if recorded.is_some() {
        return false;
    }
    let (events, threads) = (Vec::new(), Vec::new());
    *recorded = Some(Recorded { begun: Instant::now(), events, lost: 0, threads });
    ON.store(true, Ordering::Relaxed);
    true
}

/// Ends recording and returns the events as JSON; `None` without [`start_profile`].
pub fn finish_profile() -> Option<String> {
    let recorded = {
        let mut recorded = RECORDED.lock();
        ON.store(false, Ordering::Relaxed);
        recorded.take()?
    };
    Some(json(&recorded))
}

/// An event that lasts until it is dropped.
#[must_use = "the event ends when this is dropped"]
pub struct Span(Option<Box<Open>>);

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Span").finish_non_exhaustive()
    }
}

struct Open {
    name: Cow<'static, str>,
    work: Work,
    begun: Instant,
    details: Vec<(&'static str, String)>,
    /// The span, entered. The guard type of `tracing` cannot change threads, and one call begins a
    /// trace that another call finishes.
    subscribed: tracing::Span,
}

/// Begins an event of this thread, if events are recorded or have a subscriber.
#[inline]
pub fn span(work: Work, name: &'static str) -> Span {
    span_with(work, || Cow::Borrowed(name))
}

/// Begins an event of this thread; `name` is called only if the event is recorded.
#[inline]
pub fn span_with(work: Work, name: impl FnOnce() -> Cow<'static, str>) -> Span {
    let subscribed = work.new_span();
    if !is_profiled() && subscribed.is_disabled() {
        return Span(None);
    }
    Span::open(work, name(), subscribed)
}

impl Span {
    #[cold]
    fn open(work: Work, name: Cow<'static, str>, subscribed: tracing::Span) -> Self {
        subscribed.record("what", &*name);
        subscribed.with_subscriber(|(id, subscriber)| subscriber.enter(id));
        let details = Vec::new();
        Self(Some(Box::new(Open { name, work, begun: Instant::now(), details, subscribed })))
    }

    /// Adds a detail to the event.
    #[inline]
    pub fn detail(mut self, name: &'static str, value: impl FnOnce() -> String) -> Self {
        if let Some(open) = &mut self.0 {
            let value = value();
            open.subscribed.record(name, &*value);
            open.details.push((name, value));
        }
        self
    }

    /// Returns a function that records this event as work of a device, from the start of the span to
    /// the call of the function. Returns `None` if nothing is recorded.
    pub fn on_device(&self, device: &str) -> Option<impl FnOnce() + Send + 'static> {
        let open = self.0.as_ref().filter(|_| is_profiled())?;
        let (name, work, begun) = (open.name.clone(), open.work, open.begun);
        let (details, track) = (open.details.clone(), Track::Device(device.to_owned()));
        Some(move || record(name, work, begun, details, track))
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        let Some(open) = self.0.take() else { return };
        let Open { name, work, begun, details, subscribed } = *open;
        subscribed.with_subscriber(|(id, subscriber)| subscriber.exit(id));
        if is_profiled() {
            record(name, work, begun, details, Track::Thread(thread()));
        }
    }
}

/// The number of this thread among the threads with recorded events.
fn thread() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static NUMBER: u64 = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    NUMBER.with(|number| *number)
}

fn record(
    name: Cow<'static, str>,
    work: Work,
    begun: Instant,
    details: Vec<(&'static str, String)>,
    track: Track,
) {
    let mut recorded = RECORDED.lock();
    // The event may have started before the recording.
    let Some(recorded) = recorded.as_mut().filter(|recorded| recorded.begun <= begun) else {
        return;
    };
    if recorded.events.len() >= MOST_EVENTS {
        recorded.lost += 1;
        return;
    }
    if let Track::Thread(number) = track
        && !recorded.threads.iter().any(|(known, _)| *known == number)
    {
        let current = std::thread::current();
        let name = current.name().map_or_else(|| format!("thread {number}"), str::to_owned);
        recorded.threads.push((number, name));
    }
    let start = begun.duration_since(recorded.begun).as_secs_f64() * 1e6;
    let duration = begun.elapsed().as_secs_f64() * 1e6;
    recorded.events.push(Event { name, work, track, start, duration, details });
}

/// The trace event format: threads are one process, devices another one.
fn json(recorded: &Recorded) -> String {
    let mut text = String::from("{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n");
    let mut devices: Vec<&str> = Vec::new();
    name_track(&mut text, "process_name", 1, 0, "host");
    for (number, name) in &recorded.threads {
        name_track(&mut text, "thread_name", 1, *number, name);
    }
    for (id, event) in recorded.events.iter().enumerate() {
        match &event.track {
            Track::Thread(number) => {
                let duration = event.duration;
                let phase = format!("\"ph\": \"X\", \"dur\": {duration:.3}");
                write_event(&mut text, event, event.start, 1, *number, &phase);
            }
            Track::Device(device) => {
                let known = devices.iter().position(|known| known == device);
                let number = known.unwrap_or_else(|| {
                    devices.push(device);
                    devices.len() - 1
                });
                // Events that overlap are written as a beginning and an end that share an id.
                let (end, number) = (event.start + event.duration, number as u64);
                let phase = |letter: char| format!("\"ph\": \"{letter}\", \"id\": {id}");
                write_event(&mut text, event, event.start, 2, number, &phase('b'));
                write_event(&mut text, event, end, 2, number, &phase('e'));
            }
        }
    }
    if !devices.is_empty() {
        name_track(&mut text, "process_name", 2, 0, "devices");
    }
    for (number, name) in devices.iter().enumerate() {
        name_track(&mut text, "thread_name", 2, number as u64, name);
    }
    let _ = write!(
        text,
        "{{\"name\": \"end\", \"ph\": \"i\", \"ts\": {:.3}, \"pid\": 1, \"tid\": 0, \"s\": \"g\"}}\n],\n\
         \"otherData\": {{\"lost events\": {}}}}}\n",
        recorded.begun.elapsed().as_secs_f64() * 1e6,
        recorded.lost
    );
    text
}

fn write_event(
    text: &mut String,
    event: &Event,
    start: f64,
    process: u32,
    thread: u64,
    phase: &str,
) {
    text.push_str("{\"name\": ");
    write_string(text, &event.name);
    let _ = write!(
        text,
        ", \"cat\": \"{}\", {phase}, \"ts\": {start:.3}, \"pid\": {process}, \"tid\": {thread}",
        event.work.name()
    );
    if !event.details.is_empty() {
        text.push_str(", \"args\": {");
        for (number, (name, value)) in event.details.iter().enumerate() {
            text.push_str(if number > 0 { ", " } else { "" });
            write_string(text, name);
            text.push_str(": ");
            write_string(text, value);
        }
        text.push('}');
    }
    text.push_str("},\n");
}

fn name_track(text: &mut String, what: &str, process: u32, thread: u64, name: &str) {
    let _ = write!(
        text,
        "{{\"name\": \"{what}\", \"ph\": \"M\", \"pid\": {process}, \"tid\": {thread}, \
         \"args\": {{\"name\": "
    );
    write_string(text, name);
    text.push_str("}},\n");
}

/// A string of JSON.
fn write_string(text: &mut String, string: &str) {
    text.push('"');
    for char in string.chars() {
        match char {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            char if u32::from(char) < 0x20 => {
                let _ = write!(text, "\\u{:04x}", u32::from(char));
            }
            char => text.push(char),
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_spans_within_the_profile_are_written() {
        let before = span(Work::Run, "before");
        assert!(before.on_device("cpu:0").is_none());
        assert!(start_profile());
        assert!(!start_profile());
        drop(before);
        let outer = span_with(Work::Compile, || "a \"b\"\n".into()).detail("nodes", || "3".into());
        let on_device = outer.on_device("cpu:0").unwrap();
        drop(outer);
        on_device();
        let text = finish_profile().unwrap();
        assert!(finish_profile().is_none());
        assert!(!text.contains("before"), "{text}");
        for part in [
            r#"{"name": "a \"b\"\u000a", "cat": "compile", "ph": "X", "dur": "#,
            r#""args": {"nodes": "3"}}"#,
            r#""ph": "b", "id": 1"#,
            r#""ph": "e", "id": 1"#,
            r#""args": {"name": "cpu:0"}}"#,
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        drop(span(Work::Run, "after"));
        assert!(finish_profile().is_none());
    }
}
