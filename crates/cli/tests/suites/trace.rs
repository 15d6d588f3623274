//! The system calls of a service, as strace tells them.

use std::path::{Path, PathBuf};

use crate::service::{GALLEY, Launch, command};

/// One system call. Places are line numbers of the trace, which are in the order of what
/// happened: strace stops every thread at the begin and at the end of a call.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) begun: usize,
    pub(crate) ended: usize,
    /// What it was given and what it answered.
    pub(crate) text: String,
}

impl Call {
    /// The file or socket it was about.
    pub(crate) fn file(&self) -> &str {
        let (_, rest) = self.text.split_once('<').unwrap_or_default();
        let end = rest.find(">,").into_iter().chain(rest.find(">)")).min();
        &rest[..end.unwrap_or_default()]
    }

    /// Whether it answered 0 or more.
    pub(crate) fn succeeded(&self) -> bool {
        let answer = self.text.rsplit_once(" = ");
        answer.is_some_and(|(_, answer)| !answer.starts_with('-') && !answer.starts_with('?'))
    }
}

/// A service under strace. With `-D` strace steps aside: the child is the service itself.
pub(crate) fn launch(dir: &Path, options: &[&str]) -> Launch {
    let mut strace = command("strace");
    strace.args(["-D", "-f", "-yy", "-s", "4200", "-o"]).arg(file(dir));
    strace.args(options).arg(GALLEY);
    Launch::with(strace, dir).canaries()
}

fn file(dir: &Path) -> PathBuf {
    dir.join("trace")
}

/// Every call of a service that has ended, in the order of their begin.
pub(crate) fn calls(dir: &Path) -> Vec<Call> {
    let text = String::from_utf8(std::fs::read(file(dir)).unwrap()).unwrap();
    let mut calls: Vec<Call> = Vec::new();
    for (place, line) in text.lines().enumerate() {
        let Some((thread, rest)) = line.split_once(' ') else { continue };
        let rest = rest.trim_start();
        if let Some(resumed) = rest.strip_prefix("<... ") {
            let (_, end) = resumed.split_once(" resumed>").unwrap();
            let mark = format!("{UNFINISHED}{thread}");
            let open = calls.iter_mut().rev().find(|call| call.text.ends_with(&mark));
            let open = open.unwrap_or_else(|| panic!("line {place} resumes nothing: {line}"));
            open.text.truncate(open.text.len() - mark.len());
            open.text.push_str(end);
            open.ended = place;
        } else if let Some((name, arguments)) = rest.split_once('(')
            && name.chars().all(|it| it.is_ascii_alphanumeric() || it == '_')
        {
            let (text, ended) = match arguments.strip_suffix(" <unfinished ...>") {
                Some(begin) => (format!("{begin}{UNFINISHED}{thread}"), usize::MAX),
                None => (arguments.to_owned(), place),
            };
            calls.push(Call { name: name.to_owned(), begun: place, ended, text });
        }
    }
    calls
}

/// Stands behind the text of a call that has not ended, before the thread it belongs to.
const UNFINISHED: &str = "\u{1}unfinished ";
