//! The system calls of a service, as recorded by strace.

use std::path::{Path, PathBuf};

use crate::service::{GALLEY, Launch, command};

/// One system call. `begun` and `ended` are line numbers of the trace. They are in the order of
/// execution: strace stops every thread at the beginning and at the end of a call.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) begun: usize,
    pub(crate) ended: usize,
    /// Its arguments and its result.
    pub(crate) text: String,
}

impl Call {
    /// The file or socket of its first descriptor.
    pub(crate) fn file(&self) -> &str {
        let (_, rest) = self.text.split_once('<').unwrap_or_default();
        let end = rest.find(">,").into_iter().chain(rest.find(">)")).min();
        &rest[..end.unwrap_or_default()]
    }

    /// Whether its result is 0 or more.
    pub(crate) fn succeeded(&self) -> bool {
        let result = self.text.rsplit_once(" = ");
        result.is_some_and(|(_, result)| !result.starts_with('-') && !result.starts_with('?'))
    }
}

/// A service under strace. With `-D` the child process is the service itself, not strace.
pub(crate) fn launch(dir: &Path, options: &[&str]) -> Launch {
    let mut strace = command("strace");
    strace.args(["-D", "-f", "-yy", "-s", "4200", "-o"]).arg(file(dir));
    strace.args(options).arg(GALLEY);
    Launch::with(strace, dir).canaries()
}

fn file(dir: &Path) -> PathBuf {
    dir.join("trace")
}

/// Every call of a service that has ended, in the order in which the calls began.
pub(crate) fn calls(dir: &Path) -> Vec<Call> {
    let text = String::from_utf8(std::fs::read(file(dir)).unwrap()).unwrap();
    let mut calls: Vec<Call> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let Some((thread, rest)) = line.split_once(' ') else { continue };
        let rest = rest.trim_start();
        if let Some(resumed) = rest.strip_prefix("<... ") {
            let (_, end) = resumed.split_once(" resumed>").unwrap();
            let marker = format!("{UNFINISHED}{thread}");
            let open = calls.iter_mut().rev().find(|call| call.text.ends_with(&marker));
            let open = open.unwrap_or_else(|| panic!("line {number} resumes no call: {line}"));
            open.text.truncate(open.text.len() - marker.len());
            open.text.push_str(end);
            open.ended = number;
        } else if let Some((name, arguments)) = rest.split_once('(')
            && name.chars().all(|it| it.is_ascii_alphanumeric() || it == '_')
        {
            let (text, ended) = match arguments.strip_suffix(" <unfinished ...>") {
                Some(begin) => (format!("{begin}{UNFINISHED}{thread}"), usize::MAX),
                None => (arguments.to_owned(), number),
            };
            calls.push(Call { name: name.to_owned(), begun: number, ended, text });
        }
    }
    calls
}

/// Follows the text of a call that has not ended, and precedes its thread id.
const UNFINISHED: &str = "\u{1}unfinished ";
