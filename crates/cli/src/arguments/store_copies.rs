//! The commands that copy a store: `backup`, `restore` and `migrate`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct BackupOptions {
    /// The file to create.
    pub(crate) path: PathBuf,
    /// Keep the copy even if some of its rows do not match their checksums.
    #[arg(long)]
    pub(crate) allow_damaged: bool,
}

// Paragraphs are single lines, which the help wraps at the width of the terminal.
#[derive(Debug, Args)]
#[command(after_help = "\
The backup is checked first. An existing store is never overwritten, and leftover files of another \
store beside it are refused: the message says how to move them away.

The store is then as it was when the backup was made; later writes are missing. Credentials that were \
revoked later are valid again: revoke them once more. Pending deliveries are sent again.

Example:
  galley restore /backup/galley.db --store sqlite:/var/lib/galley/galley.db

For PostgreSQL: restore its own backups with pg_restore. Move a backup of a SQLite store with
  galley migrate --from sqlite:/backup/galley.db --to postgres://USER@HOST/DB")]
pub(crate) struct RestoreOptions {
    /// The backup.
    #[arg(required_unless_present = "from")]
    path: Option<PathBuf>,
    /// The backup, as a flag.
    #[arg(long, value_name = "PATH", conflicts_with = "path")]
    from: Option<PathBuf>,
    /// Restore the backup even if it is damaged.
    #[arg(long)]
    pub(crate) allow_damaged: bool,
}

impl RestoreOptions {
    /// The path of the backup.
    pub(crate) fn backup(&self) -> PathBuf {
        self.path.clone().or_else(|| self.from.clone()).unwrap_or_default()
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Stop the service first and start it with the new store afterwards: writes to the old store during the \
copy would be missing. A file that is in use is refused, and it stays locked until the command ends.

If the command is interrupted, run it again: it continues where it stopped. Galley does not open the \
target until all rows are copied and compared. A file written by `galley backup` works as well.

Use the same GALLEY_SECRET_KEY with the new store. The service rebuilds the search index when it starts.

Examples:
  galley migrate --from sqlite:galley.db --to postgres://galley@db/galley
  GALLEY_STORE=postgres://galley:PASSWORD@db/galley \\
    galley migrate --from sqlite:galley.db

Exit code: 0 if everything is copied and equal, 1 otherwise.")]
pub(crate) struct MigrateOptions {
    /// The store to copy: sqlite:PATH.
    #[arg(long, value_name = "URL")]
    pub(crate) from: String,
    #[arg(
        long,
        value_name = "URL",
        help = "\
        The target: postgres://USER@HOST/DATABASE (default: the setting `store`, so that a password \
        need not be typed) [env: GALLEY_STORE]"
    )]
    pub(crate) to: Option<String>,
}
