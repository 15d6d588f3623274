//! Finds the input files: those named on the command line and those in named directories.

use std::{
    collections::HashSet,
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

/// Larger files are not template files, and may be endless.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// One input file.
pub(in crate::commands) enum Input {
    /// Standard input, called `-`.
    Standard,
    File(PathBuf),
}

/// A file that cannot be read, and why.
pub(in crate::commands) struct ReadError {
    pub(in crate::commands) file: String,
    pub(in crate::commands) error: String,
}

impl Input {
    /// Its name in reports.
    pub(in crate::commands) fn name(&self) -> String {
        match self {
            Self::Standard => "<stdin>".to_owned(),
            Self::File(path) => name(path),
        }
    }

    pub(in crate::commands) fn read(&self) -> Result<Vec<u8>, ReadError> {
        let bytes = match self {
            Self::Standard => read(io::stdin().lock()),
            Self::File(path) => File::open(path).and_then(read),
        };
        bytes.map_err(|error| ReadError { file: self.name(), error: error.to_string() })
    }
}

/// The input files, and those that cannot be read.
#[derive(Default)]
pub(in crate::commands) struct InputFiles {
    pub(in crate::commands) inputs: Vec<Input>,
    pub(in crate::commands) read_errors: Vec<ReadError>,
    /// Canonical paths of the files and directories visited: nothing is read twice, and cycles of
    /// links end.
    seen: HashSet<PathBuf>,
}

impl InputFiles {
    pub(in crate::commands) fn of(paths: &[PathBuf]) -> Self {
        let mut files = Self::default();
        for path in paths {
            if path.as_os_str() == "-" {
                if files.is_new(path) {
                    files.inputs.push(Input::Standard);
                }
            } else if path.is_dir() {
                files.named_directory(path);
            } else {
                files.file(path.clone());
            }
        }
        files
    }

    /// Reports a directory without templates, because it is probably a mistake.
    fn named_directory(&mut self, path: &Path) {
        let found = |files: &Self| (files.inputs.len(), files.read_errors.len());
        let before = found(self);
        let first_time = !self.seen.contains(&real(path));
        self.directory(path);
        if first_time && found(self) == before {
            let error = "contains no .json file".to_owned();
            self.read_errors.push(ReadError { file: name(path), error });
        }
    }

    fn file(&mut self, path: PathBuf) {
        if self.is_new(&path) {
            self.inputs.push(Input::File(path));
        }
    }

    /// All `.json` files, sorted by name.
    fn directory(&mut self, directory: &Path) {
        if !self.is_new(directory) {
            return;
        }
        let entries = fs::read_dir(directory).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let mut entries = match entries {
            Ok(entries) => entries,
            Err(error) => {
                let error = error.to_string();
                return self.read_errors.push(ReadError { file: name(directory), error });
            }
        };
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let (path, called) = (entry.path(), entry.file_name());
            let called = called.to_string_lossy();
            let json = path.extension().is_some_and(|it| it.eq_ignore_ascii_case("json"));
            let skipped = called.starts_with('.') || called == "node_modules" || called == "target";
            if path.is_dir() && !skipped {
                self.directory(&path);
            } else if json && !skipped && !path.is_dir() {
                self.file(path);
            }
        }
    }

    fn is_new(&mut self, path: &Path) -> bool {
        self.seen.insert(real(path))
    }
}

/// A pipe has no real path; it is only what it is called.
fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

fn read(source: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        let error = format!("larger than {} MiB", MAX_FILE_BYTES / 1024 / 1024);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, error));
    }
    Ok(bytes)
}

fn name(path: &Path) -> String {
    path.strip_prefix("./").unwrap_or(path).display().to_string()
}
