//! Where converted documents are written: never over a source, and never two in one place.

use std::{
    collections::HashSet,
    ffi::OsString,
    fs::{self, File, Metadata},
    io::{self, Write as _},
    path::{Component, Path, PathBuf},
};

use anyhow::{Context as _, ensure};

use crate::{arguments::ConvertOptions, commands::lint::files::Input};

/// Finds the place of each document.
pub(super) struct Places<'o> {
    options: &'o ConvertOptions,
    /// Sources, and what was written so far.
    taken: HashSet<PathBuf>,
    /// What the sources are, whatever they are called.
    sources: HashSet<Identity>,
}

impl<'o> Places<'o> {
    pub(super) fn new(options: &'o ConvertOptions, inputs: &[Input]) -> Self {
        let path = |input: &Input| match input {
            Input::File(path) => fs::canonicalize(path).ok(),
            Input::Standard => None,
        };
        let taken: HashSet<PathBuf> = inputs.iter().filter_map(path).collect();
        let identity = |path: &PathBuf| fs::metadata(path).ok().and_then(|it| identity(&it));
        let sources = taken.iter().filter_map(identity).collect();
        Self { options, taken, sources }
    }

    /// The file for what a source has become, by its real path; none for standard output. The
    /// directory that it stands in is there afterwards.
    pub(super) fn of(&mut self, input: &Input) -> anyhow::Result<Option<PathBuf>> {
        let place = match (&self.options.output, &self.options.output_dir) {
            (Some(file), _) => file.clone(),
            (None, Some(directory)) => directory.join(below(input)),
            (None, None) => return Ok(None),
        };
        let real = real(&place)?;
        let there = fs::metadata(&real).ok().and_then(|it| identity(&it));
        let is_source = there.is_some_and(|it| self.sources.contains(&it));
        let free = !is_source && self.taken.insert(real.clone());
        ensure!(free, "{} is a source, or was written just now", place.display());
        Ok(Some(real))
    }
}

/// The path that a source was named by, as far as it leads down.
fn below(input: &Input) -> PathBuf {
    match input {
        Input::File(path) => {
            path.components().filter(|it| matches!(it, Component::Normal(_))).collect()
        }
        Input::Standard => PathBuf::from("stdin.json"),
    }
}

/// One file has one real path, whether it is there already or not.
fn real(place: &Path) -> anyhow::Result<PathBuf> {
    if let Ok(real) = fs::canonicalize(place) {
        return Ok(real);
    }
    let name = place.file_name().with_context(|| format!("{} names no file", place.display()))?;
    let directory = place.parent().filter(|it| !it.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    fs::create_dir_all(directory)
        .with_context(|| format!("{} cannot be made", directory.display()))?;
    let directory = fs::canonicalize(directory)
        .with_context(|| format!("{} cannot be found", directory.display()))?;
    Ok(directory.join(name))
}

/// What a file is, whatever it is called: its device and its number there.
type Identity = (u64, u64);

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere there is none")]
fn identity(file: &Metadata) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt as _;
    Some((file.dev(), file.ino()))
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> Option<Identity> {
    None
}

/// Writes a document and ends its last line. A file is there whole or not at all; what is none,
/// such as a pipe, is written to as it is.
pub(super) fn write(place: &Path, text: &str) -> anyhow::Result<()> {
    let text = format!("{text}\n");
    let there = fs::metadata(place).ok();
    let written = match &there {
        Some(there) if !there.is_file() => fs::write(place, text),
        _ => replace(place, &text, there.as_ref()),
    };
    written.with_context(|| format!("{} cannot be written", place.display()))
}

fn replace(place: &Path, text: &str, former: Option<&Metadata>) -> io::Result<()> {
    let mut name = OsString::from(".");
    name.push(place.file_name().unwrap_or_default());
    name.push(format!(".{}.part", std::process::id()));
    let beside = place.with_file_name(name);
    let write = || {
        let mut file = File::create_new(&beside)?;
        if let Some(former) = former {
            file.set_permissions(former.permissions())?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, place)
    };
    write().inspect_err(|_| {
        // It may not even be there.
        let _ = fs::remove_file(&beside);
    })
}
