//! Secrets from a file or standard input. Arguments are visible to other users in the process list.

use std::{
    fs::File,
    io::Read,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};

use crate::terminal;

/// Maximum size of a secret file, including its newline.
const MAX_FILE_BYTES: usize = 4_096;

/// Permission of other users to read a file.
const READABLE_BY_OTHERS: u32 = 0o004;

/// The path that stands for standard input.
const STANDARD_INPUT: &str = "-";

/// A secret that the caller gave as an argument or in a file, if any. `-` is standard input.
pub(crate) fn given(
    argument: Option<String>,
    file: Option<&Path>,
) -> anyhow::Result<Option<String>> {
    match file {
        None => Ok(argument),
        Some(path) if is_standard_input(path) => {
            read_from(std::io::stdin(), "standard input").map(Some)
        }
        Some(path) => read(path).map(Some),
    }
}

/// Refuses to read two secrets from standard input.
pub(crate) fn require_one_from_standard_input(
    files: [&Option<PathBuf>; 2],
    flags: [&str; 2],
) -> anyhow::Result<()> {
    if files.iter().all(|file| file.as_deref().is_some_and(is_standard_input)) {
        let [first, second] = flags;
        bail!(
            "{first} and {second}: only one of them can be `-`; put the other secret into a file"
        );
    }
    Ok(())
}

/// Reads a secret from a file, and warns if other users can read it, too.
pub(crate) fn read(path: &Path) -> anyhow::Result<String> {
    let shown = path.display();
    let file =
        File::open(path).with_context(|| format!("the secret file {shown} cannot be opened"))?;
    let metadata = file.metadata().with_context(|| format!("the secret file {shown}"))?;
    if metadata.is_file() && metadata.mode() & READABLE_BY_OTHERS != 0 {
        terminal::print_warning(format_args!(
            "the secret file {shown} is readable by every user of this machine: run \
             `chmod o-r {shown}`"
        ));
    }
    read_from(file, &format!("the secret file {shown}"))
}

/// Reads a secret. Errors name the source, never the content.
fn read_from(source: impl Read, what: &str) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    let limit = MAX_FILE_BYTES as u64 + 1;
    source.take(limit).read_to_end(&mut bytes).with_context(|| format!("{what} cannot be read"))?;
    parse(bytes).map_err(|problem| anyhow::anyhow!("{what} {problem}"))
}

/// The secret in the content of a file: one line. One newline at its end does not belong to it.
fn parse(bytes: Vec<u8>) -> Result<String, String> {
    if bytes.len() > MAX_FILE_BYTES {
        return Err(format!("has more than {MAX_FILE_BYTES} bytes: it must contain one secret"));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| "is not UTF-8 text: it must contain one secret".to_owned())?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let secret = line.strip_suffix('\r').unwrap_or(line);
    if secret.is_empty() {
        return Err("is empty: it must contain one secret".to_owned());
    }
    if secret.contains(char::is_control) {
        return Err("has several lines or a control character: it must contain one secret in one \
                    line"
            .to_owned());
    }
    Ok(secret.to_owned())
}

fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == STANDARD_INPUT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_newline_at_the_end_does_not_belong_to_the_secret() {
        for content in ["s3cret phrase", "s3cret phrase\n", "s3cret phrase\r\n"] {
            assert_eq!(parse(content.as_bytes().to_vec()).unwrap(), "s3cret phrase", "{content:?}");
        }
        assert_eq!(parse(vec![b'x'; MAX_FILE_BYTES]).unwrap().len(), MAX_FILE_BYTES);
    }

    #[test]
    fn an_invalid_file_is_refused_without_its_content() {
        for (content, expected) in [
            (&b""[..], "is empty"),
            (b"\n", "is empty"),
            (b"\r\n", "is empty"),
            (b"canary\n\n", "several lines"),
            (b"canary\nb", "several lines"),
            (b"canary\0", "control character"),
            (b"canary\xff", "not UTF-8"),
            (&[b'x'; MAX_FILE_BYTES + 1], "more than 4096 bytes"),
        ] {
            let problem = read_from(content, "the secret file /run/key").unwrap_err().to_string();
            assert!(problem.starts_with("the secret file /run/key "), "{problem}");
            assert!(problem.contains(expected) && !problem.contains("canary"), "{problem}");
        }
    }

    #[test]
    fn only_one_secret_is_read_from_standard_input() {
        let [input, file] = ["-", "f"].map(|path| Some(PathBuf::from(path)));
        let flags = ["--key-file", "--token-file"];
        let error = require_one_from_standard_input([&input, &input], flags).unwrap_err();
        assert!(error.to_string().contains("--key-file and --token-file"), "{error}");
        for files in [[&input, &file], [&input, &None], [&None, &None], [&file, &file]] {
            require_one_from_standard_input(files, flags).unwrap();
        }
    }
}
