//! The commands on template files: `lint` and `convert`.

use std::path::PathBuf;

use clap::{Args, builder::TypedValueParser};
use galley_domain::rulebook::Rulebook;

use super::one_of;

#[derive(Debug, Args)]
#[command(after_help = "\
Exit code: 0 without errors, 1 with errors, 2 if a file cannot be read.
In a list of templates, pointers begin with the index in the list: /0/name.
Two templates of one run must not have the same name.")]
pub(crate) struct LintOptions {
    /// Files with a template document or a list of them, directories (all *.json below them), or -
    /// for standard input.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The rulebook to check against.
    #[arg(long, default_value = "v1", value_parser = rulebook())]
    pub(crate) rulebook: &'static Rulebook,
    /// Treat warnings as errors in the exit code.
    #[arg(long)]
    pub(crate) deny_warnings: bool,
    /// Write annotations for GitHub Actions.
    #[arg(long, conflicts_with = "json")]
    pub(crate) github: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The document is written to standard output, the report to standard error.
Exit code: 0 if everything is converted completely, 1 if something is lost or incomplete, 2 if a \
document is not converted because it cannot be read or written, or its own rulebook refuses it.")]
pub(crate) struct ConvertOptions {
    /// Files with a template document or a list of them, directories (all *.json below them), or -
    /// for standard input.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The rulebook of the files.
    #[arg(long, value_parser = rulebook())]
    pub(crate) from: &'static Rulebook,
    /// The rulebook to convert them to.
    #[arg(long, value_parser = rulebook())]
    pub(crate) to: &'static Rulebook,
    /// Output file for a single document (default: standard output).
    #[arg(short, long, value_name = "FILE", conflicts_with = "output_dir")]
    pub(crate) output: Option<PathBuf>,
    /// Output directory for several documents; each keeps its relative path.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) output_dir: Option<PathBuf>,
}

fn rulebook() -> impl TypedValueParser<Value = &'static Rulebook> {
    let names: Vec<&str> = Rulebook::ALL.iter().map(|rulebook| rulebook.name).collect();
    one_of(&names, Rulebook::by_name)
}
