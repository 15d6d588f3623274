//! What a backup or a restore is doing, for commands that show its progress.

use std::path::PathBuf;

/// A phase of a backup or a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyPhase {
    /// The copy is written.
    Writing {
        /// The file that grows.
        file: PathBuf,
        /// About how large it will be.
        bytes: u64,
    },
    /// The backup is checked for damage.
    Checking,
}

/// Gets each phase when it begins.
pub type PhaseObserver<'o> = &'o (dyn Fn(CopyPhase) + Send + Sync);
