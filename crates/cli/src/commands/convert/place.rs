//! Where converted documents are written: never over a source, and never two in one place.

use std::{
    collections::HashSet,
    fs,
    path::{Component, Path, PathBuf},
};

use anyhow::{Context as _, ensure};

use crate::{arguments::ConvertOptions, commands::lint::files::Input};

/// Finds the place of each document.
pub(super) struct Places<'o> {
    options: &'o ConvertOptions,
    /// Sources, and what was written so far.
    taken: HashSet<PathBuf>,
}

impl<'o> Places<'o> {
    pub(super) fn new(options: &'o ConvertOptions, inputs: &[Input]) -> Self {
        let source = |input: &Input| match input {
            Input::File(path) => fs::canonicalize(path).ok(),
            Input::Standard => None,
        };
        Self { options, taken: inputs.iter().filter_map(source).collect() }
    }

    /// The file for what a source has become; none for standard output.
    pub(super) fn of(&mut self, input: &Input) -> anyhow::Result<Option<PathBuf>> {
        let place = match (&self.options.output, &self.options.output_dir) {
            (Some(file), _) => file.clone(),
            (None, Some(directory)) => directory.join(below(input)),
            (None, None) => return Ok(None),
        };
        let real = fs::canonicalize(&place).unwrap_or_else(|_| place.clone());
        let free = self.taken.insert(real);
        ensure!(free, "{} is a source, or was written just now", place.display());
        Ok(Some(place))
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

/// Writes a document and ends its last line.
pub(super) fn write(place: &Path, text: &str) -> anyhow::Result<()> {
    if let Some(directory) = place.parent() {
        fs::create_dir_all(directory)
            .with_context(|| format!("{} cannot be made", directory.display()))?;
    }
    fs::write(place, format!("{text}\n"))
        .with_context(|| format!("{} cannot be written", place.display()))
}
