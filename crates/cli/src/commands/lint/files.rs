//! Which files are checked: those that were named, and those in the directories that were named.

use std::{
    collections::HashSet,
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

/// What is larger is no template file, and perhaps endless.
const LARGEST: u64 = 64 * 1024 * 1024;

/// One file to check.
pub(in crate::commands) enum Input {
    /// Standard input, called `-`.
    Standard,
    File(PathBuf),
}

/// Something that cannot be read, and why.
pub(in crate::commands) struct Trouble {
    pub(in crate::commands) file: String,
    pub(in crate::commands) error: String,
}

impl Input {
    /// What it is called in reports.
    pub(in crate::commands) fn name(&self) -> String {
        match self {
            Self::Standard => "<stdin>".to_owned(),
            Self::File(path) => name(path),
        }
    }

    pub(in crate::commands) fn read(&self) -> Result<Vec<u8>, Trouble> {
        let bytes = match self {
            Self::Standard => read(io::stdin().lock()),
            Self::File(path) => File::open(path).and_then(read),
        };
        bytes.map_err(|error| Trouble { file: self.name(), error: error.to_string() })
    }
}

/// What was found to check, and what could not be looked at.
#[derive(Default)]
pub(in crate::commands) struct Gathered {
    pub(in crate::commands) inputs: Vec<Input>,
    pub(in crate::commands) troubles: Vec<Trouble>,
    /// Files and directories seen so far, by their real paths: nothing is checked twice, and links
    /// that lead in a circle end.
    seen: HashSet<PathBuf>,
}

impl Gathered {
    pub(in crate::commands) fn of(paths: &[PathBuf]) -> Self {
        let mut gathered = Self::default();
        for path in paths {
            if path.as_os_str() == "-" {
                if gathered.is_new(path) {
                    gathered.inputs.push(Input::Standard);
                }
            } else if path.is_dir() {
                gathered.named_directory(path);
            } else {
                gathered.file(path.clone());
            }
        }
        gathered
    }

    /// A directory without templates is most likely not the one that was meant.
    fn named_directory(&mut self, path: &Path) {
        let found = |gathered: &Self| (gathered.inputs.len(), gathered.troubles.len());
        let before = found(self);
        let first_time = !self.seen.contains(&real(path));
        self.directory(path);
        if first_time && found(self) == before {
            let error = "holds no file that ends in .json".to_owned();
            self.troubles.push(Trouble { file: name(path), error });
        }
    }

    fn file(&mut self, path: PathBuf) {
        if self.is_new(&path) {
            self.inputs.push(Input::File(path));
        }
    }

    /// Everything that ends in `.json`, in the order of the names.
    fn directory(&mut self, directory: &Path) {
        if !self.is_new(directory) {
            return;
        }
        let entries = fs::read_dir(directory).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let mut entries = match entries {
            Ok(entries) => entries,
            Err(error) => {
                let error = error.to_string();
                return self.troubles.push(Trouble { file: name(directory), error });
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
    source.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        let error = format!("larger than {} MiB", LARGEST / 1024 / 1024);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, error));
    }
    Ok(bytes)
}

fn name(path: &Path) -> String {
    path.strip_prefix("./").unwrap_or(path).display().to_string()
}
