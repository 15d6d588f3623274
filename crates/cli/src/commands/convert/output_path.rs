//! Output paths of converted documents: never a source file, and never the same path twice.

use std::{
    collections::HashSet,
    ffi::OsString,
    fs::{self, File, Metadata},
    io::{self, Write as _},
    path::{Component, Path, PathBuf},
};

use anyhow::{Context as _, ensure};

use crate::{arguments::ConvertOptions, commands::lint::files::Input};

/// Assigns an output path to each document.
pub(super) struct OutputPaths<'o> {
    options: &'o ConvertOptions,
    /// Paths of the sources and of the files written so far.
    used: HashSet<PathBuf>,
    /// The sources by device and inode, whatever their paths are.
    sources: HashSet<Identity>,
}

impl<'o> OutputPaths<'o> {
    pub(super) fn new(options: &'o ConvertOptions, inputs: &[Input]) -> Self {
        let path = |input: &Input| match input {
            Input::File(path) => fs::canonicalize(path).ok(),
            Input::Standard => None,
        };
        let used: HashSet<PathBuf> = inputs.iter().filter_map(path).collect();
        let identity = |path: &PathBuf| fs::metadata(path).ok().and_then(|it| identity(&it));
        let sources = used.iter().filter_map(identity).collect();
        Self { options, used, sources }
    }

    /// The canonical output path for an input; `None` for standard output. Creates the directory.
    pub(super) fn of(&mut self, input: &Input) -> anyhow::Result<Option<PathBuf>> {
        let path = match (&self.options.output, &self.options.output_dir) {
            (Some(file), _) => file.clone(),
            (None, Some(directory)) => directory.join(below(input)),
            (None, None) => return Ok(None),
        };
        let real = real(&path)?;
        let existing = fs::metadata(&real).ok().and_then(|it| identity(&it));
        let is_source = existing.is_some_and(|it| self.sources.contains(&it));
        let is_free = !is_source && self.used.insert(real.clone());
        ensure!(is_free, "{} is a source file, or this run already wrote it", path.display());
        Ok(Some(real))
    }
}

/// The path of an input without components that lead upwards.
fn below(input: &Input) -> PathBuf {
    match input {
        Input::File(path) => {
            path.components().filter(|it| matches!(it, Component::Normal(_))).collect()
        }
        Input::Standard => PathBuf::from("stdin.json"),
    }
}

/// The canonical path of a file that may not exist yet.
fn real(path: &Path) -> anyhow::Result<PathBuf> {
    if let Ok(real) = fs::canonicalize(path) {
        return Ok(real);
    }
    let name =
        path.file_name().with_context(|| format!("{} is not a file name", path.display()))?;
    let directory = path.parent().filter(|it| !it.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    fs::create_dir_all(directory)
        .with_context(|| format!("{} cannot be created", directory.display()))?;
    let directory = fs::canonicalize(directory)
        .with_context(|| format!("{} cannot be found", directory.display()))?;
    Ok(directory.join(name))
}

/// Device and inode of a file.
type Identity = (u64, u64);

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "other systems return None")]
fn identity(file: &Metadata) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt as _;
    Some((file.dev(), file.ino()))
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> Option<Identity> {
    None
}

/// Writes a document with a final line break. A regular file is replaced atomically; anything else,
/// such as a pipe, is written directly.
pub(super) fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let text = format!("{text}\n");
    let existing = fs::metadata(path).ok();
    let written = match &existing {
        Some(existing) if !existing.is_file() => fs::write(path, text),
        _ => replace(path, &text, existing.as_ref()),
    };
    written.with_context(|| format!("{} cannot be written", path.display()))
}

fn replace(path: &Path, text: &str, former: Option<&Metadata>) -> io::Result<()> {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.part", std::process::id()));
    let temporary = path.with_file_name(name);
    let write = || {
        let mut file = File::create_new(&temporary)?;
        if let Some(former) = former {
            file.set_permissions(former.permissions())?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    write().inspect_err(|_| {
        // It may not exist.
        let _ = fs::remove_file(&temporary);
    })
}
